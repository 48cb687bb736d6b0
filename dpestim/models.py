"""What models share that learn from rows: these are read, what was not declared is named, predictions are entered."""

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from numbers import Real

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.metrics import r2_score
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from dpestim import inputs
from dpestim.base import PrivateEstimator
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inputs.declared import columns_seen, names_columns, settle_to
from dpestim.inputs.frames import refuse_parts
from dpestim.inputs.numbers import IMPUTE
from dpestim.privacy import PrivacyGuarantee, ambient
from dpestim.rng import WordSource

#: What a part of rows without targets is told, by models that learn from these.
NO_TARGETS = "y must be given: the name of the column of the targets, or parts (X, y)"


class PrivateModel(PrivateEstimator):
    """Base of estimators that learn from rows, and publish what they learned."""

    #: Which checks of `dpestim.testing` apply.
    _checked_as = "model"
    #: Parameters without which `fit` looks at the data, which leaves no guarantee.
    _declared = ()
    #: Who is trusted.
    _trust = "central"
    #: Whom the promise protects, or ValueError.
    _neighbours = property(lambda self: self._relation())
    #: Fitted attributes that hold what was learned: numbers or arrays of numbers.
    _learned = ("coef_", "intercept_")
    #: Where a fit draws otherwise than by noisy integers and private choices: where its law is checked instead.
    _told_apart = ""
    #: What messages about missing values say besides.
    _advice = IMPUTE
    #: Whether a number of a row may be missing (NaN).
    _takes_missing = False

    def __sklearn_is_fitted__(self):
        return hasattr(self, self._learned[0])

    def _note_predictions(self, n_rows):
        """Record, where there is a ledger, that somebody is shown predictions, perhaps of raw rows."""
        ledger = self._find_ledger()
        if ambient.is_noted() and hasattr(ledger, "record_score"):
            ledger.record_score(estimator=f"{type(self).__name__} predictions", n_rows=n_rows)

    def _refuse_ahead(self, y, n_rows):
        """... And targets y that this may not learn from."""
        super()._refuse_ahead(y, n_rows)
        if y is None:
            if get_tags(self).target_tags.required:
                raise ValueError("fit requires y to be passed, but the target y is None: pass the classes or numbers "
                                 "of the rows as y")
        elif is_classifier(self) and getattr(self, "classes", None) is not None:
            inputs.label_codes(y, self.classes, n_rows, strict=self._is_strict())
        elif is_regressor(self):
            inputs.target_numbers(y, n_rows, strict=self._is_strict())

    def _trial(self, X=None, y=None):
        """Return one that is as this one was before it met rows, which it reads: what it refuses changes nothing.

        Its declarations by name are those of the columns of X, and of y.
        """
        trial = type(self)(**self.get_params(deep=False))
        trial._bound, trial._bound_relation = self._bound, self._bound_relation
        if X is not None and trial._names_columns():
            trial._settle(*columns_seen(X, y))
        return trial

    def _names_columns(self):
        """Tell whether there are declarations by name, or of other columns than all."""
        return names_columns(self)

    def _settle(self, names, n_columns, target):
        """Replace declarations by name by what they mean for columns of these names, and a target of this one."""
        settle_to(self, names, n_columns, target)

    def _settled_to(self, names, n_columns, target):
        """Return one whose declarations by name are those of columns of these names, and of a target of this one."""
        if not self._names_columns():
            return self
        trial = self._trial()
        trial._settle(names, n_columns, target)
        if names is not None:
            trial.feature_names_in_ = np.array(names, object)
        return trial

    def _declared_trial(self, X, y=None):
        """Return `_trial()`, or raise ValueError where strict mode leaves something to be learned from the data."""
        if self._inferred():
            self._refuse_in_strict(f"declare {' and '.join(self._inferred())}, which cannot be inferred "
                                   "from the data")
        return self._trial(X, y)

    def _keep(self, guarantee, n_rows, schema, draw, source=None):
        """Pay, draw, and hold nothing but what was drawn: the end of every fit, after all that can fail; returns self.

        `draw` returns what is learned, by name, of a random source; `source` makes that of this estimator.
        """
        if not guarantee.is_nothing:
            # (where records come and go, how many there are is secret)
            self._charge(guarantee, n_rows if self._replaces else None, schema.get("feature_names_in_", ()))
        self._warn_if_inferred()
        source = WordSource(self.random_state) if source is None else source(self)
        return self._become({**draw(source), **schema, "privacy_": guarantee})

    def _inferred(self):
        """Return the parameters that would be learned from the data."""
        return [name for name in self._declared if getattr(self, name) is None]

    def _guarantee(self, epsilon, delta):
        inferred = self._inferred()
        them = "them" if _are_several(inferred) else "it"
        notes = (f"Learned from private data: {' and '.join(inferred)}. Declare {them}.",)
        return PrivacyGuarantee(
            math.inf if inferred else epsilon, 0 if inferred else delta, self._trust, self._neighbours,
            self.random_state is not None, notes if inferred else (),
        )

    def _warn_if_inferred(self):
        inferred = self._inferred()
        if inferred:
            were = "were" if _are_several(inferred) else "was"
            warnings.warn(
                f"{' and '.join(inferred)} {were} learned from private data: the result has no privacy guarantee "
                f"(privacy_.epsilon is infinite). Declare {' and '.join(inferred)}.",
                PrivacyLeakWarning,
                stacklevel=4,
            )

    def _missing_in(self, n_columns, reset):
        """Tell whether numbers may be missing (NaN), of all columns alike, or by an array with an entry for each.

        `reset`: as declared, else as was learned.
        """
        return self._takes_missing

    def _checked_X(self, X, *, reset, total):
        """Return X as C-contiguous floats; `total` (strict mode): look at nothing but dtype and shape."""
        rows = self._unread(X, reset=reset, total=total)
        with np.errstate(over="ignore"):  # a wider float than this becomes an infinite one
            rows = np.ascontiguousarray(rows, np.float64)
        if not total:
            self._refuse_unless_finite(rows, reset)
        return rows

    def _unread(self, X, *, reset, total):
        """Return X as an array of numbers of any type and order, of which no value was looked at."""
        rows = inputs.number_rows(X, strict=total, fewest=0 if total else 1)
        self._note_columns(X, rows, reset)
        return rows

    def _note_columns(self, X, table, reset):
        """Keep the number of columns of X and their names; not `reset`: compare these with what was kept."""
        if reset and isinstance(table, np.ndarray) and not hasattr(X, "columns"):
            # what scikit-learn does with an array, having asked all libraries of frames whether it is theirs: 2 ms
            self.n_features_in_ = table.shape[1]
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        else:
            validate_data(self, X if hasattr(X, "columns") else table, reset=reset, skip_check_array=True)

    def _refuse_unless_finite(self, rows, reset):
        """Raise ValueError, which names the column, for a value that is not finite, or missing where none may be."""
        names = getattr(self, "feature_names_in_", None)
        columns = [f"column {j if names is None else repr(names[j])}" for j in range(rows.shape[1])]
        inputs.refuse_infinite(rows, columns, self._advice, missing=self._missing_in(rows.shape[1], reset),
                               n_jobs=getattr(self, "n_jobs", None))

    def _checked_columns(self, X, *, reset):
        """Return (columns of categories, how many rows there are); strict mode looks at nothing but dtype and shape."""
        refuse_parts(X, "X")
        strict = self._is_strict()
        none = len(getattr(X, "shape", ())) == 2 and not X.shape[0]
        table = X if strict and none else inputs.category_rows(X, strict=strict)
        self._note_columns(X, table, reset)
        return inputs.columns_of(table), len(table)


