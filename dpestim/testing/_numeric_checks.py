"""Checks of transformers of numbers: the law by kinds of inputs, exactly; the mean, exactly; rounding; behaviour."""

import importlib.util
import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
from scipy import stats
from sklearn.base import clone

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_epsilon, uses_enough, within
from dpestim.testing._contract import refuses
from dpestim.testing._law import (
    ALPHA,
    WRONG,
    N,
    check_kernel_follows_law,
    check_rows_sum_to_one,
    check_words_are_never_repeated,
    chi_square,
)
from dpestim.testing._tools import fresh, randomizers, raw_rows, reports_of, require


def check_ratios_by_input(estimator):
    """No report is likelier by more than is stated for two kinds of inputs, exactly, both ways; nearly all is used."""
    total = Fraction(0)
    for randomizer in randomizers(estimator):
        matrix = np.array(randomizer.transition_matrix(), dtype=object)
        stated, low = randomizer.guarantee_by_input, randomizer.is_low
        kinds = {"high": matrix[~low], "low": matrix[low]}
        require(stated["high-high"] == randomizer.epsilon, "high values must get the column's epsilon")
        for name, epsilon in stated.items():
            a, b = (kinds[kind] for kind in name.split("-"))
            worst = _worst(a, b)
            require(_at_most(worst, epsilon), f"{name}: the worst ratio is above e^{float(epsilon)}")
            used = worst == math.inf if epsilon == math.inf else not epsilon or uses_enough(worst, 1, epsilon)
            require(used or randomizer.slack, f"{name}: much less than e^{float(epsilon)} is used without a slack")
        # what high values report by their own choice tells no two inputs apart by more than epsilon
        high = matrix[:, [j for j in range(matrix.shape[1]) if min(matrix[:, j]) > 0]]
        if stated.get("low-low") != 0 and high.size:
            require(_at_most(_worst(high, high), randomizer.epsilon), "a high output is above epsilon")
        require(_at_most(_worst(matrix, matrix), randomizer.plain_epsilon), "plain_epsilon is exceeded")
        total += randomizer.epsilon
    require(total == canonical_epsilon(estimator.epsilon), "the columns' epsilons must add up to epsilon")


def check_mean_is_exact(estimator):
    """Means of what codes stand for are the inputs, by Fractions; elsewhere within the bias that is stated."""
    for randomizer in randomizers(estimator):
        matrix, inputs = randomizer.transition_matrix(), randomizer.inputs()
        numbers, bias = randomizer.mean_values()
        if bias == 0:
            outputs = randomizer.outputs()
            for row, x in zip(matrix, inputs):
                require(sum(p * z for p, z in zip(row, outputs)) == x, "the mean of a report is not its input")
            close = np.allclose(numbers, [float(z) for z in outputs], rtol=0, atol=1e-12)
            require(close, "positions are not those stated")
        means = np.array([[float(p) for p in row] for row in matrix]) @ numbers
        error = np.abs(means - [float(x) for x in inputs]).max()
        require(error <= bias + 1e-10 * np.abs(numbers).max(), f"a bias of {error} is left where {bias} is stated")
        error = _bias_of_values(randomizer, means)
        require(error <= bias + 1e-10 * np.abs(numbers).max(), f"values have a bias of {error} where {bias} is stated")


def _bias_of_values(randomizer, means):
    """Return the largest bias for values themselves, from the fixed points that they become and the means of rows."""
    low, high = 1.0, 4.0
    x = np.clip(np.concatenate([np.linspace(low, high, 1025), *randomizer.edges_of(low, high)]), low, high)
    out = np.empty(len(x), np.int64)
    randomizer.encode(x, low, high, out)
    fixed, order = np.where(out < 0, ~out, out), np.argsort(randomizer.input_codes)
    share, near = (fixed & 0xFFFFFFFF) / 2**32, []
    for point in (fixed >> 32, fixed + 0xFFFFFFFF >> 32):  # it is rounded to one of these two rows
        codes = np.where(out < 0, ~(point << 32), point << 32)
        near.append(means[order[np.searchsorted(randomizer.input_codes, codes, sorter=order)]])
    return np.abs((1 - share) * near[0] + share * near[1] - (x - low) / (high - low)).max()


