"""Frequencies under which what was counted is likeliest: in closed form where the law allows it, else iterated."""

import numpy as np

from dpestim.postprocessing.em import Matrix, log_likelihood, maximise
from dpestim.postprocessing.inputs import estimates_of, number_for_each, root_of
from dpestim.postprocessing.simplex import norm_sub

#: Iterations of one kind, before the other has its turn.
_STRIDE = 100
#: Steps back to which a climb may fall.
_MEMORY = 10
#: What share of a log-likelihood may be rounding.
_DIGITS = 1e-13


def ibu(estimates, standard_errors=None, *, law=None, counts=None, n=None, tol=1e-6, max_iter=10_000):
    """Return the maximum likelihood estimate: the frequencies under which the counts are likeliest (iterative Bayes).

    Parameters
    ----------
    estimates : array-like of shape (d,)
        Only their number is used: the likelihood is that of the counts.
    standard_errors : ignored
    law : tuple (p, q), array-like of shape (d, n_outputs), or channel
        What is known of a report. A pair: value v is supported by those who hold it with probability p and by any other
        with q < p; numbers, or arrays of shape (d,). A matrix: row x has the probability of each output for value x. A
        channel: an object with the methods ``expected(f)``, which returns the probabilities of outputs, and ``steps(f,
        counts, n_steps, smooth)``, which iterates in place.
    counts : array-like of shape (n_outputs,), or (d,) for a pair
        How often each output was reported, or each value supported.
    n : int, default=None
        For a pair: the number of reports, each of which may support any number of values. None: each names one.
    tol : float, default=1e-6
        Iterations end where the log-likelihood of all counts together is certainly within `tol` of its maximum, or
        where it rises by less than its rounding.
    max_iter : int, default=10_000
        Iterations at most.

    Returns
    -------
    ndarray of shape (d,)
        At least 0, of sum 1. Biased where a frequency is near 0.

    Raises
    ------
    ValueError
        Where law and counts are missing or do not fit each other and the estimates.

    Notes
    -----
    **What is exact.** Every law that is given as a matrix, or as a channel, with the counts of its outputs: the
    likelihood is concave, and its gradient bounds what is left of it. Expectation maximisation and projected
    gradients take turns (d x n_outputs an iteration for a matrix). A pair without `n`, as in randomised response:
    max(s c_v - q / (p - q), 0), O(d log d). And *any* law at all from the reports themselves:
    ``ibu(f, law=randomizer.likelihoods(reports).T, counts=np.ones(len(reports)))``, as columns of a matrix need only be
    proportional to probabilities.

    **What is not.** Counts of supports, where a report supports several values (a pair with `n`; unary encodings, local
    hashing, subsets), do not tell the reports: then the product of the exact likelihoods of all counts, each binomial,
    is maximised (a composite likelihood; consistent, about as good as `mle_apx`, which is its limit for many reports).

    ``postprocess="ibu"`` takes law and counts from the mechanism, and is exact where a report is one code of an
    alphabet: for binary, generalised, sensitivity-aware and utility-optimised randomised response and Hadamard
    response. Where counts are not of supports (sums of noisy numbers), or a matrix would have more than 2^24 entries,
    it is `mle_apx`.

    References
    ----------
    R. Agrawal, D. Agrawal, C. C. Aggarwal, "On the design and quantification of privacy preserving data mining
    algorithms", PODS 2001, section 4 (with its matrix; the closed forms are by the conditions of a maximum).

    Examples
    --------
    >>> f = [0.62, 0.45, -0.07]  # (counts / 200 - 0.2) / (0.6 - 0.2)
    >>> ibu(f, law=(0.6, 0.2), counts=[90, 76, 34]).round(4).tolist()
    [0.5843, 0.4157, 0.0]
    >>> law = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    >>> ibu(f, law=law, counts=[90, 76, 34]).round(4).tolist()
    [0.5843, 0.4157, 0.0]
    """
    d = estimates_of(estimates).size
    if law is None or counts is None:
        raise ValueError("ibu needs law and counts, because the likelihood is that of the counts: pass both")
    counts = np.asarray(counts, np.float64)
    if counts.ndim != 1 or not (np.isfinite(counts) & (counts >= 0)).all() or not counts.any():
        raise ValueError("counts must be a one-dimensional array of numbers of at least 0, not all of them 0")
    if hasattr(law, "steps"):
        return _by_steps(law, d, counts, tol, max_iter)
    if isinstance(law, tuple) and len(law) == 2:
        p, q = (number_for_each(part, np.empty(d), "law", most=1.0) for part in law)
        if (q >= p).any() or len(counts) != d:
            raise ValueError("law must be (p, q) with 0 <= q < p <= 1, and counts as many as estimates")
        if n is None:
            return _of_names(counts, p, q)
        if not n > 0 or counts.max() > n:
            raise ValueError("n must be the number of reports, at least the largest of counts")
        return _of_supports(counts, float(n), p, q)
    law = np.asarray(law, np.float64)
    if law.shape != (d, len(counts)) or not (np.isfinite(law) & (law >= 0)).all() or n is not None:
        raise ValueError("law must be (p, q), a channel, or a matrix of a row of probabilities for each of the "
                         "estimates and a column for each of counts, without n")
    return _by_steps(Matrix(law), d, counts, tol, max_iter)


