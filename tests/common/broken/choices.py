"""Mechanisms that choose and are broken: the wrong temperature, the wrong law, scores that are not what they say."""

from fractions import Fraction

import numpy as np

from dpestim.central import ExponentialMechanism, ReportNoisyMax
from dpestim.central.selection.exponential import ExponentialLaw
from dpestim.central.selection.noisy_max import LaplaceMaximumLaw
from dpestim.central.selection.permute_and_flip import PermuteAndFlipLaw
from dpestim.central.selection.weights import propose
from dpestim.exact_reals import BitStream

COUNT = {"epsilon": 1.0, "sensitivity": 1}


def mechanism(law, face=ExponentialMechanism):
    """Return a face of a broken law."""
    cls = type(law.__name__ + "Mechanism", (face,), {"_choice": law, "__module__": __name__})
    return globals().setdefault(cls.__name__, cls)


class Unsure(ExponentialLaw):
    """States probabilities that do not sum to 1."""

    def enclosures(self, codes):
        return {i: (low * Fraction(9, 10), high) for i, (low, high) in super().enclosures(codes).items()}


class NoFactor(ExponentialLaw):
    """Forgets the factor 2 where scores may move both ways."""

    @property
    def rate(self):
        return self.epsilon / self.sensitivity


class NoFactorEither(PermuteAndFlipLaw):
    """Forgets it in the coins."""

    @property
    def rate(self):
        return self.epsilon / self.sensitivity


class Cold(ExponentialLaw):
    """Uses half of epsilon."""

    @property
    def rate(self):
        return super().rate / 2


class TakesProposals(ExponentialLaw):
    """Settles no coin: the first that is proposed is taken, here all alike."""

    def draw(self, codes, source):
        return propose(np.ones(len(codes), np.uint64), BitStream(source.reader(), 0, 0))


class Unscaled(LaplaceMaximumLaw):
    """Adds noise that was not made for the sensitivity."""

    def noise(self, source, size):
        return super().noise(source, size) // 2


class Boasts(ExponentialLaw):
    """Says that the choice is better than it is."""

    def gap(self, n, lost):
        return super().gap(n, lost) / 100


class Steps(ExponentialMechanism):
    """Rounds the sensitivity down to the grid."""

    def _law_of(self, epsilon, sensitivity, *rest):
        return super()._law_of(epsilon, max(1, sensitivity * 9 // 10), *rest)


class PaysTwice(ExponentialMechanism):
    """Charges once for the scores, and once for the choice."""

    def _pay(self):
        super()._pay()
        super()._pay()


class ShowsScores(ExponentialMechanism):
    """Shows what it could not read."""

    def release(self, scores, candidates=None):
        try:
            return super().release(scores, candidates)
        except ValueError:
            raise ValueError(f"scores {scores} are wrong") from None


class KeepsBest(ExponentialMechanism):
    """Keeps the exact best score."""

    def _read(self, scores, candidates):
        read = super()._read(scores, candidates)
        self.best_ = read[0].max()
        return read


class NeedsFinite(ExponentialMechanism):
    """Looks for infinity in strict mode, too."""

    def release(self, scores, candidates=None):
        if not np.isfinite(np.asarray(scores, float)).all():
            raise ValueError("scores must be finite")
        return super().release(scores, candidates)


class Nameless(ExponentialMechanism):
    """Forgets what candidates are called."""

    def _read(self, scores, candidates):
        return *super()._read(scores, candidates)[:2], None


class Stretched(ExponentialMechanism):
    """Stretches scores to their own range: one score moves all others."""

    def _read(self, scores, candidates):
        codes, law, names = super()._read(scores, candidates)
        low, width = int(codes.min()), int(codes.max() - codes.min()) or 1
        return np.array([(int(x) - low) * 1000 * law.sensitivity // width for x in codes], np.int64), law, names


class ShowsEdge(ExponentialMechanism):
    """Returns an edge."""

    def release(self, scores, candidates=None, *, edges=None):
        self._pay()
        return float(edges[0])


class RaisesEdges(ExponentialMechanism):
    """Raises each edge to the one before: what is missing, and sorted last, takes the value of the largest."""

    def _read_intervals(self, scores, candidates, edges):
        edges = np.maximum.accumulate(np.where(np.isnan(edges), -np.inf, edges))
        return super()._read_intervals(scores, candidates, edges)


#: (mechanism, parameters, the check that must fail)
BROKEN = [
    (mechanism(Unsure), COUNT, "check_choice_is_a_distribution"),
    (mechanism(NoFactor), COUNT, "check_choice_keeps_epsilon"),
    (mechanism(NoFactorEither), COUNT, "check_choice_keeps_epsilon"),
    (mechanism(Cold), COUNT, "check_choice_keeps_epsilon"),
    (Steps, {"epsilon": 1.0, "sensitivity": 0.3}, "check_scores_keep_their_sensitivity"),
    (Stretched, COUNT, "check_scores_keep_their_sensitivity"),
    (ShowsEdge, {**COUNT, "bounds": (0, 1)}, "check_numbers_follow_their_edges"),
    (RaisesEdges, {**COUNT, "bounds": (0, 1)}, "check_edges_keep_epsilon"),
    (mechanism(TakesProposals), COUNT, "check_choices_follow_their_law"),
    (mechanism(Unscaled, ReportNoisyMax), {**COUNT, "noise": "laplace"}, "check_choices_follow_their_law"),
    (mechanism(Boasts), COUNT, "check_utility_is_as_stated"),
    (PaysTwice, COUNT, "check_release_charges"),
    (ShowsScores, COUNT, "check_release_refuses"),
    (KeepsBest, COUNT, "check_release_seeds"),
    (NeedsFinite, COUNT, "check_release_is_total_in_strict_mode"),
    (Nameless, COUNT, "check_choice_keeps_the_container"),
]
