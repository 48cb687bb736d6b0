"""The Laplace mechanism for real answers: rounded to a public grid, with discrete Laplace noise."""

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.mechanism import AdditiveMechanism


class LaplaceMechanism(AdditiveMechanism):
    """Release real answers with Laplace noise, exactly on a public grid.

    Start with this mechanism: pure epsilon, for one answer or for several answers whose *sum* of absolute changes is
    bounded. For many answers of which one person changes each a little, `GaussianMechanism` adds less noise.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours: the answers are rounded to a grid with
    a power of two as its step (at most 1/4096 of the sensitivity, shared by the answers), and integers with the exact
    discrete Laplace law are added, for a sensitivity that the rounding of all answers is part of. No float ever
    decides. The curator, who holds the data, must be trusted.

    **Utility.** Unbiased for the rounded answer; the variance of each answer is 2 (sensitivity / epsilon)^2, at most a
    thousandth more. With bounds, results are clipped to them, which only ever brings them nearer.

    **Complexity.** Expected O(1) an answer: 32 random bits for each binary digit of the noise.

    {parameters}
    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC.
    Mironov (2012), "On significance of the least significant bits for differential privacy", CCS, for
    why no floats. The proof: ``laplace.md``.

    Examples
    --------
    >>> from dpestim.central import LaplaceMechanism
    >>> mechanism = LaplaceMechanism(0.5, sensitivity=1.0, random_state=0)
    >>> abs(mechanism.release(1234.0) - 1234.0) < mechanism.half_width(0.9999)
    True
    >>> mechanism.release([[10.0, 20.0], [30.0, 40.0]]).shape
    (2, 2)
    >>> round(mechanism.half_width(0.95), 1)
    6.0
    """

    _noise = DiscreteLaplaceLaw

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "sensitivity": 1.0},
            {"epsilon": 0.5, "sensitivity": 0.3, "bounds": (-1000.0, 1000.0), "neighbours": "add_remove"},
        ]
