"""Naive Bayes from reports of (class, feature): each user reports one drawn feature together with the class."""

import copy
import math
import warnings
from numbers import Integral

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin

from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inputs import (
    CategoryEncoder,
    Domain,
    Numbers,
    category_rows,
    class_array,
    classes_of,
    columns_of,
    in_order,
    is_by_column,
    label_codes,
    learn_categories,
    lists_of,
    name_of_target,
    names_of_columns,
    pairs_of,
)
from dpestim.inputs.declared import as_list, as_pair, by_key, may_be_missing, missing_of, ordered
from dpestim.inputs.numbers import kind_of, number_column
from dpestim.local.categories.adaptive import best_law
from dpestim.local.categories.choice import spread_of
from dpestim.local.client import Client
from dpestim.local.columns import column_names
from dpestim.local.learning.joint import CategoryFeature, JointColumn, JointColumns, NumberFeature
from dpestim.local.numbers.column import pair_of
from dpestim.local.server import Server
from dpestim.postprocessing import norm_sub
from dpestim.postprocessing.shrinkage import class_logarithms
from dpestim.privacy.exact import canonical_epsilon

#: The most bins of a column of numbers.
MOST_BINS = 1 << 16


class LDPNaiveBayes(ClassifierMixin, Server, Client):
    """Naive Bayes from reports: each user reports one drawn feature together with the class.

    Take it where not even the classes of the training rows may be known to anybody. It is client and server in one:
    `privatize` runs on users' devices, `aggregate` and `merge` count reports anywhere, and `fit` is all of it.

    **Privacy.** epsilon-local differential privacy for a whole row, class and all features together, exact; neighbours:
    any two rows of one user; nobody but the user's device is trusted (proof in ``naive_bayes.md``). Rows to be
    predicted are not protected: whoever calls `predict` sees them.

    **Utility.** Shares of (class, value) are estimated without bias from the n k / d users who report a feature, by the
    mechanism of the least variance for that many pairs. What classes say apart from all rows shrinks by as much as
    noise explains; so with few users predictions become those of the likeliest class. On Adult (34,000 users, ten
    columns, means of five seeds) accuracy is 0.777, 0.794 and 0.811 for epsilon = 1, 2, 4, and 0.762 for always the
    likeliest class.

    **Complexity.** O(n k) for the reports, O(cells) memory; a user sends k reports of one feature each.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one row, class and features together, in (0, 80].
    classes : array-like, dict or Domain, default=None
        Public list of at least two classes. None takes those in y, which leaks (`PrivacyLeakWarning`) and makes
        ``privacy_.epsilon`` infinite; so do domains that are not declared.
    categories : list of (array-like or None), dict or Domain, default=None
        The public categories of each column, in order, with None for a column of numbers. A dict goes from all column
        names. None: all columns are numbers, if `bounds` are declared; if not, categories and bounds are learned.
        To be predicted, a value that is none of them says nothing about the class.
    bounds : (low, high), dict or Domain, default=None
        The public range of each column of numbers: a pair of numbers, or of arrays with one for each such column; a
        dict goes from the names of such columns. Values outside are clipped. Where a `Domain` says ``missing=True``, a
        missing number is a value of its own, behind the bins.
    n_bins : int, default=8
        Bins of equal width that a column of numbers is cut into, from 2 to 65536. For long tails between wide bounds,
        and many users, 16 or more are better; for few users of a small epsilon fewer.
    n_sampled : int, default=None
        How many columns a user reports, each with epsilon / n_sampled. None: what makes the variance least, which is 1
        unless epsilon is large; it depends on public numbers only.
    alpha : float, default=1.0
        Added to each count of (class, value), from 1e-10 to 1e10.
    {payment of rows}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_prior_, class_log_prior_ : ndarray of shape (n_classes,)
        Probabilities of classes, above 0: estimates, drawn towards equal ones by a third of their noise, so that no
        class is ruled out by it. With few users, or little epsilon, a common class is rarer here than it is.
    feature_log_prob_ : list of ndarray of shape (n_classes, n_values)
        Logarithms of the probabilities of values (or bins) in each class, for each column.
    n_users_ : int
        Reports counted so far.
    n_sampled_ : int
        Columns that a user reports.
    randomizers_ : list of Randomizer
        The frozen law of each column, over pairs of class and value.
    privacy_ : PrivacyGuarantee
        What one user's report promises.
    {columns seen}

    {refused reports}

    References
    ----------
    E. Yilmaz, M. Al-Rubaie, J. M. Chang, "Locally differentially private naive Bayes classification", 2019
    (arXiv:1905.01039): reports of class and value together. That each user draws columns is N. Wang et al., "Collecting
    and analyzing multidimensional data with local differential privacy", ICDE 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import LDPNaiveBayes
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 20_000)
    >>> X = rng.normal(y[:, None], 1.0, (20_000, 2))
    >>> model = LDPNaiveBayes(2.0, classes=[0, 1], bounds=([-2, -2], [3, 3]), random_state=0).fit(X, y)
    >>> model.predict([[-1.0, -0.5], [2.0, 1.5]])
    array([0, 1])
    """

    _checked_as = "local model"
    _domain, _same_domain = "classes", "the same classes, categories, bounds and bins"
    _no_law = Client._no_law | {"alpha"}
    _test_values = {"n_bins": [3], "n_sampled": [1, 2], "classes": [[0, 1, 2]]}

    def __init__(self, epsilon=1.0, *, classes=None, categories=None, bounds=None, n_bins=8, n_sampled=None, alpha=1.0,
                 ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.classes = classes
        self.categories = categories
        self.bounds = bounds
        self.n_bins = n_bins
        self.n_sampled = n_sampled
        self.alpha = alpha
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- the verbs

    def privatize(self, X, y):
        """Randomise raw rows and their classes into reports, on the user's side; each call is a release of its rows.

        Returns
        -------
        ndarray of shape (n_rows, width)
            C-contiguous, of one unsigned dtype; all that a server needs.
        """
        return super().privatize((X, y))

    def fit(self, X, y):
        """Randomise rows X with classes y and learn from the reports alone; forgets what was seen before."""
        return super().fit((X, y))

    def partial_fit(self, X, y, classes=None):
        """Randomise rows and add their reports; rows must be new users (or each pays epsilon again).

        `classes`, which scikit-learn's namesakes ask for, may repeat those that are declared, and declares none.
        """
        given, known = (None if own is None else list(class_array(classes_of(own, name_of_target(y))))
                        for own in (classes, self.classes))
        if None not in (given, known) and given != known:
            raise ValueError("classes of partial_fit must be those that the estimator declares")
        return super().partial_fit((X, y))

    @staticmethod
    def _as_rows(X, y):
        return X, y

    # ---------------------------------------------------------------- predictions

    def predict(self, X):
        """Return the likeliest class of each row; of private rows **not private**."""
        joint = self.predict_joint_log_proba(X)
        return self.classes_[joint.argmax(axis=1)]

    def predict_proba(self, X):
        """Return the probability of each class, of shape (n_rows, n_classes); of private rows **not private**."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X):
        """Return the logarithm of the probability of each class, of shape (n_rows, n_classes); as private as rows."""
        joint = self.predict_joint_log_proba(X)
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_joint_log_proba(self, X):
        """Return the logarithm of the probability of each class and the row, of shape (n_rows, n_classes)."""
        self._check_fitted()
        strict = self._is_strict()
        X, _, columns = self._schema(X, strict)
        out = np.tile(self.class_log_prior_, (X.shape[0], 1))
        for column, values, logs in zip(columns, columns_of(X), self.feature_log_prob_):
            places, why = column.feature.read(values, self.n_jobs, explain=not strict)
            if why and isinstance(column.feature, NumberFeature) and not strict:
                raise ValueError(f"{column.name} of X {why}")
            out += np.column_stack([logs, np.zeros(len(logs))]).T[places]
        if strict:
            self._note_score(len(out), what="predictions")
        return out

    def score(self, X, y, sample_weight=None):
        """Return the accuracy on rows X and classes y, which is **not private**: an exact release of these rows."""
        self._check_fitted()
        self._refuse_in_strict("score compares with raw data")
        found = self.predict_joint_log_proba(X).argmax(axis=1)
        known, _ = label_codes(y, self.classes_, len(found), strict=False, total=True)
        weights = None if sample_weight is None else number_column(sample_weight, len(found), "sample_weight")
        self._note_score(len(found))
        return float(np.average(known == found, weights=weights))

    @property
    def class_prior_(self):
        """Estimated probabilities of classes."""
        return self._answers()[0].copy()

    @property
    def class_log_prior_(self):
        """Logarithms of the estimated probabilities of classes."""
        return np.log(self._answers()[0])

    @property
    def feature_log_prob_(self):
        """Logarithms of the estimated probabilities of values in each class."""
        return [logs.copy() for logs in self._answers()[1]]

    def release(self):
        """Return `class_prior_` and `feature_log_prob_`."""
        return self.class_prior_, self.feature_log_prob_

    # ---------------------------------------------------------------- what is estimated

    def _answers(self):
        """Return (class_prior_, feature_log_prob_), as they were made when counts changed."""
        self._check_fitted()
        counts, alpha, found = self._known
        return found if counts is self._counts and alpha == self.alpha else self._estimates()

    def _add(self, client, columns, names, counts, n):
        super()._add(client, columns, names, counts, n)
        self._known = self._counts, self.alpha, self._estimates()

    def _estimates(self):
        told, n = self._columns.shares(self._counts), self._n_users
        shares, noise = [part for part, _, _ in told], np.array([variance for _, variance, _ in told])
        # each column tells the shares of the classes, with the noise of as many cells as it has values
        of_class = noise * [part.shape[1] for part in shares]
        weights = 1 / of_class / (1 / of_class).sum()
        classes, deviation = sum(w * part.sum(axis=1) for w, part in zip(weights, shares)), math.sqrt(
            1 / (1 / of_class).sum())
        # (a third of the deviation: a logarithm would make much of a class that noise hid)
        prior = np.maximum(norm_sub(classes), 1 / n) + deviation / 3
        rows = np.maximum(classes * n, max(1.0, deviation * n))[:, None]
        logs = class_logarithms([part * n for part in shares], rows, noise * n**2, float(self.alpha))
        return prior / prior.sum(), logs

    # ---------------------------------------------------------------- the domain

    @property
    def _is_declared(self):
        return self.classes is not None and not self._undeclared()

    def _undeclared(self):
        """Return what of the features' domain would be learned, in words, or an empty string."""
        categories, bounds = self._both()
        if categories is None:
            return "" if bounds is not None else "categories and bounds"
        if isinstance(categories, Domain):
            return "" if bounds is not None or not categories.of_kind(Numbers) else "bounds"
        lists = in_order(categories, "lists", name="categories")[1] if is_by_column(categories) else categories
        lacks = isinstance(lists, list | tuple) and any(own is None for own in lists) and bounds is None
        return "bounds" if lacks else ""

    def _is_by_name(self):
        return is_by_column(self.categories) or is_by_column(self.bounds)

    def _both(self):
        """Return (categories, bounds): a `Domain` that is given as one of them stands for both."""
        if isinstance(self.bounds, Domain) and self.categories is None:
            return self.bounds, self.bounds
        if isinstance(self.categories, Domain) and self.bounds is None:
            return self.categories, self.categories
        return self.categories, self.bounds

    def _declare(self, n_columns, names=None):
        categories, bounds = self._both()
        keys, pairs, missing = None, None, None
        if is_by_column(categories) or (categories is None and is_by_column(bounds)):
            lists = by_key(categories, as_list, "categories") if is_by_column(categories) else {}
            pairs = by_key(bounds, as_pair, "bounds") if is_by_column(bounds) else {}
            own = [*lists, *(key for key in pairs if key not in lists)]
            if isinstance(categories, Domain):  # (in its own order)
                own = [key for key in categories if key in own] + [key for key in own if key not in categories]
            keys, order = ordered(dict.fromkeys(own), names, "categories and bounds")
            pairs = [pairs[key] for key in order if lists.get(key) is None] if is_by_column(bounds) and all(
                key in pairs for key in order if lists.get(key) is None) else None
            gone = by_key(bounds, may_be_missing, "bounds") if is_by_column(bounds) else {}
            missing = [gone.get(key, False) for key in order if lists.get(key) is None]
            lists = [lists.get(key) for key in order]
        elif categories is None:
            known = len(pair_of(bounds, "bounds", None)[0])
            lists = [None] * (n_columns if n_columns is not None and self._same_bounds() else known)
        else:
            lists = lists_of(categories, some=True)
        if n_columns is not None and n_columns != len(lists):
            raise ValueError(f"categories and bounds must be those of the {n_columns} columns of X, got {len(lists)}")
        names = column_names(len(lists), keys)
        numbers = [j for j, own in enumerate(lists) if own is None]
        if bounds is not None and not numbers and not is_by_column(bounds):
            raise ValueError("bounds must be None where every column has categories")
        if pairs is None and is_by_column(bounds) and numbers:
            if keys is not None or categories is None:
                raise ValueError("bounds must have a pair for each column of numbers, by name where categories are")
            pairs = [pair for pair in pairs_of(bounds, len(lists), some=True) if pair is not None]
        given = tuple(zip(*pairs)) if pairs else bounds
        if missing is None:
            gone = missing_of(bounds, len(lists))
            missing = [j in gone for j in numbers]
        ends = zip(*pair_of(given, "bounds", len(numbers)), missing) if numbers else ()
        return self._made(class_array(self.classes), self._features(names, lists, ends), names, keys=keys)

    def _columns_of_width(self, width):
        if self._columns is None and self.classes is not None and self.categories is None and self.bounds is not None \
                and self._same_bounds():
            raise ValueError("bounds must have one number for each column, or fit must come first: a report does not "
                             "tell how many columns there are")
        return super()._columns_of_width(width)

    def _same_bounds(self):
        """Tell whether one pair of numbers stands for all columns of numbers."""
        return isinstance(self.bounds, Numbers) or (
            not is_by_column(self.bounds) and not any(np.ndim(end) for end in self.bounds))

    def _features(self, names, lists, ends):
        """Return what reads each column: by its categories, or by the next (low, high, whether it may be missing)."""
        n_bins, ends = self.n_bins, iter(ends)
        if isinstance(n_bins, bool) or not isinstance(n_bins, Integral) or not 2 <= n_bins <= MOST_BINS:
            raise ValueError(f"n_bins must be an integer from 2 to {MOST_BINS}")
        return [CategoryFeature(CategoryEncoder(own, name, fewest=1)) if own is not None
                else NumberFeature(name, *(end := next(ends))[:2], int(n_bins), *end[2:])
                for name, own in zip(names, lists)]

    def _infer(self, X, names, y):
        """Return columns of which something was learned from private data, and warn."""
        labels, learned = self.classes, self._undeclared()
        inferred = " and ".join(filter(None, ["classes" if labels is None else "", learned]))
        warnings.warn(
            f"{inferred} were learned from private data: the result has no privacy guarantee (privacy_.epsilon is "
            "infinite). Declare what is public.", PrivacyLeakWarning, stacklevel=6,
        )
        classes = label_codes(y, labels, X.shape[0], strict=False)[1]
        if not learned:
            twin = type(self)(**{**self.get_params(deep=False), "classes": classes})
            columns = twin._declare(X.shape[1])
            return self._made(classes, [c.feature for c in columns], names, inferred=inferred, keys=columns.keys)
        labels = names_of_columns(X)
        lists = [None] * X.shape[1] if self.categories is None else lists_of(self.categories, X.shape[1], labels,
                                                                            some=True)
        ends = []
        for j, (own, values, name) in enumerate(zip(lists, columns_of(X), names)):
            if own is None:
                if kind_of(values.dtype) in "biuf" or self.categories is not None:
                    ends.append(_range_of(NumberFeature(name, 0.0, 1.0, 2), values))
                else:
                    lists[j] = learn_categories(values, name, allow_missing=True)
        return self._made(classes, self._features(names, lists, ends), names, inferred=inferred)

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

    # ---------------------------------------------------------------- inside

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.classifier_tags.poor_score = True  # noise may drown the few rows of a check
        return tags

    def _client(self, restart=False):
        return self

    def _container(self, X, strict):
        return category_rows(X, strict=strict)

    def _check_call_parameters(self):
        super()._check_call_parameters()
        alpha = self.alpha
        if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.number) or not 1e-10 <= alpha <= 1e10:
            raise ValueError("alpha must be a number from 1e-10 to 1e10")

    def _read(self, rows, restart=False, check=None):
        if not isinstance(rows, tuple):
            raise ValueError(f"{type(self).__name__} needs rows and their classes: privatize(X, y)")
        X, y = rows
        self._check_call_parameters()
        strict = self._is_strict()
        reader = self
        if is_by_column(self.classes):  # (y says which column they are of)
            reader = copy.copy(self)
            reader.classes = classes_of(self.classes, name_of_target(y))
        X, names, columns = reader._schema(X, strict, restart, y=y)
        if check is not None:
            check(columns)
        labels, _ = label_codes(y, columns.columns[0].classes, X.shape[0], strict=strict, n_jobs=self.n_jobs)
        labels = np.maximum(labels, 0)  # (in strict mode what is no class counts as the first one)
        return columns.read([(labels, values) for values in columns_of(X)], self.n_jobs, strict), columns, names

    def _freeze(self, columns, names):
        super()._freeze(columns, names)
        self.classes_, self.n_sampled_ = columns.columns[0].classes, columns.n_sampled

    def _forget(self):
        super()._forget()
        self._thaw()
        for name in ("classes_", "n_sampled_", "_known"):
            vars(self).pop(name, None)

    @staticmethod
    def _typical_parameters():
        return {"classes": [0, 1]}

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "classes": [0, 1], "bounds": ([-2.0, -2.0, -2.0], [2.0, 2.0, 2.0]), "n_bins": 4},
                {"epsilon": 4.0, "classes": ["a", "b", "c"], "categories": [[0, 1], [0, 1, 2], [2, 1, 0]]}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns, and classes that depend on them."""
        rng, classes = np.random.default_rng(seed), np.asarray(self.classes)
        X = rng.normal(0.0, 1.0, (n_rows, 3)) if self.categories is None else rng.integers(0, 2, (n_rows, 3)).astype(
            float)
        y = np.clip(np.floor(X[:, 1] + 1), 0, len(classes) - 1).astype(int)
        return X, (classes.astype(object) if classes.dtype.kind == "U" else classes)[y]


def _range_of(feature, values):
    """Return the least and the largest number of a column, a little apart where they are one."""
    lost = feature.read(values, None)[1]
    if lost:
        raise ValueError(f"{feature.name} of X {lost}")
    numbers = np.asarray(values, np.float64)
    low, high = float(numbers.min()), float(numbers.max())
    room = 0.0 if high > low else max(1.0, abs(low))
    return low - room, high + room
