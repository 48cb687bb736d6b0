"""The ledger: a SQLite file in which every release is entered before its words are drawn.

A handle is a path, a UUID and a label of users; it holds no state, so clones, pickles, threads and forked or spawned
processes all write to the one file. An entry, the totals and the head of the hash chain change in one transaction that
takes the write lock before it reads (``BEGIN IMMEDIATE``): no two processes can both see the last unit of budget.
"""

import json
import os
import unicodedata
import uuid
from datetime import UTC, datetime
from functools import cached_property

from dpestim.exceptions import LedgerError
from dpestim.privacy import account, ambient
from dpestim.privacy.account import LAYOUTS, RELEASE, SCORE, number, signed, text
from dpestim.privacy.composition import COMPOSITIONS
from dpestim.privacy.detaching import detached
from dpestim.privacy.entering import Entering, plain_entries, reserved
from dpestim.privacy.exact import canonical_amount
from dpestim.privacy.guarantee import PrivacyGuarantee
from dpestim.privacy.handles import Handle
from dpestim.privacy.handles import rebuilt as _handle  # noqa: F401 (its name in pickles that are older than its module)
from dpestim.privacy.neighbours import Neighbours
from dpestim.privacy.shown import ShownLedger
from dpestim.privacy.store import create, opened, real_path, remember, sweep, temporary_path, transacted

_DURABILITIES = ("full", "fast")
#: (path, UUID) -> the most entries that this process has seen there
_longest = {}


