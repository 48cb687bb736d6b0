"""From counts to tables: estimates without bias with their exact errors, and the consistent table that is closest."""

import itertools
from functools import cached_property

import numpy as np

from dpestim.local.attributes.noise import cells_of, moments_of
from dpestim.local.attributes.parities import Parity, signs_of
from dpestim.postprocessing import norm_sub
from dpestim.postprocessing.entropy import Model
from dpestim.postprocessing.junction import cells_of as cells_of_cliques
from dpestim.postprocessing.junction import cliques_of

#: Steps of the model of a table, and of one of all columns.
STEPS, MORE_STEPS = 150, 400
#: Cells of tables that are made consistent before their sums are taken: in larger ones much of the noise is cut off.
_FEW_CELLS = 64


class Linear:
    """A table that is a sum of tables that different users reported; cells in one row.

    Parameters
    ----------
    f : ndarray of shape (n_cells,)
        Estimates without bias.
    parts : list of (float, int, Moments)
        Weight, reports and law of each table that it is made of; of parities nothing.
    covariance, spread : function and ndarray, default=None
        Of parities: from shares of cells to the covariance matrix of the estimates of users who are drawn from them;
        the variances of the cells about the users who took part.
    """

    def __init__(self, f, n, parts=(), covariance=None, spread=None):
        self.f, self._n, self._parts, self._covariance, self._spread = f, n, parts, covariance, spread

    def error(self, f):
        """Return the standard errors of cells that shares f of the users hold, about the users who took part."""
        if self._covariance is not None:
            return np.broadcast_to(np.sqrt(self._spread), np.shape(f))
        noise = sum(w * w / m * law.variance(f) for w, m, law in self._parts)
        return np.sqrt(np.maximum(noise + f * (1 - f) * self._uneven, 0.0))

    @cached_property
    def _uneven(self):
        """What share (1 - share) is multiplied by, because only some of the users reported."""
        drawn = sum(w * w / m for w, m, _ in self._parts) - 1 / self._n
        return max(drawn, 0.0) * self._n / max(self._n - 1, 1)

    @property
    def variance(self):
        """The variance of a cell on average, where all are held equally often."""
        return float(np.mean(np.square(self.error(np.full(len(self.f), 1 / len(self.f))))))

    @property
    def contrast(self):
        """The variance of a contrast, of which the squares add up to 1, where all cells are held equally often."""
        cells = len(self.f)
        if self._covariance is not None:
            return float(np.mean(self._spread)) * cells / max(cells - 1, 1)
        drawn = sum(w * w / m * law.contrast(cells) for w, m, law in self._parts) - 1 / (cells * self._n)
        return max(drawn, 0.01 / (cells * self._n))

    def covariance(self, f):
        """Return the covariance matrix for users who are drawn from shares f."""
        if self._covariance is not None:
            return self._covariance(f)
        return sum(w * w / m * law.covariance(f) for w, m, law in self._parts)


class Unknown(Linear):
    """A table of which nobody has reported yet: every number of it is NaN."""

    def __init__(self, cells):
        super().__init__(np.full(cells, np.nan), 1, covariance=lambda f: np.full((cells, cells), np.nan),
                         spread=np.full(cells, np.nan))


