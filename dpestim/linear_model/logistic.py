"""Logistic regression: rows are clipped, a perturbed objective is minimised, and coefficients leave on a grid."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpestim._core import scaled
from dpestim.inputs import class_array
from dpestim.linear_model.base import LinearClassifier
from dpestim.linear_model.base_rate import class_shares, count_law, evenness, offsets_of, share_of
from dpestim.linear_model.losses import LOGISTIC
from dpestim.linear_model.release import COLUMNS, release
from dpestim.linear_model.rows import Rows
from dpestim.linear_model.shapes import BINARY, OneVersusRest, Softmax
from dpestim.linear_model.stretch import stretched
from dpestim.models import NO_TARGETS
from dpestim.privacy.exact import canonical_epsilon
from dpestim.summaries import read_schema


class DPLogisticRegression(LinearClassifier):
    """Fit logistic regression by objective perturbation: a random linear term in the objective.

    The noise is part of the objective, so that the minimiser compensates for it in part. ``perturbation="output"`` adds
    noise to the coefficients instead; it is simpler and less accurate. With many columns or a small epsilon, a `delta`
    such as 1e-5 pays: the noise is then Gaussian and grows with the square root of the number of columns, instead of
    the number itself.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for data sets of equal size that differ in
    one row: `coef_`, `intercept_` and everything computed from them may be published. With an intercept, a tenth of
    epsilon (or 100 / n, where that is less) counts the classes, and the rest fits. The guarantee covers floating point
    and the inexact minimiser: a hundredth of epsilon pays for them. Parameters and the numbers of rows and of columns
    are public. Predictions and `score` of private rows are **not private**: strict mode enters predictions in the
    ledger, and refuses `score`.

    **Utility.** Best where rows use their norm: scale columns to public bounds, and declare the smallest `data_norm`
    that fits. The default C needs no look at the data. Coefficients shrink towards 0 as epsilon does, and
    probabilities towards the shares of the classes, before rankings become random.

    **Complexity.** Six or seven passes over the rows, one of which forms the Hessian: O(n d^2) time, O(n d + d^2)
    memory beyond X (a scaled copy), and O(d) exact random numbers. K > 2 classes: O(n d K) for each of some tens of
    passes, of which some form a curvature in O(n K^2 + K^3) time and O(K^2) memory, and O(d K) random numbers; "ovr" is
    K times two classes. Of sparse X only entries are read: their squared numbers, summed over rows, stand in the place
    of n d^2.

    Parameters
    ----------
    {epsilon of a fit}
    delta : float, default=None
        The delta of (epsilon, delta)-differential privacy, below 1; None or 0 is pure differential privacy. If pure
        differential privacy needs less noise (few columns), the fit uses it, and ``privacy_.delta`` is 0.
    perturbation : {"objective", "output", "functional", "gradient"}, default="objective"
        "gradient" is accelerated descent by up to 256 noisy sums of gradients, one Gaussian vector together where
        `delta` is above 0; it stops the earlier, the larger the noise is. With a delta, two classes and few rows it
        ranks best, but takes longer; without a delta it is the worst (``gradient.md``). "functional" is
        the functional mechanism: Laplace noise on the coefficients of a quadratic loss, one class against the rest with
        epsilon / K each; pure, and worse than "objective" (``functional.md``). X is made dense.
    multi_class : {"auto", "multinomial", "ovr"}, default="auto"
        For more than two classes: "multinomial" (which "auto" takes) is one softmax under one noise, "ovr" one problem
        for each class against the rest, under one Gaussian noise, or with epsilon / K each where delta is 0. The
        gradient of a softmax has norm sqrt 2 for any K, and that of K problems sqrt K, so that "multinomial" needs less
        noise.
    {bounds}
    {data_norm}
    {classes}
    {domain}
    C : float, default=None
        Inverse regularisation, above 0, as in scikit-learn, for rows (x / R, a) / sqrt(1 + a^2), where a is
        `intercept_scaling` (the intercept is regularised too, towards what the count of the classes says). None chooses
        by a rule that sees only the numbers of rows and columns, epsilon and delta, and with "objective" the private
        count: less where rare classes have few rows. That C ranks rows best, and makes coefficients small: with
        "objective" they are then multiplied by a number of at least 1 that follows from what is released, so that
        probabilities are nearer to what was seen. Where C is too large for epsilon or for the number of rows it is
        lowered as far as needed: see `C_`.
    fit_intercept : bool, default=True
        Whether there is a constant, and with it the private count of the classes that margins start from. Without it
        columns with bounds are divided by the larger of these, and 0 stays 0.
    intercept_scaling : float, default=0.25
        The constant a that is appended to rows. Small: features keep more of the norm that the noise is scaled to.
    {payment of a fit}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1 or n_classes, n_features)
        In units of X. Multiples of a public step.
    intercept_ : ndarray of shape (1 or n_classes,)
    C_ : float
        The inverse regularisation that was used; it depends on no value but the private count.
    data_norm_ : float
        The norm R that rows are clipped to.
    noise_scale_ : float
        Scale of the perturbation: with delta 0 its mean norm divided by the number of coefficients, else the standard
        deviation of an entry (with "gradient", of each sum). Public too.
    privacy_ : PrivacyGuarantee
    {columns seen}

    {refused rows}

    References
    ----------
    Chaudhuri, Monteleoni, Sarwate (2011), "Differentially private empirical risk minimization", Journal of Machine
    Learning Research 12, Algorithms 1 and 2. Kifer, Smith, Thakurta (2012), "Private convex empirical risk minimization
    and high-dimensional regression", COLT, for Gaussian noise. The proof, with better constants: ``logistic.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.linear_model import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5_000, 3))
    >>> y = X[:, 0] + X[:, 1] > 0.2 * rng.standard_normal(5_000)
    >>> model = DPLogisticRegression(1.0, data_norm=1.5, classes=[False, True], random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        epsilon=1.0,
        *,
        delta=None,
        perturbation="objective",
        multi_class="auto",
        bounds=None,
        data_norm=None,
        classes=None,
        domain=None,
        C=None,
        fit_intercept=True,
        intercept_scaling=0.25,
        ledger=None,
        random_state=None,
        n_jobs=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.perturbation = perturbation
        self.multi_class = multi_class
        self.bounds = bounds
        self.data_norm = data_norm
        self.classes = classes
        self.domain = domain
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    def predict_proba(self, X):
        """Return the probability of each class for each row, of shape (n_rows, n_classes).

        With more than two classes: the softmax of the scores, or with "ovr" the probabilities of one class against the
        rest, divided by their sum. For private rows they are **not private**, see `decision_function`.
        """
        scores = self.decision_function(X)
        if scores.ndim > 1:
            return self._shares(scores)
        out = np.empty((len(scores), 2))
        scaled.chances(np.ascontiguousarray(scores), out)
        return out

    def predict_log_proba(self, X):
        """Return the logarithm of the probability of each class for each row; as private as these."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([-np.logaddexp(0.0, scores), -np.logaddexp(0.0, -scores)], axis=1)
        with np.errstate(divide="ignore"):
            return np.log(self._shares(scores))

    # ---------------------------------------------------------------- inside

    def _law(self, epsilon, delta, n_rows, size, task):
        n_classes, counting = task[1], self._counting(epsilon, n_rows)
        if self.perturbation == "functional":
            from dpestim.linear_model.functional import FunctionalLogistic

            return FunctionalLogistic(epsilon, size, n_classes if n_classes > 2 else 1)
        if self.perturbation == "gradient":
            from dpestim.linear_model.gradient import Plan

            law = Plan.of(epsilon - counting, delta, n_rows, size, n_classes, self._strength(n_rows, task))
        else:
            rest = epsilon - counting, delta, n_rows, size, task
            if self._looks_at_shares(counting):
                # the strength will lie between that of one class alone, which is tried here, and that of equal ones
                self._calibrated(*rest, evenness=0.0)
            law = self._calibrated(*rest, perturbation=self.perturbation)
        if counting:
            count_law(counting, n_classes)
        return law

    def _counting(self, epsilon, n_rows):
        """Return the part of epsilon that counts the classes."""
        counts = self.fit_intercept and self.perturbation != "functional"
        return share_of(epsilon, n_rows) if counts else Fraction(0)

    @property
    def _adds_up(self):
        return self.perturbation in ("functional", "gradient")

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`), asked at each step of "gradient"; charges before the first noise.

        {fit of parts}
        """
        from dpestim.linear_model.parts import PartRows  # (only who reads rows in parts asks for it)
        from dpestim.passes import Blueprint, CountRows

        self._check_parameters()
        if self.perturbation not in ("functional", "gradient"):
            raise ValueError(f'perturbation="{self.perturbation}" needs all rows at once, because its minimiser reads '
                             'them in floats: take perturbation="gradient" or perturbation="functional"')
        if self._inferred():
            raise ValueError(f"{' and '.join(self._inferred())} must be declared, because DPLogisticRegression needs "
                             "all rows at once to find them")
        if len(example) < 2:
            raise ValueError(NO_TARGETS)
        trial = self._trial(*example)
        n_columns = trial._checked_X(example[0], reset=True, total=self._is_strict()).shape[1]
        scale = trial._scale(n_columns)
        if trial.data_norm is None:
            trial.data_norm = scale.norm
        classes = class_array(trial.classes)
        blueprint = replace(Blueprint.of(trial), state=read_schema(trial))
        shape = ask(CountRows(blueprint)), n_columns
        rows = PartRows(ask, blueprint, shape, bool(self.fit_intercept))
        self._fit_to(rows, (None, len(classes)), {"classes_": classes}, trial, scale, float(trial.data_norm))

    def _read_part(self, rows):
        """Return the rows of a part as `fit` reads them: with the columns of the others."""
        if len(rows) < 2:
            raise ValueError(NO_TARGETS)
        strict = self._is_strict()
        X = self._checked_X(rows[0], reset=False, total=strict)
        scale = self._scale(X.shape[1])
        task, _ = self._read_y(rows[1], len(X), strict)
        intercept = float(self.intercept_scaling) if self.fit_intercept else 0.0
        return Rows(X if scale is None else scale.rows(X), *task, float(self.data_norm), intercept)

    def _minimised(self, X, task, law, norm, intercept, source):
        (codes, n_classes), (_, shape) = task, self._loss(task)
        rows = X if isinstance(X, Rows) else Rows(X, codes, n_classes, norm, intercept)
        offset = np.zeros(1 if n_classes == 2 else n_classes)
        counting = self._counting(canonical_epsilon(self.epsilon), len(X))
        # (owners draw from parts of a source, which then must not be used besides)
        source, other = (source.part(0), source.part(1)) if self.perturbation == "gradient" else (source, source)
        if counting:
            shares = class_shares(rows.counts(), len(rows), counting, other, COLUMNS * shape.parts)
            offset = offsets_of(shares, shape)
            if self._looks_at_shares(counting):  # a function of what was released (claim 7)
                law = self._following(law, len(X), X.shape[1] + 1, task, evenness(shares))
        w = self._fitted(rows, task, norm, intercept, offset, law, source)
        if self.C is None and self.perturbation == "objective":
            w = stretched(w, law, len(X))
        return w, offset, law

    def _looks_at_shares(self, counting):
        """Tell whether the strength depends on the private count."""
        return bool(counting) and self.C is None and self.perturbation == "objective"

    def _fitted(self, rows, task, norm, intercept, offset, law, source):
        """Return the released coefficients, a row for each class (one for two classes)."""
        n_classes = task[1]
        if self.perturbation == "gradient":
            return law.fit(rows.gradients(law.link, law.agreement.bits, offset), source)
        if self.perturbation == "functional":
            return law.draw(rows.products(self._kinds(n_classes)), len(rows), source)
        if law.shape.blocks > 1:
            from dpestim.linear_model.softmax import SoftmaxLoss

            loss = SoftmaxLoss(rows.X, rows.codes, n_classes, norm, intercept, self.n_jobs, offset)
            integers, step = release(loss, law, source, 0)
            return loss.basis @ np.array([step * k for k in integers], dtype=np.float64).reshape(-1, loss.width)
        return self._released(rows.X, task, law, norm, intercept, source, offset)

    def _loss(self, task):
        """Return the loss of a margin, and the shape of that of all classes."""
        if task[1] == 2:
            return LOGISTIC, BINARY
        return LOGISTIC, OneVersusRest(task[1]) if self.multi_class == "ovr" else Softmax(task[1])

    def _shares(self, scores):
        """Return the probability of each class, for more than two of them."""
        # one against the rest: divided by their sum, in logarithms, as far from all classes every expit underflows
        logs = -np.logaddexp(0.0, -scores) if self.multi_class == "ovr" or self.perturbation == "functional" else scores
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "data_norm": 2.0, "classes": [0, 1]},
            {"epsilon": 3.0, "delta": 1e-5, "data_norm": 2.0, "classes": ["a", "b", "c"]},
            {"epsilon": 2.0, "data_norm": 2.0, "classes": [0, 1], "perturbation": "output", "fit_intercept": False},
            {"epsilon": 4.0, "delta": 1e-5, "data_norm": 2.0, "classes": [0, 1, 2], "multi_class": "ovr"},
            {"epsilon": 4.0, "data_norm": 2.0, "classes": [0, 1, 2], "perturbation": "functional"},
            {"epsilon": 2.0, "delta": 1e-5, "data_norm": 2.0, "classes": [0, 1, 2], "perturbation": "gradient"},
        ]

    def _check_parameters(self):
        epsilon, delta = super()._check_parameters()
        if self.perturbation not in ("objective", "output", "functional", "gradient"):
            raise ValueError('perturbation must be "objective", "output", "functional" or "gradient"')
        if self.perturbation == "gradient" and self.multi_class == "ovr":
            raise ValueError('multi_class must be "auto" or "multinomial" with perturbation="gradient"')
        if self.perturbation == "functional" and (delta or self.C is not None):
            raise ValueError('perturbation="functional" needs delta=0 and C=None: its noise has no delta and '
                             "determines the penalty")
        if self.multi_class not in ("auto", "multinomial", "ovr"):
            raise ValueError('multi_class must be "auto", "multinomial" or "ovr"')
        return epsilon, delta
