"""What a fitted estimator tells, as a table of numbers with labels, standard errors and intervals: its `result_`.

Estimators say what they have in `_result_parts`; what is learned under one of scikit-learn's names is found by itself.
Sentences that belong below the table are in `_result_notes`.
"""

import warnings
from copy import copy
from html import escape
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpestim.inputs.columns import is_missing
from dpestim.inputs.units import units_of
from dpestim.tables import NumberTable

#: What models learn under a name of scikit-learn's, and what its axes are (the last of these, where it has fewer).
LEARNED = {
    "value_": ("feature",),
    "coef_": ("class", "feature"),
    "intercept_": ("class",),
    "cluster_centers_": ("cluster", "feature"),
    "location_": ("feature",),
    "covariance_": ("feature", "other feature"),
    "mean_": ("feature",),
    "var_": ("class", "feature"),
    "scale_": ("feature",),
    "data_min_": ("feature",),
    "data_max_": ("feature",),
    "components_": ("component", "feature"),
    "explained_variance_": ("component",),
    "class_prior_": ("class",),
    "theta_": ("class", "feature"),
    "feature_log_prob_": ("feature", "class", "category"),
    "target_mean_": (),
    "statistics_": ("feature",),
    "quantiles_": ("quantile", "feature"),
    "edges_": ("feature", "edge"),
    "feature_importances_": ("feature",),
    "support_": ("feature",),
}
#: What these are called in a table; others as their attribute is.
_TITLES = {"coef_": "coefficient", "theta_": "mean", "var_": "variance", "statistics_": "filled in",
           "support_": "is selected"}
#: Under which name standard errors of these are, where there are some, and `confidence_interval` is about them.
_ERRORS = {"coef_": "standard_errors_", "covariance_": "standard_errors_", "mean_": "standard_error_"}
_NOTHING = "{0} has no result_: it keeps no number that it released, and returns what it releases"


class Part(NamedTuple):
    """Numbers of one kind: what they are called, (name, labels) of each axis, and arrays of the shape of all axes.

    Intervals have one axis more, for both ends.
    """

    quantity: str
    axes: tuple
    values: object
    errors: object = None
    intervals: object = None


class Estimates(NumberTable):
    """What a fitted estimator tells, from what it has released: ``estimator.result_`` makes it.

    ``print(result)`` shows the numbers with their labels and, where they are known, standard errors and intervals;
    `to_frame`, `plot` and `dpestim.inspection.privacy_card` take it from there.

    Attributes
    ----------
    estimator : estimator or None
        A copy, as it was fitted. A pickle leaves it out, as an estimator may hold an exact summary of its rows.
    level : float or None
        The level of the intervals; None where there are none.
    units : dict of str
        The unit of each column whose unit is declared.
    privacy : PrivacyGuarantee
        What the release promises.

    Examples
    --------
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> est = GRRFrequencyEstimator(2.0, categories=[["no", "yes"]], random_state=0).fit([["no"], ["yes"]] * 500)
    >>> est.result_.to_frame()["category"].tolist()
    ['no', 'yes']
    >>> low, high = est.result_.interval(0.9)
    """

    def __init__(self, estimator, level=0.95):
        self.estimator = copy(estimator)
        self.privacy, self.units = estimator.privacy_, units_of(
            estimator, getattr(estimator, "feature_names_in_", None))
        self._name = type(estimator).__name__
        self._parts = tuple(self.estimator._result_parts(level))
        self._notes = tuple(getattr(self.estimator, "_result_notes", tuple)())
        if not self._parts:
            raise AttributeError(_NOTHING.format(type(estimator).__name__))
        self.level = level if any(part.intervals is not None for part in self._parts) else None
        self._has_errors = any(part.errors is not None for part in self._parts)

    def interval(self, level=0.95):
        """Return (low, high), each with an entry for each row of `to_frame`; NaN where a number has no interval.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Raises
        ------
        ValueError
            Where the estimator knows no intervals, or a result that was pickled has them of another level.
        """
        if self.level is None:
            raise ValueError(f"{self._name} knows no intervals of what it tells")
        if self.estimator is None and level != self.level:
            raise ValueError(f"level must be {self.level:g}: this result was pickled, and has no other intervals. Ask "
                             "result_ of the estimator")
        parts = self._parts if level == self.level else self.estimator._result_parts(level)
        cells = list(_cells_of(parts, self._names()))
        return tuple(np.array([np.nan if row[k] is None else row[k] for row in cells]) for k in (-2, -1))

    # ---------------------------------------------------------------- inside

    def __getstate__(self):
        return {**vars(self), "estimator": None}

    def _names(self):
        return tuple(dict.fromkeys(["quantity", *(name for part in self._parts for name, _ in part.axes)]))

    def _cells(self):
        return _cells_of(self._parts, self._names())

    def _about(self):
        kinds = ", ".join(dict.fromkeys(part.quantity for part in self._parts))
        return f"{kinds}, through {self._name}."

    def _remarks(self):
        covers = "" if self.level is None else "; its confidence_interval says what an interval covers"
        return f"From {self._name}{covers}.", *self._notes, *self._units()

    def _repr_html_(self):
        return super()._repr_html_().replace("</div>", f"<p>{escape(str(self.privacy))}</p></div>")


