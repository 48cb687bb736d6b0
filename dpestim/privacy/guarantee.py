"""What a release promises, as an object that prints one honest sentence."""

import math
from dataclasses import dataclass
from fractions import Fraction

from dpestim.privacy.neighbours import Neighbours

_TRUST = {
    "local": "every user's device randomises, nobody else needs to be trusted",
    "central": "whoever holds the data must be trusted",
    "shuffle": "the shuffler must be trusted",
}


@dataclass(frozen=True)
class PrivacyGuarantee:
    """An (epsilon, delta) guarantee.

    Parameters
    ----------
    epsilon : Fraction or float
        A Fraction (exact) or ``math.inf``, which means: no guarantee; `notes` say why.
    delta : Fraction or float, default=0
    model : {"local", "shuffle", "central"}
    neighbours : Neighbours
    seeded : bool or None
        Whether the noise is reproducible from a seed, so that the release must not be published; None: made elsewhere.
    notes : tuple of str
        Each a full sentence.
    """

    epsilon: Fraction | float
    delta: Fraction | float = 0
    model: str = "local"
    neighbours: Neighbours = Neighbours.LOCAL
    seeded: bool | None = False
    notes: tuple = ()

    def __post_init__(self):
        """Refuse what is no guarantee at all."""
        if self.model not in _TRUST:
            raise ValueError(f"model must be one of {sorted(_TRUST)}, got {self.model!r}")
        if not self.epsilon > 0 or not 0 <= self.delta < 1:
            raise ValueError("epsilon must be above 0 and delta in [0, 1)")
        if not isinstance(self.neighbours, Neighbours):
            raise ValueError("neighbours must be a member of dpestim.privacy.Neighbours")

    @property
    def is_finite(self):
        """Whether anything is promised."""
        return self.epsilon != math.inf

    def __str__(self):
        if not self.is_finite:
            return " ".join(("No privacy guarantee (epsilon is infinite).", *self.notes))
        eps = float(self.epsilon)
        odds = math.exp(eps)
        odds = f"{odds:.3g}" if odds < 1e4 else f"{odds:.1e}"
        text = f"{eps:g}-differential privacy in the {self.model} model" if not self.delta else (
            f"({eps:g}, {float(self.delta):g})-differential privacy in the {self.model} model"
        )
        text += (
            f" for {self.neighbours.sentence}: no output is more than e^{eps:g} = {odds} times likelier for one than "
            f"for the other{', but for a probability of delta' if self.delta else ''}; {_TRUST[self.model]}."
        )
        if self.seeded:
            text += " The noise came from a seed: whoever knows or guesses it can remove it, so do not publish this."
        if self.seeded is None:
            text += " Reports came from elsewhere: whether from seeds is known only to those who made them."
        return " ".join((text, *self.notes))
