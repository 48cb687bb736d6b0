"""Real sums by bits: a number is so many ones among r bits, and every bit is flipped as in a boolean sum."""

import math
from fractions import Fraction
from math import comb

import numpy as np

from dpestim._core import bits
from dpestim.privacy.exact import WORD, exp_lower
from dpestim.privacy.rounding import float_down
from dpestim.rng import Stage
from dpestim.shuffle.coins import delta_of_bits
from dpestim.shuffle.law import ONE, first_below
from dpestim.shuffle.sums.law import BitMessages, SumLaw

#: Bits a user at most: fixed points of 48 bits, times so many, are words.
MOST_BITS = (1 << 15) - 1
#: Bits of the flipping probability that are looked for.
_PRECISION = 14
#: A law with more messages is not enumerated.
_ENUMERATED = 6


class ManyBits(BitMessages, SumLaw):
    """``r`` bits a user, as many as make the error of rounding small beside that of the noise."""

    def __init__(self, epsilon, delta, n_users, colluding, n_messages=None):
        super().__init__(epsilon, delta, n_users, colluding)
        if n_messages is None:  # rounding has a variance of at most n / (4 r^2), noise of about 25 / epsilon^2
            many = min(MOST_BITS, max(1, math.ceil(float(self.epsilon) * math.sqrt(n_users) / 3)))
            found = [(r, flip) for r in {1, many} if (flip := self._least(r)) is not None]
            if not found:
                raise ValueError("epsilon is too small, because 64-bit words cannot express the noise: take a larger "
                                 "epsilon, or more users")
            n_messages, self.flip = min(found, key=lambda each: self._variance(n_users, *each))
        else:
            if isinstance(n_messages, bool) or not isinstance(n_messages, int) or not 1 <= n_messages <= MOST_BITS:
                raise ValueError(f"n_messages must be None or an integer from 1 to {MOST_BITS}")
            self.flip = self._least(n_messages)
            if self.flip is None:
                raise ValueError(f"n_messages must be smaller, because {self.n_honest} honest users cannot hide that "
                                 "many bits")
        self.report_width = self.report_bits = n_messages
        self.n_words = n_messages + 1
        if n_messages > _ENUMERATED:
            self.not_enumerated = "it has many messages"

    def _least(self, r):
        """Return the least number of words that the bound allows for r bits, to a relative 2^-14, or None."""
        epsilon, delta = float_down(self.epsilon), float_down(self.delta)

        def excess(flip):  # (where the bound is 0 nothing is known but its sign)
            bound = delta_of_bits(epsilon, flip / WORD, self.n_honest - 1, r)
            return math.log(bound / delta) if bound else -1.0

        def fits(flip):
            return excess(flip) <= 0

        high = WORD // 2 - (WORD >> _PRECISION)
        if r == 1:  # with so many a bit needs nobody else
            high = math.ceil(WORD / (exp_lower(self.epsilon) + 1))
        if 2 * high >= WORD or (r > 1 and not fits(high)):
            return None
        while high > 1 << 20 and fits(high // 2):
            high //= 2
        step = max(1, high >> _PRECISION)
        steps = first_below(lambda k: excess(min(high, k * step)), max(1, high // (2 * step)), high // step + 1)
        return min(high, steps * step)

    @property
    def local_ratio(self):
        """Of the probabilities of all bits of a user for 0 and 1."""
        if self.report_width > 4096:
            return math.inf  # (a Fraction of so many digits tells nobody anything)
        return Fraction(WORD - self.flip, self.flip) ** self.report_width

    def delta_at(self, epsilon, n_honest):
        """Return the bound of ``coins.md`` for several bits a user."""
        return delta_of_bits(epsilon, self.flip / WORD, n_honest - 1, self.report_width)

    @property
    def input_codes(self):
        """The numbers that need no rounding, or nearly none."""
        r = self.report_width
        return np.array([ONE * k // r for k in range(r + 1)], np.int64)

    @property
    def input_positions(self):
        """What they stand for."""
        return self.input_codes / ONE

    def message_law(self, code):
        """Return the law of the bits, sorted."""
        r, f = self.report_width, Fraction(self.flip, WORD)
        whole, part = divmod(int(code) * r, ONE)
        law = {}
        for ones, share in ((whole, 1 - Fraction(part, ONE)), (whole + 1, Fraction(part, ONE))):
            if not share:
                continue
            for kept in range(ones + 1):
                for made in range(r - ones + 1):
                    p = comb(ones, kept) * (1 - f) ** kept * f ** (ones - kept)
                    p *= comb(r - ones, made) * f**made * (1 - f) ** (r - ones - made)
                    key = (0,) * (r - kept - made) + (1,) * (kept + made)
                    law[key] = law.get(key, 0) + share * p
        return law

    def privatize(self, codes, words, out):
        """Write the bits of each number."""
        drawn = words.dense(Stage.RESPONSE, self.report_width).reshape(len(codes), -1)
        bits.privatize(codes, words.dense(Stage.ROUNDING, 1), drawn, self.flip, out)

    def total(self, counts, n):
        """Return the estimated sum of positions."""
        flip, r = self.flip / WORD, self.report_width
        return (counts[0] - n * r * flip) / (1 - 2 * flip) / r

    def variance(self, n, counts=None):
        """Return its variance: that of the flips, and at most that of rounding."""
        return self._variance(n, self.report_width, self.flip)

    @staticmethod
    def _variance(n, r, flip):
        flip /= WORD
        return n * flip * (1 - flip) / (1 - 2 * flip) ** 2 / r + n / (4 * r**2)
