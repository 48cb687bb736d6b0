"""The exact privacy calculus: from (epsilon, delta, strength of the regulariser) to noise, rounded against us.

Notation of `logistic.md`. A problem has n rows of norm at most 1 and minimises

    F(w) = sum_i loss_i(w) + strength / 2 |w|^2 + b w,        strength = n Lambda = 1 / C,

b being the noise; what is to be known of the loss is its shape (`shapes.py`). Decimals of 60 digits are good to a
relative 1e-50 here; `_MORE`, a relative 1e-30, puts every result on the safe side of that before it becomes a float.
"""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from dpestim.linear_model.shapes import BINARY, OneVersusRest, Slopes, Softmax
from dpestim.records import record

#: The part of epsilon that pays for the minimiser being approximate.
APPROXIMATION_SHARE = Fraction(1, 100)
#: A problem's least epsilon: below it nothing but noise would come out, and 60 digits would in the end not suffice.
LEAST_EPSILON = Fraction(1, 10**9)
#: The least strength for each row: below it the curvature that the regulariser adds would be lost in rounding, and the
#: minimiser could not be certified.
LEAST_SHARE = Fraction(1, 2**27)

_CONTEXT = Context(prec=60, Emax=999_999_999, Emin=-999_999_999)
_MORE = Decimal("1.000000000000000000000000000001")  # (a literal is exact; a sum would be rounded to 28 digits here)
_STRONG = Decimal(10) ** 30  # a strength at which the Hessian costs nothing
_FINE = 10**12  # a rate is found to a part of this
_NEAR = Decimal("1e-18")  # parts of a rate between ends that were tried: far less than what is asked
_LEAST_PART = Decimal("1e-6")  # of the rate that is free of the Hessian's cost: less is none


@record
class Calibration:
    """How one release is made private."""

    perturbation: str  # "objective" or "output"
    epsilon: Fraction  # in total
    delta: Fraction  # 0 also where pure noise is the smaller and was taken instead
    strength: float  # of the regulariser; at least what was asked for
    scale: float  # of the noise: mean norm / dimensions where delta = 0, standard deviation of an entry otherwise
    shape: Softmax | OneVersusRest | Slopes = BINARY

    @property
    def noise_epsilon(self):
        """The part of epsilon that the perturbation spends; the rest hides that the minimiser is approximate."""
        return self.epsilon * (1 - APPROXIMATION_SHARE)

    @property
    def approximation_epsilon(self):
        """The part of epsilon, for each problem, that hides how far what was computed is from the minimiser."""
        return self.epsilon * APPROXIMATION_SHARE / self.shape.parts

    def reach(self, size):
        """Return a norm that the noise exceeds with probability below 1e-12; public, and no guarantee rests on it."""
        return self.scale * (math.sqrt(size) + 8 if self.delta else size + 8 * math.sqrt(size) + 32)


@lru_cache(maxsize=256)  # a search asks for the same laws again and again, and nothing private is among the arguments
def calibrate(perturbation, epsilon, delta, strength, n_rows, size, shape=BINARY, evenness=1.0):
    """Return the `Calibration` of problems of one shape.

    Parameters
    ----------
    perturbation : {"objective", "output"}
    epsilon, delta : Fraction
    strength : Fraction or None
        1 / C, or None for the rule that looks at nothing but public numbers.
    n_rows, size : int
        Rows, and coefficients of a class.
    shape : Softmax, OneVersusRest or Slopes
    evenness : float
        For the rule: 1 for classes of equal shares, 0 for one class alone. It must be public, or released before.
    """
    if epsilon < LEAST_EPSILON * shape.parts:
        raise ValueError(f"epsilon must be at least {float(LEAST_EPSILON):g} for each binary problem: one problem for "
                         'two classes, K for K > 2 classes with multi_class="ovr"')
    floor = n_rows * LEAST_SHARE
    with localcontext(_CONTEXT):
        e = _decimal(epsilon * (1 - APPROXIMATION_SHARE)) / _MORE
        if delta and _pure_variance(e, size, shape) <= _least_sigma(perturbation, e, delta, shape) ** 2:
            delta = Fraction(0)  # few columns: pure noise has the smaller variance, and promises more
        # without delta nothing is gained by one noise for all of one against the rest: each problem has its part of e
        law = shape if delta or shape.parts == 1 else shape.each
        e /= shape.parts if law is not shape else 1
        if perturbation == "output":
            unit = output_sigma(e, delta, law) if delta else 2 * law.steepest * _MORE / e  # for strength 1
            asked = _output_strength(unit, n_rows, size, delta) if strength is None else _decimal(strength)
            strength = _float_up(max(asked, _decimal(floor)))
            scale = unit / Decimal(strength)
        else:
            factor = _factor(shape, evenness)
            asked = (_objective_strength(e, delta, n_rows, size, law, evenness, factor) if strength is None
                     else _decimal(strength))
            strength = _float_up(least_strength(e, max(asked, _decimal(floor)), law))
            exact = Decimal(strength)
            scale = objective_sigma(e, delta, exact, law) if delta else 1 / gradient_rate(e, exact, law)
        return Calibration(perturbation, epsilon, delta, strength, _float_up(scale * _MORE), shape)


