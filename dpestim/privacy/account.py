"""What the file of a ledger holds: terms, entries each of which names the one before it, totals; and how it is read.

Amounts are exact fractions, kept as text. A file may have been damaged, or changed by anybody: whatever cannot be read
as what a ledger writes is a LedgerError.
"""

import contextlib
import hashlib
import json
import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from json.encoder import encode_basestring_ascii as _quoted

from dpestim.exceptions import LedgerError
from dpestim.privacy.composition import COMPOSITIONS
from dpestim.privacy.exact import ZERO
from dpestim.privacy.guarantee import PrivacyGuarantee
from dpestim.privacy.neighbours import Neighbours

#: The meaning of a ledger's file: 1 where epsilons and deltas add up, 2 where something else does, which terms name.
FORMATS = (1, 2)
#: terms: they never change
TERMS = ("format", "uuid", "created", "epsilon", "delta", "neighbours", "relaxation")
#: ... and those of format 2: the name of the composition, and the amounts of the budget (JSON)
MORE_TERMS = ("composition", "amounts")
#: Kinds of entries. What is given back of a reservation is a negative amount, and names the reservation (`names_of`).
RELEASE, SCORE, RESERVATION, GIVEN_BACK = "release", "non-private score", "reservation", "given back"


class Layout:
    """The columns of a file in which releases add up in a certain way."""

    def __init__(self, way):
        self.way, units = way, way.units
        self.terms = TERMS if way.name == "basic" else TERMS + MORE_TERMS
        self.entry = ("time", "kind", "estimator", "columns", "users", "epsilon", "delta",
                      *(f"charged_{unit}" for unit in units), "model", "neighbours", "seeded", "n_rows")
        self.charged = slice(7, 7 + len(units))  # where these are in an entry
        # what holds after an entry. everybody: charged without a label; label: the most charged with any one label
        self.after = tuple(f"{who}_{unit}" for who in ("everybody", "label") for unit in units)
        self.nothing = (ZERO,) * len(units)
        totals = ", ".join(f"{unit} TEXT NOT NULL" for unit in units)
        self.schema = f"""
CREATE TABLE terms ({', '.join(self.terms)});
CREATE TABLE entries (number INTEGER PRIMARY KEY, {', '.join((*self.entry, *self.after))}, hash TEXT NOT NULL);
CREATE TABLE totals (users TEXT PRIMARY KEY, {totals}) WITHOUT ROWID;
"""
        self.insert_terms = f"INSERT INTO terms VALUES ({', '.join('?' * len(self.terms))})"
        self.insert = f"INSERT INTO entries VALUES ({', '.join('?' * (len(self.entry) + len(self.after) + 2))})"
        # an entry changes one page of the file and the header, whose user_version counts entries
        self.last = f"SELECT number, hash, {', '.join(self.after)} FROM entries ORDER BY number DESC LIMIT 1"
        self.total = f"SELECT {', '.join(units)} FROM totals WHERE users = ?"
        self.all_totals = f"SELECT {', '.join(units)} FROM totals"
        held = ", ".join(self.entry[self.charged])
        self.reservation = f"SELECT users, estimator, {held} FROM entries WHERE number = ? AND kind = '{RESERVATION}'"
        self.given_back = f"SELECT {held} FROM entries WHERE number > ? AND kind = '{GIVEN_BACK}' AND columns = ?"
        self.insert_total = f"INSERT OR REPLACE INTO totals VALUES (?{', ?' * len(units)})"


LAYOUTS = {name: Layout(way) for name, way in COMPOSITIONS.items()}
#: Bits of a denominator from which on sums are rounded up, and to which multiple.
_LONGEST, _GRID = 4096, 1 << 1024
_AMOUNT = re.compile("[0-9]+(/[0-9]+)?")
#: Of nothing: it is copied, and never changed.
_SHA256 = hashlib.sha256()


@dataclass(slots=True)
class State:
    """The terms and what holds after the last entry; amounts are tuples, of a Fraction or infinity for each unit."""

    layout: Layout
    terms: dict
    relation: Neighbours
    budget: tuple
    everybody: tuple
    label: tuple
    length: int = 0
    head: str = ""
    version: int | None = None  # SQLite's data_version: what a connection knows holds until another one has written
    written: list | tuple = ()  # texts of everybody and label: an entry changes few of them

    def after(self, length, head, everybody, label, written=()):
        """Return the state after an entry."""
        return State(self.layout, self.terms, self.relation, self.budget, everybody, label, length, head, self.version,
                     written)

    def plainly(self, entries):
        """Return the state after what `dpestim._core.entry` entered."""
        everybody = (number(entries.total), *self.everybody[1:])
        return self.after(entries.length, entries.head, everybody, self.label, self.texts(everybody, self.label))

    def texts(self, everybody, label):
        """Return these amounts as texts."""
        if not self.written:
            return [*map(text, everybody), *map(text, label)]
        return [known if new is old else text(new) for new, old, known in zip(
            (*everybody, *label), (*self.everybody, *self.label), self.written)]

    @property
    def spent(self):
        """The largest total of anybody, in each unit."""
        return tuple(map(add, self.everybody, self.label))


