"""Mechanisms on rows whose noise depends on the data: worst cases over all small data sets, laws, summaries.

For estimators with `summarize`, `release` and `_outcomes`, which states the law of what is released of a flat column:
the logarithm of its density at places, before it is clipped, and logarithms of the probabilities of single outcomes.
"""

import importlib.util
import itertools
import math
import pickle

import numpy as np
from scipy import stats

from dpestim.privacy.exact import canonical_amount
from dpestim.rng import WordSource
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.sample import WRONG_FACTORS
from dpestim.testing.tools import refuses, require, same_state

#: Sample size and significance; the same test must reject noise that is 0.7 or 1.3 times as large.
N = 2_000
ALPHA = 1e-6
#: All data sets of so many records with so many different values are looked at, and densities at so many places.
SMALL, VALUES, PLACES = 3, 5, 3_001
#: Densities are sums of floats, and a delta is an integral over the places.
_FLOAT, _INTEGRAL = 1e-6, 1e-3


class Rows(Releases):
    """An estimator on rows of numbers, and how it is used."""

    def __init__(self, estimator):
        super().__init__(estimator)
        self.wrong = {
            "bounds": (None, 3, (1,), (1, 1), (2, 1), (math.nan, 1), (0, math.inf), "ab", ("0", "1"),
                       *([([0, 1, 2], 5)] if getattr(estimator, "function", None) is None else [])),
            "statistic": (None, "best", 3), "noise": (None, "normal", 1), "noise_fraction": (0, 1, "a", None, True),
            "q": (-0.1, 1.1, math.nan, None), "trim": (-0.1, 0.5, None, "a"), "n_blocks": (0, 1, 2.5, True),
            "proposed_bound": (None, -1.0, math.nan, math.inf, "1"), "aggregate": (None, "mode"),
        }
        if hasattr(estimator, "delta") and not estimator.delta:  # there is noise that needs none
            self.wrong["delta"] = (1, 1.5, -1e-9, math.nan, "0", True, 1e-5)

    def checks(self):
        """Return the checks of what takes rows."""
        return *CHECKS, *RELEASE_CHECKS

    @property
    def data(self):
        """A table of valid rows."""
        return self.estimator._test_data(40)[0]

    @property
    def ends(self):
        """The bounds of a column by itself."""
        return tuple(float(np.ravel(end)[0]) for end in self.estimator.bounds)

    @property
    def values(self):
        """A few values that say all there is to say about small data sets."""
        return np.linspace(*self.ends, VALUES)

    def moved(self):
        """Return an estimator of other public parameters, whose summaries are others."""
        return self.fresh(bounds=tuple(end + 1 for end in self.estimator.bounds))

    def free(self, est):
        """Summaries are free."""
        est.summarize(self.data).merge(est.summarize(self.data))

    def entropy(self, est):
        """Return several releases: some mechanisms have few answers."""
        column = est._test_column()
        return [est.release(np.append(column, column[:k])) for k in range(32)]

    def bad(self):
        """Return rows with what is no number."""
        for value in (math.nan, math.inf, "secret"):
            rows = self.data.astype(object if isinstance(value, str) else float)
            rows[1, 1] = value
            yield rows

    def odd(self):
        """Return tables that differ in one cell."""
        for value in (0.5, -1e308, math.nan, math.inf, 5e-324):
            rows = self.data.astype(float)
            rows[1, 1] = value
            yield rows

    def shown(self, released):
        """Return what must not depend on a value; what is released, a refusal too, is meant to."""
        return np.shape(released), type(released)


class Votes(Rows):
    """An estimator that chooses among candidates by the votes of rows."""

    def __init__(self, estimator):
        super().__init__(estimator)
        self.wrong["candidates"] = (None, 3, [1], [1, 1], "ab", [[1], [2]])

    ends = (0.0, 1.0)

    @property
    def values(self):
        """Candidates, each of them, some more than once."""
        return np.resize(np.asarray(self.estimator.candidates), VALUES)

    def moved(self):
        """Return an estimator of other candidates."""
        return self.fresh(candidates=list(self.estimator.candidates)[::-1])

    def bad(self):
        """Return rows with a missing value."""
        rows = self.data.astype(float)
        rows[1, 1] = math.nan
        yield rows

    def odd(self):
        """Return tables that differ in one cell."""
        for value in (*self.estimator.candidates, 99, -1):
            rows = self.data.copy()
            rows[1, 1] = value
            yield rows


