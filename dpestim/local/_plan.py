"""What the first data freezes, and the walk over blocks of rows that every verb shares."""

import itertools
import math

import numpy as np

from dpestim import parallel
from dpestim.local._encode import CategoryEncoder, columns_of
from dpestim.privacy import Neighbours, PrivacyGuarantee

#: Rows of reports counted at a time.
_COUNT_ROWS = 1 << 16


class Plan:
    """What the first data freezes: one randomizer and one encoder for each column, and the layout of a report."""

    #: names of the columns where `categories` is a dict
    keys = None

    def __init__(self, make_randomizers, encoders, names, inferred):
        self.inferred = inferred
        self.encoders, self.names = encoders, names
        self.randomizers = make_randomizers([len(e.categories) for e in encoders])
        self.epsilon = sum(r.epsilon for r in self.randomizers)
        self.dtype = max((r.report_dtype for r in self.randomizers), key=lambda t: t.itemsize)
        edges = np.cumsum([0, *(r.report_width for r in self.randomizers)]).tolist()
        self.slices = [slice(a, b) for a, b in itertools.pairwise(edges)]
        self.width = edges[-1]

    @classmethod
    def declared(cls, make_randomizers, categories, names, inferred=False):
        """Return the plan of lists of categories, one for each column."""
        names = names if len(names) == len(categories) else column_names(len(categories), None)
        return cls(make_randomizers, [CategoryEncoder(c, n) for c, n in zip(categories, names)], names, inferred)

    def encode(self, X, n_jobs=None, total=False):
        """Return the codes of each column of X, or raise before anything else has happened.

        Where `total`, nothing is raised for a value: whatever is not among the categories counts as the first of them.
        """
        return [(e.encode_total if total else e.encode)(c, n_jobs) for e, c in zip(self.encoders, columns_of(X))]

    def check_reports(self, reports):
        """Return reports that clients could have produced, or raise ValueError."""
        if type(reports) not in (np.ndarray, np.memmap) or reports.ndim != 2 or reports.shape[1] != self.width:
            raise ValueError(f"reports must be a two-dimensional array of width {self.width}, as privatize returns it")
        if reports.dtype != self.dtype:
            raise ValueError(f"reports must have dtype {self.dtype}, got {reports.dtype}")
        if not len(reports):
            raise ValueError("reports must not be empty")
        for randomizer, columns in zip(self.randomizers, self.slices):
            part = np.asarray(reports[:, columns])
            if randomizer.report_dtype != self.dtype and part.max() > np.iinfo(randomizer.report_dtype).max:
                raise ValueError(f"reports of a column must fit {randomizer.report_dtype}")
            randomizer.check_reports(part)
        return np.asarray(reports)

    def same_law(self, other):
        """Tell whether reports of the two plans can be counted together."""
        return (
            [(type(r), r.epsilon, r.p_star, r.q_star) for r in self.randomizers]
            == [(type(r), r.epsilon, r.p_star, r.q_star) for r in other.randomizers]
            and self.inferred == other.inferred
            and len(self.encoders) == len(other.encoders)
            and all(a.plain_categories() == b.plain_categories() for a, b in zip(self.encoders, other.encoders))
        )

    def guarantee(self, seeded=None, times=1):
        """Return what the report of one row promises, or that many reports of one user."""
        if self.inferred:
            return PrivacyGuarantee(
                math.inf, seeded=seeded, notes=("The categories were learned from the private data.",)
            )
        notes = tuple(f"Note: {r.slack}." for r in self.randomizers if r.slack)
        if len(self.randomizers) > 1:
            notes = (f"It covers the {len(self.randomizers)} columns of a row together.", *notes)
        if times > 1:
            notes = (f"A user may have reported {times} times.", *notes)
        return PrivacyGuarantee(
            times * self.epsilon, model="local", neighbours=Neighbours.LOCAL, seeded=seeded, notes=notes
        )

    def randomize(self, codes, source, first, n_jobs):
        """Return the reports of encoded rows, of which the first has this number."""
        out = np.empty((len(codes[0]), self.width), self.dtype)
        for column, randomizer in enumerate(self.randomizers):
            part = out[:, self.slices[column]]
            direct = part.flags.c_contiguous and part.dtype == randomizer.report_dtype

            def write(rows, block, words, randomizer=randomizer, part=part, direct=direct):
                report = part[rows] if direct else np.empty(
                    (len(block), randomizer.report_width), randomizer.report_dtype
                )
                randomizer.privatize(block, words, report)
                if not direct:
                    part[rows] = report

            each_block(randomizer, codes[column], source, column, first, n_jobs, lambda write=write: write)
        return out

    def randomize_and_count(self, codes, source, first, n_jobs):
        """Return the support counts of encoded rows; no report outlives its block."""
        totals = []
        for column, randomizer in enumerate(self.randomizers):
            locals_ = []

            def start(randomizer=randomizer, locals_=locals_):
                counts = np.zeros(randomizer.n_counts, np.int64)
                locals_.append(counts)
                report = np.empty((randomizer.block_rows, randomizer.report_width), randomizer.report_dtype)

                def add(rows, block, words):
                    out = report[: len(block)]
                    randomizer.privatize(block, words, out)
                    randomizer.count(out, counts)

                return add

            each_block(randomizer, codes[column], source, column, first, n_jobs, start)
            totals.append(sum(locals_))
        return totals

    def count(self, reports, n_jobs):
        """Return the support counts of reports, column by column."""
        totals = []
        for randomizer, columns in zip(self.randomizers, self.slices):
            part = reports[:, columns]

            def task(first, last, randomizer=randomizer, part=part):
                counts = np.zeros(randomizer.n_counts, np.int64)
                for start in range(first * _COUNT_ROWS, min(last * _COUNT_ROWS, len(part)), _COUNT_ROWS):
                    block = part[start : start + _COUNT_ROWS]
                    randomizer.count(np.ascontiguousarray(block, randomizer.report_dtype), counts)
                return counts

            totals.append(sum(parallel.run(task, -(-len(part) // _COUNT_ROWS), n_jobs)))
        return totals

    def support(self, reports):
        """Return the 0/1 support matrix of reports, columns side by side."""
        blocks = [
            randomizer.support(np.ascontiguousarray(reports[:, columns], randomizer.report_dtype))
            for randomizer, columns in zip(self.randomizers, self.slices)
        ]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


def each_block(randomizer, codes, source, column, first, n_jobs, start):
    """Call ``start()(rows, codes, words)`` for every block of rows; `start` is called once for each thread."""
    size = randomizer.block_rows
    stop = first + len(codes)
    first_block = first // size

    def task(a, b):
        use, reader = start(), source.reader()
        for block in range(first_block + a, first_block + b):
            low, high = max(first, block * size), min(stop, (block + 1) * size)
            rows = slice(low - first, high - first)
            use(rows, codes[rows], reader.words(column, block, low - block * size, high - low))

    parallel.run(task, -(-stop // size) - first_block, n_jobs)


def category_lists(categories):
    """Return (the declared categories, one array-like for each column; the column names of a dict, or None)."""
    keys = None
    if isinstance(categories, dict):
        keys, categories = tuple(categories), list(categories.values())
    if isinstance(categories, str) or not isinstance(categories, list | tuple) or not len(categories):
        raise ValueError("categories must be 'auto', a list with one array for each column, or a dict of such")
    if all(isinstance(values, str | bytes) for values in categories):
        raise ValueError("categories must have one list of values for each column: write [['a', 'b']], not ['a', 'b']")
    return list(categories), keys


def column_names(n, names):
    """Return how error messages call the columns."""
    return [f"column {j}" for j in range(n)] if names is None else [f"column {name!r}" for name in names]


def copied_lists(lists):
    """Return a copy of declared categories to compare with later, in case somebody changes them in place."""
    return [c.copy() if isinstance(c, np.ndarray) else (tuple(c), tuple(map(type, c))) for c in lists]


def same_lists(copies, lists):
    """Tell whether declared categories are still what `copied_lists` saw, types included: True is not 1 here."""
    return len(copies) == len(lists) and all(
        (np.array_equal(a, b) and a.dtype == b.dtype) if isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        else isinstance(a, tuple) and isinstance(b, list | tuple) and a == (tuple(b), tuple(map(type, b)))
        for a, b in zip(copies, lists)
    )
