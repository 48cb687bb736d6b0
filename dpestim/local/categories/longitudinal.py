"""Longitudinal mechanisms: a client keeps its randomised answer, and every report is a noisy copy of what is kept.

`Memoised` is the law's side (two steps, of which a one-shot report does both), `ClientState` what a client stores, and
`LongitudinalEstimator` the base of estimators. `longitudinal.md` says what many reports promise, and what they do not.
"""

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.columns import Column, write_column
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import WORD, canonical_epsilon, exp_lower, log_above, uses_enough
from dpestim.rng import WordSource


@dataclass(frozen=True)
class Weights:
    """Integer weights of randomised response, of one step or of two: keep + (d - 1) other == 2**(64 n_words)."""

    n_words: int
    keep: int
    other: int

    @property
    def total(self):
        """The number of equally likely draws."""
        return WORD**self.n_words

    own = property(lambda self: Fraction(self.keep, self.total), doc="Probability of the own answer.")
    others = property(lambda self: Fraction(self.other, self.total), doc="Probability of each other answer.")
    ratio = property(lambda self: Fraction(self.keep, self.other), doc="The largest ratio of two probabilities.")


def instant_weights(epsilon, first, d):
    """Return the weights of the second step, so that both together keep epsilon exactly and use nearly all of it.

    Ratios R of the first step and r of the second compose to (R r + d - 1) / (R + r + d - 2), which grows with r;
    solved for e' <= e^epsilon this is r = (e' (R + d - 2) - (d - 1)) / (R - e').
    """
    e, ratio = exp_lower(epsilon), Fraction(first.keep, first.other)
    if ratio <= e:
        raise ValueError("epsilon_permanent must be above epsilon: the first report is a noisy copy of the kept answer")
    r = (e * (ratio + d - 2) - (d - 1)) / (ratio - e)
    for n_words in (1, 2):
        total = WORD**n_words
        other = math.ceil(total / (r + d - 1))
        second = Weights(n_words, total - (d - 1) * other, other)
        if second.keep >= other:
            both = composed(first, second, d)
            if both.other <= both.keep <= e * both.other and uses_enough(both.keep, both.other, epsilon):
                return second
    raise ValueError(f"epsilon is too small or too large for {d} values: random words cannot express the law")


def composed(first, second, d):
    """Return the weights of the two steps together: the product of two matrices, exactly."""
    keep = first.keep * second.keep + (d - 1) * first.other * second.other
    other = first.keep * second.other + first.other * second.keep + (d - 2) * first.other * second.other
    return Weights(first.n_words + second.n_words, keep, other)


class Memoised:
    """A law in two steps; a mixin, which stands left of the law's base.

    A sub-class calls `keep_permanent`, sets `answer_dtype`, `answer_width` and `n_cells` (the inputs for which a
    client may keep different answers) and brings `permanent`, `respond` and `instant_ratio`.
    """

    notes = ("The guarantee is about one report of each user. Count each round of the same users separately; "
             "privacy_of(state) states the guarantee of all rounds together.",)
    #: Leading fields of a kept answer that never change.
    n_fixed = 0
    #: How often `instant_ratio` counts: independent parts of a report that two kept answers may all differ in.
    n_instant = 1

    def keep_permanent(self, epsilon):
        """Note the epsilon of the kept answer: None is twice that of the first report."""
        kept = 2 * self.epsilon if epsilon is None else epsilon
        self.epsilon_permanent = canonical_epsilon(kept, "epsilon_permanent")
        if self.epsilon_permanent <= self.epsilon:
            raise ValueError("epsilon_permanent must be above epsilon: the first report is a noisy copy of the kept "
                             "answer")

    @cached_property
    def epsilon_instant(self):
        """What a report promises where the kept answer is known: a Fraction, rounded up."""
        return self.n_instant * log_above(self.instant_ratio)

    def cells(self, codes, answers):
        """Return which cell each code is in, given what a client keeps."""
        return codes

    def again(self, cells, words, out):
        """Write a fresh kept answer for each cell, without its fixed fields."""
        self.permanent(cells, words, out)

    def privatize(self, codes, words, out):
        """Write a first report for each code."""
        answers = np.empty((len(codes), self.answer_width), self.answer_dtype)
        self.permanent(codes, words, answers)
        self.respond(answers, words, out)


