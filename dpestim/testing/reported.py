"""Fits of the central model that hear of rows by noisy integers and private choices alone: what these cost, exactly.

While a fit is *told*, every integer that was to get noise (`NoiseLaw.add`) and every score that was to decide a choice
(`ChoiceLaw.draw`, and `Choice.draw` of quantiles) is written down, and the answer of another fit is given in place of
one of its own. Neighbours that are told the same must learn the same: then all that they can be told apart by are the
integers and scores behind the answers, whose loss is worked out from the laws. Nothing is sampled.

A model whose noise is no answer (perturbed objectives, say) names in `_told_apart` where its law is checked.
"""

import importlib
from contextlib import contextmanager
from fractions import Fraction
from itertools import permutations
from unittest import mock

import numpy as np

from dpestim.privacy import Neighbours
from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_epsilon, exp_upper
from dpestim.testing.plans import choice_loss, normal_delta
from dpestim.testing.tools import fresh, require, same_state

#: Rows that neighbours share, besides the one that changes; what a wild row is multiplied by.
SHARED, FAR = (11, 1), 1e3
#: ... of what learns nothing from so few.
MANY = 199
#: Floats that stand for sums of logarithms are off by less (probabilities of a choice come from a quadrature).
_FLOAT = 1e-7


def check_model_keeps_epsilon(estimator):
    """All answers that a fit hears keep epsilon and delta together, and what it learns is a function of them alone.

    For neighbours whose last row is one of many kinds, extremes and missing values among them, by what their laws say.
    """
    if getattr(estimator, "_told_apart", ""):
        return
    replaces = fresh(estimator)._neighbours is Neighbours.SUBSTITUTION
    for strict in (False, True):
        with config_context(strict=strict):
            for n in (MANY, *SHARED) if estimator._checked_as == "synthesizer" else SHARED:
                tables = last_rows(estimator, n, strict)
                told = []
                heard = [hear(fresh(estimator), *table, told) for table in tables]
                if not replaces:
                    X, y = tables[0]
                    heard.append(hear(fresh(estimator), X[:-1], None if y is None else y[:-1], told))
                others = heard[-1:] if not replaces else heard[:1]
                for (asked, learned), (before, same) in ((a, b) for a in heard for b in others):
                    require(same_state(learned, same), "what is learned must be a function of what was drawn")
                    require(layout(learned) == layout(same), "what a fit leaves behind must be laid out alike")
                    require_kept(estimator, asked, before)
                if replaces and len(heard) > 2:
                    require_kept(estimator, heard[1][0], heard[2][0])


def last_rows(estimator, n, strict):
    """Return tables of n rows and one more, which is of another kind in each."""
    X, y = estimator._test_data(max(n, SHARED[0]) + 1)
    X, y, last = X[: n + 1], None if y is None else y[: n + 1], X[n]
    if estimator.__sklearn_tags__().input_tags.categorical:
        own = [np.asarray(X)[k % (n + 1)] for k in range(3)]
        odd = [10**6, np.nan] if last.dtype.kind == "f" else [10**6]
        own += [np.full_like(last, value) for value in odd if strict]
    else:
        signs = np.where(np.arange(len(last)) % 2, 1.0, -1.0)
        ones, first = np.ones(len(last)), np.arange(len(last)) == 0
        own = [last, FAR * ones, -FAR * ones, FAR * signs, FAR * first, 0.0 * last, X[0]]
        own += [np.nan * ones, np.inf * ones] if strict else []
    if y is None:
        targets = [None]
    elif getattr(estimator, "classes", None) is not None:
        targets = list(dict.fromkeys(y.tolist()))[:3] if n > 1 else list(estimator.classes)[:3]
        targets += [None] if strict and y.dtype == object else []
    else:
        targets = [y[n], FAR, -FAR, 0.0] + ([np.nan] if strict else [])
    tables = []
    for k in range(max(len(own), len(targets))):
        rows, aim = X.copy(), None if y is None else y.copy()
        rows[-1] = own[k % len(own)]
        if y is not None:
            aim[-1] = targets[k % len(targets)]
        tables.append((rows, aim))
    return tables


def hear(est, X, y, told):
    """Return ([(law, what was asked of it)], what was learned) of a fit that is told; what was not told is appended."""
    asked = []
    with telling(told, asked), np.errstate(all="ignore"):
        try:
            est.fit(X, y)
        except (ValueError, ArithmeticError, LookupError) as error:
            require(False, f"rows that are valid must not raise {type(error).__name__}: {error}")
    require(bool(asked), "a fit must draw by a law of dpestim.central, or name in _told_apart where its law is checked")
    names = est.get_params(deep=False)
    return asked, {name: value for name, value in vars(est).items() if name not in names}


def layout(item):
    """Return types, shapes and names of what a fit leaves behind, in their order, as a pickle or `vars` shows it."""
    if isinstance(item, np.ndarray):
        return item.dtype, item.shape
    if isinstance(item, dict):
        return [(key, layout(value)) for key, value in item.items()]
    if isinstance(item, list | tuple):
        return type(item), [layout(value) for value in item]
    inside = getattr(item, "__dict__", None)
    return type(item), layout(dict(inside)) if inside and not isinstance(item, type) else None


