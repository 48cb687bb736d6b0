"""Permute-and-flip: a coin for each candidate, the best one's always shows; one of those that show is chosen."""

from itertools import pairwise

import numpy as np

from dpestim.central.selection.choice import ChoiceLaw, SelectionMechanism
from dpestim.central.selection.weights import BITS, ERROR, accepts, upper_weights
from dpestim.exact_reals import BitStream
from dpestim.records import record
from dpestim.rng import Stage

#: Columns of stage NOISE: further digits and the choice among coins, and the first digits of the coins.
_STREAM, _COINS = 0, 1


@record
class PermuteAndFlipLaw(ChoiceLaw):
    """Each candidate's coin shows with probability e^(-rate gap); all that show are equally likely to be chosen."""

    def upper_weights(self, codes, best):
        """Return (integers of at least 2^56 e^(-rate gap), by how much they may exceed it)."""
        return upper_weights(codes, best, self.rate), ERROR

    def draw(self, codes, source):
        """Return a place."""
        best = int(codes.max())
        if best == int(codes.min()):  # all coins show
            return int(BitStream(source.reader(), _STREAM, 0).below(len(codes)))
        weights, error = self.upper_weights(codes, best)
        words = source.reader().dense(Stage.NOISE, _COINS, 0, 0, len(codes))
        stream = BitStream(source.reader(), _STREAM, 0)  # (a reader of its own, as readers reuse their buffers)
        coins, weights = (words >> np.uint64(64 - BITS)).view(np.int64), weights.view(np.int64)
        shown = np.flatnonzero(coins < weights)
        unsure = coins[shown] + 1 > weights[shown] - error
        if unsure.any():
            for k in np.flatnonzero(unsure):
                place = shown[k]
                x = self.rate * (best - int(codes[place]))
                unsure[k] = not accepts(1 << BITS, x, stream, int(words[place]))
            shown = shown[~unsure]
        return int(shown[stream.below(len(shown))])

    def enclosures(self, codes):
        """Return Fractions around q_r times the integral over (0, 1) of the product of 1 - t q_s, s other than r."""
        powers, known = self._powers(codes), {}
        for r, (low, high) in enumerate(powers):
            others = powers[:r] + powers[r + 1 :]
            known[r] = low * _integral([q for _, q in others]), high * _integral([q for q, _ in others])
        return known

    def probabilities(self, codes):
        """Return the probabilities as floats, by quadrature; some 20 log2(n) passes over n candidates."""
        shows = np.exp(-float(self.rate) * (codes.max() - codes))
        panels = [0.0, *2.0 ** np.arange(-np.ceil(np.log2(shows.sum())) - 4, 1)]
        at, weights = np.polynomial.legendre.leggauss(20)
        out = np.zeros(len(codes))
        for left, right in pairwise(panels):
            for t, weight in zip((left + right + (right - left) * at) / 2, (right - left) / 2 * weights):
                logs = np.log1p(-t * shows)
                out += weight * np.exp(logs.sum() - logs)
        return out * shows


def _integral(shows):
    """Return the integral over t in (0, 1) of the product of 1 - t q, exactly."""
    polynomial = [1]
    for q in shows:
        polynomial = [a - q * b for a, b in zip([*polynomial, 0], [0, *polynomial])]
    return sum(c / (k + 1) for k, c in enumerate(polynomial))


class PermuteAndFlip(SelectionMechanism):
    """Choose a candidate by permute-and-flip, which is never worse than the exponential mechanism.

    Take permute-and-flip for a finite set, unless the law of the exponential mechanism is required.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours, exactly: the scores are rounded to a
    grid with a power of two as its step, the rounding is part of the sensitivity, and no float decides. Only the choice
    is released, not its score. The curator, who holds the data, must be trusted.

    **Utility.** The expected distance from the best score is at most that of `ExponentialMechanism`, for any scores.
    With n candidates it is, with probability 1 - b, at most 2 sensitivity ln(n / b) / epsilon (half of that with
    `monotone`), and a step of the grid.

    **Complexity.** O(1) a candidate and 64 random bits.

    {parameters}
    References
    ----------
    McKenna, Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private selection", NeurIPS,
    algorithm 1, theorems 1 and 2. Ding, Kifer, Sayed Ghaith, Steinke, Wang, Xiao, Zhang (2021), "The permute-and-flip
    mechanism is identical to report-noisy-max with exponential noise". The proof: ``permute_and_flip.md``.

    Examples
    --------
    >>> from dpestim.central import ExponentialMechanism, PermuteAndFlip
    >>> mechanism = PermuteAndFlip(2.0, sensitivity=1, monotone=True, neighbours="add_remove", random_state=0)
    >>> mechanism.release([30, 52, 12], candidates=["tea", "coffee", "water"])
    'coffee'
    >>> mechanism.probabilities([30, 31, 32]).round(3)
    array([0.009, 0.067, 0.924])
    """

    _choice = PermuteAndFlipLaw

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "sensitivity": 1},
            {"epsilon": 2.0, "sensitivity": 0.3, "monotone": True, "neighbours": "add_remove"},
        ]
