"""PrivKVM: PrivKV in rounds, between which the server publishes means for those who lack a key to make signs of."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpestim.local.columns import Columns
from dpestim.local.keyvalue.estimates import Estimates, estimate
from dpestim.local.keyvalue.law import STEPS, Cell
from dpestim.local.keyvalue.privkv import Asked, PrivKVEstimator, published_means
from dpestim.passes import Blueprint, CheckRows, CountReports, CountRows
from dpestim.privacy.exact import WORD, canonical_epsilon
from dpestim.privacy.key_value_weights import sign_weight
from dpestim.progress import Progress
from dpestim.rng import WordSource

MOST_ROUNDS = 100


class Feedback(Asked):
    """A later round: everybody says a sign, and who lacks the key that of `fake`, a place from 0 to 2^32 each."""

    def __init__(self, epsilon, n_keys, fake):
        super().__init__(epsilon, n_keys)
        if len(fake) != n_keys or not all(0 <= place <= STEPS for place in fake):
            raise ValueError("fake must be a place for each key")
        self.fake = fake
        self.heavy = sign_weight(self.epsilon)
        self.light = WORD - self.heavy
        self.cell = Cell(Fraction(self.heavy, WORD), Fraction(self.light, WORD), Fraction(1, 2))

    def check_reports(self, reports):
        """Refuse codes of nothing: everybody says a sign."""
        super().check_reports(reports)
        if (reports % 3 == 2).any():
            raise ValueError("a report of a later round must say a sign")


def _feedback(law, means):
    """Return the law of the round after these means were published."""
    places = np.rint((means + 1) / 2 * STEPS).astype(np.int64)
    return Feedback.make(law.epsilon, law.n_keys, tuple(places.tolist()))


class PrivKVMEstimator(PrivKVEstimator):
    """Estimate frequencies and means of keys by PrivKV in rounds with feedback (PrivKVM).

    The same users answer `n_rounds` times. The server publishes the means after each round, and those who lack the
    key that they are asked for next make up a sign of this mean, which lessens the bias of published means. To compare
    and to reproduce: `PrivKVEstimator`, whose unbiased means need one round, is more accurate with the same epsilon.

    `fit` runs all rounds. With the verbs apart, `next_round` closes a round: ``server.client()`` then is what users
    privatize with.

    **Privacy.** epsilon-local differential privacy for all reports of a user together, exact (proof in
    ``privkvm.md``), neighbours: any two sets of one user; no other party is trusted. Each round costs epsilon /
    n_rounds, so that rounds that are not asked for are not paid.

    **Utility.** The bias of published means falls as (1 - f)^(n_rounds - 1), not to 0, and their variance grows as
    1 / (2 p - 1)^2, p = e^(epsilon / n_rounds) / (1 + e^(epsilon / n_rounds)). The unbiased ones average all rounds.

    **Complexity.** O(n_rounds log s) a user with s pairs; log2(3 d) bits sent in a round.

    {parameters}
    References
    ----------
    Q. Ye, H. Hu, X. Meng, H. Zheng, "PrivKV: key-value data collection with local differential privacy", IEEE S&P 2019,
    algorithm 4 and theorem 4. That enough rounds make it unbiased is true of the mean alone: see ``privkvm.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from dpestim.local import PrivKVMEstimator
    >>> ratings = np.tile([[5.0, 1.0], [4.0, 0.0]], (20_000, 1))  # 0: no rating
    >>> est = PrivKVMEstimator(4.0, bounds=(1, 5), n_rounds=2, random_state=0).fit(csr_array(ratings))
    >>> np.abs(est.means_ - [4.5, 1.0]).max() < 0.3
    np.True_
    """

    _more_parameters = f"""
    n_rounds : int, default=3
        Rounds, from 1 to {MOST_ROUNDS}; each has epsilon / n_rounds. With 1 it is `PrivKVEstimator`.
{PrivKVEstimator._more_parameters.strip(chr(10))}
    """
    _more_attributes = """
    published_ : list of ndarray of shape (n_keys,)
        The means that were published after each closed round.
    """
    _test_values = {"n_rounds": [4]}
    #: (columns, counts, users) of the closed rounds, and the means after each, from -1 to 1.
    _rounds, _published = (), ()
    _STATE = (*PrivKVEstimator._STATE, "_rounds", "_published", "_answered")
    _answered = None

    def __init__(self, epsilon=1.0, *, keys=None, bounds=(-1.0, 1.0), n_rounds=3, correction="unbiased", ledger=None,
                 random_state=None, n_jobs=None):
        super().__init__(epsilon, keys=keys, bounds=bounds, correction=correction, ledger=ledger,
                         random_state=random_state, n_jobs=n_jobs)
        self.n_rounds = n_rounds

    @property
    def published_(self):
        """The means that were published after each closed round, in the user's units."""
        column = self._columns_now().columns[0]
        return [column.to_units(means) for means in self._published]

    @property
    def privacy_(self):
        """What all rounds of a user promise together; known before any data where the keys are declared."""
        times = self._checked_rounds() if self._answered is None else self._answered
        columns = self._columns_now()
        return columns.guarantee(self._seeded if self._n_users else self.random_state is not None,
                                 times * self._reports_each, self._n_batches)

    def next_round(self):
        """Publish the means of this round and begin the next; returns self."""
        self._check_fitted()
        self._check_correction()
        with self._alone():
            times = self._checked_rounds() if self._answered is None else self._answered
            if len(self._rounds) + 1 >= times:
                raise ValueError(f"n_rounds is {times}, and this is the last round: call release, or make a new "
                                 "estimator with more rounds")
            column = self._columns.columns[0]
            means = published_means(column.law, self._counts[0], self._n_users)
            law = _feedback(column.law, means)
            rounds = (*self._rounds, (self._columns, self._counts, self._n_users))
            published = (*self._published, means)
            kept = self._seeds, self._seeded, self._lineage, self._reports_each
            super()._forget()
            self._rounds, self._published, self._answered = rounds, published, times
            self._seeds, self._seeded, self._lineage, self._reports_each = kept
            self._freeze(Columns([column.with_law(law)]), None)
        return self

    def client(self):
        """Return an estimator that knows the published means, and no counts, to `privatize` with in this round."""
        twin = type(self)(**self.get_params(deep=False))
        if self._to_bind() != (None, False):  # (as clones do: strict mode, and the ledger that pays)
            twin._bound = self._to_bind()
        if self._columns is not None:
            twin._rounds, twin._published, twin._answered = ((),) * len(self._rounds), self._published, self._answered
            twin._freeze(self._columns, None)
        return twin

    def public_state(self):
        """Return what was published for the open round, a dict of lists of floats; None in the first round."""
        return {"published": [means.tolist() for means in self._published]} if self._published else None

    def resume_at(self, state):
        """Begin the round of a public state in this estimator, which has seen nothing; returns self, as `client` does.

        Raises ValueError for what is no state of this estimator.
        """
        published = state.get("published") if isinstance(state, dict) and len(state) == 1 else None
        column, times, means = self._columns_now().columns[0], self._checked_rounds(), None
        try:
            means = np.asarray(published, np.float64)
        except (ValueError, TypeError):
            means = None
        if means is None or means.ndim != 2 or not 1 <= len(means) < times or means.shape[1] != column.law.n_keys or (
                not (np.abs(means) <= 1).all()):
            raise ValueError(f"round must have published: means from -1 to 1 of {column.law.n_keys} keys for each of "
                             f"the closed rounds, of which there are fewer than {times}")
        self._rounds, self._published, self._answered = ((),) * len(means), tuple(means), times
        self._freeze(Columns([column.with_law(_feedback(column.law, means[-1]))]), None)
        return self

    def fit(self, X, y=None):
        """Run all rounds on the rows of X; forgets what was seen before."""
        with self._alone():
            read = client, data, columns, _ = self._read_for(X, True)
            times = self._checked_rounds()
            if self._find_ledger() is not None:
                self._charge(columns.guarantee(self.random_state is not None, times), len(data[0]), columns.names)
            source = WordSource(self.random_state)
            for number in Progress(self, times).of(range(times)):
                if number:
                    self.next_round()
                    read = client, data, self._columns, None
                self._take(read, source.part(number), not number)
        return self

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`), asked once a round: charges before the first, for all of them.

        {fit of parts}
        """
        self._as_rows(*example)
        times, columns = self._checked_rounds(), self._client(restart=True)._columns_like(example[0])
        self._check_columns(columns)
        # (rows are read in each round: what can be read once, or not at all, is refused unpaid)
        ask((CountRows if times > 1 else CheckRows)(Blueprint.of(self)))
        if self._find_ledger() is not None:
            self._charge(columns.guarantee(self.random_state is not None, times), None, columns.names)
        source = WordSource(self.random_state)
        with self._alone():
            self._forget()
        for number in range(times):
            if number:
                self.next_round()
            words, sent = source.part(number), replace(Blueprint.of(self), state=self._round_state())
            found = ask(CountReports(sent, words.key_for_workers(), words.seeded))
            with self._alone():
                self._merge(found, "disjoint")
                self._n_batches = 1

    # ---------------------------------------------------------------- inside

    def _round_state(self):
        """Return what workers must know of closed rounds."""
        told = vars(self.client()) if self._rounds else {}
        return {name: told[name] for name in ("_rounds", "_published", "_answered", "_columns") if name in told}

    def _merge(self, other, users):
        if any(other._rounds):
            raise ValueError("other must hold reports of this round only, and has closed rounds, whose reports would "
                             "be lost: close rounds on one server only, and make the other servers by its client()")
        times, theirs = (e._checked_rounds() if e._answered is None else e._answered for e in (self, other))
        if times != theirs:
            raise ValueError(f"other must have the same n_rounds: {theirs} is not {times}")
        return super()._merge(other, users)

    def _like(self, columns):
        return super()._like(columns) if self._columns is None else self._columns  # (a round has begun)

    def _share(self, n_columns):
        return canonical_epsilon(self.epsilon) / self._checked_rounds()

    def _law(self, n_keys):
        sign_weight(self._share(1))  # later rounds must not fail for what is known now
        return super()._law(n_keys)

    def _checked_rounds(self):
        n = self.n_rounds
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= MOST_ROUNDS:
            raise ValueError(f"n_rounds must be an integer from 1 to {MOST_ROUNDS}")
        return int(n)

    def _pay(self, columns, n_rows):
        return super()._pay(columns, n_rows).part(len(self._rounds))  # no two rounds share words

    def _fit(self, X, *, restart, keep_reports=False):
        with self._alone():
            return self._fit_alone(X, restart or not (self._n_users or self._rounds), keep_reports)

    def _estimates(self):
        self._check_fitted()
        if self._rounds and not self._rounds[0]:
            raise ValueError("frequencies need reports of the first round: ask the server that counted the first round")
        first = self._rounds[0] if self._rounds else (self._columns, self._counts, self._n_users)
        found = estimate(first[0].laws[0], first[1][0], first[2])
        rounds = [*self._rounds[1:], (self._columns, self._counts, self._n_users)] if self._rounds else []
        if not rounds:
            return found
        law = first[0].laws[0]
        asked, _, _ = law.tallies(first[1][0], first[2])
        gap = float(law.cell.right - law.cell.turned)
        weights, totals, spread, fakes = [asked * gap**2 / float(2 * law.cell.other)], [found.total], [0.0], [0.0]
        for (columns, counts, _), fake in zip(rounds, self._published):
            law = columns.laws[0]
            asked, plus, minus = law.tallies(counts[0], 0)
            asked, gap = np.maximum(asked, 0.5), float(law.cell.right - law.cell.turned)
            mean = (plus - minus) / asked / gap
            weights.append(asked * gap**2)
            totals.append(mean - (1 - found.frequency) * fake)
            spread.append((1 - np.square(np.clip(mean * gap, -1, 1))) / gap**2 / asked)
            fakes.append(fake)
        weights = np.array(weights) / np.sum(weights, axis=0)
        total, b = np.sum(weights * totals, axis=0), sum(w * fake for w, fake in zip(weights, fakes))
        own = weights[0] * found.covariance
        return Estimates(
            first[2], found.frequency, total, found.share_variance,
            weights[0] ** 2 * found.total_variance + sum(w**2 * s for w, s in zip(weights, spread))
            + b**2 * found.share_variance + 2 * b * own, own + b * found.share_variance,
        )

    def _means(self):
        self._check_correction()
        if self.correction == "unbiased":
            return self._estimates().mean
        return published_means(self._columns.laws[0], self._counts[0], self._n_users)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 2.0, "keys": ["a", "b"], "n_rounds": 2},
            {"epsilon": 3.0, "keys": 3, "bounds": (1.0, 5.0), "n_rounds": 3},
        ]
