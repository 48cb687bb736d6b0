"""The face of every frequency mechanism: client and server in one, and scikit-learn's transformer around both."""

import warnings

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.special import ndtri
from sklearn.base import TransformerMixin

from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inputs import CategoryEncoder, at_least_two, category_rows, columns_of, learn_categories
from dpestim.local.categories.column import CategoryColumn, category_lists, codes_named
from dpestim.local.categories.estimates import end, postprocessor, shown
from dpestim.local.client import Client
from dpestim.local.columns import Columns, column_names
from dpestim.local.server import Server

#: Cells of a support matrix that are made at a time where the result is sparse.
_DENSE_CELLS = 1 << 24


class CategoryClient(Client):
    """Whatever randomises categorical columns: it has a parameter `categories`."""

    _domain, _same_domain = "categories", "the same categories in the same order"

    def _container(self, X, strict):
        return category_rows(X, strict=strict)

    def _parts(self, X, columns, strict):
        return columns_of(X)

    def _declared_columns(self, n_columns):
        return super()._declared_columns(None)  # the domain alone says how many columns there are

    def _declare(self, n_columns):
        lists, keys = category_lists(self.categories)
        return self._made(lists, column_names(len(lists), keys), keys=keys)

    def _infer(self, X, names):
        columns = self._made([learn_categories(part, name) for part, name in zip(columns_of(X), names)], names,
                             inferred="categories")
        warnings.warn(
            "categories='auto' learns the domain from private data: the result has no privacy guarantee "
            "(privacy_.epsilon is infinite). Declare the categories.",
            PrivacyLeakWarning,
            stacklevel=5,
        )
        return columns

    def _like(self, columns):
        encoders = [c.encoder for c in columns]
        return Columns(self._with_laws(encoders), columns.inferred, columns.keys)

    def _made(self, lists, names, **more):
        return Columns(self._with_laws(list(map(self._encoder, lists, names))), **more)

    def _encoder(self, categories, name):
        """Return what turns the values of a column into codes."""
        return CategoryEncoder(categories, name)

    def _with_laws(self, encoders):
        return [CategoryColumn(e, self._law(e, j, len(encoders))) for j, e in enumerate(encoders)]

    def _codes_of(self, name, column, n_columns, encoder):
        """Return the codes of the categories that a parameter, a list of lists or None, names for one column."""
        if getattr(self, name) is None:
            return ()
        keys = tuple(self.categories) if isinstance(self.categories, dict) else None
        return codes_named(getattr(self, name), name, column, n_columns, encoder, keys)

    def _law(self, encoder, column, n_columns):
        """Return the law of one column."""
        more = self._law_arguments(column, n_columns, encoder)
        return self._randomizer.make(self._share(n_columns), encoder.n_categories, **more)


class FrequencyEstimator(TransformerMixin, Server, CategoryClient):
    """Frequencies of categorical columns under local differential privacy; a sub-class names its `_randomizer`.

    ``fit`` is ``privatize``, ``aggregate`` and ``release`` in a row, streamed block by block so that reports are never
    held in memory. It is its own client, and its counts are those of the reports that support each category.
    """

    _no_law = Client._no_law | {"postprocess", "sparse_output"}

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

    def release(self):
        """Return `frequencies_`: the counts made into estimates, post-processed as `postprocess` says."""
        return self.frequencies_

    # ---------------------------------------------------------------- scikit-learn's face

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
        X, _, columns = self._schema(X, False)
        self._note_score(X.shape[0])
        total, size = 0.0, 0
        for column, values, estimate in zip(columns, columns_of(X), self.frequencies_):
            name = column.name
            seen = CategoryEncoder(at_least_two(learn_categories(values, name, allow_missing=True)), name)
            truth = np.bincount(seen.encode(values), minlength=len(seen.categories)) / X.shape[0]
            plain = dict(zip(seen.plain_categories(), truth))
            errors = [f - plain.pop(v, 0.0) for v, f in zip(column.encoder.plain_categories(), estimate)]
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
    def frequencies_(self):
        """Estimated frequencies, one array per column."""
        self._check_fitted()
        process = self._postprocessor()
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
        never has width 0 where the estimate happens to look certain. Normal approximation; not clipped to [0, 1]. It is
        about the users who took part, and does not cover their being drawn from a population.
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

    # ---------------------------------------------------------------- inside

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

    def _client(self, restart=False):
        return self

    def _check_call_parameters(self):
        super()._check_call_parameters()
        self._postprocessor()

    def _postprocessor(self):
        return postprocessor(self.postprocess)

    def _freeze(self, columns, names):
        super()._freeze(columns, names)
        self.categories_ = [c.categories for c in columns]

    def _forget(self):
        super()._forget()
        self._thaw()
        vars(self).pop("categories_", None)

    def _support(self, reports):
        if not self.sparse_output:
            return self._supports(reports)
        rows = max(1, _DENSE_CELLS // sum(len(c) for c in self.categories_))  # never the whole dense matrix
        parts = [csr_array(self._supports(reports[at : at + rows])) for at in range(0, len(reports), rows)]
        return vstack(parts, format="csr")

    def _supports(self, reports):
        """Return the 0/1 support matrix of reports, columns side by side."""
        blocks = [
            law.support(np.ascontiguousarray(reports[:, part], law.report_dtype))
            for law, part in zip(self._columns.laws, self._columns.slices)
        ]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)

    def _error_functions(self):
        """Return, for each column, the standard errors of the estimates as a function of frequencies in [0, 1]."""
        lines = [r.variance_line(c, self._n_users) for r, c in zip(self.randomizers_, self._counts)]
        return [
            lambda f, at_zero=at_zero, slope=slope: np.sqrt(np.maximum(at_zero + slope * f, 0.0) / self._n_users)
            for at_zero, slope in lines
        ]

    def _unbiased(self):
        return [r.estimate(c, self._n_users) for r, c in zip(self.randomizers_, self._counts)]
