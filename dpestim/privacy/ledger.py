"""The ledger: a SQLite file in which every release is entered before its words are drawn.

A handle is a path, a UUID and a label of users; it holds no state, so clones, pickles, threads and forked or spawned
processes all write to the one file. An entry, the totals and the head of the hash chain change in one transaction that
takes the write lock before it reads (``BEGIN IMMEDIATE``): no two processes can both see the last unit of budget.
Amounts are exact fractions, kept as text.
"""

import hashlib
import json
import math
import os
import secrets
import tempfile
import unicodedata
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from dpestim.exceptions import BudgetExceededError, LedgerError
from dpestim.privacy import ambient
from dpestim.privacy._store import create, remember, transaction
from dpestim.privacy._text import bound
from dpestim.privacy.exact import canonical_amount
from dpestim.privacy.guarantee import PrivacyGuarantee
from dpestim.privacy.neighbours import Neighbours

#: Raised by one whenever the meaning of a ledger's file changes.
FORMAT = 1
#: terms: they never change
_TERMS = ("format", "uuid", "created", "epsilon", "delta", "neighbours", "relaxation")
_ENTRY = ("time", "kind", "estimator", "columns", "users", "epsilon", "delta", "charged_epsilon", "charged_delta",
          "model", "neighbours", "seeded", "n_rows")
#: what holds after an entry. everybody: charged without a label; label: the most that was charged with any one label
_AFTER = ("everybody_epsilon", "everybody_delta", "label_epsilon", "label_delta")
_SCHEMA = f"""
CREATE TABLE terms ({', '.join(_TERMS)});
CREATE TABLE entries (number INTEGER PRIMARY KEY, {', '.join((*_ENTRY, *_AFTER))}, hash TEXT NOT NULL);
CREATE TABLE totals (users TEXT PRIMARY KEY, epsilon TEXT NOT NULL, delta TEXT NOT NULL) WITHOUT ROWID;
"""
#: the terms and the last entry; an entry changes one page of the file and the header, whose user_version counts entries
_STATE = f"""SELECT {', '.join(f'terms.{name}' for name in _TERMS)}, number, hash, {', '.join(_AFTER)}
FROM terms LEFT JOIN (SELECT * FROM entries ORDER BY number DESC LIMIT 1)"""
_INSERT = f"INSERT INTO entries VALUES ({', '.join('?' * (len(_ENTRY) + len(_AFTER) + 2))})"


#: (path, UUID) -> the most entries that this process has seen there
_longest = {}


