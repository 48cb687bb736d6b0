"""Importances of columns: how much the splits of trees on a column tell, from noisy leaves alone."""

import numpy as np
from sklearn.utils.validation import check_is_fitted


class SplitImportances:
    """Importances of columns for trees: a mixin of what has `features_`, `thresholds_`, `values_` and `_leaf_rows`."""

    @property
    def feature_importances_(self):
        """Importance of each column, an array of shape (n_features,) that adds up to 1; 0 for all without any split.

        The impurity that all splits on a column take away: what two children say differs, squared, times
        l r / (l + r) for the l and r rows in them. Of classes this is Gini's impurity, of numbers the variance, as in
        scikit-learn. Values and rows are those of noisy leaves, so that it costs nothing more. **It is biased by the
        noise:** noise makes children differ, so that a column that tells nothing has an importance above 0, the more
        so the smaller epsilon is, and of a forest, whose splits no row has a say in, in all columns.
        """
        check_is_fitted(self)
        return split_importances(self.features_, self.thresholds_, self.values_, self._leaf_rows, self.n_features_in_)


def split_importances(features, thresholds, values, rows, n_features):
    """Return the share of each column in the impurity that splits take away.

    Parameters
    ----------
    features, thresholds : ndarray of shape (n_trees, 2^depth - 1)
        Node k has the children 2 k + 1 and 2 k + 2; one of threshold 255 does not split.
    values : ndarray of shape (n_trees, 2^depth) or (n_trees, 2^depth, n_classes)
    rows : ndarray of shape (n_trees, 2^depth)
        At least 0.
    n_features : int
    """
    total = np.zeros(n_features)
    sums = rows[..., None] * (values if values.ndim == 3 else values[..., None])
    while rows.shape[1] > 1:
        below = [(rows[:, k::2], sums[:, k::2]) for k in (0, 1)]
        (left, _), (right, _) = below
        rows, sums = left + right, below[0][1] + below[1][1]
        means = [total_ / np.maximum(n, 1e-300)[..., None] for n, total_ in below]
        taken = left * right / np.maximum(rows, 1e-300) * np.square(means[0] - means[1]).sum(axis=2)
        nodes = slice(rows.shape[1] - 1, 2 * rows.shape[1] - 1)
        splits = thresholds[:, nodes] != 255
        total += np.bincount(features[:, nodes][splits], weights=taken[splits], minlength=n_features)
    return shares(total)


def shares(sizes):
    """Return sizes that add up to 1, or zeros where all of them are 0."""
    most = sizes.max(initial=0.0)
    return sizes / most / (sizes / most).sum() if most > 0 else np.zeros_like(sizes)
