"""Clients that are asked again and again: a state of what they keep, and what all of their reports promise."""

import hashlib
import math

from dpestim.local.client import Client
from dpestim.local.client_state import ClientState
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.rng import WordSource

#: Note of laws whose clients keep an answer.
ABOUT_ONE_REPORT = ("The guarantee is about one report of each user. Count each round of the same users separately; "
                    "privacy_of(state) states the guarantee of all rounds together.")


class LongitudinalClient(Client):
    """A client with `client_state`, ``privatize(X, state=)`` and `privacy_of`."""

    #: States made so far.
    _n_states = 0

    def client_state(self, X):
        """Return an empty `ClientState` for the rows of X: nothing is drawn or charged before the first report.

        With a seed each state of this estimator has noise of its own, in the order in which they are made; copies of a
        state, and states that clones make, repeat it.

        Raises
        ------
        ValueError
            Where no column is longitudinal, and where the number of rows of X is so large that these, with the values
            of a column (and the cohorts of RAPPOR), have no 63-bit number each: 268,435,455 rows with 2^32 open values
            in 8 cohorts.
        """
        data, columns, _ = self._read(X)
        n_rows, kept = len(data[0]), [law.n_cells for law in columns.laws if law.keeps_answers]
        if not kept:
            raise ValueError("client_state needs a longitudinal estimator among the clients, such as "
                             "LGRRFrequencyEstimator: other clients keep nothing between reports")
        if n_rows * max(kept) >= 1 << 63:
            raise ValueError("X must have fewer rows, or n_cohorts must be smaller, because a state numbers all rows, "
                             "values and cohorts")
        number = self._n_states
        self._n_states = number + 1
        return ClientState(columns, n_rows, number)

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
            raise ValueError("state must be None or a ClientState, as client_state returns it")
        data, columns, _ = self._read(X)
        state.check(columns, len(data[0]))
        with state.lock:
            self._pay_for(state, columns, len(data[0]))
            return state.report(columns, data, WordSource(self.random_state).part(1 + state.number), self.n_jobs)

    def _pay_for(self, state, columns, n_rows):
        """Charge one report more of rows that keep a state."""
        ledger = self._find_ledger()
        if ledger is not None:
            account = getattr(ledger, "uuid", None), getattr(ledger, "users", "")
            before = 0 if account[0] is None else state.paid.get(account, 0)
            # what the row with the most reports has cost, all others have cost at most
            now = max(state.n_reports + 1, before)
            self._charge(self._all_reports(columns, now, before), n_rows, columns.names)
            state.paid[account] = now

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
        plain, kept = _totals(columns, n_reports)
        spent, spent_kept = _totals(columns, before)
        spent = 0 if plain == math.inf else spent
        relaxed = {} if kept == math.inf else {
            "relaxation": _constancy(columns), "relaxed_epsilon": max(kept - spent_kept, 0)}
        notes = tuple(note for note in once.notes if note != ABOUT_ONE_REPORT)
        return PrivacyGuarantee(
            plain - spent, model="local", neighbours=Neighbours.LOCAL, seeded=self.random_state is not None,
            notes=(*notes, "Reports show whether the value of a user changed."), **relaxed,
        )


def _constancy(columns):
    """Return the name of what holds for values that never change: with it ledgers tell promises about others apart.

    Of columns that keep nothing all reports are counted, so that it says nothing about their values.
    """
    kept = [c for c in columns if c.law.keeps_answers]
    parts = [(c.name, c.encoder.plain_categories() if hasattr(c.encoder, "plain_categories") else None,
              type(c.law).__name__, sorted((k, str(v)) for k, v in c.law.arguments.items())) for c in kept]
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:12]
    return f"values that never change, over all reports of a state({', '.join(c.name for c in kept)}; {digest})"


def _totals(columns, n):
    """Return epsilon of n reports, for any values and for values that never change."""
    if n <= 1:
        first = n * columns.of_row([law.plain_epsilon for law in columns.laws])
        return first, first
    plain, kept = [], []
    for law in columns.laws:
        each = law.epsilon_instant if law.keeps_answers else law.plain_epsilon
        plain.append(math.inf if math.inf in (n, each) else n * each)
        kept.append(min(plain[-1], law.epsilon_permanent) if law.keeps_answers else plain[-1])
    return columns.of_row(plain), columns.of_row(kept)
