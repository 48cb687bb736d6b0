"""The table of the planner on the site: what `plan` and `plan_mean` answer, in pieces between which a line is drawn.

A law's error is exact in the number of users, so a table holds one user's error (a standard deviation), over epsilon
and the number of categories or columns. The rectangle of both is halved until a surface through four corners agrees
with the law to `FAR`: steps and kinks of a law get small pieces, smooth parts get large ones. All numbers are whole
thousandths of natural logarithms.

    python docs/tools/planner.py      # asks all laws again: minutes; needed after a law of `plan` changed
"""

import json
import math
import random
from functools import cache
from pathlib import Path

from dpestim.local.categories.choice import candidates, spread_of
from dpestim.local.estimates.options import of_numbers
from dpestim.privacy.exact import canonical_epsilon

HERE = Path(__file__).parent
TABLE = HERE / "planner.json"
#: The ranges of epsilon, and of categories and columns, that the page offers.
EPSILONS, SIZES = (0.1, 10.0), {"categories": (2, 10_000), "means": (1, 32)}
#: How far a surface may be from a law, in logarithms; how narrow a piece may become; and the unit of all numbers.
FAR = {"error": 0.005, "worst": 0.005, "share": 0.1, "bits": 0.02}
NARROW, UNIT = {"error": 0.004, "worst": 0.004, "share": 0.02, "bits": 0.02}, 1e-3
#: At how many places within a piece a law is asked, to compare; laws of numbers take long.
CHECKS = {"categories": 4, "means": 1}


def main():
    """Write the table of all mechanisms."""
    table = {"epsilons": EPSILONS, "unit": UNIT}
    for kind, names in (("categories", of_categories(1.0, 64)), ("means", of_means(1.0, 4))):
        table[kind] = {name: surfaces(kind, name) for name in sorted(names)}
    TABLE.write_text(json.dumps(table, separators=(",", ":")) + "\n", encoding="utf-8")


def of_categories(epsilon, size, names=None):
    """Return {mechanism: numbers of its law} for a survey of categories."""
    laws, _ = candidates(canonical_epsilon(epsilon), size, names)
    found = {}
    for name, law in laws.items():
        spread = spread_of(law)
        if spread.floor or spread.worst_floor:
            raise ValueError(f"{name} has an error that more users do not lower: the table has no room for it")
        found[name] = {"error": spread.unit**0.5, "bits": float(law.report_bits)}
        if spread.worst_unit > 1.0001 * spread.unit:
            found[name]["worst"] = spread.worst_unit**0.5
        pair = law.support_pair() if hasattr(law, "support_pair") else None
        if pair is not None and not any(getattr(part, "ndim", 0) for part in pair):
            p, q = map(float, pair)
            found[name]["share"] = q + (p - q) / size  # of the reports that support a value
    return found


def of_means(epsilon, size, names=None):
    """Return {mechanism: numbers of its law} for means of columns."""
    options, _ = of_numbers(canonical_epsilon(epsilon), size, names)
    return {name: {"error": one.spread.unit**0.5} for name, one in options.items()}


def surfaces(kind, name):
    """Return the surfaces of a mechanism, with the sizes that it serves."""
    ask = {"categories": of_categories, "means": of_means}[kind]

    @cache
    def numbers(epsilon, size):
        return ask(epsilon, size, (name,)).get(name)

    least, most = SIZES[kind]
    most = max(size for size in (most, 4096, 128) if size <= most and numbers(1.0, size))
    probes = [numbers(epsilon, size) for epsilon in (1.0, 3.0) for size in (least, min(most, 100), most)]
    kinds = sorted(set().union(*probes))
    found = {"sizes": [least, most]}
    for what in kinds:
        found[what] = surface(lambda epsilon, size, what=what: of(numbers(epsilon, size), what), least, most,
                              FAR[what], NARROW[what], CHECKS[kind])
    return found


def of(numbers, what):
    """Return the logarithm of a number of a law in units; an error that is nowhere larger stands for the worst."""
    return math.log(numbers.get(what, numbers["error"])) / UNIT


def surface(function, least, most, far, narrow, n_checks):
    """Return the pieces of a surface: four corners, and then, first piece first, how each is halved.

    0: it is not. 1: at the middle of the logarithm of epsilon, and 2: at the size that is nearest to the middle of its
    logarithm; both with how much the two new corners lie above the middle of the old ones.
    """
    chance = random.Random(0)

    @cache
    def at(log_epsilon, size):
        return round(function(round(math.exp(log_epsilon), 6), size))

    def halves(a, b, low, high):
        corners = [[at(x, size) for size in (low, high)] for x in (a, b)]

        def off(x, size):
            s, t = (x - a) / (b - a), part(low, high, size)
            rows = [left + (right - left) * t for left, right in corners]
            return UNIT * abs(rows[0] + (rows[1] - rows[0]) * s - at(x, size))

        x, size = (a + b) / 2, middle(low, high)
        by_epsilon = max(off(x, low), off(x, high))
        by_size = max(off(a, size), off(b, size)) if high - low > 1 else 0.0
        inner = (off(chance.uniform(a, b), middle(low, high, chance.random())) for _ in range(n_checks))
        if (by_epsilon <= far and by_size <= far and all(one <= far for one in inner)) or b - a < narrow:
            return [0]
        if high - low > 1 and by_size >= by_epsilon:
            news = [at(end, size) - sum(corners[k]) // 2 for k, end in enumerate((a, b))]
            return [2, *news, *halves(a, b, low, size), *halves(a, b, size, high)]
        news = [at(x, end) - (corners[0][k] + corners[1][k]) // 2 for k, end in enumerate((low, high))]
        return [1, *news, *halves(a, x, low, high), *halves(x, b, low, high)]

    a, b = map(math.log, EPSILONS)
    return [*(at(x, size) for x in (a, b) for size in (least, most)), *halves(a, b, least, most)]


def middle(low, high, share=0.5):
    """Return the size, strictly between if there is one, that divides the logarithms in these shares."""
    size = round(low ** (1 - share) * high**share)
    return min(max(size, low + 1), high - 1) if high - low > 1 else low


def part(low, high, size):
    """Return which share of the way, in logarithms, a size lies from one to another."""
    return math.log(size / low) / math.log(high / low) if high > low else 0.0


def page():
    """Return the form of the planner with its table, which is there for a page that is opened as a file, too."""
    form = (HERE / "planner.html").read_text(encoding="utf-8")
    table = TABLE.read_text(encoding="utf-8").strip()
    return f'{form}<script type="application/json" id="planner-table">{table}</script>\n'


if __name__ == "__main__":
    main()
