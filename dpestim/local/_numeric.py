"""The one base of the transformers of numbers: bounds, the walk over blocks, and scikit-learn's face."""

import math
import warnings
from numbers import Real

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from dpestim import parallel
from dpestim.base import PrivateEstimator
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.local._plan import column_names, each_block
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource, check_random_state

#: Rows that are checked, or whose reports are counted, at a time.
_ROWS = 1 << 16


class Columns:
    """What one call knows of its columns: a randomizer and bounds for each."""

    def __init__(self, randomizers, lows, highs, inferred):
        self.randomizers, self.inferred = randomizers, inferred
        self.lows, self.highs = [float(v) for v in lows], [float(v) for v in highs]
        self.dtype = max((r.report_dtype for r in randomizers), key=lambda t: t.itemsize)

    def __len__(self):
        return len(self.randomizers)

    def same_law(self, other):
        """Tell whether reports of the two can be counted together."""
        mine, theirs = (
            # (the low interval is no part of the law, but of what a value becomes before)
            [(type(r), r.epsilon, r.law, getattr(r, "arguments", None)) for r in columns.randomizers]
            for columns in (self, other)
        )
        return mine == theirs and (self.lows, self.highs, self.inferred) == (other.lows, other.highs, other.inferred)

    def randomize(self, X, source, first, n_jobs):
        """Return the reports of rows, of which the first has this number."""
        out = np.empty((len(X), len(self)), self.dtype)

        def start(column):
            def write(rows, report):
                out[rows, column] = report

            return write

        self._walk(X, source, first, n_jobs, start)
        return out

    def randomize_and_count(self, X, source, first, n_jobs):
        """Return how often each code was reported, column by column; no report outlives its block."""
        totals = [np.zeros(r.n_counts, np.int64) for r in self.randomizers]
        parts = [[] for _ in totals]

        def start(column):
            randomizer = self.randomizers[column]
            counts = np.zeros(randomizer.n_counts, np.int64)
            parts[column].append(counts)
            return lambda rows, report: randomizer.count(report[:, None], counts)

        self._walk(X, source, first, n_jobs, start)
        return [sum(part, total) for part, total in zip(parts, totals)]

    def _walk(self, X, source, first, n_jobs, start):
        """Call ``start(column)(rows, report)`` for every block of every column; `start` once for each thread."""
        for column, (randomizer, low, high) in enumerate(zip(self.randomizers, self.lows, self.highs)):

            def begin(column=column, randomizer=randomizer, low=low, high=high):
                fixed = np.empty(randomizer.block_rows, np.int64)
                report = np.empty((randomizer.block_rows, 1), randomizer.report_dtype)
                use = start(column)

                def one(rows, values, words):
                    n = len(values)
                    with np.errstate(over="ignore"):  # a wider float than this becomes an infinite one, and is clipped
                        values = np.ascontiguousarray(values, np.float64)
                    randomizer.encode(values, low, high, fixed[:n])
                    randomizer.privatize(fixed[:n], words, report[:n])
                    use(rows, report[:n, 0])

                return one

            each_block(randomizer, X[:, column], source, column, first, n_jobs, begin)

    def check_reports(self, reports):
        """Return reports that clients could have produced, or raise ValueError."""
        if type(reports) not in (np.ndarray, np.memmap) or reports.ndim != 2 or reports.shape[1] != len(self):
            raise ValueError(f"reports must be a two-dimensional array of width {len(self)}, as privatize returns it")
        if reports.dtype != self.dtype:
            raise ValueError(f"reports must have dtype {self.dtype}, got {reports.dtype}")
        if not len(reports):
            raise ValueError("reports must not be empty")
        for randomizer, column in zip(self.randomizers, reports.T):
            randomizer.check_reports(column)
        return np.asarray(reports)

    def count(self, reports, n_jobs):
        """Return how often each code occurs, column by column."""
        totals = []
        for randomizer, column in zip(self.randomizers, reports.T):

            def task(first, last, randomizer=randomizer, column=column):
                counts = np.zeros(randomizer.n_counts, np.int64)
                for at in range(first * _ROWS, min(last * _ROWS, len(column)), _ROWS):
                    block = np.ascontiguousarray(column[at : at + _ROWS], randomizer.report_dtype)
                    randomizer.count(block[:, None], counts)
                return counts

            totals.append(sum(parallel.run(task, -(-len(column) // _ROWS), n_jobs)))
        return totals

    def to_units(self, positions, column):
        """Return positions within the bounds (0 low, 1 high) in the user's units."""
        return self.lows[column] + self.width(column) * positions

    def width(self, column):
        """Return the distance between the bounds."""
        return self.highs[column] - self.lows[column]


class NumericTransformer(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """Numbers under local differential privacy; a sub-class says which randomizer a column gets.

    A transformer learns nothing from data where `bounds` are declared, and keeps no counts: `MeanEstimator` and
    `DistributionEstimator` do.
    """

    def __init__(self, epsilon=1.0, *, bounds=None, ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- verbs

    def fit(self, X, y=None):
        """Check X and freeze the law; spends nothing, and learns nothing where `bounds` are declared."""
        self._check_call_parameters()
        trial = _fresh(self)
        X = trial._checked_X(X, reset=True)
        columns = self._infer(X) if self.bounds is None else self._declared(X.shape[1])
        for name in ("n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)
            if hasattr(trial, name):
                setattr(self, name, getattr(trial, name))
        self._freeze(columns)
        return self

    def privatize(self, X):
        """Randomise raw rows into reports, on the user's side.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            One code for each value, in one unsigned dtype.

        Notes
        -----
        Each call is a release of its rows. Needs no `fit` where `bounds` are declared.
        """
        X, columns = self._prepare(X)
        source = self._pay(columns, len(X))
        return columns.randomize(X, source, 0, self.n_jobs)

    def decode(self, codes):
        """Return what codes stand for, in the units of X.

        Parameters
        ----------
        codes : ndarray of shape (n_rows, n_columns)
            As `privatize` returns them.

        Returns
        -------
        ndarray of float64 of shape (n_rows, n_columns)
            Positions of the output grid, which reaches beyond the bounds.
        """
        width = codes.shape[1] if getattr(codes, "ndim", 0) == 2 else 0
        columns = self._columns_of(width) if width else self._columns_of(1)
        codes = columns.check_reports(codes)
        out = np.empty(codes.shape)
        for j, randomizer in enumerate(columns.randomizers):
            np.take(columns.to_units(randomizer.positions, j), codes[:, j], out=out[:, j])
        return out

    def transform(self, X):
        """Randomise the rows of X and return what their reports stand for: `decode` of `privatize`.

        Returns
        -------
        ndarray of float64 of shape (n_rows, n_columns)

        Notes
        -----
        A release of these rows: each call costs their epsilon.
        """
        check_is_fitted(self)
        return self.decode(self.privatize(X))

    def randomizer(self, column=0):
        """Return the law of a column; before `fit`, with one pair of bounds for all, that of a single column."""
        return self._columns_of(None).randomizers[column]

    @property
    def privacy_(self):
        """What the report of one row promises; known before any data where `bounds` are declared."""
        return self._guarantee(self._columns_of(None), self.random_state is not None)

    # ---------------------------------------------------------------- inside

    _columns = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __sklearn_is_fitted__(self):
        return self._columns is not None

    def _make_randomizer(self, share, column, low, high, n_columns):
        """Return the randomizer of one of n_columns columns, with these bounds and this share of epsilon."""
        raise TypeError(f"{type(self).__name__} does not say how to randomise")

    @staticmethod
    def _guarantee(columns, seeded, times=1):
        """Return what the report of one row promises, or that many reports of one user."""
        if columns.inferred:
            return PrivacyGuarantee(math.inf, seeded=seeded, notes=("The bounds were learned from the private data.",))
        epsilon = sum(r.plain_epsilon for r in columns.randomizers)
        relaxation, relaxed = None, None
        if all(r.relaxation for r in columns.randomizers):
            # one name for each column, in their order: another order is another relaxation
            relaxation = " x ".join(
                r.relaxation(low, high) for r, low, high in zip(columns.randomizers, columns.lows, columns.highs)
            )
            relaxed = times * sum(r.epsilon for r in columns.randomizers)
        return PrivacyGuarantee(
            times * epsilon, model="local", neighbours=Neighbours.LOCAL, seeded=seeded,
            notes=_notes(columns, times), relaxation=relaxation, relaxed_epsilon=relaxed,
        )

    def _check_call_parameters(self):
        """Refuse, before anything is charged or drawn, parameters that would fail later."""
        canonical_epsilon(self.epsilon)
        check_random_state(self.random_state)
        parallel.check_n_jobs(self.n_jobs)

    def _make(self, lows, highs, inferred=False):
        share = canonical_epsilon(self.epsilon) / len(lows)
        made = [self._make_randomizer(share, j, low, high, len(lows)) for j, (low, high) in enumerate(zip(lows, highs))]
        return Columns(made, lows, highs, inferred)

    def _declared(self, n_columns):
        """Return the columns that declared bounds give; n_columns None: as many as the bounds have, or one."""
        lows, highs = pair_of(self.bounds, "bounds", n_columns)
        return self._make(lows, highs)

    def _columns_of(self, n_columns):
        """Return the frozen columns, or else those that declared bounds give."""
        if self._columns is not None:
            return self._columns
        if self.bounds is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet and bounds=None: declare the bounds"
            )
        return self._declared(n_columns)

    def _infer(self, X):
        """Return columns whose bounds were learned from private data, which leaks."""
        self._refuse_in_strict("bounds=None would be learned from the data: declare them")
        warnings.warn(
            "bounds=None learns the bounds from private data: the result has no privacy guarantee (privacy_.epsilon is "
            "infinite). Declare the bounds.",
            PrivacyLeakWarning,
            stacklevel=3,
        )
        lows, highs = np.asarray(X.min(axis=0), np.float64), np.asarray(X.max(axis=0), np.float64)
        room = np.where(highs > lows, 0.0, np.maximum(1.0, np.abs(lows)))  # a constant column
        return self._make(*pair_of((lows - room, highs + room), "bounds", len(lows)), inferred=True)

    def _checked_X(self, X, reset=False):
        """Check shape, dtype and that all values are finite (in strict mode any float will do)."""
        if isinstance(X, np.ma.MaskedArray):
            raise ValueError("X must not be a masked array: fill or drop the masked values first")
        if self._is_strict():  # (the dtypes of a list and of objects depend on values)
            dtypes = list(X.dtypes) if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
            if any(getattr(dtype, "kind", "O") not in "biuf" for dtype in dtypes):
                raise ValueError("strict mode: X must be an array or a data frame of numbers")
        X = _two_dimensional(X)
        try:
            X = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
        except ValueError as error:
            if "convert" not in str(error):
                raise
            raise ValueError("X must hold numbers: a value cannot be read as a float") from None  # (the error shows it)
        if not self._is_strict():
            names = column_names(X.shape[1], getattr(self, "feature_names_in_", None))
            for at in range(0, len(X), _ROWS):
                block = X[at : at + _ROWS]
                with np.errstate(all="ignore"):
                    suspicious = not np.isfinite(block.sum(dtype=np.float64))
                if suspicious and not np.isfinite(block).all():
                    bad = names[int(np.argmin(np.isfinite(block).all(axis=0)))]
                    raise ValueError(f"{bad} of X contains NaN or infinity: every value must be finite")
        return X

    def _test_data(self, n_rows, seed=0):
        """Return rows within and a little beyond the declared bounds."""
        lows, highs = (np.array(end) for end in pair_of(self.bounds, "bounds", None))
        return lows + (highs - lows) * np.random.default_rng(seed).normal(0.4, 0.3, (n_rows, len(lows))), None

    def _prepare(self, X):
        """Return (X checked, its columns); nothing has been spent yet."""
        self._check_call_parameters()
        X = self._checked_X(X, reset=False) if hasattr(self, "n_features_in_") else _fresh(self)._checked_X(X, True)
        columns = self._columns_of(X.shape[1])
        if len(columns) != X.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {len(columns)} "
                             "features as input")
        return X, columns

    # what a `Collector` asks of its transformer; `CategorySide` answers the same

    @property
    def _needs_data(self):
        """Whether the law is known only after `fit`."""
        return self.bounds is None

    @property
    def _payer(self):
        """The estimator whose ledger, seed, threads and strict mode count."""
        return self

    def _freeze(self, columns):
        """Keep this law whatever the parameters become."""
        self._columns = columns
        self.randomizers_ = columns.randomizers
        self.bounds_ = (np.array(columns.lows), np.array(columns.highs))

    def _learn_names(self, X):
        """Take the names of the columns from checked X, unless earlier data had some."""
        if not hasattr(self, "feature_names_in_"):
            validate_data(self, X, reset=True, skip_check_array=True)

    @staticmethod
    def _n_rows(data):
        return len(data)

    def _pay(self, columns, n_rows):
        """Charge a release of n_rows rows and return its words."""
        names = column_names(len(columns), getattr(self, "feature_names_in_", None))
        self._charge(self._guarantee(columns, self.random_state is not None), n_rows, names)
        return WordSource(self.random_state)


def _two_dimensional(X):
    """Return X, or raise ValueError where scikit-learn's own error would show values."""
    if not hasattr(X, "shape"):
        try:
            X = np.asarray(X)
        except ValueError:
            raise ValueError("X must be two-dimensional, with rows of equal length") from None
    if len(X.shape) != 2:
        raise ValueError(f"Expected 2D array, got {len(X.shape)}D array instead. Reshape your data: X.reshape(-1, 1) "
                         "for one column, X.reshape(1, -1) for one row")
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported")
    return X


def _notes(columns, times):
    notes = [f"A user may have reported {times} times."] if times > 1 else []
    if len(columns) > 1:
        notes.append(f"It covers the {len(columns)} columns of a row together.")
    notes += [f"Note: {r.slack}." for r in columns.randomizers if r.slack]
    notes += [note for r in columns.randomizers for note in r.notes]
    return tuple(dict.fromkeys(notes))


def _fresh(estimator):
    """Return an unfitted twin that shares the parameters."""
    twin = type(estimator)(**estimator.get_params(deep=False))
    twin._bound = estimator._bound  # as strict as it was
    return twin


def pair_of(pair, name, n_columns):
    """Return (lows, highs), lists of floats, from a pair of scalars or of arrays; n_columns None: as many as it has."""
    if isinstance(pair, list) and pair and all(isinstance(end, tuple) for end in pair):  # two columns, or two ends?
        raise ValueError(f"{name} must be ([lows], [highs]), not one pair for each column")
    if isinstance(pair, str) or not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2:
        raise ValueError(f"{name} must be a pair (low, high) of numbers or of arrays with one number for each column")
    ends = [_numbers(end, name) for end in pair]
    found = {len(end) for end in ends if end.ndim}
    if len(found) > 1 or (n_columns is not None and found and found != {n_columns}):
        each = "column" if n_columns is None else f"of the {n_columns} columns"
        raise ValueError(f"{name} must have one number for each {each}")
    n = n_columns if n_columns is not None else found.pop() if found else 1
    lows, highs = (np.broadcast_to(end, (n,)).tolist() for end in ends)
    for j, (low, high) in enumerate(zip(lows, highs)):
        width = high - low
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"{name} of column {j} must be finite, the lower below the upper")
        if not (math.isfinite(width) and math.isfinite((1 << 48) / width)):
            raise ValueError(f"{name} of column {j} must be neither too close together nor too far apart for a float")
    return lows, highs


def _numbers(end, name):
    values = np.asarray(end, dtype=object)
    if values.ndim > 1 or not values.size or not all(
        isinstance(v, Real) and not isinstance(v, bool | np.bool_) for v in values.ravel()
    ):
        raise ValueError(f"{name} must be a pair (low, high) of numbers or of arrays with one number for each column")
    return values.astype(np.float64)
