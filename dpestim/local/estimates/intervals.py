"""Intervals for the shares of bins, from what the reports tell without any belief about the shape.

Pure functions of counts; `distribution.md` says what they assume.
"""

import itertools
import math
from functools import lru_cache

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import ndtr, ndtri

from dpestim.exceptions import NoIntervalError
from dpestim.local.estimates.model import BINS, model_of, smooth
from dpestim.local.estimates.rejection import Rejection, width_if_even

#: How uneven values may lie within a bin of the fit, as multiples of its share; the reports choose.
UNEVEN = (0.25, 0.5, 1.0, 2.0, 4.0)
#: A bin of the fit is as uneven as the shares within this reach (positions) of it allow.
REACH = 1 / 128
#: So many bins of the fit side by side may together hold more or less than it says, by this multiple of their share.
GROUPS, TOGETHER = (2, 4, 8, 16, 32), 0.25
#: From this many on they may also be spread evenly, where the fit has a spike.
FLATTENED = 8
#: Values may be evenly spaced, this many to the range; a wave of such density is found if its chi-square (two degrees
#: of freedom, 225 waves) and its height say so. Of evenly spaced values it has the height 2, times the density.
SPACINGS, SURE, HIGH = np.arange(8, 120.5, 0.5), 25.0, 0.7
#: Reports tell values that are evenly spaced where the expected chi-square of their wave is this.
TOLD = 49.0
#: Mass so near an edge (bins of the fit), in excess of what is found beside it, may lie on either side, if it is most.
NEAR, MOST = 2, 0.5
#: Refused are intervals of which more than this share may have their values on the wrong side of an edge, where so much
#: of all mass is concerned (less is noise of the fit, and wider intervals allow for it), ...
MOST_DOUBTED, MASS_DOUBTED = 0.15, 0.05
#: ... and those of which half are at least so wide.
WIDE = 0.5
#: Bins that are asked for by default are the most of these numbers whose intervals, were values even, have a median
#: width below this one, as have all before: half of `WIDE`, for values that are not even have wider ones; up to `FEW`,
#: where even values without noise have the widest, more.
ASKED, BEARABLE, BEARABLE_FEW = (2, 3, 4, 8, 16, 32, 64, 128, 256), WIDE / 2, 0.8 * WIDE
#: Up to so many bins intervals hold for any distribution; of more, for one that is smooth apart from spikes.
FEW = 8


def share_intervals(law, counts, shares, edges, z, values=None):
    """Return an array (bins, 2): ends of the intervals for the shares of bins between edges.

    `shares` are those of a fit on the bins of the model of `law`, around which is linearised. `values` are the edges in
    the units of the data, which tell whether they are round numbers.
    """
    if len(edges) - 1 <= FEW and hasattr(law, "grid"):
        # (what the reports themselves refuse would leave those intervals that chance made narrow)
        _refuse_if_wide(np.full(len(edges) - 1, width_if_even(law, int(counts.sum()), len(edges) - 1, z)))
        test = Rejection(law, model_of(law, BINS).seen(counts), shares, z)
        return np.array([test.interval(a, b) for a, b in itertools.pairwise(edges)])
    estimate, error = _posterior(law, counts, shares, edges, np.eye(len(edges) - 1))
    _refuse_if_wide(2 * z * error)
    ends = unified(estimate, error, float(z))
    if not hasattr(law, "grid"):
        return ends
    doubt = np.maximum(evenly_spaced(law, counts, shares, edges), on_edges(law, shares, edges))
    doubt[doubt <= error] = 0
    if (doubt > 0).mean() > MOST_DOUBTED and doubt.sum() / 2 > MASS_DOUBTED:  # (each edge has two sides)
        raise NoIntervalError(
            "n_bins must put values between the edges of bins, and many values seem to lie on or next to an edge: "
            "choose n_bins or bounds with edges halfway between values, such as bounds=(-0.5, 100.5) and n_bins=101 "
            "for whole numbers up to 100"
        )
    if values is not None:
        doubt = np.maximum(doubt, on_round_numbers(law, counts, shares, edges, values))
    return np.clip(ends + np.stack([-doubt, doubt], axis=1), 0.0, 1.0)


def _refuse_if_wide(widths):
    if np.median(widths) >= WIDE:
        raise NoIntervalError(
            "n_bins must be smaller for intervals: with this number of reports and this epsilon, half of the intervals "
            f"for the shares of {len(widths)} bins would be wider than {WIDE:g}"
        )


@lru_cache(maxsize=64)
def bearable(law, n, z):
    """Return how many bins n reports have intervals for: by the law and n alone, as if values were spread evenly."""
    model, best = model_of(law, BINS), ASKED[0]
    codes = np.bincount(model.output)  # (of each output; no interval asks how its reports divide among them)
    counts = (n * (model.even @ model.rows) / codes)[model.output]
    for n_bins in ASKED:
        if n_bins <= FEW:
            width, most = width_if_even(law, n, n_bins, z), BEARABLE_FEW
        else:
            _, error = _posterior(law, counts, model.even, np.linspace(0.0, 1.0, n_bins + 1), np.eye(n_bins))
            width, most = np.median(2 * z * error), BEARABLE
        if width >= most:
            break
        best = n_bins
    return best


