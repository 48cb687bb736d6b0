"""The privacy of Gaussian noise, continuous and discrete: deltas as upper bounds, and the least noise that keeps them.

Decimals of 100 digits, or floats whose terms are all positive, with a margin that exceeds their errors by far
(`_MORE`, `_FLOAT_MORE`): every delta errs on the safe side.
"""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from dpestim.privacy.curve import ConcentratedLaw, curve_delta

_CONTEXT = Context(prec=100, Emax=999_999_999, Emin=-999_999_999)
_MORE, _FLOAT_MORE = Decimal("1e-30"), 1e-9
_PI = Decimal("3.141592653589793238462643383279502884197169399375105820974944592307816406286208998628034825342117068")
#: Up to here the normal distribution is a power series, beyond a continued fraction.
_NEAR = 7
#: Terms of that fraction, at least, and times x^2: its errors fall like e^(-2 x sqrt(n)).
_LEAST_TERMS, _TERMS = 200, 24_000
#: Beyond this many standard deviations there is less than any delta that is a float.
_FAR = 40
#: The least standard deviation of integers, which are all but always 0 then: the kernel takes no less.
_LEAST = 2.0**-8
#: Up to this standard deviation sums over integers are done term by term.
_WIDE = 1 << 15


def upper_tail(x):
    """Return 1 - Phi(x) as a Decimal, relative error below 1e-80."""
    with localcontext(_CONTEXT):
        if x < -_NEAR:
            return 1 - upper_tail(-x)
        density = (-x * x / 2).exp() / (2 * _PI).sqrt()
        if x > _NEAR:  # phi(x) / (x + 1 / (x + 2 / (x + 3 / ...)))
            below = x
            for n in range(max(_LEAST_TERMS, math.ceil(_TERMS / (x * x))), 0, -1):
                below = x + n / below
            return density / below
        term, total, square, n = x, x, x * x, 1
        while n < 600:  # Phi(x) - 1/2 = phi(x) (x + x^3 / 3 + x^5 / (3 5) + ...)
            n += 2
            term *= square / n
            before, total = total, total + term
            if total == before and n > _NEAR**2:  # all later terms are smaller, and no digit changes any more
                break
        return Decimal("0.5") - density * total


def analytic_delta(epsilon, ratio):
    """Return an upper bound of the delta of normal noise, `ratio` standard deviations a sensitivity (Balle, Wang).

    delta = Phi(1 / (2 r) - epsilon r) - e^epsilon Phi(-1 / (2 r) - epsilon r), r = sigma / sensitivity.
    """
    with localcontext(_CONTEXT):
        e, r = Decimal(epsilon.numerator) / Decimal(epsilon.denominator), Decimal(ratio)
        near, far = e * r - 1 / (2 * r), e * r + 1 / (2 * r)
        return (upper_tail(near) - e.exp() * upper_tail(far)) * (1 + _MORE)


def _guess(epsilon, delta):
    """Return about the least ratio that `analytic_delta` allows, in floats."""
    e, wanted = float(epsilon), math.log(delta)

    def log_delta(r):
        one, two = log_ndtr(0.5 / r - e * r), e + log_ndtr(-0.5 / r - e * r)
        return one + math.log1p(-math.exp(min(two - one, -1e-16)))

    low, high = 1e-3, 1.0
    while log_delta(high) > wanted:
        high *= 2
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if log_delta(middle) <= wanted else (middle, high)
    return high


@lru_cache(maxsize=256)
def analytic_ratio(epsilon, delta):
    """Return sigma / sensitivity, a float: about the least whose `analytic_delta` is at most delta."""
    ratio, more = _guess(epsilon, delta), 2.0**-40
    while analytic_delta(epsilon, ratio) > Decimal(delta.numerator) / Decimal(delta.denominator):
        ratio, more = ratio * (1 + more), 2 * more
    return ratio


def classic_ratio(epsilon, delta):
    """Return sqrt(2 ln(1.25 / delta)) / epsilon, rounded up, for epsilon below 1 (Dwork and Roth, appendix A)."""
    if epsilon >= 1:
        raise ValueError("epsilon must be below 1 for calibration='classic', whose theorem needs this: take "
                         "'analytic', which also needs less noise")
    with localcontext(_CONTEXT):
        ratio = float((2 * (Decimal("1.25") / _decimal(delta)).ln()).sqrt() / _decimal(epsilon) * (1 + _MORE))
    ratio = math.nextafter(ratio, math.inf)
    if analytic_delta(epsilon, ratio) > _decimal(delta):
        raise ValueError("delta is too large for calibration='classic': take 'analytic'")
    return ratio


def discrete_delta(epsilon, sigma, shift):
    """Return an upper bound of the delta of discrete Gaussian noise for one integer that moves by `shift` (an int).

    The sum over all z with p(z) > e^epsilon p(z + shift) of p(z) - e^epsilon p(z + shift), every term positive.
    """
    z = np.arange(math.floor(-_FAR * sigma) - shift, math.ceil(_FAR * sigma) + 1, dtype=np.float64)
    p = np.exp(-((z / sigma) ** 2) / 2)
    loss = shift * (2 * z + shift) / (2 * sigma**2)
    over = loss > float(epsilon)
    return float((p[over] * -np.expm1(float(epsilon) - loss[over])).sum() / p.sum()) * (1 + _FLOAT_MORE)


@lru_cache(maxsize=256)
def discrete_sigma(epsilon, delta, sensitivity, size):
    """Return (sigma, a float, and its delta) of discrete Gaussian noise for `size` integers of this L2 sensitivity.

    One integer moves by an integer, whose delta is a sum; for several, and for sums too long, what concentrated privacy
    promises.
    """
    shift, wide = math.floor(sensitivity), float(sensitivity)
    guess = _guess(epsilon, delta) * wide

    def bound(sigma):
        known = curve_delta(ConcentratedLaw(0.5 * (wide / sigma) ** 2 * (1 + _FLOAT_MORE)), epsilon)
        if size == 1 and sigma <= _WIDE:
            known = min(known, discrete_delta(epsilon, sigma, shift))
        return known

    high = guess
    while bound(high) > delta:
        high *= 1.01
    low = guess / 2 if guess < 64 else guess
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if bound(middle) <= delta else (middle, high)
    high = max(high, _LEAST)
    return high, Fraction(bound(high))


def _decimal(x):
    return Decimal(x.numerator) / Decimal(x.denominator)
