"""What every frequency estimator is: client and server in one, and scikit-learn's transformer around both."""

import warnings

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.base import TransformerMixin

from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inputs import CategoryEncoder, category_rows, columns_of, learn_categories
from dpestim.inputs.frames import names_of_features
from dpestim.local.categories.column import CategoryColumn, category_lists, codes_named
from dpestim.local.categories.estimates import shown
from dpestim.local.categories.frequencies import Frequencies
from dpestim.local.client import Client, law_parameters
from dpestim.local.columns import Columns, column_names
from dpestim.local.origin import OTHERS, is_impossible
from dpestim.local.server import Server

#: Cells of a support matrix that are made at a time where the result is sparse.
_DENSE_CELLS = 1 << 24
#: Columns of servers by class and parameters, of so many, and of no more categories: they may keep tables.
_known, _MOST_KNOWN, _MOST_CATEGORIES = {}, 64, 1 << 12
#: What columns are made by: a client may have one of its own, and so others may not have its columns.
_MAKERS = frozenset({"_codes_of", "_declare", "_encoder", "_law", "_law_arguments", "_made", "_share", "_with_laws"})
#: Types of parameters that are equal where value and type are (floats by their digits: 0.0 is not -0.0).
_EQUAL = frozenset({bool, int, float, str, type(None)})


class CategoryClient(Client):
    """Whatever randomises categorical columns: it has a parameter `categories`."""

    _domain, _same_domain = "categories", "the same categories in the same order"
    _plain_kinds = "iubfU"

    def _container(self, X, strict):
        return category_rows(X, strict=strict)

    def _parts(self, X, columns, strict):
        return columns_of(X)

    def _declared_columns(self, n_columns, names=None):
        return super()._declared_columns(None, names)  # the domain alone says how many columns there are

    def _columns_to_freeze(self, width):
        # (nobody compares the parameters with those that these were made from, so that nothing is remembered of them)
        if self._columns is not None or "_declared" in vars(self) or not self._is_declared:
            return self._columns_of_width(width)
        key = self._key_of_columns()
        columns = None if key is None else _known.get(key)
        if columns is None:
            columns = self._declare(None)
            if key is not None:
                if len(_known) >= _MOST_KNOWN:
                    _known.clear()
                _known[key] = columns
        return columns

    def _key_of_columns(self):
        """Return all that columns of one short list of integers are made from, None for others.

        They never change, and most servers of a process have the same: to make them takes longer than to count some
        thousand reports. The list is read each time, as an array may be another one by now. A class of somebody else's
        may make a law of more than its parameters, such as an attribute, and so shares nothing, nor does an object that
        makes it in its own way.
        """
        declared = self.categories
        if type(declared) is not list or len(declared) != 1 or not type(self).__module__.startswith("dpestim."):
            return None
        values, found = declared[0], None
        if type(values) is range:
            found = values if abs(values.stop - values.start) <= _MOST_CATEGORIES else None
        elif type(values) is np.ndarray and values.dtype.kind in "iu" and values.size <= _MOST_CATEGORIES:
            found = values.dtype.str, values.shape, values.tobytes()
        if found is None or self._each is not None or not _MAKERS.isdisjoint(vars(self)):
            return None
        own = [getattr(self, name) for name in law_parameters(type(self)) if name != "categories"]
        kinds = tuple(map(type, own))
        if not _EQUAL.issuperset(kinds):
            return None
        return type(self), self._randomizer, found, kinds, *[v.hex() if type(v) is float else v for v in own]

    def _declare(self, n_columns, names=None):
        lists, keys = category_lists(self.categories, names=names)
        return self._made(lists, column_names(len(lists), keys), keys=keys)

    def _infer(self, X, names):
        columns = self._made([learn_categories(part, name) for part, name in zip(columns_of(X), names)], names,
                             inferred="categories")
        warnings.warn(
            "categories='auto' learns the domain from private data: the result has no privacy guarantee "
            '(privacy_.epsilon is infinite). Declare the categories, as in categories={"town": ["Bern", "Oslo"]}.',
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
        return codes_named(getattr(self, name), name, column, n_columns, encoder)

    def _law(self, encoder, column, n_columns):
        """Return the law of one column."""
        more = self._law_arguments(column, n_columns, encoder)
        return self._randomizer.make(self._share(n_columns), encoder.n_categories, **more)


class FrequencyEstimator(TransformerMixin, Frequencies, Server, CategoryClient):
    """Estimate frequencies of categories under local differential privacy; a sub-class names its `_randomizer`.

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

    # ---------------------------------------------------------------- scikit-learn

    def fit_transform(self, X, y=None, **fit_params):
        """Fit and return the support matrix of the very same reports: one randomisation, one epsilon."""
        if fit_params:
            raise ValueError(f"{type(self).__name__}.fit takes no parameters but X")
        self._check_support(restart=True)
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
        self._check_support(restart=False)
        return self._support(self.privatize(X))

    def _warn_if_impossible(self, columns, counts, n):
        for column, own in zip(columns, counts):
            if not columns.n_sampled and is_impossible(column.law, own, n):
                warnings.warn(OTHERS.format(column.name), stacklevel=4)

    def get_feature_names_out(self, input_features=None):
        """Return feature_category for each column of `transform`."""
        self._check_fitted()
        input_features = names_of_features(self, input_features)
        return np.array(
            [f"{f}_{c}" for f, cats in zip(input_features, self.categories_) for c in shown(cats)], dtype=object
        )

    # ---------------------------------------------------------------- inside

    def _randomises(self, method):
        self._check_support(restart=False)  # (what it refuses costs nothing)
        return True

    def _transformed_reports(self, reports, X):
        """Return what `transform` makes of the reports of rows."""
        return self._support(reports)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "categories": [[0, 1, 2, 3]]},
            {"epsilon": 0.5, "categories": [["a", "b", "c"], [False, True]]},
            {"epsilon": 3.0, "categories": [list(range(9))]},
        ]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _check_support(self, restart):
        """Raise ValueError where reports have no support matrix; before anything is paid. `restart`: by a new fit."""

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
