"""What an epsilon for a metre means at a distance: a table."""

import math
from fractions import Fraction
from numbers import Real

from dpestim.privacy.exact import canonical_amount
from dpestim.privacy.text import bound, odds, posterior
from dpestim.records import record
from dpestim.tables import Table


@record
class DistanceTable(Table):
    """What epsilon for a metre means for two places at some distances.

    Attributes
    ----------
    epsilon : Fraction
        For a metre.
    metres : tuple of Fraction
    privacy : PrivacyGuarantee
    """

    _plotted, _n_labels = ("epsilon", None, None), 1

    epsilon: Fraction
    metres: tuple
    privacy: object

    @classmethod
    def of(cls, epsilon, metres, privacy):
        """Return the table of some distances, or raise ValueError for what is none."""
        wrong = "metres must be a list of numbers above 0"
        if isinstance(metres, Real):
            metres = (metres,)
        if isinstance(metres, str) or not hasattr(metres, "__iter__"):
            raise ValueError(wrong)
        found = tuple(canonical_amount(one, "metres") for one in metres)
        if not found or not all(0 < one < 2**40 for one in found):
            raise ValueError(wrong)
        return cls(epsilon, found, privacy)

    def _about(self):
        return "What a report tells of two places at some distances."

    def _head(self):
        return "distance in metres", "epsilon", "odds change by at most", "even odds become, in percent"

    def _rows(self):
        for metres in self.metres:
            there = self.epsilon * metres
            yield (f"{float(metres):g}", bound(there), odds(there).removeprefix(" = ") or f"e^{bound(there)}",
                   posterior(there))

    def _columns(self):
        return "metres", "epsilon", "odds", "posterior"

    def _records(self):
        for metres in self.metres:
            there = float(self.epsilon * metres)
            yield float(metres), there, math.exp(min(there, 700.0)), 1 / (1 + math.exp(-there))

    def _remarks(self):
        return (f"Epsilon is {bound(self.epsilon)} for a metre, and for each report: reports of one user add up.",)
