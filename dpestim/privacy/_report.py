"""A ledger's account as a page to read, in text and in HTML; sees facts, never a file."""

from fractions import Fraction
from html import escape


def _rows(entries):
    """Return one row for each (estimator, users, kind, amount): how often, and what it was charged in all."""
    groups = {}
    for e in entries:
        key = (e["kind"], e["estimator"], e["users"], str(e["charged_epsilon"]), str(e["charged_delta"]))
        count, epsilon, delta = groups.get(key, (0, 0, 0))
        groups[key] = (count + 1, epsilon + e["charged_epsilon"], delta + e["charged_delta"])
    return [
        (kind, estimator or "?", users or "everybody", str(n), _short(one), _short(total), _short(delta))
        for (kind, estimator, users, one, _), (n, total, delta) in groups.items()
    ]


_HEAD = ("kind", "estimator", "users", "times", "epsilon each", "epsilon", "delta")


def _facts(facts):
    meta = facts["meta"]
    budget = f"epsilon = {_short(meta['epsilon'])}, delta = {_short(meta['delta'])}"
    spent, left = facts["spent"], facts["remaining"]
    return (
        ("budget", f"{budget}, for {meta['neighbours']} neighbours"
                   + (f", under the relaxation {meta['relaxation']}" if meta["relaxation"] != "null" else "")),
        ("spent", f"epsilon = {_short(spent.epsilon)}, delta = {_short(spent.delta)} (by whoever paid most)"),
        ("remaining", f"epsilon = {_short(left.epsilon)}, delta = {_short(left.delta)}"),
        ("entries", meta["length"]),
        ("not private", f"{sum(e['kind'] != 'release' for e in facts['entries'])} scores compared with raw data; "
                        f"{sum(e['seeded'] == 'yes' for e in facts['entries'])} releases with a seed"),
        ("ledger", f"{meta['uuid']}, since {meta['created'][:19]} UTC"),
        ("file", facts["path"]),
        ("head of the chain", meta["head"]),
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


def _short(amount):
    """Return a number as people write it: few digits, and exact wherever few digits are."""
    value = float("inf") if str(amount) == "inf" else float(Fraction(amount))
    return "infinite" if value == float("inf") else f"{value:g}"
