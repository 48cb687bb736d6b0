"""Several parties who trust nobody: sums, quantiles, common users and models.

    PolyaShares, DiscreteGaussianShares, SkellamShares, BinomialShares
        shares of noise, of which those of enough honest parties protect every record
    PrivateIntersectionSize
        how many users two owners have in common
    SecureQuantile, QuantileOwner
        a quantile of the records of several owners, by the exponential mechanism inside three parties
"""

from dpestim.parties.intersection import PrivateIntersectionSize
from dpestim.parties.noise import BinomialShares, DiscreteGaussianShares, PolyaShares, SkellamShares
from dpestim.parties.quantile import SecureQuantile
from dpestim.parties.quantile_owner import QuantileOwner

__all__ = ["BinomialShares", "DiscreteGaussianShares", "PolyaShares", "PrivateIntersectionSize", "QuantileOwner",
           "SecureQuantile", "SkellamShares"]
