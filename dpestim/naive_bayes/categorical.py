"""Categorical naive Bayes: noisy tables of class and category, in one release (`categorical.md`)."""

import math

import numpy as np

from dpestim.inputs import CategoryEncoder, learn_categories, lists_of
from dpestim.models import checked_number
from dpestim.naive_bayes.base import NaiveBayes
from dpestim.postprocessing.shrinkage import class_logarithms
from dpestim.statistics.calibrated_noise import noise_for


class DPCategoricalNB(NaiveBayes):
    """Fit categorical naive Bayes by noisy counts of categories in each class.

    **Privacy.** (epsilon, delta)-differential privacy in the central model, for the declared neighbours: each row is in
    one cell of the table (class, category) of each column, and all tables get noise together; the noise does not grow
    with the numbers of classes and categories. All fitted attributes may be published. The caller of `fit` holds the
    rows and must be trusted. Predictions and `score` of private rows are **not private**.

    **Utility.** With d columns and pure epsilon each count has noise of a standard deviation of about
    2 sqrt(2) d / epsilon for replaced rows, half of that for one more or less. Noisy counts below 0 are taken as 0.
    The counts of classes are made from all tables, and cost nothing more. Probabilities shrink to those of all rows by
    as much of their differences as noise explains.

    **Complexity.** O(n d) time, O(cells) memory beyond X.

    {parameters}
    References
    ----------
    Vaidya, Shafiq, Basu, Hong (2013), "Differentially private naive Bayes classification", WI-IAT, section III.
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data analysis", TCC, example 3.
    The proof: ``categorical.md``.

    Examples
    --------
    >>> from dpestim.naive_bayes import DPCategoricalNB
    >>> X, y = [["tea", "mild"]] * 600 + [["coffee", "strong"]] * 400, ["calm"] * 600 + ["awake"] * 400
    >>> model = DPCategoricalNB(1.0, categories=[["tea", "coffee"], ["mild", "strong"]], classes=["awake", "calm"],
    ...                         random_state=0).fit(X, y)
    >>> model.predict([["tea", "mild"], ["coffee", None]]), model.class_prior_.round(1)
    (array(['calm', 'awake'], dtype='<U5'), array([0.4, 0.6]))
    """

    _more_parameters = """\
    {delta of noise}
    categories : list of array-like, dict or Domain, default=None
        The public categories of each column, None among them where rows may lack a value. A value that is none of them
        says nothing about the class. None takes those that occur, which leaks (`PrivacyLeakWarning`).
    {classes}
    alpha : float, default=1.0
        Added to each count, from 1e-10 to 1e10.
    class_prior : array-like of shape (n_classes,), default=None
        Public probabilities of the classes. None: from their noisy counts.
    """
    _more_attributes = """
    classes_ : ndarray of shape (n_classes,)
    categories_ : list of ndarray
        The categories of each column.
    category_count_, feature_log_prob_ : list of ndarray of shape (n_classes, n_categories)
        Noisy counts, at least 0, and logarithms of probabilities, for each column.
    class_count_, class_prior_, class_log_prior_ : ndarray of shape (n_classes,)
        Noisy numbers of rows, at least 0, and probabilities.
    n_categories_ : ndarray of shape (n_features,)
    {columns seen}
    """
    _declared = ("categories", "classes")
    _learned = ("class_count_", "class_log_prior_")
    _declared_prior = "class_prior"

    def __init__(self, epsilon=1.0, *, delta=None, categories=None, classes=None, alpha=1.0, class_prior=None,
                 neighbours=None, ledger=None, random_state=None):
        super().__init__(epsilon, delta=delta, classes=classes, neighbours=neighbours, ledger=ledger,
                         random_state=random_state)
        self.categories = categories
        self.alpha = alpha
        self.class_prior = class_prior

    # ---------------------------------------------------------------- inside

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    def _check_own(self):
        checked_number("alpha", self.alpha, "from 1e-10 to 1e10", lambda v: 1e-10 <= v <= 1e10)
        if self.categories is not None:
            _encoders(lists_of(self.categories))

    def _rows(self, X, reset):
        return self._checked_columns(X, reset=reset)

    def _lists(self, domain):
        """Return the categories of each column, as they were declared, or found."""
        return [[value for _, value in own] for own in domain[1]] if self.categories is None else lists_of(
            self.categories)

    def _domain(self, n_columns, data=None):
        lists = [learn_categories(column, f"column {j}", allow_missing=True) for j, column in enumerate(data[0])] if (
            self.categories is None) else lists_of(self.categories, n_columns)
        known = (encoder.plain_categories() if self.categories is not None else encoder.categories
                 for encoder in _encoders(lists))
        return self._classes(data), tuple(tuple((type(value).__name__, value) for value in own) for own in known)

    def _sums(self, data, domain):
        columns, codes, _ = data
        n_classes, encoders, tables = len(domain[0]), _encoders(self._lists(domain)), []
        for encoder, column in zip(encoders, columns):
            size = len(encoder.categories)
            # (the last row and column count what is no class or no category, and are not released)
            places = codes.astype(np.int64) % (n_classes + 1) * (size + 1) + _codes(encoder, column)
            table = np.bincount(places, minlength=(n_classes + 1) * (size + 1)).reshape(n_classes + 1, size + 1)
            tables.append(table[:-1, :-1])
        return tables

    def _released(self, n_rows, totals, domain, epsilon, delta):
        classes, encoders, tables = self._class_array(domain[0]), _encoders(self._lists(domain)), totals
        n_classes, sizes = len(classes), [len(encoder.categories) for encoder in encoders]
        moved = len(tables) * (2 if self._replaces else 1)
        noise = noise_for(epsilon, delta, moved, moved, n_classes * sum(sizes))

        def draw(source):
            noisy = noise.add(np.concatenate(tables, axis=1).astype(np.int64).ravel(), source)
            parts = np.split(noisy.reshape(n_classes, -1).astype(np.float64), np.cumsum(sizes)[:-1], axis=1)
            # each table has all rows of a class, with the noise of as many cells as it has categories
            shares = (1 / np.array(sizes)) / (1 / np.array(sizes)).sum()
            rows = np.maximum(sum(share * part.sum(axis=1) for share, part in zip(shares, parts)), 0.0)
            counts = [np.maximum(part, 0.0) for part in parts]
            prior = self._prior(rows, math.sqrt(noise.variance / (1 / np.array(sizes)).sum()))
            n = np.maximum(rows, max(1.0, math.sqrt(noise.variance * (shares / sizes).sum())))
            logs = class_logarithms(parts, n[:, None], noise.variance, float(self.alpha))
            return {"categories_": [encoder.categories for encoder in encoders], "category_count_": counts,
                    "n_categories_": np.array(sizes), "class_count_": rows, "class_prior_": prior,
                    "class_log_prior_": np.log(prior), "classes_": classes,
                    "feature_log_prob_": logs}

        return draw

    def _joint(self, columns, n_rows):
        out = np.zeros((n_rows, len(self.classes_)))
        for encoder, column, logs in zip(_encoders(self.categories_), columns, self.feature_log_prob_):
            out += np.column_stack([logs, np.zeros(len(logs))]).T[_codes(encoder, column)]
        return out

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "categories": [[0, 1, 2]] * 3, "classes": [0, 1]},
                {"epsilon": 2.0, "delta": 0.1, "categories": [[0, 1], [0, 1, 2], [2, 1, None]],
                 "classes": ["a", "b", "c"], "neighbours": "add_remove"}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns of categories, and classes that depend on them."""
        X = np.random.default_rng(seed).integers(0, 3, size=(n_rows, 3)).astype(float)
        classes = np.asarray(self.classes)
        return X, (classes.astype(object) if classes.dtype.kind == "U" else classes)[X[:, 1].astype(int) % len(classes)]


def _encoders(lists):
    return [CategoryEncoder(own, f"column {j}", fewest=1) for j, own in enumerate(lists)]


def _codes(encoder, column):
    """Return codes, the number of categories for what is none of them."""
    return encoder.read(column, np.dtype(np.uint32), len(encoder.categories))[0].astype(np.int64)
