"""What laws share that give some categories less protection than others: which ones, and what follows for kinds."""

from itertools import pairwise

import numpy as np

from dpestim.local.guessing import Runs


class Relaxed:
    """Some categories, a parameter of the law, have less protection; a mixin, which stands left of the law's base.

    The law's ``__init__`` takes their codes as its one own parameter and hands them to `relax` after the base's own.
    Where none is named the law has no relaxation: it is plain.
    """

    #: The kind of inputs that keep the protection that the relaxation is named for (`relaxed_kind` are the others).
    full_kind = "high"

    def relax(self, codes):
        """Note which categories have less protection: distinct codes in ascending order."""
        (name,), d = self.own_parameters(), self.n_categories
        if any(a >= b for a, b in pairwise(codes)) or (codes and not 0 <= codes[0] <= codes[-1] < d):
            raise ValueError(f"{name} must be distinct codes below {d} in ascending order")
        self.n_relaxed, self.n_full = len(codes), d - len(codes)
        if not self.n_full:
            raise ValueError(f"{name} must leave at least one of the categories of each column with full protection")
        self.is_relaxed = np.zeros(d, bool)
        self.is_relaxed[list(codes)] = True
        self.is_relaxed.flags.writeable = False
        if not codes:
            self.relaxation = None

    def runs_of_kinds(self, full, relaxed, other):
        """Return `Runs` where codes are reported by their own value with a probability for each kind.

        Everybody else sends the code of a value of full protection with probability `other`, and so do, where
        that of a relaxed one says so, (probability, True), those of full protection.
        """
        order = np.argsort(self.is_relaxed, kind="stable")
        kind = self.is_relaxed[order]
        own = np.where(kind, float(relaxed[0]), float(full))
        return Runs.of_own(order, own, other, np.where(kind, self.n_full if relaxed[1] else 0, len(order)))

    def kind_of(self, codes):
        """Return the kind of each code."""
        return np.where(self.is_relaxed[codes], self.relaxed_kind, self.full_kind)
