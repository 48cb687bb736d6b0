"""The square wave (SW) on an integer grid: the piecewise mechanism's law with a window made for distributions."""

from dpestim.local.numbers.law import LARGEST_GRID, WindowRandomizer
from dpestim.local.numbers.transformer import FineTransformer
from dpestim.privacy.number_weights import sw_weights


class SW(WindowRandomizer):
    """The square wave on `grid` steps: the window that bounds the mutual information of input and output best."""

    def __init__(self, epsilon, grid=LARGEST_GRID):
        super().__init__(epsilon, grid, sw_weights)


class SWTransformer(FineTransformer):
    """Randomise numbers by the square wave mechanism (SW), for distributions, without bias.

    Each user rounds the value to a grid, without bias, and sends one of the outputs of a grid that is wider than the
    bounds: likely one of a window around it, whose width is chosen for what a report tells about the whole
    distribution. Choose it for the `DistributionEstimator` of something smooth: its Wasserstein distance was seen at
    0.6 to 1.1 times PM's (epsilon 1 to 3, n = 50,000 to 100,000); for spikes, without smoothing, PM's was smaller. For
    means `PMTransformer` has less variance: the largest here is 1.06 times PM's at an epsilon of 1, twice at 4, 27
    times at 12.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer weights, both directions, proof in
    ``sw.md``), neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Unbiased, exactly but for the fixed point that a float becomes (2^-32 of a grid step): codes stand for
    positions that undo the pull to the middle. With the half-width b, p = e^eps / (2 b e^eps + 1), q = p / e^eps and x
    in [0, 1], the variance of a report is (m2 - m1^2) / (2 b (p - q))^2, where m1 and m2 are the moments of the square
    wave: m1 = 2 b (p - q) x + q (1 + 2 b) / 2, m2 = q ((1 + b)^3 + b^3) / 3 + (p - q) ((x + b)^3 - (x - b)^3) / 3.

    **Complexity.** O(1) a user; log2(grid (1 + 2 b)) bits sent, stored as 16.

    {parameters}
    References
    ----------
    Z. Li et al., "Estimating numerical distributions under local differential privacy", SIGMOD 2020, section 5: the
    general wave, the square one and its b (continuous); the grid and its integer weights are derived in ``sw.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import DistributionEstimator, SWTransformer
    >>> ages = np.random.default_rng(0).normal(40, 8, (50_000, 1))
    >>> sw = SWTransformer(2.0, bounds=(0, 100), random_state=0)
    >>> median = DistributionEstimator(sw, n_bins=64).fit(ages).quantile(0.5)
    >>> bool(abs(median[0] - 40) < 1.0)
    True
    """

    _randomizer = SW

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "bounds": (-1.0, 1.0), "grid": 8},
            {"epsilon": 4.0, "bounds": ([0.0, -5.0], [1.0, 5.0]), "grid": 16},
        ]