class _Step:
    """One step of a memoised law as the walk over blocks takes it."""

    def __init__(self, law, write, dtype, width):
        # (one step takes about half of the law's words, so that a block has room for twice the rows)
        self.block_rows, self.privatize = 2 * law.block_rows, write
        self.report_dtype, self.report_width = np.dtype(dtype), width


class _Memo:
    """What the clients keep of one column: the current cells and answers, and earlier ones by row and cell."""

    def __init__(self, n_rows, law):
        self.started, self.cells = np.zeros(n_rows, bool), None
        self.answers = np.zeros((n_rows, law.answer_width), law.answer_dtype)
        self.keys, self.kept = np.empty(0, np.int64), self.answers[:0].copy()

    def start(self, rows, cells, answers):
        """Keep the first answers of some rows."""
        if self.cells is None:
            self.cells = np.zeros(len(self.started), cells.dtype)
        self.started[rows], self.cells[rows], self.answers[rows] = True, cells[rows], answers[rows]

    def move(self, cells, n_cells, n_fixed, draw):
        """Go to other cells: where an answer is kept take that, else one of `draw`, which is called at most once."""
        rows = np.flatnonzero(cells != self.cells)
        if not len(rows):
            return
        keys = np.concatenate([self.keys, rows * n_cells + self.cells[rows]])
        kept = np.concatenate([self.kept, self.answers[rows]])
        self.keys, first = np.unique(keys, return_index=True)
        self.kept, self.cells = kept[first], cells.copy()
        wanted = rows * n_cells + cells[rows]
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        known = self.keys[at] == wanted
        self.answers[rows[known]] = self.kept[at[known]]
        if not known.all():
            new = rows[~known]
            self.answers[new, n_fixed:] = draw()[new, n_fixed:]


class ClientState:
    """What clients keep between reports, n rows of them: opaque, and as secret as the rows themselves.

    `LongitudinalEstimator.client_state` makes one. Store it (it pickles, with a version) and hand it to every
    ``privatize(X, state=state)``, which changes it. Of two copies of one state use one. Where only some clients report,
    ``privatize(X, state=state[rows])`` changes the state of these rows: `rows` is a mask, a slice or an array of
    different row numbers, and X has the rows that it names, in its order.

    Attributes
    ----------
    n_rows : int
    n_reports : int
        The most reports that any row has made.
    """

    _version = 2

    def __init__(self, columns, n_rows, number):
        self._identity = columns.inferred, [c.identity() for c in columns]
        self._memos, self._known = [_Memo(n_rows, column.law) for column in columns], columns
        self.n_rows, self._n_calls, self._counts = n_rows, 0, np.zeros(n_rows, np.int32)
        #: How many reports of a row each account, a ledger and a label, has paid for; and the state's place in a seed.
        self.paid, self.number = {}, number

    @property
    def n_reports(self):
        """The most reports that any row has made."""
        return int(self._counts.max(initial=0))

    def __repr__(self):
        return f"ClientState(n_rows={self.n_rows}, n_reports={self.n_reports})"

    def __getitem__(self, rows):
        """Return the part of the state that some rows keep; what the part reports, the whole state remembers."""
        places = np.arange(self.n_rows)
        try:
            chosen = places[rows]
        except (IndexError, TypeError, ValueError):
            chosen = None
        if chosen is None or chosen.ndim != 1 or len(np.unique(chosen)) < len(chosen):
            raise ValueError(f"rows must be a mask, a slice or an array of different row numbers below {self.n_rows}")
        return _Part(self, chosen)

    def __getstate__(self):
        return {**vars(self), "_known": None, "version": self._version}

    def __setstate__(self, state):
        if state.get("version") != self._version:
            raise ValueError(f"a client state must have version {self._version}: make a new one with client_state")
        vars(self).update({name: value for name, value in state.items() if name != "version"})

    def check(self, columns, n_rows=None):
        """Raise ValueError unless it belongs to these columns and this many rows."""
        if columns is not self._known:  # (comparing long lists of categories takes time)
            if self._identity != (columns.inferred, [c.identity() for c in columns]):
                raise ValueError("state must have been made by a client of the same law and the same categories")
            self._known = columns
        if n_rows is not None and n_rows != self.n_rows:
            raise ValueError(f"X must have the {self.n_rows} rows of state, in the same order, got {n_rows}")

    def report(self, columns, data, source, n_jobs, rows=None):
        """Return the next reports of rows as `Columns.read` gave them; `rows` are their places, None all."""
        n, first = self.n_rows, self._n_calls * self.n_rows  # (a seed gives every call words of its own)
        rows = np.arange(n) if rows is None else rows

        def walk(number, write, dtype, width, values):
            law, part = columns.laws[number], np.empty((n, width), dtype)
            step = Column(columns.columns[number].name, _Step(law, write, dtype, width))
            write_column(step, number, values, part, source, first, n_jobs)
            return part

        parts = []
        for number, (column, some) in enumerate(zip(columns, data)):
            law, memo = column.law, self._memos[number]
            some = np.ascontiguousarray(column.coder()(some))
            codes = np.zeros(n, some.dtype)  # (rows that do not report are walked over: words belong to places)
            codes[rows] = some
            shape = law.answer_dtype, law.answer_width
            new = rows[~memo.started[rows]]
            if len(new):
                answers = walk(number, law.permanent, *shape, codes)
                memo.start(new, law.cells(codes, answers), answers)
            cells = memo.cells.copy()
            cells[rows] = law.cells(codes, memo.answers)[rows]
            memo.move(cells, law.n_cells, law.n_fixed,
                      lambda law=law, number=number, shape=shape, cells=cells: walk(
                          number, law.again, *shape, cells))
            parts.append(walk(number, law.respond, law.report_dtype, law.report_width, memo.answers)[rows])
        self._n_calls += 1
        self._counts[rows] += 1
        if len(parts) == 1:
            return parts[0]
        out = np.empty((len(rows), columns.report_width), columns.dtype)
        for part, place in zip(parts, columns.slices):
            out[:, place] = part
        return out


