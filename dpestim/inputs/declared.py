"""What was declared about columns, in every form: one pair, a pair of arrays, a dict by name or place, a `Domain`.

::

    bounds      --pair_of-->  (lows, highs) of these columns       categories --lists_of--> [values, None, ...]
    target_bounds --target_pair--> (low, high)                     classes    --classes_of--> values
    keys        --keys_of-->  values

A dict or a `Domain` names columns: names that X does not have are ignored, and columns of the other kind need no entry.
An array has no names: then there are as many entries as columns, in order, or they are by place. A list of pairs is
refused, as for two columns it reads both ways.
"""

from numbers import Integral

import numpy as np

from dpestim.inputs.frames import refuse_parts
from dpestim.inputs.numbers import bound_array
from dpestim.inputs.public import PublicColumn, PublicColumns, is_column
from dpestim.inputs.safe_errors import attempt

#: What bounds may be, in messages; {} is the name of the parameter.
PAIR = ("{} must be a pair (low, high) of finite numbers, a pair of arrays with one number for each column, a dict "
        'such as {{"age": (17, 90)}}, or a dpestim.Domain')
LISTS = ("{} must be a list with one list of values for each column, a dict such as {{\"sex\": [\"F\", \"M\"]}}, or a "
         "dpestim.Domain")
#: The largest absolute value of a bound, and the least width: squares of both, and sums of those, are floats.
FARTHEST, CLOSEST = 1e140, 1e-140
#: What a declaration by name, or of one column, may be.
_NAMED = (dict, PublicColumns, PublicColumn)


def names_of_columns(X):
    """Return the names of the columns of a frame, a list; None where X has none."""
    if not hasattr(X, "columns"):
        return [X.name] if isinstance(getattr(X, "name", None), str) else None
    return list(getattr(X, "column_names", X.columns))


def name_of_target(y):
    """Return the name of the targets, where they are a series or a frame of one column; else None."""
    names = names_of_columns(y)
    return names[0] if names is not None and len(names) == 1 else None


def is_by_column(declared):
    """Tell whether it names columns."""
    return isinstance(declared, dict | PublicColumns)


def pair_of(bounds, n_columns=None, names=None, *, name="bounds", same=False):
    """Return (lows, highs), arrays of the columns, or raise ValueError.

    Parameters
    ----------
    bounds : as they are declared
    n_columns : int, default=None
        How many columns there are; None: as many as were declared, at least one.
    names : list, default=None
        The names of the columns, where they have any.
    name : str, default="bounds"
        What the parameter is called.
    same : bool, default=False
        Whether both ends may be equal.
    """
    if is_by_column(bounds):
        pairs = pairs_of(bounds, n_columns, names, name=name)
        if not pairs:
            raise ValueError(PAIR.format(name))
        lows, highs = (np.array(ends, float) for ends in zip(*pairs))
    else:
        if is_column(bounds, "numbers"):
            bounds = bounds.low, bounds.high
        refuse_pairs(bounds, name)
        if not isinstance(bounds, tuple | list | np.ndarray) or len(bounds) != 2:
            raise ValueError(PAIR.format(name))
        lows, highs = (np.atleast_1d(bound_array(end, name)) for end in bounds)
    return _checked(lows, highs, n_columns, name, same)


def _checked(lows, highs, n_columns, name, same):
    n = n_columns or max(len(lows), len(highs))
    if any(len(end) not in (1, n) for end in (lows, highs)):
        there = "" if n_columns is None else f", of which there are {n_columns}"
        raise ValueError(PAIR.format(name) + there)
    low, high = (np.broadcast_to(end, n) for end in (lows, highs))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError(PAIR.format(name))
    if (low > high).any() or (not same and (low == high).any()):
        how = "in the wrong order" if (low > high).any() else "equal"
        below = "at most" if same else "below"
        raise ValueError(f"{name} must be a pair (low, high) with low {below} high: these are {how}")
    far = np.maximum(np.abs(low), np.abs(high)) > FARTHEST
    if far.any() or ((high - low < CLOSEST) & (low < high)).any():
        raise ValueError(f"{name} must lie between -{FARTHEST:g} and {FARTHEST:g}, and at least {CLOSEST:g} apart: "
                         "write the column and its bounds in another unit, such as thousands or millionths")
    return low, high


def has_numbers(bounds):
    """Tell whether bounds of a model that takes categories, too, are of any column at all."""
    if not isinstance(bounds, PublicColumns):
        return True
    from dpestim.inputs.kinds import Numbers  # (who declares a table has loaded it)

    return bool(bounds.of_kind(Numbers))


