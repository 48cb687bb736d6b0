"""Several parties who trust nobody: what each adds to what it sends, and what holds where some do not keep to it.

    PolyaShares, DiscreteGaussianShares, SkellamShares, BinomialShares
        shares of noise, of which those of enough honest parties protect every record
    PrivateIntersectionSize
        how many users two owners have in common
"""

from dpestim.parties.intersection import PrivateIntersectionSize
from dpestim.parties.noise import BinomialShares, DiscreteGaussianShares, PolyaShares, SkellamShares

__all__ = ["BinomialShares", "DiscreteGaussianShares", "PolyaShares", "PrivateIntersectionSize", "SkellamShares"]