class _Part(ClientState):
    """Some rows of a state; all that it learns, the whole state keeps."""

    def __init__(self, whole, rows):
        self._whole, self._rows, self.n_rows = whole, rows, len(rows)

    paid = property(lambda self: self._whole.paid)
    number = property(lambda self: self._whole.number)
    _counts = property(lambda self: self._whole._counts[self._rows])

    def __getitem__(self, rows):
        part = super().__getitem__(rows)
        return _Part(self._whole, self._rows[part._rows])

    def __getstate__(self):
        raise ValueError("a part of a client state must not be copied or pickled: store the whole state")

    def check(self, columns, n_rows=None):
        self._whole.check(columns)
        if n_rows is not None and n_rows != self.n_rows:
            raise ValueError(f"X must have the {self.n_rows} rows of this part of state, in its order, got {n_rows}")

    def report(self, columns, data, source, n_jobs):
        return self._whole.report(columns, data, source, n_jobs, self._rows)


class LongitudinalEstimator(FrequencyEstimator):
    """Base of the estimators of longitudinal mechanisms: a second epsilon, and clients that keep what they said."""

    _more_parameters = """
    epsilon_permanent : float, default=None
        Above epsilon. What all reports of a value that never changes promise together, in place of epsilon for the
        first one. Shared among the columns as epsilon is. None: 2 epsilon.
    """
    _texts = {"longitudinal": """\
        **Privacy.** epsilon-local differential privacy for the first report of a row, and so for what a fit releases,
        which is one report each of clients that keep nothing: exact (integer weights of both steps, their product
        compared with e^epsilon as a rational number, proof in ``longitudinal.md``). All reports from one `ClientState`
        together promise epsilon_permanent between two values that never change. **Reports show whether a value
        changed**: for values that change the epsilons of all reports add up (`privacy_of`), without a limit. **Count
        each round of the same users separately**: `privacy_` and the errors of an aggregate are those of one report a
        user, and permanent answers do not average out. Neighbours: any two rows of one user; no other party is trusted.
    """}
    _test_values = {"epsilon_permanent": [7.0]}
    _adds_same_users = False
    #: States made so far.
    _n_states = 0

    def __init__(self, epsilon=1.0, *, epsilon_permanent=None, categories="auto", postprocess=None, sparse_output=False,
                 ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.epsilon_permanent = epsilon_permanent

    def _law_arguments(self, column, n_columns, encoder):
        if self.epsilon_permanent is None:
            return super()._law_arguments(column, n_columns, encoder)
        share = canonical_epsilon(self.epsilon_permanent, "epsilon_permanent") / n_columns
        return super()._law_arguments(column, n_columns, encoder) | {"epsilon_permanent": share}

    def client_state(self, X):
        """Return an empty `ClientState` for the rows of X: nothing is drawn or charged before the first report.

        With a seed each state of this estimator has noise of its own, in the order in which they are made; copies of a
        state, and states that clones make, repeat it.
        """
        data, columns, _ = self._read(X)
        number = self._n_states
        self._n_states = number + 1
        return ClientState(columns, len(data[0]), number)

    def privatize(self, X, *, state=None):
        """Randomise raw rows into reports, on the user's side.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
        state : ClientState, default=None
            What these clients keep; it is changed. ``state[rows]`` where only some of them report. None: clients that
            keep nothing, and report once.

        Returns
        -------
        ndarray of shape (n_rows, width)
            C-contiguous, of one unsigned dtype, columns side by side; all that a server needs.

        Notes
        -----
        Each call is a release of its rows. With a state a ledger is charged what `privacy_of` has grown by since it was
        last charged for this state (under the same label): another ledger pays for all reports so far.
        """
        if state is None:
            return super().privatize(X)
        if not isinstance(state, ClientState):
            raise ValueError("state must be None or what client_state returned")
        data, columns, _ = self._read(X)
        state.check(columns, len(data[0]))
        ledger = self._find_ledger()
        if ledger is not None:
            account = getattr(ledger, "uuid", None), getattr(ledger, "users", "")
            before = 0 if account[0] is None else state.paid.get(account, 0)
            # what the row with the most reports has cost, all others have cost at most
            now = max(state.n_reports + 1, before)
            self._charge(self._all_reports(columns, now, before), len(data[0]), columns.names)
            state.paid[account] = now
        return state.report(columns, data, WordSource(self.random_state).part(1 + state.number), self.n_jobs)

    def privacy_of(self, state):
        """Return what all reports from a state promise together; it depends on their number, never on a value.

        ``epsilon`` holds for any values, however they change; ``relaxed_epsilon`` between values that never do.
        """
        columns = self._columns_now()
        state.check(columns)
        return self._all_reports(columns, state.n_reports)

    @property
    def longitudinal_privacy_(self):
        """What any number of reports of a row from one `ClientState` promises."""
        return self._all_reports(self._columns_now(), math.inf)

    def _all_reports(self, columns, n_reports, before=0):
        """Return what so many reports promise, less what was paid for those before."""
        once = columns.guarantee(self.random_state is not None)
        if 0 < n_reports == before and not columns.inferred:  # (by another row: each row's reports are within these)
            return PrivacyGuarantee(0, model="local", neighbours=Neighbours.LOCAL, seeded=once.seeded)
        if n_reports <= 1 or columns.inferred:
            return once if n_reports else PrivacyGuarantee(0)
        plain, kept = _totals(columns.laws, n_reports)
        spent, spent_kept = _totals(columns.laws, before)
        spent = 0 if plain == math.inf else spent
        notes = tuple(note for note in once.notes if note not in Memoised.notes)  # (those are about one report)
        return PrivacyGuarantee(
            plain - spent, model="local", neighbours=Neighbours.LOCAL, seeded=self.random_state is not None,
            notes=(*notes, "Reports show whether the value of a user changed."),
            relaxation=_constancy(columns), relaxed_epsilon=max(kept - spent_kept, 0),
        )


def _constancy(columns):
    """Return the name of what holds for values that never change: with it ledgers tell promises about others apart."""
    parts = [(c.name, c.encoder.plain_categories() if hasattr(c.encoder, "plain_categories") else None,
              type(c.law).__name__, sorted((k, str(v)) for k, v in c.law.arguments.items())) for c in columns]
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:12]
    return f"values that never change, over all reports of a state({', '.join(columns.names)}; {digest})"


def _totals(laws, n):
    """Return epsilon of n reports, for any values and for values that never change."""
    if n <= 1:
        first = n * sum(law.epsilon for law in laws)
        return first, first
    plain = math.inf if math.inf == n else sum(n * law.epsilon_instant for law in laws)
    return plain, min(plain, sum(law.epsilon_permanent for law in laws))