class Ledger:
    """A budget, and the account of everything that was spent from it.

    Each release is charged in one transaction *before* its random words are drawn; what would overdraw is refused and
    costs nothing; what failed after it was charged stays charged. Pass it as ``ledger=`` or open a block, ``with
    ledger:``, which pays for every estimator that is made, cloned or pickled in it, in any thread and in worker
    processes, also when it is used later. (An estimator that code in a worker process makes by itself is not seen:
    give it ``ledger=``.)

    **Privacy.** Charges add up (basic composition, valid for budgets chosen adaptively, also after looking at results).
    Entries for different labels of `for_users` concern different people and cost the maximum; entries without a label
    may concern anybody and are added to every label. A finite ledger refuses a release without a guarantee.

    **Complexity.** A charge takes about a millisecond, most of it the disk's (``durability="full"``), or about a fifth
    of that (``"fast"``), whatever the number of entries; opening verifies every entry.

    Parameters
    ----------
    epsilon : float or Fraction
        The budget, above 0; exactly what its shortest decimal form names. ``math.inf`` keeps accounts and refuses
        nothing.
    delta : float or Fraction, default=0
        The budget of delta, in [0, 1).
    path : str or path-like, default=None
        The file. One that exists is joined: its budget, relation and relaxation must be the same. None makes a file in
        the system's folder for temporary files, which stays there, because a handle may outlive this process.
    neighbours : {"substitution", "add_remove", "local"}, default="substitution"
        The one relation of the account. Charges are converted where that is possible (`PrivacyGuarantee.to`): local
        ones count as they are under substitution, add_remove ones double.
    relaxation : str, default=None
        The name of a relaxed model, as in ``PrivacyGuarantee.relaxation``: its releases cost their `relaxed_epsilon`.
    durability : {"full", "fast"}, default="full"
        Whether an entry is on the disk before anything is drawn, or with the operating system only: "fast" survives the
        death of processes, not of the machine.

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
    """

    def __init__(self, epsilon, *, delta=0, path=None, neighbours="substitution", relaxation=None, durability="full"):
        if isinstance(epsilon, str | os.PathLike):
            raise ValueError("epsilon must be a number: a ledger that exists is opened by Ledger.open(path)")
        terms = {
            "epsilon": str(canonical_amount(epsilon, "epsilon")),
            "delta": str(canonical_amount(delta, "delta")),
            "neighbours": _neighbours(neighbours).value,
            "relaxation": json.dumps(relaxation),
        }
        if terms["epsilon"] == "0" or Fraction(terms["delta"]) >= 1:
            raise ValueError("epsilon must be above 0 and delta below 1")
        if relaxation is not None and not (isinstance(relaxation, str) and relaxation):
            raise ValueError("relaxation must be None or the name of a relaxed model")
        if durability not in ("full", "fast"):
            raise ValueError("durability must be 'full' or 'fast'")
        self.durability, self.users = durability, ""
        if path is None:
            self.path = os.path.realpath(
                Path(tempfile.gettempdir()) / f"dpestim-ledger-{os.getpid()}-{secrets.token_hex(8)}.sqlite"
            )
        else:
            self.path = _real(path)
        if not os.path.lexists(self.path):
            self._create(terms)
        self.uuid = None
        meta = self._meta()
        self.uuid = meta["uuid"]
        different = [name for name, value in terms.items() if meta[name] != value]
        if different:
            raise LedgerError(f"{self.path} is a ledger of another {' and '.join(different)}: join it with the same "
                              "terms, or use Ledger.open")
        self.verify()

    @classmethod
    def open(cls, path, *, durability="full"):
        """Return a handle of a ledger that exists, with whatever terms it has.

        Parameters
        ----------
        path : str or path-like
        durability : {"full", "fast"}, default="full"
        """
        ledger = cls._handle(_real(path), None, "", durability)
        ledger.uuid = ledger._meta()["uuid"]
        ledger.verify()
        return ledger

    def for_users(self, label):
        """Return a handle whose charges carry a label: the public name of a set of people.

        Sets of different labels must have nobody in common, and who belongs to one must not depend on private values;
        then nobody pays for the releases about another set.

        Parameters
        ----------
        label : str
        """
        if not isinstance(label, str) or not label or not label.isprintable():
            raise ValueError("label must be a printable string that names a set of people")
        return self._handle(self.path, self.uuid, unicodedata.normalize("NFC", label), self.durability)

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
        if not isinstance(guarantee, PrivacyGuarantee):
            raise ValueError("guarantee must be a dpestim.privacy.PrivacyGuarantee")
        return self._enter("release", guarantee, estimator, n_rows, columns)

    def record_score(self, *, estimator="", n_rows=None):
        """Enter, at epsilon 0 and flagged, that raw data were compared with: an exact release that nobody meters."""
        nothing = PrivacyGuarantee(0, model="central", neighbours=Neighbours.SUBSTITUTION)
        return self._enter("non-private score", nothing, estimator, n_rows, ())

    def _enter(self, kind, guarantee, estimator, n_rows, columns):
        with self._transaction() as (connection, meta):
            relation = Neighbours(meta["neighbours"])
            epsilon, delta = ("0", "0") if kind != "release" else _amounts(guarantee, relation, meta["relaxation"])
            after = self._add_to_totals(connection, meta, epsilon, delta, guarantee)
            public = relation is not Neighbours.ADD_REMOVE and guarantee.neighbours is not Neighbours.ADD_REMOVE
            number, head = meta["length"] + 1, meta["head"]
            row = (
                datetime.now(UTC).isoformat(timespec="microseconds"), kind, str(estimator),
                json.dumps([str(c) for c in columns]), self.users, _text(guarantee.epsilon), _text(guarantee.delta),
                epsilon, delta, guarantee.model, guarantee.neighbours.value,
                {True: "yes", False: "no", None: "unknown"}[guarantee.seeded],
                int(n_rows) if n_rows is not None and public else None,
                *after,
            )
            connection.execute(_INSERT, (number, *row, _link(head, number, row)))
            connection.execute(f"PRAGMA user_version = {number}")
        _longest[self.path, self.uuid] = max(number, _longest.get((self.path, self.uuid), 0))
        return number

    def _add_to_totals(self, connection, meta, epsilon, delta, guarantee):
        """Add an amount to its users' total, or raise BudgetExceededError; returns what holds then."""
        if self.users:
            find = "SELECT epsilon, delta FROM totals WHERE users = ?"
            before = connection.execute(find, (self.users,)).fetchone() or ("0", "0")
        else:
            before = meta["everybody_epsilon"], meta["everybody_delta"]
        mine, after = [], {name: meta[name] for name in _AFTER}
        for name, old, needed in zip(("epsilon", "delta"), before, (epsilon, delta)):
            new = _add(old, needed)
            everybody, label = f"everybody_{name}", f"label_{name}"
            if self.users:
                after[label] = max(meta[label], new, key=_number)
            else:
                after[everybody] = new
            beside = meta[everybody if self.users else label]
            if needed != "0" and _number(_add(new, beside)) > _number(meta[name]):
                left = _less(meta[name], _add(old, beside))
                notes = " ".join(guarantee.notes)
                people = f" for {self.users!r}" if self.users else ""
                raise BudgetExceededError(
                    f"this release needs {name} = {_shown(needed)} and {_shown(left, down=True)} of "
                    f"{_shown(meta[name])} is left{people}: Ledger.open({self.path!r}).report() shows what was spent."
                    + (" A ledger has the delta that it was opened with." if name == "delta" else "")
                    + (f" {notes}" if notes and needed == "inf" else "")
                )
            mine.append(new)
        if self.users:
            connection.execute("INSERT OR REPLACE INTO totals VALUES (?, ?, ?)", (self.users, *mine))
        return after.values()

    # ---------------------------------------------------------------- reading

    def spent(self):
        """Return what was spent, as a `PrivacyGuarantee`: the largest total of anybody, in epsilon and in delta."""
        with self._transaction(write=False) as (connection, meta):
            find = "SELECT DISTINCT model, seeded FROM entries WHERE kind = 'release'"
            seen = connection.execute(find).fetchall()
        models, seeds = {model for model, _ in seen}, {seeded for _, seeded in seen}
        notes = () if seen else ("Nothing has been charged yet.",)
        if meta["relaxation"] != "null":
            notes += (f"This is epsilon under the relaxation {meta['relaxation']}, without which there may be none.",)
        return self._guarantee(meta, _spent, models.pop() if len(models) == 1 else "central",
                               True if "yes" in seeds else None if "unknown" in seeds else False, notes)

    def remaining(self):
        """Return what is left, as a `PrivacyGuarantee`, for somebody about whom most was released."""
        meta = self._meta()
        notes = ("This is what is left of a budget, and no promise about a release.",)
        return self._guarantee(meta, lambda m, name: _less(m[name], _spent(m, name)), "central", False, notes)

    def _guarantee(self, meta, amount, model, seeded, notes):
        epsilon, delta = (_number(amount(meta, name)) for name in ("epsilon", "delta"))
        return PrivacyGuarantee(epsilon, delta, model, Neighbours(meta["neighbours"]), seeded, notes)

    def entries(self):
        """Return every entry, oldest first: a list of dicts; amounts are Fractions, or infinite."""
        with self._transaction(write=False) as (connection, _):
            rows = connection.execute("SELECT * FROM entries ORDER BY number").fetchall()
        names = ("number", *_ENTRY)
        out = [{**dict(zip(names, row)), "hash": row[-1]} for row in rows]
        for entry in out:
            entry["columns"] = json.loads(entry["columns"])
            for name in ("epsilon", "delta", "charged_epsilon", "charged_delta"):
                entry[name] = _number(entry[name])
        return out

    def __len__(self):
        return self._meta()["length"]

    def __bool__(self):
        return True  # also without entries: `ledger or Ledger(1)` must not open another budget

    def to_frame(self):
        """Return a pandas frame with one row an entry; `epsilon` and `delta` are exact Fractions (dtype object)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'dpestim[pandas]'") from error

        frame = pd.DataFrame(self.entries(), columns=["number", *_ENTRY, "hash"])
        return frame.assign(time=pd.to_datetime(frame["time"], utc=True), n_rows=frame["n_rows"].astype("Int64"))

    def report(self, format="text"):
        """Return the account as a page to read: budget, spent, remaining, and what was spent by estimator.

        Parameters
        ----------
        format : {"text", "html"}, default="text"
        """
        from dpestim.privacy._report import as_html, as_text  # only here: most processes never print one

        if format not in ("text", "html"):
            raise ValueError("format must be 'text' or 'html'")
        self.verify()
        with self._transaction(write=False) as (_, meta):
            pass
        facts = {"path": self.path, "meta": meta, "spent": self.spent(), "remaining": self.remaining(),
                 "entries": self.entries()}
        return (as_text if format == "text" else as_html)(facts)

    def _repr_html_(self):
        return self.report("html")

    def verify(self):
        """Check every entry against the hash chain and the totals; raises LedgerError; returns the chain's head.

        The chain shows that entries were changed or removed to whoever kept an earlier head (printed by `report`). It
        cannot show that the whole file was replaced.
        """
        with self._transaction(write=False) as (connection, meta):
            rows = connection.execute("SELECT * FROM entries ORDER BY number").fetchall()
            totals = {users: amounts for users, *amounts in connection.execute("SELECT * FROM totals")}
        head, sums, most = _first(meta), {}, ["0", "0"]
        for number, row in enumerate(rows, 1):
            head = _link(head, number, row[1:-1])
            changed = row[0] != number or row[-1] != head
            if not changed:  # then what it holds is what was written
                users, *charged = row[5], row[8], row[9]
                sums[users] = [_add(a, b) for a, b in zip(sums.get(users, ("0", "0")), charged)]
                if users:
                    most = [max(a, b, key=_number) for a, b in zip(most, sums[users])]
                changed = list(row[1 + len(_ENTRY) : -1]) != [*sums.get("", ("0", "0")), *most]
            if changed:
                raise LedgerError(f"entry {number} of {self.path} was changed or removed")
        sums.pop("", None)
        if (head, len(rows), sums) != (meta["head"], meta["length"], totals):
            raise LedgerError(f"the entries of {self.path} and its totals do not agree: it was changed from outside")
        return head

    # ---------------------------------------------------------------- the block, copies, pickles

    def __enter__(self):
        ambient.enter(self)
        return self

    def __exit__(self, *_):
        ambient.leave(self)

    def __sklearn_clone__(self):
        return self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _handle, (type(self), self.path, self.uuid, self.users, self.durability)

    def __eq__(self, other):
        return isinstance(other, Ledger) and (self.uuid, self.users) == (other.uuid, other.users)

    def __hash__(self):
        return hash((self.uuid, self.users))

    def __repr__(self):
        label = f".for_users({self.users!r})" if self.users else ""
        return f"Ledger.open({self.path!r}){label}"

    @classmethod
    def _handle(cls, path, name, users, durability):
        ledger = cls.__new__(cls)
        ledger.path, ledger.uuid, ledger.users, ledger.durability = path, name, users, durability
        return ledger

    # ---------------------------------------------------------------- inside

    def _create(self, terms):
        terms = {"format": FORMAT, "uuid": str(uuid.uuid4()), "created": datetime.now(UTC).isoformat(), **terms}
        insert = f"INSERT INTO terms VALUES ({', '.join('?' * len(_TERMS))})"
        create(self.path, _SCHEMA, insert, [terms[name] for name in _TERMS])

    def _meta(self):
        with self._transaction(write=False) as (_, meta):
            return meta

    @contextmanager
    def _transaction(self, write=True):
        """Yield (connection, meta) inside one transaction, which an exception rolls back."""
        with transaction(self.path, self.durability, write) as connection:
            row = connection.execute(_STATE).fetchone()
            meta = dict(zip((*_TERMS, "length", "head", *_AFTER), row or ()))
            self._check(meta, connection.execute("PRAGMA user_version").fetchone()[0])
            yield connection, meta

    def _check(self, meta, n_entries):
        """Refuse what is not this ledger or has lost entries; give a ledger without entries its first state."""
        if meta.get("format") != FORMAT:
            raise LedgerError(f"{self.path} is no ledger of format {FORMAT}")
        if self.uuid is not None and meta["uuid"] != self.uuid:
            raise LedgerError(f"{self.path} is another ledger than the one of this handle")
        if meta["length"] is None:
            meta.update(dict.fromkeys(_AFTER, "0"), length=0, head=_first(meta))
        seen = _longest.get((self.path, meta["uuid"]), 0)
        if meta["length"] != n_entries or n_entries < seen:
            raise LedgerError(f"{self.path} has lost entries: it was changed from outside, or is an older copy")
        _longest[self.path, meta["uuid"]] = max(n_entries, seen)
        remember(self.path)


def _handle(cls, path, name, users, durability):
    """Rebuild a pickled handle; the file is looked at when it is next used."""
    return cls._handle(path, name, users, durability)


def _neighbours(name):
    try:
        return Neighbours(name)
    except ValueError:
        raise ValueError(f"neighbours must be one of {[n.value for n in Neighbours]}") from None


def _link(head, number, row):
    """Return the hash of an entry, which names the one before it."""
    return hashlib.sha256(json.dumps([head, number, *row]).encode()).hexdigest()


def _spent(meta, name):
    """Return the largest total of anybody, in epsilon or in delta."""
    return _add(meta[f"everybody_{name}"], meta[f"label_{name}"])


def _first(meta):
    """Return the head of a chain without entries, which names the terms."""
    return _link("", 0, [meta[name] for name in _TERMS])


@lru_cache(maxsize=1024)
def _amounts(guarantee, relation, relaxation):
    """Return epsilon and delta that a release costs in a ledger of this relation and relaxation."""
    charged = guarantee.to(relation)
    relaxed = charged.relaxation is not None and json.dumps(charged.relaxation) == relaxation
    return _text(charged.relaxed_epsilon if relaxed else charged.epsilon), _text(charged.delta)


@lru_cache(maxsize=4096)
def _number(text):
    return math.inf if text == "inf" else Fraction(text)


def _text(amount):
    if amount != math.inf and max(amount.numerator, amount.denominator).bit_length() > 10_000:
        raise ValueError("an amount must be a fraction of at most 10,000 bits")
    return "inf" if amount == math.inf else str(Fraction(amount))


def _add(a, b):
    return _text(_number(a) + _number(b))


def _less(a, b):
    """Return a - b, at least 0."""
    return a if a == "inf" else "0" if b == "inf" else _text(max(_number(a) - _number(b), 0))


def _shown(text, down=False):
    return bound(_number(text), down)


def _real(path):
    return os.path.realpath(os.fsdecode(path))
