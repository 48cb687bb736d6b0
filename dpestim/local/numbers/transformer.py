"""The base of the transformers of numbers: a client, and scikit-learn's transformer around it."""

import warnings
from numbers import Integral

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inputs import all_finite, in_order, is_by_column, number_rows, refuse_infinite
from dpestim.inputs.declared import says_missing
from dpestim.inputs.numbers import DECLARE, OR_FILL
from dpestim.inputs.public import is_column
from dpestim.local.client import Client
from dpestim.local.coded import pair_of
from dpestim.local.columns import Columns, column_names
from dpestim.local.numbers.column import NotFiniteError, NumberColumn
from dpestim.local.numbers.law import LARGEST_GRID
from dpestim.rng import WordSource

#: Rows that are many: of few a pass over their values is not felt.
_MANY = 1 << 10


class NumberClient(Client):
    """Whatever randomises columns of numbers: it has a parameter `bounds`. A sub-class brings `_made`."""

    _domain, _same_domain = "bounds", "the same bounds"
    #: Whether a value may be missing where the domain says so.
    _reads_missing = False
    _plain_kinds = "iuf"

    def _known_columns(self):
        """Return the (value, name) of parameters that may have one entry for each column."""
        return [(self.bounds, "bounds")]

    def _is_scalar(self):
        """Tell whether any number of columns suits the parameters."""
        return not any(is_by_column(v) or any(np.ndim(end) for end in v)
                       for v, _ in self._known_columns() if is_by_column(v) or isinstance(v, tuple | list))

    def _declare(self, n_columns, names=None):
        keys, bounds, more = None, self.bounds, {}
        if is_by_column(bounds):
            keys, pairs = in_order(bounds, "pairs", names, name="bounds")
            more = {"missing": in_order(bounds, "missing", names, name="bounds")[1]}
            bounds = tuple(zip(*pairs))
            n_columns = len(pairs)  # (one entry by place is not one for all columns)
        if n_columns is None:
            n_columns = max(len(pair_of(v, name, None)[0]) for v, name in self._known_columns() if v is not None)
        if is_column(bounds, "numbers"):
            more = {"missing": [bounds.missing] * n_columns}
        for value, name in self._known_columns()[1:]:
            if is_by_column(value) and in_order(value, "pairs", names, name=name)[0] != keys:
                raise ValueError(f"{name} may have names where bounds have them, the same in the same order")
        more = more if self._reads_missing and any(more.get("missing", ())) else {}
        return self._made(*pair_of(bounds, "bounds", n_columns), column_names(n_columns, keys), keys=keys, **more)

    def _made(self, lows, highs, names, **more):
        """Return the `Columns` of these bounds."""
        raise TypeError(f"{type(self).__name__} does not say what it randomises: implement `_made`")

    def _like(self, columns):
        missing = [column.may_be_missing for column in columns]
        more = {"missing": missing} if any(missing) else {}
        return self._made(*_ends(columns), columns.names, inferred=columns.inferred, keys=columns.keys, **more)

    def _infer(self, X, names):
        """Return columns whose bounds were learned from private data, which leaks."""
        refuse_infinite(X, names)
        warnings.warn(
            "bounds=None learns the bounds from private data: the result has no privacy guarantee (privacy_.epsilon is "
            "infinite). Declare the bounds, as in bounds=(0, 120).",
            PrivacyLeakWarning,
            stacklevel=4,
        )
        lows, highs = np.asarray(X.min(axis=0), np.float64), np.asarray(X.max(axis=0), np.float64)
        room = np.where(highs > lows, 0.0, np.maximum(1.0, np.abs(lows)))  # a constant column
        return self._made(*pair_of((lows - room, highs + room), "bounds", len(lows)), names, inferred="bounds")

    def _container(self, X, strict):
        return number_rows(X, strict=strict)

    def _parts(self, X, columns, strict):
        if not (strict or all_finite(X)):
            missing = np.repeat([c.may_be_missing for c in columns], [c.n_features for c in columns])
            refuse_infinite(X, columns.names, self._missing_advice(), missing=missing)
        return columns.parts(X)

    def _missing_advice(self):
        """Return what a message about missing values says besides."""
        return DECLARE + OR_FILL if self._reads_missing else (
            f". {type(self).__name__} cannot report that a value is missing: PMTransformer can, with strategy='split'"
            f"{OR_FILL}")

    def _test_data(self, n_rows, seed=0):
        """Return rows within and a little beyond the declared bounds."""
        lows, highs = (np.array(end) for end in pair_of(self.bounds, "bounds", None))
        return lows + (highs - lows) * np.random.default_rng(seed).normal(0.4, 0.3, (n_rows, len(lows))), None