def quantile_intervals(law, counts, shares, q, z):
    """Return an array (q, 2): positions between which the quantiles lie."""
    test = Rejection(law, model_of(law, BINS).seen(counts), shares, z)
    return np.array([test.quantile(share) for share in q])


def on_edges(law, shares, edges):
    """Return, for each bin, the mass next to its inner edges that is more than what lies beside it."""
    inner = edges[1:-1]
    step = np.maximum(NEAR / BINS, law.spacing_at(inner))  # (between two inputs reports tell no place)
    there = _near(law, shares, inner, step)
    excess = there - (_near(law, shares, inner, 3 * step) - there) / 2
    excess[excess <= MOST * there] = 0  # the fit is rough itself
    return _either_side(excess)


def evenly_spaced(law, counts, shares, edges):
    """Return, for each bin, the share that may be on the wrong side of its edges as values seem evenly spaced."""
    score, least = _waves(law, counts)
    found = np.square(np.abs(score)) / least * 2 * (2 * np.abs(score) / least > HIGH)
    k = np.argmax(found)
    if found[k] < SURE:
        return np.zeros(len(edges) - 1)
    inner, per = edges[1:-1], SPACINGS[k]
    u = (per * inner + np.angle(score[k]) / (2 * np.pi)) % 1
    return _either_side(np.abs(0.5 - u) * _near(law, shares, inner, 1 / per) / 2)


def on_round_numbers(law, counts, shares, edges, values):
    """Return, for each bin, the share that may be on the wrong side of its edges if values are rounded unseen.

    The steps are 1, 2 or 5 times a power of ten, the largest one that reports do not tell and that an edge is on.
    """
    score, least = _waves(law, counts)
    if (np.square(np.abs(score)) / least * 2 * (2 * np.abs(score) / least > HIGH)).max() >= SURE:
        return np.zeros(len(edges) - 1)  # (what is seen is allowed for)
    unseen = SPACINGS[2 * least < TOLD]
    span = values[-1] - values[0]
    most, reach = span / (unseen[0] if len(unseen) else SPACINGS[-1]), np.zeros(len(edges) - 2)
    for power in range(math.floor(math.log10(most)) - 3, math.floor(math.log10(most)) + 1):
        for step in np.array([1.0, 2.0, 5.0]) * 10.0**power:
            if step <= most * (1 + 1e-9):
                times = values[1:-1] / step
                reach[np.abs(times - np.rint(times)) < 1e-6] = step / span / 2
    return _either_side(_near(law, shares, edges[1:-1], reach) / 2)


def _waves(law, counts):
    """Return (score of each wave, its information): the height of one is twice the ratio, and 2 for even spaces."""
    model = model_of(law, BINS)
    seen, n = model.seen(counts), counts.sum()
    even = smooth(model, seen)
    expected = np.maximum(even @ model.rows, 1e-12)
    waves = (np.exp(2j * np.pi * SPACINGS[:, None] * model.middles) * even) @ model.rows
    return waves.conj() @ (seen / expected - n), n * (np.square(np.abs(waves)) / expected).sum(axis=1)


def _near(law, shares, places, reach):
    """Return the mass of a fit around places."""
    knots, reached = model_of(law, BINS).edges, np.concatenate([[0.0], np.cumsum(shares)])
    return np.interp(places + reach, knots, reached) - np.interp(places - reach, knots, reached)


def _either_side(amount):
    """Return for each bin what is doubtful at its inner edges."""
    return np.concatenate([[0], amount]) + np.concatenate([amount, [0]])


def unified(estimate, error, z):
    """Return ends of intervals for numbers in [0, 1], as likely to cover those next to 0 as any others."""
    upper = estimate > 0.5
    distance = np.where(upper, 1 - estimate, estimate) / np.maximum(error, 1e-300)
    truths, least, most = _belt(z)
    low = np.interp(distance, most, truths)
    high = np.interp(distance, least[1:], truths[1:])
    low, high = np.where(distance > most[-1], distance - z, low), np.where(distance > least[-1], distance + z, high)
    high = np.where(distance < least[1], distance + np.sqrt(np.square(distance) + most[0] ** 2), high)
    ends = np.clip(np.stack([low, high], axis=1) * error[:, None], 0.0, 1.0)
    return np.where(upper[:, None], 1 - ends[:, ::-1], ends)