def check_variance(estimator):
    """`variance` is that of reports (z-test, alpha = 1e-6), for every input; 0.7 and 1.3 times it are rejected."""
    for column, randomizer in enumerate(randomizers(estimator)):
        codes = randomizer.input_codes
        each = N // len(codes)
        reports = reports_of(randomizer, np.repeat(codes, each), seed=8, column=column)
        seen = randomizer.positions[reports[:, 0]].reshape(len(codes), each)
        stated = randomizer.variance()
        spread = np.square(seen - seen.mean(axis=1, keepdims=True))
        error = spread.std(axis=1) / np.sqrt(each)
        limit = stats.norm.isf(ALPHA / (2 * len(codes)))
        require(
            (np.abs(spread.mean(axis=1) - stated) < limit * error + 1e-12).all(), "variance is not that of the reports"
        )
        for factor in WRONG:
            away = np.abs(spread.mean(axis=1) - factor * stated) / error
            require((away[stated > 0] > limit).any(), f"the check cannot tell the variance from {factor} times it")


def check_rounding(estimator):
    """A value between two inputs is rounded to one of them without bias (chi-square, alpha = 1e-6), never otherwise."""
    for column, randomizer in enumerate(randomizers(estimator)):
        codes, low = randomizer.input_codes, randomizer.is_low
        fixed = np.where(low, ~codes, codes)
        next_is_near = (np.diff(fixed) == 1 << 32) & (low[1:] == low[:-1])
        if not next_is_near.any():
            continue
        rows = np.flatnonzero(next_is_near)
        law = np.array([[float(p) for p in row] for row in randomizer.transition_matrix()])
        rng = np.random.default_rng(9)
        chosen = rows[rng.integers(0, len(rows), N)]
        for share in (0.25, 0.9):
            between = fixed[chosen] + int(share * 2**32)
            reports = reports_of(randomizer, np.where(low[chosen], ~between, between), seed=10, column=column)
            seen = np.zeros_like(law)
            np.add.at(seen, (chosen, reports[:, 0]), 1)
            mixed = (1 - share) * law[:-1] + share * law[1:]
            require(chi_square(seen[rows], mixed[rows]) > ALPHA, "rounding to the grid does not follow the fraction")
            require(chi_square(seen[rows], law[rows + 1]) < ALPHA, "the check cannot tell rounding from none")


def check_encoding(estimator):
    """Any float has a fixed point: monotone, exact at the bounds, clipped beyond; only the low interval is low."""
    for randomizer in randomizers(estimator):
        low, high = 1.0, 4.0
        x = np.array([-np.inf, -1e300, 0.9, 1.0, np.nextafter(4.0, 0.0), 4.0, 4.1, 1e300, np.inf, np.nan])
        out = np.empty(len(x), np.int64)
        randomizer.encode(x, low, high, out)
        top = int(randomizer.grid) << 32
        expected = [0, 0, 0, 0, None, top, top, top, top, 0]
        is_low = randomizer.low_of(x, low, high)
        require(((out < 0) == is_low).all(), "only values of the low interval are low")
        for k, wanted in enumerate(expected):
            require(is_low[k] or wanted is None or out[k] == wanted, "a bound, or what lies beyond, is not clipped")
        x = np.sort(np.random.default_rng(11).uniform(0.5, 4.5, 5000))
        out = np.empty(len(x), np.int64)
        randomizer.encode(x, low, high, out)
        is_low = randomizer.low_of(x, low, high)
        require((np.diff(out[~is_low]) >= 0).all() and (np.diff(~out[is_low]) >= 0).all(), "encoding is not monotone")
        require(out.max() <= top, "a fixed point lies beyond the grid")
        rng = np.random.default_rng(12)
        x = np.concatenate([rng.normal(2.5, 2.0, 5000), [np.inf, -np.inf, np.nan], *randomizer.edges_of(low, high)])
        out = np.empty(len(x), np.int64)
        randomizer.encode(x, low, high, out)
        fixed = np.where(out < 0, ~out, out)
        for rounded in (fixed >> 32, fixed + (1 << 32) - 1 >> 32):  # down and up
            rows = np.where(out < 0, ~(rounded << 32), rounded << 32)
            require(np.isin(rows, randomizer.input_codes).all(), "a value has a row that the law does not list")


