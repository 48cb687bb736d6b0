"""Mechanisms on answers that are broken: too little noise, noise of another law, budgets and answers that leak."""

import dataclasses
import warnings
from fractions import Fraction

import numpy as np

from dpestim.central import DiscreteGaussianMechanism, DiscreteLaplaceMechanism, LaplaceMechanism
from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.privacy import Neighbours
from dpestim.privacy.concentrated import ZCDP

COUNT = {"epsilon": 1.0, "sensitivity": 1}
REAL = {"epsilon": 1.0, "sensitivity": 1.0}
DELTA = {**COUNT, "delta": 1e-5}


def mechanism(law, face=DiscreteLaplaceMechanism):
    """Return a face of a broken law."""
    made = staticmethod(lambda *arguments: law(*arguments[:4]))
    cls = type(law.__name__ + "Mechanism", (face,), {"_law_of": made, "__module__": __name__})
    return globals().setdefault(cls.__name__, cls)


class TooLong(DiscreteLaplaceLaw):
    """States tails that are not those of its probabilities."""

    def beyond(self, k):
        return super().beyond(k + 1)


class Louder(DiscreteLaplaceLaw):
    """Noise for a third more than epsilon, with its name."""

    @property
    def rate_of_decay(self):
        return super().rate_of_decay * Fraction(4, 3)


class FallsLess(DiscreteLaplaceLaw):
    """States a decay of half of the true one: an audit would find half of epsilon."""

    @property
    def decay(self):
        return 1, self.rate_of_decay / 2


class Unbounded(DiscreteLaplaceLaw):
    """Does not say how it falls: an audit would find an infinite epsilon."""

    decay = None


class CutOff(DiscreteLaplaceLaw):
    """Cuts the noise at 50 steps, and states the decay of noise that is not cut."""

    def probability(self, z):
        return super().probability(z) if abs(z) <= 50 else (Fraction(0), Fraction(0))


class Boasts(DiscreteGaussianLaw):
    """States half of its rho: a ledger would charge too little."""

    @property
    def curve(self):
        return ZCDP(super().curve.rho / 2)


class Idle(DiscreteLaplaceLaw):
    """Noise for half of epsilon."""

    @property
    def rate_of_decay(self):
        return super().rate_of_decay / 2


class SmallDelta(DiscreteGaussianLaw):
    """A standard deviation that is a tenth too small for its delta."""

    @property
    def sigma(self):
        return 0.9 * super().sigma


class NoZero(DiscreteLaplaceLaw):
    """Plus and minus zero are both kept: zero is too likely."""

    def _attempts(self, words, out):
        decided, written = super()._attempts(words, out)
        out[1:written:16] = 0
        return decided, written


