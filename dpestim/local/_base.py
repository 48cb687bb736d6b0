"""The one base of the frequency estimators: parameters, the three verbs, and what scikit-learn expects around them."""

import warnings

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.special import ndtri
from sklearn.base import TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from dpestim import parallel
from dpestim.base import PrivateEstimator
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.local._encode import CategoryEncoder, as_array, at_least_two, columns_of, learn_categories
from dpestim.local._estimates import end, postprocessor, shown, with_range
from dpestim.local._merge import check_other, check_rows
from dpestim.local._plan import Plan, category_lists, column_names, copied_lists, same_lists
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource, check_random_state

#: Cells of a support matrix that are made at a time where the result is sparse.
_DENSE_CELLS = 1 << 24


class FrequencyEstimator(TransformerMixin, PrivateEstimator):
    """Frequencies of categorical columns under local differential privacy; a sub-class names its `_randomizer`.

    ``fit`` is ``privatize``, ``aggregate`` and ``release`` in a row, streamed block by block so that reports are never
    held in memory. State: `randomizers_`, `categories_`, the integer support counts and `n_users_`; everything else is
    derived from them when it is asked for.
    """

    _randomizer = None

    def __init__(
        self,
        epsilon=1.0,
        *,
        categories="auto",
        postprocess=None,
        sparse_output=False,
        ledger=None,
        random_state=None,
        n_jobs=None,
    ):
        self.epsilon = epsilon
        self.categories = categories
        self.postprocess = postprocess
        self.sparse_output = sparse_output
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- the three verbs

    def privatize(self, X):
        """Randomise raw rows into reports, on the user's side.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, width)
            C-contiguous, of one unsigned dtype, columns side by side; all that `aggregate` needs.

        Notes
        -----
        Each call is a release of its rows. Needs no `fit` where `categories` are declared.
        """
        plan = self._plan_or_declared()
        self._check_call_parameters()
        codes = plan.encode(self._checked_X(X, plan), self.n_jobs, self._is_strict())
        self._charge(plan.guarantee(self.random_state is not None), len(codes[0]), plan.names)
        return plan.randomize(codes, WordSource(self.random_state), 0, self.n_jobs)

    def aggregate(self, reports):
        """Add reports, as `privatize` returns them, to the counts; returns self.

        Reports carry numbers only. That they were made by the same mechanism with the same epsilon and categories is
        for the caller to know; what no client of this mechanism could have sent is a ValueError.
        """
        plan = self._plan_or_declared()
        reports = plan.check_reports(reports)
        counts = plan.count(reports, self.n_jobs)
        if self._n_users:
            counts = [a + b for a, b in zip(self._counts, counts)]
        self._freeze(plan)
        self._counts, self._n_users = counts, self._n_users + len(reports)
        # whether clients used seeds is not known here, unless this very object is the seeded client
        self._seeded = True if self._seeded or self.random_state is not None else None
        return self

    def merge(self, other, *, users="disjoint"):
        """Add the counts of another aggregate of the same randomizers; returns self.

        Parameters
        ----------
        other : estimator of the same type
        users : {"disjoint", "same"}, default="disjoint"
            Whether nobody, or perhaps everybody, is counted in both: then the guarantees of the two add up. `n_users_`
            is the number of reports either way.

        Raises ValueError where the randomizers or categories differ, where `other` is this object, and where both saw
        rows of one seed at the same positions, because their noise would be the same (this cannot be seen where the
        reports came in by `aggregate`).
        """
        check_other(self, other, users)
        plan, theirs = self._plan_or_declared(other._plan), other._plan
        if not plan.same_law(theirs):
            raise ValueError("other must have the same epsilon and the same categories in the same order")
        mine, names = getattr(self, "feature_names_in_", plan.keys), getattr(other, "feature_names_in_", None)
        check_rows(self, other, mine, names)
        counts = [a + b for a, b in zip(self._counts, other._counts)] if self._n_users else list(other._counts)
        seeded = (self._seeded, other._seeded) if self._n_users else (other._seeded,)
        times = (self._reports_each * bool(self._n_users), other._reports_each)
        self._reports_each = sum(times) if users == "same" else max(times)
        self._freeze(plan)
        self._counts = counts
        self._n_users += other._n_users
        self._seeds = [*self._seeds, *other._seeds]
        self._seeded = True if True in seeded else None if None in seeded else False
        return self

    def release(self):
        """Return `frequencies_`: the counts made into estimates, post-processed as `postprocess` says."""
        return self.frequencies_

    # ---------------------------------------------------------------- scikit-learn's face

    def fit(self, X, y=None):
        """Randomise the rows of X and estimate from the reports alone; forgets what was seen before."""
        self._fit(X, keep_reports=False, restart=True)
        return self

    def partial_fit(self, X, y=None):
        """Randomise the rows of X and add their reports; rows must be new users (or each pays epsilon again)."""
        self._fit(X, keep_reports=False, restart=not self._n_users)
        return self

    def fit_transform(self, X, y=None, **fit_params):
        """Fit and return the support matrix of the very same reports: one randomisation, one epsilon."""
        if fit_params:
            raise ValueError(f"{type(self).__name__}.fit takes no parameters but X")
        reports = self._fit(X, keep_reports=True, restart=True)
        return self._support(reports)

    def transform(self, X):
        """Randomise the rows of X and return their 0/1 support matrix.

        Returns
        -------
        ndarray of uint8 or csr_array, shape (n_rows, sum of the numbers of categories)
            1 where a row's report supports the category; the same shape for every mechanism.

        Notes
        -----
        A new release of these rows: it costs their epsilon again.
        """
        self._check_fitted()
        return self._support(self.privatize(X))

    def score(self, X, y=None):
        """Return minus the mean squared error against the plain frequencies of X, over the union of the domains.

        The score compares with raw data. It is **not private**: an exact, unmetered release of X, which a ledger
        records as an entry of epsilon 0 and strict mode refuses.
        """
        self._check_fitted()
        self._refuse_in_strict("score compares with raw data")
        X = self._checked_X(X, self._plan)
        self._note_score(X.shape[0])
        total, size = 0.0, 0
        known_of = [encoder.plain_categories() for encoder in self._plan.encoders]
        for column, name, known, estimate in zip(columns_of(X), self._plan.names, known_of, self.frequencies_):
            seen = CategoryEncoder(at_least_two(learn_categories(column, name, allow_missing=True)), name)
            truth = np.bincount(seen.encode(column), minlength=len(seen.categories)) / X.shape[0]
            plain = dict(zip(seen.plain_categories(), truth))
            errors = [f - plain.pop(v, 0.0) for v, f in zip(known, estimate)]
            errors += [f for f in plain.values() if f]  # a category that was never declared is estimated as 0
            total, size = total + float(np.square(errors).sum()), size + len(errors)
        return -total / size

    def get_feature_names_out(self, input_features=None):
        """Return feature_category for each column of `transform`."""
        self._check_fitted()
        names = getattr(self, "feature_names_in_", None)
        if input_features is None:
            input_features = names if names is not None else [f"x{j}" for j in range(self.n_features_in_)]
        elif len(input_features) != self.n_features_in_:
            raise ValueError("input_features should have length equal to number of features "
                             f"({self.n_features_in_}), got {len(input_features)}")
        elif names is not None and list(input_features) != list(names):
            raise ValueError("input_features is not equal to feature_names_in_")
        return np.array(
            [f"{f}_{c}" for f, cats in zip(input_features, self.categories_) for c in shown(cats)], dtype=object
        )

    # ---------------------------------------------------------------- what was learned

    @property
    def n_users_(self):
        """Reports counted so far."""
        self._check_fitted()
        return self._n_users

    @property
    def frequencies_(self):
        """Estimated frequencies, one array per column."""
        self._check_fitted()
        process = postprocessor(self.postprocess)
        raw = self._unbiased()
        if process is None:
            return raw
        out = []
        for f, se in zip(raw, self.standard_errors_):
            done = np.asarray(process(f, se), dtype=np.float64)
            if done.shape != f.shape or not np.isfinite(done).all():
                raise ValueError(f"postprocess must return a finite array of shape {f.shape}")
            out.append(done)
        return out

    @property
    def standard_errors_(self):
        """Standard errors of the unbiased estimates, one array per column."""
        self._check_fitted()
        return [error(np.clip(f, 0.0, 1.0)) for f, error in zip(self._unbiased(), self._error_functions())]

    def confidence_interval(self, level=0.95):
        """Return one (n_categories, 2) array per column: score intervals for the frequencies.

        Each end is the frequency whose own standard error puts the unbiased estimate `level` away, so that an interval
        never has width 0 where the estimate happens to look certain. Normal approximation; not clipped to [0, 1].
        """
        if not 0 < level < 1:
            raise ValueError("level must lie strictly between 0 and 1")
        self._check_fitted()
        z = ndtri(0.5 + level / 2)
        return [
            np.stack([end(f, -z, error), end(f, z, error)], axis=1)
            for f, error in zip(self._unbiased(), self._error_functions())
        ]

    def to_frame(self, level=0.95):
        """Return a tidy pandas frame: feature, category, frequency, standard_error, ci_low, ci_high.

        Frequencies are post-processed where `postprocess` is set; the standard error and the interval are always those
        of the unbiased estimate, so a post-processed frequency may lie outside its interval.
        """
        self._check_fitted()
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'dpestim[pandas]'") from error

        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(self.categories_))])
        parts = zip(names, self.categories_, self.frequencies_, self.standard_errors_, self.confidence_interval(level))
        return pd.concat(
            [
                pd.DataFrame(
                    {"feature": n, "category": c, "frequency": f, "standard_error": s, "ci_low": ci[:, 0],
                     "ci_high": ci[:, 1]}
                )
                for n, c, f, s, ci in parts
            ],
            ignore_index=True,
        )

    @property
    def privacy_(self):
        """What the reports of one user promise; known before any data where `categories` are declared."""
        if self._n_users:
            return self._plan.guarantee(self._seeded, self._reports_each)
        return self._plan_or_declared().guarantee(self.random_state is not None)

    # ---------------------------------------------------------------- inside

    # State lives in these; the class attributes stand for "nothing seen yet".
    _plan = None
    _counts = None
    _n_users = 0
    _reports_each = 1
    _seeds = ()
    _seeded = False

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "categories": [[0, 1, 2, 3]]},
            {"epsilon": 0.5, "categories": [["a", "b", "c"], [False, True]]},
            {"epsilon": 3.0, "categories": [list(range(9))]},
        ]

    def _test_data(self, n_rows, seed=0):
        """Return rows drawn from the declared categories with unequal frequencies, as an object array."""
        rng = np.random.default_rng(seed)
        X = np.empty((n_rows, len(self.categories)), dtype=object)
        for j, categories in enumerate(self.categories):
            values = np.empty(len(categories), dtype=object)
            values[:] = list(categories)
            weights = np.arange(1, len(values) + 1.0) ** 0.5
            X[:, j] = values[rng.choice(len(values), n_rows, p=weights / weights.sum())]
        return X, None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __sklearn_is_fitted__(self):
        return self._n_users > 0

    def _check_fitted(self):
        if not self._n_users:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit, or aggregate reports, first"
            )

    def _plan_or_declared(self, like=None):
        """Return the frozen plan, or the one that declared categories (or a plan to merge with) give."""
        if self._n_users:
            return self._plan
        if _is_auto(self.categories):
            if like is not None:
                return Plan(self._make_randomizers, like.encoders, like.names, like.inferred)
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet and categories='auto': declare the categories"
            )
        return self._declared_plan()

    def _declared_plan(self):
        """Return the plan of the declared categories; it is kept until epsilon or a category changes."""
        lists, keys = category_lists(self.categories)
        known = vars(self).get("_declared")
        law = (*self._law_parameters(), keys)
        if known is None or known[0] != law or not same_lists(known[1], lists):
            plan = Plan.declared(self._make_randomizers, lists, column_names(len(lists), keys))
            plan.keys = keys
            known = self._declared = (law, copied_lists(lists), plan)
        return known[2]

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_declared", None)
        return state

    def _check_call_parameters(self):
        """Refuse, before anything is charged or drawn, parameters that would fail later."""
        postprocessor(self.postprocess)
        check_random_state(self.random_state)
        parallel.check_n_jobs(self.n_jobs)

    def _law_parameters(self):
        """Return the parameters, besides the categories, that the randomizers are made from."""
        return (self.epsilon,)

    def _make_randomizers(self, sizes):
        """Return one randomizer for each column; all columns of a row share epsilon equally and exactly."""
        share = canonical_epsilon(self.epsilon) / len(sizes)
        return [self._randomizer.make(share, size) for size in sizes]

    def _checked_X(self, X, plan=None):
        """Check the shape and the columns of X against the plan (or anew), and return what columns_of takes."""
        reset = plan is None
        if hasattr(X, "iloc") or hasattr(X, "get_column"):
            if len(X.shape) != 2:
                raise ValueError("Expected 2D array, got 1D array instead. Reshape your data: take a frame of one "
                                 "column, X[['name']], instead of a series, and a frame of one row")
            if 0 in X.shape:
                raise ValueError(f"Found array with shape {tuple(X.shape)} while a minimum of 1 sample and 1 feature "
                                 "is required")
            if isinstance(self.categories, dict) and list(X.columns) != list(self.categories):
                raise ValueError("the columns of X must be the keys of categories, in the same order: "
                                 f"{list(self.categories)}")
        else:
            if not hasattr(X, "dtype"):
                self._refuse_in_strict("X must be an array or a data frame, whose dtype does not depend on a value")
            X = as_array(X)
        if reset:
            validate_data(self, X, reset=True, skip_check_array=True)
        elif self._n_users and hasattr(self, "n_features_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        if not reset and X.shape[1] != len(plan.randomizers):
            raise ValueError(f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                             f"{len(plan.randomizers)} features as input")
        return X

    def _fit(self, X, *, keep_reports, restart):
        """Validate, charge, then randomise and count; nothing changes before all of X has been encoded."""
        self._check_call_parameters()
        trial = self if not restart else _fresh(self)
        X = trial._checked_X(X, None if restart else self._plan)
        if restart:
            names = column_names(X.shape[1], getattr(trial, "feature_names_in_", None))
            inferred = _is_auto(self.categories)
            if inferred:
                self._refuse_in_strict("categories='auto' would be learned from the data: declare them")
            if inferred or hasattr(trial, "feature_names_in_"):
                lists = category_lists(self.categories)[0] if not inferred else [
                    learn_categories(column, name) for column, name in zip(columns_of(X), names)
                ]
                plan = Plan.declared(self._make_randomizers, lists, names, inferred)
            else:
                plan = self._declared_plan()
            if len(plan.randomizers) != X.shape[1]:
                raise ValueError(f"categories must have one array for each of the {X.shape[1]} columns of X, got "
                                 f"{len(plan.randomizers)}")
        else:
            plan, inferred = self._plan, False
        codes = plan.encode(X, self.n_jobs, self._is_strict())
        n = len(codes[0])
        first = 0 if restart else self._n_users
        self._charge(plan.guarantee(self.random_state is not None), n, plan.names)
        source = WordSource(self.random_state)
        if inferred:
            warnings.warn(
                "categories='auto' learns the domain from private data: the result has no privacy guarantee "
                "(privacy_.epsilon is infinite). Declare the categories.",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        reports = None
        if keep_reports:
            reports = plan.randomize(codes, source, first, self.n_jobs)
            counts = plan.count(reports, self.n_jobs)
        else:
            counts = plan.randomize_and_count(codes, source, first, self.n_jobs)
        if restart:
            self._forget()
            vars(self).update({k: v for k, v in vars(trial).items() if k in ("n_features_in_", "feature_names_in_")})
            self._freeze(plan)
            self._counts, self._n_users = counts, n
        else:
            self._counts = [a + b for a, b in zip(self._counts, counts)]
            self._n_users += n
        if source.seeded:
            self._seeds = with_range(self._seeds, source.fingerprint, first, first + n)
        self._seeded = source.seeded or self._seeded
        return reports

    def _support(self, reports):
        if not self.sparse_output:
            return self._plan.support(reports)
        rows = max(1, _DENSE_CELLS // sum(len(c) for c in self.categories_))  # never the whole dense matrix
        parts = [csr_array(self._plan.support(reports[at : at + rows])) for at in range(0, len(reports), rows)]
        return vstack(parts, format="csr")

    def _error_functions(self):
        """Return, for each column, the standard errors of the estimates as a function of frequencies in [0, 1]."""
        lines = [r.variance_line(c, self._n_users) for r, c in zip(self.randomizers_, self._counts)]
        return [
            lambda f, at_zero=at_zero, slope=slope: np.sqrt(np.maximum(at_zero + slope * f, 0.0) / self._n_users)
            for at_zero, slope in lines
        ]

    def _unbiased(self):
        return [r.estimate(c, self._n_users) for r, c in zip(self.randomizers_, self._counts)]

    def _freeze(self, plan):
        self._plan = plan
        if plan.keys is not None:
            self.feature_names_in_ = np.array(plan.keys, dtype=object)
        self.randomizers_ = plan.randomizers
        self.categories_ = [e.categories for e in plan.encoders]
        if not hasattr(self, "n_features_in_"):
            self.n_features_in_ = len(plan.randomizers)

    def _forget(self):
        for name in ("_plan", "_counts", "_n_users", "_reports_each", "_seeds", "_seeded", "n_features_in_",
                     "feature_names_in_", "randomizers_", "categories_"):
            vars(self).pop(name, None)


def _is_auto(categories):
    return isinstance(categories, str) and categories == "auto"


def _fresh(estimator):
    """Return an unfitted twin that shares the parameters."""
    twin = type(estimator)(**estimator.get_params(deep=False))
    twin._bound = estimator._bound  # as strict as it was
    return twin
