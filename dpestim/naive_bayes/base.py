"""What naive Bayes models share: parameters, the charge, the prior, and probabilities from logarithms."""


import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from dpestim.central.base import declared_delta
from dpestim.central.model import CentralClassifier
from dpestim.inputs import checked_classes, class_array, is_by_column, label_codes
from dpestim.inputs.numbers import bound_array
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import check_random_state
from dpestim.statistics.one_pass import OnePassModel

_CLASSES = """\
    classes : array-like, dict or Domain, default=None
        Public list of at least two classes. None takes the classes in y, which leaks (`PrivacyLeakWarning`) and makes
        ``privacy_.epsilon`` infinite.
"""


class NaiveBayes(CentralClassifier, OnePassModel):
    """Base of naive Bayes models; a sub-class brings `_check_own`, `_rows`, `_joint`, and what `OnePassModel` asks."""

    _template = "neighbours"
    _texts = {"classes": _CLASSES}

    def __init__(self, epsilon=1.0, *, delta=None, classes=None, neighbours=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    def predict(self, X):
        """Return the likeliest class of each row; of private rows **not private**."""
        check_is_fitted(self)
        return self.classes_[self._decide(X)]

    def predict_log_proba(self, X):
        """Return the logarithm of the probability of each class, of shape (n_rows, n_classes); as private as rows."""
        joint = self.predict_joint_log_proba(X)
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X):
        """Return the probability of each class, of shape (n_rows, n_classes); of private rows **not private**."""
        return np.exp(self.predict_log_proba(X))

    def predict_joint_log_proba(self, X):
        """Return the logarithm of the probability of each class and the row, of shape (n_rows, n_classes)."""
        check_is_fitted(self)
        rows, n_rows = self._rows(X, False)
        if self._is_strict():
            self._note_predictions(n_rows)
        return self._joint(rows, n_rows) + self.class_log_prior_

    # ---------------------------------------------------------------- inside

    def _decide(self, X):
        return self.predict_joint_log_proba(X).argmax(axis=1)

    def _check(self):
        """Return (epsilon, delta) as exact numbers; raise ValueError for a parameter that does not fit."""
        epsilon, delta = canonical_epsilon(self.epsilon), declared_delta(self.delta)
        self._relation()
        if self.classes is not None:
            checked_classes(self.classes)
            if not is_by_column(self.classes):  # (else y will say which they are)
                self._prior(np.ones(len(class_array(self.classes))))
        check_random_state(self.random_state)
        self._check_own()
        return epsilon, delta

    def _read(self, X, y, reset):
        rows, n_rows = self._rows(X, reset)
        codes, classes = label_codes(y, self.classes, n_rows, strict=self._is_strict())
        self._prior(np.ones(len(classes)))
        return (rows, codes, classes), n_rows, self.n_features_in_

    def _classes(self, data):
        """Return the classes, as something that compares."""
        classes = class_array(self.classes) if data is None else data[2]
        return tuple((type(value).__name__, value) for value in classes)

    def _class_array(self, classes):
        return class_array([value for _, value in classes] if self.classes is None else self.classes)

    #: The name of the parameter with declared probabilities of classes.
    _declared_prior = None

    def _prior(self, counts, deviation=0.0):
        """Return the probabilities of classes: those declared, or from noisy counts, each taken as 1 at least.

        They are pulled towards equal ones by what noise explains of their differences (the positive part of James and
        Stein 1961), and a third of the deviation of the noise is added to each: a logarithm would make much of a class
        that noise hid.
        """
        name = self._declared_prior
        declared = getattr(self, name)
        if declared is None:
            middle = counts.mean()
            spread, noise = float(np.square(counts - middle).sum()), (len(counts) - 1) * deviation**2
            counts = middle + max(0.0, 1.0 - noise / spread if spread else 0.0) * (counts - middle)
            known = np.maximum(counts, 1.0) + deviation / 3
            return known / known.sum()
        declared = bound_array(declared, name)
        if declared.shape != counts.shape or not (declared > 0).all() or not abs(declared.sum() - 1) < 1e-6:
            raise ValueError(f"{name} must be None, or one probability above 0 for each class, which add up to 1")
        return declared