class NumericTransformer(OneToOneFeatureMixin, TransformerMixin, NumberClient):
    """Randomise numbers under local differential privacy; a sub-class names its `_randomizer`.

    A transformer learns nothing from data where `bounds` are declared, and keeps no counts: `MeanEstimator` and
    `DistributionEstimator` do.
    """

    _not_in_parts = ("learns nothing of rows: randomise the rows of parts by distributed.privatize, or estimate their "
                     "mean by distributed.fit of a MeanEstimator")
    #: The values of `strategy`: what becomes of several columns.
    _strategies = ("split", "sample")
    _test_values = {"strategy": ["split", "sample"]}

    @property
    def _reads_missing(self):
        # (a relaxed law would promise less to whoever's value is missing, or to others)
        return self.strategy in ("split", "sample") and self._randomizer.relaxation is None

    def __init__(self, epsilon=1.0, *, bounds=None, strategy="split", ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.strategy = strategy
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X, y=None):
        """Check X and freeze the law; spends nothing, and learns nothing where `bounds` are declared."""
        _, columns, names = self._read(X, restart=True)
        self._thaw()
        self._freeze(columns, names)
        self._bind(self._find_ledger())  # of a block in which it was fitted every later use is paid
        return self

    def decode(self, codes):
        """Return what codes stand for, in the units of X.

        Parameters
        ----------
        codes : ndarray of shape (n_rows, width)
            As `privatize` returns them.

        Returns
        -------
        ndarray of float64 of shape (n_rows, n_columns)
            Positions of the output grid, which reaches beyond the bounds, and NaN for a report that a value is
            missing. Where k of d columns were drawn, the middle
            of the bounds for those that were not, and d / k as far from it for those that were.
        """
        width = codes.shape[1] if getattr(codes, "ndim", 0) == 2 and codes.shape[1] else 1
        columns = self._columns_of_width(width)
        codes = columns.check_reports(codes)
        return columns.decode(codes)

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

    # ---------------------------------------------------------------- inside

    def _sent_unread(self, X):
        """Return reports of rows that are checked as they are randomised, so that they are read once, or None.

        Where something is paid, or a generator would be used up, bad rows must be refused before. Without either,
        reports of bad rows are dropped: the reader looks at these again, and says what is wrong.
        """
        if getattr(self, "strategy", None) != "joint":
            return None
        seeded = self.random_state is not None and not isinstance(self.random_state, Integral)
        if seeded or self._find_ledger() is not None or self._is_strict():
            return None
        if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.kind != "f" or len(X) < _MANY:
            return None
        if type(self)._parts is not NumberClient._parts or type(self)._pay is not Client._pay:
            return None  # (a sub-class reads or pays in its own way)
        self._check_call_parameters()
        X, _, columns = self._schema(X, False)
        if not all(c.n_joint is not None and c.law.looks_at_values for c in columns):
            return None
        refusing = columns.with_columns([c.refusing() for c in columns])
        try:
            return refusing.randomize(columns.parts(X), WordSource(self.random_state), 0, self.n_jobs)
        except NotFiniteError:
            return None

    def _randomises(self, method):
        return True

    def _transformed_reports(self, reports, X):
        """Return what `transform` makes of the reports of rows."""
        return self.decode(reports)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.input_tags.allow_nan = bool(self._reads_missing and says_missing(self.bounds))
        return tags

    def __sklearn_is_fitted__(self):
        return self._columns is not None

    def _freeze(self, columns, names):
        super()._freeze(columns, names)
        self.n_sampled_ = columns.n_sampled
        self.bounds_ = tuple(np.array(ends) for ends in _ends(columns))

    def _thaw(self):
        super()._thaw()
        for name in ("bounds_", "n_sampled_"):
            vars(self).pop(name, None)

    def _columns_of_width(self, width):
        if self._columns is not None or not self._is_declared:
            return self._columns_now()
        if not self._is_scalar():
            return self._columns_now(None)
        if self.strategy != "split":
            raise ValueError("bounds must have one number for each column, or fit must come first, because a report "
                             f"does not contain the number of columns where strategy is {self.strategy!r}")
        return self._columns_now(width // self._columns_now(1).report_width)

    def _made(self, lows, highs, names, missing=None, **more):
        if self.strategy not in self._strategies:
            raise ValueError(f"strategy must be {' or '.join(map(repr, self._strategies))}")
        n, n_sampled = len(lows), None
        missing = missing or [False] * n
        arguments = [(gone, self._law_arguments(j, n, ends)) for j, (gone, *ends) in enumerate(
            zip(missing, lows, highs))]
        if self.strategy == "sample":
            n_sampled, laws = self._best_sample(arguments)
        else:
            laws = self._laws(arguments, n)
        columns = [(_missing_column if gone else NumberColumn)(*each)
                   for gone, *each in zip(missing, names, laws, lows, highs)]
        for column in columns:
            column.check_bounds()
        if n_sampled is None:
            return Columns(columns, **more)
        from dpestim.local.sampling import SampledColumns  # (loaded by those alone who draw columns)

        return SampledColumns(columns, n_sampled=n_sampled, **more)

    def _laws(self, arguments, n_reported):
        """Return the laws of all columns, of which a row reports so many."""
        share = self._share(n_reported)
        make = self._randomizer.make
        return [_missing_law(make, share, each) if gone else make(share, **each) for gone, each in arguments]

    def _best_sample(self, arguments):
        """Return (how many columns a row reports, their laws): the worst variance of a mean is least."""
        n, best, wrong = len(arguments), None, None
        for k in range(1, n + 1):
            try:
                laws = self._laws(arguments, k)
            except ValueError as error:  # an epsilon is too large, or, once one was not, the next is too small
                wrong = wrong or error
                if best is not None:
                    break
                continue
            worst = max(law.sampled_variance(n, k) for law in set(laws))
            if best is not None and worst >= best[0]:
                break
            best = worst, k, laws
        if best is None:
            raise wrong
        return best[1:]


def _missing_law(make, share, arguments):
    """Return the law of numbers of which some may be missing. (Its module is loaded where a domain says so.)"""
    from dpestim.local.numbers.missing import SHARE_OF_NUMBER, NumberOrMissing

    return NumberOrMissing.make(share, make(share * SHARE_OF_NUMBER, **arguments))


def _missing_column(*arguments):
    """Return the column of such numbers."""
    from dpestim.local.numbers.missing_column import MissingColumn

    return MissingColumn(*arguments)


def _ends(columns):
    """Return (lower bounds, upper bounds) of all features, lists of floats."""
    return [low for c in columns for low in c.lows], [high for c in columns for high in c.highs]


class FineTransformer(NumericTransformer):
    """Base of transformers whose laws take any grid up to the finest one, in constant time."""

    _more_parameters = """
    {grid of reports}
    """

    _test_values = {"grid": [32]}

    def __init__(self, epsilon=1.0, *, bounds=None, grid=LARGEST_GRID, strategy="split", ledger=None,
                 random_state=None, n_jobs=None):
        super().__init__(epsilon, bounds=bounds, strategy=strategy, ledger=ledger, random_state=random_state,
                         n_jobs=n_jobs)
        self.grid = grid