class PrivateClassifier(ClassifierMixin, PrivateModel):
    """Base of models that tell classes; a sub-class has `decision_function`, or its own `_decide`."""

    def score(self, X, y, sample_weight=None):
        """Return the accuracy on rows X and classes y, which is **not private**: an exact release of these rows."""
        self._refuse_in_strict("score is refused, because it compares with raw data: call it outside of strict mode")
        found = self._decide(X)
        known, _ = inputs.label_codes(y, self.classes_, len(found), strict=False, total=True)  # a new class is not met
        weights = _weights(sample_weight, len(found))
        self._note_score(len(found))
        return float(np.average(known == found, weights=weights))

    def _decide(self, X):
        """Return the place in `classes_` of the likeliest class of each row."""
        scores = self.decision_function(X)
        return (scores > 0).view(np.uint8) if scores.ndim == 1 else scores.argmax(axis=1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # noise may drown the few rows of a check
        return tags

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns with norm about 1, and classes that depend on them."""
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(n_rows, 3))
        classes, score = np.asarray(self.classes), X[:, 0] + 0.2 * rng.standard_normal(n_rows)
        y = np.digitize(score, np.linspace(-1, 1, len(classes) + 1)[1:-1])
        return X, (classes.astype(object) if classes.dtype.kind == "U" else classes)[y]


class PrivateRegressor(RegressorMixin, PrivateModel):
    """Base of models that tell numbers; a sub-class has `predict`."""

    def score(self, X, y, sample_weight=None):
        """Return R^2 on rows X and targets y, which is **not private**: an exact release of these rows."""
        self._refuse_in_strict("score is refused, because it compares with raw data: call it outside of strict mode")
        found = self.predict(X)
        known, weights = inputs.number_column(y, len(found), "y"), _weights(sample_weight, len(found))
        self._note_score(len(found))
        return float(r2_score(known, found, sample_weight=weights))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise may drown the few rows of a check
        return tags

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns with norm about 1, and targets that depend on them."""
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(n_rows, 3))
        return X, X[:, 0] - 0.5 * X[:, 1] + 0.1 * rng.standard_normal(n_rows)


def _are_several(names):
    """Tell whether English has the plural for parameters of these names."""
    return len(names) > 1 or "".join(names).endswith("s")


def _weights(sample_weight, n_rows):
    weights = None if sample_weight is None else inputs.number_column(sample_weight, n_rows, "sample_weight")
    if weights is not None and not weights.sum():
        raise ValueError("sample_weight must not add up to 0")
    return weights


def range_of(rows, apart=True):
    """Return the smallest and largest value of each column: what nobody should do with private rows.

    Those of a constant column are the same, or a little apart where bounds have to be.
    """
    known = ~np.isnan(rows)
    low, high = np.min(rows, axis=0, where=known, initial=np.inf), np.max(rows, axis=0, where=known, initial=-np.inf)
    low, high = (np.clip(np.where(low <= high, end, 0.0), -1e138, 1e138) for end in (low, high))
    if not apart:
        return low, high
    width = np.maximum(np.abs(low), np.abs(high)) * 2.0**-20 + 1e-9
    return low - width * (low == high), high + width * (low == high)


def checked_number(name, value, where, inside):
    """Return a number for which `inside` is true; `where` says in words which they are."""
    # (a duration of NumPy calls itself an integer; a number of thousands of digits has no repr)
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, Real) or not inside(value):
        raise ValueError(f"{name} must be a number {where}")
    return value


def exact_number(value):
    """Return the fraction that the shortest decimal form of a number names, as for epsilon."""
    return value if isinstance(value, Fraction) else Fraction(Decimal(repr(float(value))))
