"""Distributions of many columns that are products of tables of few: junction trees, exact in floats.

All of it is a function of public structure and of what was released: no privacy is at stake here.
"""

import itertools
import math

import numpy as np

#: What stands for a probability of 0 in a quotient.
_TINY = 1e-300
#: No answer has more cells.
_LARGEST = 1 << 26


def cliques_of(sizes, sets):
    """Return the maximal cliques of a graph that was made chordal, as sorted tuples of columns.

    Columns are eliminated one by one, that one next whose neighbours make the smallest table.

    Parameters
    ----------
    sizes : sequence of int
        Codes of each column.
    sets : iterable of tuple of int
        Columns of which tables are known.
    """
    near = [{j} for j in range(len(sizes))]
    for own in sets:
        for j in own:
            near[j].update(own)
    logs, found = [math.log(size) for size in sizes], []
    weight = {j: sum([logs[i] for i in near[j]]) for j in range(len(sizes))}
    while weight:
        j = min(weight, key=weight.__getitem__)
        around = near[j]
        del weight[j]
        if not any(around <= other for other in found):
            found.append(frozenset(around))
        rest = around - {j}
        for i in rest:
            near[i] = (near[i] | rest) - {j}
            weight[i] = sum([logs[k] for k in near[i]])
    return [tuple(sorted(clique)) for clique in found]


def cells_of(sizes, cliques):
    """Return how many cells the tables of cliques have in all."""
    return sum(math.prod(sizes[j] for j in clique) for clique in cliques)


