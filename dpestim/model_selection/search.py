"""The search: a rehearsal before the charge, runs, and what is published of them."""

from contextlib import nullcontext

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dpestim.base import PrivateEstimator
from dpestim.central import PermuteAndFlip
from dpestim.exact_reals import BitStream
from dpestim.inputs.frames import take
from dpestim.model_selection.plan import Prepaid, declared_ledger, give_back, plan_of, rehearsed, set_all
from dpestim.model_selection.runs import best_of, expected_runs
from dpestim.model_selection.scores import count_rows, size_aside, split, with_rows
from dpestim.pipeline import check_pipeline
from dpestim.pipeline.private import quietly
from dpestim.pipeline.report import report_on
from dpestim.privacy import ambient
from dpestim.privacy.config import config_context
from dpestim.progress import Progress, check_verbose, silent
from dpestim.results import Part, object_array
from dpestim.rng import WordSource

#: Parts of a search: none of them shares a word with another.
_ROWS, _RUNS, _PLACES, _NOISE, _SEEDS = range(5)


def _delegated(name):
    """Return what tells whether the chosen (or else the declared) estimator has a method."""
    return available_if(lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), name))


class PrivateSearchCV(MetaEstimatorMixin, PrivateEstimator):
    """Search for parameters privately: train, score and choose candidates under one total epsilon.

    A plain search chooses by exact scores on raw data and has no guarantee. Here the trainings, the choice and the
    model cost `epsilon` together. A search leaves less budget for each fit: default parameters with the whole epsilon
    are often as accurate (the user guide has figures). Search where candidates differ by much.

    "papernot_steinke" and "liu_talwar" train a random number of times, each time a candidate drawn at random, add
    noise to the score, and keep the best: a run gets epsilon / (2 + eta), or epsilon / 3, however many candidates there
    are. "exponential" trains each candidate once, with epsilon / n_candidates, and chooses by permute-and-flip, which
    is never worse than the exponential mechanism.

    **Privacy.** In the central model, for data sets of equal size that differ in one row: `best_params_`,
    `best_estimator_`, `best_score_` and what is computed from them are (epsilon, delta)-differentially private
    together. Delta is the largest that a candidate declares for one training; each training gets a part of its own.
    Without a delta the search is pure, exactly. The caller of `fit` holds the data and must be trusted. **Not
    covered:** with a random number of runs their number is secret, and so is how long `fit` took. No `cv_results_`
    exist. Predictions for private rows and `score` are as little private as those of the estimator.

    **Utility.** The score is a mean over rows set aside, with noise of about (2 + eta) / (epsilon n_rows_aside) for
    accuracy: hardly any. The loss in accuracy comes from training with a share of epsilon on a share of the rows. A
    candidate may never be drawn; on average there are four runs for each candidate.

    **Complexity.** One training for each candidate, or `expected_runs_` trainings on average. Before the charge, all
    candidates read the data twice (all rows, and as many as are trained on), so that bad input costs nothing.

    Parameters
    ----------
    estimator : private estimator, or Pipeline that `dpestim.pipeline.check_pipeline` finds private
        Cloned. Its epsilons say in what proportion private steps share that of a run. Its delta is that of the whole
        search. Ledgers and random states of private steps are replaced by those of the search.
    param_distributions : dict of lists, or list of such dicts
        What to try, as in `sklearn.model_selection.ParameterGrid`; public. Not epsilon, ledger or random_state.
    epsilon : float, default=1.0
        The total, in (0, 80].
    selection : {"papernot_steinke", "liu_talwar", "exponential"}, default="papernot_steinke"
    scoring : str or callable, default="accuracy"
        "accuracy", "neg_log_loss" or "neg_brier_score" (half of it) of a classifier, "neg_mean_absolute_error" or
        "neg_mean_squared_error" of a regressor, as in scikit-learn: means over rows. Others, such as "roc_auc", are
        refused by name, with what stands for them. Or a function of (model, X, y) that returns an array of shape
        (n_rows,). The score of a row must not depend on other rows; dpestim cannot verify this. A run in which the
        function raises, or returns anything else, has the lowest score, with a warning, because the total is already
        charged. A function is refused in strict mode.
    score_bounds : (low, high), default=None
        The public range of the score of a row, to which it is cut (NaN counts as low). It must be declared for a
        function and for a regressor. None for "neg_log_loss": from log(0.01) to 0, as rows with less than .01 count.
    validation_fraction : float, default=0.2
        Of the rows, in (0, 1): set aside at random, independently of what is in them.
    gamma : float, default=None
        With "liu_talwar", after each run the probability to stop; in [0.0001, 1]. With "papernot_steinke" it has a like
        part. Guarantees do not depend on it: the smaller, the more runs. None: four runs for each candidate on average,
        as far as 0.0001 allows; a ValueError, where that means fewer runs than candidates (eta near -1).
    eta : float, default=0.5
        With "papernot_steinke", in (-1, 1]: with a smaller one a run gets more of epsilon, and more often there are few
        runs, so that a good candidate is missed. 1 is the geometric law of "liu_talwar". 0, the logarithmic one, wants
        a small gamma: with few runs on average there often is only one.
    trusted : collection of str, default=()
        Names of row-wise steps that the caller declares safe, see `dpestim.pipeline.check_pipeline`.
    ledger : dpestim.accounting.Ledger, default=None
        The ledger that is charged the total for each `fit`, once, before noise is drawn. None: the ledger of the
        enclosing ``with ledger:`` block, else that of the private steps of the estimator or of a candidate (one ledger,
        not several).
    {random_state}
    verbose : int, default=0
        1 prints a line when all candidates have read the rows and when the search is over, and for each candidate with
        "exponential". How many runs there are, and how long they take, is secret in the others: no line tells, and
        `verbose` of the estimator and its steps is set to 0.

    Attributes
    ----------
    best_estimator_ : estimator
        As it was trained, on the rows that were not set aside. Its own ``privacy_`` is about this one fit; that of the
        search about all.
    best_params_ : dict
    best_score_ : float
        The noisy score of the chosen run, which is the largest of several and so too large on average; None with
        "exponential", which publishes none.
    n_candidates_ : int
    gamma_, expected_runs_ : float
        Public; None with "exponential".
    privacy_ : PrivacyGuarantee
        What one fit promises; known before it.
    classes_ : ndarray
        Of the chosen classifier.
    n_features_in_ : int

    Raises
    ------
    ValueError
        For a parameter that does not fit, an estimator that leaks or holds a search, fewer than two rows, and what the
        estimator says about the data, without the message where a step of another package says it; in strict mode for
        steps that are no private estimators. Before anything is charged.

    References
    ----------
    Liu, Talwar (2019), "Private selection from private candidates", STOC, for the geometric number of runs. Papernot,
    Steinke (2022), "Hyperparameter tuning with Renyi differential privacy", ICLR, for the truncated negative binomial
    one. Chaudhuri, Monteleoni, Sarwate (2011), Journal of Machine Learning Research 12, section 6, for a choice by the
    exponential mechanism on rows set aside. The proof, of all three and of what runs: ``search.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.linear_model import DPLogisticRegression
    >>> from dpestim.model_selection import PrivateSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5_000, 3))
    >>> y = X[:, 0] > 0.9
    >>> model = DPLogisticRegression(data_norm=1.8, classes=[False, True])
    >>> search = PrivateSearchCV(model, {"intercept_scaling": [0.01, 1.0]}, epsilon=2.0, random_state=0)
    >>> search.fit(X, y).best_params_
    {'intercept_scaling': 1.0}
    >>> search.privacy_.epsilon, search.best_estimator_.privacy_.epsilon
    (Fraction(2, 1), Fraction(4, 5))
    """

    def __init__(self, estimator, param_distributions, *, epsilon=1.0, selection="papernot_steinke", scoring="accuracy",
                 score_bounds=None, validation_fraction=0.2, gamma=None, eta=0.5, trusted=(), ledger=None,
                 random_state=None, verbose=0):
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.epsilon = epsilon
        self.selection = selection
        self.scoring = scoring
        self.score_bounds = score_bounds
        self.validation_fraction = validation_fraction
        self.gamma = gamma
        self.eta = eta
        self.trusted = trusted
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None):
        """Search, and keep the model that was chosen; one release of epsilon.

        {fit of rows with targets}
        """
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: pass y, because scores compare "
                             "predictions with y")
        plan, strict = plan_of(self), self._is_strict()
        check_verbose(self.verbose)
        progress = Progress(self, len(plan.models), "candidate")
        if strict and callable(self.scoring):
            raise ValueError('strict mode: scoring must be a name, such as "accuracy", because the errors of a '
                             "function could depend on values")
        X, y = with_rows(X), with_rows(y)
        n = count_rows(X)
        if n < 2 and not strict:
            raise ValueError(f"Found array with {n} sample(s) while a minimum of 2 is required, because some rows are "
                             "set aside for scores")
        n_aside = size_aside(n, plan.validation_fraction)
        # (a step that maps rows would enter each run in the ledger, and how many there are is secret; so is progress)
        with config_context(strict=True) if strict else nullcontext(), ambient.unnoted(), silent():
            trial = self._rehearse(plan, X, y, n - n_aside)
            progress.tell(f"{len(plan.models)} candidates have read the rows")
            payer = self._find_ledger()
            self._charge(plan.guarantee, n, getattr(trial, "feature_names_in_", ()))
            found = self._search(plan, X, y, n, n_aside, strict, progress)
            progress.tell("the search is over", timed=plan.gamma is None)
        give_back(found[0], plan.paths[found[1]], plan.models[found[1]], self, payer)
        self.best_estimator_, place, self.best_score_ = found
        self.best_params_ = plan.candidates[place]
        self.n_candidates_ = len(plan.candidates)
        self.gamma_ = None if plan.gamma is None else float(plan.gamma)
        self.expected_runs_ = None if plan.gamma is None else expected_runs(plan.gamma, plan.eta)
        self._fitted_guarantee = plan.guarantee
        return self

    @property
    def privacy_(self):
        """What one fit promises, the search included; known before it. Where a step leaks: nothing."""
        if hasattr(self, "_fitted_guarantee"):
            return self._fitted_guarantee
        report = check_pipeline(self.estimator, trusted=self.trusted)
        return report.privacy_ if report.leaks else plan_of(self).guarantee

    @property
    def classes_(self):
        """Classes of the chosen classifier."""
        return self._best("classes_")

    @property
    def n_features_in_(self):
        """Columns that `fit` saw."""
        return self._best("n_features_in_")

    @property
    def feature_names_in_(self):
        """Names of the columns that `fit` saw, where they had some."""
        return self._best("feature_names_in_")

    @_delegated("predict")
    def predict(self, X):
        """Return what the chosen model predicts; of private rows **not private**."""
        return self._chosen().predict(X)

    @_delegated("predict_proba")
    def predict_proba(self, X):
        """Return the probabilities of the chosen model; of private rows **not private**."""
        return self._chosen().predict_proba(X)

    @_delegated("predict_log_proba")
    def predict_log_proba(self, X):
        """Return the logarithms of the probabilities of the chosen model; of private rows **not private**."""
        return self._chosen().predict_log_proba(X)

    @_delegated("decision_function")
    def decision_function(self, X):
        """Return the decision function of the chosen model; of private rows **not private**."""
        return self._chosen().decision_function(X)

    @_delegated("score")
    def score(self, X, y):
        """Return the chosen model's own `score` on rows (accuracy, or R^2), whatever `scoring` is.

        It is **not private**: an exact release of these rows.
        """
        self._refuse_in_strict("score is refused, because it compares with raw data: call it outside of strict mode")
        return self._chosen().score(X, y)

    def _result_parts(self, level):
        """Return what `result_` shows: the parameters that were chosen, and their noisy score."""
        axes = (("parameter", list(self.best_params_)),)
        score = [] if self.best_score_ is None else [Part("best score", (), self.best_score_)]
        return [Part("chosen", axes, object_array(list(self.best_params_.values()))), *score]

    # ---------------------------------------------------------------- inside

    def _chosen(self):
        check_is_fitted(self)
        return self.best_estimator_

    def _best(self, name):
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{type(self).__name__} has no {name} before fit")
        return getattr(self.best_estimator_, name)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.input_tags = inner.estimator_type, inner.input_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        return tags

    def _find_ledger(self):
        """Return the ledger that pays: as for all, else that of the private steps, which must not slip through."""
        ledger = super()._find_ledger()
        return declared_ledger(self) if ledger is None else ledger

    def _refuse_ahead(self, y, n_rows):
        """... And what a candidate would refuse."""
        super()._refuse_ahead(y, n_rows)
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None: pass the classes or numbers of "
                             "the rows as y")
        with config_context(strict=True) if self._is_strict() else nullcontext():
            for model in plan_of(self).models:
                for step in report_on(model, trusted=self.trusted).steps:
                    if step.privacy is not None:
                        step.estimator._refuse_ahead(y, n_rows)

    def _rehearse(self, plan, X, y, n_train):
        """Let each candidate read all rows, and as many as it will train on, up to where it would pay."""
        candidates = list(zip(plan.models, plan.paths, plan.deltas))
        # what has no rows is refused here, before any are taken
        trials = [rehearsed(model, paths, plan.share, delta, X, y) for model, paths, delta in candidates]
        some = np.arange(n_train)
        X, y = take(X, some), take(y, some)
        for model, paths, delta in candidates:
            rehearsed(model, paths, plan.share, delta, X, y)
        return trials[0]

    def _search(self, plan, X, y, n, n_aside, strict, progress):
        """Return (the chosen model, its place, its published score)."""
        source = WordSource(self.random_state)
        train, aside = split(n, n_aside, source.part(_ROWS))
        X_train, y_train, X_aside, y_aside = take(X, train), take(y, train), take(X, aside), take(y, aside)
        places, noise, seeds = (BitStream(source.part(k).reader(), 0, 0) for k in (_PLACES, _NOISE, _SEEDS))

        def train_and_score(place):
            model, paths = clone(plan.models[place]), plan.paths[place]
            paid = Prepaid(plan.share, plan.deltas[place])
            for path in paths:  # a seed for each: with one for all, noises of different steps would be alike
                set_all(model, [path], ledger=paid, random_state=seeds.word() if source.seeded else None)
            quietly(lambda: model.fit(X_train, y_train))
            paid.is_trained = True
            total = quietly(lambda: plan.scorer.total(model, X_aside, y_aside, strict))
            paid.is_closed = True
            return total, model

        def run():
            place = places.below(len(plan.models))
            total, model = train_and_score(place)
            return total + plan.noise.one(noise), model, place

        if plan.gamma is None:
            scored = []
            for place in range(len(plan.models)):
                scored.append(train_and_score(place))
                progress.done(place + 1)
            law = PermuteAndFlip(plan.epsilon, sensitivity=plan.scorer.sensitivity).law(whole=True)
            place = law.draw(np.array([total for total, _ in scored], np.int64), source.part(_RUNS))
            model, score = scored[place][1], None
        else:
            stream = BitStream(source.part(_RUNS).reader(), 0, 0)
            total, model, place = best_of(stream, plan.gamma, plan.eta, run)
            score = float(plan.scorer.mean(total, n_aside))
        plan.scorer.warn_of_faults()
        return model, place, score

