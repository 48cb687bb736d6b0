"""dBitFlipPM: a few of the bits of a unary encoding, at public places drawn once, kept and sent again and again."""

import math
from fractions import Fraction

import numpy as np

from dpestim.local import pivots
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.categories.longitudinal import LongitudinalEstimator, Memoised
from dpestim.local.guessing import BestGuess, Runs
from dpestim.local.reports import FieldReports
from dpestim.privacy.category_weights import sue_thresholds
from dpestim.privacy.exact import WORD
from dpestim.rng import Stage

#: Buckets: the place of a window is drawn from 32 bits, uniform within a relative 2**-20.
LARGEST_DBITFLIP = 1 << 12


class DBitFlip(Memoised, FieldReports, CategoricalRandomizer):
    """A report is (32 bits that say where the window is, its bits as an integer)."""

    n_fixed = 1  # the window
    count_ns = 25.0
    report_dtype = np.dtype(np.uint32)
    field_names = ("window", "bits")
    #: A report is what is kept: nothing hides a change.
    epsilon_instant = math.inf

    def __init__(self, epsilon, n_categories, n_bits=2):
        super().__init__(epsilon, n_categories)
        if isinstance(n_bits, bool) or not isinstance(n_bits, int) or not 2 <= n_bits <= 16:
            raise ValueError("n_bits must be an integer from 2 to 16")
        if not n_bits <= n_categories <= LARGEST_DBITFLIP:
            raise ValueError("categories must be at least n_bits, and at most 4,096")
        self.epsilon_permanent, self.n_bits = self.epsilon, n_bits
        self.true_threshold, self.false_threshold = sue_thresholds(self.epsilon)
        share = Fraction(n_bits, n_categories)
        self.p_star, self.q_star = (share * Fraction(t, WORD) for t in (self.true_threshold, self.false_threshold))
        self.field_limits = (None, 1 << n_bits)
        self.report_bits = 32 + n_bits
        self.n_words, self.n_cells = 1 + n_bits, n_bits + 1
        self.answer_dtype, self.answer_width = self.report_dtype, 2

    def privatize(self, codes, words, out):
        """Write a first report for each code, which is what is kept."""
        self.permanent(codes, words, out)

    def _permanent_of_one(self, code, words, out):
        """Do the same for one record, of which numbers take less time than arrays."""
        window = words.dense(Stage.SEED, 1).item() >> 32
        drawn = words.dense(Stage.PERMANENT, self.n_bits).tolist()
        place = (code - (window * self.n_categories >> 32)) % self.n_categories
        bits = sum((word < self.false_threshold) << k for k, word in enumerate(drawn))
        if place < self.n_bits:
            bits = bits & ~(1 << place) | (drawn[place] < self.true_threshold) << place
        out[0, 0], out[0, 1] = window, bits

    def permanent(self, codes, words, out):
        """Write (window, kept bits) for each code."""
        if len(codes) == 1:
            return self._permanent_of_one(codes.item(), words, out)
        out[:, 0] = words.dense(Stage.SEED, 1) >> np.uint64(32)
        self.again(self.cells(codes, out), words, out)

    def _first(self, reports):
        """Return the first value of each window."""
        return (reports[:, 0].astype(np.int64) * self.n_categories) >> 32

    def cells(self, codes, answers):
        """Return where in its window each code lies; `n_bits` for all codes outside, which say the same."""
        place = (codes.astype(np.int64) - self._first(answers)) % self.n_categories
        return np.minimum(place, self.n_bits)

    def again(self, cells, words, out):
        """Write kept bits for each place."""
        drawn = words.dense(Stage.PERMANENT, self.n_bits).reshape(-1, self.n_bits)
        own = cells[:, np.newaxis] == np.arange(self.n_bits)
        bits = np.where(own, drawn < np.uint64(self.true_threshold), drawn < np.uint64(self.false_threshold))
        out[:, 1] = bits @ (1 << np.arange(self.n_bits))

    def respond(self, answers, words, out):
        """Write what is kept."""
        out[...] = answers

    def public_part(self, reports):
        """Return the window."""
        return reports[:, :1]

    def count(self, reports, counts):
        """Add the bits of every bucket."""
        for k in range(self.n_bits):
            said = self._first(reports[(reports[:, 1] >> k) & 1 == 1])
            counts += np.bincount((said + k) % self.n_categories, minlength=self.n_categories)

    def support(self, reports):
        """Return 1 where a value lies in the window and its bit is 1."""
        place = (np.arange(self.n_categories) - self._first(reports)[:, np.newaxis]) % self.n_categories
        bits = reports[:, 1:].astype(np.int64) >> np.minimum(place, self.n_bits) & 1
        return (bits & (place < self.n_bits)).astype(np.uint8)

    def supported(self, goal):
        """Return the fewest and the most of some values that one report can support: those of a window."""
        held = np.zeros(self.n_categories + self.n_bits, np.int64)
        held[goal] = 1
        held[self.n_categories :] = held[: self.n_bits]
        return 0, int(np.convolve(held, np.ones(self.n_bits, np.int64), "valid").max())

    knows_reports = True

    def known_of(self, reports):
        """Return how often each window was drawn: at any of the values, from 32 bits."""
        d = self.n_categories
        edges = -(-(np.arange(d + 1, dtype=np.int64) << 32) // d)
        return [pivots.values("first value of the window", self._first(reports), np.diff(edges) / 2.0**32)]

    def transition_matrix(self):
        """Return the law of the bits for each place in the window, and outside, given the public window."""
        rows = []
        for x in range(min(self.n_bits + 1, self.n_categories)):
            row = [Fraction(1)]
            for k in range(self.n_bits):
                one = Fraction(self.true_threshold if k == x else self.false_threshold, WORD)
                row = [weight * (1 - one) for weight in row] + [weight * one for weight in row]
            rows.append(row)
        return rows

    def law_indices(self, codes, reports):
        """Return (place of the true value, the bits as an integer)."""
        return self.cells(codes, reports), reports[:, 1].astype(np.int64)

    def worst_ratio(self):
        """Return the largest ratio of the probabilities of a report: two bits of the window differ."""
        return Fraction(self.true_threshold, self.false_threshold) ** 2

    def guessing(self, prior):
        """Return how often the best guess is right, for each value: the mean over all windows."""
        law = np.array([[float(p) for p in row] for row in self.transition_matrix()])
        codes, total = np.arange(self.n_categories), 0.0
        for first in range(self.n_categories):
            places = np.minimum((codes - first) % self.n_categories, self.n_bits)
            total = total + BestGuess(Runs.of_matrix(law[places].tolist()), prior).success
        return total / self.n_categories

    def likelihoods(self, reports):
        """Return an array of a row for each report: proportional to its probability for each category."""
        law = np.array([[float(p) for p in row] for row in self.transition_matrix()])
        place = (np.arange(self.n_categories) - self._first(reports)[:, np.newaxis]) % self.n_categories
        return law[np.minimum(place, self.n_bits), reports[:, 1:].astype(np.int64)]


class DBitFlipFrequencyEstimator(LongitudinalEstimator):
    """Estimate frequencies by dBitFlipPM: each user sends the same few permanent bits in every report.

    Each client draws a public window of `n_bits` neighbouring values (the last is next to the first), randomises a bit
    for each as `SUEFrequencyEstimator` does, and keeps the bits. All values outside of the window have the same report,
    so that most changes are invisible. Choose dBitFlipPM where a value is collected without end and repeated reports
    must cost no epsilon. Other longitudinal mechanisms randomise each report again, and hide a change better.

    **Privacy.** epsilon-local differential privacy for one report of a row, and for all reports of a value that never
    changes, exact (integer thresholds, proof in ``dbitflip.md``). **A change that affects the window is visible**:
    values that change have no guarantee. Neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Unbiased up to a relative 2^-20; about d / n_bits times the variance of `SUEFrequencyEstimator`.

    **Complexity.** O(n_bits) a user and O(n n_bits + d) at the server; 32 + n_bits bits sent.

    {parameters}
    References
    ----------
    B. Ding, J. Kulkarni, S. Yekhanin, "Collecting telemetry data privately", NIPS 2017 (dBitFlipPM). The paper draws
    any buckets; here they are neighbours, so that a report names one. Each value is in as many windows.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import DBitFlipFrequencyEstimator
    >>> X = np.repeat([["tea"], ["coffee"], ["water"]], [5000, 3000, 2000], axis=0)
    >>> est = DBitFlipFrequencyEstimator(2.0, categories=[["tea", "coffee", "water"]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.06
    np.True_
    """

    _randomizer = DBitFlip
    _more_parameters = """
    n_bits : int, default=2
        Bits of a report, from 2 to 16, and at most one for each category.
    """
    _test_values = {"n_bits": [3]}

    def __init__(self, epsilon=1.0, *, n_bits=2, categories="auto", postprocess=None, sparse_output=False, ledger=None,
                 random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        del self.epsilon_permanent
        self.n_bits = n_bits

    def _law_arguments(self, column, n_columns, encoder):
        return {"n_bits": self.n_bits}

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 2.0, "categories": [[0, 1, 2, 3]]},
            {"epsilon": 3.0, "categories": [["a", "b", "c", "d"], [0, 1, 2, 3, 4]]},
        ]
