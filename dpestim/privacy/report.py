"""A ledger's account as a page to read, in text, in HTML and as a picture; sees facts, never a file."""

import math
from fractions import Fraction
from html import escape

from dpestim.privacy.account import GIVEN_BACK, RESERVATION, SCORE, names, names_of
from dpestim.privacy.text import bound
from dpestim.tables import Table, as_lines


class Account(Table):
    """What was charged to a ledger, by estimator, users and amount; text and HTML begin with budget, spent and left."""

    _n_labels = 3

    def __init__(self, facts):
        way, state = facts["way"], facts["state"]
        self._shown, self._facts = [way.units[k] for k in way.shown(state.spent, state.budget)], _facts(facts)
        self._groups = _groups(facts, self._shown)
        self.privacy = facts["spent"]
        self._plotted = (f"charged_{self._shown[0]}", None, None)

    def __str__(self):
        head, rows = self._head(), list(self._rows())
        return "\n".join([*(f"{name + ':':<19}{value}" for name, value in self._facts), "",
                          *as_lines(head, rows, len(head))])

    def _repr_html_(self):
        facts = "".join(f"<dt><b>{name}</b></dt><dd>{escape(str(value))}</dd>" for name, value in self._facts)
        return super()._repr_html_().replace(">", f"><dl>{facts}</dl>", 1)

    def _head(self):
        names = [unit.replace("_", " ") for unit in self._shown]
        return "kind", "estimator", "users", "times", f"{names[0]} each", *names

    def _rows(self):
        for (kind, estimator, users, each), (n, *totals) in self._groups.items():
            yield kind, estimator or "?", users or "(all)", str(n), bound(each[0]), *map(bound, totals)

    def _columns(self):
        return "kind", "estimator", "users", "times", *(f"charged_{unit}" for unit in self._shown)

    def _records(self):
        for (kind, estimator, users, _), (n, *totals) in self._groups.items():
            yield kind, estimator or "?", users or "(all)", n, *totals


def _groups(facts, shown):
    """Return, for each (kind, estimator, users, amounts), how often, and what was charged in all."""
    groups = {}
    for e in facts["entries"]:
        if e["kind"] in (RESERVATION, GIVEN_BACK):
            continue  # (what is left of reservations is a fact of its own)
        each = tuple(e[f"charged_{unit}"] for unit in shown)
        key = (e["kind"], e["estimator"], e["users"], each)
        count, *totals = groups.get(key, (0, *(0 for _ in shown)))
        groups[key] = (count + 1, *(total + one for total, one in zip(totals, each)))
    return groups


def _reserved(facts):
    """Return what is set aside, in words: for whom, how much, and the number of the entry."""
    way, state, open_ = facts["way"], facts["state"], {}
    unit = way.units[way.shown(state.spent, state.budget)[0]]
    for e in facts["entries"]:
        if e["kind"] == RESERVATION:
            open_[names_of(e["number"])] = e["number"], e["estimator"] or "?", e[f"charged_{unit}"]
        elif e["kind"] == GIVEN_BACK:
            *what, left = open_[names(tuple(e["columns"]))]
            open_[names(tuple(e["columns"]))] = *what, left + e[f"charged_{unit}"]
    return [f"{unit.replace('_', ' ')} = {bound(left)} for {who} (entry {number}; in spent, until it is given back)"
            for number, who, left in open_.values() if left]


def _facts(facts):
    meta = facts["terms"]
    budget = f"epsilon = {_budget(meta['epsilon'])}, delta = {_budget(meta['delta'])}"
    spent, state = facts["spent"], facts["state"]
    return (
        ("budget", f"{budget}, for {meta['neighbours']} neighbours"
                   + (f", under the relaxation {meta['relaxation']}" if meta["relaxation"] != "null" else "")),
        ("composition", facts["way"].title),
        ("spent", f"epsilon = {bound(spent.epsilon)}, delta = {bound(spent.delta)} (for the users who spent most)"),
        ("remaining", facts["way"].remains(state.spent, state.budget)),
        *(("set aside", found) for found in _reserved(facts)),
        ("entries", facts["length"]),
        ("not private", f"{sum(e['kind'] == SCORE for e in facts['entries'])} scores compared with raw data; "
                        f"{sum(e['seeded'] == 'yes' for e in facts['entries'])} releases with a seed"),
        ("ledger", f"{meta['uuid']}, since {meta['created'][:19]} UTC"),
        ("file", facts["path"]),
        ("head of the chain", facts["head"]),
    )


def _budget(text):
    return bound(math.inf if text == "inf" else Fraction(text), down=True)