def refuse_pairs(bounds, name="bounds"):
    """Raise ValueError for a list of pairs, one for each column, where a pair of arrays is meant.

    For two columns it would pass for one: ends of the first column would be lows, and those of the second highs.
    """
    if isinstance(bounds, list) and len(bounds) > 0 and all(isinstance(pair, tuple) for pair in bounds):
        raise ValueError(f"{name} must not be a list of pairs, which is ambiguous for two columns: write a dict by "
                         'name or place, such as {"age": (17, 90)} or {0: (17, 90)}, or a pair of arrays ([low, ...], '
                         "[high, ...])")


def pairs_of(bounds, n_columns=None, names=None, *, name="bounds", some=False):
    """Return [(low, high), ...] of the columns from a dict or a `Domain`; with `some`, None where nothing was said."""
    found = by_place(bounds, n_columns, names, name, as_pair)
    n = len(found) if n_columns is None else n_columns
    if n_columns is None:
        return list(found.values())
    if not some:
        for place in range(n):
            if place not in found:
                raise ValueError(f"{name} must have a pair (low, high) for {_called(place, names)}: declare "
                                 "one, or leave this column out of X")
    return [found.get(place) for place in range(n)]


def lists_of(categories, n_columns=None, names=None, *, name="categories", some=False, word=None):
    """Return [values, ...] of the columns; with `some`, None where nothing was said. `word` may stand for a list.

    n_columns None: of as many columns as were declared.
    """
    if is_by_column(categories):
        found = by_place(categories, n_columns, names, name, lambda value, where: word if (
            isinstance(value, str) and value == word) else as_list(value, where))
        if n_columns is None:
            return list(found.values())
        for place in range(n_columns):
            if place not in found and not some:
                raise ValueError(f"{name} must have a list of values for {_called(place, names)}")
        return [found.get(place) for place in range(n_columns)]
    if is_column(categories, "categories"):
        return [categories.all_values]
    if isinstance(categories, str) or not isinstance(categories, list | tuple) or not len(categories):
        raise ValueError(LISTS.format(name))
    if all(isinstance(values, str | bytes) and values != word for values in categories):
        raise ValueError(f"{name} must have one list of values for each column: write [['a', 'b']], not ['a', 'b']")
    if n_columns is not None and len(categories) != n_columns:
        raise ValueError(f"{name} must have a list of values for each of the {n_columns} columns, got "
                         f"{len(categories)}")
    return [own.all_values if is_column(own, "categories") else own for own in categories]


def by_place(declared, n_columns, names, name, read):
    """Return {place: what `read` makes of it} of the columns that a dict or a `Domain` names, or raise ValueError.

    `read` returns None for a column of another kind. Names that X does not have are ignored.
    """
    if not len(declared):
        raise ValueError(f"{name} must name a column")
    own = {}
    for key, value in declared.items():
        if isinstance(key, bool) or not isinstance(key, str | Integral):
            raise ValueError(f"{name} must name columns by strings, or by their places")
        found = read(value, f"{name} of column {key!r}")
        if found is not None:
            own[key] = found
    if n_columns is None and names is None:
        return dict(enumerate(own.values()))
    if names is None:
        return _unnamed(own, list(declared), n_columns, name)
    places, out = {label: at for at, label in enumerate(names)}, {}
    for key, value in own.items():
        place = places.get(key, key if isinstance(key, Integral) else None)
        if place is None:
            continue
        if not 0 <= place < len(names):
            raise ValueError(f"{name} must name columns of X, of which there are {len(names)}, by name or place")
        if place in out:
            raise ValueError(f"{name} must name column {key!r} once")
        out[int(place)] = value
    if not out and isinstance(declared, dict):
        raise ValueError(f"{name} must name columns of X, which are {shown(names)}")
    return out


def in_order(declared, kind, names=None, *, name):
    """Return (keys or None, pairs or lists) of a dict or a `Domain`, in its order, which is that of the columns of X.

    What runs on users' devices and a server that sees no rows lay reports out by it. `names` of X: others are left out.

    Parameters
    ----------
    declared : dict or Domain
    kind : {"pairs", "lists", "missing"}
        "missing": whether numbers may be missing, for each pair.
    names : list, default=None
    name : str
        What the parameter is called.
    """
    own = by_key(declared, {"pairs": as_pair, "lists": as_list, "missing": may_be_missing}[kind], name)
    if not own:
        raise ValueError((LISTS if kind == "lists" else PAIR).format(name))
    keys, order = ordered(own, names, name)
    return keys, [own[key] for key in order]


