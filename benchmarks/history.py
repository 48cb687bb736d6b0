"""The series of the standard run: one file a record, what became slower, and the page that shows it.

    python -m benchmarks --record              # the standard run, kept as benchmarks/history/DATE_COMMIT.json
    python -m benchmarks.history               # compares the last record with the one before: fails on a regression
    python -m benchmarks.history --write       # and writes docs/project/history.md

A record has machine, versions, commit, number of users and every row's time and ratio. Times of different machines are
not compared, ratios are: a baseline runs in the same repeats. A row without a baseline is compared between records
of one machine only. Record on `main`: a commit that is rebased is lost.
"""

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks._harness import show, write

ROOT = Path(__file__).parents[1]
FOLDER, PAGE = Path(__file__).parent / "history", ROOT / "docs" / "project" / "history.md"
#: What is slower than before by this factor is a regression: above what two runs of one commit differ by.
SLOWER = 1.5
#: Records that the page shows.
SHOWN = 6
_HEAD = """# Speed over time

`python -m benchmarks --record` adds a record; `python -m benchmarks.history --write` writes this page. A cell is the
time of dpestim and, in brackets, how many times faster dpestim is than its baseline. Times of different machines cannot
be compared; the ratios can. A row that becomes slower by a factor of more than {:g} is a regression.
"""
_KEPT = ("name", "ours", "unit", "peer", "baseline", "ratio", "repeats")


def commit():
    """Return (short name of the commit, ISO date of it); "-dirty" where files were changed since."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    name, date = git("log", "-1", "--format=%h %cd", "--date=short").split()
    return name + ("-dirty" if git("status", "--porcelain", "--untracked-files=no") else ""), date


def record(facts, rows, folder=FOLDER):
    """Write a record of a run and return its path."""
    name, date = commit()
    facts = {"commit": name, "date of commit": date, "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
             **facts}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{date}_{name}.json"
    write(path, facts, rows)
    kept = json.loads(path.read_text())  # (without what is empty: records stay small)
    kept["rows"] = [{key: row[key] for key in _KEPT if row[key] not in (None, "")} for row in kept["rows"]]
    path.write_text(json.dumps(kept, indent=1) + "\n")
    return path


def records(folder=FOLDER):
    """Return all records, the oldest first."""
    found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    return sorted(found, key=lambda one: one["header"]["recorded"])


def _keyed(one):
    """Return the rows of a record by name and baseline: a row may stand beside several baselines."""
    return {(row["name"], row.get("peer", "")): row for row in one["rows"]}


def _called(key):
    return " beside ".join(part for part in key if part)


def changes(before, after):
    """Return [(name, factor)]: how many times slower each row became, by its ratio, or its time on one machine."""
    same, old, found = before["header"]["machine"] == after["header"]["machine"], _keyed(before), []
    for key, row in _keyed(after).items():
        was = old.get(key, {})
        if row.get("ratio") and was.get("ratio"):
            found.append((_called(key), was["ratio"] / row["ratio"]))
        elif same and row.get("ours") and was.get("ours"):
            found.append((_called(key), row["ours"] / was["ours"]))
    return found


def regressions(before, after, slower=SLOWER):
    """Return the rows that became slower by more than a factor, the worst first."""
    return sorted((one for one in changes(before, after) if one[1] > slower), key=lambda one: -one[1])


def lost(before, after):
    """Return the names of the rows that are no longer measured."""
    return sorted(map(_called, set(_keyed(before)) - set(_keyed(after))))


def page(found):
    """Return the page of the documentation."""
    lines = [_HEAD.format(SLOWER)]
    found = found[-SHOWN:]
    if not found:
        return "\n".join([*lines, "No record yet.", ""])
    lines += ["| record | machine | system and versions | users | load before |", "|---|---|---|---|---|"]
    for one in found:
        head = one["header"]
        lines.append(f"| {head['date of commit']}, `{head['commit']}` | {head['machine']} | Python {head['Python']}; "
                     f"{head['packages']}; {head['kernels']} | {head['n'].split()[0]} | "
                     f"{head.get('load before', '-')} |")
    cells = [_keyed(one) for one in found]
    titles = [f"`{one['header']['commit']}`" for one in found]
    lines += ["", "| what | baseline | " + " | ".join(titles) + " |", "|---|---|" + "---|" * len(found)]
    for name, peer in dict.fromkeys(key for own in reversed(cells) for key in own):
        lines.append(f"| {name} | {peer} | " + " | ".join(_cell(own.get((name, peer))) for own in cells) + " |")
    if len(found) > 1:
        slower = regressions(*found[-2:])
        lines += ["", "Slower than in the record before: "
                  + (", ".join(f"{name} ({factor:.2f} times)" for name, factor in slower) or "nothing") + "."]
    return "\n".join([*lines, ""])


def _cell(row):
    if not row or row.get("ours") is None:
        return "-"
    text = show(row["ours"], row["unit"])
    return f"{text} ({row['ratio']:.3g}x)" if row.get("ratio") else text


def main(arguments=None):
    """Compare the last two records; return 1 where something became slower."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the records are")
    parser.add_argument("--slower", type=float, default=SLOWER, help="from which factor on a row is a regression")
    parser.add_argument("--write", action="store_true", help="write docs/project/history.md")
    chosen = parser.parse_args(arguments)
    found = records(chosen.folder)
    if chosen.write:
        PAGE.write_text(page(found), encoding="utf-8")
    if len(found) < 2:
        print(f"{len(found)} records: a comparison needs two")
        return 0
    before, after = found[-2:]
    slower, gone = regressions(before, after, chosen.slower), lost(before, after)
    names = f"{after['header']['commit']} beside {before['header']['commit']}"
    print(f"{names}: {len(changes(before, after))} rows compared, {len(slower)} slower by a factor of more than "
          f"{chosen.slower:g}")
    for name, factor in slower:
        print(f"{factor:6.2f}  {name}")
    if gone:
        print(f"no longer measured: {', '.join(gone)}")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
