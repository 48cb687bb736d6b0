"""Outputs as columns: whatever code returns becomes numbers and categories, each with words for what it is."""

from numbers import Real

import numpy as np

#: Leaves of an output that are read, and different outputs up to which a whole output is one category.
_MOST_LEAVES, _MOST_KINDS = 256, 256


class Raised:
    """An exception that a call raised, which is an output like any other."""

    def __init__(self, error):
        self.name = type(error).__name__


def leaves(output, path="output"):
    """Yield (path, leaf) of what an output is made of: numbers, and whatever else."""
    if isinstance(output, Raised):
        yield path, f"an exception, {output.name}"
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
    else:
        yield path, output if output is None or isinstance(output, str | bytes) else repr(output)


class Columns:
    """Columns of features of outputs: read from some, then the same ones of others.

    Parameters
    ----------
    outputs : list or ndarray
        Of a pilot, of both data sets.
    bits : bool
        Whether the bits of floats are columns, too.

    Attributes
    ----------
    names : list of str
    kinds : list of str
        "number" or "category", of each column.
    labels : dict
        Of columns of categories: the values that have the codes 0, 1, ...; others have the code -1.
    """

    def __init__(self, outputs, bits=True):
        self.plain = isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf"
        sample = outputs if len(outputs) <= 2000 else [outputs[k] for k in range(0, len(outputs), len(outputs) // 1000)]
        paths = {}
        if self.plain:
            n = 1 if outputs.ndim == 1 else int(np.prod(outputs.shape[1:]))
            paths = {"output" if outputs.ndim == 1 else f"output[{k}]": True for k in range(min(n, _MOST_LEAVES))}
            float_paths = list(paths) if outputs.dtype.kind == "f" else []
        else:
            seen_floats = set()
            for output in sample:
                for path, leaf in leaves(output):
                    is_number = isinstance(leaf, Real | np.bool_)
                    paths[path] = paths.get(path, True) and is_number
                    if isinstance(leaf, float | np.floating):
                        seen_floats.add(path)
            paths = dict(list(paths.items())[:_MOST_LEAVES])
            float_paths = [path for path in paths if path in seen_floats and paths[path]]
        self.paths = [path for path in paths if paths[path]]
        self.others = [path for path in paths if not paths[path]]
        self.labels = {}
        numbers, others = self._leaves(outputs)
        # (a length that never changes tells nothing)
        keep = [k for k, path in enumerate(self.paths) if not (path.startswith("len(") and np.ptp(numbers[:, k]) == 0)]
        self.kept = keep
        self.bits = [self.paths.index(path) for path in float_paths] if bits else []
        self.names = [self.paths[k] for k in keep]
        self.names += [f"the lowest bit of {self.paths[k]}" for k in self.bits]
        self.names += [f"the sign bit of {self.paths[k]}" for k in self.bits]
        self.joined = len(keep) > 1
        if self.joined:
            self.names += ["the sum of the numbers", "the largest number", "the smallest number",
                           "the place of the largest number"]
        self.kinds = ["number"] * len(self.names) + ["category"] * len(self.others)
        first = len(self.names)
        self.names += self.others
        for k in range(len(self.others)):
            found = dict.fromkeys(others[k])
            self.labels[first + k] = {label: code for code, label in enumerate(found)}
        self.whole = None
        if len(keep) + len(self.others) > 1:
            kinds = dict.fromkeys(map(tuple, self._rows(numbers, others)))
            if len(kinds) <= _MOST_KINDS:
                self.whole = len(self.names)
                self.names.append("the output")
                self.kinds.append("category")
                self.labels[self.whole] = {row: code for code, row in enumerate(kinds)}

    def read(self, outputs):
        """Return a list of arrays: each column of these outputs."""
        numbers, others = self._leaves(outputs)
        columns = [numbers[:, k] for k in self.kept]
        columns += [lowest_bit(numbers[:, k]) for k in self.bits]
        columns += [np.signbit(numbers[:, k]).astype(float) for k in self.bits]
        if self.joined:
            part = numbers[:, self.kept]
            with np.errstate(invalid="ignore", over="ignore"):
                columns += [part.sum(axis=1), part.max(axis=1), part.min(axis=1), part.argmax(axis=1).astype(float)]
        first = len(columns)
        for k, values in enumerate(others):
            codes = self.labels[first + k]
            columns.append(np.array([codes.get(value, -1) for value in values]))
        if self.whole is not None:
            codes = self.labels[self.whole]
            columns.append(np.array([codes.get(row, -1) for row in map(tuple, self._rows(numbers, others))]))
        return columns

    def _leaves(self, outputs):
        """Return (numbers, a row for each output, NaN where there is none; a list of values for each other leaf)."""
        n = len(outputs)
        if self.plain:
            return np.asarray(outputs, np.float64).reshape(n, -1)[:, :_MOST_LEAVES], []
        if self.paths == ["output"] and not self.others:
            try:
                return np.array(outputs, np.float64).reshape(n, 1), []
            except (TypeError, ValueError, OverflowError):
                pass
        numbers = np.full((n, len(self.paths)), np.nan)
        others = [[_ABSENT] * n for _ in self.others]
        place = {path: k for k, path in enumerate(self.paths)}
        other = {path: k for k, path in enumerate(self.others)}
        for i, output in enumerate(outputs):
            for path, leaf in leaves(output):
                if path in place:
                    if isinstance(leaf, Real | np.bool_):
                        numbers[i, place[path]] = _as_float(leaf)
                elif path in other:
                    others[other[path]][i] = leaf
        return numbers, others

    def _rows(self, numbers, others):
        return ((*row, *rest) for row, rest in zip(numbers[:, self.kept].tolist(), zip(*others) if others else
                                                   [()] * len(numbers)))


#: The value of a leaf that an output does not have.
_ABSENT = "nothing"


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
