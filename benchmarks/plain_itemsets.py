"""SVIM and SVSM as T. Wang, N. Li, S. Jha published them (IEEE S&P 2018), in plain NumPy, to compare with.

Noise is of floats: fit for figures, and not for private data.
"""

import heapq
from itertools import pairwise

import numpy as np

SHARES = {"svim": (0.4, 0.1, 0.5), "svsm": (0.2, 0.05, 0.25, 0.05, 0.45)}
PRIME = 2**31 - 1


def grr(values, d, epsilon, rng):
    """Return estimated counts of values below d by randomised response."""
    p = np.exp(epsilon) / (np.exp(epsilon) + d - 1)
    q = (1 - p) / (d - 1)
    other = (values + rng.integers(1, d, len(values))) % d
    told = np.where(rng.random(len(values)) < p, values, other)
    return (np.bincount(told, minlength=d) - len(values) * q) / (p - q)


def olh(values, d, epsilon, rng):
    """Return estimated counts of values below d by optimal local hashing."""
    g = round(np.exp(epsilon)) + 1
    a, b = rng.integers(1, PRIME, len(values)), rng.integers(0, PRIME, len(values))
    p = np.exp(epsilon) / (np.exp(epsilon) + g - 1)
    mine = (a * values + b) % PRIME % g
    told = np.where(rng.random(len(values)) < p, mine, (mine + rng.integers(1, g, len(values))) % g)
    support = np.array([((a * v + b) % PRIME % g == told).sum() for v in range(d)])
    return (support - len(values) / g) / (p - 1 / g)


def padded(baskets, d, length, epsilon, rng):
    """Return estimated counts of d items by padding to `length` slots, sampling, and the adaptive oracle."""
    sizes = np.diff(baskets.indptr)
    slot = (rng.random(len(sizes)) * np.maximum(sizes, length)).astype(np.int64)
    held = slot < sizes
    values = d + np.minimum(slot, length - 1)  # (dummies)
    values[held] = baskets.indices[(baskets.indptr[:-1] + slot)[held]]
    if d < length * (4 * length - 1) * np.exp(epsilon) + 1:
        counts = grr(values, d + length, np.log(length * (np.exp(epsilon) - 1) + 1), rng)
    else:
        counts = olh(values, d + length, epsilon, rng)
    return counts[:d] * length


def lengths(sizes, most, epsilon, rng):
    """Return (the padding length, by how much the mean size is cut) from noisy counts of sizes."""
    counts = np.maximum(olh(np.minimum(sizes, most), most + 1, epsilon, rng), 0)
    covered = np.cumsum(counts[1:]) / max(counts[1:].sum(), 1)
    length, each = 1 + int(np.argmax(covered >= 0.9)), np.arange(most + 1)
    return length, (counts @ each) / max(counts @ np.minimum(each, length), 1)


def mined(X, epsilon, k, method, seed):
    """Return the k itemsets (tuples) of the largest estimates, and these estimates, of a sparse table X."""
    rng = np.random.default_rng(seed)
    X = X[rng.permutation(X.shape[0])]
    ends = np.cumsum([0, *SHARES[method]])
    groups = [X[int(a * X.shape[0]): int(b * X.shape[0])] for a, b in pairwise(ends)]
    first = padded(groups[0], X.shape[1], 1, epsilon, rng)
    items = np.argsort(-first)[: 2 * k]
    held = [group[:, items].tocsr() for group in groups]
    length, more = lengths(np.diff(held[1].indptr), len(items), epsilon, rng)
    shares = padded(held[2], len(items), length, epsilon, rng) * more / held[2].shape[0]
    found = {(int(item),): share for item, share in zip(items, shares)}
    if method == "svsm":
        order = np.argsort(-shares)[:k]
        guessed = np.maximum(shares[order] * 0.9 / shares[order[0]], 1e-6)
        sets = guesses(guessed, 2 * k, 1 + int(np.log2(k)))
        tables = [type(X)(np.stack([(held[g][:, order].toarray() > 0)[:, list(own)].all(axis=1) for own in sets],
                                   axis=1).astype(float)) for g in (3, 4)]
        length, more = lengths(np.diff(tables[0].indptr), len(sets), epsilon, rng)
        shares = padded(tables[1], len(sets), length, epsilon, rng) * more / tables[1].shape[0]
        found |= {tuple(int(item) for item in items[order][list(own)]): share for own, share in zip(sets, shares)}
    best = sorted(found, key=found.get, reverse=True)[:k]
    return best, [found[own] for own in best]


def guesses(shares, n_sets, longest):
    """Return the sets of places with the largest products of falling shares."""
    heap, found = [(-shares[0], (0,))], []
    while heap and len(found) < n_sets:
        product, own = heapq.heappop(heap)
        if len(own) > 1:
            found.append(own)
        after = own[-1] + 1
        if after < len(shares):
            heapq.heappush(heap, (product / shares[own[-1]] * shares[after], (*own[:-1], after)))
            if len(own) < longest:
                heapq.heappush(heap, (product * shares[after], (*own, after)))
    return found
