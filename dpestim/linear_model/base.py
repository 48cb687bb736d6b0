"""What linear models share: linear scores of rows that are clipped as `fit` clips them, and a fit for any margin."""

import inspect
import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from dpestim import parallel
from dpestim._core import logistic, scaled
from dpestim.central.base import declared_delta
from dpestim.central.model import CentralClassifier, CentralModel
from dpestim.inputs import checked_classes, is_sparse, label_codes, longest, row_shape, sparse_rows
from dpestim.linear_model.base_rate import signs_of
from dpestim.linear_model.domain import OfDomain
from dpestim.linear_model.objective import calibrate
from dpestim.linear_model.release import COLUMNS, CoefficientGrid, certificate_of, last_law, release
from dpestim.linear_model.solver import MarginLoss
from dpestim.models import checked_number, exact_number
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import check_random_state
from dpestim.statistics.row_moments import checked_box
from dpestim.summaries import read_schema

#: Numbers of a table that are converted at a time.
_BLOCK = 1 << 16


@lru_cache(maxsize=256)  # (nothing private is among the arguments)
def _tried(perturbation, epsilon, delta, strength, n_rows, size, shape, evenness, margin):
    """Return a law, having made all that is to be made of it: what could fail, fails before the charge."""
    law = calibrate(perturbation, epsilon, delta, strength, n_rows, size, shape, evenness)
    size *= shape.blocks
    CoefficientGrid.of(certificate_of(law, n_rows, size, margin), size)
    # the largest sensitivity of any strength (claim 7 of `logistic.md`)
    last_law(law, CoefficientGrid(1.0, 6 * size))
    return law