# -------------------------------------------------------------------------------------------------------- behaviour


def check_threads_and_blocks(estimator):
    """Seeded reports are the same for every n_jobs, for shuffled blocks, and for a row alone."""
    laws = randomizers(estimator)
    n = 2 * max(r.block_rows for r in laws) + 17
    X = raw_rows(estimator, 1000)[np.arange(n) % 1000]
    one = fresh(estimator, n_jobs=1).privatize(X)
    for n_jobs in (2, 3):
        require(
            np.array_equal(one, fresh(estimator, n_jobs=n_jobs).privatize(X)),
            "reports depend on n_jobs: noise must belong to a row, not to a thread",
        )
    require(np.array_equal(fresh(estimator).privatize(X[:1]), one[:1]), "a row's noise must not depend on others")
    for column, randomizer in enumerate(laws):
        codes = np.resize(randomizer.input_codes, n)
        backwards = reports_of(randomizer, codes, column=column, order=lambda blocks: list(blocks)[::-1])
        forwards = reports_of(randomizer, codes, column=column)
        require(np.array_equal(forwards, backwards), "reports depend on the order of the blocks")


def check_reports_and_decoding(estimator):
    """Reports are C-contiguous and unsigned; transform is decode of privatize, changes nothing, names its columns."""
    X = raw_rows(estimator, 50)
    reports = fresh(estimator).privatize(X)
    require(reports.flags.c_contiguous and reports.dtype.kind == "u", "reports must be C-contiguous and unsigned")
    require(reports.shape == X.shape, "reports must have one code for each value")
    est = fresh(estimator).fit(X)
    before = pickle.dumps(est)
    out = est.transform(X)
    require(pickle.dumps(est) == before, "transform must not change the estimator")
    require(out.shape == X.shape and out.dtype == np.float64, "transform must return floats in the shape of X")
    require(np.array_equal(out, est.decode(est.privatize(X))), "transform must be decode of privatize")
    require(np.array_equal(out, fresh(estimator).fit_transform(X)), "fit_transform must be one randomisation")
    require(len(est.get_feature_names_out()) == X.shape[1], "one output column for each column")
    secure, many = fresh(estimator, random_state=None), np.resize(X, (5000, X.shape[1]))
    require(not np.array_equal(secure.privatize(many), secure.privatize(many)), "random_state=None must give new noise")
    if importlib.util.find_spec("pandas"):
        import pandas as pd

        frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
        named = fresh(estimator).set_output(transform="pandas").fit(frame).transform(frame)
        require(list(named.columns) == list(frame.columns), "set_output must keep the names")
        require(np.array_equal(named.to_numpy(), out), "set_output must not change values")


def check_clone_and_pickle(estimator):
    """Clone forgets state and keeps parameters; a pickle keeps both and refuses another format."""
    X = raw_rows(estimator, 40)
    est = fresh(estimator).fit(X)
    twin = clone(est)
    require(not hasattr(twin, "bounds_") and twin.epsilon == est.epsilon, "clone must keep parameters only")
    copied = pickle.loads(pickle.dumps(est))
    require(np.array_equal(copied.privatize(X), est.privatize(X)), "pickle must keep the law")
    require(copied.privacy_ == est.privacy_, "pickle must keep the guarantee")
    state = est.__getstate__()
    state["_dpestim_format"] = -1
    refuses(lambda: type(est).__new__(type(est)).__setstate__(state), "a pickle of another format")


