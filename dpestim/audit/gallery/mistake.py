"""What an entry of the gallery is, and how its loss is found."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from dpestim.audit.exact import hockey_stick, max_loss
from dpestim.privacy import PrivacyGuarantee
from dpestim.tables import Table

#: What is above the claimed number by less than this part of it is the claimed one, rounded.
_ROUNDING = 1e-9
#: Nodes and weights of an integral over an interval of length 2 (Gauss and Legendre).
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


class Loss(NamedTuple):
    """An (epsilon, delta).

    Attributes
    ----------
    epsilon, delta : float
        As in (epsilon, delta)-differential privacy.
    """

    epsilon: float
    delta: float


class Mistake(NamedTuple):
    """A mechanism that is less private than was claimed, and what it really loses.

    Attributes
    ----------
    name : str
        What was done.
    source : str
        Where it was published, or is found.
    claimed : (float, float)
        The (epsilon, delta) that was claimed, with attributes of these names, as the next two.
    found : (float, float)
        What two neighbours show: the least epsilon at the claimed delta, and the least delta at the claimed epsilon.
        These are lower bounds of what the mechanism loses: other neighbours may lose more.
    repaired : (float, float)
        The same of the mechanism as it should be, on the same neighbours (or on its worst ones).
    why : str
        What went wrong, in a sentence.
    instead : str
        What to use.

    Examples
    --------
    >>> from dpestim.audit import mistakes
    >>> sum_of_values = mistakes()[6]
    >>> sum_of_values.name, sum_of_values.claimed.epsilon, round(sum_of_values.found.epsilon, 9)
    ('A sum of values in [50, 60], sensitivity 60 - 50', 1.0, 6.0)
    """

    name: str
    source: str
    claimed: Loss
    found: Loss
    repaired: Loss
    why: str
    instead: str

    def __repr__(self):
        return f"<{self.name}: claimed {_text(self.claimed)}, found {_text(self.found)}>"


class Mistakes(Table, Sequence):
    """The entries of the gallery, in order; printed, a table."""

    _most_lines = 1000
    _plotted = ("found_epsilon", "claimed_epsilon", "found_epsilon")

    def __init__(self, entries):
        self._entries = tuple(entries)

    def __getitem__(self, number):
        """Return an entry, by its number."""
        return self._entries[number]

    def __len__(self):
        """Return how many there are."""
        return len(self._entries)

    def __repr__(self):
        return str(self)

    @property
    def privacy(self):
        """Nothing was released: losses are those of laws."""
        return PrivacyGuarantee(0, notes=("The gallery computes losses of mechanisms, and reads no data.",))

    def _about(self):
        return "Nothing: losses are computed from the laws of published mechanisms."

    def _head(self):
        return "mistake", "claimed", "found", "repaired"

    def _rows(self):
        return ((m.name, *map(_text, (m.claimed, m.found, m.repaired))) for m in self)

    def _columns(self):
        return "mistake", *(f"{which}_{part}" for which in ("claimed", "found", "repaired") for part in Loss._fields)

    def _records(self):
        return ((m.name, *m.claimed, *m.found, *m.repaired) for m in self)


def _text(loss):
    return f"{loss.epsilon:.4g}, {loss.delta:.3g}"


def mistake(name, source, *, claimed, pairs, right, why, instead):
    """Return an entry, audited: `pairs` of laws on neighbours as it is, and `right`, as it should be."""
    claimed = Loss(*map(float, claimed))
    return Mistake(name, source, claimed, audit(claimed, pairs), audit(claimed, right), why, instead)


def audit(claimed, pairs):
    """Return the `Loss` of pairs (p, q) of laws, in both orders: each of its numbers with the other one as claimed."""
    both = [order for p, q in pairs for order in ((p, q), (q, p))]

    def delta(epsilon):
        return max(float(hockey_stick(p, q, epsilon)) for p, q in both)

    if not claimed.delta:
        epsilon = max(max_loss(p, q) for p, q in both)
        # (where no ratio is above e^epsilon, what would be added up is rounding)
        return Loss(epsilon, delta(claimed.epsilon) if epsilon > claimed.epsilon * (1 + _ROUNDING) else 0.0)
    return Loss(_least(delta, claimed.delta * (1 + _ROUNDING), claimed.epsilon), delta(claimed.epsilon))


def _least(delta, allowed, start):
    """Return the least epsilon at which `delta`, which falls with it, is at most what is allowed."""
    if delta(math.inf) > allowed:
        return math.inf
    if delta(0) <= allowed:
        return 0.0
    high = max(start, 1.0)
    while delta(high) > allowed:
        high *= 2
    return brentq(lambda epsilon: delta(epsilon) - allowed, 0, high, rtol=1e-6)


def event(probability):
    """Return the law of whether something is seen, of its probability."""
    return {"seen": probability, "not seen": 1 - probability}


def laplace_below(t, scale):
    """Return P[noise < t] of Laplace noise, of an array; of a scale of 0 there is no noise."""
    if not scale:
        return (t > 0).astype(float)
    half = 0.5 * np.exp(-np.abs(t) / scale)
    return np.where(t < 0, half, 1 - half)


def laplace_density(t, scale):
    """Return the density of Laplace noise, of an array."""
    return np.exp(-np.abs(t) / scale) / (2 * scale)


def integral(f, reach=150, pieces_per_unit=4):
    """Return the integral of f from -reach to reach; f takes arrays, and is smooth but at integers.

    Exact to about 1e-13, relatively: 20 nodes for each quarter of a unit. Beyond its reach Laplace noise of the scales
    of the gallery (4 at most) is below e^-37.
    """
    width = 1 / pieces_per_unit
    starts = np.arange(-reach, reach, width)[:, None]
    return float((f(starts + (_NODES + 1) / 2 * width) * _WEIGHTS).sum() * width / 2)
