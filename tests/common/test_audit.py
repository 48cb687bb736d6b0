"""The Bayesian adversary against every law of the registry: brute force over the matrix, and reports."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpestim.audit import BayesianAdversary
from dpestim.base import all_estimators
from dpestim.geo.column import PlaceColumn
from dpestim.local.guessing import TIE

#: Users whose values are guessed, and the significance of the comparison with the expected success.
N, ALPHA = 40_000, 1e-6


def listed():
    for name, cls in all_estimators():
        # (of one user's messages nobody sees those, most sets of pairs are none of the listed inputs, and what learns
        # reports pairs of class and value, or chosen columns)
        if hasattr(cls, "randomizer") and cls._checked_as not in (
                "shuffle", "keyvalue", "local model", "attributes", "itemsets", "privatized columns", "views", "parts",
                "heavy hitters"):
            for k, params in enumerate(cls._test_params()):
                yield pytest.param(cls, params, id=f"{name}-{k}", marks=[pytest.mark.ci] * (k > 1))


CASES = list(listed())


def spies(cls, params, **more):
    """Yield (adversary, column, law) for each column of a fitted estimator; a law may refuse to be guessed from."""
    est = cls(**params)
    est.fit(est._test_data(10)[0])
    columns = est._columns
    for j, column in enumerate(columns):
        spy = BayesianAdversary(est, column=j)
        try:
            spy.expected_success()
        except ValueError as error:
            if "must have a method" not in str(error):
                raise
        else:
            yield spy, column, column.law


def priors(n):
    rng = np.random.default_rng(0)
    yield np.full(n, 1 / n)
    yield np.sort(rng.dirichlet(np.full(n, 0.7)))
    weights = rng.integers(0, 4, n) + np.eye(n)[0]  # with ties, and values that nobody has
    yield weights / weights.sum()


def brute_force(matrix, prior):
    """Return (overall success by Fractions, success of each input by floats with ties)."""
    exact = [Fraction(float(p)) for p in prior]
    overall = sum(max(p * q for p, q in zip(exact, column)) for column in zip(*matrix)) / sum(exact)
    law = np.array([[float(p) for p in row] for row in matrix])
    score = law * prior[:, None]
    wins = score >= score.max(axis=0) * (1 - TIE)
    return float(overall), (law * wins / wins.sum(axis=0)).sum(axis=1)


@pytest.mark.parametrize(("cls", "params"), CASES)
def test_expected_success_is_that_of_brute_force(cls, params):
    for spy, _, law in spies(cls, params):
        kinds = law.kind_of(law.input_codes)
        if len(kinds) > 64:  # the default grid of a server's client: tests/unit/audit/test_adversary.py has large ones
            continue
        for prior in priors(len(kinds)):
            spy.prior = prior
            if law.public_part(np.zeros((1, law.report_width), law.report_dtype)) is not None:
                assert prior.max() - 1e-12 <= spy.expected_success() <= 1  # more: tests/unit/audit/test_adversary.py
                continue
            overall, each = brute_force(law.transition_matrix(), prior)
            columns = spy.estimator._columns
            if columns.n_sampled:  # where the column is not drawn the prior alone is left
                drawn, best = columns.n_sampled / len(columns), prior >= prior.max() * (1 - TIE)
                overall = drawn * overall + (1 - drawn) * prior.max()
                each = drawn * each + (1 - drawn) * best / best.sum()
            assert spy.expected_success() == pytest.approx(overall, rel=1e-11)
            for kind in np.unique(kinds):
                group = kinds == kind
                if prior[group].sum():
                    wanted = prior[group] @ each[group] / prior[group].sum()
                    assert spy.expected_success(str(kind)) == pytest.approx(wanted, rel=1e-10, abs=1e-15)


def on_inputs(column, rng):
    """Return N values of a column that are inputs of its law; rows, where the law is about several features."""
    if isinstance(column, PlaceColumn):
        values = column.places_of(np.arange(column.law.n_inputs))
        return values[rng.integers(len(values), size=N) * rng.integers(1, 3, size=N) % len(values)]
    if column.n_joint is not None:
        corners = np.where(np.array(column.law.inputs()), column.highs, column.lows).astype(np.float64)
        return corners[rng.integers(len(corners), size=N) * rng.integers(1, 3, size=N) % len(corners)]
    if column.is_discrete:
        values = np.empty(len(column.categories), dtype=object)
        values[:] = column.categories.tolist()
    else:
        values = column.to_units(column.law.input_positions)
        codes = column.coder()(values)
        place = (np.where(codes < 0, ~codes, codes) + 4) % (1 << 32)
        values = values[place <= 8]  # (a grid point that stands ready beyond a low interval may lie between its levels)
    return values[rng.integers(len(values), size=N) * rng.integers(1, 3, size=N) % len(values)]


@pytest.mark.ci
@pytest.mark.parametrize(("cls", "params"), CASES)
def test_measured_success_agrees_and_a_wrong_law_does_not(cls, params):
    rng = np.random.default_rng(1)
    for spy, column, law in spies(cls, params):
        est = spy.estimator
        X = np.column_stack([on_inputs(c, rng) for c in est._columns])
        client = getattr(est, "transformer_", est).set_params(random_state=2)
        rows = column.read(est._columns.parts(X)[spy.column], 1, False)
        if hasattr(est, "transformers"):  # (which choose columns, in any order)
            whole = np.zeros((N, est.n_features_in_))
            whole[:, [v for part in est._columns.members for v in part.labels]] = X
            X = whole
        reports = client.privatize(X)
        codes_of, size = column.coder(), law.block_rows
        inputs = np.concatenate([law.input_of(codes_of(rows[at : at + size])) for at in range(0, N, size)])
        spy.prior = np.bincount(inputs, minlength=len(law.input_codes)) / N
        for group in (None, *{str(kind) for kind in law.kind_of(law.input_codes[np.unique(inputs)])}):
            expected, measured = spy.expected_success(group), spy.measured_success(X, reports, group, random_state=3)
            room = stats.norm.isf(ALPHA / 2) * math.sqrt(expected * (1 - expected) / measured.n) + 1e-12
            assert abs(measured.value - expected) <= room, group
        # what a law of 0.6 times the epsilon would give away is told from it, wherever the two are that far apart
        if "epsilon" in law.arguments and law.arguments["epsilon"] is not None and "design" not in law.arguments:
            weaker = type(law).make(**{**law.arguments, "epsilon": law.epsilon * Fraction(3, 5)})
            if len(weaker.input_codes) == len(spy.prior):
                drawn = (est._columns.n_sampled or len(est._columns)) / len(est._columns)
                other = drawn * float(spy.prior @ weaker.guessing(spy.prior)) + (1 - drawn) * spy.prior.max()
                expected = spy.expected_success()
                room = stats.norm.isf(ALPHA / 2) * math.sqrt(expected * (1 - expected) / N)
                measured = spy.measured_success(X, reports, random_state=3).value
                assert abs(measured - other) > room or abs(expected - other) < 2 * room
