"""A ledger's account as a page to read, in text and in HTML; sees facts, never a file."""

import math
from fractions import Fraction
from html import escape

from dpestim.privacy.account import GIVEN_BACK, RESERVATION, SCORE, names, names_of
from dpestim.privacy.text import bound


def _table(facts):
    """Return the head, and a row for each (estimator, users, kind, amount): how often, and what was charged in all."""
    way, state = facts["way"], facts["state"]
    shown, groups = [way.units[k] for k in way.shown(state.spent, state.budget)], {}
    for e in facts["entries"]:
        if e["kind"] in (RESERVATION, GIVEN_BACK):
            continue  # (what is left of reservations is a fact of its own)
        each = tuple(e[f"charged_{unit}"] for unit in shown)
        key = (e["kind"], e["estimator"], e["users"], each)
        count, *totals = groups.get(key, (0, *(0 for _ in shown)))
        groups[key] = (count + 1, *(total + one for total, one in zip(totals, each)))
    names = [unit.replace("_", " ") for unit in shown]
    return ("kind", "estimator", "users", "times", f"{names[0]} each", *names), [
        (kind, estimator or "?", users or "(all)", str(n), bound(each[0]), *map(bound, totals))
        for (kind, estimator, users, each), (n, *totals) in groups.items()
    ]


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


def as_text(facts):
    """Return the account as lines of text."""
    lines = [f"{name + ':':<19}{value}" for name, value in _facts(facts)]
    head, rows = _table(facts)
    rows = [head, *rows]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    lines += ["", *("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows)]
    return "\n".join(lines)


def as_html(facts):
    """Return the account as a self-contained piece of HTML."""
    head, rows = _table(facts)
    head = "".join(f"<th>{name}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    facts = "".join(f"<dt><b>{name}</b></dt><dd>{escape(str(value))}</dd>" for name, value in _facts(facts))
    return (f"<div style='font-family:sans-serif;max-width:60em'><dl>{facts}</dl>"
            f"<table style='border-spacing:1em 0;text-align:left'><tr>{head}</tr>{body}</table></div>")


def _budget(text):
    return bound(math.inf if text == "inf" else Fraction(text), down=True)
