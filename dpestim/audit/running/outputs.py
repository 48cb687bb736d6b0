"""Outputs as columns: whatever code returns becomes numbers and categories, each with words for what it is."""

import math
from numbers import Integral, Real

import numpy as np
from scipy.sparse import find, issparse

from dpestim.inputs.frames import is_frame

#: An odd number of 64 bits, by which numbers are mixed.
_ODD = np.uint64(0x9E3779B97F4A7C15)
#: Leaves of an output that are read, and different outputs up to which a whole output is one category.
_MOST_LEAVES, _MOST_KINDS = 256, 256


#: What a place that holds a number is as a category, where other outputs hold something else there.
_NUMBER = "a number"
#: Numbers of a wide table from which the columns that are read are chosen.
_LOOKED_AT = 20_000_000
#: Numbers of a sparse matrix up to which zeros are read, too.
_DENSE = 1_000_000


class Raised:
    """An exception that a call raised, which is an output like any other."""

    def __init__(self, error):
        self.name, self.told = type(error).__name__, " ".join(str(error).split())[:120]


def is_unreadable(output):
    """Return whether an output is an object that shows nothing but its address, such as a generator."""
    readable = isinstance(output, Raised | str | bytes | Real | list | tuple | dict | np.ndarray)
    return not readable and " at 0x" in repr(output)


def leaves(output, path="output"):
    """Yield (path, leaf) of what an output is made of: numbers, and whatever else."""
    if isinstance(output, Raised):
        yield path, f"an exception, {output.name}"
    elif isinstance(output, np.ma.MaskedArray):
        yield from leaves(output.tolist(), path)
    elif isinstance(output, np.ndarray):
        if output.ndim == 0:
            yield path, output.item()
        else:
            yield f"len({path})", len(output)
            for k, part in enumerate(output[:_MOST_LEAVES]):
                yield from leaves(part, f"{path}[{k}]")
    elif isinstance(output, dict):
        for key in sorted(output, key=repr):
            yield from leaves(output[key], f"{path}[{key!r}]")
    elif isinstance(output, list | tuple):
        yield f"len({path})", len(output)
        for k, part in enumerate(output[:_MOST_LEAVES]):
            yield from leaves(part, f"{path}[{k}]")
    elif isinstance(output, Real | np.bool_):
        yield path, output
        if isinstance(output, Integral) and not -_WHOLE <= output <= _WHOLE:  # (doubles do not hold it)
            yield f"the rest of {path} by 2^32", int(output) % 2**32
    elif output is None or isinstance(output, str | bytes):
        yield path, output
    elif issparse(output):
        small = math.prod(output.shape) <= _DENSE
        yield from leaves(output.toarray() if small else find(output), path)
    elif is_frame(output) or hasattr(output, "to_numpy"):  # (the labels of rows may tell, too: of counts of values)
        if type(getattr(output, "index", None)).__name__ not in ("NoneType", "RangeIndex"):
            yield from leaves(output.index.to_numpy(), f"{path}.index")
        if not is_frame(output):
            yield from leaves(output.to_numpy(), path)
            return
        for name in output.columns:
            yield from leaves(output[name].to_numpy(), f"{path}[{name!r}]")
    elif isinstance(output, set | frozenset):
        yield path, f"a set of {', '.join(sorted(map(repr, output)))}"
    else:
        yield path, f"an object of {type(output).__name__}" if is_unreadable(output) else repr(output)