def by_key(declared, read, name):
    """Return {key: what `read` makes of it} of a dict or a `Domain`; None stays."""
    return {key: found for key, value in declared.items()
            if (found := read(value, f"{name} of column {key!r}")) is not None or value is None}


def ordered(own, names, name):
    """Return (the names of columns in the order of a dict, or None where it has places; its keys in that order)."""
    if all(isinstance(key, Integral) for key in own):
        if sorted(own) != list(range(len(own))):
            raise ValueError(f"{name} must have an entry for each column by place, 0 to {len(own) - 1}")
        return None, list(range(len(own)))
    if names is None:
        return tuple(own), list(own)
    absent = [key for key in names if key not in own]
    if absent:
        raise ValueError(f"{name} must have an entry for each column of X, and lacks {shown(absent)}: declare these "
                         "columns, or leave them out of X")
    keys = tuple(key for key in own if key in set(names))
    if list(keys) != list(names):
        raise ValueError(f"the columns of X must be in the order of {name}, which determines the layout of reports: "
                         f"pass X[{list(keys)}]")
    return keys, list(keys)


def _unnamed(own, keys, n_columns, name):
    """Return {place: value} where X has no names: in order, where there are as many, else by place."""
    if not any(isinstance(key, str) for key in own):
        if not all(0 <= key < n_columns for key in own):
            raise ValueError(f"{name} must name columns of X, of which there are {n_columns}, by name or place")
        return {int(key): value for key, value in own.items()}
    if not all(isinstance(key, str) for key in keys):
        raise ValueError(f"{name} must give all columns by name, or, where X has no names, all by place")
    if len(keys) == n_columns:  # all columns of X, those of another kind among them
        return {keys.index(key): value for key, value in own.items()}
    if len(own) == n_columns:
        return dict(enumerate(own.values()))
    raise ValueError(f"{name} declares {len(own)} columns by name, and X has {n_columns} columns without names: pass a "
                     "data frame (or a series with its name), or declare columns by place, such as {0: ...}")


def as_pair(value, where):
    """Return (low, high) of a column, None for one of another kind."""
    from dpestim.inputs.kinds import is_number

    if isinstance(value, PublicColumn):
        return (value.low, value.high) if is_column(value, "numbers") else None
    if not isinstance(value, tuple | list | np.ndarray) or len(value) != 2 or not all(map(is_number, value)):
        raise ValueError(f"{where} must be a pair (low, high) of numbers")
    return tuple(float(bound_array(end, where)) for end in value)


def may_be_missing(value, where=""):
    """Tell whether numbers of a column may be missing: `Numbers` says so; None for a column of another kind."""
    if isinstance(value, PublicColumn):
        return value.missing if is_column(value, "numbers") else None
    return False


def says_missing(*declared):
    """Tell whether one of these declarations says that numbers of a column may be missing."""
    return any(may_be_missing(own) for each in declared if isinstance(each, _NAMED)
               for own in (each.values() if isinstance(each, dict) else [column for _, column in each.items()]
                           if isinstance(each, PublicColumns) else [each]))


def missing_of(bounds, n_columns, names=None):
    """Return the places of the columns of numbers of which `bounds` say that values may be missing, a frozenset."""
    if is_column(bounds, "numbers"):
        return frozenset(range(n_columns) if bounds.missing else ())
    if not is_by_column(bounds):
        return frozenset()
    found = by_place(bounds, n_columns, names, "bounds", may_be_missing)
    return frozenset(place for place, may in found.items() if may)


def as_list(value, where):
    """Return the values of a column, None for one of another kind."""
    if isinstance(value, PublicColumn):
        return value.all_values if is_column(value, "categories") else None
    if value is None:
        return None
    if isinstance(value, str | bytes | dict) or not hasattr(value, "__len__"):
        raise ValueError(f"{where} must be a list of values")
    return value


def target_pair(target_bounds, name_of_y=None, *, name="target_bounds"):
    """Return (low, high), floats, of the targets, or raise ValueError.

    A dict or a `Domain` says it by the name of y; without a name only that there is such a column is checked.
    """
    if is_by_column(target_bounds):
        target_bounds = _of_target(target_bounds, name_of_y, name, as_pair, "a pair (low, high)")
    refuse_pairs(target_bounds, name)
    if isinstance(target_bounds, tuple | list) and any(map(np.ndim, target_bounds)):
        raise ValueError(f"{name} must be a pair (low, high) of two numbers")
    low, high = pair_of(target_bounds, 1, name=name)
    return float(low[0]), float(high[0])