@contextmanager
def telling(told, asked):
    """While this is open, give what was told in place of what is drawn."""
    patches = []

    def answered(law, codes, draw):
        asked.append((law, codes if hasattr(codes, "cells") else np.array(codes)))
        if len(asked) > len(told):
            told.append(draw())
        known = told[len(asked) - 1]
        return known.copy() if isinstance(known, np.ndarray) else known

    def adder(add):
        def told_add(law, codes, source, column=0):
            known = answered(law, codes, lambda: add(law, codes, source, column))
            require(np.shape(known) == np.shape(codes), "neighbours must be asked the same")
            return known

        return told_add

    def chooser(draw):
        return lambda law, codes, source, *more: answered(law, codes, lambda: draw(law, codes, source, *more))

    def ranker(draw):
        return lambda part, source: answered(part.law, part, lambda: draw(part, source))

    # (laws are looked up by name, as the registry is: checks stand below what they check. Those that a fit would load
    # only when it draws are loaded before, as each is watched)
    central = importlib.import_module("dpestim.central")
    for name in central.__all__:
        getattr(central, name)
    for module, name, verb, told_by in (("central.additive.law", "NoiseLaw", "add", adder),
                                        ("central.selection.choice", "ChoiceLaw", "draw", chooser),
                                        ("statistics.choice", "Choice", "draw", ranker)):
        for cls in subclasses(getattr(importlib.import_module(f"dpestim.{module}"), name)):
            if verb in vars(cls):
                patches.append(mock.patch.object(cls, verb, told_by(vars(cls)[verb])))
    try:
        for patch in patches:
            patch.start()
        yield
    finally:
        for patch in patches:
            patch.stop()


def subclasses(cls):
    """Yield a class and all below it."""
    yield cls
    for sub in cls.__subclasses__():
        yield from subclasses(sub)


def require_kept(estimator, asked, before):
    """Require that answers to two neighbours cost no more than was promised."""
    epsilon, delta = canonical_epsilon(estimator.epsilon), float(getattr(estimator, "delta", 0) or 0)
    require([law for law, _ in asked] == [law for law, _ in before], "neighbours must be answered by the same laws")
    pure, far, rho = 0.0, 0.0, 0.0
    for (law, one), (_, two) in zip(asked, before):
        if hasattr(one, "cells"):  # a point of a grid: the exact loss, from the cells of both
            ratio = choice_loss(one, two)
            require(ratio <= exp_upper(law.epsilon), "scores move by more than their law knows")
            promised = float(law.epsilon) * (ratio > 1)
            pure, rho = pure + promised, rho + promised**2 / 8
            continue
        require(one.shape == two.shape, "neighbours must be asked the same")
        if hasattr(law, "enclosures"):  # a choice costs what it promises, however little these scores moved
            least, most = loss_of_choice(law, one, two)
            promised = float(law.epsilon) if least or most else 0.0
            require(max(most, -least) <= promised * (1 + _FLOAT), "scores move by more than their law knows")
            pure, rho = pure + promised, rho + promised**2 / 8
            continue
        moved = [abs(int(a) - int(b)) for a, b in zip(one.flat, two.flat)]
        if hasattr(law, "rate_of_decay"):
            lost = float(sum(moved) * law.rate_of_decay)
            pure, rho = pure + lost, rho + lost**2 / 2
        else:
            square = sum(Fraction(k) ** 2 for k in moved)
            far, rho = far + float(square) / law.sigma**2, rho + float(square) / law.sigma**2 / 2
    known = getattr(fresh(estimator)._promise().curve, "rho", None) if hasattr(estimator, "_promise") else None
    if known is not None and pure and far:  # (many answers of both kinds, under one concentrated budget)
        require(rho <= float(known) * (1 + _FLOAT), "answers must keep the concentrated budget")
        return
    require(pure <= float(epsilon) * (1 + _FLOAT), f"answers must keep epsilon: {pure:.3g} is lost")
    lost = normal_delta(far**0.5, float(epsilon) - pure)
    require(lost <= delta * (1 + _FLOAT), f"answers must keep delta: {lost:.3g} is lost")


def loss_of_choice(law, one, two):
    """Return the least and the largest logarithm of how much likelier an outcome is."""
    if np.array_equal(one, two):
        return 0.0, 0.0
    if hasattr(law, "shares"):  # the exponential mechanism
        logs = np.subtract(*(_log_shares(law, codes) for codes in (one, two)))
    elif hasattr(law, "k"):  # the same, k times
        logs = np.subtract(*(_log_sequences(law, codes) for codes in (one, two)))
    else:
        logs = np.subtract(*(np.log(law.probabilities(codes)) for codes in (one, two)))
    return float(np.min(logs)), float(np.max(logs))


def _log_shares(law, codes):
    logs = float(law.rate) * (codes - codes.max())
    return logs - np.log(np.exp(logs).sum())


def _log_sequences(law, codes):
    """Return the logarithms of the probabilities of all sequences of k places, chosen one after the other."""
    places = np.array(list(permutations(range(len(codes)), law.k)))
    logs, rows = np.tile(float(law.rate) * (codes - codes.max()), (len(places), 1)), np.arange(len(places))
    total = np.zeros(len(places))
    for place in places.T:
        total += logs[rows, place] - np.log(np.exp(logs).sum(axis=1))
        logs[rows, place] = -np.inf
    return total


REPORTED_CHECKS = (check_model_keeps_epsilon,)
