"""The table of mistakes and of what catches them, from runs: a few minutes.

``python docs/tools/caught_by.py`` writes it into ``docs/guide/refuting.md``; ``python docs/tools/caught_by.py verify``
runs the last column alone. A test says when the gallery has changed.
"""

import ast
import hashlib
import math
import sys
import time
from pathlib import Path

from dpestim.audit import audit, gallery, mistakes, search_counterexample
from dpestim.audit.gallery.programs import programs

PAGE = Path(__file__).parents[1] / "guide" / "refuting.md"
MARKS = "<!-- table: written by docs/tools/caught_by.py, of the gallery {} -->\n\n", "\n\n<!-- end of the table -->"
#: Outputs of an audit at most, and the seconds of an audit and of a search.
N_SAMPLES, SECONDS = 2_000_000, 60
#: Mistakes whose fault is in the bits of floats: audits of all others leave bits out, as any noise of floats has them.
IN_BITS = ("Laplace noise in floating point",)
#: Programs of `dpestim.verify.suite` that make the mistake of the gallery.
IN_SUITE = {
    "Sparse vector that releases the compared value": "sparse vector, Algorithm 3 (noisy answers)",
    "Sparse vector, noise that ignores the cut-off": "sparse vector, Algorithm 4 (noise without N)",
    "Sparse vector without noise on the queries": "sparse vector, no noise on queries",
    "Sparse vector without a cut-off": "sparse vector, Algorithm 6 (no cut-off)",
    "Sparse vector, noise for monotone queries on others": "sparse vector, half the noise",
    "Counts of two groups, one person moves": "histogram, all cells differ",
    "Noisy maximum, published with its value": "noisy max, value too",
}
NO = "no"


def fingerprint():
    """Return a hash of the gallery's code, without docstrings and comments."""
    digest = hashlib.sha256()
    for path in sorted(Path(gallery.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(
                    body[0].value, ast.Constant):
                body[0].value = ast.Constant("")
        digest.update(f"{path.name} {ast.dump(tree)}".encode())
    return digest.hexdigest()[:12]


def exactly(mistake):
    """Return what the gallery computes: the epsilon at the claimed delta, and the delta at the claimed epsilon."""
    return f"{_number(mistake.found.epsilon)}, {mistake.found.delta:.2g}"


def by_audit(mistake, program):
    """Return what an audit of outputs finds."""
    found = audit(program.sample, [program.pair], claim=tuple(mistake.claimed), batch=True, n_samples=N_SAMPLES,
                  side_channels=("bits",) if mistake.name in IN_BITS else (), time_limit=SECONDS, random_state=0)
    how = f"{found.n_samples:,} outputs, {found.seconds:.1f} s"
    return f"{_number(found.epsilon_lower)} ({how})" if found.violated else f"{NO} ({how})"


def by_search(mistake, program):
    """Return what a search finds."""
    draws = program.law is None
    found = search_counterexample(program.sample if draws else program.law, claim=tuple(mistake.claimed), batch=draws,
                                  time_limit=SECONDS, n_pairs=200, random_state=0, **program.domain)
    how = f"{found.n_pairs:,} pairs, {found.seconds:.1f} s"
    return f"{_number(found.epsilon_lower)} ({how})" if found.found else f"{NO} ({how})"


def by_proof(mistake):
    """Return what `dpestim.verify` says of a program of its suite that makes the mistake."""
    if mistake.name not in IN_SUITE:
        return "-"
    try:
        from dpestim.verify import suite, verify
    except ImportError:
        return "-"
    begin = time.perf_counter()
    found = verify(suite()[IN_SUITE[mistake.name]])
    seconds = time.perf_counter() - begin
    if found.status != "refuted":
        return f"{NO} ({seconds:.1f} s)"
    if found.counterexample.parameters["epsilon"] != mistake.claimed.epsilon:
        raise RuntimeError(f"the counterexample of {mistake.name} is about another epsilon")
    return f"{_number(float(found.counterexample.epsilon))} ({seconds:.1f} s)"


def table():
    """Return the rows of the table, of new runs."""
    runs, rows = programs(), []
    for mistake in mistakes():
        program = runs[mistake.name]
        rows.append((mistake.name, f"{mistake.claimed.epsilon:g}, {mistake.claimed.delta:g}", exactly(mistake),
                     by_audit(mistake, program), by_search(mistake, program), by_proof(mistake)))
        print(" | ".join(rows[-1]), flush=True)
    return rows


def kept(text):
    """Return (the fingerprint, the rows) of the table of a page."""
    before, after = MARKS[0].split("{}")
    mark, _, rest = text.partition(before)[2].partition(after)
    lines = rest.partition(MARKS[1])[0].splitlines()[2:]
    return mark, [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def with_table(text, rows):
    """Return a page with other rows."""
    start, end = text.partition(MARKS[0].split("{}")[0])[0], text.partition(MARKS[1])[2]
    lines = ["| mistake | claimed | exact | audit | search | verify |", "|---|---|---|---|---|---|",
             *("| " + " | ".join(row) + " |" for row in rows)]
    return start + MARKS[0].format(fingerprint()) + "\n".join(lines) + MARKS[1] + end


def _number(epsilon):
    """Return a bound, rounded down."""
    return "infinite" if epsilon == math.inf else f"{math.floor(1000 * epsilon + 1e-6) / 1000:g}"


def main(columns):
    """Write the table: of new runs, or with a new last column."""
    text = PAGE.read_text(encoding="utf-8")
    mark, rows = kept(text)
    if columns == ["verify"] and mark == fingerprint():
        rows = [(*row[:-1], by_proof(mistake)) for row, mistake in zip(rows, mistakes())]
    else:
        rows = table()
    PAGE.write_text(with_table(text, rows), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
