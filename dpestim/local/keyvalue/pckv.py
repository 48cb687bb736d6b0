"""PCKV: one of a user's pairs is sampled after padding, and a noisy report is made of it."""

import math
from fractions import Fraction
from itertools import product

import numpy as np

from dpestim._core import grr, keyvalue, unary
from dpestim.inputs import smallest_dtype
from dpestim.local.constants import plain_value
from dpestim.local.fields import Field
from dpestim.local.keyvalue.estimator import KeyValueEstimator
from dpestim.local.keyvalue.law import STEPS, Cell, KeyValueRandomizer
from dpestim.local.patterns import draw_patterns, words_for
from dpestim.local.reports import CodeReports
from dpestim.privacy.exact import WORD, uses_enough
from dpestim.privacy.key_value_weights import pckv_code_weights, pckv_unary_weights
from dpestim.rng import Stage

#: A set's slots are numbered in 32 bits.
LARGEST_PADDING = 1 << 24


def slots_of(padding_length, n_keys):
    """Return how many slots there are, or raise ValueError: nobody can hold more than all keys."""
    if padding_length is None:
        raise ValueError("padding_length must be declared: a public number of pairs that nearly all users do not "
                         "exceed (users with more pairs have less weight)")
    if isinstance(padding_length, bool) or not isinstance(padding_length, int | np.integer) or (
        not 1 <= padding_length <= LARGEST_PADDING
    ):
        raise ValueError(f"padding_length must be an integer from 1 to {LARGEST_PADDING}")
    return min(int(padding_length), n_keys)


class Sampled(KeyValueRandomizer):
    """Base of both variants: what is sampled is a code, 2 key + (1 where the sign is minus), or a slot left empty."""

    def __init__(self, epsilon, n_keys, padding_length=1):
        super().__init__(epsilon, n_keys)
        self.length = slots_of(padding_length, n_keys)

    def tallies(self, counts, n):
        """Return (n for each key, reports that say plus, reports that say minus)."""
        return np.full(self.n_keys, float(n)), *np.float64(self.signs(counts))

    def choose(self, rows, words, out):
        """Write the sampled codes of rows, by two words each."""
        keyvalue.choose(rows.start, rows.index, rows.places, words, self.length, self.n_keys, out)

    def code_law(self, pairs):
        """Return the law of what is sampled of a set, a dict from codes to Fractions."""
        law, keys = {}, sorted(pairs)
        for slot, weight in enumerate(self.slots(max(len(keys), self.length))):
            if slot < len(keys):
                plus = Fraction(pairs[keys[slot]], STEPS)
                law[2 * keys[slot]], law[2 * keys[slot] + 1] = weight * plus, weight * (1 - plus)
            else:
                law[2 * self.n_keys + slot] = weight
        return law

    def outcome_law(self, pairs):
        """Return the law of the report of a set."""
        law = self.code_law(pairs)
        parts = [[weight * p for p in self.answers(code)] for code, weight in law.items() if weight]
        return [sum(column) for column in zip(*parts)]


