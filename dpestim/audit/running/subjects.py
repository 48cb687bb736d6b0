"""Estimators that are audited: what one output is, which data are tried, and how many outputs one call gives."""

import time
from numbers import Real

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from dpestim.audit.running.outputs import Raised
from dpestim.audit.running.pairs import PAIRS_OF_GRAPHS, graph_pairs, list_pairs, neighbours_of
from dpestim.audit.running.sampling import Caller, OutOfTimeError
from dpestim.base import PrivateEstimator
from dpestim.central.additive.mechanism import AdditiveMechanism
from dpestim.inputs import is_by_column
from dpestim.inputs.frames import is_frame
from dpestim.local.categories.column import CategoryColumn
from dpestim.local.numbers.column import NumberColumn
from dpestim.privacy import Neighbours, ambient
from dpestim.results import LEARNED
from dpestim.rng import WordSource

#: Rows of data that are made, and rows of a call that reports many.
_ROWS, _BLOCK = 8, 20_000
#: Nodes of a graph that is made: as many as the largest pattern of `SubgraphCount` has.
_NODES = 12
#: What is public of something fitted besides what models learn.
_MORE = ("frequencies_", "distribution_", "probabilities_")
_GIVE = "pairs must be given for {0}: a list of pairs of neighbouring data"


def caller_of(mechanism, batch):
    """Return who is called: for a callable, or for an estimator by what it does."""
    if ambient.ledger() is not None:
        raise ValueError("an audit must be outside of `with ledger:`, because each of its outputs would be charged")
    if not hasattr(mechanism, "get_params") or isinstance(mechanism, type):
        if not callable(mechanism):
            raise ValueError("mechanism must be a callable, f(data) -> output, or an estimator")
        if getattr(getattr(mechanism, "__self__", None), "ledger", None) is not None:
            raise ValueError(f"mechanism must be an estimator without a ledger, because each call of "
                             f"{mechanism.__name__} would be charged: pass the estimator itself, or set ledger=None")
        return Caller(mechanism, batch)
    if batch:
        raise ValueError("batch must be False for an estimator: dpestim takes many outputs at once where it can")
    if isinstance(mechanism, PrivateEstimator):
        if mechanism._checked_as in ("lists", "list generator"):
            return ListReports(mechanism)
        if hasattr(mechanism, "privatize") and mechanism._checked_as not in ("shuffle", "graph generator"):
            return Reports(mechanism)
        if isinstance(mechanism, AdditiveMechanism) or mechanism._checked_as == "choice":
            return Answers(mechanism)
    if not hasattr(mechanism, "fit"):
        raise ValueError(f"mechanism must be a callable that uses {type(mechanism).__name__}, which has no fit")
    return Fits(mechanism)


class OfEstimator(Caller):
    """An estimator without a ledger, under new seeds."""

    def __init__(self, estimator):
        known = estimator.get_params(deep=True)
        self.estimator = clone(estimator)
        self.estimator.set_params(**{name: None for name, value in known.items()
                                     if name.split("__")[-1] == "ledger" and value is not None})
        self.seeds = ["random_state"] if "random_state" in known else [
            name for name in known if name.split("__")[-1] == "random_state"]
        self.batch, self.takes_rng = False, True
        # (scikit-learn's seeds have 32 bits)
        self.most_seeds = 2**63 if isinstance(estimator, PrivateEstimator) else 2**32

    def seeded(self, rng):
        """Return a copy with a new seed."""
        est = clone(self.estimator)
        return est.set_params(**{name: int(rng.integers(self.most_seeds)) for name in self.seeds})

    def ready(self, data, rng):
        """Return a function that makes one call."""
        est = self.seeded(rng)
        return lambda: self.output(est, data)

    def turn(self, subject, data):
        """Return one output of an estimator, under the seed that it has."""
        return self.output(subject, data)

    def pairs(self, claim):
        """Return pairs of data that suit the estimator's declared domain."""
        raise ValueError(_GIVE.format(type(self.estimator).__name__))

    def _made(self, n_rows):
        known = getattr(self.estimator, "_is_no_table", ())
        params = [value for name, value in self.estimator.get_params().items() if name not in known]
        try:
            if any(is_by_column(value) for value in params):
                raise ValueError
            return self.estimator._test_data(n_rows)
        except (AttributeError, TypeError, ValueError):
            raise ValueError(_GIVE.format(type(self.estimator).__name__)) from None

    def draw(self, data, n, rng, until):
        """Return n outputs, one after the other."""
        outputs = []
        for _ in range(n):
            try:
                outputs.append(self.output(self.seeded(rng), data))
            except Exception as error:
                outputs.append(Raised(error))
            if time.perf_counter() > until:
                raise OutOfTimeError
        return outputs