def result_of(estimator):
    """Return `Estimates`; an AttributeError where nothing was fitted, or there is nothing to tell."""
    if not hasattr(estimator, "fit"):
        raise AttributeError(_NOTHING.format(type(estimator).__name__))
    check_is_fitted(estimator)
    return Estimates(estimator)


def learned_parts(estimator, level):
    """Return parts for what an estimator has learned under the names of `LEARNED`, and for estimates of reports."""
    out = frequency_parts(estimator, level) + distribution_parts(estimator, level)
    for name, axes in LEARNED.items():
        values = getattr(estimator, name, None)
        if values is None:
            continue
        title = _TITLES.get(name, name.strip("_").replace("_", " "))
        if isinstance(values, list) and any(np.ndim(each) for each in values):  # (one array for each column)
            for label, each in zip(labels_of(estimator, axes[0], len(values)), values):
                inner = axes_of(estimator, axes[1:], np.shape(each))
                out.append(Part(title, ((axes[0], [label]), *inner), np.asarray(each)[None]))
        else:
            values = object_array(values) if isinstance(values, list) else np.asarray(values)
            out.append(Part(title, axes_of(estimator, axes, values.shape), values,
                            *errors_of(estimator, name, values.shape, level)))
    return out


def errors_of(estimator, name, shape, level):
    """Return (standard errors, intervals) of what was learned under this name; None for what is not known."""
    errors = getattr(estimator, _ERRORS.get(name, ""), None)
    if errors is None or np.shape(errors) != shape or not hasattr(estimator, "confidence_interval"):
        return None, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # (what has no interval has NaN here)
        return errors, estimator.confidence_interval(level)


def frequency_parts(estimator, level):
    """Return a part for each column of categories of an estimator of frequencies."""
    if not hasattr(type(estimator), "frequencies_") or getattr(estimator, "categories_", None) is None:
        return []
    columns = estimator.categories_, estimator.frequencies_, estimator.standard_errors_
    return [Part("frequency", (("feature", [name]), ("category", named(categories))), values[None],
                 errors[None], ends[None])
            for name, categories, values, errors, ends in zip(
                labels_of(estimator, "feature", len(columns[0])), *columns, estimator.confidence_interval(level))]


def named(categories):
    """Return the labels of categories, a list: None would stand for no label, and so a missing value has a name."""
    return ["missing" if is_missing(value) else value for value in np.asarray(categories).tolist()]


def distribution_parts(estimator, level):
    """Return a part for each column of an estimator of distributions: shares of the bins that have intervals."""
    if getattr(estimator, "distribution_", None) is None:
        return []
    shares, edges = estimator.distribution_, estimator.bin_edges_
    try:
        intervals = estimator.confidence_interval(level)
    except ValueError:  # where they would not hold, or groups have other bins, there are none
        intervals = [None] * len(shares)
    out = []
    for name, own, ends, known in zip(labels_of(estimator, "feature", len(shares)), shares, edges, intervals):
        if known is not None and len(known) != len(own):
            fewer = np.linspace(ends[0], ends[-1], len(known) + 1)
            own, ends = np.diff(np.interp(fewer, ends, np.append(0.0, np.cumsum(own)))), fewer
        out.append(Part("share", (("feature", [name]), ("bin", [f"{a:g} to {b:g}" for a, b in pairwise(ends)])),
                        own[None], None, None if known is None else np.asarray(known)[None]))
    return out


def object_array(values):
    """Return a list of any values as an array with one axis."""
    out = np.empty(len(values), object)
    out[:] = values
    return out


def axes_of(estimator, names, shape):
    """Return (name, labels) of each axis of an array: its last axes have the last names."""
    names = names[len(names) - len(shape):] if len(shape) else ()
    return tuple((name, labels_of(estimator, name, size)) for name, size in zip(names, shape))


def labels_of(estimator, name, size):
    """Return the labels of an axis: names of columns or classes where there are so many, and places otherwise."""
    known = None
    if name in ("feature", "other feature"):
        known = getattr(estimator, "feature_names_in_", None)
    elif name == "class":
        known = getattr(estimator, "classes_", None)
        if known is not None and size == 1 and len(known) == 2:  # (scores of two classes are those of the second)
            known = known[1:]
    elif name == "quantile":
        known = getattr(estimator, "references_", None)
    return list(range(size)) if known is None or len(known) != size else np.asarray(known).tolist()


def _cells_of(parts, names):
    """Yield (quantity, labels, value, standard error, low, high) of each number; None for what is not known."""
    for part in parts:
        values = np.asarray(part.values)
        flat = [_flat(part.errors, values.size)]
        flat += [_flat(None if part.intervals is None else np.asarray(part.intervals)[..., k], values.size)
                 for k in (0, 1)]
        places = product(*(labels for _, labels in part.axes))
        for labels, value, *others in zip(places, values.ravel().tolist(), *flat):
            known = dict(zip((name for name, _ in part.axes), labels))
            yield (part.quantity, *(known.get(name) for name in names[1:]), value, *others)


def _flat(values, size):
    return [None] * size if values is None else np.asarray(values).ravel().tolist()
