"""Samples of statistics: releases follow the laws that were looked at, errors and intervals are as they are stated."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy import stats
from sklearn.base import clone

from dpestim.rng import WordSource
from dpestim.testing.sample import WRONG_FACTORS
from dpestim.testing.tools import require, same_state

#: Releases a setting whose noise, and whose choices, are looked at; the same test must reject other laws.
N, CHOSEN, ALPHA = 1_600, 300, 1e-6
#: Releases whose spread is compared with the standard error that is stated, and by which part they may differ.
SPREAD, SLACK = 400, 0.2
#: Releases whose intervals of this level are looked at, a shape of the data. An interval of half the width holds normal
#: noise with probability .48 where .8 is said: 150 releases reach the 1e-6 quantile of that law once in 500 times.
COVERED, LEVEL = 150, 0.8


def shown(result):
    """Return all that a result shows."""
    try:
        ends = result.interval(0.5)
    except ValueError:
        ends = ()
    keys = [np.asarray(own, object).tolist() for own in result.keys]
    return result.value, result.standard_error, ends, keys, result.about


def drawn_numbers(drawn):
    """Return all that is made of the outcomes of a plan, as `shown`."""
    value, error, ends, *keys = drawn
    keys = [np.asarray(own, object).tolist() for own in keys[0]] if keys else []
    return value, error, () if ends is None else ends(0.5), keys


def _losses(law, part, n):
    """Return how far n choices by a law are from the best."""
    codes = part.codes()
    return codes.max() - np.random.default_rng(2).choice(codes, n, p=replace(part, law=law).probabilities())


def check_statistic_follows_its_law(statistic):
    """Releases are drawn by the laws that were looked at: two samples, Kolmogorov and Smirnov's test, alpha = 1e-6.

    Noise of 0.7 and 1.3 times the size is rejected, and choices by a half and by twice the epsilon.
    """
    rows = statistic.estimator._test_data(2_000)[0]
    est = statistic.fresh().summarize(rows)
    plan = est._plan(est.summary_, est._shares()[1])
    drawn = clone(est).fit(rows).result_
    require(same_state(drawn_numbers(plan(WordSource(0))), shown(drawn)[:-1]),
            "a release must be drawn as it was planned")
    part, source = plan.parts[0], WordSource(1)
    chosen = hasattr(part, "target")
    n = CHOSEN if chosen else N
    if chosen:
        codes = part.codes()
        seen = np.array([codes.max() - part.code(part.draw(source.part(k))) for k in range(n)])
        known = _losses(part.law, part, 100 * n)
        wrong = [_losses(replace(part.law, epsilon=part.law.epsilon * factor), part, n)
                 for factor in (Fraction(1, 2), 2)]
    else:
        counts = getattr(part, "counts", None)
        # (one number many times: what noise is added to; what is frequent is far above the threshold)
        many = {k: 10**6 for k in range(n)} if counts is not None else [0] * n
        one = type(part)(part.noise, many, *((part.least,) if counts is not None else ()))
        drawn = one.draw(source)
        seen = np.array(list(drawn.values())) - 10**6 if counts is not None else drawn / part.noise.unit
        seen, known = np.abs(seen), np.abs(part.noise.law.draw(WordSource(2), 8 * n))
        wrong = [np.rint(factor * seen) for factor in WRONG_FACTORS]
    require(_same(seen, known), "what is drawn does not follow the law")
    require(not any(_same(other, known) for other in wrong), "the test cannot tell another law from this one")


def _same(a, b):
    return stats.ks_2samp(a, b, method="asymp").pvalue > ALPHA


def check_standard_errors_are_those_seen(statistic):
    """The root of the mean square of the errors of 400 releases is the standard error, to a part of 0.2."""
    rows = statistic.estimator._test_data(400)[0]
    est = statistic.fresh().summarize(rows)
    plan = est._plan(est.summary_, est._shares()[1])
    exact, stated, *_ = plan.finish([part.exact() for part in plan.parts])
    if stated is None:
        return
    require(np.shape(stated) == np.shape(exact), "there must be a standard error for each number")
    drawn = [plan.finish([part.draw(WordSource(5).part(k)) for part in plan.parts]) for k in range(SPREAD)]
    drawn = [own for own in drawn if np.shape(own[0]) == np.shape(exact)]
    require(len(drawn) > SPREAD // 2, "of many rows nearly all releases must look alike")
    errors = np.array([np.subtract(own[0], exact) / own[1] for own in drawn])
    ratio = math.sqrt(np.mean(errors**2)) if np.size(errors) else 1.0
    require(1 - SLACK < ratio < 1 + SLACK, f"errors are {ratio:.2f} times what is stated")


def check_intervals_hold(statistic):
    """Of 40 releases a shape at least the 1e-6 quantile of the binomial law have intervals that hold what is exact."""
    for shape, rows in _shapes(statistic):
        est = statistic.fresh().summarize(rows)
        plan = est._plan(est.summary_, est._shares()[1])
        exact = plan.finish([part.exact() for part in plan.parts])[0]
        hits = 0
        for k in range(COVERED):
            drawn = plan.finish([part.draw(WordSource(7).part(4 * k + at)) for at, part in enumerate(plan.parts)])
            if drawn[2] is None:
                return
            if np.shape(drawn[0]) != np.shape(exact):
                break
            low, high = drawn[2](min(LEVEL, getattr(est, "level", None) or LEVEL))
            require(np.all(np.asarray(low) <= high), "the ends of an interval must be in order")
            slack = 1e-9 * np.abs(exact)
            # (what is NaN without noise, too, is not defined, and nothing could hold it)
            hits = hits + (np.isnan(exact) | ((low <= exact + slack) & (exact - slack <= high)))
        else:
            require(np.min(hits) >= stats.binom.ppf(ALPHA, COVERED, LEVEL) if np.size(hits) else True,
                    f"intervals of rows that are {shape} are too short")


def check_intervals_count_numbers(statistic):
    """No interval depends on more noisy numbers than `_involved` says: its width is for that many at once."""
    est = statistic.estimator
    if not hasattr(type(est), "_involved") or getattr(est, "bounds", None) == "private":
        return
    est = statistic.fresh().summarize(est._test_data(300)[0])
    numbers, changes = est._numbers(est.summary_)
    noisy, widths = np.array(numbers, float), np.array(changes, float) / 64
    n = est.summary_.n_rows if est._replaces else None
    ends = np.array(est._range(noisy, widths, est.summary_.domain, n))
    depends = sum(np.any(np.array(est._range(noisy, np.where(np.arange(len(widths)) == k, width * 2, widths),
                                             est.summary_.domain, n)) != ends, axis=0).astype(int)
                  for k, width in enumerate(widths))
    require(np.max(depends) <= est._involved[n is not None],
            f"_involved must be {np.max(depends)}: an interval depends on as many noisy numbers")


def _shapes(statistic):
    """Yield (what they are, rows): as the estimator's own, few, and all the same."""
    rows = statistic.estimator._test_data(300)[0]
    yield "many", rows
    yield "few", rows[:4]
    yield "equal", rows[np.zeros(200, int)]


SAMPLE_CHECKS = (check_statistic_follows_its_law, check_standard_errors_are_those_seen, check_intervals_hold,
                 check_intervals_count_numbers)
