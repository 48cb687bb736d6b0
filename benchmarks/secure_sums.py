"""Seconds of the processor for a secure sum: of all parties in one process, and of one party with a long vector.

    python -m benchmarks.secure_sums
"""

import time

import numpy as np

from dpestim.parties import Directory, Identity, SumParty, SumServer, SumTerms, run_together
from dpestim.parties.wire import SERVER


def made(terms):
    """Return (parties, server, the sum of their vectors)."""
    owner, *identities = (Identity() for _ in range(terms.n_parties + 1))
    directory = Directory(owner.public, [identity.public for identity in identities])
    vectors = np.random.default_rng(0).integers(0, 2**64, (terms.n_parties, terms.size), np.uint64)
    parties = [SumParty(terms, directory, *at) for at in zip(range(terms.n_parties), identities, vectors, strict=True)]
    return parties, SumServer(terms, directory, owner), vectors.sum(0)


def together(terms):
    """Print how long all take, one after another."""
    begin = time.process_time()
    parties, server, exact = made(terms)
    if not np.array_equal(run_together(parties, server), exact):
        raise RuntimeError("the sum is wrong")
    print(f"{terms.n_parties} parties, {terms.size} entries, {terms.graph[0]} neighbours, active={terms.active}: "
          f"{time.process_time() - begin:.1f} s for all parties and the server")


def one_party(terms):
    """Print how long the first party takes, for each message."""
    parties, server, _ = made(terms)
    queue = [message for party in parties for message in party.start()]
    spent = {}
    while queue:
        message = queue.pop(0)
        begin = time.process_time()
        receiver = server if message.receiver == SERVER else parties[message.receiver]
        queue += receiver.receive(message)
        if message.receiver == 0:
            spent[message.phase] = time.process_time() - begin
    text = ", ".join(f"{phase} {seconds:.3f}" for phase, seconds in spent.items())
    print(f"one party of {terms.n_parties}, {terms.size} entries, {terms.graph[0]} neighbours: "
          f"{sum(spent.values()):.3f} s ({text})")


if __name__ == "__main__":
    one_party(SumTerms(21, 1_000_000, active=True))
    together(SumTerms(100, 10_000, dropout=0.1, corrupt=0.1, active=True))
    together(SumTerms(1000, 10_000, dropout=0.1, corrupt=0.1))
