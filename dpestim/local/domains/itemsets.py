"""Frequent items and itemsets of baskets, from one report of each user, in groups that answer one after another."""

from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.exceptions import NotFittedError

from dpestim import parallel
from dpestim.base import PrivateEstimator
from dpestim.inputs import CategoryEncoder
from dpestim.local.categories.adaptive import best_law
from dpestim.local.domains.baskets import Baskets, read_baskets
from dpestim.local.domains.padding import groups_of, products, report, sampled
from dpestim.local.interval_ends import ends
from dpestim.postprocessing.simplex import norm_sub
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import canonical_epsilon
from dpestim.results import Part
from dpestim.rng import WordSource, check_random_state

#: Shares of the users in each group, by method, in percent: candidates, their number in a basket, the items; itemsets.
SHARES = {"svim": (40, 10, 50), "svsm": (20, 5, 25, 5, 45)}
#: The share of baskets that the padding length is to cover.
COVERED = 0.9


class ItemSets(NamedTuple):
    """Itemsets (tuples of items), their frequencies and standard errors."""

    values: list
    frequencies: np.ndarray
    standard_errors: np.ndarray


class ItemsetEstimator(PrivateEstimator):
    """Find the most frequent items, or sets of items, of users' baskets, and estimate how many users hold them.

    Each user is in one group, which is drawn without looking at the basket, and reports once. A first group finds
    candidates, a second one tells how many candidates a basket holds, and a third one reports the candidates. "svsm"
    then builds itemsets of the items that were found, and two more groups do the same for itemsets.

    `fit` runs all groups. A later group must know what earlier groups found, so that counts of different fits do not
    add up: there is no `partial_fit` and no `merge`.

    **Privacy.** epsilon-local differential privacy for a whole basket, exact; neighbours: any two baskets of one user;
    nobody but the user's device is trusted (proof in ``itemsets.md``).

    **Utility.** A holder with s candidates in the basket counts as L / s where s is above the padding length L:
    frequencies are too low by at most the share of holders with more than L candidates, and without bias otherwise.
    Intervals do not cover that bias. The standard error grows in proportion to L.

    **Complexity.** O(n log n) time beside the reports; a user sends one report.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one basket, in (0, 80].
    items : int or array-like, default=None
        The public list of items, or their number. None: the columns of X, which then must be a table.
    method : {"svim", "svsm"}, default="svim"
        What is looked for. "svim": items. "svsm": sets of one or more items.
    n_top : int, default=20
        How many are looked for, from 1 to 256. There are twice as many candidates.
    {payment of rows}

    Attributes
    ----------
    itemsets_ : ItemSets
        A named tuple: values (tuples of items), frequencies, standard_errors; the largest frequency first.
    candidates_ : ItemSets
        The same for all candidates. Other users chose them than those who reported for the frequencies.
    padding_lengths_ : tuple of int
        The padding length of items, and that of itemsets.
    n_users_ : int
        Users who reported.
    privacy_ : PrivacyGuarantee
        The guarantee of one user's report.
    n_features_in_ : int
        The number of items.

    Raises
    ------
    ValueError
        For a basket with what is no item, a table with other numbers than 0 and 1, fewer users than groups, or a
        parameter outside its range, before anything is charged. In strict mode what is no item is left out, and what is
        neither 0 nor 1 counts as 1.

    References
    ----------
    T. Wang, N. Li, S. Jha, "Locally differentially private frequent itemset mining", IEEE S&P 2018. What differs from
    the paper is in ``itemsets.md``.

    Examples
    --------
    >>> from dpestim.local import ItemsetEstimator
    >>> baskets = [["bread", "milk"], ["bread", "milk", "eggs"], ["bread"], ["bread"], ["milk"], ["tea"]] * 10_000
    >>> items = ["bread", "milk", "eggs", "tea", "salt", "soap"]
    >>> est = ItemsetEstimator(4.0, items=items, method="svsm", n_top=3, random_state=0).fit(baskets)
    >>> est.itemsets_.values
    [('bread',), ('milk',), ('bread', 'milk')]
    """

    _checked_as = "itemsets"
    _trust, _n_shown, _promised = "local", 0, None
    _not_in_parts = ("asks groups of users one after another, and later groups need what all users of earlier groups "
                     "reported: fit it to all baskets on one machine")

    def __init__(self, epsilon=1.0, *, items=None, method="svim", n_top=20, ledger=None, random_state=None,
                 n_jobs=None):
        self.epsilon = epsilon
        self.items = items
        self.method = method
        self.n_top = n_top
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def privacy_(self):
        """What one user's report promises; known before any data."""
        if self._promised is not None:
            return self._promised
        return self._promise()

    # ---------------------------------------------------------------- verbs and answers

    def fit(self, X, y=None):
        """Ask all groups of users, one after another; forgets what was seen before.

        Parameters
        ----------
        X : list of baskets, or array or sparse matrix of shape (n_users, n_items)
            A basket is a list of items; an item that it has twice counts once, and it may be empty. A table has 1 where
            the user holds the item of the column, and 0 elsewhere.
        y : ignored

        Returns
        -------
        self
        """
        self._check_call_parameters()
        items, strict = self._items(), self._is_strict()
        baskets, n_items = read_baskets(X, items, strict=strict)
        parts = SHARES[self.method]
        if len(baskets) < len(parts):
            raise ValueError(f"X must have at least {len(parts)} baskets, one for each group of users, got "
                             f"{len(baskets)}")
        best_law(canonical_epsilon(self.epsilon), n_items + 1)  # (what no law can report is refused unpaid)
        guarantee = self._promise()
        self._charge(guarantee, len(baskets))
        self._become(self._ask(baskets, n_items, parts, WordSource(self.random_state))
                     | {"_promised": guarantee, "n_users_": len(baskets), "n_features_in_": n_items,
                        "_names": list(range(n_items)) if items is None else items})
        return self

    @property
    def itemsets_(self):
        """The most frequent of the candidates, with frequencies and standard errors."""
        return self._first(self._n_shown)

    @property
    def candidates_(self):
        """All candidates, with frequencies and standard errors."""
        return self._first(None)

    def confidence_interval(self, level=0.95):
        """Return an array of shape (n_found, 2): intervals for the frequencies of `itemsets_`, each by itself.

        They are those of candidates that were chosen before, by a normal approximation, about the population from which
        the users are drawn. The choice of the first n_top among the candidates is not in them, nor is the bias of
        baskets that are longer than the padding length.
        """
        if not 0 < level < 1:
            raise ValueError("level must lie strictly between 0 and 1")
        found = self._shown(self._n_shown)
        z = ndtri(0.5 + level / 2)
        both = [heard.length * ends(np.array([heard.shares[place]]), z, heard.error)[:, 0]
                for _, heard, place in found]
        return np.array(both).reshape(-1, 2)

    def release(self):
        """Return `itemsets_`."""
        return self.itemsets_

    def to_frame(self, level=0.95):
        """Return a tidy pandas frame: itemset, frequency, standard_error, ci_low, ci_high."""
        found, both = self.itemsets_, self.confidence_interval(level)
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'dpestim[pandas]'") from error

        return pd.DataFrame({"itemset": found.values, "frequency": found.frequencies,
                             "standard_error": found.standard_errors, "ci_low": both[:, 0], "ci_high": both[:, 1]})

    def _result_parts(self, level):
        found = self.itemsets_
        axes = (("itemset", [", ".join(map(str, own)) for own in found.values]),)
        return [Part("frequency", axes, found.frequencies, found.standard_errors, self.confidence_interval(level))]

    # ---------------------------------------------------------------- inside: groups

    def _ask(self, baskets, n_items, parts, source):
        """Return what was learned from the reports of all groups."""
        epsilon, k, groups = canonical_epsilon(self.epsilon), int(self.n_top), groups_of(len(baskets), parts,
                                                                                       source.part(0))
        own = baskets.of(groups[0])
        first = report(sampled(own, n_items, 1, source.part(1)), n_items + 1, epsilon, source.part(2), self.n_jobs)
        items = np.argsort(-first.shares[:n_items], kind="stable")[: 2 * k]
        heard = self._heard([baskets.table(users, items) for users in groups[1:3]], len(items), epsilon, source, 3)
        found = [((int(item),), heard, place) for place, item in enumerate(items)]
        lengths = (heard.length,)
        if self.method == "svsm":
            order = np.argsort(-heard.shares[: len(items)], kind="stable")[:k]
            sets = products(heard.shares[order], 2 * k, 1 + int(k).bit_length() - 1)
            if sets:
                tables = [baskets.table(users, items[order]) for users in groups[3:5]]
                held = [np.stack([table[:, list(own)].all(axis=1) for own in sets], axis=1) for table in tables]
                more = self._heard(held, len(sets), epsilon, source, 6)
                found += [(tuple(items[order][list(own)].tolist()), more, place) for place, own in enumerate(sets)]
                lengths += (more.length,)
        found.sort(key=lambda own: -own[1].length * own[1].shares[own[2]])
        return {"_all": found, "_n_shown": k, "padding_lengths_": lengths}

    def _heard(self, tables, size, epsilon, source, number):
        """Return what a group tells of candidates that it holds, by the padding length that another group tells."""
        sizes, held = tables[0].sum(axis=1), Baskets.of_table(tables[1])
        told = report(sizes, size + 1, epsilon, source.part(number), self.n_jobs)
        covered = np.cumsum(norm_sub(told.shares[: size + 1])) >= COVERED
        length = max(1, int(np.argmax(covered))) if covered.any() else size
        codes = sampled(held, size, length, source.part(number + 1))
        return report(codes, size + 1, epsilon, source.part(number + 2), self.n_jobs, length)

    def _shown(self, n):
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit first")
        return self._all[:n]

    def _first(self, n):
        found = self._shown(n)
        values = [tuple(self._names[item] for item in own) for own, _, _ in found]
        numbers = [(heard.length * heard.shares[place], heard.length * heard.error(np.clip(heard.shares[place], 0, 1)))
                   for _, heard, place in found]
        return ItemSets(values, *np.array(numbers).reshape(-1, 2).T.copy())

    # ---------------------------------------------------------------- inside: the domain

    def _items(self):
        """Return the list of items, or None where the columns of X are the items, or raise ValueError."""
        items = self.items
        if items is None:
            return None
        if isinstance(items, Integral) and not isinstance(items, bool):
            if not 1 <= items <= 1 << 24:
                raise ValueError("items must be a number from 1 to 16777216, or a list of items")
            return list(range(int(items)))
        if isinstance(items, bool | str | float):
            raise ValueError("items must be the number of items or a list of them")
        plain = CategoryEncoder(items, "items", 1).plain_categories()
        if any(item is None for item in plain):
            raise ValueError("items must not be missing")
        return list(plain)

    def _promise(self):
        return PrivacyGuarantee(canonical_epsilon(self.epsilon), model="local", neighbours=Neighbours.LOCAL,
                                seeded=self.random_state is not None,
                                notes=("Each user is in one group, drawn independently of the basket, and reports "
                                       "once.",))

    def _check_call_parameters(self):
        """Raise ValueError for a parameter that does not fit."""
        canonical_epsilon(self.epsilon)
        if not isinstance(self.method, str) or self.method not in SHARES:
            raise ValueError(f"method must be one of {list(SHARES)}")
        n = self.n_top
        if isinstance(n, bool) or not isinstance(n, Integral) or not 1 <= n <= 256:
            raise ValueError("n_top must be an integer from 1 to 256")
        check_random_state(self.random_state)
        parallel.check_n_jobs(self.n_jobs)

    def __sklearn_is_fitted__(self):
        return "_all" in vars(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.two_d_array = True, False
        return tags

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 2.0, "items": 6, "n_top": 3}, {"epsilon": 4.0, "items": 5, "method": "svsm", "n_top": 4}]

    def _test_data(self, n_rows, seed=0):
        """Return a table in which item k is held by a share 0.8 / (k + 1) of the users."""
        rng, d = np.random.default_rng(seed), len(self._items() or range(6))
        return (rng.random((n_rows, d)) < 0.8 / np.arange(1, d + 1)).astype(np.float64), None