class ClippedModel(OfDomain, CentralModel):
    """Base of linear models whose rows are clipped to `data_norm_`, in a fit and in a prediction alike."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = getattr(self, "bounds", None) is None  # (0 is mapped to another number)
        return tags

    def _checked_X(self, X, *, reset, total):
        """Return X as C-contiguous floats, or as `SparseRows`; `total`: look at nothing but dtype and shape."""
        if not is_sparse(X):
            return super()._checked_X(X, reset=reset, total=total)

        def name(j):
            names = getattr(self, "feature_names_in_", getattr(X, "columns", None))
            return f"column {j if names is None else repr(names[j])}"

        rows = sparse_rows(X, name, strict=total, fewest=0 if total else 1)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return rows

    def _scores(self, X):
        """Return the linear scores of rows, one column for each of `coef_`; strict mode enters them in the ledger."""
        check_is_fitted(self)
        strict, sparse = self._is_strict(), is_sparse(X)
        if sparse and not strict and self._scaled is None:
            found = self._plain_sparse_scores(X)
            if found is not None:
                return found
        X = (self._checked_X if sparse else self._unread)(X, reset=False, total=strict)
        if strict:  # no error and no warning may depend on a value
            self._note_predictions(len(X))
        coef, intercept = self.coef_, self.intercept_
        scale = None
        if self._scaled is not None:
            coef, intercept, scale = self._scaled
            if sparse:
                scale.rows(X)  # (refuses)
        # scores are those of the unit rows that the minimiser saw, so that nothing can overflow on the way
        limit, _ = row_shape(X.shape[1], 0.0)
        with np.errstate(all="ignore"):
            slopes = np.atleast_2d(coef) * (self.data_norm_ / limit)
            if sparse:
                # (places as wide as columns, where they can be: the same kernel, and so the same bits)
                narrow = len(X.values) < 1 << 31
                found = self._one_pass(X.values, X.index if narrow else X.index.astype(np.int64),
                                       X.start.astype(np.int32) if narrow else X.start)
                if found is not None:
                    return found
                factors = np.empty(len(X))
                logistic.clip_factors_sparse(X.values, X.start, 1.0 / self.data_norm_, limit, factors)
                return X.times(factors, slopes.T) + intercept
        scores = np.empty((len(X), len(slopes)))
        columns, kind = (np.zeros((4, X.shape[1])), 0) if scale is None else scale.parts()
        slopes = np.ascontiguousarray(slopes, np.float64)
        constant = np.ascontiguousarray(np.broadcast_to(intercept, len(slopes)), np.float64)
        # (what is no float, or lies apart, is copied where it fits into the cache)
        whole = X.dtype == np.float64 and X.flags.forc
        step = max(1, len(X) if whole else _BLOCK // max(1, X.shape[1]))
        for at in range(0, len(X), step):
            with np.errstate(over="ignore"):  # a wider float than this becomes an infinite one
                rows = X if whole else np.ascontiguousarray(X[at : at + step], np.float64)
            finite = scaled.scores(rows, *columns, kind, 1.0 / self.data_norm_, limit, slopes, constant,
                                   scores[at : at + step])
            if not (finite or strict):
                self._refuse_unless_finite(rows, False)
        return scores

    def _plain_sparse_scores(self, X):
        """Return the scores of a CSR matrix of floats in one pass, or None where it must be looked at more closely."""
        parts = [getattr(X, name, None) for name in ("data", "indices", "indptr")]
        if getattr(X, "format", None) != "csr" or not all(isinstance(x, np.ndarray) and x.ndim == 1
                                                          and x.flags.c_contiguous for x in parts):
            return None
        values, index, start = parts
        if (X.shape != (len(start) - 1, self.n_features_in_) or min(X.shape) < 1 or max(X.shape) >= 1 << 31
                or values.dtype != np.float64 or index.dtype not in (np.int32, np.int64) or start.dtype != index.dtype
                or not all(x.dtype.isnative for x in parts)):
            return None
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._one_pass(values, index, start)

    def _one_pass(self, values, index, start):
        """Return the scores of rows of entries, or None where places or numbers must be looked at more closely."""
        coef, (limit, _) = np.atleast_2d(self.coef_), row_shape(self.coef_.shape[-1], 0.0)
        constant = np.ascontiguousarray(np.broadcast_to(self.intercept_, len(coef)), np.float64)
        with np.errstate(all="ignore"):
            slopes = np.ascontiguousarray((coef * (self.data_norm_ / limit)).T, np.float64)
        out = np.empty((len(start) - 1, len(coef)))
        if not (out.size and slopes.size):
            return None
        left = logistic.scores_sparse(values, index, start, 1.0 / self.data_norm_, limit, slopes, constant, out)
        return None if left else out


class PerturbedModel(ClippedModel):
    """Base of models that minimise a perturbed sum of losses of margins, one problem after the other (`margins.md`).

    A sub-class reads its targets (`_read_y`), says what their loss is (`_loss`) and which problems they are
    (`_problems`), and translates what regularises it to the strength of the objective (`_strength`) and back
    (`_regularisation`). One that has other laws, too, overrides `_law` and `_minimised`.
    """

    _texts = {
        "bounds": """\
    bounds : (low, high), dict or Domain, default=None
        Public range of the columns of X, numbers in their own units: rows are clipped to it and scaled to [-1, 1], and
        `coef_` and `intercept_` are those of X. `data_norm` is then about scaled rows, and None the largest norm that
        they can have.
""",
        "data_norm": """\
    data_norm : float, default=None
        Public bound R of the Euclidean norm of a row of X; longer rows are scaled down to it, in `fit` and in
        predictions. None takes the longest row, which leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon``
        infinite.
""",
        "domain": """\
    domain : dpestim.Domain, default=None
        The public description of the table. It gives `classes` of the column that y, a series, is called. Where X is a
        frame whose columns are numbers of the domain, it gives `bounds`; where `dpestim.preprocessing.DomainEncoder`
        has encoded the rows, `data_norm`.
