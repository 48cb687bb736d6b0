"""Guarantees, neighbouring relations and exact rounding.

    exact        epsilon as a Fraction, and powers of e rounded on the side of privacy
    category_weights, number_weights, key_value_weights, rappor
                 laws rounded to integer weights on the side of privacy: the only places for it
    divergence   how far apart two laws are, exactly: worst ratios and deltas
    curve        what is known of a release besides (epsilon, delta): what all kinds answer, and what follows
    concentrated zCDP, the simplest of them (tighter ones are in `dpestim.accounting`)
    neighbours   the relations that guarantees speak about
    trust        `Parties`: how many may collude, where several make a release
    guarantee    `PrivacyGuarantee`, what `privacy_` holds

Randomizers ask weights for integers and never see a float; estimators put a `PrivacyGuarantee` on what they release.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.privacy.concentrated import ZCDP
    from dpestim.privacy.guarantee import PrivacyGuarantee
    from dpestim.privacy.neighbours import Neighbours

__getattr__, __dir__ = lazy.attach(__name__, {
    "concentrated": "ZCDP",
    "guarantee": "PrivacyGuarantee",
    "neighbours": "Neighbours",
})

__all__ = ["ZCDP", "Neighbours", "PrivacyGuarantee"]