def _of_names(counts, p, q):
    """Return the likeliest frequencies where value v is named with probability q + (p - q) f_v.

    Where f_v > 0 the gradient c_v (p - q) / (q + (p - q) f_v) is the same, 1 / s, and where f_v = 0 it is at most that:
    f_v = max(s c_v - q / (p - q), 0), and s is the one for which they sum to 1.
    """
    held, less = counts > 0, q / (p - q)
    appears = np.divide(less, counts, out=np.full(len(counts), np.inf), where=held)  # at which s it is more than 0
    order = np.argsort(appears)[: np.count_nonzero(held)]
    scales = (1 + np.cumsum(less[order])) / np.cumsum(counts[order])
    kept = np.flatnonzero(scales > appears[order])[-1]
    out = np.where(held, np.maximum(counts * scales[kept] - less, 0.0), 0.0)
    return out / out.sum()


def _of_supports(counts, n, p, q):
    """Return the maximum of the sum of c log P + (n - c) log(1 - P), P = q + (p - q) f, over the simplex.

    Where f > 0 the derivative (p - q) (c - n P) / (P (1 - P)) is the same, which is a quadratic equation for P.
    """
    gap = p - q

    def at(multiplier):
        m = multiplier / gap
        both = n + m
        root = np.sqrt(np.square(both) - 4 * m * counts)
        rises = both > 0  # (of two forms of the solution the one in which nothing cancels)
        share = np.divide(np.where(rises, 2 * counts, both - root), np.where(rises, both + root, 2 * m))
        return np.maximum((share - q) / gap, 0.0)

    found = root_of(lambda multiplier: 1.0 - at(multiplier).sum(), unit=1e-3 * n * gap.max())
    if found is None:
        return np.full(len(counts), 1 / len(counts))
    out = at(found)
    return out / out.sum()


def _by_steps(channel, d, counts, tol, max_iter):
    """Iterate until the gradient says that at most `tol` of the log-likelihood is left."""
    f, n = np.full(d, 1.0 / d), counts.sum()
    if channel.expected(f).shape != counts.shape:
        raise ValueError("counts must have one number for each output of law")
    if not (channel.expected(f)[counts > 0] > 0).all():
        raise ValueError("counts must be 0 for outputs that law never has")
    value = -np.inf
    for _ in range(0, max_iter, 2 * _STRIDE):
        # one is quick where reports say much, and slow towards 0; for the other it is the reverse
        f = maximise(channel, counts, f, smooth=False, max_iter=_STRIDE, tol=0.0, leaps=True)[0]
        f, gradient = _climb(channel, f, counts, tol)
        before, value = value, log_likelihood(channel, f, counts)
        if n * (gradient.max() - 1) <= tol or value - before <= _DIGITS * abs(value):
            break
    return f / f.sum()


def _climb(channel, f, counts, tol):
    """Return (frequencies, the gradient there over the number of reports) after steps of projected gradients.

    The length of a step is that of Barzilai and Borwein; it is halved until the likelihood is above the least of the
    last few (Birgin, Martinez and Raydan, "Nonmonotone spectral projected gradient methods on convex sets", 2000).
    """
    n, (f, gradient) = counts.sum(), _gradient(channel, f, counts)
    values, size = [log_likelihood(channel, f, counts)], 1.0 / len(f)
    for _ in range(_STRIDE):
        if n * (gradient.max() - 1) <= tol:
            break
        way = norm_sub(f + size * gradient) - f
        rise, step = n * (gradient @ way), 1.0
        least = min(values[-_MEMORY:]) - _DIGITS * abs(values[-1])
        while (value := log_likelihood(channel, f + step * way, counts)) < least + 1e-4 * step * rise and step > 1e-9:
            step /= 2
        before, there = gradient, np.maximum(f + step * way, 0.0)
        there, gradient = _gradient(channel, there, counts)
        moved, bend = there - f, -((there - f) @ (gradient - before))
        size = float(moved @ moved / bend) if bend > 0 else 10 * size
        f = there
        values.append(value)
    return f, gradient


def _gradient(channel, f, counts):
    """Return (f, raised where it is 0, the gradient there over the number of reports): what a step multiplies by."""
    f = np.maximum(f / f.sum(), 1e-300)
    after = f.copy()
    channel.steps(after, counts, 1, False)
    return f, after / f
