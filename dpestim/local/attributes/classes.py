"""Predictions of one column by the others, from tables alone: naive Bayes, in which noise says nothing."""

import math

import numpy as np
from scipy.special import logsumexp

from dpestim.inputs import category_rows, columns_of
from dpestim.postprocessing.shrinkage import class_logarithms


class TableClassifier:
    """Naive Bayes made of joint tables of a column and each other one (`MarginalEstimator.classifier`).

    Differences between classes are shrunken by the share that noise explains, as in `LDPNaiveBayes`. It follows from
    what was released, and costs nothing. Rows to be predicted are not protected: the caller of `predict` sees them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The categories of the column.
    class_log_prior_ : ndarray of shape (n_classes,)
    feature_log_prob_ : list of ndarray of shape (n_classes, n_categories)
        Logarithms of the probabilities of categories in each class, for each other column.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import MarginalEstimator
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 50_000)
    >>> X = np.column_stack([rng.integers(0, 3, 50_000), a, a ^ (rng.random(50_000) < 0.1)])
    >>> est = MarginalEstimator(2.0, categories=[[0, 1, 2], [0, 1], [0, 1]], random_state=0).fit(X)
    >>> est.classifier(2).predict([[1, 0], [2, 1]])
    array([0, 1])
    """

    def __init__(self, estimator, target, linear, shares, n):
        self._estimator, self._row = estimator, estimator._columns.row
        self._names = getattr(estimator, "feature_names_in_", None)
        self.classes_ = estimator.categories_[target]
        self._others = [j for j in range(len(estimator.categories_)) if j != target]
        parts, noise = [], []
        for j in self._others:
            found = linear(tuple(sorted((j, target))))
            shape = [len(estimator.categories_[k]) for k in sorted((j, target))]
            table = found.f.reshape(shape)
            parts.append(n * (table.T if j < target else table))
            noise.append(n * n * found.variance)
        deviation = math.sqrt(linear((target,)).variance)
        # (a third of the deviation: a logarithm would make much of a class that noise hid)
        prior = np.maximum(shares, 1 / n) + deviation / 3
        rows = np.maximum(n * shares, max(1.0, n * deviation))[:, None]
        self.class_log_prior_ = np.log(prior / prior.sum())
        self.feature_log_prob_ = class_logarithms(parts, rows, np.array(noise), 1.0)

    def __repr__(self):
        return f"TableClassifier of the classes {self.classes_.tolist()} by {len(self._others)} columns"

    def predict(self, X):
        """Return the likeliest class of each row; of private rows **not private**."""
        return self.classes_[self._joint(X).argmax(axis=1)]

    def predict_proba(self, X):
        """Return the probability of each class, of shape (n_rows, n_classes); of private rows **not private**.

        Parameters
        ----------
        X : array-like or frame
            The other columns in their order, or all columns: that of the classes is not read. Of a frame the columns
            are found by their names, where `fit` saw names. A value that is no category says nothing about the class.
        """
        joint = self._joint(X)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def _joint(self, X):
        strict = self._estimator._is_strict()
        X = category_rows(X, strict=strict)
        parts, n, at = columns_of(X), len(self._others) + 1, self._others
        if self._names is not None and hasattr(X, "columns"):
            names, have = self._names, list(X.columns)
            lost = [name for j, name in enumerate(names) if j in at and name not in have]
            if lost:
                raise ValueError(f"X must have the columns {lost}, which the tables are of")
            parts = [parts[have.index(names[j])] for j in at]
        elif len(parts) == n:
            parts = [parts[j] for j in at]
        elif len(parts) != n - 1:
            raise ValueError(f"X must have {n - 1} columns, or {n} with that of the classes, got {len(parts)}")
        out = np.tile(self.class_log_prior_, (X.shape[0], 1))
        for j, values, logs in zip(at, parts, self.feature_log_prob_):
            places, _ = self._row[j].read(values, self._estimator.n_jobs, explain=not strict)
            out += np.column_stack([logs, np.zeros(len(logs))]).T[places]
        if strict:
            self._estimator._note_score(len(out), what="predictions")
        return out