class Tree:
    """A junction tree over columns, with a table of probabilities for each clique once it is calibrated.

    Parameters
    ----------
    sizes : tuple of int
    cliques : list of tuple of int
        As `cliques_of` returns them.
    """

    def __init__(self, sizes, cliques):
        self.sizes, self.cliques = tuple(sizes), list(cliques)
        self.order, self.parent = _spanning(self.cliques)
        self.separators = [() if up is None else tuple(sorted(set(self.cliques[up]) & set(own)))
                           for own, up in zip(self.cliques, self.parent)]
        self.tables, self._homes, self._parts = None, {}, {}

    def home(self, columns):
        """Return the smallest clique that holds these columns."""
        if columns not in self._homes:
            wanted = set(columns)
            fits = [c for c, own in enumerate(self.cliques) if wanted <= set(own)]
            self._homes[columns] = min(fits, key=lambda c: (math.prod(self._shape(self.cliques[c])), c))
        return self._homes[columns]

    def table(self, c, columns):
        """Return the probabilities of sorted columns that are in clique c."""
        return self._table(self.tables[c], self.cliques[c], columns)

    def calibrate(self, logs):
        """Make tables of probabilities from logarithms {columns: array}, which add up to that of every cell.

        Returns the logarithm of the sum over all cells.
        """
        own = [np.zeros(self._shape(clique)) for clique in self.cliques]
        for columns, array in logs.items():
            c = self.home(columns)
            own[c] += self._spread(array, columns, self.cliques[c])
        sums, size = [None] * len(own), 0.0
        for c in reversed(self.order):
            most = float(own[c].max())
            size += most
            own[c] = np.exp(own[c] - most)
            if self.parent[c] is not None:
                sums[c] = np.maximum(self._table(own[c], self.cliques[c], self.separators[c]), _TINY)
                own[self.parent[c]] += self._spread(np.log(sums[c]), self.separators[c], self.cliques[self.parent[c]])
        for c in self.order:
            if self.parent[c] is None:
                size += math.log(own[c].sum())
                own[c] /= own[c].sum()
            else:
                above = self._table(own[self.parent[c]], self.cliques[self.parent[c]], self.separators[c])
                own[c] *= self._spread(above / sums[c], self.separators[c], self.cliques[c])
        self.tables = own
        return size

    def marginal(self, columns):
        """Return the probabilities of all combinations of codes of distinct columns, in their order.

        Messages run from all cliques that matter to the one that holds most of these columns.
        """
        wanted = set(columns)
        if math.prod(self.sizes[j] for j in columns) > _LARGEST:
            raise ValueError(f"columns must have at most {_LARGEST:,} cells in all")
        root = max(range(len(self.cliques)), key=lambda c: len(wanted & set(self.cliques[c])))
        table, letters = self._collect(root, None, wanted)
        return _sum_to(table, letters, tuple(columns))

    def draw(self, n, rng):
        """Return n rows of codes whose tables of all cliques are as close to the model as whole rows can be.

        Within each combination of codes that a clique shares with its parent, rows are spread by a comb of equal
        steps in random order: as from the model, but with less scatter.
        """
        out = np.zeros((n, len(self.sizes)), np.int64)
        for c in self.order:
            own, shared = self.cliques[c], self.separators[c]
            new = tuple(j for j in own if j not in shared)
            table = _sum_to(self.tables[c], own, shared + new)
            groups = math.prod(self._shape(shared))
            table = np.maximum(table.reshape(groups, -1), 0) + _TINY
            ends = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)
            ends /= ends[:, -1:]
            key = np.ravel_multi_index(out[:, shared].T, self._shape(shared)) if shared else np.zeros(n, np.int64)
            order = np.lexsort((rng.random(n), key))
            counts = np.bincount(key, minlength=groups)
            first = np.repeat(np.cumsum(counts) - counts, counts)
            comb = (np.arange(n) - first + rng.random(groups)[key[order]]) / counts[key[order]]
            flat = (ends + np.arange(groups)[:, None]).ravel()
            place = np.searchsorted(flat, comb + key[order], side="right") - key[order] * ends.shape[1]
            place = np.clip(place, 0, ends.shape[1] - 1)
            out[order[:, None], list(new)] = np.stack(np.unravel_index(place, self._shape(new)), axis=1)
        return out

    # ---------------------------------------------------------------- inside

    def _shape(self, columns):
        return tuple(self.sizes[j] for j in columns)

    def _spread(self, array, columns, clique):
        """Return an array of these columns in a shape that stretches to that of a clique."""
        known = dict(zip(columns, np.shape(array)))
        return np.reshape(array, [known.get(j, 1) for j in clique])

    def _table(self, array, clique, columns):
        """Return the sums of the table of a clique over all other columns; both are sorted."""
        return array.sum(axis=tuple(k for k, j in enumerate(clique) if j not in columns))

    def _links(self, c):
        return [k for k, up in enumerate(self.parent) if up == c] + ([] if self.parent[c] is None else [self.parent[c]])

    def _beyond(self, c, before):
        """Return the columns of the part of the tree that begins at c and is not reached through `before`."""
        if (c, before) not in self._parts:
            further = (self._beyond(k, c) for k in self._links(c) if k != before)
            self._parts[c, before] = set(self.cliques[c]).union(*further)
        return self._parts[c, before]

    def _collect(self, c, before, wanted):
        """Return (table, columns) of the part of the tree at c, given what it shares with `before`."""
        shared = set(self.cliques[c]) & set(self.cliques[before]) if before is not None else set()
        table, letters = self.tables[c], self.cliques[c]
        if shared:
            below = np.maximum(self._table(table, letters, shared), _TINY)
            table = table / self._spread(below, tuple(sorted(shared)), letters)
        more = wanted - set(letters)
        for k in self._links(c) if more else ():
            if k == before or not more & self._beyond(k, c):
                continue
            other, names = self._collect(k, c, more)
            kept = tuple(dict.fromkeys((*letters, *names)))
            if math.prod(self._shape(kept)) > _LARGEST:
                raise ValueError(f"columns must have at most {_LARGEST:,} cells together with the columns that connect "
                                 "them: ask for fewer columns")
            table, letters = _product(table, letters, other, names, kept), kept
        kept = tuple(j for j in letters if j in wanted or j in shared)
        return _sum_to(table, letters, kept), kept


def _sum_to(table, letters, kept):
    """Return the sums over all other columns, in the order of those kept."""
    names = {j: k for k, j in enumerate(letters)}
    return np.einsum(table, [names[j] for j in letters], [names[j] for j in kept])


def _product(one, mine, two, others, kept):
    names = {j: k for k, j in enumerate(dict.fromkeys((*mine, *others)))}
    return np.einsum(one, [names[j] for j in mine], two, [names[j] for j in others], [names[j] for j in kept])


def _spanning(cliques):
    """Return (an order in which parents come first, the parent of each): the largest separators (Prim)."""
    parent, order, left = [None] * len(cliques), [0], set(range(1, len(cliques)))
    best = {c: (len(set(cliques[0]) & set(cliques[c])), 0) for c in left}
    while left:
        c = max(left, key=lambda k: (best[k][0], -k))
        left.discard(c)
        parent[c] = best[c][1]
        order.append(c)
        for k in left:
            shared = len(set(cliques[c]) & set(cliques[k]))
            if shared > best[k][0]:
                best[k] = shared, c
    return order, parent


def all_sets(n_columns, degree):
    """Return all sets of 2 to `degree` of so many columns, as sorted tuples."""
    top = min(degree, n_columns)
    return [own for size in range(2, top + 1) for own in itertools.combinations(range(n_columns), size)]