@contextlib.contextmanager
def suspicious(path):
    """Turn whatever reading fails with into a LedgerError (SQLite's own errors are `_store`'s)."""
    try:
        yield
    except LedgerError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        raise LedgerError(f"{path} is damaged, or was changed by another program: restore a backup, or open a new "
                          "ledger") from error


def read_state(file, path):
    """Return the state after the last entry; that of the last time where nobody else has written since."""
    version = file.execute("PRAGMA data_version").fetchone()[0]
    known = file.known
    if known is not None and known.version == version:
        return known
    with suspicious(path):
        found = file.execute("SELECT * FROM terms")
        names, row = tuple(column[0] for column in found.description), found.fetchone() or (None,)
        if row[0] not in FORMATS:
            raise LedgerError(f"{path} is not a ledger of format {' or '.join(map(str, FORMATS))}: open it with the "
                              "version of dpestim that wrote it")
        if not all(isinstance(value, str) for value in row[1:]):
            raise ValueError("terms are text")
        layout = LAYOUTS["basic" if row[0] == 1 else row[len(TERMS)]]
        if names != layout.terms:
            raise ValueError("terms have names")
        if _written_in(file) != _schema(layout):
            raise LedgerError(f"{path} was changed by another program, which added tables, triggers or indices: "
                              "restore a backup")
        terms = dict(zip(names, row))
        budget = json.loads(terms["amounts"]) if row[0] == 2 else (terms["epsilon"], terms["delta"])
        state = State(layout, terms, Neighbours(terms["neighbours"]), tuple(map(number, budget)), layout.nothing,
                      layout.nothing, version=version)
        length, head, *after = file.execute(layout.last).fetchone() or (None, None)
        n_entries = file.execute("PRAGMA user_version").fetchone()[0]
        if n_entries != (length or 0):
            raise LedgerError(f"{path} has lost entries, because another program changed it: restore a backup")
        if length is None:
            return replace(state, head=_first(state))
        n = len(layout.way.units)
        if len(state.budget) != n or not isinstance(head, str):
            raise ValueError("amounts belong to units, and hashes are text")
        return state.after(length, head, *(tuple(map(number, part)) for part in (after[:n], after[n:])))


def _written_in(file):
    """Return what is defined in a file: a trigger that somebody planted could undo what is charged."""
    found = file.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return sorted((*names, " ".join(str(sql).split())) for *names, sql in found)


@lru_cache(maxsize=8)
def _schema(layout):
    """Return what is defined in the file of a new ledger."""
    import sqlite3

    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(layout.schema)
        return _written_in(connection)


def verify(state, rows, totals, path):
    """Check every entry against the hash chain and the totals, or raise LedgerError; returns the chain's head."""
    with suspicious(path):
        layout = state.layout
        nothing = layout.nothing
        head, sums, rests, most = _first(state), {}, {}, list(nothing)
        for count, row in enumerate(rows, 1):
            head = link(head, count, row[1:-1])
            changed = row[0] != count or row[-1] != head
            if not changed:  # then what it holds is what was written
                kind, _, columns, users = row[2:6]
                charged = [signed(kind, amount) for amount in row[1:][layout.charged]]
                sums[users] = [add(a, b) for a, b in zip(sums.get(users, nothing), charged)]
                if kind == RESERVATION:
                    rests[users, names_of(count)] = charged
                elif kind == GIVEN_BACK:  # (of a reservation that there is, and no more than it has)
                    rests[users, columns] = [a + b for a, b in zip(rests[users, columns], charged)]
                    changed = min(rests[users, columns]) < 0
                if users:  # (a total that fell may have been the largest)
                    fell = kind == GIVEN_BACK
                    most = list(map(max, *([sums[label] for label in sums if label] if fell else [most, sums[users]]),
                                    nothing))
                after = (*sums.get("", nothing), *most)
                changed |= list(row[-1 - len(layout.after) : -1]) != [text(amount) for amount in after]
            if changed:
                raise LedgerError(f"entry {count} of {path} was changed or removed by another program: restore a "
                                  "backup")
        sums.pop("", None)
        sums = {users: [text(amount) for amount in amounts] for users, amounts in sums.items()}
        if (head, len(rows), sums) != (state.head, state.length, {users: amounts for users, *amounts in totals}):
            raise LedgerError(f"the entries of {path} do not add up to its totals, because another program changed it: "
                              "restore a backup")
        return head


