"""The model of largest entropy that is closest to noisy tables: mirror descent, warm from what was known before."""

import numpy as np

from dpestim.postprocessing.junction import Tree, cliques_of

#: What entropy is worth, in units of half a squared standard deviation of noise.
ENTROPY = 4.0


class Model:
    """A distribution over rows of codes, made of noisy tables; a function of what was released alone.

    Parameters
    ----------
    sizes : tuple of int
        Codes of each column.
    total : float
        About how many rows there are.
    joined : bool
        Whether all columns are one table; else a junction tree holds as few cells as it can.
    """

    def __init__(self, sizes, total, joined=False):
        self.sizes, self.total, self.joined = tuple(sizes), total, joined
        self.known = {}  # columns: (noisy counts, precision)
        self.logs = {}
        self.step = None
        self.tree = self._tree()

    def _tree(self):
        sets = [tuple(range(len(self.sizes)))] if self.joined else list(self.known)
        tree = Tree(self.sizes, cliques_of(self.sizes, sets))
        tree.calibrate(self.logs)
        return tree

    def learn(self, columns, counts, precision):
        """Take noisy counts of the codes of some columns; of what is known twice, the mean by precision counts."""
        shape = tuple(self.sizes[j] for j in columns)
        counts = np.asarray(counts, float).reshape(shape)
        if columns in self.known:
            before, weight = self.known[columns]
            counts = (before * weight + counts * precision) / (weight + precision)
            precision = weight + precision
            self.known[columns] = counts, precision
            return
        self.known[columns] = counts, precision
        self.logs[columns] = np.zeros(shape)
        if not any(set(columns) <= set(clique) for clique in self.tree.cliques):
            self.tree = self._tree()

    def fit(self, steps):
        """Move towards the noisy tables: so many steps of mirror descent, each as long as a bound of its gain allows.

        A step multiplies all probabilities by e^(-step gradient), and takes their logarithms back to 0 by as much as
        entropy is worth: the loss is half the sum of squares in units of the noise, less `ENTROPY` times the entropy.
        Where noise drowns a table, the model so stays near equal probabilities.
        """
        tree, n = self.tree, self.total
        # (units in which the gradient of the most precise table is a difference of probabilities)
        top = max(precision for _, precision in self.known.values())
        goals = {own: (counts / n, precision / top) for own, (counts, precision) in self.known.items()}
        homes, worth = {own: tree.home(own) for own in goals}, ENTROPY / (top * n * n)
        tables, size = self._tables(homes), tree.calibrate(self.logs)
        step = self.step or 1.0
        for _ in range(steps):
            before, old = self.logs, tables
            slope = {own: weight * (old[own] - goal) for own, (goal, weight) in goals.items()}
            while True:
                self.logs = {own: (before[own] - step * slope[own]) / (1 + step * worth) for own in before}
                now = tree.calibrate(self.logs)
                tables = self._tables(homes)
                curved = sum(weight * float(np.square(tables[own] - old[own]).sum())
                             for own, (_, weight) in goals.items()) / 2
                # the divergence of the new distribution from the old one
                apart = sum(float(((self.logs[own] - before[own]) * tables[own]).sum()) for own in before) - now + size
                if curved <= max(apart, 0.0) / step + 1e-15 or step < 1e-9:
                    break
                step /= 2
            size = now
            if apart < 1e-12:
                break
            step *= 1.5
        self.step = step

    def _tables(self, homes):
        """Return the tables of the model that noisy ones are compared with."""
        return {own: self.tree.table(c, own) for own, c in homes.items()}
