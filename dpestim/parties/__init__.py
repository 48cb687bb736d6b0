"""Many parties who trust nobody: sums, quantiles and models.

    SecureQuantile    a quantile of the records of several owners, by the exponential mechanism inside three parties
    QuantileOwner     one of these owners, in its own process
"""

from dpestim.parties.quantile import SecureQuantile
from dpestim.parties.quantile_owner import QuantileOwner

__all__ = ["QuantileOwner", "SecureQuantile"]
