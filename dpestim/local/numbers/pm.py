"""The piecewise mechanism (PM) on an integer grid: a window of likely outputs moves with the input; unbiased."""

from dpestim.local.numbers.law import LARGEST_GRID, WindowRandomizer
from dpestim.local.numbers.transformer import FineTransformer
from dpestim.privacy.number_weights import pm_weights


class PM(WindowRandomizer):
    """The piecewise law on `grid` steps: the window that makes the worst variance smallest."""

    def __init__(self, epsilon, grid=LARGEST_GRID):
        super().__init__(epsilon, grid, pm_weights)


class PMTransformer(FineTransformer):
    """Randomise numbers by the piecewise mechanism (PM), with bounded noise and without bias.

    Each user rounds the value to a grid, without bias, and sends one of the outputs of a grid that is wider than the
    bounds: likely one of a window around it. Choose it for means and distributions of bounded numbers from an epsilon
    of about 1.3 a column on; `HMTransformer` where a mean is all, `SDPMTransformer` where part of the range needs less
    protection.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer weights, both directions, proof in
    ``pm.md``), neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Unbiased, exactly but for the fixed point that a float becomes (2^-32 of a grid step). For x in [-1, 1]
    and s = e^(eps / 2), the variance of a report is x^2 / (s - 1) + (s + 3) / (3 (s - 1)^2); worst at the bounds.

    **Complexity.** O(1) a user; log2(grid (1 + e^(-eps / 2))) bits sent, stored as 16.

    {parameters}
    References
    ----------
    N. Wang et al., "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019,
    algorithm 2 (continuous); the grid and its integer weights are derived in ``pm.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import PMTransformer
    >>> heights = np.random.default_rng(0).normal(1.7, 0.1, (50_000, 1))
    >>> noisy = PMTransformer(2.0, bounds=(1.2, 2.2), random_state=0).fit_transform(heights)
    >>> bool(abs(noisy.mean() - heights.mean()) < 0.01)
    True
    """

    _randomizer = PM

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "bounds": (-1.0, 1.0), "grid": 8},
            {"epsilon": 3.0, "bounds": (0.0, 10.0), "grid": 16},
            {"epsilon": 2.0, "bounds": ([0.0, -5.0], [1.0, 5.0]), "grid": 8},
            {"epsilon": 5.0, "bounds": ([0.0, -5.0, 2.0, 1.0], [1.0, 5.0, 4.0, 9.0]), "grid": 8, "strategy": "sample"},
        ]