class Columns:
    """Columns of features of outputs: read from some, then the same ones of others.

    Parameters
    ----------
    outputs : list or ndarray
        Of a pilot, of both data sets.
    bits : bool
        Whether the bits of floats are columns, too.
    called : str
        What an output is called in words.
    n_first : int or None
        How many of the outputs are of the first data set: of wide outputs the numbers that tell most are read.

    Attributes
    ----------
    names : list of str
    kinds : list of str
        "number" or "category", of each column.
    labels : dict
        Of columns of categories: the values that have the codes 0, 1, ...; others have the code -1.
    is_cut : bool
        Whether outputs are so large that not all of them is read.
    """

    def __init__(self, outputs, bits=True, called="output", n_first=None):
        table, self.called, self.shape = as_table(outputs), called, None
        if table is not None:
            self.shape = table.shape[1:]
            width = math.prod(self.shape)
            self.is_cut, self.places = width > _MOST_LEAVES, np.arange(min(width, _MOST_LEAVES))
            if self.is_cut and n_first:
                self.places = _telling(table.reshape(len(table), -1), n_first)
            names = ["".join([called, *(f"[{k}]" for k in at)])
                     for at in zip(*np.unravel_index(self.places, self.shape))] if self.shape else [called]
            self.paths, self.others = names, []
            floats = names if table.dtype.kind == "f" else []
        else:
            self.paths, self.others, floats, self.is_cut = _paths(outputs, called)
        self.labels = {}
        numbers, others = self._leaves(outputs)
        # (what never changes tells nothing; -0.0 is another number than 0.0)
        patterns = numbers.view(np.uint64)
        self.kept = [k for k in range(len(self.paths)) if (patterns[:, k] != patterns[:1, k]).any()]
        self.bits = [k for k in self.kept if self.paths[k] in floats] if bits else []
        self.names = [self.paths[k] for k in self.kept]
        self.names += [f"the lowest bit of {self.paths[k]}" for k in self.bits]
        self.names += [f"the sign bit of {self.paths[k]}" for k in self.bits]
        self.names += [f"the number of the last three bits of {self.paths[k]}" for k in self.bits]
        self.joined = len(self.kept) > 1
        if self.joined:
            self.names += ["the sum of the numbers", "the largest number", "the smallest number",
                           "the place of the largest number"]  # (as in `_JOINED`)
        self.kinds = ["number"] * len(self.names) + ["category"] * len(self.others)
        first = len(self.names)
        self.names += self.others
        for k in range(len(self.others)):
            self.labels[first + k] = {label: code for code, label in enumerate(dict.fromkeys(others[k]))}
        self.whole = None
        if len(self.kept) + len(self.others) > 1:
            hashes = self._hashes(numbers, self._codes(others, first))
            self.known, places = np.unique(hashes, return_index=True)
            if len(self.known) <= _MOST_KINDS:
                self.whole = len(self.names)
                self.names.append("the output")
                self.kinds.append("category")
                rows = [(*numbers[i, self.kept].tolist(), *(values[i] for values in others)) for i in places]
                self.labels[self.whole] = {_Row(row, code): code for code, row in enumerate(rows)}

    def read(self, outputs, wanted=None):
        """Return {number: array} of the columns of these outputs, or of some of them."""
        numbers, others = self._leaves(outputs)
        wanted = range(len(self.names)) if wanted is None else wanted
        first = len(self.names) - len(self.others) - (self.whole is not None)
        n, m, found = len(self.kept), len(self.bits), {}
        codes = self._codes(others, first)
        for k in wanted:
            if k < n:
                found[k] = numbers[:, self.kept[k]]
            elif k < n + m:
                found[k] = lowest_bit(numbers[:, self.bits[k - n]])
            elif k < n + 2 * m:
                found[k] = np.signbit(numbers[:, self.bits[k - n - m]]).astype(float)
            elif k < n + 3 * m:
                words = np.ascontiguousarray(numbers[:, self.bits[k - n - 2 * m]]).view(np.uint64)
                found[k] = (words & np.uint64(7)).astype(float)
            elif k < first:
                with np.errstate(invalid="ignore", over="ignore"):
                    found[k] = _JOINED[k - n - 3 * m](numbers[:, self.kept])
            elif k == self.whole:
                hashes = self._hashes(numbers, codes)
                places = np.minimum(np.searchsorted(self.known, hashes), len(self.known) - 1)
                found[k] = np.where(self.known[places] == hashes, places, -1)
            else:
                found[k] = codes[k - first]
        return found

    def _codes(self, others, first):
        """Return an array of codes for each leaf that is no number."""
        return [np.array([self.labels[first + k].get(value, -1) for value in values], np.int64)
                for k, values in enumerate(others)]

    def _hashes(self, numbers, codes):
        """Return a number for each output, the same for equal ones."""
        parts = [np.ascontiguousarray(numbers[:, k]).view(np.uint64) for k in self.kept] + [
            part.view(np.uint64) for part in codes]
        out = np.zeros(len(numbers), np.uint64)
        for part in parts:
            out = (out ^ part) * _ODD
            out ^= out >> np.uint64(29)
        return out

    def _leaves(self, outputs):
        """Return (numbers, a row for each output, NaN where there is none; a list of values for each other leaf)."""
        n = len(outputs)
        table = as_table(outputs)
        if table is not None and self.shape == table.shape[1:]:
            return np.ascontiguousarray(table.reshape(n, -1)[:, self.places], dtype=np.float64), []
        numbers = np.full((n, len(self.paths)), np.nan)
        if not self.others and self._fill(numbers, outputs):
            return numbers, []
        others = [[_ABSENT] * n for _ in self.others]
        place = {path: k for k, path in enumerate(self.paths)}
        other = {path: k for k, path in enumerate(self.others)}
        for i, output in enumerate(outputs):
            for path, leaf in leaves(output, self.called):
                is_number = isinstance(leaf, Real | np.bool_)
                if is_number and path in place:
                    numbers[i, place[path]] = _as_float(leaf)
                if path in other:
                    others[other[path]][i] = _NUMBER if is_number else leaf
        return numbers, others


    def _fill(self, numbers, outputs):
        """Fill in numbers of outputs that are sequences of several lengths; return whether that is what they are."""
        if not all(isinstance(output, list | tuple) for output in outputs):
            return False
        lengths = np.array([len(output) for output in outputs])
        place = {path: k for k, path in enumerate(self.paths)}
        size = place.get(f"len({self.called})")
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            table = as_table([outputs[i] for i in rows])
            if length and (table is None or table.ndim != 2):
                return False
            known = [k for k in range(length) if f"{self.called}[{k}]" in place]
            if known:
                numbers[np.ix_(rows, [place[f"{self.called}[{k}]"] for k in known])] = table[:, known]
            if size is not None:
                numbers[rows, size] = length
        return True


