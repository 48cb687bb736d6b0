"""Reports of single users: a mechanism whose proof has a case too few."""

import math
from fractions import Fraction
from itertools import combinations, product

from dpestim.audit.gallery.mistake import mistake
from dpestim.local import DuchiTransformer, PMTransformer, SDPMTransformer

_FAKES = "Arcolezi, Couchot, Al Bouna, Xiao (2021), Random sampling plus fake data, CIKM"


def half_spaces(epsilon, d):
    """Return the rows of Duchi's first mechanism for d numbers: half-spaces that overlap where d is even."""
    keep = Fraction(1 / (1 + math.exp(-epsilon)))
    corners, rows = list(product((-1, 1), repeat=d)), []
    for own in corners:
        agree = [sum(a * b for a, b in zip(own, corner)) for corner in corners]
        n = sum(a >= 0 for a in agree)  # as many as on the other side
        rows.append([((a >= 0) * keep + (a <= 0) * (1 - keep)) / n for a in agree])
    return rows


def sampled_and_faked(epsilon, sizes):
    """Return the rows of RS+FD: one column by randomised response of this epsilon, all others uniform."""
    e = Fraction(math.exp(epsilon))
    tuples = list(product(*map(range, sizes)))

    def report(y, v):
        return sum(
            (e if y[j] == v[j] else 1) / (e + k - 1) * math.prod(Fraction(1, m) for m in sizes[:j] + sizes[j + 1:])
            for j, k in enumerate(sizes)) / len(sizes)

    return [[report(y, v) for y in tuples] for v in tuples]


def _differing_in_one(rows, sizes):
    """Return the pairs of rows of tuples that differ in one column."""
    inputs = list(zip(product(*map(range, sizes)), rows))
    return [(p, q) for (v, p), (w, q) in combinations(inputs, 2) if sum(a != b for a, b in zip(v, w)) == 1]


def sampled(epsilon, sizes):
    """Return the laws, as dicts, of one column by randomised response of this epsilon, and which one it is."""
    e = Fraction(math.exp(epsilon))
    return [
        {(j, y): (e if y == v[j] else 1) / (e + k - 1) / len(sizes) for j, k in enumerate(sizes) for y in range(k)}
        for v in product(*map(range, sizes))
    ]


def two_bits(first, second):
    """Return the laws of the bits of two values in unary encoding, for both: bit i is flipped by half of epsilon_i."""
    flips = [Fraction(1 / (math.exp(epsilon / 2) + 1)) for epsilon in (first, second)]

    def law(value):
        ones = [1 - q if i == value else q for i, q in enumerate(flips)]
        both = product((0, 1), repeat=2)
        return {bits: math.prod(p if bit else 1 - p for bit, p in zip(bits, ones)) for bits in both}

    return law(0), law(1)


def low_and_high(grid=32):
    """Return the pair of laws of a low and of a high value, by the continuous SDPM on a grid (epsilon 0.5)."""
    estimator = SDPMTransformer(0.5, form="continuous", bounds=(-1, 1), low_sensitivity=(-0.5, 0.5), grid=grid)
    law = estimator.randomizer(0)
    low, high = (next(i for i, kind in enumerate(law.input_kinds()) if kind == name) for name in ("low", "high"))
    rows = law.transition_matrix()
    return rows[low], rows[high]


def local_reports():
    """Return the entries about reports of single users."""
    nominal = math.log(2 * math.expm1(1.0) + 1)  # the epsilon that two columns are said to allow, for 1
    joint = DuchiTransformer(0.5, bounds=([-1, -1], [1, 1]), strategy="joint").randomizer(0)
    pm = PMTransformer(0.5, bounds=(-1, 1), grid=8).randomizer(0)
    return [
        mistake(
            "Duchi's mechanism for two numbers, first version",
            "Duchi, Jordan, Wainwright (2018), Minimax optimal procedures for locally private estimation, JASA, "
            "section 4.2, for an even dimension",
            claimed=(0.5, 0), pairs=list(combinations(half_spaces(0.5, 2), 2)),
            right=list(combinations(joint.transition_matrix(), 2)),
            why="In even dimensions some corners agree in half of the numbers and belong to both half-spaces.",
            instead="dpestim.local.DuchiTransformer with strategy=\"joint\""),
        mistake(
            "Continuous SDPM, a low value among high ones",
            "Chen, Ye, Zhang, Shu (2025), SDLDP: low values are said to be hidden among high ones",
            claimed=(0.5, 0), pairs=[low_and_high()], right=list(combinations(pm.transition_matrix(), 2)),
            why="A low value is reported as it is, and no high value ever reports exactly that.",
            instead="dpestim.local.PMTransformer, which protects all values alike; or dpestim.local.SDPMTransformer "
                    "with few cells, whose low-high epsilon is finite and stated"),
        mistake(
            "One column drawn, the others faked (RS+FD)",
            _FAKES,
            claimed=(1, 0), pairs=list(combinations(sampled_and_faked(nominal, (2, 2)), 2)),
            right=list(combinations(sampled(1.0, (2, 2)), 2)),
            why="A person may differ in all columns at once, and then it does not matter which one was drawn.",
            instead="the epsilon of the promise for the column that is drawn, as with strategy=\"sample\" of the "
                    "transformers of dpestim.local"),
        mistake(
            "One column drawn and named, a larger epsilon for it",
            "surveys of local privacy: amplification by sampling, where the server sees which column was drawn",
            claimed=(1, 0), pairs=list(combinations(sampled(nominal, (2, 2)), 2)),
            right=list(combinations(sampled(1.0, (2, 2)), 2)),
            why="What was drawn is known, so the report is that of one column with the larger epsilon.",
            instead="the epsilon of the promise for the column that is drawn, as with strategy=\"sample\" of the "
                    "transformers of dpestim.local"),
        mistake(
            "RS+FD for columns of 2 and of 5 values",
            _FAKES + ", where only one column of a person may change",
            claimed=(1, 0), pairs=_differing_in_one(sampled_and_faked(nominal, (2, 5)), (2, 5)),
            right=_differing_in_one(sampled_and_faked(1.0, (2, 5)), (2, 5)),
            why="A faked value hides the less in a column the more values it has, and the smaller column pays.",
            instead="an epsilon that is solved for the sizes of all columns; or that of the promise, which is safe"),
        mistake(
            "An epsilon for each value, each bit by its own",
            "folklore, against Gu, Li, Xiong, Cao (2020), Providing input-discriminative protection for local "
            "differential privacy, ICDE",
            claimed=(0.5, 0), pairs=[two_bits(0.5, 2.0)], right=[two_bits(0.5, 0.5)],
            why="Two values differ in the bits of both, and the bit of the less sensitive one tells them apart.",
            instead="the least epsilon of all, as in dpestim.local.SUEFrequencyEstimator; or flips that are solved for "
                    "all pairs of values"),
    ]
