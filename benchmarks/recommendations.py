"""What was held out: ratings by similar items beside means, items of flipped lists beside the most popular ones.

    python -m benchmarks.recommendations

Simulated users and items have five hidden tastes, items differ in how often they are rated (a power law), and ratings
are from 1 to 5 in halves. Users choose the items of their lists by popularity and taste; one item of each list is held
out. Each line is the mean of three seeds.
"""

import os
import time

import numpy as np
import scipy
from scipy import sparse

from dpestim.recommend import DPItemSimilarity, DPLCFRecommender

SIZES = ((20_000, 500, 40), (5_000, 100, 15))
EPSILONS = (0.5, 1.0, 3.0)
SEEDS = 3
#: The standard deviation of tastes, in logarithms of chances.
TASTE = 1.5
#: Epsilons of an item of a list (and one that is no privacy), and how many items are recommended.
OF_AN_ITEM, SHOWN = (0.5, 1.0, 2.0, 4.0, 60.0), 10


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


def recalls(n_users, n_items, per_user, seed):
    """Return how often an item that was held out is among those that are recommended, by name, and seconds of a fit."""
    rng = np.random.default_rng(seed)
    of_users, of_items = rng.normal(size=(n_users, 5)), rng.normal(size=(n_items, 5))
    chances = of_users @ of_items.T / np.sqrt(5) * TASTE - np.log(np.arange(n_items) + 10.0)
    chances += rng.gumbel(size=chances.shape)
    longest = 2 * per_user
    items = np.argsort(-chances, axis=1)[:, :longest]
    kept = np.arange(longest) < rng.integers(2, longest + 1, n_users)[:, None]
    users, items = np.repeat(np.arange(n_users), kept.sum(axis=1)), rng.permuted(items, axis=1)[kept]
    hidden = np.concatenate([[True], np.diff(users) > 0])
    seen = sparse.csr_array((np.ones((~hidden).sum()), (users[~hidden], items[~hidden])), shape=(n_users, n_items))
    rows, truth = users[hidden], items[hidden]

    def share(shown):
        return float((shown[rows] == truth[:, None]).any(axis=1).mean())

    scores = np.tile(np.asarray(seen.sum(axis=0), float), (n_users, 1))
    scores[seen.nonzero()] = -np.inf
    found = {"most popular, no noise": share(np.argsort(-scores, axis=1, kind="stable")[:, :SHOWN])}
    begun = time.perf_counter()
    for epsilon in OF_AN_ITEM:
        model = DPLCFRecommender(epsilon, n_items=n_items, random_state=seed).fit(seen)
        found[f"epsilon {epsilon:g} an item"] = share(model.recommend(seen, SHOWN))
    return found, (time.perf_counter() - begun) / len(OF_AN_ITEM), len(users) / n_users


def main():
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}, {os.cpu_count()} cores, {SEEDS} seeds")
    for size in SIZES:
        runs = [errors(*size, seed) for seed in range(SEEDS)]
        print(f"{size[0]:,} users, {size[1]} items, {np.mean([run[2] for run in runs]):.1f} ratings of a user; "
              f"{np.mean([run[1] for run in runs]):.2f} s a fit with predictions")
        for name in runs[0][0]:
            print(f"  {name:26} {np.mean([run[0][name] for run in runs]):.3f}")
        runs = [recalls(*size, seed) for seed in range(SEEDS)]
        print(f"... lists of {np.mean([run[2] for run in runs]):.1f} items: recall of {SHOWN}; "
              f"{np.mean([run[1] for run in runs]):.2f} s a fit with recommendations")
        for name in runs[0][0]:
            print(f"  {name:26} {np.mean([run[0][name] for run in runs]):.3f}")


if __name__ == "__main__":
    main()