def gradient_rate(budget, strength, shape=BINARY):
    """Return the largest rate (a little less) that `budget` pays for, with the cost of the Hessian; 0 if there is none.

    With delta = 0, b has density e^(-rate |b|): a row costs 2 rate steepest + hessian_cost(rate, strength).
    """
    sensitivity, most = 2 * shape.steepest, budget / _MORE
    free = budget / sensitivity / _MORE
    cost = shape.hessian_cost(free, strength)
    if cost == 0:
        return free
    if shape.flat:  # what is left pays for so many steps of free / 2^k, where bisection would end
        share, k = (most - cost) / sensitivity / free, 39
        while share > _LEAST_PART and (steps := math.floor(share * 2**k)) + 1 < _FINE:
            k += 1
        return free * steps / 2**k if share > _LEAST_PART else Decimal(0)
    def over(rate):
        return sensitivity * rate + shape.hessian_cost(rate, strength) - most

    low, high, (fits, exceeds) = Decimal(0), free, _around(over, free)
    # what it costs increases in the rate; half a bit a step, and the lower end has been tried
    while (high - low) * _FINE > high:
        middle = (low + high) / 2
        fit = middle <= fits or (middle < exceeds and over(middle) <= 0)
        low, high = (middle, high) if fit else (low, middle)
        if high <= free * _LEAST_PART:
            return Decimal(0)
    return low


def _around(over, high):
    """Return two rates, near each other, the lower of which fits while the other, at most `high`, does not.

    Secants of the increasing function `over`, whose root they find in a few steps: bisection need not ask there again.
    """
    low, before, after = Decimal(0), over(Decimal(0)), over(high)
    if before > 0:
        return low - 1, low
    last, at, value = low, high, after
    for _ in range(12):
        if value == before or (last - at).copy_abs() <= high * _NEAR:
            break
        last, at, before = at, min(max(at - value * (at - last) / (value - before), low), high), value
        value = over(at)
        low, high = (at, high) if value <= 0 else (low, at)
    for near in (at * (1 - _NEAR), at * (1 + _NEAR)):
        if low < near < high:
            low, high = (near, high) if over(near) <= 0 else (low, near)
    return low, high


def least_strength(e, asked, shape=BINARY):
    """Return `asked`, or the least strength at which the Hessian costs at most half of e: before there is a cliff."""
    def cheap(strength):
        if shape.trace <= strength * e / 2:  # (as ln(1 + x) <= x)
            return True
        rate = e / (4 * shape.steepest)
        return shape.hessian_cost(rate, strength) <= e / 2

    if cheap(asked):
        return asked
    low, high = asked, asked
    while not cheap(high):
        high *= 16
    while high / low > 1 + Decimal("1e-9"):
        middle = (low * high).sqrt()
        low, high = (low, middle) if cheap(middle) else (middle, high)
    return high


def objective_delta(e, sigma, strength, shape=BINARY, corners=None):
    """Return an upper bound of the delta of Gaussian objective perturbation (claim 2); 1 where none is known."""
    found = [Decimal(1), sum(
        (count * (gaussian_delta(e - cost, length / sigma) if cost < e else 1)
         for count, length, cost in corners or shape.corners(e, strength)),
        Decimal(0),
    )]
    # where the Hessian costs much, another bound is the smaller, up to a seventh of sigma: it takes both together
    return min(*found, plane_delta(e, sigma, strength)) if shape == BINARY else min(found)


def plane_delta(e, sigma, strength):
    """Return the bound of claim 3 for the binary loss."""
    a = 2 / sigma
    rate = gradient_rate(e - a * a / 2, strength) if a * a < 2 * e else Decimal(0)
    if rate == 0:
        return Decimal(1)
    y = rate * sigma
    return a * (-y * y / 2).exp() * mills_upper(y + a)


def output_delta(e, sigma, shape=BINARY):
    """Return an upper bound of the delta of a Gaussian with standard deviation sigma per unit of strength (claim 4)."""
    return gaussian_delta(e, 2 * shape.steepest / sigma)


