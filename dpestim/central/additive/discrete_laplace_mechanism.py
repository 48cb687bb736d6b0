"""The discrete Laplace mechanism for integers, such as counts."""

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.mechanism import AdditiveMechanism


class DiscreteLaplaceMechanism(AdditiveMechanism):
    """Release integers, such as counts, with discrete Laplace noise.

    Counts stay integers and are not rounded: the noise has exactly the law of the textbook.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours, exactly: the worst ratio of
    probabilities is e^epsilon. The curator, who holds the data, must be trusted.

    **Utility.** Unbiased; the variance is 2 a / (1 - a)^2, a = e^(-epsilon / sensitivity), a little less than that of
    Laplace noise.

    **Complexity.** Expected O(1) an answer: 32 random bits for each binary digit of the noise.

    {parameters}
    References
    ----------
    Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy mechanisms", STOC, for the
    geometric mechanism.
    Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy", NeurIPS, for exactness. The
    proof: ``discrete_laplace.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.central import DiscreteLaplaceMechanism
    >>> mechanism = DiscreteLaplaceMechanism(1.0, sensitivity=1, random_state=0)
    >>> mechanism.release(np.array([10, 20, 30])).dtype
    dtype('int64')
    >>> mechanism.half_width(0.95)
    3.0
    """

    _integers = True
    _proof_name = "discrete_laplace"
    _noise = DiscreteLaplaceLaw

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "sensitivity": 1},
            {"epsilon": 2.0, "sensitivity": 3, "bounds": (-1000, 1000), "neighbours": "add_remove"},
        ]
