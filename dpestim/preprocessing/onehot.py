"""Categories to columns of 0 and 1; those of a column nobody knows are selected privately (`onehot.md`)."""

from collections import Counter
from fractions import Fraction

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpestim.inputs import CategoryEncoder, first_equals, learn_categories, lists_of
from dpestim.preprocessing.base import DPTransformer
from dpestim.preprocessing.bins import one_hot
from dpestim.preprocessing.names import feature_names
from dpestim.results import Part, labels_of
from dpestim.statistics.unknown import UnknownCategories
from dpestim.summaries import Summary

#: Stands for the categories of a column of which none was selected.
_NOTHING = "nothing_selected"


class DPOneHotEncoder(DPTransformer):
    """Encode categories as columns of 0 and 1: declared categories, or privately selected ones.

    Where categories are public, declare them: that costs nothing, and none is lost.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for data sets of equal size that differ in
    one row. Of columns with "private" categories those are kept whose noisy count reaches a threshold that hides every
    row, with equal shares of epsilon and delta each; the counts may be published too. Declared categories cost nothing:
    where all are declared, epsilon is 0. The caller of `fit` holds the rows and must be trusted. What `transform`
    returns is made of raw rows and stays **private data**.

    **Utility.** Rare categories are not selected: with k private columns about those with fewer than 2 k ln(k / delta)
    / epsilon rows. A value that is not kept has 0 in all columns. Equal values of several types, such as 1 and 1.0,
    share a column, but are selected apart. If no category of a column was selected, the result has one column of zeros
    for it, "..._nothing_selected", so that later steps work.

    **Complexity.** O(n) time a column.

    {parameters}
    References
    ----------
    Korolova, Kenthapadi, Mishra, Ntoulas (2009), "Releasing search queries and clicks privately", WWW, algorithm 1.
    The proof: ``onehot.md``.

    Examples
    --------
    >>> from dpestim.preprocessing import DPOneHotEncoder
    >>> X = [["tea", "no"]] * 300 + [["coffee", "yes"]] * 200 + [["the secret one", "no"]]
    >>> encoder = DPOneHotEncoder(1.0, categories=["private", ["no", "yes"]], delta=1e-6, random_state=0).fit(X)
    >>> encoder.get_feature_names_out()
    array(['x0_coffee', 'x0_tea', 'x1_no', 'x1_yes'], dtype=object)
    >>> encoder.transform([["tea", "yes"], ["the secret one", "no"]])
    array([[0., 1., 0., 1.],
           [0., 0., 1., 0.]])
    """

    _more_parameters = """\
    categories : list of (array-like or "private"), dict, Domain or "private", default=None
        The public categories of each column, None among them where rows may lack a value, or "private". None takes
        those that occur, which leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon`` infinite.
    delta : float, default=None
        The delta of (epsilon, delta)-differential privacy, below 1. None or 0: none. Private categories need one above
        0.
    handle_unknown : {"ignore", "error"}, default="ignore"
        Whether a value that is not among declared categories has 0 in all columns, or is a ValueError (not in strict
        mode). Values that were not selected always have 0.
    sparse_output : bool, default=False
        Whether `transform` returns a SciPy CSR matrix.
    """
    _more_attributes = """
    categories_ : list of ndarray
        The categories of each column, in the order of its columns; selected ones in an order that says nothing.
    counts_ : ndarray
        Noisy counts of the selected categories, one column after another: of values that are equal, their sum.
    norm_bound : float
        The largest Euclidean norm of a transformed row: the square root of the number of columns.
    {columns seen}
    """
    _declared = ("categories",)
    _learned = ("counts_",)
    _told_apart = "onehot.md: keys pass a threshold; tests/unit/pipeline/test_preprocessing.py"

    _adds_up = False  # (which categories are counted is secret)

    def __init__(self, epsilon=1.0, *, categories=None, delta=None, handle_unknown="ignore", sparse_output=False,
                 ledger=None, random_state=None):
        self.epsilon = epsilon
        self.categories = categories
        self.delta = delta
        self.handle_unknown = handle_unknown
        self.sparse_output = sparse_output
        self.ledger = ledger
        self.random_state = random_state

    @property
    def norm_bound(self):
        """The largest Euclidean norm of a transformed row, for the `data_norm` of the model that follows."""
        known = getattr(self, "n_features_in_", None)
        if known is None and _are_listed(self.categories):
            known = len(self._lists(None))
        if known is None:
            raise AttributeError("norm_bound is available after fit, or before if categories are listed")
        return float(np.nextafter(np.sqrt(known), np.inf))

    def inverse_transform(self, X):
        """Return categories; None where no column is 1."""
        check_is_fitted(self)
        X, at = self._transformed(X, sum(self._widths())), 0
        out = np.full((len(X), len(self.categories_)), None, object)
        for j, (known, width) in enumerate(zip(self.categories_, self._widths())):
            block = X[:, at : at + width]
            at += width
            if len(known):
                out[:, j] = np.where(block.any(axis=1), known.astype(object)[block.argmax(axis=1)], None)
        return out

    def get_feature_names_out(self, input_features=None):
        """Return feature_category for each column of `transform`."""
        check_is_fitted(self)
        names = feature_names(self, input_features)
        return np.array([f"{name}_{value}" for name, known in zip(names, self.categories_)
                         for value in (known if len(known) else [_NOTHING])], object)

    # ---------------------------------------------------------------- inside

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags

    def _check(self):
        if isinstance(self.categories, str) and self.categories != "private":
            raise ValueError('categories must be "private", or a list with one list of categories for each column')
        if self.categories is not None and not isinstance(self.categories, str):
            self._encoders(None, [])
        epsilon, delta = super()._check()
        if epsilon and self.categories is not None and not delta:
            raise ValueError("delta must be above 0 with private categories: take much less than one over the number "
                             "of rows")
        return epsilon, delta

    def _check_own(self):
        if not isinstance(self.handle_unknown, str) or self.handle_unknown not in ("ignore", "error"):
            raise ValueError('handle_unknown must be "ignore" or "error"')
        if not isinstance(self.sparse_output, bool | np.bool_):
            raise ValueError("sparse_output must be True or False")

    def _is_free(self):
        return _are_listed(self.categories) and not any(map(_is_private, self._lists(None)))

    def _rows(self, X, reset):
        return self._checked_columns(X, reset=reset)

    def _lists(self, n_columns):
        if isinstance(self.categories, str):
            return ["private"] * n_columns
        names = None if n_columns is None else list(getattr(self, "feature_names_in_", ())) or None
        return lists_of(self.categories, n_columns, names, word="private")

    def _encoders(self, n_columns, names):
        return [None if _is_private(own) else CategoryEncoder(own, f"column {names[j] if j < len(names) else j!r}",
                                                              fewest=1) for j, own in enumerate(self._lists(n_columns))]

    def _names(self):
        return [repr(name) for name in getattr(self, "feature_names_in_", ())]

    def _domain(self, n_columns, data=None):
        return tuple("private" if encoder is None else tuple((type(v).__name__, v) for v in encoder.plain_categories())
                     for encoder in self._encoders(n_columns, self._names()))

    def _planned(self, data, n_rows, n_columns, epsilon, delta):
        if self.categories is not None:
            return super()._planned(data, n_rows, n_columns, epsilon, delta)
        names = self._names()
        known = [learn_categories(column, f"column {names[j] if names else j}", allow_missing=True)
                 for j, column in enumerate(data)]
        return lambda source: {"categories_": known, "counts_": np.empty(0)}

    def _sums(self, data, domain):
        counter, totals = UnknownCategories(1, delta=self.delta or 0.5, neighbours="substitution"), []
        counter._bound = (None, self._is_strict())
        for encoder, column in zip(self._encoders(len(data), self._names()), data):
            if encoder is None:
                totals.append(Counter(counter._counted(column).totals))
            else:
                self._codes(encoder, column)  # (which may refuse what is no category)
        return totals

    def _released(self, n_rows, totals, domain, epsilon, delta):
        encoders = self._encoders(len(domain), self._names())
        private = [j for j, encoder in enumerate(encoders) if encoder is None]
        plans = [None] * len(encoders)
        for j, total in zip(private, totals):
            share = UnknownCategories(epsilon / len(private), delta=Fraction(delta) / len(private),
                                      neighbours="substitution")
            share._check()
            plans[j] = share._plan(Summary(share._identity(1, True), n_rows, dict(total)), share._shares()[1])

        def draw(source):
            known, counts = [], [np.empty(0)]
            for j, (encoder, plan) in enumerate(zip(encoders, plans)):
                if encoder is not None:
                    known.append(encoder.categories)
                    continue
                value, _, _, (published,) = plan(source.part(j))
                own, count = _merged(published, np.asarray(value, float))
                known.append(own)
                counts.append(count)
            return {"categories_": known, "counts_": np.concatenate(counts)}

        return draw

    def _result_parts(self, level):
        """Return what `result_` shows: noisy numbers of rows of categories that were not declared."""
        lists = self.categories_ if len(self.counts_) else []
        counts = np.split(self.counts_, np.cumsum([len(own) for own in lists])[:-1])
        return [Part("count", (("feature", [name]), ("category", own.tolist())), each[None])
                for name, own, each in zip(labels_of(self, "feature", len(lists)), lists, counts) if len(own)]

    def _widths(self):
        """Return how many columns each column becomes: one of zeros where nothing was selected."""
        return [max(1, len(known)) for known in self.categories_]

    def _codes(self, encoder, column):
        """Return codes, the number of categories for what is none of them."""
        n = len(encoder.categories)
        codes, why = encoder.read(column, np.dtype(np.uint32), n)
        if why and self.handle_unknown == "error" and not self._is_strict():
            raise ValueError(f"{encoder.name} {why}")
        return codes

    def _map(self, columns):
        names, codes = self._names(), []
        private = [False] * len(columns) if self.categories is None else map(_is_private, self._lists(len(columns)))
        for j, (known, column, selected) in enumerate(zip(self.categories_, columns, private)):
            name = f"column {names[j] if names else j}"
            if not len(known):
                codes.append(np.ones(len(column), np.int64))
                continue
            encoder = CategoryEncoder(known, name, fewest=1)
            if selected:
                codes.append(encoder.read(column, np.dtype(np.uint32), len(known))[0])
            else:
                codes.append(self._codes(encoder, column))
        codes = np.stack(codes, axis=1).astype(np.int64)
        return one_hot(codes, self._widths(), self.sparse_output)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 6.0, "categories": "private", "delta": 0.001},
                {"epsilon": 4.0, "categories": [[0, 1, 2], "private", "private"], "delta": 0.001}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns of the categories 0, 1 and 2."""
        return np.random.default_rng(seed).integers(0, 3, size=(n_rows, 3)).astype(float), None


def _merged(published, counts):
    """Return categories as an array, each once, and the counts of all that are equal to it; one must be finite."""
    # (a function of what was released: 1 and 1.0 were counted apart, so that no row shows in what they are called)
    first = np.array(first_equals(published), np.int64)
    places = np.unique(first[first >= 0])
    own = np.empty(len(places), object)
    for k, place in enumerate(places):
        own[k] = published[place]
    return own, np.array([counts[first == place].sum() for place in places], float)


def _are_listed(categories):
    return categories is not None and not isinstance(categories, str)


def _is_private(own):
    return isinstance(own, str) and own == "private"
