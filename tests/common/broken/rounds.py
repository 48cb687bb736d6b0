"""Models from noisy gradients that go wrong: rounds that repeat noise, verbs that are not the fit, no learning."""

from dpestim.local import LDPSGDClassifier, LDPSGDRegressor


class _Alike:
    """A source whose parts are all the same one."""

    def __init__(self, source):
        self._source = source

    def part(self, number):
        return self._source.part(0)


class RepeatsItsNoise(LDPSGDClassifier):
    def _answers(self, rows, targets, round_, source):
        return super()._answers(rows, targets, round_, _Alike(source))


class PaysTwice(LDPSGDRegressor):
    """Charges the server, too."""

    def aggregate(self, reports):
        self._charge(self.privacy_, len(reports))
        return super().aggregate(reports)


class FitsByItself(LDPSGDClassifier):
    """Its `fit` draws other words than its users do."""

    def _fit(self, X, y, **how):
        self.random_state, mine = 7, self.random_state
        super()._fit(X, y, **how)
        self.random_state = mine
        return self


class Ascends(LDPSGDRegressor):
    """Steps along the gradient."""

    def _scales(self):
        return -super()._scales()


SETTING = LDPSGDClassifier._test_params()[0]
NUMBERS = LDPSGDRegressor._test_params()[0]
BROKEN = [
    (RepeatsItsNoise, SETTING, "check_rounds_have_words_of_their_own"),
    (PaysTwice, NUMBERS, "check_rounds_are_the_fit"),
    (FitsByItself, SETTING, "check_rounds_are_the_fit"),
    (Ascends, NUMBERS, "check_rounds_learn"),
]