def check_rows_keep_epsilon(rows):
    """Over all small data sets, no outcome is more than e^epsilon times likelier than for a neighbour; or its delta is.

    Every data set of three records with five values within the bounds, and every record of it replaced; densities at
    some thousand places, of which a delta is an integral.
    """
    est = rows.fresh()
    epsilon, delta = (float(canonical_amount(getattr(est, name, None) or 0, name)) for name in ("epsilon", "delta"))
    (low, high), values = rows.ends, rows.values
    reach = 40 * (high - low)
    places = np.linspace(low - reach, high + reach, 16 * PLACES) if delta else np.unique(np.r_[
        np.linspace(low, high, PLACES), *(end + sign * np.geomspace((high - low) * 1e-6, reach * 1e6, PLACES // 4)
                                          for end in (low, high) for sign in (-1, 1))])
    laws = {}
    for data in itertools.product(range(VALUES), repeat=SMALL):
        key = tuple(sorted(data)) if est._is_symmetric else data
        if key not in laws:
            laws[key] = est._outcomes(est.summarize(values[list(key)]), places)
    step, worst = places[1] - places[0], 0.0
    for data, one in laws.items():
        for at, value in itertools.product(range(SMALL), range(VALUES)):
            other = (*data[:at], value, *data[at + 1 :])
            two = laws[tuple(sorted(other)) if est._is_symmetric else other]
            if one is two:
                continue
            if not delta:
                require(not one[1] and not two[1], "a pure mechanism here has a density")
                loss = float(np.max(one[0] - two[0]))
                require(loss <= epsilon * (1 + _FLOAT), f"an outcome is e^{loss:.3f} times likelier for a neighbour")
                continue
            over = sum(max(0.0, math.exp(p) - math.exp(epsilon + two[1].get(name, -math.inf)))
                       for name, p in one[1].items())
            if one[0] is not None:
                p, q = np.exp(one[0]), (np.exp(epsilon + two[0]) if two[0] is not None else 0.0)
                over += float(np.maximum(p - q, 0).sum()) * step
            worst = max(worst, over)
    require(worst <= delta * (1 + _INTEGRAL), f"delta is at least {worst:.3g}, more than declared")


def check_many_rows_keep_epsilon(rows):
    """As above for 15 and 31 records, m of them equal and the rest at the bounds, for every m; without a delta."""
    est = rows.fresh()
    if getattr(est, "delta", 0) or not est._is_symmetric:
        return
    epsilon, (low, high) = float(canonical_amount(est.epsilon, "epsilon")), rows.ends
    places, kinds = np.linspace(2 * low - high, 2 * high - low, 200), (low, (low + high) / 2, high)
    laws = {}

    def law(counts):
        if counts not in laws:
            laws[counts] = est._outcomes(est.summarize(np.repeat(kinds, counts)), places)[0]
        return laws[counts]

    for n in (15, 31):
        for m in range(n + 1):
            one = (n - m) // 2, m, n - m - (n - m) // 2
            for take, give in itertools.permutations(range(3), 2):
                two = tuple(count - (i == take) + (i == give) for i, count in enumerate(one))
                loss = float(np.max(np.abs(law(one) - law(two)))) if min(two) >= 0 else 0.0
                require(loss <= epsilon * (1 + _FLOAT), f"of {n} records: e^{loss:.3f} times likelier for a neighbour")


def check_columns_share_epsilon(rows):
    """With two columns each has half of epsilon and of delta: the first is released as by itself, for half of them."""
    est = rows.fresh()
    if getattr(est, "function", None) is not None:
        return
    half = {name: getattr(est, name) / 2 for name in ("epsilon", "delta") if getattr(est, name, 0)}
    for seed in range(16):
        one, two = rows.fresh(random_state=seed), rows.fresh(random_state=seed).set_params(**half)
        column = rows.data[:, :1]
        pair, alone = _plain(one.release(np.hstack([column, column]))), _plain(two.release(column))
        require(pair[0] == alone[0], "each of two columns must have half of epsilon and delta")


def check_rows_follow_their_law(rows):
    """Releases of one data set are distributed as stated, and the same test rejects 0.7 and 1.3 times the noise."""
    est = rows.fresh()
    low, high = rows.ends
    summary = est.summarize(est._test_column())
    plan = est._plan(1)
    seen = est._sampled(est._look(summary.totals, plan), plan, WordSource(est.random_state))
    drawn = [est._answer(seen, plan, WordSource(k))[0] for k in range(N)]
    log_density, atoms = est._outcomes(summary, np.linspace(low, high, 64 * PLACES))
    numbers = np.array([y for y in drawn if y is not None and y not in atoms], float)
    counts = [sum(y is name or y == name for y in drawn) for name in atoms]
    chances = [math.exp(p) for p in atoms.values()]
    require(_p_value(numbers, counts, chances, log_density, low, high) > ALPHA, "releases do not follow the law")
    center = float(np.median(numbers)) if len(numbers) else 0.0
    for factor in WRONG_FACTORS if log_density is not None else ():
        wrong = np.clip(center + factor * (numbers - center), low, high)
        require(_p_value(wrong, counts, chances, log_density, low, high) < ALPHA,
                f"the test cannot tell {factor} times the noise from the noise")


def _p_value(numbers, counts, chances, log_density, low, high):
    """Return the p-value of a chi-square test: single outcomes, some 24 cells between the bounds, and both ends."""
    observed, expected, n = list(counts), list(chances), len(numbers) + sum(counts)
    if log_density is not None:
        places = np.linspace(low, high, len(log_density))
        cdf = np.cumsum(np.exp(log_density)) * (places[1] - places[0])
        edges = np.searchsorted(cdf, np.linspace(0, cdf[-1], 25)[1:-1])
        left = 1 - sum(chances) - cdf[-1]
        inside = (numbers > low) & (numbers < high)
        observed += np.histogram(numbers[inside], [low, *places[edges], high])[0].tolist()
        expected += np.diff([0.0, *cdf[edges], cdf[-1]]).tolist()
        observed, expected = [*observed, int((~inside).sum())], [*expected, max(left, 0.0)]
    observed, expected = np.array(observed, float), np.array(expected) * n
    keep = expected > 5
    if observed[~keep].sum() > 5 * expected[~keep].sum() + 30:
        return 0.0
    statistic = ((observed[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    return float(stats.chi2.sf(statistic, max(1, keep.sum() - 1)))


def check_summaries_merge(rows):
    """The summary of two parts is that of all rows, for a release too; what is no such summary is refused."""
    data, est = rows.data, rows.fresh()
    whole = est.release(data)
    for at in (1, 17):
        merged = est.summarize(data[:at]).merge(pickle.loads(pickle.dumps(est.summarize(data[at:]))))
        require(same_state(_plain(est.release(merged)), _plain(whole)), "summaries of parts must release as all rows")
    for other in (None, data, est.summarize(data[:, :1])):
        refuses(lambda other=other: est.summarize(data).merge(other), "merging with something else")
    one = est.summarize(data)
    for other in (one, pickle.loads(pickle.dumps(one)), one.merge(est.summarize(data[:1]))):
        refuses(lambda other=other: one.merge(other), "merging rows with themselves")
    moved = rows.moved()
    refuses(lambda: moved.summarize(data).merge(est.summarize(data)), "merging summaries of other parameters")
    refuses(lambda: moved.release(est.summarize(data)), "a summary of other parameters")
    for library in ("pandas", "polars"):
        if importlib.util.find_spec(library):
            frame = importlib.import_module(library).DataFrame({"a": data[:, 0], "b": data[:, 1]})
            require(same_state(_plain(est.release(frame)), _plain(whole)), "a frame must be read like its array")


def check_summaries_stay_secret(rows):
    """A summary shows nothing of the rows, and after a fit an estimator keeps its answer and nothing else."""
    data, est = rows.data, rows.fresh()
    require(repr(est.summarize(data)) == repr(est.summarize(data[:1])), "a summary must show nothing")
    before = est.__getstate__()
    require(est.fit(data) is est, "fit must return the estimator")
    more = {name: value for name, value in est.__getstate__().items() if name not in before}
    kept = {"value_", "n_features_in_", "feature_names_in_", "_kept_promise", "_last_relation"}
    require(set(more) <= kept, "fit must keep its answer, and what that promised, and nothing else")
    require(same_state(_plain(more["value_"]), _plain(rows.fresh().release(data))), "fit must be a release")
    require(same_state(before, {name: est.__getstate__()[name] for name in before}), "fit must not change parameters")
    require(str(est.privacy_) and est._bound == (None, False), "privacy_ must be there after fit")


def _plain(released):
    return released.tolist() if isinstance(released, np.ndarray) else released


CHECKS = (
    check_rows_keep_epsilon,
    check_many_rows_keep_epsilon,
    check_columns_share_epsilon,
    check_rows_follow_their_law,
    check_summaries_merge,
    check_summaries_stay_secret,
)