class Given:
    """Columns of events that a user gave: whether an output is in each of them."""

    def __init__(self, events):
        self.names, self.functions = list(map(str, events)), list(events.values())
        self.kinds, self.labels = ["given"] * len(events), {}

    def read(self, outputs, wanted=None):
        """Return {number: array of 0 and 1} of all events, or of some of them."""
        wanted = range(len(self.names)) if wanted is None else wanted
        return {k: np.array([self._holds(k, output) for output in outputs], float) for k in wanted}

    def _holds(self, k, output):
        if isinstance(output, Raised):
            return False
        try:
            return bool(self.functions[k](output))
        except Exception as error:
            raise ValueError(f"events must be functions of an output, and {self.names[k]!r} raised "
                             f"{type(error).__name__} ({error}): check it with an output") from error


class _Row(tuple):
    """A row of leaves as the label of a category: rows of one hash count as one, and NaN is itself."""

    def __new__(cls, row, code):
        made = super().__new__(cls, row)
        made.code = code
        return made

    def __hash__(self):
        return self.code

    def __eq__(self, other):
        return self is other


def as_table(outputs):
    """Return outputs as an array of numbers with one row for each, or None: they are something else."""
    if isinstance(outputs, np.ndarray):
        table = outputs
    elif len(outputs) and isinstance(outputs[0], Real | np.bool_ | list | tuple | np.ndarray):
        try:
            table = np.array(outputs)
        except (TypeError, ValueError, OverflowError):
            return None
    else:
        return None
    if table.dtype.kind not in "biuf" or not table.ndim or isinstance(outputs[0], np.ma.MaskedArray):
        return None
    if table.dtype.kind in "iu" and table.size and not -_WHOLE <= table.min() <= table.max() <= _WHOLE:
        return None  # (doubles do not hold them)
    return table


def _telling(table, n_first):
    """Return the places of the columns whose means in two parts of the rows are furthest apart."""
    size = max(8, _LOOKED_AT // (2 * table.shape[1]))
    one, two = table[:n_first][:size], table[n_first:][:size]
    with np.errstate(all="ignore"):
        apart = np.abs(one.mean(axis=0) - two.mean(axis=0)) / (one.std(axis=0) + two.std(axis=0) + 1e-12)
    return np.sort(np.argsort(-np.nan_to_num(apart), kind="stable")[:_MOST_LEAVES])


def _paths(outputs, called):
    """Return (paths that hold numbers, paths that hold others, those of floats, whether there are too many of them)."""
    numbers, others, floats = {}, {}, set()
    for output in outputs[:: max(1, len(outputs) // 1000)]:
        for path, leaf in leaves(output, called):
            (numbers if isinstance(leaf, Real | np.bool_) else others)[path] = None
            if isinstance(leaf, float | np.floating):
                floats.add(path)
    is_cut = max(len(numbers), len(others)) > _MOST_LEAVES or any(_is_wide(output) for output in outputs[:20])
    return list(numbers)[:_MOST_LEAVES], list(others)[:_MOST_LEAVES], floats, is_cut


def _is_wide(output):
    parts = output.values() if isinstance(output, dict) else [output]
    return any(max(getattr(part, "shape", None) or (len(part) if isinstance(part, list | tuple) else 0, 0))
               > _MOST_LEAVES for part in parts)


#: Columns of several numbers together.
_JOINED = (lambda rows: rows.sum(axis=1), lambda rows: rows.max(axis=1), lambda rows: rows.min(axis=1),
           lambda rows: rows.argmax(axis=1).astype(float))
#: The value of a leaf that an output does not have.
_ABSENT = "nothing"
#: The largest whole number up to which doubles hold them all.
_WHOLE = 2**53


def _as_float(leaf):
    try:
        return float(leaf)
    except OverflowError:
        return np.inf if leaf > 0 else -np.inf


def lowest_bit(values):
    """Return the exponents of the lowest bits that are set in doubles; infinity for 0, NaN for what is not finite."""
    mantissa, exponent = np.frexp(values)
    with np.errstate(invalid="ignore"):
        whole = np.where(np.isfinite(values), mantissa * 2.0**53, 0).astype(np.int64)
    with np.errstate(divide="ignore"):
        low = np.log2((whole & -whole).astype(np.float64)) + exponent - 53
    return np.where(np.isfinite(values), np.where(values == 0, np.inf, low), np.nan)
