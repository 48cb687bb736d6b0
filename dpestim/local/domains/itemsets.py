"""Frequent items and itemsets of baskets, from one report of each user, in rounds that groups of users answer."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.exceptions import NotFittedError

from dpestim.local.domains.asking import BasketRounds
from dpestim.local.domains.questions import Heard, bias_of
from dpestim.results import Part


class ItemSets(NamedTuple):
    """Itemsets (tuples of items), their frequencies and standard errors."""

    values: list
    frequencies: np.ndarray
    standard_errors: np.ndarray


class ItemsetEstimator(BasketRounds):
    """Find the most frequent items, or sets of items, of users' baskets, and estimate how many users hold them.

    Users answer in rounds, and each user in one of them, which is drawn without looking at the basket. The first round
    finds candidates, the second one tells how many candidates a basket holds, and the third one asks for the
    candidates. "svsm" then builds itemsets of the items that were found, and two more rounds do the same for itemsets.

    `fit` plays all rounds. With the verbs apart, `next_round` closes a round: ``server.client()`` then is what the
    users of the next group `privatize` with. Counts of one round add up over servers by `merge`. Counts of different
    fits do not add up, because each fit has candidates of its own.

    **Privacy.** epsilon-local differential privacy for a whole basket, exact; neighbours: any two baskets of one user;
    nobody but the user's device is trusted (proof in ``itemsets.md``).

    **Utility.** A holder with s candidates in the basket counts as L / s where s is above the padding length L, and
    frequencies are without bias otherwise. L is chosen so that this bias is small beside the noise, as far as reports
    of sizes tell. Intervals reach further up by half of the largest bias that these reports tell of. With short padding
    the standard error hardly grows with L, because that an item must be drawn first hides the item.

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
        How many are looked for, from 1 to 256 ("svsm": from 2). There are twice as many candidates.
    {payment of rows}

    Attributes
    ----------
    itemsets_ : ItemSets
        A named tuple: values (tuples of items), frequencies, standard_errors; the largest frequency first.
    candidates_ : ItemSets
        The same for all candidates. Other users chose them than those who reported for the frequencies.
    question_ : Question
        What the open round asks: its number, the candidates as tuples of numbers of items, and the padding length.
    shares_ : tuple of float
        The share of the users that should answer in each round.
    padding_lengths_ : tuple of int
        The padding length of items, and that of itemsets.
    n_users_ : int
        Users who reported, in all rounds.
    randomizers_ : list of Randomizer
        The frozen law of the open round.
    privacy_ : PrivacyGuarantee
        The guarantee of one user's report.
    n_features_in_ : int
        The number of items.

    Raises
    ------
    ValueError
        For a basket with what is no item, a table with other numbers than 0 and 1, fewer users than rounds, or a
        parameter outside its range, before anything is charged. In strict mode what is no item is left out, and what is
        neither 0 nor 1 counts as 1. Also for an invalid parameter, and for a report that does not fit.

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
    _trust = "local"
    def __init__(self, epsilon=1.0, *, items=None, method="svim", n_top=20, ledger=None, random_state=None,
                 n_jobs=None):
        self.epsilon = epsilon
        self.items = items
        self.method = method
        self.n_top = n_top
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- answers

    @property
    def itemsets_(self):
        """The most frequent of the candidates, with frequencies and standard errors."""
        return self._first(self._planned()[1])

    @property
    def candidates_(self):
        """All candidates, with frequencies and standard errors."""
        return self._first(None)

    @property
    def padding_lengths_(self):
        """The padding length of items, and that of itemsets."""
        return tuple(heard.length for _, heard in self._heard())

    @property
    def n_users_(self):
        """Users who reported, in all rounds."""
        n = self._n_users + sum(own[2] for own in self._rounds if own)
        if not n:
            self._check_fitted()
        return n

    @property
    def privacy_(self):
        """What one user's report promises; known before any data."""
        columns = self._columns
        if columns is None:
            columns = self._columns_now() if self._is_declared else self._declare(2)
        seen = self._n_users or self._rounds
        return columns.guarantee(self._seeded if seen else self.random_state is not None, self._reports_each,
                                 self._n_batches)

    def confidence_interval(self, level=0.95):
        """Return an array of shape (n_found, 2): intervals for the frequencies of `itemsets_`, each by itself.

        They are those of candidates that were chosen before, by a normal approximation, about the population from which
        the users are drawn. The upper end is higher by half of the largest bias of baskets that are longer than the
        padding length, as the reports of sizes tell it. The choice of the first n_top among the candidates is not in
        the intervals.
        """
        if not 0 < level < 1:
            raise ValueError("level must lie strictly between 0 and 1")
        found, z = self._shown(self._planned()[1]), ndtri(0.5 + level / 2)
        both = {heard: heard.interval(z) for heard in {heard for _, heard, _ in found}}
        return np.array([both[heard][place] for _, heard, place in found]).reshape(-1, 2)

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

    # ---------------------------------------------------------------- inside: what was found

    def _heard(self):
        """Return what was found: (question, `Heard`) of the items, and of the itemsets."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit, or aggregate "
                                 "reports of all rounds, first")
        if not all(self._rounds):
            raise ValueError("answers need the counts of all rounds: ask the server that has closed the rounds")
        rounds = [(columns.columns[0], counts, n) for columns, counts, n in (
            *self._rounds, (self._columns, self._counts, self._n_users))]
        return [(asked[0].question, Heard(*asked, bias_of(Heard(*sizes), asked[0].question)))
                for sizes, asked in zip(rounds[1::2], rounds[2::2])]

    def _shown(self, n):
        """Return the n candidates of the largest frequencies: (numbers of items, `Heard`, place in it)."""
        found = [(own, heard, place) for question, heard in self._heard()
                 for place, own in enumerate(question.candidates)]
        found.sort(key=lambda own: -np.nan_to_num(own[1].frequencies[own[2]], nan=-np.inf))
        return found[:n]

    def _first(self, n):
        found, items = self._shown(n), self._columns.columns[0].items
        values = [tuple(item if items is None else items[item] for item in own) for own, _, _ in found]
        numbers = [(heard.frequencies[place], heard.errors[place]) for _, heard, place in found]
        return ItemSets(values, *np.array(numbers).reshape(-1, 2).T.copy())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.two_d_array = True, False
        return tags

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 2.0, "items": 8, "n_top": 3}, {"epsilon": 4.0, "items": 5, "method": "svsm", "n_top": 4}]

    def _test_data(self, n_rows, seed=0):
        """Return a table in which item k is held by a share 0.8 / (k + 1) of the users."""
        rng, d = np.random.default_rng(seed), len(self._items() or range(6))
        return (rng.random((n_rows, d)) < 0.8 / np.arange(1, d + 1)).astype(np.float64), None