class Ledger(Handle, ShownLedger):
    """A budget, and the account of everything that was spent from it.

    Each release is charged in one transaction *before* its noise is drawn. A release that exceeds the budget is refused
    and costs nothing; a release that fails after the charge stays charged. Pass the ledger as ``ledger=`` or open a
    block, ``with ledger:``, which pays for every estimator that is made, cloned, pickled or used in it, in any thread
    and in worker processes, also after the block. (Pass ``ledger=`` to an estimator that code in a worker process
    creates.)

    **Privacy.** Charges add up (`composition` says how; each way is valid for budgets chosen adaptively, also after
    looking at results).
    Entries for different labels of `for_users` concern different people and cost the maximum; entries without a label
    may concern anybody and are added to every label. A finite ledger refuses a release without a guarantee.

    **Complexity.** A charge takes about 1 ms, mostly for the disk (``durability="full"``), or about 0.2 ms
    (``"fast"``), for any number of entries. Opening verifies every entry.

    Parameters
    ----------
    epsilon : float or Fraction
        The budget, above 0; exactly what its shortest decimal form names. ``math.inf`` keeps accounts and refuses
        nothing.
    delta : float or Fraction, default=0
        The budget of delta, in [0, 1).
    path : str or path-like, default=None
        The file. One that exists is joined: its budget, relation and relaxation must be the same. None makes a file in
        the system's folder for temporary files. A later process removes it an hour after its last charge, once this
        process has ended: a handle may outlive it.
    neighbours : {"substitution", "add_remove", "local", "edge", "list", "node", "event", "user"}
        "substitution" where none is said.
        The one relation of the account, and the default of estimators of the central model that it pays for. Charges
        are converted where that is possible (`PrivacyGuarantee.to`): local ones count as they are under substitution,
        add_remove ones double. Those of edges of a graph need an account of edges; one of neighbour lists counts there
        twice, because two users report an edge, and one of nodes twice, because a node is removed and added. Those of
        events of a stream need an account of events, which takes those of users, too; one of users takes no others.
    relaxation : str, default=None
        The name of a relaxed model, as in ``PrivacyGuarantee.relaxation``: its releases cost their `relaxed_epsilon`.
    durability : {"full", "fast"}, default="full"
        "full": an entry is on the disk before noise is drawn. "fast": an entry is handed to the operating system only,
        and survives a crash of the process but not of the machine.
    composition : {"basic", "zcdp", "rdp"}, default="basic"
        What adds up. "basic": epsilons and deltas. "zcdp": rhos of concentrated privacy, epsilon^2 / 2 for a pure
        release, (sensitivity / sigma)^2 / 2 for normal noise, up to the largest that is (epsilon, delta)-private: many
        small releases cost about the square root of the sum, and a few pure ones more than the sum: of epsilon 0.1
        each, 4 fit in (1, 1e-6), where 10 fit by "basic" and 9 by "rdp". `remaining` states the epsilon of *one* more
        pure release, which is below that of the budget from the start. "rdp" adds up Renyi divergences at orders from
        1.5 to 129, one of which must stay within its budget. Take "rdp" if the sizes of releases are unknown: it
        charges less than "zcdp" for large pure releases, and more for small ones. Laplace noise is charged by its Renyi
        divergences, which are below those of a general pure release. Both need a delta above 0, which all releases
        share, and refuse a release of which neither pure epsilon nor rho (for "rdp": nor a curve) is known.

    Attributes
    ----------
    path : str
    uuid : str
    users : str
        The label that charges through this handle carry; "" for none.

    Raises
    ------
    ValueError
        For a bad parameter.
    LedgerError
        Where the file is missing, moved, damaged, foreign, or a ledger of something else.
    BudgetExceededError
        By `charge`, where the budget does not suffice.

    Examples
    --------
    >>> from dpestim.accounting import Ledger
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> ledger = Ledger(1.0)
    >>> with ledger:
    ...     _ = GRRFrequencyEstimator(0.7, categories=[["a", "b"]]).fit([["a"], ["b"]])
    >>> ledger.remaining().epsilon
    Fraction(3, 10)

    A hundred releases of 0.1, which add up to 10:

    >>> from dpestim.privacy import PrivacyGuarantee
    >>> ledger = Ledger(6.0, delta=1e-6, composition="zcdp", durability="fast")
    >>> for _ in range(100):
    ...     _ = ledger.charge(PrivacyGuarantee(0.1))
    >>> round(float(ledger.spent().epsilon), 2)
    5.22

    References
    ----------
    Rogers, Roth, Ullman, Vadhan (2016), "Privacy odometers and filters", NeurIPS. Feldman, Zrnic (2021), "Individual
    privacy accounting via a Renyi filter", NeurIPS, theorem 3.1. The proof: ``ledger.md``.
    """

    def __init__(self, epsilon, *, delta=0, path=None, neighbours="substitution", relaxation=None, durability="full",
                 composition="basic"):
        if isinstance(epsilon, str | os.PathLike):
            raise ValueError("epsilon must be a number: a ledger that exists is opened by Ledger.open(path)")
        budget = canonical_amount(epsilon, "epsilon"), canonical_amount(delta, "delta")
        if not budget[0] or budget[1] >= 1:
            raise ValueError("epsilon must be above 0 and delta below 1")
        if relaxation is not None and not (isinstance(relaxation, str) and relaxation):
            raise ValueError("relaxation must be None or the name of a relaxed model")
        if not isinstance(composition, str) or composition not in COMPOSITIONS:
            raise ValueError(f"composition must be one of {list(COMPOSITIONS)}")
        if composition != "basic" and relaxation is not None:
            raise ValueError("relaxation must be None unless composition is 'basic', because a relaxed guarantee has "
                             "no concentrated privacy: take composition='basic'")
        terms = {
            "epsilon": text(budget[0]),
            "delta": text(budget[1]),
            "neighbours": _neighbours(neighbours).value,
            "relaxation": json.dumps(relaxation),
        }
        self.durability, self.users, self.uuid = _checked_durability(durability), "", None
        if path is None:
            self.path = temporary_path()
        else:
            self.path = real_path(path)
            sweep(self.path)
        if made := not os.path.lexists(self.path):
            self._create(terms, LAYOUTS[composition], budget)
        found = self._read().terms
        self.uuid = found["uuid"]
        if made:
            ambient.note_made(self.uuid)
        terms["composition"] = composition
        different = [name for name, value in terms.items() if found.get(name, "basic") != value]
        if different:
            raise LedgerError(f"{self.path} is a ledger of another {' and '.join(different)}: join it with the same "
                              "terms, or use Ledger.open")
        self.verify()

    @classmethod
    def open(cls, path, *, durability="full"):
        """Return a handle of an existing ledger with its stored budget and settings.

        Parameters
        ----------
        path : str or path-like
        durability : {"full", "fast"}, default="full"
        """
        ledger = cls._handle(real_path(path), None, "", _checked_durability(durability))
        sweep(ledger.path)
        ledger.uuid = ledger._read().terms["uuid"]
        ledger.verify()
        return ledger

    def for_everybody(self):
        """Return a handle whose charges carry no label, and so may concern anybody."""
        return self if not self.users else self._handle(self.path, self.uuid, "", self.durability)

    def for_users(self, label):
        """Return a handle whose charges carry a label: the public name of a set of people.

        Sets of different labels must have nobody in common, and who belongs to one must not depend on private values;
        then nobody pays for the releases about another set. A label is no data: it stands in the file, in reports and
        in error messages, and strict mode cannot know where it came from. Take it from the plan of the study ("wave
        2025", "clinic 3"), never from a column: a group made of private values shows them, and who is in it.

        Parameters
        ----------
        label : str
            Printable. Labels that differ only by case or white space are one: in Unicode's form NFKC, case-folded.
        """
        printable = isinstance(label, str) and label.isprintable()
        label = " ".join(unicodedata.normalize("NFKC", label).casefold().split()) if printable else ""
        if not label:
            raise ValueError("label must be a printable string that names a set of people")
        return self._handle(self.path, self.uuid, label, self.durability)

    # ---------------------------------------------------------------- spending

    def charge(self, guarantee, *, estimator="", n_rows=None, columns=()):
        """Enter a release, or raise BudgetExceededError and change nothing; returns the number of the entry.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            Converted to the relation of this ledger, or a ValueError.
        estimator : str
        n_rows : int or None
            Kept only where the relation makes the number of rows public.
        columns : sequence of str
        """
        file = None if self.users else opened(self.path)
        if file and (plain := file.plain) and (entered := plain.enter(self, guarantee, estimator, n_rows, columns)):
            return entered
        if not isinstance(guarantee, PrivacyGuarantee):
            raise ValueError("guarantee must be a dpestim.privacy.PrivacyGuarantee")
        ambient.refuse_in_audits(self.uuid)
        return self._entered(Entering.enter, RELEASE, guarantee, estimator, n_rows, columns)

    def check(self, guarantees):
        """Raise what `charge` would raise for these releases in turn, if nobody else charged before; enters nothing.

        Parameters
        ----------
        guarantees : list of PrivacyGuarantee
        """
        self._entered(Entering.foresee, guarantees, write=False)

    def record_score(self, *, estimator="", n_rows=None):
        """Enter, at epsilon 0 and flagged, that raw data were compared with: an exact release that nobody meters."""
        return self._entered(lambda entering: entering.enter(SCORE, estimator=estimator, n_rows=n_rows))

    def reserve(self, guarantees, *, estimator=""):
        """Return a context in which what releases will cost is set aside for them, or raise what `check` would raise.

        What is charged to a handle of this ledger inside, in the same thread or task, for the same users, draws on the
        reservation; so does what is charged, in any thread or process, to the handle that ``as`` names. What costs more
        than is left of it pays the rest as always. At the end what nothing was charged for is given back to everybody.
        A process that dies leaves it set aside: nobody else can know that it is dead and not slow. `give_back` ends it.

        Parameters
        ----------
        guarantees : list of PrivacyGuarantee
        estimator : str
            For whom, in the account.

        Examples
        --------
        >>> from dpestim.privacy import PrivacyGuarantee
        >>> ledger, half = Ledger(1.0), PrivacyGuarantee(0.5)
        >>> with ledger.reserve([half, half]) as reservation:
        ...     _ = reservation.charge(half)
        ...     print(ledger.remaining().epsilon)
        0
        >>> ledger.remaining().epsilon
        Fraction(1, 2)
        """
        return reserved(self, guarantees, estimator)

    def give_back(self, number):
        """Give back what is left of a reservation whose process died; no release can draw on it from then on.

        It is safe at any time: what is left of a reservation is what nothing was drawn for.

        Parameters
        ----------
        number : int
            Of its entry; `report` shows those that are open.
        """
        self._entered(Entering.give_back, number)

    def _entered(self, use, *arguments, write=True):
        """Return what comes of adding to the file, or only asking, in one transaction."""
        found, length = transacted(self.path, self.durability, write, self._added, use, arguments)
        key = self.path, self.uuid
        if length > _longest.get(key, 0):  # (another thread may have been faster)
            _longest[key] = length
        return found

    def _added(self, file, use, arguments):
        """Return (what comes of adding, how many entries there are then)."""
        entering = Entering(file, self._state(file), self.path, self.users, self._draws_on())
        found = use(entering, *arguments)
        file.known = entering.state
        if file.plain is None and use is Entering.enter:
            file.plain = plain_entries(file, self.path, _longest)
        return found, entering.state.length

    def detach(self, estimator):
        """Stop paying for an estimator, Pipeline or search and all estimators in it; returns it.

        What was spent stays spent. A later use is paid by the ledger of the block around it, if there is one.
        """
        return detached(estimator, self)

    # ---------------------------------------------------------------- reading

    @cached_property
    def neighbours(self):
        """The relation of the account, and the default of estimators that it pays for: a name, which never changes."""
        return self._read().terms["neighbours"]

    @property
    def composition(self):
        """How charges add up: "basic", "zcdp" or "rdp"."""
        return self._read().layout.way.name

    def spent(self):
        """Return what was spent, as a `PrivacyGuarantee`: the largest total of anybody.

        Under another composition than "basic", epsilon is that at the ledger's delta, and under "zcdp" `curve` the rho;
        where all releases are pure and their epsilons add up to no more, it is the sum, and delta is 0. Takes time
        linear in the number of entries.
        """
        state, seen, plain = self._reading(self._releases)
        with account.suspicious(self.path):
            models, seeds = {str(model) for model, _ in seen}, {seeded for _, seeded in seen}
            notes = () if seen else ("Nothing has been charged yet.",)
            relaxation = state.terms["relaxation"]
            if relaxation != "null":
                notes += (f"This is the epsilon under the relaxation {relaxation}; without the relaxation there may be "
                          "no guarantee.",)
            budget = number(state.terms["epsilon"]), number(state.terms["delta"])
        # outside: what fails here is no damage of the file
        epsilon, delta, curve, more = state.layout.way.promise(state.spent, state.budget, *budget, plain)
        with account.suspicious(self.path):
            return PrivacyGuarantee(epsilon, delta, models.pop() if len(models) == 1 else "central", state.relation,
                                    True if "yes" in seeds else None if "unknown" in seeds else False, notes + more,
                                    curve=curve)

    def remaining(self):
        """Return what is left, as a `PrivacyGuarantee`, for somebody about whom most was released.

        Under another composition than "basic" epsilon is that of the largest pure release that could still be paid.
        """
        state = self._read()
        epsilon, delta, more = state.layout.way.left(state.spent, state.budget)
        notes = ("This is the remaining part of a budget, not the guarantee of a release.", *more)
        return PrivacyGuarantee(epsilon, delta, self.spent().model, state.relation, False, notes)

    def entries(self):
        """Return every entry, oldest first: a list of dicts; amounts are Fractions, or infinite.

        What is charged adds up to what is spent: a ``"reservation"`` counts, and what is ``"given back"`` of one, to
        releases that draw on it or at its end, is negative.
        """
        state, rows = self._reading(self._rows)
        with account.suspicious(self.path):
            layout = state.layout
            names = ("number", *layout.entry)
            out = [{**dict(zip(names, row)), "hash": row[-1]} for row in rows]
            for entry in out:
                entry["columns"] = json.loads(entry["columns"])
                for name in ("epsilon", "delta"):
                    entry[name] = number(entry[name])
                for name in layout.entry[layout.charged]:
                    entry[name] = signed(entry["kind"], entry[name])
        return out

    def __len__(self):
        return self._read().length

    def __bool__(self):
        return True  # also without entries: `ledger or Ledger(1)` must not open another budget

    def verify(self):
        """Check every entry against the hash chain and the totals; raises LedgerError; returns the chain's head.

        The chain shows that entries were changed or removed to whoever kept an earlier head (printed by `report`). It
        cannot show that the whole file was replaced.
        """
        (state, rows), totals = self._reading(self._rows_and_totals)
        return account.verify(state, rows, totals, self.path)

    # ---------------------------------------------------------------- the block, copies, pickles

    def __enter__(self):
        ambient.enter(self)
        return self

    def __exit__(self, *_):
        ambient.leave(self)

    # ---------------------------------------------------------------- inside

    def _create(self, terms, layout, budget):
        terms = {"format": 1, "uuid": str(uuid.uuid4()), "created": datetime.now(UTC).isoformat(), **terms}
        amounts = layout.way.budget(*budget)
        if layout.way.name != "basic":
            terms |= {"format": 2, "composition": layout.way.name, "amounts": json.dumps([text(a) for a in amounts])}
        create(self.path, layout.schema, layout.insert_terms, [terms[name] for name in layout.terms])

    def _read(self):
        return self._reading(self._state)

    def _reading(self, use):
        """Return what comes of ``use(file)``, in one transaction that changes nothing."""
        return transacted(self.path, self.durability, False, use)

    def _releases(self, file):
        """Return the state, (model, seeded) of all releases, and their plain sum."""
        state = self._state(file)
        with account.suspicious(self.path):
            find = "SELECT DISTINCT model, seeded FROM entries WHERE kind = 'release'"
            return state, file.execute(find).fetchall(), account.plain_sum(file, state)

    def _rows(self, file):
        """Return the state, and all entries."""
        return self._state(file), file.execute("SELECT * FROM entries ORDER BY number").fetchall()

    def _rows_and_totals(self, file):
        return self._rows(file), file.execute("SELECT * FROM totals").fetchall()

    def _state(self, file):
        """Return what holds after the last entry, checked, inside a transaction."""
        known, state = file.known, account.read_state(file, self.path)
        if state is not known or state.terms["uuid"] != self.uuid:  # (what is known was checked when it was read)
            self._check(state)
            file.known = state
        return state

    def _check(self, state):
        """Refuse what is not this ledger or has lost entries."""
        key = self.path, state.terms["uuid"]
        if self.uuid not in (None, key[1]):
            raise LedgerError(f"{self.path} was replaced by another ledger: restore the file of this ledger, or call "
                              "Ledger.open")
        if state.length < _longest.get(key, 0):
            raise LedgerError(f"{self.path} has lost entries, because another program changed it or it is an older "
                              "copy: restore the newest copy")
        _longest[key] = state.length
        remember(self.path)


def _neighbours(name):
    try:
        return Neighbours(name)
    except ValueError:
        raise ValueError(f"neighbours must be one of {[n.value for n in Neighbours]}") from None


def _checked_durability(durability):
    if not isinstance(durability, str) or durability not in _DURABILITIES:
        raise ValueError("durability must be 'full' or 'fast'")
    return durability
