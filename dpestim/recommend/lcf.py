"""Recommendations from item lists that users flip themselves (`lcf.md`)."""

from dataclasses import replace
from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from dpestim import parallel
from dpestim.base import PrivateEstimator
from dpestim.graph.lists.base import noisy_lists
from dpestim.graph.lists.flips import BitLaw
from dpestim.graph.lists.reading import Lists, packed
from dpestim.privacy import PrivacyGuarantee
from dpestim.privacy.exact import canonical_epsilon
from dpestim.recommend.pairs import Pairs
from dpestim.recommend.ratings import read_ratings
from dpestim.recommend.similar import FromSimilarItems
from dpestim.results import Part
from dpestim.rng import WordSource, check_random_state

#: The co-occurrences of so many items, and no more, are kept: 8 bytes a pair.
_MOST_ITEMS = 20_000
#: Users of a block (a float of 32 bits counts so many users exactly).
_BLOCK = 4_096
#: What popularity adds to scores: it decides between equal ones only.
_TIE = 1e-9


class DPLCFRecommender(FromSimilarItems, PrivateEstimator):
    """Recommend items from lists of items of which every user flips bits before they are sent.

    A user's list has a bit for each item: whether the user has it. Every bit is kept with probability
    e^e / (e^e + 1), and flipped otherwise. A server estimates without bias how many users have both of two items.
    Similar items follow, and recommendations are worked out where the user's own list is.

    **Privacy.** Local model: no other party must be trusted. With protects="item" epsilon is for *one item* of a list:
    lists that differ in k items are told apart by k * epsilon, and a **whole list costs n_items * epsilon**. That is
    what ``privacy_.epsilon`` and a ledger say; the epsilon of one item is ``privacy_.relaxed_epsilon``. With
    protects="list" epsilon is for the whole list, and each bit has epsilon / n_items. The items are public.

    **Utility.** The number of users who have two items has variance v (n_i + n_j) + n v^2 with
    v = e^e / (e^e - 1)^2 for n users, of whom n_i and n_j have one of them. With protects="list" v is about
    (n_items / epsilon)^2, so that only few items can be compared.

    **Complexity.** O(n_users * n_items^2) time for the pairs, O(n_items^2) memory: up to 20,000 items. A user sends
    n_items bits.

    {parameters}
    References
    ----------
    Gao, Huang, Lin (2020), "DPLCF: differentially private local collaborative filtering", SIGIR. The proof:
    ``lcf.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from dpestim.recommend import DPLCFRecommender
    >>> rng = np.random.default_rng(0)
    >>> likes = (np.arange(6000)[:, None] + np.arange(10)) % 2  # half of the users like items of odd numbers
    >>> lists = csr_array(likes * (rng.random((6000, 10)) < 0.5))
    >>> model = DPLCFRecommender(1.0, n_items=10, n_neighbors=4, random_state=0).fit(lists)
    >>> mine = csr_array(([1, 1], ([0, 0], [1, 3])), shape=(1, 10))
    >>> sorted(model.recommend(mine, 3)[0].tolist())
    [5, 7, 9]
    >>> int(model.privacy_.epsilon), int(model.privacy_.relaxed_epsilon)
    (10, 1)
    """

    merges = "reports"
    _checked_as, _template, _protects = "item lists", "rows", "one item of a user's list, or the whole list"
    _not_in_parts = ("adds up reports, and reads no rows for that: call privatize where the rows are, and aggregate "
                     "the reports")
    _more_parameters = """
    n_items : int
        The public number of items, from 2 to 20,000; it must be declared.
    protects : {"item", "list"}, default="item"
        What epsilon is for: one item of a user's list, or the whole list.
    similarity : {"cosine", "jaccard"}, default="cosine"
        Users who have both items, over the root of the product of those who have each; or over those who have any.
    n_neighbors : int, default=20
        Similar items that are kept of each item.
    reports : {"packed", "sparse"}, default="packed"
        How reports are sent; their law is the same. "packed": uint8, a bit for each item, bit j at byte j // 8, lowest
        first. "sparse": a csr_array of the ones.
    n_jobs : int, default=None
        Threads that randomise; None is one. Reports do not depend on it.
    """
    _more_attributes = """
    item_counts_ : ndarray of shape (n_items,)
        Unbiased estimates of how many users have each item.
    neighbors_ : ndarray of shape (n_items, n_neighbors)
        Items that users have together with an item, the most similar first.
    similarities_ : ndarray of shape (n_items, n_neighbors)
        Their similarities, from 0 to 1; 0 where noise hides them.
    n_users_ : int
        Users whose reports were aggregated.
    bit_law_ : BitLaw
        The law of a reported bit: `p`, `q` and `variance`, that of a debiased bit.
    """

    #: (`Pairs`, promise) of what was aggregated
    _kept = None

    def __init__(self, epsilon=1.0, *, n_items=None, protects="item", similarity="cosine", n_neighbors=20,
                 reports="packed", ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.n_items = n_items
        self.protects = protects
        self.similarity = similarity
        self.n_neighbors = n_neighbors
        self.reports = reports
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    def privatize(self, X):
        """Randomise lists into reports, on the users' side; one release.

        Parameters
        ----------
        X : sparse matrix of shape (n_users, n_items)
            A user has the items that are stored; no stored number is read. `rating_matrix` makes one of a table.

        Returns
        -------
        reports : ndarray of uint8, or csr_array
            A row for each user. Each is made of the user's row and fresh noise alone.
        """
        return self._reported(X)[0]

    def fit(self, X, y=None):
        """Randomise lists and learn from the reports alone; one release. Earlier reports are forgotten.

        Parameters
        ----------
        X : sparse matrix of shape (n_users, n_items)
            As for `privatize`.
        y : ignored

        Returns
        -------
        self
        """
        reports, seeded = self._reported(X)
        return self._take(*self._counted(reports), seeded, afresh=True)

    def aggregate(self, reports):
        """Add reports of other users, as `privatize` returns them, and learn from all; nothing is released.

        Parameters
        ----------
        reports : ndarray of uint8, or csr_array
            Packed or sparse, for either value of the parameter `reports`.

        Returns
        -------
        self
        """
        self._check()
        # (whether clients used seeds is not known here, unless this very object is the seeded client)
        return self._take(*self._counted(reports), True if self.random_state is not None else None)

    def merge(self, other):
        """Add what another estimator of the same law has aggregated from other users; returns self."""
        if type(other) is not type(self) or other is self:
            raise ValueError(f"other must be another {type(self).__name__}")
        if other._kept is None:
            raise ValueError("other must have seen reports: call fit or aggregate on it first")
        self._check()
        pairs, promised = other._kept
        if (pairs.law, pairs.n_items) != (self._law(), int(self.n_items)):
            raise ValueError("other must have the same epsilon, n_items and protects, because its reports have another "
                             "law otherwise")
        return self._take(pairs.reported, pairs.n_users, promised.seeded)

    def co_occurrences(self):
        """Return unbiased estimates of how many users have both of two items; nothing is released.

        Returns
        -------
        ndarray of shape (n_items, n_items)
            Not clipped: noise may make them negative. On the diagonal users who have an item.
        """
        check_is_fitted(self)
        return self._kept[0].both()

    def standard_errors(self):
        """Return the standard errors of `co_occurrences`, estimated without bias but for clipping.

        Returns
        -------
        ndarray of shape (n_items, n_items)
        """
        check_is_fitted(self)
        return self._kept[0].errors()

    @property
    def bit_law_(self):
        """The law of a reported bit; after reports that of these."""
        return self._law() if self._kept is None else self._kept[0].law

    @property
    def privacy_(self):
        """What the report of a user promises; after reports what those promise, also if parameters changed since."""
        return self._guarantee() if self._kept is None else self._kept[1]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # (columns are items, which a user has or not: no table)
        tags.input_tags.sparse = True
        return tags

    # ---------------------------------------------------------------- inside

    def _check(self):
        """Raise ValueError for parameters that are wrong."""
        canonical_epsilon(self.epsilon)
        for name, most in (("n_items", _MOST_ITEMS), ("n_neighbors", 1 << 31)):
            value, least = getattr(self, name), 2 if name == "n_items" else 1
            if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
                raise ValueError(f"{name} must be an int from {least} to {most}")
        for name, known in (("protects", ("item", "list")), ("similarity", ("cosine", "jaccard")),
                            ("reports", ("packed", "sparse"))):
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in known:
                raise ValueError(f'{name} must be "{known[0]}" or "{known[1]}"')
        check_random_state(self.random_state)
        parallel.check_n_jobs(self.n_jobs)
        _ = self._law().q  # (ValueError: no such law)

    def _of_an_item(self):
        """Return the epsilon of one bit, a Fraction."""
        return canonical_epsilon(self.epsilon) / (int(self.n_items) if self.protects == "list" else 1)

    def _guarantee(self):
        self._check()
        n, each = int(self.n_items), self._of_an_item()
        return PrivacyGuarantee(
            n * each, seeded=self.random_state is not None, relaxed_epsilon=each,
            relaxation=f"lists of {n} items that differ in one item",
            notes=(f"Each of the {n} bits of a user's list is flipped by itself. Lists that differ in k items have k "
                   "times the epsilon of one item, and any two lists have the epsilon of all items.",))

    def _law(self):
        return BitLaw(self._of_an_item())

    def _reported(self, X):
        """Return (reports, whether noise was seeded) of a release that was paid for; bad input is never charged."""
        self._bind_here()
        self._check()
        m = int(self.n_items)
        ratings = read_ratings(X, n_items=m, strict=self._is_strict())
        if not ratings.n_users:
            raise ValueError("X must have at least one row, which is the list of a user")
        source = WordSource(self.random_state)
        self._charge(self._guarantee(), ratings.n_users)
        # (m + 1 nodes, and users whose own number is none of an item: m slots each)
        users = m + np.arange(ratings.n_users, dtype=np.int64)
        lists = Lists(users, ratings.starts, ratings.items, m + 1)
        noisy = noisy_lists(lists, self._law(), source, False, self.n_jobs)
        noisy = Lists(users, noisy.starts, noisy.nodes, m)
        return packed(noisy) if self.reports == "packed" else noisy.matrix(), source.seeded

    def _counted(self, reports):
        """Return (how many reports have both of two items, how many there are), or raise ValueError."""
        m = int(self.n_items)
        if sparse.issparse(reports):
            if reports.ndim != 2 or reports.dtype != np.uint8 or reports.shape[1] != m:
                raise ValueError(f"reports must be a csr_array of uint8 with {m} columns, as privatize returns it")
            reports = reports.tocsr()
            if (reports.data != 1).any() or not reports.has_canonical_format:
                raise ValueError("reports must hold each reported item once, as a 1, as privatize returns it")
        else:
            plain = isinstance(reports, np.ndarray) and not np.ma.isMA(reports)
            if not plain or reports.ndim != 2 or reports.dtype != np.uint8 or reports.shape[1] != (m + 7) // 8:
                raise ValueError(f"reports must be a csr_array, or an array of uint8 with {(m + 7) // 8} bytes a row, "
                                 "as privatize returns it")
            if m % 8 and (reports[:, -1] >> (m % 8)).any():
                raise ValueError(f"reports must have no bits beyond the {m} items")
        if not reports.shape[0]:
            raise ValueError("reports must have at least one row, which is the report of a user")
        pairs = np.zeros((m, m), np.int64)
        for a in range(0, reports.shape[0], _BLOCK):
            block = reports[a : a + _BLOCK]
            block = block.toarray() if sparse.issparse(block) else np.unpackbits(block, axis=1, count=m,
                                                                                 bitorder="little")
            block = block.astype(np.float32)
            pairs += (block.T @ block).astype(np.int64)
        return pairs, reports.shape[0]

    def _take(self, reported, n_users, seeded, afresh=False):
        """Add counts, or begin with them; nothing changes before all is checked, and then at once."""
        law, promise = self._law(), self._guarantee()
        if self._kept is not None and not afresh:
            before, promised = self._kept
            if (before.law, before.n_items) != (law, len(reported)):
                raise ValueError("epsilon, n_items and protects must be those of the earlier reports: call fit, or "
                                 "make a new estimator")
            seeded = True if True in (promised.seeded, seeded) else None if None in (promised.seeded, seeded) else False
            reported, n_users = reported + before.reported, n_users + before.n_users
        pairs = Pairs(reported, n_users, law)
        items, similarities = pairs.similar(self.similarity, int(self.n_neighbors))
        return self._become({"n_users_": n_users, "item_counts_": pairs.singles(), "neighbors_": items,
                             "similarities_": similarities, "_kept": (pairs, replace(promise, seeded=seeded))})

    def _seen(self, X):
        """Return (ratings, what is in the lists) of users who are to be told something."""
        ratings = read_ratings(X, n_items=len(self.item_counts_), strict=self._is_strict())
        return ratings, ratings.matrix(np.ones(len(ratings.items)))

    def _all_of(self, users, held):
        return (held[users] @ self._alike.T).toarray() + _TIE * self.item_counts_ / self.n_users_

    def _result_parts(self, level):
        return [Part("users who have the item", (("item", list(range(len(self.item_counts_)))),), self.item_counts_)]

    def _test_data(self, n_rows, seed=0):
        """Return lists of so many users."""
        held = np.random.default_rng(seed).random((n_rows, int(self.n_items))) < 0.4
        held[3::4, 0] = True  # (some entry is sure to be stored: checks write bad values over it)
        return sparse.csr_array(held.astype(float)), None

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "n_items": 4, "n_neighbors": 2},
                {"epsilon": 3.0, "n_items": 3, "protects": "list", "similarity": "jaccard", "reports": "sparse"}]
