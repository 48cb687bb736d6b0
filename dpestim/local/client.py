"""The client half: what runs on users' devices. A domain, `privatize`, a ledger, a seed, and what is promised."""

from functools import lru_cache
from operator import is_

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from dpestim import parallel
from dpestim.base import PrivateEstimator
from dpestim.inputs import integer_range, is_by_column, ranges_read_once
from dpestim.local.columns import column_names
from dpestim.local.sending import sent
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource, check_random_state

#: Numbers of an array from which on a range is remembered as such.
_LONG = 1 << 12


class Client(PrivateEstimator):
    """Base of whatever randomises rows: it knows its columns, and nothing else ever sees raw values.

    A sub-class for a kind of domain brings `_container`, `_parts`, `_declare`, `_infer` and `_like`; an estimator below
    it names its `_randomizer`, and has an ``__init__`` of its own only for parameters of its own. A parameter of the
    estimator goes to the law's parameter of the same name; `_law_arguments` translates others.
    """

    #: The law, a sub-class of `Randomizer`.
    _randomizer = None
    #: The parameter that declares the domain.
    _domain = ""
    #: What two clients of one domain have in common, as messages say it.
    _same_domain = ""
    #: Parameters that change nothing about the law.
    _no_law = frozenset({"ledger", "random_state", "n_jobs"})
    #: Parameters that choose among laws: another value need not make another one, but does so in a test setting.
    _chooses = frozenset()
    #: Other values of own parameters, by name, besides those in `_test_params`: the checks try whether they matter.
    _test_values = {}
    #: Whether no other server can read its reports, such as those of tables or with fakes.
    _alone_reads = False
    #: Why no survey is made of it, with what to do instead; empty where one can be made.
    _no_survey = ""
    #: Kinds of dtypes whose arrays `_container` and `_parts` of this class take as they are, value by value.
    _plain_kinds = ""
    #: Frozen by the first data.
    _columns = None
    #: The exact epsilon of each report, where it is not for this client to say (`dpestim.local.estimates.mixed`).
    _each = None

    def privatize(self, X):
        """Randomise raw rows into reports, on the user's side.

        {rows to reports}
            C-contiguous, of one unsigned dtype, columns side by side; all that a server needs.

        Notes
        -----
        Each call is a release of its rows. Needs no `fit` where the domain is declared.
        """
        reports = sent(self, X)
        if reports is None:
            reports = self._sent_unread(X)
        if reports is not None:
            return reports
        data, columns, _ = self._read(X)
        return columns.randomize_spent(data, self._pay(columns, len(data[0])), 0, self.n_jobs)

    def randomizer(self, column=0):
        """Return the law of a column, by its number or its name; before any data that of the declared domain."""
        return self._columns_now().law_of(column)

    @property
    def privacy_(self):
        """What the report of one row promises; known before any data where the domain is declared."""
        return self._columns_now().guarantee(self.random_state is not None)

    @property
    def guarantee_by_input_(self):
        """Epsilon of each column for each pair of kinds of inputs: a list of dicts, one for each column."""
        return [law.guarantee_by_input for law in self._columns_now().laws]

    # ---------------------------------------------------------------- for the sub-class

    def _container(self, X, strict):
        """Return X as a two-dimensional array or frame, checked for what a schema says."""
        raise TypeError(f"{type(self).__name__} does not say what rows it takes: implement `_container`")

    def _parts(self, X, columns, strict):
        """Return what `Column.read` takes of each column of a checked X."""
        raise TypeError(f"{type(self).__name__} does not say what its columns are: implement `_parts`")

    def _declare(self, n_columns, names=None):
        """Return the `Columns` of the declared domain; n_columns is None where it is not known.

        `names` of the columns of X are given where the domain is declared by name: others are left out.
        """
        raise TypeError(f"{type(self).__name__} has no domain")

    def _infer(self, X, names):
        """Return `Columns` whose domain was learned from private data, and warn."""
        raise TypeError(f"{type(self).__name__} learns no domain")

    def _like(self, columns):
        """Return `Columns` of this law with the domain of others."""
        raise TypeError(f"{type(self).__name__} has no domain")

    def _law_arguments(self, column, n_columns, domain):
        """Return the arguments of one column's law by name, besides epsilon and the size of the domain."""
        return {name: getattr(self, name) for name in self._randomizer.own_parameters() if hasattr(self, name)}

    # ---------------------------------------------------------------- inside

    def _sent_unread(self, X):
        """Return the reports of rows that are checked as they are randomised, or None where they must be read first."""
        return None

    @property
    def _is_declared(self):
        domain = getattr(self, self._domain)
        return not (domain is None or (isinstance(domain, str) and domain == "auto"))

    def _is_by_name(self):
        """Tell whether columns are declared by name, or by place."""
        return is_by_column(getattr(self, self._domain, None))

    def _share(self, n_columns):
        """Return the part of epsilon that each column of a row gets: equal and exact."""
        if self._each is not None:
            return self._each
        epsilon = canonical_epsilon(self.epsilon)
        return epsilon if n_columns == 1 else epsilon / n_columns

    def _n_parts(self, n_columns):
        """Return how many reports make that of a row of so many columns: fewer where columns share one."""
        return n_columns

    def _columns_of_width(self, width):
        """Return the columns whose reports are so many numbers wide, as far as that decides."""
        return self._columns_now()

    def _columns_to_freeze(self, width):
        """Return the same for a server, which keeps them whatever the parameters become."""
        return self._columns_of_width(width)

    def _check_call_parameters(self):
        """Refuse, before anything is charged or drawn, parameters that would fail later."""
        if self.random_state is not None:
            check_random_state(self.random_state)
        if self.n_jobs is not None:
            parallel.check_n_jobs(self.n_jobs)

    def _columns_now(self, n_columns=None):
        """Return the frozen columns, or else those of the declared domain."""
        if self._columns is not None:
            return self._columns
        if not self._is_declared:
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: declare {self._domain}, or "
                                 "call fit first")
        return self._declared_columns(n_columns)

    def _declare_for(self, labels):
        """Return the `Columns` of the declared domain for columns of these labels: names, or places."""
        by_name = self._is_by_name() and all(isinstance(label, str) for label in labels)
        return self._declare(len(labels), list(labels)) if by_name else self._declare(len(labels))

    def _declared_columns(self, n_columns, names=None):
        """Return the columns of the declared domain; they are kept until a parameter of the law changes."""
        known, wanted = vars(self).get("_declared"), (n_columns, names)
        if known is not None and known[0] == wanted:
            for name, seen in known[1]:
                value = getattr(self, name)
                if not ((value is seen[1] and seen[0] is None) or _unchanged(seen, value)):
                    break
            else:
                return known[2]
        with ranges_read_once():
            seen = [(name, _snapshot(getattr(self, name))) for name in _law_parameters(type(self))]
            columns = self._declare(n_columns) if names is None else self._declare(n_columns, names)
        self._declared = (wanted, seen, columns)
        return columns

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_declared", None)
        return state

    def _read(self, X, restart=False, check=None):
        """Return (the rows of each column, `Columns`, names or None); nothing is spent or changed.

        `restart`: as if no data had been seen; `check`: called with the columns before any value is looked at.
        """
        self._check_call_parameters()
        strict = self._is_strict()
        X, names, columns = self._schema(X, strict, restart)
        if check is not None:
            check(columns)
        return columns.read(self._parts(X, columns, strict), self.n_jobs, strict), columns, names

    def _client_here(self):
        """Return who randomises, for `_privatize_sent`."""
        return self

    def _asks(self, request, estimator, columns):
        """Return a request for reports of rows with these columns, made with the words of one release, and pay for it.

        Rows that answer it are not counted before: the ledger has none.
        """
        from dpestim.passes import Blueprint  # (only who reads rows in parts asks for it)

        source = self._pay(columns, None)
        return request(Blueprint.of(estimator), source.key_for_workers(), source.seeded)

    def _privatize_sent(self, rows, request, place):
        """Return reports of rows on a worker, with the words that the request has for this place."""
        from dpestim.passes import words_of

        data, columns, _ = self._read(self._as_rows(*rows))
        return columns.randomize(data, words_of(request, place), place.before, self.n_jobs)

    @staticmethod
    def _as_rows(X, y=None):
        """Return what `_read` takes; y is ignored, as `fit` does."""
        return X

    def _columns_like(self, example):
        """Return the `Columns` of rows with the columns of an example; no value of it is looked at."""
        self._check_call_parameters()
        if not self._is_declared:
            raise ValueError(f"{self._domain} must be declared: no part of the data may decide what others report. "
                             f"Give {self._domain}")
        return self._schema(example, self._is_strict(), True)[2]

    def _schema(self, X, strict, restart=False, **more):
        """Return (X, names or None, `Columns`) of rows whose shape and names suit the columns.

        `more` goes to `_infer`, of clients whose domain is about more than X.
        """
        given, X = X, self._container(X, strict)
        frozen = None if restart else self._columns
        names, n = self._names_of(given if hasattr(given, "columns") else X, frozen), X.shape[1]
        if frozen is not None:
            columns = frozen
        elif self._is_declared:
            by_name = names is not None and self._is_by_name()
            columns = self._declared_columns(n, _labels(given)) if by_name else self._declared_columns(n)
            if columns.n_features != n and restart:
                raise ValueError(f"{self._domain} must have one entry for each of the {n} columns of X, got "
                                 f"{columns.n_features}")
        elif restart:
            self._refuse_in_strict(f"declare {self._domain}, which cannot be inferred from the data")
            columns = self._infer(X, column_names(n, names), **more)
        else:
            columns = self._columns_now()
        if columns.n_features != n:
            raise ValueError(f"X has {n} features, but {type(self).__name__} is expecting {columns.n_features} "
                             "features as input")
        labels = names
        if names is None and hasattr(given, "columns") and _labels(given) != list(range(n)):
            labels = _labels(given)  # no strings: scikit-learn takes no notice of them, a relaxation does
        return X, names, columns if labels is None else columns.named(column_names(n, labels))

    def _names_of(self, X, frozen):
        """Return the names of the columns of X where it has any, having compared them with those that are known."""
        is_frame = hasattr(X, "columns")
        if frozen is not None and hasattr(self, "feature_names_in_"):
            if is_frame or frozen.keys is None:  # (an array may stand for columns that were declared by name)
                validate_data(self, X, reset=False, skip_check_array=True)
            return self.feature_names_in_
        if not is_frame:
            return None
        schema = BaseEstimator()
        validate_data(schema, X, reset=True, skip_check_array=True)
        return getattr(schema, "feature_names_in_", None)

    def _pay(self, columns, n_rows):
        """Charge a release of n_rows rows and return its words."""
        if self._find_ledger() is not None:  # without one, stating the guarantee would take most of the time
            self._charge(columns.guarantee(self.random_state is not None), n_rows, columns.names)
        return WordSource(self.random_state)

    def _freeze(self, columns, names):
        """Keep this law whatever the parameters become."""
        self._columns = columns
        self.randomizers_ = columns.laws
        self.n_features_in_ = columns.n_features
        if columns.keys is not None:
            names = np.array(columns.keys, dtype=object)
        if names is not None and not hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = names

    def _thaw(self):
        """Forget what was frozen."""
        for name in ("_columns", "randomizers_", "n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)


def _labels(frame):
    """Return what a frame, or an Arrow table, calls its columns."""
    return list(getattr(frame, "column_names", frame.columns))


@lru_cache(maxsize=256)
def _law_parameters(cls):
    return tuple(name for name in cls._get_param_names() if name not in cls._no_law)


def _snapshot(value):
    """Return what `_unchanged` compares with later, in case somebody changes a list or an array in place."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        found = integer_range(value) if value.size >= _LONG else None
        if found is not None:
            return range, found
        return np.ndarray, (value.dtype, value.shape, value.tobytes())
    if isinstance(value, dict):
        return dict, [(key, _snapshot(part)) for key, part in value.items()]
    if _has_parts(value):
        parts = tuple(value)
        if any(hasattr(kind, "__len__") and kind not in (str, bytes, range) for kind in set(map(type, parts))):
            return list, [_snapshot(part) for part in parts]
        return tuple, parts
    return None, value


def _unchanged(seen, value):
    """Tell whether a parameter is still what `_snapshot` saw, types included: True is not 1 here."""
    kind, before = seen
    if kind is range:
        return isinstance(value, np.ndarray) and integer_range(value) == before
    if kind is np.ndarray:
        return isinstance(value, np.ndarray) and (
            (value.dtype, value.shape) == before[:2] and value.tobytes() == before[2]
        )
    if kind is dict:
        return isinstance(value, dict) and len(before) == len(value) and all(
            key == k and _unchanged(part, v) for (key, part), (k, v) in zip(before, value.items())
        )
    if kind is list:
        return _has_parts(value) and len(before) == len(value) and all(map(_unchanged, before, value))
    if kind is tuple:
        return _has_parts(value) and len(before) == len(value) and (
            all(map(is_, before, value)) or all(map(_same, before, value))
        )
    return _same(before, value)


def _has_parts(value):
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | range | dict) and (
        getattr(value, "ndim", 1) > 0
    )


def _same(a, b):
    return a is b or (type(a) is type(b) and bool(a == b))
