"""Labels: y to codes of classes, read as categories are: neighbouring y differ in one code, whatever their dtype."""

import warnings
from functools import lru_cache

import numpy as np
from sklearn.exceptions import DataConversionWarning

from dpestim.inputs.columns import is_missing, object_array, parts
from dpestim.inputs.declared import check_classes, classes_of, is_by_column, name_of_target
from dpestim.inputs.domains import category_array, learn_categories
from dpestim.inputs.frames import columns_of, is_frame, is_series, refuse_containers, to_array
from dpestim.inputs.numbers import floats_of, refuse_kind, series_numbers
from dpestim.inputs.safe_errors import attempt


def label_codes(y, classes, n_rows, *, strict, total=False, n_jobs=None):
    """Return (codes, classes), the classes sorted; None: they are learned from y.

    Codes are signed; -1 stands for a label that is not declared, which is a ValueError unless `total` or `strict`.
    Strict mode takes nothing whose dtype would depend on a value, such as a list.
    """
    column = label_column(y, n_rows, strict=strict)
    classes = classes_of(classes, name_of_target(y))
    classes = _learned(column) if classes is None else class_array(classes)
    n = len(classes)
    dtype = np.dtype(np.uint8 if n < 1 << 7 else np.uint16 if n < 1 << 15 else np.uint32)
    from dpestim.inputs.categories import CategoryEncoder  # (with its library: numbers need neither)

    encoder = CategoryEncoder(classes, "y")
    fallback = int(np.iinfo(dtype).max)  # -1 once it is signed
    if strict or total:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            codes, _ = encoder.read(column, dtype, fallback, n_jobs)
    else:
        codes, why = encoder.read(column, dtype, fallback, n_jobs)
        if why:
            name = getattr(column, "name", None)
            where = "" if name is None else f" (column {name!r})"
            raise ValueError(f"y{where} holds a missing value or a class that is not declared in classes")
    return codes.view(f"i{dtype.itemsize}"), classes


def label_column(y, n_rows, *, strict):
    """Return y as one column (array or series) of n_rows rows, in the dtype that it has."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None: pass the classes or numbers of the "
                         "rows as y")
    refuse_containers(y, "y")
    if strict and not (hasattr(y, "dtype") or is_frame(y)):
        raise ValueError("strict mode: y must have a dtype: pass an array or a series, not a list")
    column = y if is_frame(y) or is_series(y) else _labels_of(y)
    shape = tuple(column.shape)
    if len(shape) == 2 and shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: pass one label for each row",
            DataConversionWarning,
            stacklevel=4,
        )
        column = columns_of(column)[0]
    elif len(shape) != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {shape} instead.")
    if getattr(column.dtype, "kind", "O") == "c":
        raise ValueError("Complex data not supported: y must hold classes or numbers")
    if shape[0] != n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[n_rows, shape[0]]}")
    return column


def target_numbers(y, n_rows, *, strict):
    """Return y as floats, one for each row. Values that are not finite are NaN in strict mode, else a ValueError."""
    column = label_column(y, n_rows, strict=strict)
    if is_series(column):
        numbers, nulls = series_numbers(column, "y", strict=strict)
    else:
        kind, nulls = column.dtype.kind, None
        if strict and kind == "O":
            raise ValueError("strict mode: y must have a numeric dtype, not object: convert y before the call")
        refuse_kind(column.dtype, "y")
        numbers = floats_of(column, "y") if kind == "O" else column
    with np.errstate(all="ignore"):
        numbers = np.array(numbers, np.float64)
    if nulls is not None:
        numbers[nulls] = np.nan
    finite = np.isfinite(numbers)
    if not finite.all():
        if not strict:
            raise ValueError("Input y contains NaN or infinity: every target must be a finite number. Leave out rows "
                             "without a target")
        numbers[~finite] = np.nan
    return numbers


def checked_classes(classes):
    """Raise ValueError for what cannot be classes; of a dict or a `Domain` y will say which column they are of."""
    if is_by_column(classes):
        check_classes(classes)
    else:
        class_array(classes)


def class_array(classes):
    """Return declared classes, sorted; raise ValueError for what cannot be classes."""
    if type(classes) in (list, tuple) and len(classes) <= 16 and all(type(v) in (bool, int, str) for v in classes):
        return _few(tuple((type(v), v) for v in classes)).copy()  # (a fit reads them more than once)
    return _class_array(classes)


@lru_cache(maxsize=64)  # (declared, so public)
def _few(classes):
    return _class_array([value for _, value in classes])


def _class_array(classes):
    array = category_array(classes_of(classes), "", "classes")
    values = list(array)
    if any(is_missing(v) or isinstance(v, complex | np.complexfloating) for v in values):
        raise ValueError("classes must be a list of at least two different classes, none of them missing")
    words = [isinstance(v, str) for v in values]
    if any(words) and not all(words):
        raise ValueError("classes must be all strings or all numbers")
    distinct, error = attempt(lambda: sorted(set(values)))
    if error:
        raise ValueError("classes must be hashable and have an order, as strings, numbers and dates do")
    if len(distinct) < 2:
        raise ValueError("classes must be a list of at least two different classes")
    same, _ = attempt(lambda: np.unique(array if array.dtype.kind in "mM" else np.asarray(distinct)))
    # an array of strings or numbers, as scikit-learn has it, where that holds the very same values
    exact = same is not None and same.dtype.kind in "biufmMU" and same.shape == (len(distinct),)
    if exact and same.dtype.kind not in "mM":
        exact = all(a == b for a, b in zip(same.tolist(), distinct))
    return same if exact else object_array(distinct)


def _labels_of(y):
    """Return y, which is no series, as an array; a list of strings becomes an array of strings."""
    array = to_array(y, "y")
    if array.dtype.kind == "O" and not hasattr(y, "dtype") and array.size:
        values = array.reshape(-1).tolist()
        if all(isinstance(v, str) for v in values):
            return np.asarray(values).reshape(array.shape)
    return array


def _learned(column):
    """Return the classes that y has, sorted."""
    values, _, null = parts(column, "y")
    kind = values.dtype.kind
    if null is not None or (kind == "f" and not np.isfinite(values).all()):
        raise ValueError("Input y contains NaN or infinity: every class must be a finite value")
    if kind == "f" and (values != np.floor(values)).any():
        raise ValueError("Unknown label type: continuous. A classifier needs classes, and these numbers have fractions")
    classes, error = attempt(learn_categories, column, "y")
    if error:
        raise ValueError("Input y contains a missing value (None, NaN or NA) or labels without an order")
    if len(classes) < 2:
        raise ValueError("y must hold at least two classes, found one class only: declare the classes, as in "
                         'classes=["no", "yes"]')
    return classes
