"""RAPPOR: a Bloom filter of the value, randomised once for all reports, and again for each."""

import math
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.optimize import nnls

from dpestim._core import unary
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.categories.open import OpenFrequencyEstimator
from dpestim.local.categories.patterns import draw_patterns, words_for
from dpestim.local.categories.regression import BitRegression
from dpestim.local.categories.sketch import check_whole, drawn_below
from dpestim.local.categories.state import ClientState, step_of
from dpestim.local.guessing import BestGuess, Runs
from dpestim.privacy.exact import WORD, canonical_amount, log_above, uses_enough
from dpestim.privacy.rappor import rappor_thresholds
from dpestim.rng import Stage, WordSource

#: Candidates that are decoded at a time: what they take is a square matrix. Bits of Bloom filters that are kept.
LARGEST_DESIGN, LARGEST_TABLE = 1 << 12, 1 << 24
#: What spreads the bits of a seed: the increment and the multipliers of SplitMix64.
_MIX = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))


class RAPPOR(CategoricalRandomizer):
    """RAPPOR; a report is the number of a cohort, a byte, and the bits, packed.

    The Bloom filter of a code in a cohort has `n_hashes` different bits, public and fixed. Counts are, for each cohort,
    how often each bit is 1, and how many reports there are: n_bits + 1 numbers.
    """

    heavy = True  # designs are tables
    report_dtype = np.dtype(np.uint8)
    block_words = 1 << 18
    count_ns = 20.0
    largest_planned = 128  # (errors are those of a regression)

    def __init__(self, epsilon, n_categories, n_bits=128, n_hashes=2, n_cohorts=8, f=None, p=None, q=None):
        super().__init__(epsilon, n_categories)
        for name, value, least, most in (("n_bits", n_bits, 8, 1 << 16), ("n_hashes", n_hashes, 1, 32),
                                         ("n_cohorts", n_cohorts, 1, 256)):
            check_whole(value, name, least, most)
        if n_bits % 8 or n_bits < 2 * n_hashes:
            raise ValueError("n_bits must be a multiple of 8, and at least twice n_hashes")
        f, p, q = (_share(value, name) for name, value in (("f", f), ("p", p), ("q", q)))
        if f == 1 or (p is not None and q is not None and p >= q) or p == 1 or q == 0:
            raise ValueError("f must be below 1 and p below q: reports must depend on the value")
        self.n_bits, self.n_hashes, self.n_cohorts = n_bits, n_hashes, n_cohorts
        self.thresholds = t = rappor_thresholds(self.epsilon, n_hashes, f, p, q)
        #: Pr[1] of a bit of one report, where the Bloom filter has a 1 and where it has a 0
        self.bit_one, self.bit_zero = (Fraction(weight, WORD**2) for weight in t.bit)
        if not uses_enough(*(odds**n_hashes for odds in t.odds), self.epsilon):
            self.slack = "f, p and q protect one report more than epsilon asks for"
        self.report_width, self.report_bits = 1 + n_bits // 8, math.log2(n_cohorts) + n_bits
        self.n_counts = n_cohorts * (n_bits + 1)
        self.n_words = 1 + (2 if t.low + t.high == WORD else 3) * words_for(n_bits // 8)
        self.p_star = self.bit_one**n_hashes
        self.q_star = self.bit_zero**n_hashes  # of a value that shares no bit; `support_law` has the others

    def check(self):
        """Raise ValueError where the bits cannot tell the candidates apart."""
        if self.n_categories <= LARGEST_DESIGN:
            _ = self._all

    # ---------------------------------------------------------------- what is sent

    def masks(self, codes, cohorts):
        """Return the Bloom filters of codes in cohorts, packed bits."""
        if self.n_categories * self.n_cohorts * self.n_bits <= LARGEST_TABLE:
            return self._table[np.asarray(codes, np.int64), np.minimum(cohorts, self.n_cohorts - 1).astype(np.int64)]
        return self._hashed(codes, cohorts)

    @cached_property
    def _table(self):
        codes = np.repeat(np.arange(self.n_categories), self.n_cohorts)
        cohorts = np.tile(np.arange(self.n_cohorts), self.n_categories)
        return self._hashed(codes, cohorts).reshape(self.n_categories, self.n_cohorts, -1)

    def _hashed(self, codes, cohorts):
        codes, cohorts = np.asarray(codes, np.uint64), np.asarray(cohorts, np.uint64)
        seed = (codes << np.uint64(8) | cohorts) * _MIX[0]
        chosen = np.empty((self.n_hashes, len(codes)), np.int64)
        for i in range(self.n_hashes):
            seed = seed + _MIX[0]
            x = (seed ^ seed >> np.uint64(30)) * _MIX[1]
            x = (x ^ x >> np.uint64(27)) * _MIX[2]
            place = ((x >> np.uint64(32)) * np.uint64(self.n_bits - i) >> np.uint64(32)).astype(np.int64)
            for before in np.sort(chosen[:i], axis=0):  # the place-th of those that are left
                place += place >= before
            chosen[i] = place
        out, rows = np.zeros((len(codes), self.n_bits // 8), np.uint8), np.arange(len(codes))
        for place in chosen:
            out[rows, place >> 3] |= (1 << (place & 7)).astype(np.uint8)
        return out

    def permanent(self, codes, words, out):
        """Write the cohort and the permanent answer for each code."""
        cohorts = drawn_below(self.n_cohorts, words)
        bits = words.scratch(len(codes) * (self.report_width - 1), np.uint8).reshape(len(codes), -1)
        draw_patterns(self.thresholds.wrong, words, bits, Stage.PERMANENT, Stage.PERMANENT_RARE)
        out[:, 0] = cohorts
        np.bitwise_xor(bits, self.masks(codes, cohorts), out=out[:, 1:])

    def instantaneous(self, answers, words, out):
        """Write a report for each permanent answer."""
        t = self.thresholds
        bits = words.scratch(len(answers) * (self.report_width - 1), np.uint8).reshape(len(answers), -1)
        draw_patterns(t.low, words, bits)
        out[:, 0], kept = answers[:, 0], answers[:, 1:].copy()
        if t.low + t.high == WORD:  # a bit is wrong as often where it is 1
            np.bitwise_xor(bits, kept, out=out[:, 1:])
            return
        out[:, 1:] = bits & ~kept
        draw_patterns(WORD - t.high, words, bits, Stage.SECOND, Stage.SECOND_RARE)
        out[:, 1:] |= ~bits & kept

    def privatize(self, codes, words, out):
        """Write a first report for each code: of a permanent answer that nobody keeps."""
        answers = np.empty((len(codes), self.report_width), np.uint8)
        self.permanent(codes, words, answers)
        self.instantaneous(answers, words, out)

    def public_part(self, reports):
        """Return the cohort."""
        return reports[:, :1]

    def check_reports(self, reports):
        """Refuse cohorts that do not exist."""
        if int(reports[:, 0].max()) >= self.n_cohorts:
            raise ValueError(f"a report must name a cohort below {self.n_cohorts}")

    def count(self, reports, counts):
        """Add, for the cohort of each report, its bits and one report."""
        self.check_reports(reports)
        order = np.argsort(reports[:, 0], kind="stable")
        ends = np.cumsum(np.bincount(reports[:, 0], minlength=self.n_cohorts))
        rows = counts.reshape(self.n_cohorts, self.n_bits + 1)
        for row, part in zip(rows, np.split(order, ends[:-1])):
            bits = np.zeros(self.n_bits, np.int64)
            unary.count(np.ascontiguousarray(reports[part, 1:]), bits)
            row[:-1] += bits
            row[-1] += len(part)

    # ---------------------------------------------------------------- the exact law

    def support(self, reports):
        """Return 1 where all bits of the value's Bloom filter are 1."""
        out = np.empty((len(reports), self.n_categories), np.uint8)
        for v in range(self.n_categories):
            mask = self.masks(np.full(len(reports), v), reports[:, 0])
            out[:, v] = ((reports[:, 1:] & mask) == mask).all(axis=1)
        return out

    def support_law(self):
        """Return rows of Fractions: by how many bits two Bloom filters share, on average over the cohorts."""
        shared = self._bits(np.arange(self.n_categories)).astype(np.int64)
        rows = [[Fraction(0)] * self.n_categories for _ in range(self.n_categories)]
        for cohort in shared:
            for x, row in enumerate(cohort @ cohort.T):
                for v, both in enumerate(row.tolist()):
                    rows[x][v] += self.bit_one**both * self.bit_zero ** (self.n_hashes - both) / self.n_cohorts
        return rows

    @cached_property
    def _filters(self):
        """All Bloom filters as numbers, ascending."""
        if self.n_bits > 8:
            raise ValueError("the law of more than 8 bits is not enumerated: bits are independent, take 8 of them")
        return np.sort([sum(1 << i for i in bits) for bits in combinations(range(self.n_bits), self.n_hashes)])

    def transition_matrix(self):
        """Return the law of the bits of one report for every Bloom filter, given the cohort; n_bits is 8."""
        rows = []
        for mask in self._filters.tolist():
            row = [Fraction(1)]
            for i in range(self.n_bits):
                one = self.bit_one if mask >> i & 1 else self.bit_zero
                row = [weight * (1 - one) for weight in row] + [weight * one for weight in row]
            rows.append(row)
        return rows

    def law_indices(self, codes, reports):
        """Return (number of the value's Bloom filter in the report's cohort, the bits as a number)."""
        masks = self.masks(codes, reports[:, 0])[:, 0]
        return np.searchsorted(self._filters, masks), reports[:, 1].astype(np.int64)

    def worst_ratio(self):
        """Return the worst ratio of one report: that of two Bloom filters without a common bit."""
        above, below = self.thresholds.odds
        return Fraction(above, below) ** self.n_hashes

    def guessing(self, prior):
        """Return how often the best guess is right, for each value, over all cohorts; n_bits is 8."""
        if self.n_bits > 8:
            return super().guessing(prior)  # refuses
        law, out = np.array(self.transition_matrix(), np.float64), np.zeros(len(prior))
        for cohort in range(self.n_cohorts):
            masks = self.masks(self.input_codes, np.full(len(prior), cohort))[:, 0]
            out += BestGuess(Runs.of_matrix(law[np.searchsorted(self._filters, masks)]), prior).success
        return out / self.n_cohorts

    @property
    def epsilon_infinity(self):
        """Epsilon of any number of reports of one value from one permanent answer: a Fraction rounded up, or inf."""
        wrong = self.thresholds.wrong
        return 2 * self.n_hashes * log_above(Fraction(WORD - wrong, wrong)) if wrong else math.inf

    @property
    def notes(self):
        """What holds of one report, and of more."""
        more = f"{float(self.epsilon_infinity):.4g}" if self.thresholds.wrong else "no finite number"
        return (
            f"The epsilon of RAPPOR is that of one report; of any number of reports of one value, made from one stored "
            f"permanent answer (client_state), it is {more}. A value that changes, and every report whose permanent "
            "answer was not stored, pays again.",
        )

    # ---------------------------------------------------------------- estimates

    def _bits(self, codes):
        """Return the Bloom filters of codes, unpacked: (cohorts, codes, n_bits), uint8."""
        masks = [self.masks(codes, np.full(len(codes), j)) for j in range(self.n_cohorts)]
        return np.unpackbits(np.stack(masks), axis=2, bitorder="little")

    def design(self, codes):
        """Return the regression of bits on these candidates; ValueError where bits cannot tell them apart."""
        if len(codes) > LARGEST_DESIGN:
            raise ValueError(f"categories: RAPPOR decodes at most {LARGEST_DESIGN} candidates at a time")
        return BitRegression(self._bits(codes), float(self.bit_one), float(self.bit_zero))

    @cached_property
    def _all(self):
        return self.design(np.arange(self.n_categories))

    def estimate(self, counts, n):
        """Return the unbiased frequencies of all candidates."""
        if self.n_categories > LARGEST_DESIGN:
            return self.design(range(self.n_categories))  # refuses
        return self._all.estimate(self._rows(counts), n)

    def non_negative(self, counts, n):
        """Return the frequencies of all candidates by regression without negative ones; biased where one is 0."""
        design, wanted = self._all.weighted(self._rows(counts), n)
        return nnls(design, wanted)[0]

    def estimate_of(self, codes, counts, n):
        """Return the unbiased frequencies of these candidates, if nobody holds another value."""
        return self.design(codes).estimate(self._rows(counts), n)

    def error_of(self, codes, f, counts, n):
        """Return the standard errors of the frequencies f of these candidates."""
        at_zero, slope = self.design(codes).line(f)
        return np.sqrt(np.maximum(at_zero + slope * np.clip(f, 0.0, 1.0), 0.0) / n)

    def variance(self, n, f):
        """Return the exact variance of `estimate`, f being the frequencies of all candidates; of one, others alike."""
        f = np.asarray(f, np.float64)
        if f.ndim:
            return f @ self._all.variances / n
        at_zero, slope = self._all.line(np.full(self.n_categories, 1 / self.n_categories))
        return (at_zero + slope * f) / n

    def variance_line(self, counts, n):
        """Return the lines of n times the variance: what others hold is as the counts have it."""
        return self._all.line(self.estimate(counts, n))

    def _rows(self, counts):
        return counts.reshape(self.n_cohorts, self.n_bits + 1)


def _share(value, name):
    """Return a probability as the exact Fraction that it prints as, or None."""
    if value is None:
        return None
    value = canonical_amount(value, name)
    if value > 1:
        raise ValueError(f"{name} must be None or a probability")
    return value


class RAPPORFrequencyEstimator(OpenFrequencyEstimator):
    """Frequencies by RAPPOR: bits of a Bloom filter, randomised once for ever and again in each report.

    For values that are collected again and again: a client that keeps its permanent answer (`client_state`) may report
    as often as it likes, and all of its reports together tell no more than that answer. For one report a user others
    are more accurate: `OUEFrequencyEstimator` where the values are listed, `CMSFrequencyEstimator` where they are not.

    With ``categories=None``, or None in place of a column's list, a column is open: any string, bytes, number or bool
    may be held, and enters by a public 32-bit hash; `estimate` decodes candidates, as `frequencies_` and `transform`
    need a list.

    **Privacy.** epsilon-local differential privacy for one report, exact (integer thresholds, both directions, proof in
    ``rappor.md``), neighbours: any two rows of one user; no other party is trusted. That is what `privacy_` states and
    a ledger is charged with for each report. Any number of reports of one value, made from one stored permanent answer,
    have `epsilon_infinity_` together, 2 n_hashes ln((1 - f/2) / (f/2)) by the realised thresholds; a user whose value
    changes needs another answer, and pays it again. The cohort is public and drawn without looking at the value.

    **Utility.** Unbiased, by least squares of the bits of all cohorts on the Bloom filters of the candidates, weighted
    by public weights, provided that nobody holds a value that is not among the candidates (bits that such values share
    with candidates count for these). `variance` of the randomizer is exact; with more candidates for the same bits it
    grows, and where bits cannot tell candidates apart they are refused. ``postprocess="nnls"`` regresses without
    negative frequencies: a smaller error, and biased upwards where a frequency is 0; standard errors and intervals are
    those of the unbiased estimate.

    **Complexity.** O(n_bits) a user and at the server; decoding d candidates takes O(d^2 n_bits n_cohorts), d up to
    4,096; n_bits + log2(n_cohorts) bits sent.

    {parameters}
    References
    ----------
    U. Erlingsson, V. Pihur, A. Korolova, "RAPPOR: Randomized aggregatable privacy-preserving ordinal response", CCS
    2014, sections 2 to 4 (theorems 1 and 2); decoding by exact linear estimates is derived in ``rappor.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import RAPPORFrequencyEstimator
    >>> X = np.repeat([[0], [1], [2]], [5000, 3000, 2000], axis=0)
    >>> est = RAPPORFrequencyEstimator(4.0, categories=[[0, 1, 2]], random_state=0)
    >>> np.abs(est.fit(X).frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.1
    np.True_
    >>> state = est.client_state(X)
    >>> monday, tuesday = est.privatize(X, state=state), est.privatize(X, state=state)
    """

    _randomizer = RAPPOR
    _test_values = {"n_bits": [16], "n_hashes": [1, 3], "n_cohorts": [5], "f": [0.3], "p": [0.3], "q": [0.7]}
    _more_parameters = """
    n_bits : int, default=128
        Bits of a Bloom filter, a multiple of 8, from 8 to 65,536.
    n_hashes : int, default=2
        Bits that a value sets, from 1 to 32 and at most n_bits / 2.
    n_cohorts : int, default=8
        Groups of users, from 1 to 256, each with Bloom filters of its own.
    f : float, default=None
        A permanent bit is a fair coin with this probability, in [0, 1). None: as much as makes `epsilon_infinity_`
        twice epsilon (or, where p and q are given, what they need).
    p, q : float, default=None
        Probabilities that a report has a 1 where the permanent answer has a 0, and a 1; p below q. None: as far apart
        as epsilon allows for one report, and p = 1 - q where neither is given.
    """

    def __init__(self, epsilon=1.0, *, categories="auto", n_bits=128, n_hashes=2, n_cohorts=8, f=None, p=None, q=None,
                 postprocess=None, sparse_output=False, ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.n_bits = n_bits
        self.n_hashes = n_hashes
        self.n_cohorts = n_cohorts
        self.f = f
        self.p = p
        self.q = q

    def client_state(self, X):
        """Return the permanent answers of the rows of X, which clients keep; nothing is released or charged.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ClientState
            Secret. For `privatize`, as often as these rows hold the same values.
        """
        data, columns, _ = self._read(X)
        source = WordSource(self.random_state)
        answers = step_of(columns, "permanent").randomize(data, source, 0, self.n_jobs)
        return ClientState(tuple(np.ascontiguousarray(answers[:, part]) for part in columns.slices),
                           tuple(columns.laws))

    def privatize(self, X, state=None):
        """Randomise raw rows into reports, on the user's side.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
        state : ClientState, default=None
            What `client_state` returned for these rows: the reports are made from it, and of X only the number of rows
            matters. None: every row gets a new permanent answer, which nobody keeps.

        Returns
        -------
        ndarray of uint8 of shape (n_rows, width)
            C-contiguous, columns side by side; all that a server needs.

        Notes
        -----
        Each call is charged epsilon for these rows, also beyond `epsilon_infinity_`.
        """
        if state is None:
            return super().privatize(X)
        if not isinstance(state, ClientState):
            raise ValueError("state must be what client_state returned, or None")
        data, columns, _ = self._read(X)
        state.check(columns.laws, len(data[0]))
        source = self._pay(columns, len(data[0]))
        return step_of(columns, "instantaneous").randomize(state.answers, source, 0, self.n_jobs)

    @property
    def epsilon_infinity_(self):
        """Epsilon of any number of reports of a row from one stored `client_state`, all columns together."""
        return sum(law.epsilon_infinity for law in self._columns_now().laws)

    @property
    def frequencies_(self):
        """Estimated frequencies, one array per column."""
        if self.postprocess != "nnls":
            return super().frequencies_
        self._check_fitted()
        self._check_closed()
        return [law.non_negative(c, self._n_users) for law, c in zip(self.randomizers_, self._counts)]

    def _check_postprocess(self):
        if self.postprocess != "nnls":
            super()._check_postprocess()

    @staticmethod
    def _typical_parameters():
        return {"n_cohorts": 16}

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 2.0, "categories": [[0, 1, 2, 3]], "n_bits": 8, "n_hashes": 1, "n_cohorts": 2},
            {"epsilon": 6.0, "categories": [["a", "b", "c"], [False, True]], "n_bits": 8, "n_cohorts": 4, "f": 0.125,
             "q": 0.75},
        ]
