"""Noise of a release, exact: real numbers whose digits are drawn as they are needed.

A real random number cannot be stored, and one that was cut to a float is another law, whose tails and gaps are what
attacks use. Here a real is an interval that is known to hold it: its random bits come from a stream of its own
(`dpestim.rng`, stage NOISE), and more are drawn whenever the interval is too wide for what is asked. So what is
returned is the exact real, and a float within a proven distance of it; there is no tail that was left out, and no
probability of failure: `logistic.md` uses nothing else. Arithmetic is decimal, rounded outward; where the first 128
digits of each number decide, which is nearly always, a kernel does the same with sums of two floats (`exact_reals.md`).

    BitStream     words of one purpose, one after the other
    Real          a uniform real: compared with a probability, or an interval for arithmetic
    gamma         an interval around a sum of exponentials
    gamma_ball    a vector with density proportional to e^(-rate * norm)
    gaussian      a vector of independent normals

Integers with exact laws are those of `dpestim.central.additive`.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from functools import lru_cache

import numpy as np

from dpestim._core import noise
from dpestim.rng import Stage

#: What vectors promise: the float vector is this close to the real one, relative to its own norm.
RELATIVE_ERROR = 2.0**-50
_MIDDLE = Context(prec=60, Emax=999_999_999, Emin=-999_999_999)  # where a relative 1e-59 does not matter
#: Decimal digits of a probability that are asked for first, and at a time; a word is 19.3 of them.
FIRST_DIGITS, MORE_DIGITS = 40, 20
_FIRST_WORDS = 2  # words of a real that are drawn at once: 128 bits nearly always suffice
_HALF, _NEXT_TO_1 = Decimal("0.5"), Decimal("0.999")
_MOST, _POINTS = 4096, 6  # numbers of a vector that the kernel takes, and points it tries for each two of them
_QUICK_DIGITS = 60  # with no more, the first words suffice
_NARROW = Decimal(2.0**-64)  # the width, absolute or relative, at which an interval is narrow enough


@lru_cache(maxsize=64)
def _directed(n_bits):
    """Return contexts that round down and up, with more digits than so many bits."""
    digits = 12 + n_bits * 31 // 100
    return tuple(
        Context(prec=digits, rounding=rounding, Emax=999_999_999, Emin=-999_999_999)
        for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )


class BitStream:
    """The words of one purpose: stage NOISE, one column and one block, read from the start."""

    def __init__(self, reader, column, block, ahead=_FIRST_WORDS):
        self._reader, self._at, self._ahead = reader, (column, block), ahead
        self._next, self._words, self._used = 0, [], 0

    def word(self):
        """Return the next word as an int."""
        if self._used == len(self._words):
            drawn = self._reader.dense(Stage.NOISE, *self._at, self._next, self._ahead)
            self._words, self._used = drawn.tolist(), 0
            self._next += self._ahead
        self._used += 1
        return self._words[self._used - 1]

    def below(self, n):
        """Return an integer uniform on 0, ..., n - 1 (n >= 1), by rejection."""
        n_bits = (n - 1).bit_length()
        n_words = -(-n_bits // 64)
        if n_words == 1:  # nearly always
            while (drawn := self.word() >> 64 - n_bits) >= n:
                pass
            return drawn
        while True:
            drawn = 0
            for _ in range(n_words):
                drawn = drawn << 64 | self.word()
            drawn >>= 64 * n_words - n_bits
            if drawn < n:
                return drawn


class Real:
    """A real uniform on (0, 1): it lies in [digits, digits + 1] / 2^n_bits, and further bits come from a stream."""

    def __init__(self, stream, digits=0, n_bits=0):
        self._stream, self.digits, self.n_bits = stream, digits, n_bits

    @classmethod
    def drawn(cls, stream):
        """Return one whose first words are drawn: for arithmetic, which nearly always needs as many."""
        real = cls(stream)
        for _ in range(_FIRST_WORDS):
            real.extend()
        return real

    def extend(self):
        """Draw 64 more bits."""
        self.digits, self.n_bits = self.digits << 64 | self._stream.word(), self.n_bits + 64

    def is_below(self, probability):
        """Tell whether it is below a probability; draws until that is certain.

        The probability is a function of a number of decimal digits that returns (low, high), Fractions around it which
        meet as the digits grow.
        """
        n_digits = FIRST_DIGITS
        while True:
            low, high = probability(n_digits)
            # as integers: a product of Fractions is brought to lowest terms, which nobody needs
            if (self.digits + 1) * low.denominator <= low.numerator << self.n_bits:
                return True
            if self.digits * high.denominator >= high.numerator << self.n_bits:
                return False
            self.extend()
            n_digits += MORE_DIGITS

    def ends(self):
        """Return a lower and an upper bound as Decimals."""
        down, up = _directed(self.n_bits)
        scale = Decimal(1 << self.n_bits)
        return down.divide(Decimal(self.digits), scale), up.divide(Decimal(self.digits + 1), scale)

    def sides(self):
        """Return a lower and an upper bound of 2 u - 1, uniform on (-1, 1), as integers in units of 2^-n_bits."""
        low = 2 * self.digits - (1 << self.n_bits)
        return low, low + 2


def _minus_log(low, high, down, up):
    """Return an interval around -ln of what lies in (low, high], 0 < low, high <= 1.

    Logarithms are dear: ln(low) is taken as at least ln(high) - (high - low) / low.
    """
    least, most = _log(high, down, up)
    least = down.subtract(least, up.divide(up.subtract(high, low), low))
    # copy_negate is exact, where a minus sign would round as the context of the thread says
    return max(most.copy_negate(), Decimal(0)), least.copy_negate()


def _log(x, down, up):
    """Return an interval around ln(x), x > 0.

    x = e^guess (1 + rest), rest being about 1e-15: an exponential costs a third of a logarithm, and what is left out
    matters only where x is next to 1, or more digits are wanted than at first. Decimal rounds both correctly.
    """
    tens = x.adjusted()
    guess = Decimal(math.log(float(x.scaleb(-tens, down))) + tens * math.log(10))  # not trusted
    power = down.exp(guess.copy_negate())
    low = down.subtract(down.multiply(x, down.next_minus(power)), 1)
    high = up.subtract(up.multiply(x, up.next_plus(power)), 1)
    if down.prec > _QUICK_DIGITS or x > _NEXT_TO_1 or not -_HALF < low <= high < _HALF:
        log = up.ln(x)
        return down.next_minus(log), up.next_plus(log)
    # |ln(1 + r) - (r - r^2 / 2)| <= |r|^3 for |r| <= 1/2: what follows is below |r|^3 (1/3 + 1/6 + 1/12 + ...)
    squares = up.multiply(low, low), down.multiply(high, high)
    least = down.subtract(low, up.multiply(squares[0], up.add(_HALF, low.copy_abs())))
    most = up.subtract(high, down.multiply(squares[1], down.subtract(_HALF, high.copy_abs())))
    return down.add(guess, least), up.add(guess, most)


def gamma(streams):
    """Return (low, high), Decimals around a sum of exponentials of mean 1, within a relative 2^-64 of each other.

    One exponential, -ln u, from each stream: together minus the logarithm of the product of the u.
    """
    uniforms = [Real.drawn(stream) for stream in streams]
    while True:
        down, up = _directed(uniforms[0].n_bits)
        low = high = Decimal(1)
        for u in uniforms:
            ends = u.ends()
            low, high = down.multiply(low, ends[0]), up.multiply(high, ends[1])
        if low > 0:
            least, most = _minus_log(low, high, down, up)
            if least > 0 and up.subtract(most, least) <= down.multiply(least, _NARROW):
                return least, most
        for u in uniforms:
            u.extend()


def _normal_pair(stream, narrow):
    """Return two intervals, each at most `narrow` wide, around two independent normals (polar method).

    (x, y) uniform in the unit disk, s = x^2 + y^2: x and y times sqrt(-2 ln(s) / s). Which side of the circle a point
    is on is decided by as many bits as that takes.
    """
    while True:
        x, y = Real.drawn(stream), Real.drawn(stream)
        while True:
            sides = x.sides(), y.sides()
            one = 1 << 2 * x.n_bits  # integers: squares are exact, and s is one of them over this
            least = sum(0 if low <= 0 <= high else min(low * low, high * high) for low, high in sides)
            most = sum(max(low * low, high * high) for low, high in sides)
            if least >= one:
                break  # outside: try another point
            if least and most < one:
                down, up = _directed(x.n_bits)
                low, high, scale = Decimal(least), Decimal(most), Decimal(one)
                logs = _minus_log(down.divide(low, scale), up.divide(high, scale), down, up)
                factor = (
                    max(down.next_minus(down.sqrt(down.divide(down.multiply(2, logs[0]), high))), Decimal(0)),
                    up.next_plus(up.sqrt(up.divide(up.multiply(2, logs[1]), low))),
                )
                pair = [_times(side, factor, down, up) for side in sides]
                if all(up.subtract(high, low) <= narrow for low, high in pair):
                    return pair
            x.extend()
            y.extend()


def _times(side, factor, down, up):
    """Return an interval around products; the factor is not negative."""
    low, high = map(Decimal, side)
    return down.multiply(low, factor[low < 0]), up.multiply(high, factor[high >= 0])


def _normals(reader, column, size, narrow):
    """Return `size` intervals around independent normals.

    Pair number k reads block k from its start, so that asking for narrower intervals reads on in the very same digits.
    """
    pairs = [_normal_pair(BitStream(reader, column, block, 6), narrow) for block in range(-(-size // 2))]
    return [interval for pair in pairs for interval in pair][:size]


def gaussian(reader, column, size):
    """Return a float vector within `RELATIVE_ERROR` (relative to its norm) of a vector of exact normals."""
    found = _quick(reader, column, size)
    return by_intervals(reader, column, size) if found is None else found


def gamma_ball(reader, column, size):
    """Return a float vector within `RELATIVE_ERROR` of an exact one with density proportional to e^(-norm).

    Its norm is a sum of `size` exponentials (a gamma law of that shape), its direction that of a vector of normals.
    Uses columns `column` and `column` + 1.
    """
    found = _quick(reader, column, size, True)
    return ball_by_intervals(reader, column, size) if found is None else found


def _quick(reader, column, size, ball=False):
    """Return what the first words of all numbers decide, or None."""
    if not 0 < size <= _MOST:
        return None
    words = reader.heads(Stage.NOISE, column, -(-size // 2), 4 * _POINTS)
    sums = reader.heads(Stage.NOISE, column + 1, size, _FIRST_WORDS) if ball else None
    out, scratch = np.empty((2, size))
    return out if noise.vector(words, sums, out, scratch) else None


def by_intervals(reader, column, size):
    """Return what `gaussian` does, by as many digits as it takes."""
    narrow = _NARROW
    while True:
        middle = _middles(_normals(reader, column, size, narrow))
        out = np.array([float(m) for m in middle])
        # a middle errs by half a width and its own rounding, a float by half an ulp
        error = math.sqrt(size) * float(narrow) + 2.0**-52 * _norm(out)
        if error <= RELATIVE_ERROR * _norm(out):
            return out
        narrow = _MIDDLE.multiply(narrow, _NARROW)


def ball_by_intervals(reader, column, size):
    """Return what `gamma_ball` does, by as many digits as it takes."""
    narrow = _NARROW
    radius = _middles([gamma([BitStream(reader, column + 1, block) for block in range(size)])])[0]
    while True:
        middle = _middles(_normals(reader, column, size, narrow))
        with localcontext(_MIDDLE):
            norm = sum(m * m for m in middle).sqrt()
            # the direction errs by at most 2 |error of the middle| / norm, floats by half an ulp
            if norm > 0 and 2 * Decimal(size).sqrt() * narrow <= norm * Decimal(2) ** -55:
                return np.array([float(radius * m / norm) for m in middle])
        narrow = _MIDDLE.multiply(narrow, _NARROW)


def _middles(intervals):
    with localcontext(_MIDDLE):
        return [(low + high) / 2 for low, high in intervals]


def _norm(x):
    return math.hypot(*x.tolist())
