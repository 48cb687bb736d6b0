"""A ledger's account as a page to read, in text and in HTML; sees facts, never a file."""

import math
from fractions import Fraction
from html import escape

from dpestim.privacy._text import bound


def _rows(entries):
    """Return one row for each (estimator, users, kind, amount): how often, and what it was charged in all."""
    groups = {}
    for e in entries:
        key = (e["kind"], e["estimator"], e["users"], e["charged_epsilon"], e["charged_delta"])
        count, epsilon, delta = groups.get(key, (0, 0, 0))
        groups[key] = (count + 1, epsilon + e["charged_epsilon"], delta + e["charged_delta"])
    return [
        (kind, estimator or "?", users or "(all)", str(n), bound(one), bound(total), bound(delta))
        for (kind, estimator, users, one, _), (n, total, delta) in groups.items()
    ]


_HEAD = ("kind", "estimator", "users", "times", "epsilon each", "epsilon", "delta")


def _facts(facts):
    meta = facts["terms"]
    budget = f"epsilon = {_budget(meta['epsilon'])}, delta = {_budget(meta['delta'])}"
    spent, left = facts["spent"], facts["remaining"]
    return (
        ("budget", f"{budget}, for {meta['neighbours']} neighbours"
                   + (f", under the relaxation {meta['relaxation']}" if meta["relaxation"] != "null" else "")),
        ("spent", f"epsilon = {bound(spent.epsilon)}, delta = {bound(spent.delta)} (by whoever paid most)"),
        ("remaining", f"epsilon = {bound(left.epsilon, down=True)}, delta = {bound(left.delta, down=True)}"),
        ("entries", facts["length"]),
        ("not private", f"{sum(e['kind'] != 'release' for e in facts['entries'])} scores compared with raw data; "
                        f"{sum(e['seeded'] == 'yes' for e in facts['entries'])} releases with a seed"),
        ("ledger", f"{meta['uuid']}, since {meta['created'][:19]} UTC"),
        ("file", facts["path"]),
        ("head of the chain", facts["head"]),
    )


def as_text(facts):
    """Return the account as lines of text."""
    lines = [f"{name + ':':<19}{value}" for name, value in _facts(facts)]
    rows = [_HEAD, *_rows(facts["entries"])]
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEAD))]
    lines += ["", *("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows)]
    return "\n".join(lines)


def as_html(facts):
    """Return the account as a self-contained piece of HTML."""
    head = "".join(f"<th>{name}</th>" for name in _HEAD)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in _rows(facts["entries"])
    )
    facts = "".join(f"<dt><b>{name}</b></dt><dd>{escape(str(value))}</dd>" for name, value in _facts(facts))
    return (f"<div style='font-family:sans-serif;max-width:60em'><dl>{facts}</dl>"
            f"<table style='border-spacing:1em 0;text-align:left'><tr>{head}</tr>{body}</table></div>")


def _budget(text):
    return bound(math.inf if text == "inf" else Fraction(text), down=True)
