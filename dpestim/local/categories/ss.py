"""Subset selection: the report is a set of k values that holds the true one with the largest probability."""

import itertools
import math
from fractions import Fraction

import numpy as np

from dpestim._core import subset
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.categories.supports import Subset, success_of_sets
from dpestim.local.constants import constants_of
from dpestim.local.reports import PackedBits
from dpestim.privacy.category_weights import subset_weights
from dpestim.privacy.exact import WORD
from dpestim.rng import Stage

#: How much likelier one subset of the other values may be than another; it bounds the bias and is paid for in epsilon.
MOST_UNEVEN = Fraction(1, 10**7)
#: A report's words and bits must stay far below the memory of a client.
LARGEST_DOMAIN = 1 << 20


class SS(PackedBits, CategoricalRandomizer):
    """Subset selection with the best subset size; a report is ceil(d / 8) bytes of bits, k of them 1."""

    block_words = 1 << 17
    word_ns = 10.0

    def __init__(self, epsilon, n_categories):
        super().__init__(epsilon, n_categories)
        if n_categories > LARGEST_DOMAIN:
            raise ValueError("categories: subset selection takes at most 2**20 values; use local hashing")
        self.weights = subset_weights(self.epsilon, n_categories, MOST_UNEVEN)
        d, k = n_categories, self.weights.k
        self.n_words = 1 + self.weights.n_draw_words
        self.p_star = Fraction(self.weights.include, WORD)
        self.q_star = (self.p_star * (k - 1) + (1 - self.p_star) * k) / (d - 1)

    def constants(self):
        """Return `weights`: `k` values are reported, of 2^64 words `include` have the own one among them.

        `batch` draws share a word; `uneven` bounds how far the sets of other values are from equally likely.
        """
        return constants_of(self)

    def privatize(self, codes, words, out):
        """Write one subset for each code."""
        drawn = words.dense(Stage.RESPONSE, self.n_words).reshape(-1, self.n_words)
        scratch = words.scratch(self.n_categories, np.uint64)
        w = self.weights
        subset.privatize(codes.astype(np.uint64), drawn, self.n_categories, w.k, w.batch, w.include, scratch, out)

    def check_reports(self, reports):
        """Refuse bits beyond the domain and sets of another size."""
        beyond = self.n_categories % 8 and (reports[:, -1] >> (self.n_categories % 8)).any()
        rows = reports if reports.strides[1] == 1 else np.ascontiguousarray(reports)
        if beyond or not subset.weighs(rows, self.weights.k):
            raise ValueError(f"a report must be a set of {self.weights.k} of the domain's {self.n_categories} values")

    def supported(self, goal):
        """Return the fewest and the most of some values that one set can hold."""
        k = self.weights.k
        return max(0, k - (self.n_categories - len(goal))), min(k, len(goal))

    def transition_matrix(self):
        """Return the realised d x C(d, k) law, by enumeration of all draws; d is at most 9.

        Columns are the subsets in the order of their bits as a little-endian integer.
        """
        d = self.n_categories
        if d > 9:
            raise ValueError("the law of subsets of more than 9 values is not enumerated")
        columns = {bits: i for i, bits in enumerate(self._subsets())}
        include = self.p_star
        with_true, without = self._draw_law(leave_last_out=True), self._draw_law(leave_last_out=False)
        rows = []
        for x in range(d):
            row = [Fraction(0)] * len(columns)
            others = [v for v in range(d) if v != x]
            for law, weight, own in ((with_true, include, 1 << x), (without, 1 - include, 0)):
                for chosen, probability in law.items():
                    row[columns[own | sum(1 << others[i] for i in chosen)]] += weight * probability
            rows.append(row)
        return rows

    @property
    def support_odds(self):
        """How much likelier a set is for a value in it, were subsets uniform (they are within `MOST_UNEVEN`)."""
        d, k = self.n_categories, self.weights.k
        return self.p_star * (d - k), (1 - self.p_star) * k

    def worst_ratio(self):
        """Return an upper bound of the worst ratio, within `MOST_UNEVEN` twice of it."""
        return super().worst_ratio() * (1 + self.weights.uneven) ** 2

    def guessing(self, prior):
        """Return how often the best guess is right, for each value, were subsets uniform; O(d log d)."""
        high, low = (prior * float(odds) for odds in self.support_odds)
        own = np.full(len(prior), float(self.p_star))
        return success_of_sets(high, low, own, Subset(self.n_categories, self.weights.k))

    def law_indices(self, codes, reports):
        """Return (true value, number of the subset)."""
        bits = self.support(reports).astype(np.int64) @ (1 << np.arange(self.n_categories))
        return codes.astype(np.int64), np.searchsorted(self._subsets(), bits)

    def _subsets(self):
        d, k = self.n_categories, self.weights.k
        return sorted(sum(1 << v for v in chosen) for chosen in itertools.combinations(range(d), k))

    def _draw_law(self, leave_last_out):
        """Return {frozenset of indices of other values: probability} of the kernel's draws, in Fractions."""
        d, k, batch = self.n_categories, self.weights.k, self.weights.batch
        # a state is what the shuffle has done so far: (the values drawn, in order; the values left, in order)
        states = {((), tuple(range(d - 1))): Fraction(1)}
        for first in range(0, k, batch):
            ranges = [d - 1 - i for i in range(first, min(first + batch, k))]
            size = math.prod(ranges)
            after = {}
            for place, draws in enumerate(itertools.product(*map(range, ranges))):
                # words whose multiply-shift into `size` gives this place
                n_words = -(-(place + 1) * WORD // size) - -(-place * WORD // size)
                for (drawn, left), probability in states.items():
                    new_drawn, new_left = drawn, list(left)
                    for draw in draws:
                        new_drawn += (new_left[draw],)
                        new_left[draw] = new_left[0]
                        del new_left[0]
                    key = (new_drawn, tuple(new_left))
                    after[key] = after.get(key, 0) + probability * Fraction(n_words, WORD)
            states = after
        law = {}
        for (drawn, _), probability in states.items():
            key = frozenset(drawn[: k - 1] if leave_last_out else drawn)
            law[key] = law.get(key, 0) + probability
        return law


class SSFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by subset selection (SS, k-subset mechanism).

    Each user sends a set of k values, about d / (e^epsilon + 1), which contains the user's value with the largest
    possible probability and is otherwise uniform. SS is the most accurate frequency estimator for rare values and on
    average over uniform data. It costs d bits and k draws a user. For k = 1 it is GRR. For a very frequent value OUE,
    SUE and BLH may be more accurate.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer threshold, and the unevenness of drawn
    subsets is paid for in it; both directions, proof in ``ss.md``), neighbours: any two rows of one user; no other
    party is trusted.

    **Utility.** Unbiased within 1e-7; with p = k e^eps / (k e^eps + d - k) and q = (p (k - 1) + (1 - p) k) / (d - 1)
    the variance of a frequency f among n users is (q (1 - q) / (p - q)^2 + f (1 - p - q) / (p - q)) / n.

    **Complexity.** O(k) a user and O(n d) bit operations at the server; d bits sent (log2 of C(d, k) would do).

    {parameters}
    References
    ----------
    S. Wang, L. Huang, P. Wang, et al., "Mutual information optimally local private
    discrete distribution estimation", 2016; M. Ye, A. Barg, "Optimal schemes for discrete distribution estimation
    under locally differential privacy", IEEE Transactions on Information Theory 64 (2018), eq. (6) and theorem III.1.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import SSFrequencyEstimator
    >>> X = np.repeat([[0], [1], [2]], [5000, 3000, 2000], axis=0)
    >>> est = SSFrequencyEstimator(1.0, categories=[[0, 1, 2]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.05
    np.True_
    """

    _randomizer = SS
