"""The boolean sum: every user sends one bit, flipped with a probability that falls with the number of users."""

import math
from fractions import Fraction

import numpy as np

from dpestim._core import binary
from dpestim.local.numbers.column import NumberColumn
from dpestim.privacy.exact import WORD, exp_lower
from dpestim.privacy.rounding import float_down
from dpestim.rng import Stage
from dpestim.shuffle.coins import delta_of_bits
from dpestim.shuffle.law import RARELY, smallest
from dpestim.shuffle.sums.estimator import SumProtocol
from dpestim.shuffle.sums.law import BitMessages, SumLaw

#: Bits of the flipping probability that are looked for: a relative 1e-6.
_PRECISION = 20
_CALIBRATIONS = ("numeric", "paper")


class NoisyBit(BitMessages, SumLaw):
    """A bit, flipped by ``flip`` of 2^64 words: the least that keeps (epsilon, delta), or what the paper says."""

    n_words = report_width = report_bits = 1
    code_dtype = np.dtype(np.uint8)
    block_words = 1 << 18  # as of GRR: a bit takes an eighth of a word where flips are rare

    def __init__(self, epsilon, delta, n_users, colluding, calibration="numeric"):
        super().__init__(epsilon, delta, n_users, colluding)
        if calibration not in _CALIBRATIONS:
            raise ValueError(f"calibration must be one of {_CALIBRATIONS}")
        self.flip = self._of_paper() if calibration == "paper" else self._least()
        if 2 * self.flip >= WORD:
            raise ValueError("epsilon is too small, because 64-bit words cannot express the noise: take a larger "
                             "epsilon, or more users")

    def _least(self):
        """Return the least number of words, to a relative 2^-20, that the bound allows."""
        alone = math.ceil(WORD / (self._odds + 1))  # with so many a bit needs nobody else
        epsilon, delta = float_down(self.epsilon), float_down(self.delta)
        shift = 0
        while alone >> shift > 1 and delta_of_bits(epsilon, (alone >> shift + 1) / WORD, self.n_honest - 1) <= delta:
            shift += 1
        high = alone >> shift
        step = max(1, high >> _PRECISION)
        steps = smallest(lambda k: delta_of_bits(epsilon, k * step / WORD, self.n_honest - 1) <= delta,
                         max(1, high // (2 * step)), high // step + 1)
        return min(alone, steps * step)

    def _of_paper(self):
        n, epsilon, log = self.n_honest, float(self.epsilon), math.log(4 / self.delta)
        if not epsilon < 1:
            raise ValueError('calibration="paper" needs an epsilon below 1 for each column')
        if epsilon >= math.sqrt(192 * log / n):
            coins = 64 * log / epsilon**2
        else:
            coins = n - epsilon * n**1.5 / math.sqrt(432 * log)
        return math.ceil(Fraction(min(coins, n)) / (2 * n) * WORD)

    @property
    def _odds(self):
        """A Fraction of at most e^epsilon."""
        return exp_lower(self.epsilon)

    @property
    def local_ratio(self):
        """Of the probabilities of a bit for the two values."""
        return Fraction(WORD - self.flip, self.flip)

    def delta_at(self, epsilon, n_honest):
        """Return the bound of ``coins.md``, which reveals which bits were no coins."""
        return delta_of_bits(epsilon, self.flip / WORD, n_honest - 1)

    def message_law(self, code):
        """Return the law of the bit."""
        other = Fraction(self.flip, WORD)
        return {(int(code),): 1 - other, (1 - int(code),): other}

    @property
    def input_codes(self):
        """Both values."""
        return np.arange(2, dtype=np.uint8)

    @property
    def input_positions(self):
        """Both values."""
        return np.arange(2.0)

    def privatize(self, codes, words, out):
        """Write a bit for each."""
        out = out.reshape(-1)
        if self.flip > RARELY:
            binary.privatize(codes, words.dense(Stage.RESPONSE, 1), self.flip, WORD - self.flip, out)
            return
        np.bitwise_and(codes, 1, out=out)
        out[words.below(self.flip, Stage.RESPONSE, Stage.RARE)[0]] ^= 1

    def count_sent(self, codes, words, counts):
        """Add the number of ones among the bits that `privatize` would write, without writing them."""
        if self.flip > RARELY:
            out = words.scratch(len(codes), np.uint8)[:, None]
            self.privatize(codes, words, out)
            self.count(out, counts)
            return
        at = words.below(self.flip, Stage.RESPONSE, Stage.RARE)[0]
        counts[0] += np.count_nonzero(codes) + len(at) - 2 * np.count_nonzero(codes[at])

    def total(self, counts, n):
        """Return the estimated number of ones among the values."""
        flip = self.flip / WORD
        return (counts[0] - n * flip) / (1 - 2 * flip)

    def variance(self, n, counts=None):
        """Return its variance, which is the same for all values."""
        flip = self.flip / WORD
        return n * flip * (1 - flip) / (1 - 2 * flip) ** 2


class BitColumn(NumberColumn):
    """One column of zeros and ones."""

    def read(self, values, n_jobs, strict):
        """Return the values; where `strict`, any number of at least 1/2 counts as 1."""
        if strict:
            return values
        if not (_are_bits(values) if values.dtype.kind in "bu" else all(map(_are_bits, _blocks(values)))):
            raise ValueError(f"{self.name} must have no other values than 0 and 1")
        return values.view(bool) if values.dtype == np.uint8 else values

    def coder(self):
        """Return a function from a block of values to bits."""
        return lambda block: np.ascontiguousarray(_above_half(block)).view(np.uint8)


def _above_half(block):
    if block.dtype.kind in "biu":  # (a whole number is not made a float)
        return block if block.dtype.kind == "b" else block > 0
    return block >= 0.5


def _are_bits(block):
    if block.dtype.kind in "bu":
        return block.max(initial=0) <= 1
    return ((block == 0) | (block == 1)).all()


def _blocks(values, size=1 << 16):
    return (values[at : at + size] for at in range(0, len(values), size))


class BooleanSum(SumProtocol):
    """Estimate the number of users who say yes by randomly flipped bits behind a shuffler.

    Each bit is flipped with a probability of about ``8 log(1 / delta) / (n epsilon^2)``, found by a proven numeric
    bound, so that the flipped bits of all users hide the one of each.

    **Privacy.** (epsilon, delta)-differential privacy in the shuffle model, for data sets of equal size that differ in
    one user's row: the shuffler is trusted, the analyser and `colluding` users are not. Without the shuffler a bit
    keeps a local epsilon of ln((1 - f) / f), where f is the probability of a flip; ``privacy_`` says how much.

    **Utility.** ``sum_`` is unbiased, of variance ``n f (1 - f) / (1 - 2 f)^2``, for any values.

    **Complexity.** O(1) and one bit a user; O(n) for the analyser, in constant memory.

    {parameters}
    References
    ----------
    Cheu, Smith, Ullman, Zeber, Zhilyaev (2019), "Distributed differential privacy via shuffling", EUROCRYPT, protocol
    R^0/1 and theorem 4.5 (``calibration="paper"``, whose noise is some ten times what is needed).
    The proofs: ``boolean.md``, ``coins.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.shuffle import BooleanSum
    >>> says_yes = np.arange(100_000) < 30_000
    >>> protocol = BooleanSum(1.0, delta=1e-6, random_state=0).fit(says_yes.reshape(-1, 1))
    >>> protocol.sum_.round(), protocol.standard_error_.round(1)
    (array([30001.]), array([6.5]))
    """

    _randomizer = NoisyBit
    bounds = (0.0, 1.0)
    _more_parameters = """
    calibration : {"numeric", "paper"}, default="numeric"
        How the probability of a flip is found; the paper's formula needs an epsilon below 1.
    """

    def __init__(self, epsilon=1.0, *, delta=None, n_users=None, colluding=0, calibration="numeric", ledger=None,
                 random_state=None, n_jobs=None):
        super().__init__(epsilon, delta=delta, n_users=n_users, colluding=colluding, ledger=ledger,
                         random_state=random_state, n_jobs=n_jobs)
        self.calibration = calibration

    def _column(self, name, law, low, high):
        return BitColumn(name, law, low, high)

    def _is_scalar(self):
        return True

    def _test_data(self, n_rows, seed=0):
        """Return a column of zeros and ones."""
        return np.random.default_rng(seed).integers(0, 2, (n_rows, 1)), None

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "delta": 0.01, "n_users": 4},
                {"epsilon": 3.0, "delta": 0.01, "n_users": 12, "colluding": 2}]