class Reports(OfEstimator):
    """Reports of one row of the local model, as what they support, or as the numbers they decode to."""

    def __init__(self, estimator):
        super().__init__(estimator)
        self.batch = True
        decodes = hasattr(estimator, "fit_transform") and estimator._checked_as is None
        self.verb = "fit_transform" if decodes else "privatize"

    def output(self, est, data):
        """Return one report, as bytes and all."""
        X, y = _one_row(data)
        return np.asarray(est.privatize(X, *(() if y is None else (y,))))

    def draw(self, data, n, rng, until):
        """Return n reports: of n rows that are the same."""
        X, y = _one_row(data)
        parts = []
        for first in range(0, n, _BLOCK):
            size = min(_BLOCK, n - first)
            places = np.zeros(size, int)
            rows = X.iloc[places] if is_frame(X) and hasattr(X, "iloc") else X[places]
            more = () if y is None else (np.asarray(y)[places],)
            est = self.seeded(rng)
            out = getattr(est, self.verb)(rows, *more)
            out = np.asarray(out.todense() if issparse(out) else out)
            out = out.reshape(size, -1)
            parts.append(np.unpackbits(out, axis=1, bitorder="little")
                         if self.verb == "privatize" and out.dtype == np.uint8 else out)
            if time.perf_counter() > until:
                raise OutOfTimeError
        return np.concatenate(parts)

    def pairs(self, claim):
        """Return pairs of rows: of extremes of the declared columns, or of rows that suit them."""
        ends = self._declared()
        if ends is None:
            X, y = self._made(200)
            if y is not None:
                return [((X[:1], y[:1]), (X[k:k + 1], y[k:k + 1])) for k in (1, 2, 3)]
            if issparse(X):
                X = X.tocsr()
                order = np.argsort(np.diff(X.indptr), kind="stable")
                a, b, *_, c, d = order
                return [(X[[a]], X[[d]]), (X[[d]], X[[c]]), (X[[a]], X[[b]])]
            ends = [_extremes(X[:, j]) for j in range(X.shape[1])]
        low, high, other = ([own[k] for own in ends] for k in (0, 1, 2))
        rows = {"low": low, "high": high, "other": other}
        if len(ends) > 1:
            rows |= {f"column {j}": [*low[:j], high[j], *low[j + 1:]] for j in range(min(len(ends), 3))}
        whole = all(isinstance(value, Real) and not isinstance(value, bool) for row in rows.values() for value in row)
        made = {}
        for name, row in rows.items():
            made[name] = np.empty((1, len(row)), float if whole else object)
            made[name][0] = row
        return [(made["low"], made["high"]), (made["other"], made["high"]), *(
            (made["low"], row) for name, row in made.items() if name not in ("low", "high"))]


    def _declared(self):
        """Return three values of each column from its declaration; None where columns are of other kinds."""
        if self.estimator._checked_as is not None or not hasattr(self.estimator, "_columns_now") or hasattr(
                self.estimator, "transformers"):
            return None
        try:
            columns = list(self.estimator._columns_now())
        except ValueError:
            return None
        if all(isinstance(column, NumberColumn) for column in columns):
            return [(column.low, column.high, (column.low + column.high) / 2) for column in columns]
        if not all(isinstance(column, CategoryColumn) for column in columns):
            return None
        values = [list(column.categories) for column in columns]
        return [(own[0], own[-1], own[len(own) // 2]) for own in values]


def _one_row(data):
    """Return (X of one row, y or None)."""
    X, y = data if isinstance(data, tuple) else (data, None)
    if not hasattr(X, "shape") and isinstance(X, list) and all(isinstance(row, list | tuple) for row in X):
        whole = all(isinstance(value, Real) and not isinstance(value, bool) for row in X for value in row)
        X = np.array(X) if whole else np.array(X, dtype=object)
    if len(getattr(X, "shape", ())) != 2 or X.shape[0] != 1:
        raise ValueError('pairs must have data of one row for an estimator of the local model, such as [["a"]]')
    return X, y


def _extremes(values):
    """Return three values of a column: the extremes of these values, and another one."""
    known = sorted(set(values.tolist()), key=lambda value: (str(type(value)), value))
    return known[0], known[-1], known[len(known) // 2]


class Answers(OfEstimator):
    """Answers with noise, or choices by scores: what `release` returns."""

    def __init__(self, estimator):
        super().__init__(estimator)
        self.batch = self.adds = isinstance(estimator, AdditiveMechanism)

    def output(self, est, data):
        """Return one output."""
        return est.release(data)

    def draw(self, data, n, rng, until):
        """Return n outputs; noise of one answer is drawn for all of them at once, as `release` draws it."""
        if not (self.adds and np.ndim(data) == 0):
            return super().draw(data, n, rng, until)
        est = self.seeded(rng)
        answers, law = est._read(data)
        out = est._noisy(np.repeat(answers.reshape(-1), n), law, WordSource(est.random_state))
        bounds = est._checked_bounds()
        return out if bounds is None else np.minimum(np.maximum(out, bounds[0]), bounds[1])

    def pairs(self, claim):
        """Return pairs of answers, or of scores, that are a sensitivity apart."""
        size = getattr(self.estimator, "sensitivity", None)
        whole = getattr(self.estimator, "_integers", False)
        if size is None:
            bounds = getattr(self.estimator, "bounds", None)
            if not isinstance(bounds, tuple) or np.ndim(bounds[0]):
                raise ValueError(_GIVE.format(type(self.estimator).__name__))
            return [tuple(map(float, bounds))]
        size = int(size) if whole else float(size)
        if self.adds:
            return [(0 * size, size), (size, 2 * size)]
        down = 0.0 if getattr(self.estimator, "monotone", False) else -size
        n = 4
        return [([0.0] * n, [size] + [down] * (n - 1)), ([0.0] * n, [down, size] + [size] * (n - 2)),
                ([0.0, size, *[0.0] * (n - 2)], [size, size + down, *[down] * (n - 2)])]


class ListReports(OfEstimator):
    """Reports on neighbour lists: of all users of a graph, or of one user, where data is (the user's row, the user)."""

    def output(self, est, data):
        """Return the numbers of reports."""
        reports = est.privatize(*data) if isinstance(data, tuple) else est.privatize(data)
        return np.asarray(reports.todense() if issparse(reports) else reports)

    def pairs(self, claim):
        """Return pairs of graphs that differ in one edge, or of lists of one user that differ in one entry."""
        relation = claim.neighbours or self.estimator._relation()
        return (list_pairs if relation is Neighbours.LIST else graph_pairs)(_NODES)


class Fits(OfEstimator):
    """What a fit learns."""

    def output(self, est, data):
        """Return the public attributes of an estimator that was fitted."""
        est.fit(*(data if isinstance(data, tuple) else (data,)))
        return released(est)

    def pairs(self, claim):
        """Return pairs of tables of a few rows."""
        if not isinstance(self.estimator, PrivateEstimator):
            raise ValueError(_GIVE.format(type(self.estimator).__name__))
        relation = claim.neighbours or self.estimator._relation()
        if relation is Neighbours.LOCAL:
            relation = Neighbours.SUBSTITUTION
        if relation in PAIRS_OF_GRAPHS and self.estimator._relation() is relation:
            return PAIRS_OF_GRAPHS[relation](getattr(self.estimator, "_nodes_of_audit", lambda: _NODES)())
        if relation in (Neighbours.EDGE, Neighbours.LIST, Neighbours.NODE):  # (rows are none of these)
            what = "node" if relation is Neighbours.NODE else "edge"
            raise ValueError(f"pairs must be given for a claim about {what}s: a list of pairs of graphs of which one "
                             f"has one {what} more")
        X, y = self._made(_ROWS + 40)
        if not isinstance(X, np.ndarray):
            raise ValueError(_GIVE.format(type(self.estimator).__name__))
        order = np.argsort(X[:, 0] if X.ndim == 2 else X, kind="stable")
        least, most = order[0], order[-1]
        table = np.concatenate([X[:_ROWS - 1], X[[least]]])
        pairs = neighbours_of(table, [X[[most]], X[[order[len(order) // 2]]]], relation)
        alike = np.concatenate([X[[least]]] * _ROWS)
        pairs += neighbours_of(alike, [X[[most]]], relation)
        if y is None:
            return pairs
        y = np.asarray(y)
        first = np.concatenate([y[:_ROWS - 1], y[[least]]])
        others = neighbours_of(first, [y[[most]], y[[order[len(order) // 2]]]], relation)
        others += neighbours_of(np.concatenate([y[[least]]] * _ROWS), [y[[most]]], relation)
        return [((a, c), (b, d)) for (a, b), (c, d) in zip(pairs, others)]


def released(est):
    """Return what is public of an estimator that was fitted: a dict of numbers and arrays."""
    if isinstance(est, PrivateEstimator) and est._relation() in PAIRS_OF_GRAPHS:
        return {name: value for name, value in vars(est).items() if name.endswith("_") and not name.startswith("_")
                and isinstance(value, int | float | np.ndarray | np.generic)}
    if isinstance(est, PrivateEstimator):
        found = {name: getattr(est, name, None) for name in (*LEARNED, *_MORE)}
        found = {name: value for name, value in found.items() if value is not None}
        if found:
            return found
        return {f"{part.quantity} {k}": np.asarray(part.values) for k, part in enumerate(est._result_parts(0.95))}
    if hasattr(est, "steps"):  # (a pipeline: all steps, one after the other)
        return {name: released(step) for name, step in est.steps if not isinstance(step, str)}
    return {name: value for name, value in vars(est).items() if name.endswith("_") and not name.startswith("_")
            and isinstance(value, int | float | str | list | tuple | np.ndarray | np.generic)}
