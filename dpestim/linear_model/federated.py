"""A linear model of several data owners, none of whom shows a row: distributed noisy gradients."""

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dpestim.central.base import declared_delta
from dpestim.inputs import (
    check_target,
    checked_classes,
    clipped_rows,
    label_codes,
    longest,
    name_of_target,
    number_column,
    row_shape,
    target_numbers,
    target_pair,
)
from dpestim.linear_model.base import ClippedModel
from dpestim.linear_model.base_rate import start_law
from dpestim.linear_model.gradient import GradientOwner, descend
from dpestim.linear_model.owners import (
    LedgersOfOwners,
    agree,
    counting_of,
    curvatures_of,
    directions_of,
    fitness_cost,
    places_of,
    start_of,
)
from dpestim.links import LOGISTIC, softmax, squared
from dpestim.models import checked_number
from dpestim.privacy.exact import canonical_epsilon
from dpestim.progress import Progress, check_verbose
from dpestim.rng import WordSource, check_random_state
from dpestim.statistics.row_moments import checked_box
from dpestim.summaries import read_schema


def _tells_classes(model):
    return model.loss == "logistic"


class DPFederatedLinearModel(ClippedModel):
    """Fit a linear model of several data owners by noisy gradients of each owner.

    In every step the server sends its coefficients to all owners. Each owner answers with the sum of the gradients of
    its rows, with noise for the owner's epsilon. The number of steps is public, so that an owner knows all requests in
    advance. `predict_fitness_cost` predicts the cost of privacy in accuracy before any owner answers.

    **Privacy.** For each owner, (epsilon, delta)-differential privacy of its rows in the central model, for data sets
    of equal size that differ in one row: against the server, all other owners, and readers of the coefficients. Each
    owner is trusted with the owner's rows only. Sizes are public. A person with rows at several owners is protected by
    the sum of their epsilons. With a delta the noise of all steps together is one Gaussian vector; without, it is
    discrete Laplace, and epsilon is divided by the number of steps. With an intercept up to a tenth of epsilon says
    first how many rows each class has, or the mean of y: margins start there. Here all owners live in one process:
    nothing is sent over a network.

    **Utility.** The cost falls with the square of the owners' sizes times their epsilons. ``weights="size"`` fits what
    a model of all rows together would fit; "precision" trusts owners by how little noise they add, which is less noisy
    and biased where owners differ. Noise of the squared loss is in parts of `target_bounds`: declare tight ones.

    **Complexity.** O(n_steps n d) time, O(n d) memory.

    Parameters
    ----------
    epsilon : float or list of float, default=1.0
        Privacy budget of one `fit`: of every owner, or of each.
    loss : {"logistic", "squared"}, default="logistic"
        A classifier (of two classes, or a softmax of more), or a regression.
    delta : float, default=None
        The delta of (epsilon, delta)-differential privacy, below 1; of every owner. None or 0: discrete Laplace noise,
        which is much larger; declare a delta, such as 1e-6, if you can.
    bounds : (low, high), dict or Domain, default=None
        Public range of the columns of X, numbers in their own units: rows are clipped to it and scaled to [-1, 1], and
        `coef_` and `intercept_` are those of X. `data_norm` is then about scaled rows, and None the largest norm that
        they can have.
    data_norm : float, default=None
        Public bound of the Euclidean norm of a row of X; longer rows are scaled down to it, in `fit` and in
        predictions.
    domain : dpestim.Domain, default=None
        The public description of the table. It gives `classes` or `target_bounds` of the column that y, a series, is
        called. Where X is a frame whose columns are numbers of the domain, it gives `bounds`; where
        `dpestim.preprocessing.DomainEncoder` has encoded the rows, `data_norm`.
    classes : array-like, dict or Domain, default=None
        Public list of at least two classes, for the logistic loss.
    target_bounds : (low, high), dict or Domain, default=None
        Public range of y, for the squared loss; targets outside are clipped.
    weights : {"size", "precision"}, default="size"
        How much an owner counts.
    C : float, default=None
        Inverse regularisation, as in `DPLogisticRegression`. None: only the number of steps regularises.
    n_steps : int, default=None
        None: by a rule that sees public numbers only.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=0.25
        The constant that is appended to rows.
    ledger : dpestim.accounting.Ledger or list of them, default=None
        Pays for each `fit`: one, by the largest epsilon, as rows of owners are different rows; or one for each owner.
        All are asked before one is charged; those before one that refuses even so, as somebody else charged it in
        between, stay charged.
    {random_state}
    {verbose}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), or (1 or n_classes, n_features) for classes
        In units of X and y.
    intercept_ : float or ndarray
    classes_ : ndarray
        With the logistic loss.
    data_norm_ : float
        The norm that rows are clipped to.
    n_steps_ : int
    owner_weights_ : ndarray of shape (n_owners,)
    predicted_fitness_cost_ : float
        What `predict_fitness_cost` says of these owners.
    privacy_ : PrivacyGuarantee
        That of the owner with the largest epsilon.
    privacy_by_owner_ : list of PrivacyGuarantee
    {columns seen}

    Raises
    ------
    ValueError
        For an invalid parameter, a missing value or an invalid target, before anything is charged. The message names
        the parameter or column, never the value. In strict mode rows with such values count as zero rows instead.

    References
    ----------
    Wu, Farokhi, Smith, Kaafar (2020), "The value of collaboration in convex machine learning with differential
    privacy", IEEE S&P, for the protocol, and for predicting its cost; the proof, and a formula that fits measurements:
    ``federated.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.linear_model import DPFederatedLinearModel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(6_000, 3))
    >>> y = X[:, 0] + X[:, 1] > 0.2 * rng.standard_normal(6_000)
    >>> owners = np.repeat([0, 1, 2], 2_000)
    >>> model = DPFederatedLinearModel([0.5, 1.0, 2.0], delta=1e-6, data_norm=1.5, classes=[False, True],
    ...                                random_state=0)
    >>> model = model.fit(X, y, owners)
    >>> model.score(X, y) > 0.9, [float(promise.epsilon) for promise in model.privacy_by_owner_]
    (True, [0.5, 1.0, 2.0])
    """

    _not_in_parts = ("asks owners, each of which adds noise of its own, and parts are no owners: take "
                     'DPLogisticRegression(perturbation="gradient") or DPLinearRegression')

    def __init__(self, epsilon=1.0, *, loss="logistic", delta=None, bounds=None, data_norm=None, domain=None,
                 classes=None, target_bounds=None, weights="size", C=None, n_steps=None, fit_intercept=True,
                 intercept_scaling=0.25, ledger=None, random_state=None, verbose=0):
        self.epsilon = epsilon
        self.loss = loss
        self.delta = delta
        self.bounds = bounds
        self.data_norm = data_norm
        self.domain = domain
        self.classes = classes
        self.target_bounds = target_bounds
        self.weights = weights
        self.C = C
        self.n_steps = n_steps
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _declared(self):
        return ("data_norm", "classes" if self.loss == "logistic" else "target_bounds")

    def fit(self, X, y, owners=None):
        """Fit the model; one release of each owner's epsilon.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        owners : array-like of shape (n_rows,), default=None
            Whose row each is, an int from 0; public. None: one owner has all.

        Returns
        -------
        self
        """
        self._check()
        strict, trial = self._is_strict(), self._declared_trial(X, y)
        X = trial._checked_X(X, reset=True, total=strict)
        targets, classes, (middle, half) = trial._targets(y, len(X), strict)
        X, norm, scale = trial._scaled_rows(X)
        several = isinstance(self.epsilon, list | tuple | np.ndarray)
        places = places_of(owners, len(X), len(self.epsilon) if several else None)
        sizes = [len(at) for at in places]
        link, size = self._link(classes), X.shape[1] + bool(self.fit_intercept)
        agreements, weights, schedule, counting = self._agree(sizes, size, link)
        for epsilon, n in zip(counting if self.fit_intercept else (), sizes):
            start_law(epsilon, n, link.n_classes)  # (may fail)
        promises = [self._guarantee(epsilon, delta) for epsilon, delta in self._budgets(len(places))]
        self._pay(promises, sizes, getattr(trial, "feature_names_in_", ()))
        self._warn_if_inferred()

        source, intercept = WordSource(self.random_state), float(self.intercept_scaling) * bool(self.fit_intercept)
        sources, start = [source.part(k) for k in range(len(places))], np.zeros(link.n_outputs)
        if self.fit_intercept:  # (answers draw from the parts before that of the start)
            start = start_of([targets[at] for at in places], weights, counting, link,
                             [own.part(schedule.n_steps) for own in sources])
        rows = clipped_rows(X, norm, intercept)
        hired = [
            GradientOwner(rows[at], targets[at], link, agreement, own, start)
            for at, agreement, own in zip(places, agreements, sources)
        ]
        answers = [lambda w, owner=owner: owner.answer(w) / max(owner.n_rows, 1) for owner in hired]
        w = descend(answers, weights, schedule, (link.n_outputs, size), Progress(self, schedule.n_steps, "step").done)
        limit, tail = row_shape(X.shape[1], intercept)
        coef = w[:, : X.shape[1]] * (limit / norm) * half
        constant = (w[:, -1] * tail + start if self.fit_intercept else np.zeros(len(w))) * half + middle
        learned = {"coef_": coef, "intercept_": constant, "classes_": classes, "_scaled": None}
        if scale is not None:
            coef, constant = scale.in_units(coef, constant)
            learned |= {"coef_": coef, "intercept_": constant, "_scaled": (learned["coef_"], learned["intercept_"],
                                                                           scale)}
        if self.loss == "squared":
            learned |= {"coef_": coef[0], "intercept_": float(constant[0])}
            del learned["classes_"]
        return self._become({
            **learned, **read_schema(trial), "data_norm_": norm, "n_steps_": schedule.n_steps,
            "owner_weights_": weights, "privacy_by_owner_": promises,
            "predicted_fitness_cost_": fitness_cost(agreements, sizes, weights, schedule, link, size),
            "privacy_": max(promises, key=lambda promise: promise.epsilon)})

    def predict_fitness_cost(self, sizes, *, n_features, n_classes=2, curvatures=None):
        """Predict, before any training, by how much noise will raise the mean loss of a row; no data are needed.

        Parameters
        ----------
        sizes : list of int
            Rows of each owner.
        n_features : int
        n_classes : int, default=2
            For the logistic loss.
        curvatures : array-like of shape (n_features + fit_intercept,), default=None
            Those of the mean loss at its minimum, from public rows like those of the owners (`pilot_curvatures`); of K
            > 2 classes K - 1 times as many. None: some that fall with the square of their number, a guess that may be
            off by a factor of thirty.

        Returns
        -------
        float
            Expected rise of the mean loss by noise, beside as many steps without it. The squared loss is that of
            (y - middle) / half of the target's bounds, halved. Where few steps leave a fit unfinished, noise may cost
            less, or even help.
        """
        self._check()
        if not isinstance(sizes, list | tuple | np.ndarray) or not len(sizes) or any(
                isinstance(n, bool) or n != int(n) or n < 1 for n in sizes):
            raise ValueError("sizes must be a list with the number of rows of each owner, each at least 1")
        for name, value, least in (("n_features", n_features, 1), ("n_classes", n_classes, 2)):
            if checked_number(name, value, f"of at least {least}, an int", lambda v, least=least: v >= least) % 1:
                raise ValueError(f"{name} must be a number of at least {least}, an int")
        sizes, size = [int(n) for n in sizes], int(n_features) + bool(self.fit_intercept)
        link = squared() if self.loss == "squared" else LOGISTIC if n_classes == 2 else softmax(int(n_classes))
        agreements, weights, schedule, _ = self._agree(sizes, size, link)
        if curvatures is not None:
            curvatures, wanted = np.asarray(curvatures, float), size * directions_of(link)
            if curvatures.shape != (wanted,) or not (np.isfinite(curvatures) & (curvatures >= 0)).all():
                raise ValueError(f"curvatures must be {wanted} numbers of at least 0")
        return fitness_cost(agreements, sizes, weights, schedule, link, size, curvatures)

    def pilot_curvatures(self, X, y):
        """Return the curvatures of the mean loss of **public** rows at its minimum, for `predict_fitness_cost`.

        They are exact functions of the rows: not for private ones.
        """
        self._check()
        self._refuse_in_strict("pilot_curvatures is refused, because it returns exact functions of rows: call it "
                               "outside of strict mode, on public rows")
        if self._inferred():
            raise ValueError(f"{' and '.join(self._inferred())} must be declared")
        trial = self._trial(X, y)
        X = trial._checked_X(X, reset=True, total=False)
        targets, classes, _ = trial._targets(y, len(X), False)
        self._note_score(len(X), "pilot_curvatures")
        X, norm, _ = trial._scaled_rows(X)
        rows = clipped_rows(X, norm, float(self.intercept_scaling) * bool(self.fit_intercept))
        return curvatures_of(rows, targets, self._link(classes), self.C)

    def mean_loss(self, X, y):
        """Return the mean loss of rows, which is **not private**: an exact release of these rows.

        What `predict_fitness_cost` predicts is how much of it noise has added.
        """
        self._refuse_in_strict("mean_loss is refused, because it compares with raw data: call it outside of strict "
                               "mode")
        check_is_fitted(self)
        margins = self._margins(X)
        targets, _, (middle, half) = self._trial(X, y)._targets(y, len(margins), False)
        self._note_score(len(margins))
        if self.loss == "squared":
            margins = (margins - middle) / half
        return float(self._link(getattr(self, "classes_", None)).losses(margins, targets).mean())

    def predict(self, X):
        """Return the likeliest class, or the expected target, of each row; of private rows **not private**."""
        margins = self._margins(X)
        if self.loss == "squared":
            return margins
        return self.classes_[(margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)]

    @available_if(_tells_classes)
    def predict_proba(self, X):
        """Return the probability of each class for each row, of shape (n_rows, n_classes); logistic loss only."""
        return np.exp(self.predict_log_proba(X))

    @available_if(_tells_classes)
    def predict_log_proba(self, X):
        """Return the logarithm of the probability of each class for each row; as private as these."""
        margins = self._margins(X)
        if margins.ndim == 1:
            return np.stack([-np.logaddexp(0.0, margins), -np.logaddexp(0.0, -margins)], axis=1)
        return margins - logsumexp(margins, axis=1, keepdims=True)

    def score(self, X, y):
        """Return the accuracy, or R^2, on rows X and targets y; **not private**: an exact release of these rows."""
        self._refuse_in_strict("score is refused, because it compares with raw data: call it outside of strict mode")
        found = self.predict(X)
        self._note_score(len(found))
        if self.loss == "squared":
            known = number_column(y, len(found), "y")
            total = float(np.square(known - known.mean()).sum())
            return 1 - float(np.square(known - found).sum()) / total if total else 0.0
        codes, _ = label_codes(y, self.classes_, len(found), strict=False, total=True)
        return float(np.mean((codes >= 0) & (self.classes_[codes] == found)))

    # ---------------------------------------------------------------- inside

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "data_norm": 2.0, "classes": [0, 1]},
            {"epsilon": 3.0, "delta": 1e-5, "data_norm": 2.0, "classes": ["a", "b", "c"]},
            {"epsilon": 2.0, "loss": "squared", "data_norm": 2.0, "target_bounds": (-2, 2),
             "n_steps": 3},
        ]

    def _test_data(self, n_rows, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(n_rows, 3))
        score = X[:, 0] + 0.2 * rng.standard_normal(n_rows)
        if self.loss == "squared":
            return X, score
        y = np.digitize(score, np.linspace(-1, 1, len(self.classes) + 1)[1:-1])
        classes = np.asarray(self.classes)
        return X, (classes.astype(object) if classes.dtype.kind == "U" else classes)[y]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self.loss == "squared":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags(poor_score=True)
        else:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(poor_score=True)
        return tags

    def _check(self):
        if not isinstance(self.loss, str) or self.loss not in ("logistic", "squared"):
            raise ValueError('loss must be "logistic" or "squared"')
        if not isinstance(self.weights, str) or self.weights not in ("size", "precision"):
            raise ValueError('weights must be "size" or "precision"')
        self._budgets(None)
        self._check_domain()
        if self.bounds is not None:
            checked_box(self.bounds)
        if self.data_norm is not None:
            checked_number("data_norm", self.data_norm, "in [1e-100, 1e100]", lambda v: 1e-100 <= v <= 1e100)
        if self.C is not None:
            checked_number("C", self.C, "in [1e-12, 1e12]", lambda v: 1e-12 <= v <= 1e12)
        if self.n_steps is not None and (isinstance(self.n_steps, bool) or checked_number(
                "n_steps", self.n_steps, "from 1 to 10,000, an int", lambda v: 1 <= v <= 10_000) != int(self.n_steps)):
            raise ValueError("n_steps must be a number from 1 to 10,000, an int")
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError("fit_intercept must be True or False")
        checked_number("intercept_scaling", self.intercept_scaling, "in [1e-6, 1e6]", lambda v: 1e-6 <= v <= 1e6)
        if self.classes is not None:
            checked_classes(self.classes)
        if self.target_bounds is not None:
            check_target(self.target_bounds)
        check_random_state(self.random_state)
        check_verbose(self.verbose)

    def _budgets(self, n_owners):
        """Return (epsilon, delta) of each owner, exactly."""
        several = isinstance(self.epsilon, list | tuple | np.ndarray)
        epsilons = [canonical_epsilon(epsilon) for epsilon in (self.epsilon if several else [self.epsilon])]
        if not epsilons or (several and n_owners not in (None, len(epsilons))):
            owners = "owner" if n_owners is None else f"of the {n_owners} owners"
            raise ValueError(f"epsilon must be a number, or a list of one for each {owners}")
        delta = declared_delta(self.delta)
        return [(epsilon, delta) for epsilon in (epsilons if several else epsilons * (n_owners or 1))]

    def _targets(self, y, n_rows, strict):
        """Return (targets as the link takes them, classes, (middle, half) of a range)."""
        if self.loss == "squared":
            values = target_numbers(y, n_rows, strict=strict)
            low, high = (float(values.min()), float(values.max())) if self.target_bounds is None else target_pair(
                self.target_bounds, name_of_target(y))
            middle, half = low + (high - low) / 2, max((high - low) / 2, 1e-300)
            return np.clip((values - middle) / half, -1, 1), None, (middle, half)
        codes, classes = label_codes(y, self.classes, n_rows, strict=strict)
        codes = codes.astype(np.int64)
        if len(classes) == 2:
            return np.where(codes < 0, 0.0, 2.0 * codes - 1.0), classes, (0.0, 1.0)
        return codes, classes, (0.0, 1.0)

    def _scaled_rows(self, X):
        """Return (rows, scaled where bounds were declared; their largest norm; the `Scale` or None)."""
        scale = self._scale(X.shape[1])
        if scale is not None:
            X = scale.rows(X)
        known = scale.norm if self.data_norm is None and scale is not None else self.data_norm
        return X, longest(X) if known is None else float(known), scale

    def _link(self, classes):
        if self.loss == "squared":
            return squared()
        return LOGISTIC if len(classes) == 2 else softmax(len(classes))

    def _agree(self, sizes, size, link):
        """Return (what owners will answer, weights, schedule, the parts of epsilons that say where to start)."""
        budgets = self._budgets(len(sizes))
        counting = counting_of(budgets, sizes, link) if self.fit_intercept else [0] * len(sizes)
        budgets = [(epsilon - part, delta) for (epsilon, delta), part in zip(budgets, counting)]
        made = agree(budgets, sizes, size, link, self.C, self.n_steps, by_size=self.weights == "size")
        return *made, counting

    def _find_ledger(self):
        return LedgersOfOwners(self.ledger) if isinstance(self.ledger, list | tuple) else super()._find_ledger()

    def _pay(self, promises, sizes, columns):
        """Charge the largest to one ledger, or each owner's own."""
        ledger = self._find_ledger()
        if isinstance(ledger, LedgersOfOwners):
            ledger.charge_each(promises, sizes, estimator=type(self).__name__, columns=tuple(columns))
        else:
            self._charge(max(promises, key=lambda promise: promise.epsilon), sum(sizes), columns)

    def _promise(self):
        self._check()
        return self._guarantee(*max(self._budgets(None)))

    def _margins(self, X):
        margins = self._scores(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins
