"""What the file of a ledger holds: terms, entries each of which names the one before it, totals; and how it is read.

Amounts are exact fractions, kept as text. A file may have been damaged, or changed by anybody: whatever cannot be read
as what a ledger writes is a LedgerError.
"""

import hashlib
import json
import math
import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from dpestim.exceptions import LedgerError
from dpestim.privacy.neighbours import Neighbours

#: Raised by one whenever the meaning of a ledger's file changes.
FORMAT = 1
#: terms: they never change
TERMS = ("format", "uuid", "created", "epsilon", "delta", "neighbours", "relaxation")
ENTRY = ("time", "kind", "estimator", "columns", "users", "epsilon", "delta", "charged_epsilon", "charged_delta",
         "model", "neighbours", "seeded", "n_rows")
#: what holds after an entry. everybody: charged without a label; label: the most that was charged with any one label
_AFTER = ("everybody_epsilon", "everybody_delta", "label_epsilon", "label_delta")
SCHEMA = f"""
CREATE TABLE terms ({', '.join(TERMS)});
CREATE TABLE entries (number INTEGER PRIMARY KEY, {', '.join((*ENTRY, *_AFTER))}, hash TEXT NOT NULL);
CREATE TABLE totals (users TEXT PRIMARY KEY, epsilon TEXT NOT NULL, delta TEXT NOT NULL) WITHOUT ROWID;
"""
#: the terms and the last entry; an entry changes one page of the file and the header, whose user_version counts entries
_STATE = f"""SELECT {', '.join(f'terms.{name}' for name in TERMS)}, number, hash, {', '.join(_AFTER)}
FROM terms LEFT JOIN (SELECT * FROM entries ORDER BY number DESC LIMIT 1)"""
INSERT_TERMS = f"INSERT INTO terms VALUES ({', '.join('?' * len(TERMS))})"
INSERT = f"INSERT INTO entries VALUES ({', '.join('?' * (len(ENTRY) + len(_AFTER) + 2))})"
_AMOUNT = re.compile("[0-9]+(/[0-9]+)?")
NOTHING = (Fraction(0), Fraction(0))


@dataclass(slots=True)
class State:
    """The terms and what holds after the last entry; amounts are pairs (epsilon, delta) of Fractions or infinities."""

    terms: dict
    relation: Neighbours
    budget: tuple
    length: int = 0
    head: str = ""
    everybody: tuple = NOTHING
    label: tuple = NOTHING
    version: int | None = None  # SQLite's data_version: what a connection knows holds until another one has written

    def after(self, number, head, everybody, label):
        """Return the state after an entry."""
        return State(self.terms, self.relation, self.budget, number, head, everybody, label, self.version)

    @property
    def spent(self):
        """The largest total of anybody, in epsilon and in delta."""
        return tuple(map(add, self.everybody, self.label))


@contextmanager
def suspicious(path):
    """Turn whatever reading fails with into a LedgerError (SQLite's own errors are `_store`'s)."""
    try:
        yield
    except LedgerError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        raise LedgerError(f"{path} is damaged, or was changed from outside: it holds what no ledger writes") from error


def read_state(file, path):
    """Return the state after the last entry; that of the last time where nobody else has written since."""
    version = file.execute("PRAGMA data_version").fetchone()[0]
    if file.known is not None and file.known.version == version:
        return file.known
    with suspicious(path):
        row = file.execute(_STATE).fetchone() or (None,)
        if row[0] != FORMAT:
            raise LedgerError(f"{path} is no ledger of format {FORMAT}")
        terms = dict(zip(TERMS, row))
        if not all(isinstance(value, str) for value in row[1 : len(TERMS)]):
            raise ValueError("terms are text")
        state = State(terms, Neighbours(terms["neighbours"]), (number(terms["epsilon"]), number(terms["delta"])),
                      version=version)
        length, head, *after = row[len(TERMS) :]
        n_entries = file.execute("PRAGMA user_version").fetchone()[0]
        if n_entries != (length or 0):
            raise LedgerError(f"{path} has lost entries: it was changed from outside")
        if length is None:
            return replace(state, head=_first(terms))
        everybody, label = (tuple(map(number, after[k : k + 2])) for k in (0, 2))
        if not isinstance(head, str):
            raise ValueError("hashes are text")
        return state.after(length, head, everybody, label)


def verify(state, rows, totals, path):
    """Check every entry against the hash chain and the totals, or raise LedgerError; returns the chain's head."""
    with suspicious(path):
        head, sums, most = _first(state.terms), {}, list(NOTHING)
        for count, row in enumerate(rows, 1):
            head = link(head, count, row[1:-1])
            changed = row[0] != count or row[-1] != head
            if not changed:  # then what it holds is what was written
                users, *charged = row[5], row[8], row[9]
                sums[users] = [add(a, number(b)) for a, b in zip(sums.get(users, NOTHING), charged)]
                if users:
                    most = [max(a, b) for a, b in zip(most, sums[users])]
                after = (*sums.get("", NOTHING), *most)
                changed = list(row[-1 - len(_AFTER) : -1]) != [text(amount) for amount in after]
            if changed:
                raise LedgerError(f"entry {count} of {path} was changed or removed")
        sums.pop("", None)
        sums = {users: [text(amount) for amount in amounts] for users, amounts in sums.items()}
        if (head, len(rows), sums) != (state.head, state.length, {users: amounts for users, *amounts in totals}):
            raise LedgerError(f"the entries of {path} and its totals do not agree: it was changed from outside")
        return head


def link(head, number, row):
    """Return the hash of an entry, which names the one before it."""
    return hashlib.sha256(json.dumps([head, number, *row]).encode()).hexdigest()


def _first(terms):
    """Return the head of a chain without entries, which names the terms."""
    return link("", 0, [terms[name] for name in TERMS])


# -------------------------------------------------------------------- amounts


def costs(guarantee, relation, relaxation):
    """Return (epsilon, delta) that a release costs in a ledger of this relation and relaxation (as JSON)."""
    # local ones cost the same under substitution (`PrivacyGuarantee.to`, which makes another object)
    if relation is not Neighbours.SUBSTITUTION or guarantee.neighbours is not Neighbours.LOCAL:
        guarantee = guarantee.to(relation)
    relaxed = guarantee.relaxation is not None and json.dumps(guarantee.relaxation) == relaxation
    return guarantee.relaxed_epsilon if relaxed else guarantee.epsilon, guarantee.delta


@lru_cache(maxsize=4096)
def number(text):
    """Return the amount that a text names, or raise ValueError."""
    if text == "inf":
        return math.inf
    if not _AMOUNT.fullmatch(text):  # (Fraction reads "1e999999999", too, and takes its time)
        raise ValueError("an amount is a fraction")
    return Fraction(text)


def text(amount):
    """Return an amount as text."""
    if isinstance(amount, float):
        return "inf"
    above, below = amount.as_integer_ratio()
    if above.bit_length() > 10_000 or below.bit_length() > 10_000:
        raise ValueError("an amount must be a fraction of at most 10,000 bits")
    return str(above) if below == 1 else f"{above}/{below}"


def add(a, b):
    """Return a + b."""
    return math.inf if isinstance(a, float) or isinstance(b, float) else a + b if a and b else a or b


def less(a, b):
    """Return a - b, at least 0."""
    return a if isinstance(a, float) else Fraction(0) if isinstance(b, float) else max(a - b, Fraction(0))