class ReadsAhead(DiscreteLaplaceLaw):
    """Decides attempts for whose integers there is no room: these are lost, and the next ones depend on the room."""

    def _attempts(self, words, out):
        drawn = np.empty(len(words) // self.per, np.int64)
        decided, written = super()._attempts(words, drawn)
        out[: min(written, len(out))] = drawn[: min(written, len(out))]
        return decided, min(written, len(out))


class SettlesUp(DiscreteLaplaceLaw):
    """Attempts that are settled have another outcome than in the kernel."""

    def _settle(self, words, stream):
        z = super()._settle(words, stream)
        return None if z is None else z + 1


class Wider(DiscreteLaplaceLaw):
    """States twice the variance that it has."""

    @property
    def variance_steps(self):
        return 2 * super().variance_steps


class Forgets(DiscreteLaplaceLaw):
    """Comes back from a pickle as another law."""

    def __reduce__(self):
        return DiscreteLaplaceLaw, super().__reduce__()[1]


class AddsHalf(DiscreteLaplaceMechanism):
    """Halves the noise of the law that it shows."""

    def _add_noise(self, answers, law):
        return answers + (super()._add_noise(answers, law) - answers) // 2


class OneStep(LaplaceMechanism):
    """One step of the grid for the rounding of all answers, not one for each."""

    @staticmethod
    def _rounding(size):
        return 1


class PaysLess(DiscreteLaplaceMechanism):
    """Charges half."""

    def _charge(self, guarantee, n_rows, columns=()):
        super()._charge(dataclasses.replace(guarantee, epsilon=guarantee.epsilon / 2), n_rows, columns)


class PaysForOthers(DiscreteLaplaceMechanism):
    """Says substitution, whatever was declared."""

    def _relation(self):
        return Neighbours.SUBSTITUTION


class NoSensitivity(DiscreteLaplaceMechanism):
    """Takes 1 where no sensitivity is declared."""

    def _budget(self):
        if self.sensitivity is None:
            return type(self)(self.epsilon, sensitivity=1)._budget()
        return super()._budget()


class PaysFirst(DiscreteLaplaceMechanism):
    """Charges before it looks at the answers."""

    def _read(self, values, **how):
        self._law(1)
        if self._find_ledger() is not None:
            self._charge(self._guarantee(), None)
        return super()._read(values, **how)


class Flat(DiscreteLaplaceMechanism):
    """Forgets the shape."""

    def release(self, values):
        return np.ravel(super().release(values))


class Remembers(DiscreteLaplaceMechanism):
    """Keeps the exact answers."""

    def _add_noise(self, answers, law):
        self.answers_ = answers
        return super()._add_noise(answers, law)


class SameNoise(DiscreteLaplaceMechanism):
    """The same noise whenever there is no seed."""

    def _add_noise(self, answers, law):
        if self.random_state is not None:
            return super()._add_noise(answers, law)
        return type(self)(**{**self.get_params(), "random_state": 7})._add_noise(answers, law)


class Warns(LaplaceMechanism):
    """Warns of large answers, in strict mode too."""

    def _add_noise(self, answers, law):
        if np.abs(answers).max(initial=0) > 1e100:
            warnings.warn("an answer is very large", stacklevel=2)
        return super()._add_noise(answers, law)


class Scales(LaplaceMechanism):
    """Scales its answers by the largest of them first: one answer changes all others."""

    def _add_noise(self, answers, law):
        largest = np.abs(answers).max(initial=1)
        return super()._add_noise(answers / largest, law) * min(largest, 100.0)


BROKEN = [
    (mechanism(TooLong), COUNT, "check_noise_is_a_distribution"),
    (mechanism(Louder), COUNT, "check_noise_keeps_epsilon"),
    (mechanism(Idle), COUNT, "check_noise_keeps_epsilon"),
    (mechanism(FallsLess), COUNT, "check_noise_falls_as_stated"),
    (mechanism(Unbounded), COUNT, "check_noise_falls_as_stated"),
    (mechanism(CutOff), COUNT, "check_noise_falls_as_stated"),
    (mechanism(Boasts, DiscreteGaussianMechanism), DELTA, "check_noise_keeps_its_curve"),
    (mechanism(SmallDelta, DiscreteGaussianMechanism), DELTA, "check_noise_keeps_epsilon"),
    (mechanism(NoZero), COUNT, "check_noise_follows_its_law"),
    (mechanism(SettlesUp), COUNT, "check_noise_is_settled_alike"),
    (mechanism(ReadsAhead), COUNT, "check_noise_is_settled_alike"),
    (mechanism(Wider), COUNT, "check_noise_is_as_large_as_stated"),
    (mechanism(Forgets), COUNT, "check_laws_are_their_arguments"),
    (AddsHalf, COUNT, "check_release_adds_the_noise"),
    (OneStep, REAL, "check_release_adds_the_noise"),
    (PaysLess, COUNT, "check_release_charges"),
    (PaysForOthers, {**COUNT, "neighbours": "add_remove"}, "check_release_charges"),
    (NoSensitivity, COUNT, "check_release_refuses"),
    (PaysFirst, COUNT, "check_release_refuses"),
    (Flat, COUNT, "check_release_keeps_the_container"),
    (Remembers, COUNT, "check_release_seeds"),
    (SameNoise, COUNT, "check_release_seeds"),
    (Warns, REAL, "check_release_is_total_in_strict_mode"),
    (Scales, REAL, "check_release_is_total_in_strict_mode"),
]