class NoisyTables:
    """What all views tell together.

    Parameters
    ----------
    columns : ViewColumns
    sizes : tuple of int
        How many values each column has.
    counts, n
        As a server has them.
    """

    def __init__(self, columns, sizes, counts, n):
        self.columns, self.sizes, self.n = columns, sizes, n
        self._told = [columns.told(j, counts, n) for j in range(len(columns))]
        self._parities = {}
        if isinstance(columns.columns[0], Parity):
            self._parities = {(view.places, view.masks): j for j, view in enumerate(columns)}
        self._found, self._tables = {}, {}

    @property
    def sets(self):
        """The maximal sets of columns of which tables can be had without bias, as far as they were reported."""
        if self._parities:
            most = max(len(view.places) for view in self.columns)
            return [own for own in dict.fromkeys(view.places for view in self.columns)
                    if len(own) == most and self.linear(own) is not None]
        return [view.places for view, (_, m) in zip(self.columns, self._told) if m]

    def linear(self, places, exactly=None):
        """Return the `Linear` of sorted columns, or None where no table holds all of them.

        `exactly`: of the tables that hold no other of these columns, so that what it is made of is used only once.
        """
        key = places, exactly
        if key not in self._found:
            self._found[key] = self._of_parities(places) if self._parities else self._of_tables(places, exactly)
        return self._found[key]

    def _of_tables(self, places, exactly):
        own, shape = set(places), cells_of(self.sizes, places)
        sources = []
        for view, (counts, m) in zip(self.columns, self._told):
            held = set(view.places)
            if m and own <= held and (exactly is None or own == held & set(exactly)):
                law = moments_of(view.law, view.law.n_categories // shape)
                table = view.law.estimate(counts, m).reshape([self.sizes[j] for j in view.places])
                others = tuple(k for k, j in enumerate(view.places) if j not in own)
                sources.append((table.sum(axis=others).ravel(), m, law))
        if not sources:
            return None
        worth = np.array([m / law.contrast(shape) for _, m, law in sources])
        weights = (worth / worth.sum()).tolist()
        f = sum(w * table for w, (table, _, _) in zip(weights, sources))
        return Linear(f, self.n, [(w, m, law) for w, (_, m, law) in zip(weights, sources)])

    def _told_of(self, places, exactly=None):
        """Return the `Linear` of columns, in which a parity that nobody reported counts as even.

        That is what the table of largest entropy says of it; the estimate is biased, and no interval is made of it.
        """
        return self._of_parities(places, even=True) if self._parities else self.linear(places, exactly)

    def _of_parities(self, places, even=False):
        sizes = tuple(self.sizes[j] for j in places)
        try:
            numbers, signs = signs_of(places, sizes, self._parities)
        except KeyError:  # (of more columns than parities are about)
            return None
        told = [self._told[j] for j in numbers]
        m = np.array([m for _, m in told], float)
        if not (m.any() if even else m.all()):
            return None
        law = self.columns.laws[0]
        values = np.array([1 - 2 * law.estimate(counts, own)[1] if own else 0.0 for counts, own in told])
        # (a parity lies within 1 of even, so that as much is known of it as at most one report tells)
        m = np.maximum(m, 1.0)
        # (four reports that say nothing: where the few that there are agree, others need not)
        noise, scatter = 4 * float(law.variance(1, 0.5)), 1 - np.square(np.clip(values, -1, 1) * m / (m + 4))
        # (the noise of two answers is that of any share of them; who is drawn adds what the coefficient leaves)
        own = noise / m + scatter * (1 / m - 1 / self.n) * self.n / max(self.n - 1, 1)
        width = 1 << sum((size - 1).bit_length() for size in sizes)

        def covariance(f):
            return (signs * (noise + 1 - np.square(width * (signs.T @ f))) / m) @ signs.T

        return Linear(1 / width + signs @ values, self.n, covariance=covariance,
                      spread=np.square(signs) @ own)

    def consistent(self, places):
        """Return the shares of cells of sorted columns, of shape sizes: of all that is known about some of them.

        The table of largest entropy that is closest to all tables of these columns and of subsets of them, in units of
        their noise: not negative, with the sum 1.
        """
        if places not in self._tables:
            wider = self._wider(places)
            if wider:
                self._tables[places] = sum(w * self.consistent(own).sum(axis=tuple(
                    k for k, j in enumerate(own) if j not in places)) for own, w in wider)
                return self._tables[places].copy()
            sizes, known = tuple(self.sizes[j] for j in places), self._known_of(places)
            if not known:  # (nobody has told of any of these columns)
                return np.full(sizes, 1 / cells_of(self.sizes, places))
            if known == [places]:  # (nothing else to agree with)
                self._tables[places] = norm_sub(self._told_of(places).f).reshape(sizes)
                return self._tables[places].copy()
            model = Model(sizes, float(self.n), joined=True)
            for own in known:
                found = self._told_of(own, places)
                at = tuple(places.index(j) for j in own)
                model.learn(at, found.f * self.n, 1 / (self.n**2 * found.contrast))
            model.fit(STEPS)
            table = np.maximum(model.tree.marginal(tuple(range(len(places)))), 0.0)
            self._tables[places] = table / table.sum()
        return self._tables[places].copy()

    def _wider(self, places):
        """Return (columns, weight) of the tables that were reported and hold these columns and others.

        They are made consistent first: where a table has no negative cells, its sums are nearer the truth.
        """
        if self._parities or len(places) < 2:
            return []
        held = {view.places: m for view, (_, m) in zip(self.columns, self._told)
                if m and set(places) <= set(view.places)}
        if places in held or any(cells_of(self.sizes, own) > _FEW_CELLS for own in held):
            return []
        total = sum(held.values())
        return [(own, m / total) for own, m in held.items()]

    def _known_of(self, places):
        """Return the sets of these columns of which different users have told."""
        if self._parities:
            most = min(len(places), max(len(view.places) for view in self.columns))
            return [own for own in itertools.combinations(places, most) if self._told_of(own) is not None]
        held = [tuple(j for j in places if j in view.places) for view, (_, m) in zip(self.columns, self._told) if m]
        return [own for own in dict.fromkeys(held) if own]

    def model(self, max_cells):
        """Return a `dpestim.postprocessing.entropy.Model` of all columns: of the tables that tell most beyond noise."""
        model, d = Model(self.sizes, float(self.n)), len(self.sizes)
        single = [self.consistent((j,)) for j in range(d)]
        gains = {}
        for own in dict.fromkeys(part for held in self.sets for part in itertools.combinations(held, 2)):
            table, found = self.consistent(own), self.linear(own)
            apart = np.abs(table - np.outer(single[own[0]], single[own[1]])).sum()
            gains[own] = apart - 0.8 * found.variance**0.5 * table.size / 2  # (what noise alone leaves, about)
        chosen = [(j,) for j in range(d)]
        for own in sorted(gains, key=gains.get, reverse=True):
            if gains[own] > 0 and sum(map(len, chosen)) < 4 * d and (
                    cells_of_cliques(self.sizes, cliques_of(self.sizes, [*chosen, own])) <= max_cells):
                chosen.append(own)
        for own in chosen:
            table = self.consistent(own)
            found = self._told_of(own)
            if found is not None:
                model.learn(own, table.ravel() * self.n, 1 / (self.n**2 * found.contrast))
        if model.known:
            model.fit(MORE_STEPS)
        return model
