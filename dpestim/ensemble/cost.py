"""What all histograms of boosting together may change by when a row does, from public numbers, in integers."""

import math
from dataclasses import replace
from fractions import Fraction

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.records import record

#: Residuals are multiples of 2^-16 of the largest one; sums over 2^36 rows are exact in floats.
_BITS = 16
#: Counts take this part of what is spent: of the squares, where noise is Gaussian; where it is not (True), of epsilon.
_COUNTS = {False: Fraction(1, 10), True: Fraction(1, 3)}
#: The sum of squares takes this part of the rest, likewise; its largest entry keeps sums of 2^36 rows in 64 bits.
_SQUARES, _SQUARE_BITS = Fraction(1, 50), 26
#: How precise the mean of numbers in [-1, 1] that rows start with should be, as far as other terms can spare it.
_START = 0.005
#: Two rounds in place of one, of numbers and with Laplace noise, where rows are so many times the noise of a sum.
_TWICE = 400.0


@record
class Cost:
    """What is released of a row, in integers: so many terms, so many rounds, outputs, and the weight of a count."""

    n_terms: int
    n_rounds: int
    n_outputs: int
    replaces: bool
    pure: bool
    squares: bool = False  # whether the sum of the squares of all first residuals is released, of numbers
    lead: int = 1  # what sums of the first term, of all rows, are multiplied by

    @property
    def most(self):
        """The largest norm of the residuals of a row, rounded to the grid: each entry is at most 2^bits."""
        if self.n_outputs == 1:
            return 1 << _BITS
        # a softmax's residuals have norm sqrt 2 at most, and L1 norm 2; each is rounded by half a step
        exact = 2 if self.pure else Fraction(math.isqrt(2 << 80) + 1, 1 << 40)
        return math.ceil(exact * (1 << _BITS)) + self.n_outputs

    @property
    def largest(self):
        """The largest sum of sizes of the residuals of a row, rounded likewise."""
        return replace(self, pure=True).most

    @property
    def weight(self):
        """The integer a row adds to its bin of a histogram of counts."""
        times = 2 if self.replaces else 1
        if self.pure:
            return max(1, math.ceil(_COUNTS[True] * self.n_rounds * self.most))
        square = _COUNTS[False] * self.n_rounds * (times * self.most) ** 2 / times
        return math.isqrt(math.ceil(square)) + 1

    @property
    def _histograms(self):
        """What all histograms move by together: a sum of sizes where noise is pure, else one of squares."""
        times, power = 2 if self.replaces else 1, 1 if self.pure else 2
        sums = (self.n_terms - 1 + self.lead**power) * self.n_rounds * (times * self.most) ** power
        return sums + self.n_terms * times * self.weight**power

    @property
    def square(self):
        """The integer that stands for a squared residual of 1; 0 where squares are not released."""
        if not self.squares:
            return 0
        moved = _SQUARES * self._histograms
        return min(1 << _SQUARE_BITS, max(1, math.floor(moved) if self.pure else math.isqrt(math.floor(moved))))

    @property
    def sensitivity(self):
        """How far all answers, counts and sums, move together: L1 where noise is pure, else L2.

        A replaced row leaves one bin and enters another (counts) or adds to the same one what differs by twice the
        largest residual. Squares are not below 0, so that those of two rows differ by the largest one at most.
        """
        if self.pure:
            return Fraction(self._histograms + self.square)
        return Fraction(math.isqrt((self._histograms + self.square**2) << 80) + 1, 1 << 40)

    @property
    def unit(self):
        """What an integer of the sums stands for, per unit of residual."""
        return 2.0**-_BITS

    def leading(self, epsilon, delta, n_rows=None):
        """Return this cost with sums of all rows as precise as a start of numbers needs; their number, where public.

        A target whose range is mostly tail varies by little of it, and noise in the mean of all rows by more.
        """
        if not self.squares:
            return self
        most = 1 + self.n_terms // 2 if self.pure else math.isqrt(self.n_terms)
        if n_rows is None:
            return replace(self, lead=(most + 1) // 2)
        noise = math.sqrt(self.law(epsilon, delta).variance_steps) * self.unit / max(n_rows, 1)
        return replace(self, lead=min(max(math.ceil(noise / _START), 1), most))

    def is_clear(self, epsilon, delta, n_rows):
        """Return whether so many rows of numbers are worth a second round of Laplace noise: a public fact.

        A single round cannot tell which of two columns that go together explains the target.
        """
        return self.pure and self.squares and n_rows > _TWICE * self.unit * math.sqrt(
            self.law(epsilon, delta).variance_steps)

    def law(self, epsilon, delta):
        """Return the noise of every integer, adaptively chosen as they are."""
        if self.pure:
            return DiscreteLaplaceLaw(epsilon, Fraction(0), self.sensitivity, 0)
        from dpestim.central.additive.gaussian import RoundedGaussianLaw  # (pure fits need it not)

        return RoundedGaussianLaw(epsilon, delta, self.sensitivity, 0)