class PCKVUnary(Sampled):
    """One cell for each key, on or off, with a sign where it is on: two planes of bits, 2 ceil(d / 8) bytes."""

    report_dtype = np.dtype(np.uint8)
    block_words = 1 << 18

    def __init__(self, epsilon, n_keys, padding_length=1):
        super().__init__(epsilon, n_keys, padding_length)
        self.keep, self.other = pckv_unary_weights(self.epsilon)
        self._width = (n_keys + 7) // 8
        self.report_width, self.report_bits, self.n_counts = 2 * self._width, 2 * n_keys, 2 * n_keys
        self._coins = 2 + (self._width + 7) // 8
        self.n_words = words_for(self._width) + self._coins
        p = Fraction(self.keep, WORD)
        self.cell = Cell(p / 2, (1 - p) / 2, Fraction(self.other, WORD))
        if not uses_enough(p, 1 - p, self.epsilon):
            self.slack = "a sign's probability is a multiple of 2**-64, which is coarser than this epsilon needs"

    def privatize(self, codes, words, out):
        """Write the planes of each row: 16 random bits decide on eight cells, and one on the sign of each."""
        n = len(codes)
        on = words.scratch(n * self._width, np.uint8)[: n * self._width].reshape(n, self._width)
        drawn = draw_patterns(2 * self.other, words, on)
        coins = words.dense(Stage.COINS, self._coins).reshape(n, self._coins)
        chosen = np.empty(n, np.uint32)
        self.choose(codes, np.stack([drawn[:, 0], coins[:, 0]], axis=1), chosen)
        keyvalue.planes(chosen, on, coins, self.keep, self.n_keys, out)

    @property
    def fields(self):
        """Which cells are on, and which of these say plus."""
        return Field("on", 1, None, self.n_keys, packed=True), Field("plus", 1, None, self.n_keys, packed=True)

    def constants(self):
        """Return how many slots there are, and of 2^64 words `keep` that keep a sign, `other` that turn on each sign.

        The own cell is on by a fair coin; every other one is on with probability 2 `other` / 2^64, and its sign is a
        fair coin.
        """
        return {"length": self.length, "keep": self.keep, "other": self.other}

    def check_reports(self, reports):
        """Refuse bits beyond the keys, and signs of cells that are off."""
        on, plus = reports[:, : self._width], reports[:, self._width :]
        if (plus & ~on).any() or (self.n_keys % 8 and (on[:, -1] >> (self.n_keys % 8)).any()):
            raise ValueError(f"a report must have signs only where cells are on, and {self.n_keys} cells")

    def count(self, reports, counts):
        """Add how many reports are on in each cell, then how many say plus."""
        sums = np.zeros(8 * self.report_width, np.int64)
        unary.count(reports, sums)
        d, half = self.n_keys, 8 * self._width
        counts[:d] += sums[:d]
        counts[d:] += sums[half : half + d]

    def signs(self, counts):
        """Return (reports that say plus, that say minus) of each key."""
        on, plus = counts[: self.n_keys], counts[self.n_keys :]
        return plus, on - plus

    def answers(self, code):
        """Return the law of the report of a code, over all reports: the number of each has a digit (off, plus, minus)
        for each key, the first key's last."""
        right, turned, other = self.cell
        rest, own = (1 - 2 * other, other, other), (1 - right - turned, right, turned)
        cells = [rest] * self.n_keys
        if code < 2 * self.n_keys:
            cells[code // 2] = own if code % 2 == 0 else (own[0], own[2], own[1])
        law = []
        for digits in product(range(3), repeat=self.n_keys):
            weight = Fraction(1)
            for cell, digit in zip(reversed(cells), digits):
                weight *= cell[digit]
            law.append(weight)
        return law

    def worst_ratio(self):
        """Return the ratio for two sets that differ in a key, or else in a sign."""
        right, turned, other = self.cell
        if self.n_keys == 1:
            return right / turned
        off, rest = 1 - right - turned, 1 - 2 * other
        return max(right / turned, max(right / other, off / rest) * max(other / turned, rest / off))

    def outcome_of(self, reports):
        """Return the number of each report."""
        on, plus = (np.unpackbits(part, axis=1, bitorder="little", count=self.n_keys).astype(np.int64)
                    for part in (reports[:, : self._width], reports[:, self._width :]))
        return (2 * on - plus) @ 3 ** np.arange(self.n_keys)


class PCKVCodes(CodeReports, Sampled):
    """Randomised response over all keys with signs, and the slots that may be left empty."""

    def constants(self):
        """Return how many slots there are, and the `weights` of randomised response, as `GRR` has them."""
        return {"length": self.length, "weights": plain_value(self.weights)}

    def __init__(self, epsilon, n_keys, padding_length=1):
        super().__init__(epsilon, n_keys, padding_length)
        self.n_counts = 2 * n_keys + self.length
        self.weights = pckv_code_weights(self.epsilon, self.n_counts, self.length)
        self.report_dtype = smallest_dtype(self.n_counts)
        self.n_words = 2 + self.weights.n_words
        right, other = Fraction(self.weights.keep, self.weights.total), Fraction(self.weights.other, self.weights.total)
        if float(right) <= float(other):
            raise ValueError(f"epsilon is too small to distinguish {self.n_counts} codes: take a larger epsilon, or "
                             "fewer keys")
        self.cell = Cell(right, other, other)

    def privatize(self, codes, words, out):
        """Write one code for each row."""
        n = len(codes)
        chosen = np.empty(n, np.uint32)
        self.choose(codes, words.dense(Stage.COINS, 2).reshape(n, 2), chosen)
        drawn = words.dense(Stage.RESPONSE, self.weights.n_words)
        grr.privatize(chosen.astype(self.report_dtype), drawn, self.weights.keep, self.weights.other, out.reshape(-1))

    def signs(self, counts):
        """Return (reports that say plus, that say minus) of each key."""
        pairs = counts[: 2 * self.n_keys]
        return pairs[::2], pairs[1::2]

    def answers(self, code):
        """Return the law of the report of a code, over all codes."""
        return [self.cell.right if code == y else self.cell.other for y in range(self.n_counts)]

    def worst_ratio(self):
        """Return the ratio of a code that is sampled as often as can be, and one that is not."""
        return 1 + Fraction(-(-WORD // self.length), WORD) * (self.cell.right / self.cell.other - 1)

    def outcome_of(self, reports):
        """Return the codes."""
        return reports[:, 0].astype(np.int64)


_LAWS = {"ue": PCKVUnary, "grr": PCKVCodes}


class PCKVEstimator(KeyValueEstimator):
    """Estimate frequencies and means of keys by padding and sampling (PCKV).

    Each user samples one pair, of `padding_length` slots or of all pairs where these are more, rounds its value to a
    sign, and reports both in noise. Every report tells of every key, so that this is far more accurate than
    `PrivKVEstimator` where there are many keys and users hold few of them. "ue" sends a cell for each key; "grr" one
    code, and its sampling hides pairs by itself: with padding length l it has the smaller variance for rare keys where
    there are fewer than 2 l^2 (e^epsilon + 1) - l e^epsilon / 2 of them (``pckv.md``), which is how "auto" chooses.

    **Privacy.** epsilon-local differential privacy for the whole set of a user, how many pairs it has included; exact
    (integer thresholds, every ratio, proof in ``pckv.md``), neighbours: any two sets of one user; no other party is
    trusted. The padding length is public, and must be chosen without looking at data.

    **Utility.** Frequencies are unbiased for users with at most `padding_length` pairs; each of a user with s more
    counts padding_length / s only, and no interval knows of that. The variance grows with its square. Means are ratios,
    whose bias falls as 1 / n, and clipped to the bounds: means at a bound are off by some half of a standard error.

    **Complexity.** "ue": O(d) bit operations a user and a report, 2 d bits sent; "grr": O(1), and log2(2 d +
    padding_length) bits.

    {parameters}
    References
    ----------
    X. Gu, M. Li, Y. Cheng, L. Xiong, Y. Cao, "PCKV: locally differentially private correlated key-value data collection
    with optimized utility", USENIX Security 2020, algorithms 1 to 4 and theorem 3. The variance has a term for the
    sampling that theorem 4 leaves out; "grr" has one code for an empty slot instead of two (see ``pckv.md``).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from dpestim.local import PCKVEstimator
    >>> ratings = np.tile([[5.0, 1.0, 0.0], [4.0, 0.0, 0.0]], (10_000, 1))  # 0: no rating
    >>> est = PCKVEstimator(2.0, bounds=(1, 5), padding_length=2, random_state=0).fit(csr_array(ratings))
    >>> np.abs(est.frequencies_ - [1.0, 0.5, 0.0]).max() < 0.05
    np.True_
    >>> np.abs(est.means_[:2] - [4.5, 1.0]).max() < 0.3
    np.True_
    """

    _more_parameters = """
    variant : {"auto", "ue", "grr"}, default="auto"
        How the sampled pair is reported: unary encoding, or randomised response. "auto" takes what has the smaller
        variance for rare keys, by public numbers: the keys, the padding length and epsilon.
    padding_length : int
        Slots of a user, a public number from 1 to 2^24, which must be declared. Take how many pairs nearly all users
        have at most, from what is known without these data: smaller and the frequencies of those who hold more are
        too low, larger and all errors grow in proportion. 1 suits users with one pair each; more than the number of
        keys counts as that number.
    """
    _test_values = {"padding_length": [3], "variant": ["grr", "ue"]}
    _chooses = frozenset({"variant"})

    def __init__(self, epsilon=1.0, *, keys=None, bounds=(-1.0, 1.0), variant="auto", padding_length=None, ledger=None,
                 random_state=None, n_jobs=None):
        super().__init__(epsilon, keys=keys, bounds=bounds, ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.variant = variant
        self.padding_length = padding_length

    @property
    def _randomizer(self):
        if not isinstance(self.variant, str) or self.variant not in ("auto", *_LAWS):
            raise ValueError('variant must be "auto", "ue" or "grr"')
        return _LAWS.get(self.variant, PCKVUnary)  # (the parameters of both are the same)

    def _law(self, n_keys):
        law = self._randomizer
        if self.variant == "auto":
            length, e = slots_of(self.padding_length, n_keys), math.exp(min(self._share(1), 80))
            law = PCKVCodes if n_keys < 2 * length**2 * (e + 1) - length * e / 2 else PCKVUnary
        return law.make(self._share(1), n_keys, **self._law_arguments(0, 1, None))

    @staticmethod
    def _typical_parameters():
        return {"padding_length": 1}

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "keys": ["a", "b"], "padding_length": 2, "variant": "ue"},
            {"epsilon": 2.0, "keys": 3, "bounds": (1.0, 5.0), "variant": "grr", "padding_length": 2},
            {"epsilon": 1.0, "keys": [7], "padding_length": 1},
            {"epsilon": 0.5, "keys": 3, "padding_length": 1, "variant": "ue"},
        ]
