"""Ratings that were held out: similar items under differential privacy beside means without noise.

    python -m benchmarks.recommendations

Simulated users and items have five hidden tastes, items differ in how often they are rated (a power law), and ratings
are from 1 to 5 in halves. Each line is the mean of three seeds.
"""

import os
import time

import numpy as np
import scipy
from scipy import sparse

from dpestim.recommend import DPItemSimilarity

SIZES = ((20_000, 500, 40), (5_000, 100, 15))
EPSILONS = (0.5, 1.0, 3.0)
SEEDS = 3


def simulated(n_users, n_items, per_user, rng):
    """Return (users, items, ratings)."""
    popular = 1 / (np.arange(n_items) + 10.0)
    of_users, of_items = rng.normal(size=(n_users, 5)), rng.normal(size=(n_items, 5))
    liked, kind = 0.5 * rng.normal(size=n_items), 0.4 * rng.normal(size=n_users)
    users = np.repeat(np.arange(n_users), 1 + rng.poisson(per_user, n_users))
    pairs = np.unique(users * n_items + rng.choice(n_items, len(users), p=popular / popular.sum()))
    users, items = pairs // n_items, pairs % n_items
    taste = 0.8 / np.sqrt(5) * np.einsum("ij,ij->i", of_users[users], of_items[items])
    ratings = 3.5 + liked[items] + kind[users] + taste + 0.5 * rng.normal(size=len(users))
    return users, items, np.clip(np.rint(2 * ratings) / 2, 1, 5)


def errors(n_users, n_items, per_user, seed):
    """Return the root mean squared errors, by name, and the seconds of a fit."""
    rng = np.random.default_rng(seed)
    users, items, ratings = simulated(n_users, n_items, per_user, rng)
    hidden = rng.random(len(users)) < 0.02
    seen = sparse.csr_array((ratings[~hidden], (users[~hidden], items[~hidden])), shape=(n_users, n_items))
    rows, columns, truth = users[hidden], items[hidden], ratings[hidden]

    def off(guess):
        return float(np.sqrt(np.mean((np.clip(guess, 1, 5) - truth) ** 2)))

    counts = np.bincount(items[~hidden], minlength=n_items)
    means = (np.bincount(items[~hidden], ratings[~hidden], n_items) + 5 * ratings[~hidden].mean()) / (counts + 5)
    left = ratings[~hidden] - means[items[~hidden]]
    own = np.bincount(users[~hidden], left, n_users) / (np.bincount(users[~hidden], minlength=n_users) + 2)
    found = {"global mean": off(np.full(len(truth), ratings[~hidden].mean())), "means of items": off(means[columns]),
             "means of items and users": off(means[columns] + own[rows])}
    begun = time.perf_counter()
    for epsilon in EPSILONS:
        model = DPItemSimilarity(epsilon, delta=1e-6, bounds=(1, 5), neighbours="add_remove",
                                 random_state=seed).fit(seen)
        found[f"epsilon {epsilon:g}"] = off(model.predict(seen, (rows, columns)))
    return found, (time.perf_counter() - begun) / len(EPSILONS), len(users) / n_users


def main():
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}, {os.cpu_count()} cores, {SEEDS} seeds")
    for size in SIZES:
        runs = [errors(*size, seed) for seed in range(SEEDS)]
        print(f"{size[0]:,} users, {size[1]} items, {np.mean([run[2] for run in runs]):.1f} ratings of a user; "
              f"{np.mean([run[1] for run in runs]):.2f} s a fit with predictions")
        for name in runs[0][0]:
            print(f"  {name:26} {np.mean([run[0][name] for run in runs]):.3f}")


if __name__ == "__main__":
    main()
