"""A frequency estimator seen as a transformer: its codes, and the matrix of its law, for expectation maximisation."""

from copy import copy

import numpy as np
from sklearn.utils.validation import validate_data

from dpestim.local._em import Dense
from dpestim.local._plan import column_names
from dpestim.local._randomizer import BaseRandomizer
from dpestim.rng import WordSource

#: Entries of the dense matrix of a law.
LARGEST_MATRIX = 1 << 24


class CategorySide:
    """What a `Collector` asks of a transformer, answered by a frequency estimator with declared categories."""

    #: The domain is declared.
    _needs_data = False

    def __init__(self, estimator):
        self.estimator = estimator
        if isinstance(estimator.categories, str):
            raise ValueError("transformer must declare its categories")

    def __copy__(self):
        return type(self)(copy(self.estimator))

    @property
    def _payer(self):
        return self.estimator

    @property
    def n_jobs(self):
        return self.estimator.n_jobs

    @property
    def random_state(self):
        return self.estimator.random_state

    @property
    def privacy_(self):
        return self.estimator.privacy_

    @property
    def n_features_in_(self):
        return self.estimator.n_features_in_

    @property
    def feature_names_in_(self):
        keys = self.estimator._plan_or_declared().keys
        return self.estimator.feature_names_in_ if keys is None else np.array(keys, dtype=object)

    def fit(self, X):
        """Check X and remember its columns, spending nothing."""
        self._prepare(X)
        self._learn_names(X)
        return self

    def privatize(self, X):
        codes, columns = self._prepare(X)
        return columns.plan.randomize(codes, self._pay(columns, self._n_rows(codes)), 0, self.n_jobs)

    def _columns_of(self, n_columns):
        return CategoryColumns(self.estimator._plan_or_declared())

    def _freeze(self, columns):
        """Do nothing: the estimator is a clone, whose parameters nobody else sets."""

    def _learn_names(self, X):
        if not hasattr(self, "feature_names_in_"):
            self.estimator._checked_X(X)

    def _prepare(self, X):
        self.estimator._check_call_parameters()
        columns = self._columns_of(None)
        X = self.estimator._checked_X(X, columns.plan)
        if columns.plan.keys is None and hasattr(self.estimator, "n_features_in_"):
            validate_data(self.estimator, X, reset=False, skip_check_array=True)
        return columns.plan.encode(X, self.n_jobs, self.estimator._is_strict()), columns

    @staticmethod
    def _n_rows(codes):
        return len(codes[0])

    def _pay(self, columns, n_rows):
        names = column_names(len(columns), getattr(self, "feature_names_in_", None))
        self.estimator._charge(columns.plan.guarantee(self.random_state is not None), n_rows, names)
        return WordSource(self.random_state)

    @staticmethod
    def _guarantee(columns, seeded, times=1):
        return columns.plan.guarantee(seeded, times)

    def _checked_X(self, X):
        return np.stack(self._prepare(X)[0], axis=1)


class CategoryColumns:
    """The columns of a plan, with reports counted by the columns of the transition matrices."""

    def __init__(self, plan):
        self.plan = plan
        self.randomizers = [CategoryLaw(r) for r in plan.randomizers]
        self.inferred = plan.inferred

    def __len__(self):
        return len(self.randomizers)

    def same_law(self, other):
        return self.plan.same_law(other.plan)

    def check_reports(self, reports):
        return self.plan.check_reports(reports)

    def randomize_and_count(self, codes, source, first, n_jobs):
        return self.count(self.plan.randomize(codes, source, first, n_jobs), n_jobs)

    def count(self, reports, n_jobs):
        return [
            law.count(np.ascontiguousarray(reports[:, part], law.randomizer.report_dtype))
            for law, part in zip(self.randomizers, self.plan.slices)
        ]

    @staticmethod
    def to_units(positions, column):
        return positions

    @staticmethod
    def width(column):
        return 1.0


class CategoryLaw:
    """A categorical randomizer whose reports are the columns of its transition matrix."""

    def __init__(self, randomizer):
        self.randomizer = randomizer
        plain = type(randomizer).public_part is BaseRandomizer.public_part and randomizer.report_width == 1
        if not plain or randomizer.n_categories**2 > LARGEST_MATRIX:
            raise ValueError("transformer must send one code of a small alphabet for each column, as randomised "
                             "response does: its law must be one matrix")

    def channel(self, n_bins):
        """Return (edges around the codes, identity, the matrix); the bins are the categories."""
        matrix = Dense([[float(p) for p in row] for row in self.randomizer.transition_matrix()])
        return np.arange(matrix.n_bins + 1) - 0.5, np.arange(matrix.n_outputs), matrix

    def count(self, reports):
        """Return how often each column of the matrix was realised."""
        codes = np.zeros(len(reports), self.randomizer.code_dtype)
        columns = self.randomizer.law_indices(codes, reports)[1]
        return np.bincount(columns, minlength=len(self.randomizer.transition_matrix()[0]))
