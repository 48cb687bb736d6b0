"""What an audit declares before anything runs: the claim, and rounds with their shares of the error."""

import math
from numbers import Real
from typing import NamedTuple

from dpestim.privacy import Neighbours, PrivacyGuarantee

#: Outputs of a data set in the pilot and in the test of the first round, by whether a call returns many.
_QUICK = {False: (256, 512), True: (2048, 4096)}
#: The part of the error of the first round, where there are several, and of the second of three; the part of all
#: outputs that the second of three draws.
_FIRST, _SECOND, _PART = 0.1, 0.2, 0.1
#: Outputs of a data set that a pilot keeps.
MOST_KEPT = 100_000


class Claim(NamedTuple):
    """What was claimed."""

    epsilon: float
    delta: float
    neighbours: Neighbours | None

    def __str__(self):
        return f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")


def claim_of(claim):
    """Return a `Claim` from an epsilon, a pair (epsilon, delta) or a guarantee."""
    neighbours = None
    if isinstance(claim, PrivacyGuarantee):
        claim, neighbours = (float(claim.epsilon), float(claim.delta)), claim.neighbours
    parts = tuple(claim) if isinstance(claim, list | tuple) else (claim, 0.0)
    good = len(parts) == 2 and all(isinstance(part, Real) and not isinstance(part, bool) for part in parts)
    if not good or not 0 <= parts[0] < math.inf or not 0 <= parts[1] < 1:
        raise ValueError("claim must be an epsilon of at least 0, a pair (epsilon, delta) with a delta in [0, 1), or a "
                         "finite PrivacyGuarantee")
    return Claim(float(parts[0]), float(parts[1]), neighbours)


class Round(NamedTuple):
    """Outputs of the pilot for each pair and data set, outputs of the test for each data set, share of the error."""

    pilot: int
    test: int
    share: float


def rounds_of(n_samples, n_pairs, batch):
    """Return the rounds of an audit of so many outputs in all: first short ones, if the last one is much longer."""
    pilot, test = _QUICK[batch]
    quick = 2 * (n_pairs * pilot + test)
    rounds, left, share = [], n_samples, 1.0
    if n_samples >= 4 * quick:
        rounds, left, share = [Round(pilot, test, _FIRST)], left - quick, share - _FIRST
    if n_samples >= 2 / _PART * quick:
        part = int(_PART * n_samples)
        rounds, left, share = [*rounds, _halves(part, n_pairs, _SECOND)], left - part, share - _SECOND
    return [*rounds, _halves(left, n_pairs, share)]


def _halves(n, n_pairs, share):
    pilot = min(MOST_KEPT, max(1, n // (4 * n_pairs)))
    return Round(pilot, max(1, n // 2 - n_pairs * pilot), share)
