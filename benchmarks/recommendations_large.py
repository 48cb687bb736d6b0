"""Seconds and peak memory of fits to ten million ratings of 10,000 items by 100,000 users.

    python -m benchmarks.recommendations_large [DPItemSimilarity | DPMatrixFactorization]

Items differ in how often they are rated (a power law), and numbers of ratings of users are Poisson. The time of making
the ratings is not counted; that of reading the matrix is. One process for each class shows the memory of each.
"""

import os
import resource
import sys
import time

import numpy as np
import scipy
from scipy import sparse

from dpestim import recommend

N_RATINGS, N_USERS, N_ITEMS = 10_000_000, 100_000, 10_000


def simulated(n_ratings, n_users, n_items, rng):
    """Return a sparse matrix of ratings from 1 to 5, of about so many."""
    popular = np.cumsum(1 / (np.arange(n_items) + 100.0))
    users = np.repeat(np.arange(n_users), rng.poisson(1.3 * n_ratings / n_users, n_users))
    items = np.searchsorted(popular, rng.random(len(users)) * popular[-1])
    pairs = np.unique(users * n_items + np.minimum(items, n_items - 1))
    pairs = pairs[np.sort(rng.permutation(len(pairs))[:n_ratings])]
    users, items = pairs // n_items, pairs % n_items
    of_users, of_items = rng.normal(size=(n_users, 3)), rng.normal(size=(n_items, 3))
    ratings = np.concatenate([(of_users[users[a:a + 1_000_000]] * of_items[items[a:a + 1_000_000]]).sum(axis=1)
                              for a in range(0, len(users), 1_000_000)])
    return sparse.csr_array((np.clip(np.rint(3.5 + 0.5 * ratings), 1, 5), (users, items)), shape=(n_users, n_items))


def peak():
    """Return the largest memory that the process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(names):
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}, {os.cpu_count()} cores")
    X = simulated(N_RATINGS, N_USERS, N_ITEMS, np.random.default_rng(0))
    print(f"{X.nnz:,} ratings, {N_USERS:,} users, {N_ITEMS:,} items; {peak():,.0f} MB")
    for name in names or ("DPItemSimilarity", "DPMatrixFactorization"):
        for neighbours in ("add_remove", "rating") if name == "DPItemSimilarity" else ("add_remove",):
            model = getattr(recommend, name)(1.0, delta=1e-6, bounds=(1, 5), neighbours=neighbours)
            begun, used = time.perf_counter(), time.process_time()
            model.fit(X)
            print(f"{name} {neighbours}: {time.perf_counter() - begun:.1f} s, {time.process_time() - used:.1f} s of "
                  f"the processor, peak {peak():,.0f} MB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
