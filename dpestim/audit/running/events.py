"""Events: sets of outputs, by their columns, and in words; the best ones of a pilot."""

import numpy as np

from dpestim.audit.running.bounds import clopper_pearson

#: Thresholds of a column that are tried, and single values.
_MOST_CUTS, _MOST_VALUES = 400, 60


class Event:
    """A set of outputs: which values of a column are in it.

    Parameters
    ----------
    column : int
    how : {"at least", "at most", "equal", "one of", "missing"}
    value : float, or list of codes
    words : str
    """

    def __init__(self, column, how, value, words):
        self.column, self.how, self.value, self.words = column, how, value, words

    def contains(self, columns):
        """Return which outputs are in it, from their columns."""
        x = columns[self.column]
        if self.how == "at least":
            return x >= self.value
        if self.how == "at most":
            return x <= self.value
        if self.how == "equal":
            return x == self.value
        if self.how == "missing":
            return np.isnan(x)
        return np.isin(x, self.value)


def candidates(reader, data, neighbour, delta, error):
    """Yield (predicted bound, event, whether it is likelier with the neighbour): the best ones of each column.

    Parameters
    ----------
    reader : Columns
    data, neighbour : list of ndarray
        Columns of the outputs of a pilot.
    delta : float
    error : float
        Of the bounds by which events are compared.
    """
    for number, (name, kind) in enumerate(zip(reader.names, reader.kinds)):
        x, y = data[number], neighbour[number]
        if kind == "category":
            found = _of_categories(number, name, reader.labels[number], x, y)
        else:
            found = _of_numbers(number, name, x, y)
        for events, k, other in found:
            for backward in (False, True):
                a, b = (other, k) if backward else (k, other)
                n, m = (len(y), len(x)) if backward else (len(x), len(y))
                bounds = clopper_pearson(a, n, b, m, delta, error)
                best = int(np.argmax(bounds))
                yield float(bounds[best]), events(best), backward


def _of_numbers(number, name, x, y):
    """Yield (what makes an event of a place, counts with the data, with the neighbour), of a column of numbers."""
    both = np.concatenate([x, y])
    both = np.sort(both[~np.isnan(both)])
    if len(both) < len(x) + len(y):
        yield (lambda _: Event(number, "missing", None, f"{name} is missing")), *(
            np.array([np.isnan(part).sum()]) for part in (x, y))
    if not len(both):
        return
    cuts = np.unique(both[np.linspace(0, len(both) - 1, min(_MOST_CUTS, len(both))).astype(int)])
    sides = [np.sort(part[~np.isnan(part)]) for part in (x, y)]
    yield (lambda k: Event(number, "at least", cuts[k], _words(name, ">=", cuts[k]))), *(
        len(part) - np.searchsorted(part, cuts, "left") for part in sides)
    yield (lambda k: Event(number, "at most", cuts[k], _words(name, "<=", cuts[k]))), *(
        np.searchsorted(part, cuts, "right") for part in sides)
    values, counts = np.unique(both, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_VALUES]
    values = values[order[counts[order] > 1]]
    if len(values):
        yield (lambda k: Event(number, "equal", values[k], _words(name, "is exactly", values[k]))), *(
            np.searchsorted(part, values, "right") - np.searchsorted(part, values, "left") for part in sides)


def _words(name, relation, value):
    value = float(value)
    if name.startswith("the lowest bit of "):
        what = name.removeprefix("the lowest bit of ")
        if not np.isfinite(value):
            return f"{what} is 0"
        if relation == "<=":
            return f"{what} is no multiple of 2^{value + 1:g}"
        return f"{what} is a multiple of 2^{value:g}" + (" but of no higher power of 2" if relation != ">=" else "")
    if name.startswith("the sign bit of "):
        return f"{name} is {'set' if value >= 1 and relation != '<=' else 'not set'}"
    return f"{name} {relation} {value:.7g}" if value or not np.signbit(value) else f"{name} {relation} -0.0"


def _of_categories(number, name, labels, x, y):
    """Yield the same of a column of categories: sets of the likeliest ones, by their ratio, from both ends."""
    texts = list(labels)
    k, other = (np.bincount(part[part >= 0], minlength=len(texts)) for part in (x, y))
    order = np.argsort(-np.log((k + 0.5) / (other + 0.5)), kind="stable")
    for places in (order, order[::-1]):
        def event(j, places=places):
            codes = places[: j + 1].tolist()
            told = ", ".join(_text(texts[code]) for code in codes[:6]) + ", ..." * (len(codes) > 6)
            return Event(number, "one of", codes, f"{name} is {'one of ' if len(codes) > 1 else ''}{told}")

        yield event, np.cumsum(k[places]), np.cumsum(other[places])
    yield (lambda j: Event(number, "one of", [j], f"{name} is {_text(texts[j])}")), k, other


def _text(label):
    if isinstance(label, tuple):
        return "(" + ", ".join(f"{part:g}" if isinstance(part, float) else repr(part) for part in label) + ")"
    return label if isinstance(label, str) and label.startswith("an exception") else repr(label)