""",
    }
    _not_in_parts = ("needs all rows at once, because the minimiser of a perturbed objective reads them in floats: "
                     'take DPLogisticRegression(perturbation="gradient"), DPLinearRegression or a model of '
                     "dpestim.ensemble")
    _told_apart = "logistic.md: the objective is perturbed; tests/unit/linear_model/test_logistic_privacy.py"
    _numbers = {
        "data_norm": ("in [1e-100, 1e100]", 1e-100, 1e100),
        "intercept_scaling": ("in [1e-6, 1e6]", 1e-6, 1e6),
    }

    def fit(self, X, y=None):
        """Fit the model to rows X and targets y; one release of epsilon.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            What is sparse stays so: time and memory are those of its entries, beside the Hessian.
        y : array-like of shape (n_rows,)

        Returns
        -------
        self
        """
        self._check_parameters()
        strict, trial = self._is_strict(), self._declared_trial(X, y)
        X = trial._checked_X(X, reset=True, total=strict)
        scale = trial._scale(X.shape[1])
        if scale is not None:
            X = scale.rows(X)
            trial.data_norm = scale.norm if trial.data_norm is None else trial.data_norm
        task, learned = trial._read_y(y, len(X), strict)
        norm = longest(X) if trial.data_norm is None else float(trial.data_norm)
        return self._fit_to(X, task, learned, trial, scale, norm)

    def _fit_to(self, X, task, learned, trial, scale, norm):
        """Plan, pay, draw and keep; `trial` has read the columns, and X are rows, or what stands for rows in parts."""
        epsilon, delta = canonical_epsilon(self.epsilon), declared_delta(self.delta)  # (the caller has checked all)
        intercept = float(self.intercept_scaling) if self.fit_intercept else 0.0
        # public numbers: what could fail, fails before the charge
        law = self._law(epsilon, delta, len(X), X.shape[1] + bool(self.fit_intercept), task)

        def draw(source):
            w, offset, used = self._minimised(X, task, law, norm, intercept, source)
            # decisions are w z = w (x limit / R, tail)
            limit, tail = row_shape(X.shape[1], intercept)
            coef = w[:, : X.shape[1]] * (limit / norm)
            constant = w[:, X.shape[1]] * tail + offset if self.fit_intercept else np.zeros(len(w))
            mine = {"coef_": coef, "intercept_": constant, "_scaled": None}
            if scale is not None:
                mine = {**dict(zip(mine, scale.in_units(coef, constant))), "_scaled": (coef, constant, scale)}
            return {**mine, "data_norm_": norm, "noise_scale_": used.scale,
                    **learned, **self._regularisation(used.strength, len(X), task)}

        guarantee = self._guarantee(epsilon, law.delta)
        if guarantee.is_finite and hasattr(law, "curve_of"):
            guarantee = replace(guarantee, curve=law.curve_of(epsilon))
        return self._keep(guarantee, len(X), read_schema(trial), draw)

    def _law(self, epsilon, delta, n_rows, size, task):
        """Return what makes the fit private; all that could fail for public reasons fails here."""
        return self._calibrated(epsilon, delta, n_rows, size, task)

    def _calibrated(self, epsilon, delta, n_rows, size, task, evenness=1.0, perturbation="objective"):
        """Return the law of a perturbation, having tried that of what hides the minimiser, too, for any strength."""
        margin, shape = self._loss(task)
        return _tried(
            perturbation, epsilon, delta, self._strength(n_rows, task), n_rows, size, shape, evenness, margin)

    def _following(self, law, n_rows, size, task, evenness):
        """Return the law of what a private count or mean says, between two that were tried before it was taken."""
        _, shape = self._loss(task)
        return calibrate(
            "objective", law.epsilon, law.delta, self._strength(n_rows, task), n_rows, size, shape, evenness)

    def _minimised(self, X, task, law, norm, intercept, source):
        """Return the released coefficients, a row for each problem, what intercepts start from, and the law used."""
        return self._released(X, task, law, norm, intercept, source), 0.0, law

    def _released(self, X, task, law, norm, intercept, source, offset=()):
        margin, scales, rows = self._loss(task)[0], None, []
        for problem, (signs, targets) in enumerate(self._problems(task)):
            shift = float(offset[problem]) if len(offset) else 0.0
            loss = MarginLoss(X, signs, norm, intercept, self.n_jobs, scales, offset=shift, margin=margin,
                              targets=targets)
            scales = loss.scales
            integers, step = release(loss, law, source, COLUMNS * problem)
            rows.append([step * k for k in integers])
        return np.array(rows, dtype=np.float64)

    def _check_parameters(self):
        """Return (epsilon, delta) as exact numbers; raise ValueError for a parameter that does not fit."""
        epsilon, delta = canonical_epsilon(self.epsilon), declared_delta(self.delta)
        for name, (where, low, high) in self._numbers.items():
            value = getattr(self, name)
            if value is not None or type(self)._needs(name):
                checked_number(name, value, where, lambda v, low=low, high=high: low <= v <= high)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError("fit_intercept must be True or False")
        self._check_domain()
        if getattr(self, "bounds", None) is not None:
            checked_box(self.bounds)
        check_random_state(self.random_state)
        parallel.check_n_jobs(self.n_jobs)
        return epsilon, delta

    @classmethod
    @lru_cache(maxsize=256)
    def _needs(cls, name):
        """Tell whether None is no value of a parameter."""
        return inspect.signature(cls.__init__).parameters[name].default is not None

    def _promise(self):
        """Return what a fit will promise, at most."""
        return self._guarantee(*self._check_parameters())


class LinearClassifier(PerturbedModel, CentralClassifier):
    """Base of classifiers with one problem for two classes, or one for each class against the rest."""

    _declared = ("classes", "data_norm")
    _numbers = PerturbedModel._numbers | {"C": ("in [1e-12, 1e12]", 1e-12, 1e12)}

    def decision_function(self, X):
        """Return the linear scores of rows: positive for ``classes_[1]``, or one column for each of K > 2 classes.

        A row x longer than `data_norm_` is scaled down to it, as `fit` does: the score is ``c x coef_ + intercept_``
        with ``c = min(1, data_norm_ / |x|)``.

        **Privacy.** The model may be published, and with it its predictions for *public* rows. A prediction for a
        private row is a function of that row, an exact release of it, like `score`; so are `predict` and probabilities.
        dpestim cannot know whether rows are public, and does not refuse predictions. In strict mode the analyst may
        call `predict` on rows that only the curator may see. Each call is therefore entered in the ledger (epsilon 0,
        flagged as not private) before it answers, so that the curator sees the call. Without a ledger, do not predict
        private rows.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """Return the likeliest class of each row; of private rows **not private**, see `decision_function`."""
        found = self._decide(X)  # first, so that what is not fitted says so
        if self.classes_.dtype == bool and self.classes_.tolist() == [False, True]:
            return found.astype(bool, copy=False)  # (what was compared is the answer)
        return self.classes_[found] if self.classes_.dtype.kind in "iuf" else self.classes_.take(found)

    # ---------------------------------------------------------------- inside

    def _check_parameters(self):
        found = super()._check_parameters()
        if self.classes is not None:
            checked_classes(self.classes)
        return found

    def _read_y(self, y, n_rows, strict):
        """Return (the class of each row and the number of classes, what was learned)."""
        codes, classes = label_codes(y, self.classes, n_rows, strict=strict, n_jobs=self.n_jobs)
        return (codes, len(classes)), {"classes_": classes}

    def _problems(self, task):
        codes, n_classes = task
        for kind in self._kinds(n_classes):
            yield signs_of(codes, kind), None

    @staticmethod
    def _kinds(n_classes):
        """Return the classes of which each is told from the rest by a problem."""
        return [1] if n_classes == 2 else list(range(n_classes))

    def _strength(self, n_rows, task):
        return None if self.C is None else 1 / exact_number(self.C)

    def _regularisation(self, strength, n_rows, task):
        return {"C_": 1.0 / strength if strength else math.inf}
