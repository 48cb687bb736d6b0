"""A score of outputs, learned on a part of a pilot: how much likelier they are with the data than with the other."""

import numpy as np

#: Cells of a column of numbers, and outputs of a data set that are learned from.
_CELLS, _MOST = 32, 20_000
#: Steps of Newton's method, and the weight of a ridge.
_STEPS, _RIDGE = 12, 1.0


class Score:
    """The logarithm of a likelihood ratio: histograms of each column, weighed by a logistic regression.

    Parameters
    ----------
    reader : Columns
    data, neighbour : list of ndarray
        Columns of outputs to learn from.

    Attributes
    ----------
    used : list of int
        The columns that tell something.
    """

    def __init__(self, reader, data, neighbour):
        n, m = min(len(data[0]), _MOST), min(len(neighbour[0]), _MOST)
        self.name, self.reader = "the learned score", reader
        self.tables = []
        for x, y, kind in zip(data, neighbour, reader.kinds):
            self.tables.append(_Cells(x[:n], y[:m], kind))
        self.used = [k for k, table in enumerate(self.tables) if table.tells]
        self.weights, self.constant = np.ones(len(self.used)), 0.0
        if len(self.used) > 1:
            rows = np.vstack([self._logs([part[:size] for part in side]) for side, size in
                              ((data, n), (neighbour, m))])
            self.weights, self.constant = _logistic(rows, np.repeat([1.0, 0.0], [n, m]))

    def read(self, columns):
        """Return the scores of outputs, from their columns."""
        return self._logs(columns) @ self.weights + self.constant

    def words(self, relation, value):
        """Return in words where the score is large, or small."""
        if len(self.used) == 1:
            table = self.tables[self.used[0]]
            logs = table.logs * self.weights[0]
            return table.words(self.reader, self.used[0], logs >= value if relation == ">=" else logs <= value)
        spread = np.abs(self.weights) * np.array([np.ptp(self.tables[k].logs) for k in self.used])
        names = [self.reader.names[self.used[k]] for k in np.argsort(-spread)[:4]]
        return f"a learned score of {', '.join(names)}{', ...' if len(self.used) > 4 else ''} is {relation} {value:.4g}"

    def _logs(self, columns):
        return np.column_stack([self.tables[k].read(columns[k]) for k in self.used])


class _Cells:
    """The logarithm of the ratio of two histograms of a column."""

    def __init__(self, x, y, kind):
        self.kind = kind
        if kind == "category":
            size = max(x.max(initial=-1), y.max(initial=-1)) + 1
            self.edges = np.arange(size)
        else:
            both = np.sort(np.concatenate([x, y]))
            both = both[~np.isnan(both)]
            places = np.linspace(0, len(both) - 1, _CELLS + 1).astype(int) if len(both) else []
            values = np.unique(both)
            self.edges = values if len(values) <= _CELLS else np.unique(both[places][1:])
        size = len(self.edges) + 2  # (above all edges; missing, or a category that is new)
        counts = [np.bincount(self._cell(part), minlength=size) for part in (x, y)]
        logs = np.log((counts[0] + 0.5) / (len(x) + 1)) - np.log((counts[1] + 0.5) / (len(y) + 1))
        noise = np.sqrt(1 / (counts[0] + 0.5) + 1 / (counts[1] + 0.5))
        self.logs = logs
        self.tells = bool((np.abs(logs) > 3 * noise).any())

    def _cell(self, x):
        if self.kind == "category":
            return np.where((x >= 0) & (x < len(self.edges)), x, len(self.edges) + 1)
        return np.where(np.isnan(x), len(self.edges) + 1, np.searchsorted(self.edges, x, side="left"))

    def read(self, x):
        return self.logs[self._cell(x)]

    def words(self, reader, number, inside):
        name, last = reader.names[number], len(self.edges)
        if self.kind == "category":
            labels = [repr(label) for label, code in reader.labels[number].items() if code < last and inside[code]]
            return f"{name} is one of {', '.join(labels[:6])}{', ...' if len(labels) > 6 else ''}"
        told, start = [], None
        for k in range(last + 2):
            now = k <= last and inside[k]
            if now and start is None:
                start = k
            if not now and start is not None:
                low = "-inf" if start == 0 else f"{self.edges[start - 1]:.6g}"
                told.append(f"({low}, {'inf' if k > last else f'{self.edges[k - 1]:.6g}'}]")
                start = None
        return f"{name} is in {' or '.join(told[:5])}{', ...' if len(told) > 5 else ''}" + (
            " or missing" if inside[last + 1] else "")


def _logistic(rows, target):
    """Return (weights, constant) of a logistic regression with a ridge, by Newton's method."""
    design = np.column_stack([rows, np.ones(len(rows))])
    w = np.zeros(design.shape[1])
    ridge = np.full(len(w), _RIDGE)
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(design @ w, -30, 30)))
        slope = design.T @ (target - p) - ridge * w
        step = np.linalg.solve((design.T * (p * (1 - p) + 1e-6)) @ design + np.diag(ridge), slope)
        w += step
        if np.abs(step).max() < 1e-6:
            break
    return w[:-1], w[-1]
