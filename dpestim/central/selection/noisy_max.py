"""Report noisy maximum: noise on every score, and the place of the largest is released, not its value."""

from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw, digit_laws
from dpestim.central.additive.law import LARGEST, settle_digits
from dpestim.central.exact_bernoulli import exp_bounds
from dpestim.central.selection.choice import ChoiceLaw, SelectionMechanism
from dpestim.central.selection.exponential import ExponentialLaw
from dpestim.central.selection.permute_and_flip import PermuteAndFlipLaw
from dpestim.exact_reals import BitStream
from dpestim.records import record

#: Columns of stage NOISE, besides those of the noise: which of the largest is taken, and what was cut off.
_CHOICE, _REST = 2, 3
#: Fixed points of the exact law have so many bits; so many of them are good.
_BITS, _GOOD, _MOST = 288, 232, 20_000
#: Places of the maximum times candidates, for which probabilities are computed as floats; so many at a time.
_PLACES, _CELLS = 20_000_000, 1 << 16


@record
class LaplaceMaximumLaw(ChoiceLaw):
    """The place of the largest code with discrete Laplace noise of the rate, a random one where several are."""

    slack = "the whole epsilon is used in the limit of candidates that are far apart"

    def __post_init__(self):
        _ = self._noise._lanes  # ValueError, where integers are too small

    @cached_property
    def _noise(self):
        return DiscreteLaplaceLaw(self.epsilon, Fraction(0), self.epsilon / self.rate, self.exponent)

    def noise(self, source, size):
        """Return the noise of all candidates, cut at `LARGEST`."""
        return self._noise.draw(source, size)

    def draw(self, codes, source):
        """Return a place."""
        noise = self.noise(source, len(codes))
        totals = codes + noise
        cut = np.flatnonzero(np.abs(noise) >= LARGEST)
        if cut.size:  # geometric noise has no memory: what is beyond is like the noise itself
            totals, rest = totals.astype(object), BitStream(source.reader(), _REST, 0)
            for place in cut:
                digits, overflow = digit_laws(self.rate)
                more = settle_digits([rest.word() >> 32 for _ in range(len(digits) + 1)], digits, overflow, rest)
                totals[place] += more if noise[place] > 0 else -more
        largest = np.flatnonzero(totals == totals.max())
        return int(largest[BitStream(source.reader(), _CHOICE, 0).below(len(largest))])

    def enclosures(self, codes):
        """Return Fractions around the sum over all maxima v of P[Z_r = v - code_r] / (1 + others that are v).

        All terms are fixed points, rounded down by less than 2^-260 each; noise beyond `far` has less probability.
        """
        codes = [int(code) for code in codes]
        far = int(_BITS * 0.7 / self.rate) + 2
        if len(codes) > 8 or max(codes) - min(codes) + 2 * far > _MOST:
            raise ValueError("the exact law needs at most 8 scores and a grid that is not much finer than the noise: "
                             "take fewer scores, or a larger epsilon")
        powers = self._fixed_powers(max(codes) - min(codes) + far + 1)
        one = 1 << _BITS
        shares = [0] * len(codes)
        for v in range(min(codes) - far, max(codes) + far + 1):
            here, below = [], []
            for code in codes:
                z = v - code
                here.append(powers[abs(z)] * (one - powers[1]) // (one + powers[1]))
                side = powers[z if z > 0 else 1 - z] * one // (one + powers[1])  # P[Z >= z], or P[Z < z]
                below.append(one - side if z > 0 else side)
            for r, p in enumerate(here):
                shares[r] += p * _tied(below[:r] + below[r + 1 :], here[:r] + here[r + 1 :]) >> _BITS
        error = Fraction(1, 1 << _GOOD)
        return {r: (Fraction(s, one) - error, Fraction(s, one) + error) for r, s in enumerate(shares)}

    def _fixed_powers(self, n):
        first = int(exp_bounds(self.rate, 180)[0] * (1 << _BITS))
        powers = [1 << _BITS]
        for _ in range(n):
            powers.append(powers[-1] * first >> _BITS)
        return powers

    def probabilities(self, codes):
        """Return the probabilities as floats, from all places that the maximum can have."""
        rate, far = float(self.rate), int(40 / self.rate) + 2
        a, best = np.exp(-rate), int(codes.max())
        if 2 * far * len(codes) > _PLACES:
            raise ValueError("probabilities with noise='laplace' need fewer candidates or a larger epsilon (at most "
                             f"{_PLACES:,} grid points times candidates): take another noise")
        nodes, weights = np.polynomial.legendre.leggauss(16)
        column, out = np.maximum(codes, best - 2 * far)[:, None], np.zeros(len(codes))
        block = max(1, _CELLS // len(codes))
        for first in range(best - far, best + far + 1, block):
            z = np.arange(first, min(first + block, best + far + 1)) - column
            here = (1 - a) / (1 + a) * np.exp(-rate * np.abs(z))
            side = np.exp(-rate * np.where(z > 0, z, 1 - z)) / (1 + a)
            below = np.where(z > 0, 1 - side, side)
            for t, weight in zip((nodes + 1) / 2, weights / 2):
                logs = np.log(np.maximum(below + t * here, 1e-300))
                out += weight * (here * np.exp(logs.sum(axis=0) - logs)).sum(axis=1)
        return out

    def gap(self, n, lost):
        """Return twice that of the others: the noise of the best may be low, and that of another one high."""
        return 2 * super().gap(n, lost)


def _tied(below, here):
    """Return the integral over t in (0, 1) of the product of (below + t here), all in fixed points."""
    polynomial = [1 << _BITS]
    for b, h in zip(below, here):
        polynomial = [(b * low + h * up) >> _BITS for low, up in zip([*polynomial, 0], [0, *polynomial])]
    return sum(c // (k + 1) for k, c in enumerate(polynomial))


#: The law of each noise.
_LAWS = {"exponential": PermuteAndFlipLaw, "gumbel": ExponentialLaw, "laplace": LaplaceMaximumLaw}


class ReportNoisyMax(SelectionMechanism):
    """Choose the candidate with the largest noisy score (report noisy maximum).

    Exponential noise is the best choice: the mechanism then has the law of `PermuteAndFlip`. With Gumbel noise it has
    the law of `ExponentialMechanism`. dpestim draws from these laws directly; only Laplace noise is added to scores.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours, exactly: the scores are rounded to a
    grid with a power of two as its step, the rounding is part of the sensitivity, and no float decides. Only the choice
    is released: its score, with or without this noise, would cost more. The curator, who holds the data, must be
    trusted.

    **Utility.** With n candidates the score of the choice is, with probability 1 - b, at most
    2 sensitivity ln(n / b) / epsilon below the best, or twice that with Laplace noise (half of it with `monotone`),
    and a step of the grid.

    **Complexity.** O(1) a candidate.

    {parameters}
    References
    ----------
    Dwork, Roth (2014), "The algorithmic foundations of differential privacy", section 3.3, claim 3.9. Ding, Kifer,
    Sayed Ghaith, Steinke, Wang, Xiao, Zhang (2021), "The permute-and-flip mechanism is identical to report-noisy-max
    with exponential noise". The proof: ``noisy_max.md``.

    Examples
    --------
    >>> from dpestim.central import ReportNoisyMax
    >>> mechanism = ReportNoisyMax(2.0, sensitivity=1, noise="laplace", random_state=0)
    >>> mechanism.release([30, 52, 12], candidates=["tea", "coffee", "water"])
    'coffee'
    >>> for noise in ("exponential", "gumbel", "laplace"):
    ...     print(mechanism.set_params(noise=noise).probabilities([30, 31, 32]).round(3))
    [0.059 0.176 0.765]
    [0.09  0.245 0.665]
    [0.083 0.246 0.671]
    """

    _choice = LaplaceMaximumLaw
    _more_parameters = SelectionMechanism._more_parameters + """noise : {"exponential", "gumbel", "laplace"}, \
default="exponential"
        Which noise is added.
    """

    def __init__(self, epsilon=1.0, *, sensitivity=None, monotone=False, noise="exponential",
                 neighbours=None, ledger=None, random_state=None):
        super().__init__(epsilon, sensitivity=sensitivity, monotone=monotone, neighbours=neighbours, ledger=ledger,
                         random_state=random_state)
        self.noise = noise

    @property
    def _fineness(self):
        """Laplace noise is drawn on the grid, whose steps are the fewer the faster its law is known."""
        return 1 << 7 if self.noise == "laplace" else super()._fineness

    def _law_of(self, *shared):
        if not isinstance(self.noise, str) or self.noise not in _LAWS:
            raise ValueError(f"noise must be one of {sorted(_LAWS)}")
        law = self._choice if self.noise == "laplace" else _LAWS[self.noise]
        return law(*shared)

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "sensitivity": 1, "noise": "laplace"},
            {"epsilon": 2.0, "sensitivity": 0.3, "monotone": True, "neighbours": "add_remove"},
            {"epsilon": 1.0, "sensitivity": 0.3, "noise": "gumbel"},
        ]
