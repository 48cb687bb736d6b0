"""Guarantees, neighbouring relations and exact rounding.

    exact        epsilon as a Fraction, and the directed rounding of laws to integer weights (the only place for it,
                 with `rappor` for bits that are randomised twice, and `pairs` for sets of (key, value) pairs)
    divergence   how far apart two laws are, exactly: worst ratios and deltas
    curve        what is known of a release besides (epsilon, delta): what all kinds answer, and what follows
    concentrated zCDP, the simplest of them (tighter ones are in `dpestim.accounting`)
    neighbours   the relations that guarantees speak about
    guarantee    `PrivacyGuarantee`, what `privacy_` holds

Randomizers ask `exact` for integers and never see a float; estimators put a `PrivacyGuarantee` on what they release.
"""

from dpestim.privacy.concentrated import ZCDP
from dpestim.privacy.guarantee import PrivacyGuarantee
from dpestim.privacy.neighbours import Neighbours

__all__ = ["ZCDP", "Neighbours", "PrivacyGuarantee"]
