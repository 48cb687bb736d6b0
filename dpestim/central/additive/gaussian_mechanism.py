"""The Gaussian mechanism for real answers: rounded to a public grid, with normal noise that is rounded to it too."""

import math
from fractions import Fraction

from dpestim.central.additive.gaussian import RATIOS, RoundedGaussianLaw
from dpestim.central.additive.mechanism import AdditiveMechanism


class GaussianMechanism(AdditiveMechanism):
    """Release real answers with Gaussian noise, exactly on a public grid.

    Take it for several answers of which one person changes each a little: the noise grows with the Euclidean norm of
    the changes, and that of `LaplaceMechanism` with their sum. The mechanism needs a delta.

    **Privacy.** (epsilon, delta)-differential privacy in the central model, for the declared neighbours. The answers
    are rounded to a grid whose step is a power of two, and exact normal numbers, rounded to the grid, are added. The
    result is a function of the continuous Gaussian mechanism with a sensitivity that includes the rounding, so that its
    delta holds, for any number of answers. "analytic" finds the least noise for delta and any epsilon. "classic" is the
    textbook's formula; it refuses an epsilon of 1 or more, for which the formula is not proven and finally wrong. The
    curator, who holds the data, must be trusted.

    **Utility.** Unbiased for the rounded answer; ``variance()`` returns the variance of the noise, which is below that
    of "classic" at every epsilon.

    **Complexity.** Expected O(1) an answer: 4.2 random words.

    {parameters}
    References
    ----------
    Balle, Wang (2018), "Improving the Gaussian mechanism for differential privacy", ICML, for "analytic". Dwork,
    Roth (2014), "The algorithmic foundations of differential privacy", appendix A, for "classic". Karney (2016),
    "Sampling exactly from the normal distribution", ACM TOMS 42, for the noise. The proof: ``gaussian.md``.

    Examples
    --------
    >>> from dpestim.central import GaussianMechanism
    >>> mechanism = GaussianMechanism(1.0, delta=1e-5, sensitivity=1.0, random_state=0)
    >>> mechanism.release([100.0, 200.0, 300.0]).shape
    (3,)
    >>> print(f"{mechanism.variance() ** 0.5:.2f}")
    3.73
    >>> classic = GaussianMechanism(0.1, delta=1e-5, sensitivity=1.0, calibration="classic")
    >>> print(f"{classic.variance() ** 0.5:.1f}, {classic.set_params(calibration='analytic').variance() ** 0.5:.1f}")
    48.5, 30.8
    """

    _own = ("delta", "calibration")
    _distance = "the Euclidean norm of the differences"
    _more_parameters = """
    {delta that must be declared}
    calibration : {"analytic", "classic"}, default="analytic"
        How the standard deviation follows from epsilon and delta.
    """

    _proof_name = "gaussian"
    _noise = RoundedGaussianLaw

    def __init__(self, epsilon=1.0, *, delta=None, sensitivity=None, bounds=None, calibration="analytic",
                 neighbours=None, ledger=None, random_state=None):
        super().__init__(epsilon, sensitivity=sensitivity, bounds=bounds, neighbours=neighbours, ledger=ledger,
                         random_state=random_state)
        self.delta = delta
        self.calibration = calibration

    @staticmethod
    def _rounding(size):
        """Return sqrt(size), rounded up."""
        return Fraction(math.isqrt(size << 80) + 1, 1 << 40)

    def _budget(self):
        if not isinstance(self.calibration, str) or self.calibration not in RATIOS:
            raise ValueError(f"calibration must be one of {sorted(RATIOS)}")
        return super()._budget()

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "delta": 1e-5, "sensitivity": 1.0},
            {"epsilon": 0.5, "delta": 1e-6, "sensitivity": 3.0, "calibration": "classic", "neighbours": "add_remove"},
        ]
