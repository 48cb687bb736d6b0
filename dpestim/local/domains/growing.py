"""Candidates for frequent values from estimates of their prefixes, or of their fragments. Post-processing only."""

import itertools

import numpy as np

#: Fragments that are put together at most, of one hash.
MOST_JOINED = 256
#: How many times as many prefixes as are kept are looked at: those with the largest estimates at their level.
_LOOKED_AT = 64


def grow(levels, n_keep, possible):
    """Return (candidates, scores), best first: the whole codes whose prefixes are the most frequent.

    At each level the best prefixes are kept and continued by all bits that the next level has more. Frequencies of the
    prefixes of one code never rise from level to level, so its score is the last number of the regression of
    its estimates that never rises: the least mean of the estimates from some level to the last one, weighted by their
    precision. So levels at which a code is alone with its prefix add to what is known of it.

    Parameters
    ----------
    levels : list of (int, function, float)
        Of each level the bits, ascending; a function from prefixes and a number of bits to the estimates of all their
        continuations, an array of a row for each prefix; and the variance of an estimate.
    n_keep : int
        How many prefixes are kept.
    possible : function
        From prefixes and their bits to a mask.
    """
    kept, paths, weights, n_bits = np.zeros(1, np.uint64), np.empty((1, 0)), np.empty(0), 0
    for bits, estimate, variance in levels:
        step, n_bits = bits - n_bits, bits
        estimates = estimate(kept, step)
        weights = np.append(weights, 1 / variance)
        # the least mean of the last estimates, the last of all included, is at most that one
        best = _largest(estimates.ravel(), _LOOKED_AT * n_keep)
        grown = (kept[best >> step] << np.uint64(step)) | (best & ((1 << step) - 1)).astype(np.uint64)
        best, grown = (part[possible(grown, bits)] for part in (best, grown))
        paths = np.column_stack([paths[best >> step], estimates.ravel()[best]])
        scores = path_scores(paths, weights)
        first = np.argsort(-scores, kind="stable")[:n_keep]
        kept, paths, scores = grown[first], paths[first], scores[first]
    return kept, scores


def _largest(values, n):
    """Return the places of the n largest values, ascending."""
    return np.arange(len(values)) if n >= len(values) else np.sort(np.argpartition(-values, n)[:n])


def path_scores(paths, weights):
    """Return the last number of the regression of each row that never rises."""
    sums = np.cumsum((paths * weights)[:, ::-1], axis=1)
    return (sums / np.cumsum(weights[::-1])).min(axis=1)


def join(tables, widths, n_keep, per_hash, check):
    """Return (candidates, scores), best first: codes put together from fragments that share a hash.

    Parameters
    ----------
    tables : list of ndarray of shape (n_hashes, n_fragments)
        The estimates of each fragment beside each hash, first bits first.
    widths : list of int
        Bits of the fragments.
    n_keep : int
    per_hash : int
        The best fragments of each place that are tried with a hash.
    check : function
        From codes to their hashes, which must be the one that their fragments share.
    """
    best = [np.argsort(-table, axis=1, kind="stable")[:, :per_hash] for table in tables]
    told = [np.take_along_axis(table, places, axis=1) for table, places in zip(tables, best)]
    first = np.mean([row[:, 0] for row in told], axis=0)
    hashes = np.argsort(-first, kind="stable")[: 4 * n_keep, None]
    # which of the best fragments is picked at each place: a row for each way to put them together
    picked = np.array(list(itertools.islice(itertools.product(*(range(row.shape[1]) for row in told)), MOST_JOINED)))
    codes = np.zeros((len(hashes), len(picked)), np.uint64)
    for places, width, own in zip(best, widths, picked.T):
        codes = codes << np.uint64(width) | places[hashes, own].astype(np.uint64)
    scores = np.mean([row[hashes, own] for row, own in zip(told, picked.T)], axis=0).ravel()
    codes, hashes = codes.ravel(), np.repeat(hashes.ravel(), len(picked))
    fine = check(codes) == hashes
    order = np.argsort(-scores[fine], kind="stable")[:n_keep]
    return codes[fine][order], scores[fine][order]