def link(head, number, row):
    """Return the hash of an entry, which names the one before it."""
    # (the text is that of json.dumps for the whole list, in a third of the time)
    written = [_quoted(value) if type(value) is str else str(value) if type(value) is int else
               "null" if value is None else json.dumps(value) for value in (head, number, *row)]
    found = _SHA256.copy()  # (a new one would have the library look for its code)
    found.update(f"[{', '.join(written)}]".encode())
    return found.hexdigest()


def _first(state):
    """Return the head of a chain without entries, which names the terms."""
    return link("", 0, [state.terms[name] for name in state.layout.terms])


# -------------------------------------------------------------------- amounts


def costs(guarantee, state):
    """Return the amounts that a release costs in a ledger."""
    relation = state.relation
    # local ones cost the same under substitution (`PrivacyGuarantee.to`, which makes another object)
    if relation is not Neighbours.SUBSTITUTION or guarantee.neighbours is not Neighbours.LOCAL:
        guarantee = guarantee.to(relation)
    relaxed = guarantee.relaxation is not None and json.dumps(guarantee.relaxation) == state.terms["relaxation"]
    return state.layout.way.costs(guarantee, relaxed)


def plain_sum(file, state):
    """Return the largest sum of epsilons of anybody where every release is pure; infinity otherwise.

    It is what a ledger of converted amounts promises besides: read from the entries, no filter, and not in the totals.
    """
    if state.layout.way.name == "basic":  # whose totals are these sums
        return math.inf
    find = "SELECT users, epsilon, delta, neighbours, COUNT(*) FROM entries WHERE kind = 'release' GROUP BY 1, 2, 3, 4"
    sums = {"": Fraction(0)}
    for users, epsilon, delta, neighbours, count in file.execute(find):
        one = PrivacyGuarantee(number(epsilon), number(delta), "central", Neighbours(neighbours)).to(state.relation)
        sums[users] = add(sums.get(users, Fraction(0)), math.inf if one.delta else count * one.epsilon)
    return add(sums.pop(""), max(sums.values(), default=Fraction(0)))


@lru_cache(maxsize=4096)
def number(text):
    """Return the amount that a text names, or raise ValueError."""
    if text == "inf":
        return math.inf
    if text == "0":
        return ZERO
    if not _AMOUNT.fullmatch(text):  # (Fraction reads "1e999999999", too, and takes its time)
        raise ValueError("an amount is a fraction")
    return Fraction(text)


def signed(kind, text_):
    """Return the amount of an entry, which is negative where something is given back."""
    if kind != GIVEN_BACK:
        return number(text_)
    amount = -Fraction(number(text_.removeprefix("-")))
    if text(amount) != text_:
        raise ValueError("what is given back is a negative fraction")
    return amount


@lru_cache(maxsize=256)
def names(columns):
    """Return the names of columns as an entry keeps them."""
    return json.dumps(columns)


def names_of(number):
    """Return what an entry that gives back has in place of columns: the number of its reservation."""
    return names((f"entry {number}",))


def text(amount):
    """Return an amount as text."""
    if amount is ZERO:
        return "0"
    if isinstance(amount, float):
        return "inf"
    above, below = amount.as_integer_ratio()
    if not above:
        return "0"
    if above.bit_length() > 10_000 or below.bit_length() > 10_000:
        raise ValueError("an amount must be a fraction of at most 10,000 bits")
    return str(above) if below == 1 else f"{above}/{below}"


def add(a, b):
    """Return a + b; where its denominator is very large, the next multiple of 2^-1024: no sum grows without end.

    Many amounts of other denominators (shares by 7, 11, 13, ...) would add up to a fraction that cannot be written.
    """
    if b is ZERO:
        return a
    if a is ZERO:
        return b
    if isinstance(a, float) or isinstance(b, float):
        return math.inf
    (above, below), (more, under) = a.as_integer_ratio(), b.as_integer_ratio()
    if not more:
        return a
    if not above:
        return b
    total, whole = above * under + more * below, below * under  # (`a + b` makes eight calls)
    if whole.bit_length() > _LONGEST:
        total, whole = Fraction(total, whole).as_integer_ratio()
        if whole.bit_length() > _LONGEST:
            total, whole = -(-total * _GRID // whole), _GRID
    return Fraction(total, whole)


def down(amount):
    """Return an amount with a denominator that can be written, at most 2^-1024 less."""
    long = not isinstance(amount, float) and amount.denominator.bit_length() > _LONGEST
    return Fraction(math.floor(amount * _GRID), _GRID) if long else amount


def less(a, b):
    """Return a - b, at least 0."""
    return a if isinstance(a, float) else Fraction(0) if isinstance(b, float) else max(a - b, Fraction(0))
