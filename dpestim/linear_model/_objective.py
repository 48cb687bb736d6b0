"""The exact privacy calculus: from (epsilon, delta, strength of the regulariser) to noise, rounded against us.

Notation of `_logistic.md`. One binary problem has n rows of norm at most 1 and minimises

    F(w) = sum_i log(1 + exp(-y_i z_i w)) + strength / 2 |w|^2 + b w,        strength = n Lambda = 1 / C,

with |gradient of a row| <= 1 and curvature of a row at most 1/4. Decimals of 60 digits are good to a relative 1e-50
here; `_MORE`, a relative 1e-30, puts every result on the safe side of that before it becomes a float.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction

#: The part of epsilon that pays for the minimiser being approximate.
APPROXIMATION_SHARE = Fraction(1, 100)
#: A problem's least epsilon: below it nothing but noise would come out, and 60 digits would in the end not suffice.
LEAST_EPSILON = Fraction(1, 10**9)
#: The least strength for each row: below it the curvature that the regulariser adds would be lost in rounding, and the
#: minimiser could not be certified.
LEAST_SHARE = Fraction(1, 2**27)
#: Under substitution two rows' gradients differ by at most this.
SENSITIVITY = 2
CURVATURE = Decimal("0.25")

_CONTEXT = Context(prec=60, Emax=999_999_999, Emin=-999_999_999)
_MORE = Decimal("1.000000000000000000000000000001")  # (a literal is exact; a sum would be rounded to 28 digits here)
_STRONG = Decimal(10) ** 30  # a strength at which the Hessian costs nothing


@dataclass(frozen=True)
class Calibration:
    """How one binary problem is made private."""

    perturbation: str  # "objective" or "output"
    epsilon: Fraction  # of this problem, in total
    delta: Fraction  # 0 also where pure noise is the smaller and was taken instead
    strength: float  # of the regulariser; at least what was asked for
    scale: float  # of the noise: mean norm / dimensions where delta = 0, standard deviation of an entry otherwise

    @property
    def noise_epsilon(self):
        """The part of epsilon that the perturbation spends; the rest hides that the minimiser is approximate."""
        return self.epsilon - self.approximation_epsilon

    @property
    def approximation_epsilon(self):
        """The part of epsilon that hides the difference between the minimiser and what was computed."""
        return self.epsilon * APPROXIMATION_SHARE

    def reach(self, size):
        """Return a norm that the noise exceeds with probability below 1e-12; public, and no guarantee rests on it."""
        return self.scale * (math.sqrt(size) + 8 if self.delta else size + 8 * math.sqrt(size) + 32)


def calibrate(perturbation, epsilon, delta, strength, n_rows, size):
    """Return the `Calibration` of a binary problem with `size` coefficients.

    Parameters
    ----------
    perturbation : {"objective", "output"}
    epsilon, delta : Fraction
    strength : Fraction or None
        1 / C, or None for the rule that looks at nothing but public numbers.
    n_rows, size : int
    """
    if epsilon < LEAST_EPSILON:
        raise ValueError(f"epsilon must be at least {float(LEAST_EPSILON):g} for each problem: one, or one for each of "
                         "more than two classes")
    noise_epsilon = epsilon - epsilon * APPROXIMATION_SHARE
    floor = n_rows * LEAST_SHARE
    with localcontext(_CONTEXT):
        e = _decimal(noise_epsilon) / _MORE
        if delta and (size + 1) * (SENSITIVITY / e) ** 2 <= _least_sigma(perturbation, e, delta) ** 2:
            delta = Fraction(0)  # few columns: pure noise has the smaller variance, and promises more
        if perturbation == "output":
            unit = output_sigma(e, delta) if delta else SENSITIVITY / e  # for strength 1
            asked = _output_strength(unit, n_rows, size, delta) if strength is None else _decimal(strength)
            strength = _float_up(max(asked, _decimal(floor)))
            scale = unit / Decimal(strength)
        else:
            asked = _objective_strength(e, delta, n_rows, size) if strength is None else _decimal(strength)
            strength = _float_up(least_strength(e, max(asked, _decimal(floor))))
            exact = Decimal(strength)
            scale = objective_sigma(e, delta, exact) if delta else 1 / gradient_rate(e, exact)
        return Calibration(perturbation, epsilon, delta, strength, _float_up(scale * _MORE))


def hessian_cost(rate, strength):
    """Return the largest value of -rate p + ln(1 + p (1 - p) / strength) over p in [0, 1].

    What the change of the Hessian costs beyond 2 rate, which the change of the gradient costs: the two are never at
    their worst at once. It is 0 from strength 1 / rate on, and ln(1 + c / strength) at rate 0.
    """
    if rate * strength >= 1:
        return Decimal(0)
    # the function is concave in p; this is where its derivative, -rate + (1 - 2 p) / (strength + p (1 - p)), is 0
    rest = 1 - rate * strength
    p = 2 * rest / (rate + 2 + ((rate + 2) ** 2 - 4 * rate * rest).sqrt())
    return (1 + p * (1 - p) / strength).ln() - rate * p


def gradient_rate(budget, strength):
    """Return the largest rate (a little less) with 2 rate + hessian_cost(rate, strength) <= budget; 0 if none has."""
    if strength * budget >= SENSITIVITY:
        return budget / SENSITIVITY
    if hessian_cost(Decimal(0), strength) >= budget:
        return Decimal(0)
    rate = budget / SENSITIVITY
    while True:
        # Newton's method on a convex, increasing function: from the right it never steps over the root
        step = (2 * rate + hessian_cost(rate, strength) - budget) / (2 - _slope(rate, strength))
        rate -= step
        if step <= rate * Decimal(10) ** -35:
            return rate / _MORE


def _slope(rate, strength):
    """Return the p at which `hessian_cost` is attained, minus its derivative in the rate."""
    rest = max(1 - rate * strength, Decimal(0))
    return 2 * rest / (rate + 2 + ((rate + 2) ** 2 - 4 * rate * rest).sqrt())


def least_strength(e, asked):
    """Return `asked`, or the least strength at which the Hessian costs at most half of e: before there is a cliff."""
    if gradient_rate(e, asked) >= e / 4:
        return asked
    low, high = asked, 2 / e
    while high / low > 1 + Decimal("1e-9"):
        middle = (low * high).sqrt()
        low, high = (low, middle) if gradient_rate(e, middle) >= e / 4 else (middle, high)
    return high


def objective_delta(e, sigma, strength):
    """Return an upper bound of the delta of Gaussian objective perturbation (claim 2); 1 where none is known."""
    a = SENSITIVITY / sigma
    rate = gradient_rate(e - a * a / 2, strength) if a * a < 2 * e else Decimal(0)
    if rate == 0:
        return Decimal(1)
    y = rate * sigma
    return a * (-y * y / 2).exp() * mills_upper(y + a)


def output_delta(e, sigma):
    """Return an upper bound of the delta of a Gaussian with standard deviation sigma per unit of strength (claim 3)."""
    a = SENSITIVITY / sigma
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


def objective_sigma(e, delta, strength):
    """Return a standard deviation whose `objective_delta` is at most delta."""
    return _smallest(lambda sigma: objective_delta(e, sigma, strength), delta)


def output_sigma(e, delta):
    """Return a standard deviation whose `output_delta` is at most delta."""
    return _smallest(lambda sigma: output_delta(e, sigma), delta)


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


def _least_sigma(perturbation, e, delta):
    return output_sigma(e, delta) if perturbation == "output" else objective_sigma(e, delta, _STRONG)


def _objective_strength(e, delta, n_rows, size):
    """Return the default: no less than where the Hessian costs nothing, more where the noise is large.

    Ridge regression with noise of variance v in each gradient entry is at its best near strength v / (h w^2), h the
    curvature and w the size of a coefficient; h grows like n / size. The factor 3 was chosen on three data sets
    (yrbss, Adult, breast cancer), and anything from 1 to 5 is nearly as good there.
    """
    if delta:
        sigma = objective_sigma(e, delta, _STRONG)
        floor, variance = 2 / (e - 2 / sigma**2), sigma**2
    else:
        floor, variance = 2 / e, (size + 1) * (SENSITIVITY / e) ** 2
    return max(floor * _MORE, 3 * size * variance / max(n_rows, 1))


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
