"""Five hospitals count and model their patients together: one dies in the middle, one lies, and nobody is trusted.

Each hospital is a process that keeps its rows and its ledger. A server adds up what they send over TLS. It sees vectors
under masks, and totals with noise of which it knows nothing. Run it: ``python examples/hospitals.py``.
"""

import multiprocessing
import os
import socket
import time

import numpy as np

from dpestim.accounting import Ledger
from dpestim.naive_bayes import DPGaussianNB
from dpestim.parties import Certificate, Directory, Identity, RoundsClient, SumTerms, serve_rounds, take_part
from dpestim.statistics import Count

N_HOSPITALS, N_PATIENTS, DIES, LIES = 5, 2000, 3, 4
#: One of five may drop out, one may collude with the server, and no vector is longer than this.
TERMS = SumTerms(n_parties=N_HOSPITALS, size=4096, dropout=0.2, corrupt=0.2, label="hospitals")


def patients(place):
    """Return made-up (blood pressure, age) and whether a patient is ill, of one hospital."""
    rng = np.random.default_rng(place)
    ill = rng.random(N_PATIENTS) < 0.3
    return np.column_stack([rng.normal(120 + 25 * ill, 12), rng.normal(50 + 10 * ill, 12)]), ill.astype(int)


class Watched(RoundsClient):
    """Adds up as any party does, and keeps what it has seen; one hospital dies in the middle."""

    seen = ()

    def total(self, words, label):
        """Return the total, unless this hospital dies before it."""
        if self.place == DIES and len(self.seen) == 3:
            os._exit(1)
        found = super().total(words, label)
        self.seen = (*self.seen, found)
        return found


def hospital(place, address, fingerprint, notary, told):
    """What runs in the process of a hospital: neither its rows nor its secret key leave it."""
    identity = Identity()
    notary.send_bytes(identity.public)
    server, *publics = (notary.recv_bytes() for _ in range(N_HOSPITALS + 1))
    directory = Directory(server, publics)
    X, y = patients(place)
    ledger = Ledger(2.0, neighbours="add_remove")
    sums = Watched(socket.create_connection(address), TERMS, directory, place, identity,
                   fingerprint)
    ill = y == 1
    if place == LIES:  # (a thousand patients that it does not have)
        ill = np.concatenate([ill, np.ones(1000, bool)])
    count = take_part(Count(0.5, neighbours="add_remove", ledger=ledger), sums, ill)
    model = take_part(DPGaussianNB(1.5, bounds=([60, 0], [200, 100]), classes=[0, 1], neighbours="add_remove",
                                   ledger=ledger), sums, X, y)
    told.put((place, float(count.value_), model.theta_.round(1).tolist(), float(model.score(*patients(99))),
              float(ledger.spent().epsilon), len(sums.seen), sums.survivors, model.privacy_.trust))


def main():
    """Run server and hospitals, and print what each has seen."""
    # (where there is a server of forks it has imported dpestim, and no process need do it again)
    methods = multiprocessing.get_all_start_methods()
    start, context = time.perf_counter(), multiprocessing.get_context(
        "forkserver" if "forkserver" in methods else "spawn")
    context.set_forkserver_preload(["dpestim.naive_bayes", "dpestim.parties", "dpestim.statistics"])
    server, listener, told = Identity(), socket.create_server(("127.0.0.1", 0)), context.Queue()
    notaries, ends = zip(*(context.Pipe() for _ in range(N_HOSPITALS)))
    certificate = Certificate.make()
    processes = [context.Process(target=hospital, args=(place, listener.getsockname(), certificate.fingerprint, end,
                                                        told)) for place, end in enumerate(ends)]
    for process in processes:
        process.start()
    # (who hands out the list of keys is trusted with that; hospitals compare the list, say by telephone)
    publics = [notary.recv_bytes() for notary in notaries]
    for notary in notaries:
        for public in (server.public, *publics):
            notary.send_bytes(public)
    directory = Directory(server.public, publics)
    seen = serve_rounds(listener, TERMS, directory, server, certificate)
    found = sorted(told.get(timeout=30) for _ in range(N_HOSPITALS - 1))
    for process in processes:
        process.join()

    truth = sum(int(patients(place)[1].sum()) for place in range(N_HOSPITALS))
    print(f"The server saw {len(seen)} totals, and of each hospital only words under masks:")
    for label, survivors, total in seen:
        what = "nothing, for a start" if label.endswith("start") else f"{len(total)} integers with noise"
        print(f"  of hospitals {survivors}: {what}")
    for place, count, means, score, spent, n_seen, _, _ in found:
        print(f"Hospital {place} saw {n_seen} totals, spent epsilon {spent:g}, and has: {count:.0f} ill, "
              f"means {means}, right for {score:.0%} of other patients")
    print(f"Hospital {DIES} died after the count and the start of the model: its patients are in the count alone.")
    print(f"Hospital {LIES} lied by 1,000 ill patients: the count is {found[0][1]:.0f}, the truth {truth}.")
    print("A liar moves a total by any number, and nobody can tell; it learns no more of the others for that.")
    print(f"{found[0][-1].capitalize()}.")
    print(f"{time.perf_counter() - start:.1f} seconds")


if __name__ == "__main__":
    main()
