"""A median of five owners in five processes over TLS, and the common users of two: seconds, and bytes that are sent.

    python -m benchmarks.secure_quantiles
"""

import asyncio
import multiprocessing
import time

import numpy as np

from dpestim.parties import (
    Certificate,
    Directory,
    Identity,
    PrivateIntersectionSize,
    QuantileOwner,
    Relay,
    Relayed,
    RelayTerms,
    SecureQuantile,
    join,
    serve,
    session,
)


def median_of(method):
    """Return what makes the protocol and the data of an owner."""
    return lambda place: (QuantileOwner(SecureQuantile(1.0, domain=range(1000), method=method)),
                          np.random.default_rng(place).normal(400, 100, 1000).round())


def common_of(place):
    """Return the protocol and the users of one of two owners."""
    return PrivateIntersectionSize(role=("first", "second")[place]), range(place * 5000, place * 5000 + 10_000)


def owner(make, terms, directory, place, identity, fingerprint, end):
    """What runs in the process of an owner: it tells seconds of the processor, and bytes that it sent."""
    sent, encode = [0], session.encode

    def counted(message):
        frame = encode(message)
        sent[0] += len(frame)
        return frame
    session.encode = counted
    protocol, data = make(place)
    port = end.recv()
    begin = time.process_time()
    asyncio.run(join(Relayed(terms, directory, place, identity, protocol, data), "127.0.0.1", port, fingerprint))
    end.send((time.process_time() - begin, sent[0]))


def run(name, n, make):
    """Print how long all take."""
    terms, certificate, context = RelayTerms(n), Certificate.make(), multiprocessing.get_context("fork")
    server, *identities = (Identity() for _ in range(n + 1))
    directory = Directory(server.public, [identity.public for identity in identities])
    ends, others = zip(*(context.Pipe() for _ in range(n)))
    processes = [context.Process(target=owner, args=(make, terms, directory, place, identities[place],
                                                     certificate.fingerprint, others[place])) for place in range(n)]
    for process in processes:
        process.start()
    begin, spent = time.perf_counter(), time.process_time()
    relay = Relay(terms, directory, server)
    asyncio.run(serve(relay, certificate, ready=lambda port: [end.send(port) for end in ends]))
    seconds, spent = time.perf_counter() - begin, time.process_time() - spent
    told = [end.recv() for end in ends]
    for process in processes:
        process.join()
    print(f"{name}, {n} owners: {seconds:.2f} s from the first connection to the end; of the processor "
          f"{sum(own for own, _ in told) + spent:.2f} s, of which the relay {spent:.2f} s; {relay.result} messages; "
          f"the first owner sends {told[0][1] / 1e6:.2f} MB")


if __name__ == "__main__":
    run("median of 1,000 points by weights", 5, median_of("exponential"))
    run("median of 1,000 points by bisection", 5, median_of("bisection"))
    run("common users of 10,000 and 10,000", 2, common_of)
