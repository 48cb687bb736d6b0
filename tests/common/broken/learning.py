"""What learns from reports, broken: more epsilon than promised, other pairs, other features."""

import numpy as np

from dpestim.local import LDPNaiveBayes, PrivatizedColumns
from dpestim.rng import WordSource

BAYES = {**LDPNaiveBayes._test_params()[0], "n_sampled": 2}
STEP = PrivatizedColumns._test_params()[0]


class SpendsTwice(LDPNaiveBayes):
    """Each of two reports of a row has all of epsilon."""

    def _made(self, classes, features, names, **more):
        return LDPNaiveBayes(2 * self.epsilon, n_sampled=2)._made(classes, features, names, **more)


class ForgetsBatches(LDPNaiveBayes):
    """A second batch is counted from the first row again."""

    def _fit(self, rows, *, restart, keep_reports=False):
        return super()._fit(rows, restart=True)


class MixesClasses(LDPNaiveBayes):
    """Reports another class."""

    def _read(self, rows, restart=False, check=None):
        X, y = rows
        others = np.roll(np.asarray(self.classes), 1)
        return super()._read((X, others[np.searchsorted(self.classes, y)]), restart, check)


class Unnormalised(LDPNaiveBayes):
    """Takes the logarithm of a joint probability for that of a class."""

    def predict_log_proba(self, X):
        return self.predict_joint_log_proba(X)


class Late(LDPNaiveBayes):
    """Charges before it has looked at what it is given."""

    def _read(self, rows, restart=False, check=None):
        self._charge(self.privacy_, 1)
        return super()._read(rows, restart, check)


class Attenuates(PrivatizedColumns):
    """Leaves supports as they are."""

    def _features(self, reports, rest):
        kept, self.correction = self.correction, None
        out = super()._features(reports, rest)
        self.correction = kept
        return out


class ReportsForFree(PrivatizedColumns):
    """Does not charge for rows that are reported again."""

    def privatize(self, X):
        data, columns, _ = self._read(X)
        return columns.randomize(data, WordSource(self.random_state), 0, None)


#: (class, its parameters, the check that must fail)
BROKEN = [
    (SpendsTwice, BAYES, "check_learner_promise"),
    (ForgetsBatches, BAYES, "check_learner_verbs"),
    (MixesClasses, BAYES, "check_learner_shares"),
    (Unnormalised, BAYES, "check_learner_predictions"),
    (Late, BAYES, "check_learner_refusals"),
    (Attenuates, STEP, "check_privatized_features"),
    (ReportsForFree, STEP, "check_privatized_noise"),
]
