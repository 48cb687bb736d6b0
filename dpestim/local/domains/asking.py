"""Rounds of questions about baskets: the verbs of both sides, groups of users, rows in parts, and the items."""

from dataclasses import replace
from functools import cached_property
from numbers import Integral

import numpy as np
from sklearn.exceptions import NotFittedError

from dpestim.inputs import CategoryEncoder
from dpestim.local.client import Client
from dpestim.local.domains.baskets import width_of
from dpestim.local.domains.questions import BasketColumn, BasketColumns, Heard, Question, length_of, products
from dpestim.local.grouping import CountGroup, Grouping
from dpestim.local.server import Server
from dpestim.passes import Blueprint, CountRows, size, words_of
from dpestim.privacy.exact import canonical_epsilon
from dpestim.progress import Progress
from dpestim.records import record
from dpestim.rng import WordSource

#: Shares of the users in each round, by method, in percent: candidates, their number in a basket, the items; itemsets.
SHARES = {"svim": (40, 10, 50), "svsm": (20, 5, 25, 5, 45)}
#: What a device, or a worker, has to know of the rounds before.
_TOLD = ("_columns", "_rounds", "_plan")


@record
class Shares(Grouping):
    """Groups of users of declared shares, in percent."""

    percent: tuple
    start: int = 0

    def __len__(self):
        return len(self.percent)

    @cached_property
    def _ends(self):
        return np.array([(1 << 64) * sum(self.percent[:k]) // 100 for k in range(1, len(self))], np.uint64)


class BasketRounds(Server, Client):
    """Base of what asks groups of users about their baskets, one group after another, by epsilon, `items`, `method` and
    `n_top`; a sub-class has the answers.
    """

    _domain, _same_domain = "items", "the same items, and the same question of the same round"
    #: (columns, counts, users) of the closed rounds (or nothing of them: on devices), and (method, n_top) of the first.
    _rounds, _plan = (), None
    _STATE = (*Server._STATE, "_rounds", "_plan")

    # ---------------------------------------------------------------- rounds

    def next_round(self):
        """Close the open round, and begin the next one, whose question follows from what was reported; returns self."""
        with self._alone():
            if self._columns is None or not self._n_users:
                raise NotFittedError(f"The open round of this {type(self).__name__} has no reports: aggregate reports "
                                     "of its users first")
            if self._is_last():
                raise ValueError("this is the last round: read itemsets_, or make a new estimator")
            if not all(self._rounds):
                raise ValueError("rounds must be closed on the server that has counted them: merge this estimator into "
                                 "that server, and call its next_round")
            self._advance()
        return self

    def client(self):
        """Return an estimator that knows the question of the open round, and no counts, to `privatize` with."""
        twin = type(self)(**self.get_params(deep=False))
        if self._to_bind() != (None, False):  # (as clones do: strict mode, and the ledger that pays)
            twin._bound = self._to_bind()
        return twin if self._columns is None else twin._in_round(self._columns, self._plan)

    def public_state(self):
        """Return the question of the open round, a dict of integers and lists; None in the first round."""
        return self._question().as_state() if self._rounds else None

    def resume_at(self, state):
        """Begin the round of a public state in this estimator, which has seen nothing; returns self, as `client` does.

        Raises ValueError for what is no state of this estimator.
        """
        self._check_call_parameters()
        column, plan = self._columns_now().columns[0], (self.method, int(self.n_top))
        question = Question.of_state(state, len(SHARES[self.method]) - 1, column.n_items, plan[1])
        return self._in_round(self._asking(question, column), plan)

    @property
    def question_(self):
        """What the open round asks."""
        return self._question()

    @property
    def shares_(self):
        """The share of the users that should answer in each round."""
        self._check_call_parameters()
        return tuple(share / 100 for share in SHARES[self._planned()[0]])

    def fit(self, X, y=None):
        """Play all rounds with the users of X; forgets what was seen before.

        Parameters
        ----------
        X : list or series of baskets, or array, data frame or sparse matrix of shape (n_users, n_items)
            A basket is a list of items; an item that it has twice counts once, and it may be empty. A table has 1 where
            the user holds the item of the column, and 0 elsewhere; columns of a data frame are found by their names
            where items have these.
        y : ignored

        Returns
        -------
        self
        """
        with self._alone():
            client, (baskets,), columns, _ = self._read_for(X, True)

            def answers(groups, source):
                members = groups.of_rows(source, len(baskets))

                def answer(k):
                    if len(members[k]):
                        asked = self._columns.columns[0].asked(baskets.of(members[k]))
                        self._take((client, [asked], self._columns, None), source.part(k), False, first=0)

                return answer

            return self._play(columns, len(baskets), answers)

    def fit_parts(self, ask, example):
        """Fit to baskets in parts (`dpestim.passes`), asked once a round: charges before the first, for all of them.

        {fit of parts}
        """
        columns = self._columns_like(example[0])
        n_rows = ask(CountRows(Blueprint.of(self)))

        def answers(groups, source):
            request = CountGroup(Blueprint.of(self), source.key_for_workers(), source.seeded, groups)

            def answer(k):
                sent = replace(request.blueprint, state=self._round_state())
                found = ask(replace(request, blueprint=sent, k=k))
                if found is not None:
                    self._merge(found, "disjoint")
                    self._n_batches = 1

            return answer

        with self._alone():
            self._play(columns, n_rows, answers)

    def _play(self, columns, n_rows, answers):
        """Pay, and play all rounds; ``answers(groups, source)(k)`` adds the counts of the reports of group k."""
        groups = self._groups()
        if n_rows < len(groups):
            raise ValueError(f"X must have at least {len(groups)} baskets, one for each round, got {n_rows}")
        self._charge(columns.guarantee(self.random_state is not None), n_rows, columns.names)
        answer = answers(groups, WordSource(self.random_state))
        self._forget()
        self._freeze(columns, None)
        for k in Progress(self, len(groups)).of(range(len(groups))):
            if k:
                self._advance()
            answer(k)
        return self

    def _round_state(self):
        """Return what workers must know of closed rounds."""
        told = vars(self.client()) if self._rounds else {}
        return {name: told[name] for name in _TOLD if name in told}

    def _groups(self):
        """Return which users answer in which round."""
        return Shares(SHARES[self.method])

    def _count_group(self, rows, request, place):
        """Return counts of the reports of those users of a part who are in the group of a request, or None."""
        source = words_of(request, place)
        few, first = request.groups.members(source, request.k, place.before, size(rows))
        if not len(few):
            return None
        client, (asked,), columns, _ = self._read_for(self._as_rows(*rows), not self._rounds)
        asked = asked[few] if isinstance(asked, np.ndarray) else asked.of(few)
        with self._alone():
            return self._counted((client, [asked], columns, None), source.part(request.k), first)

    def _counted(self, read, source, first):
        self._take(read, source, False, first=first)
        return self

    def _advance(self):
        """Close the open round, which nobody may have answered, and open the next."""
        question, column = self._next_question(), self._columns.columns[0]
        rounds = (*self._rounds, (self._columns, self._counts, self._n_users))
        kept = self._plan, self._seeds, self._seeded, self._lineage, self._reports_each
        self._forget()
        self._rounds = rounds
        self._plan, self._seeds, self._seeded, self._lineage, self._reports_each = kept
        self._freeze(self._asking(question, column), None)

    def _next_question(self):
        """Return what the next round asks, by the reports of the open one and of those before."""
        question, k = self._question(), self._plan[1]
        heard = Heard(self._columns.columns[0], self._counts, self._n_users)
        if question.about_sizes:
            shares, k = SHARES[self._plan[0]], question.number
            n_next = max(1, self._n_users) * shares[k + 1] / shares[k]
            epsilon = self._columns.laws[0].epsilon
            return Question(k + 1, question.candidates, length_of(heard, len(question.candidates), epsilon, n_next))
        order = np.argsort(-np.nan_to_num(heard.frequencies), kind="stable")
        if question.candidates is None:
            return Question(1, tuple((int(item),) for item in order[: 2 * k]))
        few = order[:k]
        sets = products(np.nan_to_num(heard.frequencies[few]), 2 * k, 1 + k.bit_length() - 1) or [(0, 1)]
        items = [question.candidates[place][0] for place in few]
        return Question(3, tuple(tuple(items[place] for place in own) for own in sets))

    # ---------------------------------------------------------------- inside: rounds

    def _planned(self):
        return (self.method, self.n_top) if self._plan is None else self._plan

    def _question(self):
        return Question() if self._columns is None else self._columns.columns[0].question

    def _is_last(self):
        return self._question().number == len(SHARES[self._plan[0]]) - 1

    def _asking(self, question, column):
        """Return the columns of a question about the same items."""
        law = question.law(column.law.epsilon, column.n_items)
        return BasketColumns([BasketColumn(law, column.items, column.n_items, question)])

    def _in_round(self, columns, plan):
        """Begin a round, of whose predecessors nothing is known; returns self."""
        self._rounds, self._plan = ((),) * columns.columns[0].question.number, plan
        self._freeze(columns, None)
        return self

    def _freeze(self, columns, names):
        super()._freeze(columns, None)
        self.n_features_in_ = columns.columns[0].n_items
        if self._plan is None:
            self._plan = self.method, int(self.n_top)

    def _forget(self):
        super()._forget()
        self._thaw()

    def _merge(self, other, users):
        if any(other._rounds):
            raise ValueError("other must hold reports of this round only, and has closed rounds, whose reports would "
                             "be lost: close rounds on one server only, and make the other servers by its client()")
        if self._plan is not None and self._plan != other._plan:
            raise ValueError("other must have the same method and n_top")
        self._plan = other._plan
        return super()._merge(other, users)

    def _like(self, columns):
        column = columns.columns[0]
        return self._columns or self._with(column.items, column.n_items)

    def _pay(self, columns, n_rows):
        return super()._pay(columns, n_rows).part(self._question().number)  # no two rounds share words

    def _fit(self, X, *, restart, keep_reports=False):
        with self._alone():
            return self._fit_alone(X, restart or not (self._n_users or self._rounds), keep_reports)

    def __sklearn_is_fitted__(self):
        return self._plan is not None and self._is_last() and self.n_users_ > 0

    # ---------------------------------------------------------------- inside: the domain

    def _client(self, restart=False):
        return self

    def _container(self, X, strict):
        return X

    def _parts(self, X, columns, strict):
        return [X]

    def _schema(self, X, strict, restart=False):
        """Return (X, None, `Columns`) of baskets: where no items are declared, the columns of a table are the items."""
        columns, n = None if restart else self._columns, width_of(X)
        if columns is None and not self._is_declared:
            if n is None:
                raise ValueError("items must be declared where baskets are lists, because the items that occur are "
                                 "private; otherwise X must be a table with a column for each item")
            names = list(getattr(X, "columns", ()))
            columns = self._declared_columns(n, names) if names and all(
                isinstance(name, str) for name in names) else self._declared_columns(n)
        return X, None, columns or self._declared_columns(None)

    def _declare(self, n_columns, names=None):
        items = self._items()
        if items is None and names is not None:
            items = tuple(names)
        return self._with(items, n_columns if items is None else len(items))

    def _with(self, items, n_items):
        """Return the columns of the first round."""
        self._check_call_parameters()
        if self.method == "svsm" and n_items < 2:
            raise ValueError("items must be at least two for method='svsm', whose itemsets have several items")
        question = Question()
        law = question.law(canonical_epsilon(self.epsilon), n_items)
        return BasketColumns([BasketColumn(law, items, n_items, question)])

    def _items(self):
        """Return the items, or None where the columns of X are the items, or raise ValueError."""
        items = self.items
        if items is None:
            return None
        if isinstance(items, Integral) and not isinstance(items, bool):
            if not 1 <= items <= 1 << 24:
                raise ValueError("items must be a number from 1 to 16777216, or a list of items")
            return tuple(range(int(items)))
        if isinstance(items, bool | str | float):
            raise ValueError("items must be the number of items or a list of them")
        plain = CategoryEncoder(items, "items", 1).plain_categories()
        if any(item is None for item in plain):
            raise ValueError("items must not be missing")
        return tuple(plain)

    def _check_call_parameters(self):
        """Raise ValueError for a parameter that does not fit."""
        super()._check_call_parameters()
        canonical_epsilon(self.epsilon)
        if not isinstance(self.method, str) or self.method not in SHARES:
            raise ValueError(f"method must be one of {list(SHARES)}")
        n, least = self.n_top, 2 if self.method == "svsm" else 1
        if isinstance(n, bool) or not isinstance(n, Integral) or not least <= n <= 256:
            raise ValueError(f"n_top must be an integer from {least} to 256")
