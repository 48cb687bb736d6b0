"""Split and mix: each user's number, with a little noise, is cut into shares that only tell the sum of all."""

import math
from fractions import Fraction

import numpy as np

from dpestim._core import ikos
from dpestim.privacy.rounding import OUTWARD, float_down
from dpestim.rng import Stage
from dpestim.shuffle.law import ONE
from dpestim.shuffle.sums.law import SumLaw
from dpestim.shuffle.sums.polya import epsilon_of_share, polya_noise
from dpestim.shuffle.sums.shares import least_shares, shares_distance

#: What shares are added up by: a word, so that no number of users in sight makes a sum wrap round.
MODULUS = 1 << 64
#: The most steps of the grid, and sums in them.
MOST_STEPS, MOST_SUM = 1 << 30, 1 << 62
#: Sums of a few numbers of at most 1 are moved outward by this part.
_UP = 1 + 1e-9
#: Standard deviations beyond which no noise is (a part of 1e-24): only shares that are missing lead there.
_FAR = 40


class IKOSLaw(SumLaw):
    """Shares of a number on a grid, plus the user's part of noise that is discrete Laplace in all.

    Parameters
    ----------
    grid : int, default=None
        Steps between the bounds, a power of two up to 2^30. None: the least of at least 4 epsilon sqrt(n_users), where
        rounding adds less than 1 % to the variance of the noise.

    Notes
    -----
    A user takes O(shares), and about ``1 / n_honest`` of them the time of a jump of the noise; the analyser adds words.
    The number of shares falls with the number of users: 16 for 100, 10 for 10,000, 7 for a million, at epsilon = 1 and
    delta = 1e-6.

    References
    ----------
    Ishai, Kushilevitz, Ostrovsky, Sahai (2006), "Cryptography from anonymity", FOCS. Balle, Bell, Gascon, Nissim
    (2020), "Private summation in the multi-message shuffle model", CCS. Ghazi, Manurangsi, Pagh, Velingker (2020),
    "Private aggregation from fewer anonymous messages", EUROCRYPT. The bound on the number of shares is our own:
    ``ikos.md``.
    """

    #: A user's block takes so little time that Python is felt between blocks of the usual size.
    block_words = 1 << 18
    report_dtype = np.dtype(np.uint64)
    n_counts = 1
    not_enumerated = "a share is any of 2^64 words"
    #: A user's shares tell the number to whoever knows which they are.
    local_ratio = math.inf

    def __init__(self, epsilon, delta, n_users, colluding, grid=None):
        super().__init__(epsilon, delta, n_users, colluding)
        if self.n_honest < 2:
            raise ValueError("n_users must exceed colluding by at least 2, because the shares of one sample are not "
                             "hidden: declare more users")
        if grid is None:
            grid = 1 << max(0, math.ceil(math.log2(4 * float(self.epsilon) * math.sqrt(n_users))))
        elif isinstance(grid, bool) or not isinstance(grid, int) or not 1 <= grid <= MOST_STEPS or grid & (grid - 1):
            raise ValueError(f"grid must be None or a power of two from 1 to {MOST_STEPS}")
        if grid > MOST_STEPS or grid * n_users > MOST_SUM:
            raise ValueError("n_users must be smaller, because sums would not fit 64 bits: take fewer users, or a "
                             "coarser grid")
        self.steps = grid
        self._epsilon = float_down(self.epsilon)  # what the noise keeps: at least what it is asked for, as a float
        self.noise = polya_noise(Fraction(self._epsilon) / grid, self.n_honest)
        distance = float_down(self.delta) / (1 + math.exp(self._epsilon)) / _UP**2 - self.noise.distance
        if distance <= 0:
            raise ValueError("delta is too small, or epsilon too large, for shares, whose noise has words of 128 bits: "
                             'take another protocol, such as "cheu"')
        self.report_width = least_shares(distance, self.n_honest, MODULUS)
        self.report_bits = 64 * self.report_width
        self.n_words = self.report_width + 1

    @property
    def notes(self):
        """What shares do and do not hide."""
        distance = self._spread(self.n_honest)
        return (f"Shares in random order reveal only their sum, up to a total variation distance of {distance:.1e}.",)

    def _spread(self, n_honest):
        return shares_distance(n_honest, self.report_width, MODULUS)

    def delta_at(self, epsilon, n_honest):
        """Return the bound of ``ikos.md``: that of the noise, and how far shares and words are from their ideals."""
        n_honest = min(n_honest, self.n_honest)  # (what more users send may be told)
        if n_honest < 2:
            return 1.0
        alone = self._epsilon
        if n_honest < self.n_honest:
            alone = epsilon_of_share(self.noise.rate, self.steps, n_honest / self.n_honest)
        far = (1 + math.exp(alone)) * (self._spread(n_honest) + self.noise.distance) * _UP
        if epsilon >= alone:
            return min(1.0, far)
        if n_honest < self.n_honest:
            return 1.0
        lost = -math.expm1((epsilon - alone) / 2 - math.log(math.cosh(self.noise.rate / 2)))
        return min(1.0, far + lost + OUTWARD)

    @property
    def input_codes(self):
        """The two bounds."""
        return np.array([0, ONE], np.int64)

    @property
    def input_positions(self):
        """Likewise."""
        return np.array([0.0, 1.0])

    def privatize(self, codes, words, out):
        """Write the shares of each number."""
        rows, noise = self.noise.draw(words)
        places = ONE.bit_length() - self.steps.bit_length()
        drawn = words.dense(Stage.RESPONSE, self.report_width - 1)
        ikos.shares(codes, words.dense(Stage.ROUNDING, 1), places, drawn, out)
        out[rows, -1] += noise.view(np.uint64)

    def check_reports(self, reports):
        """Refuse nothing: any word may be a share."""

    def count(self, reports, counts):
        """Add all shares, modulo 2^64."""
        counts.view(np.uint64)[:1] += reports.sum(dtype=np.uint64)

    def total(self, counts, n):
        """Return the estimated sum of positions."""
        total = float(counts[0]) / self.steps
        if abs(total - n / 2) > n / 2 + _FAR * math.sqrt(self.variance(n)):
            raise ValueError("messages must be all messages that users sent, unchanged, and some shares are missing or "
                             "changed: collect the batch again")
        return total

    def variance(self, n, counts=None):
        """Return its variance: that of the noise of n users, and that of rounding at worst."""
        rate = float(self.noise.rate)
        noise = 1 / (2 * math.sinh(rate / 2) ** 2)  # 2 alpha / (1 - alpha)^2
        return (n / self.n_honest * noise + n / 4) / self.steps**2
