"""How many users have two items, from how many reports have both: estimates without bias (`lcf.md`)."""


import numpy as np

from dpestim.graph.lists.flips import BitLaw
from dpestim.recommend.similar import Best
from dpestim.records import record

#: Items of a block.
_BLOCK = 1_000
#: Co-occurrences within so many standard errors of 0 are noise.
_HIDDEN = 2.5


@record(eq=False)
class Pairs:
    """Numbers of reports with both of two items (`reported`, on the diagonal with one), of so many users."""

    reported: np.ndarray
    n_users: int
    law: BitLaw

    @property
    def n_items(self):
        """The number of items."""
        return len(self.reported)

    def singles(self):
        """Return estimates of how many users have each item."""
        return self.law.debiased(np.diag(self.reported), self.n_users)

    def both(self, rows=slice(None)):
        """Return estimates of how many users have an item of rows, and each item."""
        q, square = float(self.law.q), float((self.law.p - self.law.q) ** 2)
        ones = np.diag(self.reported).astype(float)
        found = (self.reported[rows] - q * (ones[rows, None] + ones) + q * q * self.n_users) / square
        return self._with_diagonal(found, self.singles(), rows)

    def errors(self, rows=slice(None)):
        """Return the standard errors of `both`."""
        n, v = self.n_users, self.law.variance
        singles = np.clip(self.singles(), 0, n)
        found = np.sqrt(v * (singles[rows, None] + singles) + n * v * v)
        return self._with_diagonal(found, np.full(self.n_items, np.sqrt(n * v)), rows)

    def similar(self, similarity, k):
        """Return (items, similarities) of the most similar items of each."""
        n = self.n_users
        # (an item that fewer users have than noise hides counts as one that so many have)
        singles = np.clip(self.singles(), max(1.0, min(np.sqrt(n * self.law.variance), n)), n)
        best = Best(self.n_items, k)
        for a in range(0, self.n_items, _BLOCK):
            rows = slice(a, min(a + _BLOCK, self.n_items))
            both = self.both(rows)
            both[both < _HIDDEN * self.errors(rows)] = 0
            both = np.clip(both, 0, np.minimum(singles[rows, None], singles))
            below = np.sqrt(singles[rows, None] * singles)
            if similarity == "jaccard":
                below = singles[rows, None] + singles - both
            best.see(rows, slice(0, self.n_items), self._with_diagonal(both / below, np.zeros(self.n_items), rows))
        return best.sorted()

    def _with_diagonal(self, found, diagonal, rows):
        numbers = np.arange(self.n_items)[rows]
        found[np.arange(len(numbers)), numbers] = diagonal[rows]
        return found
