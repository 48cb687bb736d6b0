"""Columns of a class and a feature: what of their domain is declared, what is learned, and how many a user reports."""

import warnings
from numbers import Integral

from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inputs import class_array, label_codes
from dpestim.local.categories.adaptive import best_law
from dpestim.local.categories.choice import spread_of
from dpestim.local.feature_client import FeatureClient
from dpestim.local.learning.joint import JointColumn, JointColumns
from dpestim.privacy.exact import canonical_epsilon


class ClassColumns(FeatureClient):
    """Base of clients whose every column is the class beside a feature."""

    @property
    def _is_declared(self):
        return self.classes is not None and not self._undeclared()

    def _infer(self, X, names, y):
        """Return columns of which something was learned from private data, and warn."""
        labels, learned = self.classes, self._undeclared()
        inferred = " and ".join(filter(None, ["classes" if labels is None else "", learned]))
        warnings.warn(
            f"{inferred} were learned from private data: the result has no privacy guarantee (privacy_.epsilon is "
            f"infinite). Declare {inferred}.", PrivacyLeakWarning, stacklevel=6,
        )
        classes = label_codes(y, labels, X.shape[0], strict=False)[1]
        if not learned:
            twin = type(self)(**{**self.get_params(deep=False), "classes": classes})
            columns = twin._declare(X.shape[1])
            return self._made(classes, [c.feature for c in columns], names, inferred=inferred, keys=columns.keys)
        return self._made(classes, self._learned(X, names), names, inferred=inferred)

    def _of_features(self, features, names, **more):
        return self._made(class_array(self.classes), features, names, **more)

    def _like(self, columns):
        return self._made(columns.columns[0].classes, [c.feature for c in columns], columns.names,
                          inferred=columns.inferred, keys=columns.keys)

    def _made(self, classes, features, names, **more):
        """Return the `Columns` of these classes and features: how many are drawn, and their laws."""
        sizes = [len(classes) * feature.n_values for feature in features]
        k = self._n_drawn(sizes)
        laws = [best_law(canonical_epsilon(self.epsilon) / k, size) for size in sizes]
        columns = [JointColumn(name, law, classes, feature) for name, law, feature in zip(names, laws, features)]
        return JointColumns(columns, n_sampled=k, **more)

    def _n_drawn(self, sizes):
        """Return how many columns a user reports: that declared, or what makes the variance least."""
        k, epsilon, d = self.n_sampled, canonical_epsilon(self.epsilon), len(sizes)
        if k is not None:
            if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= k <= d:
                raise ValueError(f"n_sampled must be None or an integer from 1 to {d}, the number of columns")
            return int(k)
        best = None
        for k in range(1, d + 1):
            # (whoever does not report a feature leaves the variance of being drawn, too)
            worst = max(spread_of(best_law(epsilon / k, size)).rmse(1) ** 2 + 1 / size for size in set(sizes)) / k
            if best is not None and worst >= best[0]:
                break
            best = worst, k
        return best[1]