def check_containers(estimator):
    """Arrays of any layout and numeric dtype, lists, and pandas and polars frames give the same reports."""
    X = np.round(raw_rows(estimator, 40))
    wanted = fresh(estimator).privatize(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    same = {"list": X.tolist(), "Fortran order": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=0)[::2],
            "float32": X.astype(np.float32), "int64": X.astype(np.int64), "int8": X.astype(np.int8),
            "objects": X.astype(object), "read-only": read_only}
    if importlib.util.find_spec("pandas"):
        import pandas as pd

        same["pandas"] = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    if importlib.util.find_spec("polars"):
        import polars as pl

        same["polars"] = pl.DataFrame({f"c{j}": X[:, j] for j in range(X.shape[1])})
    for name, data in same.items():
        require(np.array_equal(fresh(estimator).privatize(data), wanted), f"{name} input gives other reports")


def check_privacy_statement(estimator):
    """`privacy_` states the epsilon that a row really has, what relaxation holds, and whether noise was seeded."""
    X = raw_rows(estimator, 10)
    for state, seeded in ((None, False), (0, True), (np.random.default_rng(0), True)):
        est = fresh(estimator, random_state=state).fit(X)
        stated = est.privacy_
        require(stated.seeded is seeded and stated.model == "local", "privacy_ does not say how the noise was made")
        plain = sum(r.plain_epsilon for r in randomizers(estimator))
        require(stated.epsilon == plain, "privacy_.epsilon is not what a row really has")
        if plain != canonical_epsilon(estimator.epsilon):
            require(stated.relaxation and stated.relaxed_epsilon == canonical_epsilon(estimator.epsilon),
                    "epsilon holds under a relaxation, which privacy_ must name")
            require(stated.notes, "privacy_ must say why epsilon is not the declared one")
        else:
            require(stated.relaxation is None or stated.relaxed_epsilon == plain, "the relaxation has another epsilon")
    learned = fresh(estimator, bounds=None)
    if "low_sensitivity" in learned.get_params():
        learned.set_params(low_sensitivity=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stated = learned.fit(raw_rows(estimator, 200)).privacy_
    require(stated.epsilon == math.inf and stated.notes and caught, "learned bounds must void the guarantee, audibly")


def check_freeze_and_charge(estimator):
    """Fit charges nothing and freezes the law; every release is charged before words are drawn."""
    X = raw_rows(estimator, 30)
    paid = []

    class Book:
        def charge(self, guarantee, *, estimator, n_rows, columns):
            paid.append((guarantee, n_rows, columns))

        def __deepcopy__(self, memo):
            return self

    est = fresh(estimator, ledger=Book()).fit(X)
    require(not paid, "fit learns nothing and must charge nothing")
    est.transform(X)
    est.privatize(X[:7])
    require([n for _, n, _ in paid] == [30, 7], "transform and privatize are releases of their rows")
    right = all(g.epsilon == est.privacy_.epsilon and len(c) == X.shape[1] for g, _, c in paid)
    require(right, "the charge is not privacy_")
    law = est.randomizers_
    est.set_params(epsilon=float(estimator.epsilon) / 2).privatize(X)
    require(est.randomizers_ is law and paid[-1][0].epsilon == paid[0][0].epsilon, "a later epsilon changed the law")

    class Empty(Book):
        def charge(self, *args, **kwargs):
            raise ValueError("overdrawn")

    refuses(lambda: fresh(estimator, ledger=Empty()).privatize(X), "an overdraft")


def check_strict_mode_stays(estimator):
    """What was made in strict mode tells nothing about a value after it, either."""
    with config_context(strict=True):
        strict = fresh(estimator)
    X = raw_rows(estimator, 20)
    X[3], X[4] = np.nan, np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for use in (lambda: strict.privatize(X), lambda: strict.fit(X).transform(X)):
            try:
                right = use().shape == X.shape
            except (ValueError, RuntimeWarning):
                right = False
            require(right, "what was made in strict mode must not tell about a value after it")


def check_bad_input(estimator):
    """Bad parameters, values and reports are ValueErrors that change nothing and never show a value."""
    X = raw_rows(estimator, 20)
    secret = 8888.125
    nan, inf = np.where(np.arange(20)[:, None] == 7, np.nan, secret + X), X.copy()
    inf[3, -1] = np.inf
    est = fresh(estimator).fit(X)
    for verb in ("privatize", "fit", "fit_transform", "transform"):
        for name, data in {
            "NaN": nan,
            "infinity": inf,
            "no rows": X[:0],
            "one dimension": np.full(5, secret),
            "text": np.array([["value-8888.125"] * X.shape[1]]),
            "rows of unequal length": [[secret], [secret, secret]],
            "a masked array": np.ma.array(X, mask=X > 0),
            "complex numbers": np.full(X.shape, 8888.125j),
            "another number of columns": np.concatenate([X, X], axis=1),
        }.items():
            if name == "another number of columns" and verb.startswith("fit") and np.ndim(estimator.bounds[0]) == 0:
                continue  # scalar bounds suit any number of columns
            message = refuses(lambda verb=verb, data=data: getattr(est, verb)(data), f"{name} in {verb}", est)
            require("8888" not in message, "an error message shows a private value")
            if name in ("NaN", "infinity"):
                require("column" in message, f"the error for {name} does not name the column")
    low, high = estimator.bounds
    for name, params in {
        "epsilon = 0": {"epsilon": 0},
        "epsilon = inf": {"epsilon": float("inf")},
        "epsilon as text": {"epsilon": "1"},
        "epsilon beyond a word": {"epsilon": 1e-19},
        "bounds reversed": {"bounds": (high, low)},
        "bounds equal": {"bounds": (low, low)},
        "bounds not finite": {"bounds": (low, float("inf"))},
        "bounds of text": {"bounds": ("0", "1")},
        "one bound": {"bounds": (0.0,)},
        "no pair": {"bounds": 3.0},
        "bounds of another length": {"bounds": ([0.0] * 9, [1.0] * 9)},
        "bounds too close": {"bounds": (0.0, 1e-300)},
        "bounds too far apart": {"bounds": (-1.7e308, 1.7e308)},
        "a negative seed": {"random_state": -1},
        "no thread at all": {"n_jobs": 0},
        "a grid of 12": {"grid": 12},
        "a grid that is too fine": {"grid": 1 << 16},
    }.items():
        bad = fresh(estimator, **params)
        message = refuses(lambda bad=bad: bad.fit(X), name)
        require(next(iter(params)) in message, f"the error for {name} does not name the parameter")
        require(not hasattr(bad, "bounds_"), f"{name} left state behind")
    message = refuses(lambda: fresh(estimator, ledger=object()).privatize(X), "a ledger that is none")
    require("ledger" in message, "the error does not name the ledger")
    reports = est.privatize(X)
    beyond = reports.copy()
    beyond[5, -1] = est.randomizers_[-1].n_counts
    for name, data in {
        "a list": reports.tolist(),
        "one dimension": reports[:, 0],
        "another dtype": reports.astype(np.int64),
        "no reports": reports[:0],
        "a masked array": np.ma.array(reports, mask=reports > 0),
        "a code beyond the alphabet": beyond,
    }.items():
        refuses(lambda data=data: est.decode(data), f"decode: {name}", est)


def _worst(a, b):
    """Return the largest ratio of an entry of a to one of b in the same column, or infinity."""
    worst = Fraction(0)
    for x, y in zip(a.T, b.T):
        high, low = max(x), min(y)
        if high and not low:
            return math.inf
        if high:
            worst = max(worst, Fraction(high) / Fraction(low))
    return worst


def _at_most(ratio, epsilon):
    """Tell whether ratio <= e^epsilon is certain."""
    if math.inf in (ratio, epsilon):
        return epsilon == math.inf
    return ratio <= 1 or within(ratio, 1, epsilon)


LAW_CHECKS = (
    check_rows_sum_to_one,
    check_ratios_by_input,
    check_kernel_follows_law,
    check_mean_is_exact,
    check_variance,
    check_rounding,
    check_encoding,
    check_words_are_never_repeated,
)
CONTRACT_CHECKS = (
    check_threads_and_blocks,
    check_reports_and_decoding,
    check_clone_and_pickle,
    check_containers,
    check_privacy_statement,
    check_freeze_and_charge,
    check_strict_mode_stays,
    check_bad_input,
)
NUMERIC_CHECKS = (*LAW_CHECKS, *CONTRACT_CHECKS)
