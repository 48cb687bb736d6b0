"""What every law over d categories has: supports, and the frequencies and variances that follow from them."""

from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim.inputs import smallest_dtype
from dpestim.local.channel import Dense, least_variance
from dpestim.local.law import Randomizer
from dpestim.local.reports import CodeReports

#: The largest domain: codes are 32-bit.
LARGEST_DOMAIN = 1 << 32
#: Entries of the dense matrix of a law, for expectation maximisation and for means.
LARGEST_MATRIX, LARGEST_SOLVED = 1 << 24, 1 << 20
#: Reports that are decoded one by one for an audit.
MOST_TRIED = 1 << 12


class CategoricalRandomizer(Randomizer):
    """Base of the laws of categorical columns, ``__init__(self, epsilon, n_categories, ...)``.

    A sub-class sets what `Randomizer` says, and

    p_star, q_star : Fraction
        Realised probabilities that a report supports its own value, and another one (where `support_law` is overridden:
        a typical one).
    n_counts : int
        Where it is not `n_categories`.

    and brings `support` besides; `supporters` where counts are something else.
    """

    #: The largest domain for which plans ask for its errors: for larger ones that takes too long. 0: it is no mechanism
    #: to choose from but with parameters of its own.
    largest_planned = LARGEST_DOMAIN
    #: The largest domain that there is a law for.
    largest_domain = LARGEST_DOMAIN

    def __init__(self, epsilon, n_categories):
        super().__init__(epsilon)
        if not 2 <= n_categories <= self.largest_domain:
            raise ValueError("categories must name at least two distinct values (and at most "
                             f"2**{self.largest_domain.bit_length() - 1}) for each column")
        self.n_categories = n_categories
        self.code_dtype = smallest_dtype(n_categories)
        self.n_counts = n_categories

    def support(self, reports):
        """Return the 0/1 support matrix of the reports, uint8 of shape (n, n_categories)."""
        raise TypeError(f"{type(self).__name__} does not say what a report supports: implement `support`")

    def support_law(self):
        """Return rows of Fractions: entry (x, v) is the probability that a report of x supports v."""
        d = range(self.n_categories)
        return [[self.p_star if x == v else self.q_star for v in d] for x in d]

    def count(self, reports, counts):
        """Add each category's supporting reports to counts."""
        counts += self.support(reports).sum(axis=0, dtype=np.int64)

    def supporters(self, counts):
        """Return how many of the reports support each category; None, where the law does not say how counts tell."""
        return counts if self.n_counts == self.n_categories else None

    def estimate(self, counts, n):
        """Return the unbiased frequencies (C / n - q*) / (p* - q*)."""
        return (counts / n - float(self.q_star)) / self._gap

    def variance(self, n, f):
        """Return the exact variance of `estimate` for n users of whom a share f holds the value (FORMULAS VAR)."""
        q, gap = self.q_star, self.p_star - self.q_star
        at_zero, slope = q * (1 - q) / gap**2, (1 - self.p_star - q) / gap
        return (float(at_zero) + float(slope) * np.asarray(f, dtype=np.float64)) / n

    def even_variance(self, n):
        """Return (mean, largest) over the values of the variance of `estimate`, where all are held equally often."""
        even = 1 / self.n_categories
        # where the variance is a line in the own frequency one number stands for all; other laws get all frequencies
        f = even if self.varies_by_own_share else np.full(self.n_categories, even)
        found = np.asarray(self.variance(n, f), np.float64)
        return float(found.mean()), float(found.max())

    def truth(self, shares):
        """Return what `estimate` is the estimate of, from the shares of values: these themselves."""
        return shares

    def numbers_of_sum(self, weights):
        """Return a number for each report, whose mean over n reports is the sum of the estimates times these weights.

        For laws whose reports are codes.
        """
        if not (isinstance(self, CodeReports) and self._is("estimate") and self.n_counts == self.n_categories):
            raise ValueError(f"the law {type(self).__name__} does not say what one report adds to a weighted sum")
        return (weights - float(self.q_star) * weights.sum()) / self._gap

    def squares_of_sum(self, weights):
        """Return the mean square of these numbers over the reports of each category."""
        return self.mean_of(np.square(self.numbers_of_sum(weights)))

    def variance_line(self, counts, n):
        """Return (at_zero, slope) of n times the variance as a line in f, as far as the counts tell it."""
        q, gap = self.q_star, self.p_star - self.q_star
        return float(q * (1 - q) / gap**2), float((1 - self.p_star - q) / gap)

    # ---------------------------------------------------------------- what malicious users can do

    def supported(self, goal):
        """Return the fewest and the most of some values (distinct codes) that one report can support."""
        if not isinstance(self, CodeReports) or self.n_counts * self.n_categories > LARGEST_MATRIX:
            raise ValueError(f"the law {type(self).__name__} cannot be enumerated and must have a method `supported` "
                             "for this audit")
        found = self.support(np.arange(self.n_counts, dtype=self.report_dtype)[:, None])[:, goal].sum(axis=1)
        return int(found.min()), int(found.max())

    def reach(self, goal):
        """Return the least and the most that one report adds to n times the estimated share of some values, exactly.

        Where estimates are made in floats the two are floats.
        """
        if self._is("estimate"):
            return self._reach_of_supports(goal)
        tried, told = self._codes_to_try(goal), np.zeros(self.n_counts)
        found = []
        for code in tried:
            told[code] = 1.0
            found.append(float(self.estimate(told, 1)[goal].sum()))
            told[code] = 0.0
        return min(found), max(found)

    def mean_reach(self, goal):
        """Return the same of the mean over the reports of one value: 0 and 1, where estimates have no bias."""
        return Fraction(int(len(goal) == self.n_categories)), Fraction(1)

    def _reach_of_supports(self, goal):
        gap, away = self.p_star - self.q_star, len(goal) * self.q_star
        return tuple((k - away) / gap for k in self.supported(goal))

    def _codes_to_try(self, goal):
        """Return codes of reports among which are those that tell the least and the most for some values."""
        if not isinstance(self, CodeReports) or self.n_counts > MOST_TRIED:
            raise ValueError(f"the law {type(self).__name__} cannot be enumerated and must have a method `reach` for "
                             "this audit")
        return range(self.n_counts)

    # ---------------------------------------------------------------- what post-processing asks

    def likelihood(self, counts, n):
        """Return what tells `dpestim.postprocessing.ibu` how likely these counts are: a dict of its arguments, or None.

        All of the likelihood where a report is one code. Else that of the number of reports which support each value,
        as if they were independent, because counts of supports tell no more. None where counts are not of supports, or
        the matrix that all this takes would be too large.
        """
        named, pair = isinstance(self, CodeReports), self.support_pair()
        if pair is not None and self.n_counts == self.n_categories:
            return {"law": pair, "counts": counts} if named else {"law": pair, "counts": counts, "n": n}
        if self.n_categories * self.n_counts > LARGEST_MATRIX:
            return None
        if named:
            return {"law": self._dense(), "counts": counts}
        if self._is("support_law") or self.n_counts != self.n_categories:
            return None
        supports = np.array([[float(p) for p in row] for row in self.support_law()])
        return {"law": np.hstack([supports, 1 - supports]), "counts": np.concatenate([counts, n - counts])}

    @property
    def varies_by_own_share(self):
        """Whether the variance of a frequency is known to depend on no other: `variance` then takes one number."""
        return self._is("variance")

    def support_pair(self):
        """Return the probabilities that a report supports its own value, and another one, for `likelihood`.

        Numbers, or an array each, where they depend on the value that is supported. None where they depend on who
        reports, or where counts are not of supports.
        """
        pure = self._is("support_law") and self._is("estimate")
        return (float(self.p_star), float(self.q_star)) if pure else None

    def _is(self, name):
        """Tell whether a method is the one of this class, which no sub-class has replaced."""
        return getattr(type(self), name) is getattr(CategoricalRandomizer, name)

    @cached_property
    def _gap(self):
        return float(self.p_star - self.q_star)

    @property
    def input_codes(self):
        """The code of every row of the law."""
        return np.arange(self.n_categories, dtype=self.code_dtype)

    def input_of(self, codes):
        """Return the codes: they are the numbers of the inputs."""
        return codes.astype(np.int64)

    #: How much likelier any report is for a value that it supports than for one that it does not, (a, b) for a : b;
    #: None where that depends on more.
    support_odds = None

    def likelihoods(self, reports):
        """Return an array of a row for each report: proportional to its probability for each category."""
        if self.support_odds is None:
            return super().likelihoods(reports)
        yes, no = (float(odds) for odds in self.support_odds)
        return np.where(self.support(reports), yes, no)

    def worst_ratio(self):
        """Return the largest ratio of the probabilities of a report: that of the odds, where they are all."""
        return super().worst_ratio() if self.support_odds is None else Fraction(*self.support_odds)

    # ---------------------------------------------------------------- as one matrix, for servers of numbers

    def channel(self, n_bins):
        """Return (edges around the codes, identity, the matrix); the bins are the categories."""
        matrix = self._dense()
        return np.arange(matrix.n_bins + 1) - 0.5, np.arange(matrix.n_outputs), matrix

    def numbers_for(self, values):
        """Return (a number for each count, bias): its mean over the reports of category x is ``values[x]``.

        Of all such numbers those of the least variance for categories held equally often.
        """
        return least_variance(np.array(self._matrix(LARGEST_SOLVED)), np.asarray(values, np.float64))

    def noise_of(self, numbers):
        """Return the variance of numbers[report] for every category."""
        return np.maximum(self.mean_of(np.square(numbers)) - np.square(self.mean_of(numbers)), 0.0)

    def mean_of(self, numbers):
        """Return the mean of numbers[report] for every category."""
        return np.array(self._matrix(LARGEST_SOLVED)) @ numbers

    def _dense(self):
        return Dense(self._matrix(LARGEST_MATRIX))

    def _matrix(self, largest):
        if not isinstance(self, CodeReports) or self.n_categories * self.n_counts > largest:
            return super().channel(None)  # refuses
        return [[float(p) for p in row] for row in self.transition_matrix()]
