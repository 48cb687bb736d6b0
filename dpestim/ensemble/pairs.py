"""Which pairs of columns get a term: chosen by what single columns leave of the targets (`boosting.md`, pairs)."""

import math
from fractions import Fraction

import numpy as np

from dpestim.central.selection.exponential import ExponentialLaw
from dpestim.records import record

#: Groups of rows, by noisy counts, that a column of numbers is put into; for missing ones there is one more.
_GROUPS = 6


@record
class Pairs:
    """Candidates, how many of them are chosen, and the law of each choice.

    Parameters
    ----------
    candidates : tuple of (int, int)
        Pairs of columns.
    n_chosen : int
    law : ExponentialLaw
        Of one choice: it has this part of epsilon, and scores are in units of the histograms' residuals.
    """

    candidates: tuple
    n_chosen: int
    law: ExponentialLaw

    @classmethod
    def of(cls, candidates, n_chosen, epsilon, cost):
        """Return the plan that costs epsilon in all, in sums of residuals as they are in `cost`."""
        # one row more or less changes one cell, by a vector whose entries add up to this; a replaced one two cells
        moved = (2 if cost.replaces else 1) * cost.largest
        return cls(tuple(candidates), n_chosen, ExponentialLaw(Fraction(epsilon) / n_chosen, moved, 0, False))

    def choose(self, rows, curves, groups, spread):
        """Return the pairs that are chosen, one after the other, best first as far as noise tells.

        Parameters
        ----------
        rows : Histograms
        curves : list of Curve
            Of each column: noisy counts of its bins.
        groups : list of ndarray of int
            Which bins of a column are together in cells, 16 groups at most.
        spread : float
            The sampling variance of a residual, about.
        """
        # sizes of sums that are sampling and no interaction, as far as counts tell: public, so scores may lose them
        roots = [np.sqrt(np.bincount(group, weights=np.maximum(curve.counts, 0.0))).sum()
                 for group, curve in zip(groups, curves)]
        total = max(float(np.maximum(curves[0].counts, 0.0).sum()), 1.0)
        left = np.array([rows.strength(1 + i, 1 + j, groups[i], groups[j]) for i, j in self.candidates])
        expected = [math.sqrt(2 * spread / (math.pi * total)) * roots[i] * roots[j] for i, j in self.candidates]
        scores = left - np.rint(np.array(expected) / rows.unit).astype(np.int64)
        open_, chosen = list(range(len(scores))), []
        for _ in range(self.n_chosen):
            chosen.append(open_.pop(rows.choose(self.law, scores[open_])))
        return [self.candidates[k] for k in chosen]


def grouped(counts, ordered):
    """Return the group of each bin of a column: as it is, or about as many rows in each by noisy counts."""
    if not ordered:
        return np.arange(len(counts))
    mass = np.maximum(counts[:-1], 0.0) + 1e-9
    before = (np.cumsum(mass) - mass / 2) / mass.sum()
    group = np.unique(np.minimum((before * _GROUPS).astype(np.int64), _GROUPS - 1), return_inverse=True)[1]
    return np.append(group, group.max() + 1)
