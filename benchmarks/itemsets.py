"""Frequent items and itemsets of baskets: precision and normalised cumulative rank of the top 20.

Baskets are of 1,000 items with Zipf shares, and 20 planted pairs of items that are bought together.
"""

import time
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from benchmarks._harness import Row
from dpestim.local import ItemsetEstimator

N_ITEMS, N_PAIRS, TOP = 1000, 20, 20


def baskets(n, seed):
    """Return a sparse table of n baskets of four draws of a Zipf law; 40 % also have a planted pair."""
    rng = np.random.default_rng(seed)
    shares = 1 / (np.arange(N_ITEMS) + 3.0)
    drawn = rng.choice(N_ITEMS, (n, 4), p=shares / shares.sum())
    pairs = rng.permutation(60)[: 2 * N_PAIRS].reshape(N_PAIRS, 2)
    weights = 1 / (np.arange(N_PAIRS) + 1.0)
    who = np.flatnonzero(rng.random(n) < 0.4)
    own = pairs[rng.choice(N_PAIRS, len(who), p=weights / weights.sum())]
    rows = np.concatenate([np.repeat(np.arange(n), 4), np.repeat(who, 2)])
    table = csr_array((np.ones(len(rows)), (rows, np.concatenate([drawn.ravel(), own.ravel()]))), shape=(n, N_ITEMS))
    table.data[:] = 1.0
    return table


def truth(X, with_sets):
    """Return the TOP most frequent items, or sets of up to three of the most frequent 60 items, in order."""
    shares = X.sum(axis=0) / X.shape[0]
    found = {(int(j),): shares[j] for j in range(N_ITEMS)}
    if with_sets:
        items = np.sort(np.argsort(-shares)[:60])
        held = X[:, items].toarray() > 0
        for size in (2, 3):
            for own in combinations(range(len(items)), size):
                if size == 2 or all(tuple(items[list(two)].tolist()) in found for two in combinations(own, 2)):
                    share = held[:, list(own)].all(axis=1).mean()
                    if share > 0.02:
                        found[tuple(items[list(own)].tolist())] = share
    return sorted(found, key=found.get, reverse=True)[:TOP]


def scores(true, found):
    """Return (precision, normalised cumulative rank): the first of k counts k, the next k - 1, and so on."""
    found = [tuple(sorted(own)) for own in found]
    ranks = {own: TOP - k for k, own in enumerate(true)}
    return sum(own in ranks for own in found) / TOP, sum(ranks.get(own, 0) for own in found) / sum(ranks.values())


def rows(settings):
    """Yield the rows: precision of both methods at two values of epsilon; means over ten tables."""
    tables = [baskets(min(settings.n, 100_000), seed) for seed in range(2 if settings.quick else 10)]
    for method in ("svim", "svsm"):
        true = [truth(X, method == "svsm") for X in tables]
        for epsilon in (2.0, 4.0):
            start, told = time.perf_counter(), []
            for seed, (X, own) in enumerate(zip(tables, true)):
                est = ItemsetEstimator(epsilon, method=method, n_top=TOP, random_state=seed).fit(X)
                told.append(scores(own, est.itemsets_.values))
            seconds = (time.perf_counter() - start) / len(tables)
            precision, rank = np.mean(told, axis=0)
            n = tables[0].shape[0]
            yield Row(f"precision of the top {TOP} by {method} of {n:,} baskets, epsilon = {epsilon:g}",
                      ours=float(precision), unit="", repeats=len(told),
                      note=f"normalised cumulative rank {rank:.2f}; {seconds:.2f} s a fit")
