"""Hadamard response: the report is a symbol of a half of the alphabet that a Hadamard row picks for the value."""

from fractions import Fraction

import numpy as np

from dpestim._core import hadamard
from dpestim.inputs import smallest_dtype
from dpestim.local import pivots
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.law import LARGEST_MATRIX, CategoricalRandomizer
from dpestim.local.constants import constants_of
from dpestim.local.guessing import TIE, levels_of
from dpestim.local.reports import CodeReports
from dpestim.privacy.category_weights import grr_weights
from dpestim.privacy.exact import exp_lower
from dpestim.rng import Stage


class HR(CodeReports, CategoricalRandomizer):
    """Hadamard response in block form; a report is a symbol, block * size + place.

    There are B blocks of 2 s symbols. Value x has block x mod B and, in it, row x // B + 1 of the Hadamard matrix,
    whose +1 entries are the half C_x of the block's symbols that support x. Counts are a histogram of symbols.
    """

    def __init__(self, epsilon, n_categories):
        super().__init__(epsilon, n_categories)
        self.n_blocks = best_n_blocks(self.epsilon, n_categories)
        self.half = 1 << (-(-n_categories // self.n_blocks)).bit_length() - 1  # rows 1 ... ceil(d / B) of 2 s
        self.n_counts = self.n_blocks * 2 * self.half
        if self.n_counts > 1 << 32:
            raise ValueError("categories: Hadamard response takes at most 2**31 values or a little more")
        # randomised response over the 2 B halves, with the low bits of the word left to pick within the half
        self.weights = grr_weights(self.epsilon, 2 * self.n_blocks, self.half)
        self.n_words = self.weights.n_words
        self.report_dtype = smallest_dtype(self.n_counts)
        own, other = (Fraction(w, self.weights.total) for w in (self.weights.keep, self.weights.other))
        self.p_star, self.q_star = own, (own + other) / 2 if self.n_blocks == 1 else other
        self._own, self._other = own, other

    def constants(self):
        """Return `n_blocks` blocks of 2 `half` symbols, and the `weights` of the halves of blocks.

        Of 2^(64 n_words) / share draws `keep` name the own half, and `other` each of the 2 n_blocks - 1 others; the low
        bits of the word, of which there are log2(share), pick within a half.
        """
        return constants_of(self)

    def privatize(self, codes, words, out):
        """Write one symbol for each code."""
        drawn = words.dense(Stage.RESPONSE, self.n_words)
        log_blocks, log_half = self.n_blocks.bit_length() - 1, self.half.bit_length() - 1
        hadamard.privatize(codes, drawn, self.weights.keep, self.weights.other, log_blocks, log_half, out.reshape(-1))

    def support(self, reports):
        """Return 1 where the symbol is in the half C_x of the value."""
        out = np.empty((len(reports), self.n_categories), np.uint8)
        log_blocks, log_half = self.n_blocks.bit_length() - 1, self.half.bit_length() - 1
        hadamard.support(reports.reshape(-1), log_blocks, log_half, out)
        return out

    def supporters(self, counts):
        """Return the reports in the half C_x of each value: half of the transform and of the reports in its block."""
        in_block = counts.reshape(self.n_blocks, -1).sum(axis=1)[np.arange(self.n_categories) % self.n_blocks]
        return (self._transformed(counts, np.int64) + in_block) // 2

    def estimate(self, counts, n):
        """Return (2 share of C_x - share of x's block) / (probability of the own half - of another half)."""
        # sums of n reports stay below n in size, so 32 bits do for all but the largest n, at half the memory traffic
        return self._transformed(counts, np.int32 if n < 1 << 31 else np.int64) / (n * self._gap)

    def _transformed(self, counts, dtype):
        """Return, for each value, its supporters less the other reports in its block."""
        sums = counts.astype(dtype).reshape(self.n_blocks, 2 * self.half)
        hadamard.fwht(sums)
        return sums[:, 1:].T.reshape(-1)[: self.n_categories]  # value x stands at row x // B, block x mod B

    def variance(self, n, f):
        """Return the exact variance of `estimate`; it depends on the share of the value's whole block."""
        f = np.broadcast_to(np.asarray(f, dtype=np.float64), self.n_categories)
        share = np.clip(f.sum(), 0.0, 1.0)
        if self.n_blocks > 1:
            place = np.arange(f.size) & (self.n_blocks - 1)
            share = np.clip(np.bincount(place, weights=f, minlength=self.n_blocks), 0.0, 1.0)[place]
        return self._variance(n, f, share)

    def even_variance(self, n):
        """Return (mean, largest) over the values: those of a block have the same, and blocks two sizes."""
        d, (size, n_larger) = self.n_categories, divmod(self.n_categories, self.n_blocks)
        kinds = [(size, self.n_blocks - n_larger), (size + 1, n_larger)]
        each = [(held * blocks / d, float(self._variance(n, 1 / d, held / d)))
                for held, blocks in kinds if held * blocks]
        return sum(part * found for part, found in each), max(found for _, found in each)

    def _variance(self, n, f, share):
        """Return the variance of a value that a share f holds, in a block that `share` hold."""
        both = (self._own + self._other) / (self._own - self._other) ** 2
        none = float(2 * self._other / (self._own - self._other) ** 2)
        # (own, of the same block, and others: a difference of sums would leave only rounding where epsilon is large)
        return (f * float(both - 1) + (share - f) * float(both) + (1 - share) * none) / n

    def variance_line(self, counts, n):
        """Return the line of n times the variance: the share of reports in a value's block is seen, not estimated.

        It is kept between what it would be if nobody's, and if everybody's, value were in the block.
        """
        in_block = counts.reshape(self.n_blocks, -1).sum(axis=1) / n
        in_block = np.clip(in_block, float(2 * self._other), float(self._own + self._other))
        return in_block[np.arange(self.n_categories) % self.n_blocks] / self._gap**2, -1.0

    def likelihood(self, counts, n):
        """Return what `dpestim.postprocessing.ibu` asks for: the whole law, by transforms."""
        return {"law": Symbols(self), "counts": counts}

    @property
    def _gap(self):
        return float(self._own - self._other)

    def reach(self, goal):
        """Return the least and the most that one symbol adds to n times the estimated share of some values."""
        if self.n_counts > LARGEST_MATRIX:
            raise ValueError("categories are too many for this audit of Hadamard response: take at most about 2**23")
        rows = np.zeros((self.n_blocks, 2 * self.half), np.int64)
        rows[goal % self.n_blocks, goal // self.n_blocks + 1] = 1
        hadamard.fwht(rows)
        return tuple(int(told) / (self._own - self._other) for told in (rows.min(), rows.max()))

    def known_counts(self, counts, n):
        """Return how many symbols have a +1 in each row that no value has: half of them, whatever is held."""
        first = -(-self.n_categories // self.n_blocks) + 1
        if first == 2 * self.half or self.n_counts > LARGEST_MATRIX:
            return []
        sums = counts.astype(np.int64).reshape(self.n_blocks, -1)
        hadamard.fwht(sums)
        plus = (n + sums[:, first:].sum(axis=0)) // 2
        return [pivots.cells("symbols with +1 in a row without a value", plus, np.full(len(plus), 0.5), n,
                             lambda k: f"row {first + k}")]

    def transition_matrix(self):
        """Return the d x K law of the symbols."""
        rows = []
        for x in range(self.n_categories):
            own_block, j = x % self.n_blocks, x // self.n_blocks + 1
            rows.append(
                [
                    (self._own if block == own_block and (j & t).bit_count() % 2 == 0 else self._other) / self.half
                    for block in range(self.n_blocks)
                    for t in range(2 * self.half)
                ]
            )
        return rows

    @property
    def support_odds(self):
        """How much likelier a symbol is for a value that it supports."""
        return self._own, self._other

    def guessing(self, prior):
        """Return how often the best guess is right, for each value: a transform for each level of the prior it takes.

        A symbol's best supporters are those of the first level that has any; how many that are, and to whom a symbol
        counts, are sums over the rows of a Hadamard matrix.
        """
        level, values = levels_of(prior)
        own, other = float(self._own), float(self._other)
        success, by_all = np.zeros(len(prior)), 0.0  # (by_all: what every value of the first level wins unsupported)
        first = level == 0
        for block in range(self.n_blocks):
            mine = level[block :: self.n_blocks]
            rows = np.zeros(2 * self.half)
            open_ = np.ones(2 * self.half, bool)  # symbols whose best supporters are not found yet
            for at in np.unique(mine):
                if not open_.any() or own * values[at] < other * values[0] * (1 - TIE):
                    break  # (for what is left the likeliest values are the better guess)
                holders = np.flatnonzero(mine == at)
                rows[:] = 0.0
                rows[holders + 1] = 1.0
                n_tied = np.rint((len(holders) + walsh_hadamard(rows)) / 2)
                here = open_ & (n_tied > 0)
                ties = at > 0 and other * values[0] >= own * values[at] * (1 - TIE)
                n_tied += np.count_nonzero(first) if ties else 0
                share = np.where(here, 1 / np.maximum(n_tied, 1.0), 0.0) / self.half
                counted = (share.sum() + walsh_hadamard(share)) / 2
                success[block :: self.n_blocks][holders] += own * counted[holders + 1]
                by_all += other * share.sum() if ties else 0.0
                open_ &= ~here
            # no supporter scores as much: the first level's values do not support these symbols, all of it ties
            by_all += other * np.count_nonzero(open_) / self.half / np.count_nonzero(first)
        success[first] += by_all
        return np.minimum(success, 1.0)

    def support_law(self):
        """Return Pr[report of x supports v]: own half, half of the own block, or half of another block."""
        same_block = (self._own + self._other) / 2
        d = range(self.n_categories)
        return [
            [
                self._own if x == v else same_block if (x - v) % self.n_blocks == 0 else self._other
                for v in d
            ]
            for x in d
        ]

    def law_indices(self, codes, reports):
        """Return (true value, symbol)."""
        return codes.astype(np.int64), reports[:, 0].astype(np.int64)


class Symbols:
    """The law of the symbols as a channel of expectation maximisation: two transforms an iteration, O(d log d)."""

    def __init__(self, law):
        self._law, self._other, self._more = law, float(law._other) / law.half, law._gap / (2 * law.half)
        x = np.arange(law.n_categories)
        self._block = x % law.n_blocks
        self._place = self._block * 2 * law.half + x // law.n_blocks + 1

    def expected(self, f):
        """Return the probability of each symbol under f."""
        size = 2 * self._law.half
        rows = np.zeros(self._law.n_counts)
        rows[self._place] = f
        in_block = rows.reshape(-1, size).sum(axis=1)
        return self._other * f.sum() + self._more * (np.repeat(in_block, size) + walsh_hadamard(rows, size))

    def steps(self, f, counts, n_steps, smooth):
        """Do iterations on f in place; values have no neighbours, so that nothing is smoothed."""
        size, n = 2 * self._law.half, counts.sum()
        for _ in range(n_steps):
            ratio = counts / np.maximum(self.expected(f), 1e-300)
            seen = ratio.reshape(-1, size).sum(axis=1)[self._block] + walsh_hadamard(ratio, size)[self._place]
            f *= (self._other * ratio.sum() + self._more * seen) / n
            f /= f.sum()


def walsh_hadamard(values, size=None):
    """Return the sums of values[t] (-1)^(number of bits that j and t share), for each j; the size is a power of two.

    Where values are several runs of a size, each is transformed by itself.
    """
    out, width = np.array(values, np.float64), 1
    while width < (len(out) if size is None else size):
        pairs = out.reshape(-1, 2, width)
        out = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
        width *= 2
    return out


def best_n_blocks(epsilon, n_categories):
    """Return the power of two B that minimises (2 + (e^eps - 1) / B)(e^eps + 2 B - 1), FORMULAS 2.7.

    That is the average variance over uniform data; more blocks than values are of no use.
    """
    e = exp_lower(epsilon)
    blocks = [1 << i for i in range((n_categories - 1).bit_length() + 1)]
    return min(blocks, key=lambda b: (2 + (e - 1) / b) * (e + 2 * b - 1))


class HRFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by Hadamard response (HR) in block form.

    Each user sends one symbol of an alphabet of about 2 d symbols. A Hadamard row assigns half of the symbols to the
    user's value; each of these has the largest probability, every other symbol a smaller one. As short as a code, as
    cheap for the user as `GRRFrequencyEstimator`, and the cheapest for the server at large d (a histogram and one fast
    Walsh-Hadamard transform). On average over uniform data its variance is close to that of `OUEFrequencyEstimator` for
    epsilon up to about 1 and up to twice as large above; values that share a block with a very frequent one pay for it
    (Utility).

    **Privacy.** epsilon-local differential privacy for a row, exact (integer weights, both directions, proof in
    ``hr.md``), neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Unbiased; with B blocks and F the share of users whose value is in the same block, the variance of a
    frequency f among n users is ((2 + F (e^eps - 1)) (e^eps + 2 B - 1) / (e^eps - 1)^2 - f) / n.

    **Complexity.** O(1) a user and O(n + d log d) at the server; about log2(d) + 1 bits sent. `fit` of c
    columns: O(c (n + d log d)) time, O(c (n + d)) memory.

    {parameters}
    References
    ----------
    J. Acharya, Z. Sun, H. Zhang, "Hadamard response: estimating distributions
    privately, efficiently, and with little communication", AISTATS 2019, sections 4 and 5; the exact variance and the
    number of blocks are derived in ``hr.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import HRFrequencyEstimator
    >>> X = np.repeat([[0], [1], [2]], [5000, 3000, 2000], axis=0)
    >>> est = HRFrequencyEstimator(1.0, categories=[[0, 1, 2]], random_state=0).fit(X)
    >>> np.abs(est.frequencies_[0] - [0.5, 0.3, 0.2]).max() < 0.07
    np.True_
    """

    _randomizer = HR
