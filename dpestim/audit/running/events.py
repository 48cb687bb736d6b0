"""Events: sets of outputs, by their columns, and in words; the best ones of a pilot."""

import numpy as np

from dpestim.audit.running.bounds import clopper_pearson
from dpestim.audit.running.scores import Score

#: Thresholds of a column that are tried, and single values.
_MOST_CUTS, _MOST_VALUES = 400, 60
#: Outputs of a data set from which a score is learned: at least.
_FEWEST = 100
#: What the bound of an event of the score counts for.
_PLAIN = 0.98
#: How labels begin that are words for an output, and not its text.
_TOLD = ("an exception, ", "a number", "an object of ", "a set of ")


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
        self.column, self.how, self.value, self.words, self.needs = column, how, value, words, [column]

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


class ByScore(Event):
    """Outputs whose learned score is at least, or at most, a value."""

    def __init__(self, score, how, value, words):
        super().__init__(0, how, value, words)
        self.score, self.needs = score, score.used

    def contains(self, columns):
        """Return which outputs are in it, from their columns."""
        return super().contains({0: self.score.read(columns)})


def candidates(reader, data, neighbour, delta, error):
    """Yield (predicted bound, event, whether it is likelier with the neighbour): the best ones of each column.

    A third of the pilot teaches a score; all events are compared on the others.

    Parameters
    ----------
    reader : Columns
    data, neighbour : dict of ndarray
        Columns of the outputs of a pilot.
    delta : float
    error : float
        Of the bounds by which events are compared.
    """
    if not reader.names:  # (all outputs are the same)
        return
    n, m = len(data[0]) // 3, len(neighbour[0]) // 3
    learned = [data[k][:n] for k in range(len(data))], [neighbour[k][:m] for k in range(len(data))]
    score = Score(reader, *learned) if min(n, m) >= _FEWEST and (
        "given" not in reader.kinds) else None
    data, neighbour = [data[k][n:] for k in range(len(data))], [neighbour[k][m:] for k in range(len(data))]
    # (of events that are as good, first those of what is no number: they name it)
    numbers = {name for name, kind in zip(reader.names, reader.kinds) if kind == "number"}
    mixed = [k for k, name in enumerate(reader.names) if name in numbers and reader.kinds[k] == "category"]
    for number in [*mixed, *(k for k in range(len(reader.names) + 1) if k not in mixed)]:
        if number == len(reader.names):
            if score is None or not score.used:
                continue
            x, y = score.read(data), score.read(neighbour)
            found = list(_of_numbers(0, score, x, y))[:2]
        else:
            x, y, name = data[number], neighbour[number], reader.names[number]
            kind = reader.kinds[number]
            found = _of_numbers(number, name, x, y) if kind == "number" else _of_given(
                number, name, x, y) if kind == "given" else _of_categories(
                number, name, reader.labels[number], (x, y), (learned[0][number], learned[1][number]))
        for events, k, other in found:
            for backward in (False, True):
                a, b = (other, k) if backward else (k, other)
                n, m = (len(y), len(x)) if backward else (len(x), len(y))
                bounds = clopper_pearson(a, n, b, m, delta, error)
                best = int(np.argmax(bounds))
                # (of two that are nearly as good, the one that is easily told)
                yield float(bounds[best]) * (_PLAIN if number == len(reader.names) else 1.0), events(best), backward


def _of_numbers(number, name, x, y):
    """Yield (what makes an event of a place, counts with the data, with the neighbour), of a column of numbers."""
    both = np.concatenate([x, y])
    both = np.sort(both[~np.isnan(both)])
    if len(both) < len(x) + len(y):
        yield (lambda _: Event(number, "missing", None, f"{name} is no number")), *(
            np.array([np.isnan(part).sum()]) for part in (x, y))
    if not len(both):
        return
    cuts = np.unique(both[np.linspace(0, len(both) - 1, min(_MOST_CUTS, len(both))).astype(int)])
    sides = [np.sort(part[~np.isnan(part)]) for part in (x, y)]
    if isinstance(name, Score):
        def make(how, value, relation):
            return ByScore(name, how, value, name.words(relation, value))
    else:
        def make(how, value, relation):
            return Event(number, how, value, _words(name, relation, value))

    yield (lambda k: make("at least", cuts[k], ">=")), *(
        len(part) - np.searchsorted(part, cuts, "left") for part in sides)
    yield (lambda k: make("at most", cuts[k], "<=")), *(
        np.searchsorted(part, cuts, "right") for part in sides)
    values, counts = np.unique(both, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_VALUES]
    values = values[order[counts[order] > 1]]
    if len(values):
        yield (lambda k: make("equal", values[k], "is exactly")), *(
            np.searchsorted(part, values, "right") - np.searchsorted(part, values, "left") for part in sides)


def _of_given(number, name, x, y):
    """Yield the same of an event that was given, and of its complement."""
    for value, words in ((1.0, name), (0.0, f"not: {name}")):
        yield (lambda _, value=value, words=words: Event(number, "equal", value, words)), *(
            np.array([(part == value).sum()]) for part in (x, y))


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


def _of_categories(number, name, labels, compared, learned):
    """Yield the same of a column of categories: single ones, and sets in the order of the ratios that were learned."""
    texts = list(labels)
    k, other, first, second = (np.bincount(part[part >= 0], minlength=len(texts)) for part in (*compared, *learned))
    order = np.argsort(-np.log((first + 0.5) / (second + 0.5)), kind="stable")
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
    return label if isinstance(label, str) and label.startswith(_TOLD) else repr(label)