def gaussian_delta(e, a):
    """Return an upper bound of the delta of a Gaussian mechanism whose mean moves by `a` standard deviations."""
    y, x = e / a - a / 2, e / a + a / 2
    if y < 0:
        return Decimal(1)
    drop = min(mills_upper(y) - mills_lower(x), a * (1 - y * mills_lower(y)))
    return (-y * y / 2).exp() / Decimal("2.5066") * drop


def mills_upper(x):
    """Return an upper bound of (1 - Phi(x)) / phi(x), x >= 0 (Sampford 1953)."""
    return 4 / (3 * x + (x * x + 8).sqrt())


def mills_lower(x):
    """Return a lower bound of (1 - Phi(x)) / phi(x), x >= 0 (Birnbaum 1942)."""
    return 2 / (x + (x * x + 4).sqrt())


@lru_cache(maxsize=64)  # the rule may come to a strength twice
def objective_sigma(e, delta, strength, shape=BINARY):
    """Return a standard deviation whose `objective_delta` is at most delta."""
    corners = shape.corners(e, strength)
    return _smallest(lambda sigma: objective_delta(e, sigma, strength, shape, corners), delta)


def output_sigma(e, delta, shape=BINARY):
    """Return a standard deviation whose `output_delta` is at most delta."""
    return _smallest(lambda sigma: output_delta(e, sigma, shape), delta)


def _smallest(bound, delta):
    """Return, to a relative 1e-6, the smallest sigma whose bound (with its slack) is at most delta."""
    delta = _decimal(delta) / _MORE
    high = Decimal(1)
    while bound(high) > delta:
        high *= 2
    low = high / 2
    while bound(low) <= delta:
        high, low = low, low / 2
    while high / low > 1 + Decimal("1e-6"):
        middle = (low * high).sqrt()
        low, high = (low, middle) if bound(middle) <= delta else (middle, high)
    return high


def _pure_variance(e, size, shape):
    """Return the variance of an entry of pure noise where the Hessian costs nothing."""
    parts = shape.parts
    steepest = 1 if parts > 1 else shape.steepest
    return (shape.blocks * size + 1) * (2 * steepest * parts / e) ** 2


@lru_cache(maxsize=64)
def _least_sigma(perturbation, e, delta, shape):
    return output_sigma(e, delta, shape) if perturbation == "output" else objective_sigma(e, delta, _STRONG, shape)


def _objective_strength(e, delta, n_rows, size, shape, evenness, factor):
    """Return the default: no less than where the Hessian costs little, more where the noise is large.

    Ridge regression with noise of variance v in each gradient entry is at its best near strength v / (h w^2), h the
    curvature and w the size of a coefficient; h grows like n / size. The floor, 1 / e for two classes, was chosen on
    ten data sets; the factor is `_factor`.

    Rows of a rare class bend the loss less: by h, about evenness n / (4 size), and noise of standard deviation
    sqrt(v) / (s + h) in the coefficients then costs more than there is to gain. Where classes are equal the strength
    f size v / n, f the factor, has s + c h >= 2 sqrt(c s h) = sqrt(f c v), for every n and c. Where they are not, s is
    raised until it has that too, for c = 1 and 2; so equal classes never have more, nor rare ones of which there are
    enough rows.
    """
    variance = _least_sigma("objective", e, delta, shape) ** 2 if delta else _pure_variance(e, size, shape)
    found = max(4 * shape.trace / e * _MORE, factor * size * variance / max(n_rows, 1))
    if evenness == 1:
        return found
    bend = Decimal(evenness) * n_rows / (4 * size)
    return max(found, *[(factor * times * variance).sqrt() - times * bend for times in (1, 2)])


def _factor(shape, evenness):
    """Return how strong the default is where the noise is large: constants chosen on some tables, judged on others.

    5 ranks rows best. For two classes 3 ranks as well and has better probabilities where rows are few, but a rare class
    lets in more noise than there is to gain: so 3 is for classes of a quarter of the rows or more, and it rises to 5
    for one class alone. Several classes lose accuracy with less than 5 (``logistic.md``); counts gain nothing. The
    classes of a hinge have 2, by accuracy.
    """
    if isinstance(shape, Slopes):
        return 2 if shape.falling else 5
    return 5 - 2 * min(1, 4 * Decimal(evenness) / 3) ** 2 if shape == BINARY else 5


def _output_strength(unit, n_rows, size, delta):
    """Return the default for output perturbation, whose noise shrinks with the strength itself."""
    total = size * unit if delta else size * unit * Decimal(size + 1).sqrt()
    return (Decimal("0.0005") * max(n_rows, 1) * total).sqrt()


def _decimal(x):
    return Decimal(x.numerator) / Decimal(x.denominator)


def _float_up(x):
    """Return the smallest float of at least x."""
    rounded = float(x)
    return rounded if Decimal(rounded) >= x else math.nextafter(rounded, math.inf)