def classes_of(classes, name_of_y=None):
    """Return the classes that were declared: a list or an array; a dict or a `Domain` says it by the name of y."""
    if is_by_column(classes):
        return _of_target(classes, name_of_y, "classes", as_list, "a list of values")
    return classes.all_values if is_column(classes, "categories") else classes


def check_classes(classes):
    """Raise ValueError where no column of classes was declared, before y says which."""
    if is_by_column(classes):
        _some_target(classes, "classes", as_list, "a list of values")


def check_target(target_bounds):
    """Raise ValueError for bounds of targets that cannot be, before y says of which column they are."""
    if is_by_column(target_bounds):
        _some_target(target_bounds, "target_bounds", as_pair, "a pair (low, high)")
    else:
        target_pair(target_bounds)


def _some_target(declared, name, read, wanted):
    if not any([read(value, f"{name} of column {key!r}") is not None for key, value in declared.items()]):
        raise ValueError(f"{name} must have {wanted} for the target")


def _of_target(declared, name_of_y, name, read, wanted):
    own = {key: found for key, value in declared.items()
           if (found := read(value, f"{name} of column {key!r}")) is not None}
    if name_of_y in own:
        return own[name_of_y]
    if name_of_y is None and own:
        if len(own) == 1:
            return next(iter(own.values()))
        raise ValueError(f'{name} must be declared for one column where y has no name: write {name}=domain["name"], or '
                         "pass y as a series with a name")
    raise ValueError(f"{name} must have {wanted} for the target, y" + ("" if name_of_y is None else
                                                                    f", which is called {name_of_y!r}"))


def keys_of(keys, bounds=None, default=None):
    """Return (keys, bounds) of a set of pairs: a `Keys`, or a `Domain` with one such column, says both.

    Bounds that are not the default stay.
    """
    for declared in (keys, bounds):
        if is_by_column(declared):
            own = [column for _, column in declared.items() if is_column(column, "keys")]
            if len(own) != 1:
                raise ValueError("keys must be a list, Keys(...), or a Domain with exactly one column of Keys")
            declared = own[0]
        if is_column(declared, "keys"):
            keys = declared.keys if keys is None or is_by_column(keys) or is_column(keys, "keys") else keys
            if bounds is None or (isinstance(bounds, tuple) and bounds == default) or is_by_column(bounds) or (
                    is_column(bounds, "keys")):
                bounds = declared.low, declared.high
    return list(keys) if isinstance(keys, tuple) else keys, bounds


def names_columns(estimator):
    """Tell whether an estimator has declarations by name, or of one column."""
    return any(isinstance(getattr(estimator, name, None), _NAMED)
               for name in ("bounds", "categories", "classes", "target_bounds", "edges"))


def settle(estimator, X, y=None):
    """Replace declarations by name, in a copy of an estimator, by what they mean for the columns of X and for y."""
    if names_columns(estimator):
        settle_to(estimator, *columns_seen(X, y))


def columns_seen(X, y=None):
    """Return (the names of the columns of X or None, how many there are, the name of y or None)."""
    refuse_parts(X, "X")
    refuse_parts(y, "y")
    names = names_of_columns(X)
    return names, width_of(X) if names is None else len(names), name_of_target(y)


def settle_to(estimator, names, n_columns, target=None, but=()):
    """... for so many columns of these names (None: they have none), and a target of this name; `but` these stay."""
    readers = {"bounds": lambda declared: pair_of(declared, n_columns, names, same=True),
               "categories": lambda declared: lists_of(declared, n_columns, names, word="private"),
               "classes": lambda declared: classes_of(declared, target),
               "target_bounds": lambda declared: target_pair(declared, target)}
    for name, read in readers.items():
        declared = getattr(estimator, name, None)
        if isinstance(declared, _NAMED) and name not in but:
            setattr(estimator, name, read(declared))


def width_of(X):
    """Return how many columns X has, None where that cannot be told (what reads X says why)."""
    shape, error = attempt(np.shape, X)
    return None if error or len(shape) > 2 else shape[1] if len(shape) == 2 else 1


def _called(place, names):
    return f"column {place if names is None else repr(names[place])} of X"


def shown(names, most=8):
    """Return names as messages show them."""
    names = [repr(own) for own in names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
