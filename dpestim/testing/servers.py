"""Checks of what estimates from the reports of a transformer: whose law, ledger and strictness it is, and intervals."""

import warnings

import numpy as np
from scipy import stats
from sklearn.base import clone

from dpestim.privacy.config import config_context
from dpestim.testing.behaviour import check_given
from dpestim.testing.sample import ALPHA
from dpestim.testing.tools import fresh, refuses, require, with_params


def check_transformer_is_given(sample):
    """The transformer that was given is never touched, and what is none is refused."""
    check_given(sample, "transformer")


def check_block_is_kept(sample):
    """What was made in strict mode stays strict, whatever transformer it gets later."""
    X = sample.kind.strange(sample.rows(20))
    with config_context(strict=True):
        bound = type(sample.estimator)(**sample.fresh().get_params(deep=False))
    bound.set_params(transformer=with_params(clone(sample.estimator.transformer), random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for verb in ("privatize", "fit", "partial_fit"):
            try:
                getattr(bound, verb)(X)
            except (ValueError, Warning):
                require(False, f"{verb} of what was made in strict mode must not tell about a value")
    refuses(lambda: bound.score(sample.rows(20)), "a score of what was made in strict mode")


def check_means_cover(sample):
    """95 % intervals of the mean cover the truth, up to a binomial test at alpha = 1e-6 (150 times 1,000 users).

    For each column. Their half widths are 1.96 standard errors and what may be left of a bias, but for 8 %: of 150
    intervals those of 90 % can't be told by what they cover.
    """
    if not hasattr(type(sample.estimator), "standard_error_"):
        return
    repeats, each, covered, scores, halves = 150, 1000, 0, [], []
    X = sample.rows(repeats * each)
    reports = sample.fresh().privatize(X)
    client = fresh(sample.estimator.transformer).fit(X[:2])
    X = sample.kind.clipped(client, X.astype(float)).reshape(repeats, each, -1)
    for rows, part in zip(X, reports.reshape(repeats, each, -1)):
        est, truth = sample.fresh().aggregate(part), rows.mean(axis=0)
        low, high = est.confidence_interval(0.95).T
        covered = covered + ((low <= truth) & (truth <= high))
        scores.append(((low + high) / 2 - truth) / est.standard_error_)
        halves.append(((high - low) / 2 - est.bias_) / est.standard_error_)
    # given the users, intervals are a little too wide: the share may be anything from 0.95 to 1
    room = stats.norm.isf(ALPHA) * np.sqrt(0.95 * 0.05 / repeats)
    share = np.min(covered) / repeats
    require(share > 0.95 - room, f"95 % intervals of a column cover {share:.3f} of the truths")
    half = np.median(halves, axis=0) / stats.norm.isf(0.025)
    require((np.abs(half - 1) < 0.08).all(), f"half widths of 95 % intervals are {half.round(2)} times 1.96 errors")
    z = np.abs(np.mean(scores, axis=0)) * np.sqrt(repeats)
    require((z < stats.norm.isf(ALPHA)).all(), f"the mean is biased: |z| = {z.max():.1f}")
    spread = np.std(scores, axis=0)
    require(((spread > 0.7) & (spread < 1.3)).all(), "the standard error is not that of the mean")


ESTIMATOR_CHECKS = (check_transformer_is_given, check_block_is_kept, check_means_cover)