@lru_cache(maxsize=8)
def _belt(z):
    """Return (true means, smallest and largest observation for which each is in the interval); errors are 1."""
    level = 2 * ndtr(z) - 1
    truths = np.linspace(0, z, 1025)[1:]
    few, many = np.zeros_like(truths), np.full_like(truths, z)
    for _ in range(60):  # the reach that gives the level, by bisection
        reach = (few + many) / 2
        least = np.where(reach <= truths, truths - reach, truths / 2 - np.square(reach) / (2 * truths))
        short = ndtr(reach) - ndtr(least - truths) < level
        few, many = np.where(short, reach, few), np.where(short, many, reach)
    first = ndtri(level)  # the reach next to 0, which all observations below are nearest to
    return tuple(np.concatenate(each) for each in (([0.0], truths), ([-np.inf], least), ([first], truths + reach)))


@lru_cache(maxsize=8)
def _places(law):
    """Return (rows of the bins and of what tells places within a bin apart, rows of values at the two bounds)."""
    model = model_of(law, BINS)
    left, right = model.channel.ends()
    return np.vstack([model.rows, right - left]), np.stack([left[0], right[-1]])


def _groups(model, fit):
    """Return directions, rows of shares of the bins of the fit: more or less in some side by side."""
    out, bins = [], np.arange(len(fit))
    for size in GROUPS:
        member = bins // size == np.arange(-(-len(fit) // size))[:, None]
        as_fit = np.where(member, fit + 1e-6 * model.even, 0)
        out.append(as_fit)
        if size >= FLATTENED:
            flat = np.where(member, model.even, 0)
            out.append(flat * (as_fit.sum(axis=1) / flat.sum(axis=1))[:, None])
    return TOGETHER * np.vstack(out)


def _posterior(law, counts, fit, edges, targets):
    """Return (estimate, standard error) of targets, rows of weights of the shares of the bins between edges."""
    discrete = not hasattr(law, "grid")
    # levels of a low interval have little noise and tell nothing of what lies between them
    model = model_of(law, BINS)
    seen, n = model.seen(counts), counts.sum()
    fine, m = model.edges, len(model.widths)
    over = np.minimum(fine[1:], edges[1:, None]) - np.maximum(fine[:-1], edges[:-1, None])
    inside = np.maximum(over, 0) / model.widths  # the share of each bin of the fit that lies in each bin
    expected = np.maximum(fit @ model.rows, 1e-12)
    spread = inside * (fit + 1e-6 * model.even)
    spread /= spread.sum(axis=1, keepdims=True)  # how the share of a bin divides
    noise = (np.diag(expected) - (model.rows.T * fit) @ model.rows) / n  # users keep their values: laws vary, not bins
    if discrete:
        places, uneven, bounds, factors = model.rows, np.zeros(m), np.zeros((0, len(seen))), (0.0,)
        belongs, fixed = inside, np.zeros(m, bool)
    else:
        places, bounds = _places(law)
        near = np.abs(model.middles[:, None] - model.middles) <= REACH
        local = np.where(near, fit, 0.0).max(axis=1)
        uneven, factors = np.concatenate([local**2, local**2 / 12]), UNEVEN
        belongs = np.hstack([inside, np.zeros_like(inside)])
        fixed = np.tile(model.channel.is_low, 2)
    blocks = spread @ model.rows
    groups = np.zeros((0, m)) if discrete else _groups(model, fit)
    base = noise + blocks.T @ blocks + bounds.T @ bounds + (places.T * np.where(fixed, uneven, 0)) @ places
    free = (places.T * np.where(fixed, 0, uneven)) @ places
    apart, best = expected, None
    if not discrete:  # the fit follows noise, which would hide how uneven values are
        apart = smooth(model, seen) @ model.rows
        base = base + (groups @ model.rows).T @ (groups @ model.rows)
    for factor in factors:
        half = cholesky(base + factor**2 * free + 1e-13 * np.eye(len(seen)), lower=True, check_finite=False)
        rest, other = solve_triangular(
            half, np.stack([seen / n - expected, seen / n - apart], axis=1), lower=True, check_finite=False).T
        value = -other @ other / 2 - np.log(np.diag(half)).sum()
        if best is None or value > best[0]:
            best = value, factor, half, rest
    _, factor, half, rest = best
    uneven = np.where(fixed, 1.0, factor**2) * uneven
    # covariances of what is unknown (shares of bins, places within, mass at the bounds) with the targets
    belongs = targets @ belongs
    weights = targets @ inside
    blocky = targets @ (inside @ spread.T)
    known = blocky @ blocks + (belongs * uneven) @ places
    own = np.square(blocky).sum(axis=1) + np.square(belongs) @ uneven
    together = weights @ groups.T
    known, own = known + together @ (groups @ model.rows), own + np.square(together).sum(axis=1)
    if len(bounds):
        ends = targets[:, [0, -1]]
        known, own = known + ends @ bounds, own + np.square(ends).sum(axis=1)
    told = solve_triangular(half, known.T, lower=True, check_finite=False)
    variance = own - np.square(told).sum(axis=0) + (weights * (1 - weights)) @ uneven[:m]
    return weights @ fit + told.T @ rest, np.sqrt(np.maximum(variance, 0.0))
