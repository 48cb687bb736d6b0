"""What the state of another machine adds to this one: all of it once, or nothing."""

import warnings

from dpestim.collection import store

_AFRESH = "To merge machines that go on collecting, make a new state file each time, and merge all of them into it"


def merge(mine, other):
    """Add the state of another `Store` to this one, in one transaction; raises ValueError for what is in both.

    The other one is read as it is at one instant, and not locked against its writers.
    """
    if mine.path == other.path:
        raise ValueError("other must be the state of another machine, because otherwise reports would be counted twice")
    with other.transaction(write=False) as execute:
        counts, n, origins = store.counts_of(execute), store.reports_of(execute), store.origins_of(execute)
        rejected, known = store.rejected_of(execute), store.all_batches(execute)
        nonces = store.all_nonces(execute)
    with mine.transaction() as execute:
        if origins & store.origins_of(execute):
            raise ValueError(f"other was merged before, or is a copy of this state, and nothing was added. {_AFRESH}")
        twice = sum(store.reports_of_batch(execute, identity) is not None for identity, *_ in known)
        if twice:
            raise ValueError(f"{twice} batches of other were counted here, too, and nothing was added: give each file "
                             "to one machine only, and count the files of both anew in a new state file")
        store.add_merged(execute, origins, known)
        if n:
            store.add_counts(execute, counts, n)
        store.add_rejected(execute, rejected)
        both = store.add_nonces(execute, nonces)
    if both:
        warnings.warn(f"{both} nonces are in both states: both machines have counted the reports with these nonces. "
                      "Send each report to one machine", stacklevel=3)
