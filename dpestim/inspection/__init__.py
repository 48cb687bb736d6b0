"""What a release means, for people: `privacy_card`.

Reads `privacy_` and public attributes only; it costs no privacy and never sees raw data.
"""

from dpestim.inspection._card import privacy_card

__all__ = ["privacy_card"]
