"""Tables of sets of (key, value) pairs: sparse matrices and long frames, read by dtype and shape."""

import numpy as np

from dpestim.inputs.columns import is_missing, parts
from dpestim.inputs.frames import columns_of, is_frame, refuse_empty, refuse_parts
from dpestim.inputs.numbers import series_numbers
from dpestim.inputs.safe_errors import attempt
from dpestim.inputs.sparse import is_sparse, sparse_rows

#: What X may be, as messages say it.
WANTED = ("X must be a SciPy sparse matrix (users x keys), whose stored entries are the pairs, or a data frame of "
          "three columns: user, key, value")
TWICE = "X must have each key of a user at most once"


def check_pairs(X):
    """Return X where it is of a kind that is read, or raise ValueError; its values are not looked at."""
    refuse_parts(X, "X")
    if X.shape[1] == 3 if is_frame(X) else is_sparse(X) and len(X.shape) == 2:
        refuse_empty(X.shape)
        return X
    raise ValueError(WANTED)


def read_pairs(X, encoder, *, strict, n_jobs=None):
    """Return (start, index, values) of the sets in X: those of user i are at ``start[i] : start[i + 1]``, ascending.

    `encoder`: a `CategoryEncoder` of the keys of a frame. In a frame users come in the order in which they are first
    named, and a row without a key says that its user is there. Strict mode raises nothing for a cell: a pair whose key
    is none is left out, the first of several of one key stays, what is no number is NaN, and rows without a user are
    those of one more user.
    """
    if is_sparse(X) and not is_frame(X):
        rows = sparse_rows(X, lambda j: "value", strict=strict)
        if not strict and len(rows.values) < X.nnz:
            raise ValueError(TWICE)
        return rows.start, rows.index, rows.values
    users, keys, values = columns_of(X)
    user, n = _numbered(users, strict)
    numbers, null = series_numbers(values, "value", strict=strict)
    with np.errstate(all="ignore"):
        numbers = np.array(numbers, np.float64)
    if null is not None:
        numbers[null] = np.nan
    objects = np.empty(len(user), dtype=object)
    objects[:] = _plain(keys, "key")
    held = np.array([not is_missing(key) for key in objects], bool)
    code = np.zeros(len(user), np.int64)
    if strict:
        none = encoder.n_categories
        code[held] = encoder.read(objects[held], np.uint32, none, n_jobs, explain=False)[0]
        held &= code < none
    elif held.any():
        code[held] = encoder.encode(objects[held], n_jobs)
    user, code, numbers = user[held], code[held], numbers[held]
    if not strict and not np.isfinite(numbers).all():
        raise ValueError("value must be a finite number in every row that has a key")
    order = np.lexsort((code, user))
    user, code, numbers = user[order], code[order], numbers[order]
    again = np.zeros(len(user), bool)
    again[1:] = (user[1:] == user[:-1]) & (code[1:] == code[:-1])
    if again.any() and not strict:
        raise ValueError(TWICE)
    start = np.append(0, np.cumsum(np.bincount(user[~again], minlength=n))).astype(np.int64)
    return start, code[~again].astype(np.int32), numbers[~again]


def _numbered(users, strict):
    """Return (a number for each row's user, in the order in which they come, how many users there are)."""
    numbers = {}
    labels = _plain(users, "user")
    found, error = attempt(lambda: [numbers.setdefault(None if is_missing(label) else label, len(numbers))
                                    for label in labels])
    if None in numbers and not strict:  # (people without a name are not one person)
        raise ValueError("user must have a label in every row: remove rows without a user, or give them labels")
    if error:
        raise ValueError("user must hold labels: numbers or strings")
    return np.array(found, np.int64), len(numbers)


def _plain(series, name):
    """Return a column as a list of Python values, None where it has none."""
    values, index, null = parts(series, name)
    values = np.asarray(values)
    listed = (values.astype(object) if values.dtype.kind in "mM" else values).tolist()
    if index is not None:
        listed.append(None)
        return [listed[k] for k in np.asarray(index).tolist()]
    if null is None:
        return listed
    if len(listed) == len(null):
        return [None if gone else value for value, gone in zip(listed, np.asarray(null).tolist())]
    left = iter(listed)
    return [None if gone else next(left) for gone in np.asarray(null).tolist()]
