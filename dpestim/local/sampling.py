"""Some columns a row: which ones is drawn without looking at the row, and of the others nothing is said.

Every user draws k of the d columns, all sets of k equally likely, and reports each of them by a law that has epsilon
/ k. Because the draw does not depend on the data, a report has at most the sum of the k largest of the laws' epsilons;
knowing which columns were drawn adds nothing, and saves nothing either.

A report is k slots in ascending order of the columns, each the number of a column and what its law reports (padded
with zeros where another law has wider reports). The words of a draw are of a stage of their own; those of a law are
numbered by the rows of a block that drew its column, so that no two of them share any, and none is left out.
"""

import itertools

import numpy as np

from dpestim import parallel
from dpestim._core import rows
from dpestim.local.columns import COUNT_ROWS, Columns, passing
from dpestim.local.origin import refuse_others, sign
from dpestim.rng import Stage

#: How often a row's columns are drawn again where its words allow no uniform draw: each time less likely than 1e-9.
_ATTEMPTS = 4


class SampledColumns(Columns):
    """The columns of a row of which each user reports `n_sampled`, drawn without looking at any.

    Parameters
    ----------
    columns : list of Column
    inferred, keys
        As `Columns` has them.
    n_sampled : int
        From 1 to the number of columns, of which there are at most 65536.
    """

    def __init__(self, columns, inferred="", keys=None, *, n_sampled):
        super().__init__(columns, inferred, keys)
        if len(self) > 1 << 16:
            raise ValueError("strategy must be 'split' for more than 65536 columns")
        self.n_sampled = n_sampled
        self.slot_width = 1 + max(law.report_width for law in self.laws)
        self.report_width = self.n_sampled * self.slot_width
        self.dtype = max(self.dtype, np.min_scalar_type(len(self) - 1), key=lambda t: t.itemsize)

    def with_columns(self, columns):
        """Return the same draw of other columns."""
        return SampledColumns(columns, self.inferred, self.keys, n_sampled=self.n_sampled)

    def reports_of(self, number, reports):
        """Return (rows that drew one of the columns, its reports in them) of checked reports."""
        law, fields, rows = next(itertools.islice(self._by_column(self._slots(reports)), number, None))
        return rows, fields[:, : law.report_width]

    def told(self, number, counts, n):
        """Return (the counts of one of the columns, how many rows drew it), as its reports tell."""
        return counts[number], self.columns[number].n_reports(counts[number])

    def check_reports(self, reports, counted=False):
        """Return reports that clients could have produced, or raise ValueError."""
        given, reports = reports, self._check_format(reports)
        refuse_others(given, self)
        slots = self._slots(reports)
        if not self._draws(slots).all():
            raise ValueError(f"the columns of a report must be numbers below {len(self)}, each larger than the last")
        for law, fields, _ in self._by_column(slots):
            if fields.size:
                self._check_part(law, fields[:, : law.report_width])
                if fields[:, law.report_width :].any():
                    raise ValueError("the padding of a report must be 0: check that client and server have the same "
                                     "parameters")
        return reports

    def possible(self, reports):
        """Return a mask: which reports a client could have produced, of an array in the right shape and dtype."""
        slots = self._slots(reports)
        out = self._draws(slots)
        rows = np.flatnonzero(out)  # (the columns of others are numbers of none)
        for law, fields, at in self._by_column(slots[rows]):
            fine = passing(lambda part, law=law: self._check_part(law, part), fields[:, : law.report_width])
            out[rows[at[~fine | fields[:, law.report_width :].any(axis=1)]]] = False
        return out

    def _draws(self, slots):
        """Return a mask: whose slots name columns that there are, each larger than the last."""
        drawn = slots[:, :, 0]
        return (drawn < len(self)).all(axis=1) & (drawn[:, 1:] > drawn[:, :-1]).all(axis=1)

    def decode(self, reports):
        """Return what checked reports stand for: the middle for a column that was not drawn, d / k as far from it else.

        So every number is without bias.
        """
        out, scale = np.tile(self._middles, (len(reports), 1)), len(self) / self.n_sampled
        for number, (law, fields, at) in enumerate(self._by_column(self._slots(reports))):
            column, place = self.columns[number], self.features[number]
            fields = np.ascontiguousarray(fields[:, : law.report_width], law.report_dtype)
            out[at, place] += scale * (column.decode(fields) - self._middles[place])
        return out

    # ---------------------------------------------------------------- the walk

    @property
    def block_rows(self):
        """Rows a block: a law may be asked for all of them."""
        return min(law.block_rows for law in self.laws)

    def randomize(self, data, source, first, n_jobs):
        """Return the reports of rows as `read` gave them, of which the first has this number."""
        out = np.zeros((len(data[0]), self.report_width), self.dtype)
        slots = out.reshape(-1, self.slot_width)

        def start():
            def write(number, at, report):
                slots[at, 0] = number
                slots[at, 1 : 1 + report.shape[1]] = report

            return write

        self._walk(data, source, first, n_jobs, start)
        return sign(out, self)

    def randomize_and_count(self, data, source, first, n_jobs, narrow=False):
        """Return the counts of rows as `read` gave them, column by column, none of them narrow."""
        totals = []

        def start():
            counts = self._no_counts()
            totals.append(counts)
            return lambda number, at, report: self._count(number, report, counts)

        self._walk(data, source, first, n_jobs, start)
        return [sum(parts) for parts in zip(*totals)]

    def count(self, reports, n_jobs, narrow=False):
        """Return the counts of checked reports, column by column; none is narrow."""

        def task(first, last):
            counts = self._no_counts()
            for low in range(first * COUNT_ROWS, min(last * COUNT_ROWS, len(reports)), COUNT_ROWS):
                slots = self._slots(reports[low : low + COUNT_ROWS])
                for number, (law, fields, _) in enumerate(self._by_column(slots)):
                    fields = np.ascontiguousarray(fields[:, : law.report_width], law.report_dtype)
                    self._count(number, fields, counts)
            return counts

        return [sum(parts) for parts in zip(*parallel.run(task, -(-len(reports) // COUNT_ROWS), n_jobs))]

    # ---------------------------------------------------------------- inside

    def _no_counts(self):
        return [np.zeros(law.n_counts, np.int64) for law in self.laws]

    def _count(self, number, reports, counts):
        """Add the reports of one column."""
        self.laws[number].count(reports, counts[number])

    @property
    def _middles(self):
        """What a number is said to be where nothing is said about it."""
        return np.array([middle for column in self.columns for middle in column.middles])

    def _slots(self, reports):
        return np.ascontiguousarray(reports).reshape(len(reports), self.n_sampled, self.slot_width)

    def _by_column(self, slots):
        """Yield (law, what its slots say, the rows that they are of) of every column."""
        where = slots.reshape(-1, self.slot_width)
        for law, at in zip(self.laws, places_of(where[:, 0], len(self))):
            yield law, where[at, 1:], at // self.n_sampled

    def _walk(self, data, source, first, n_jobs, start):
        """Hand ``start()(column number, places, reports)`` the reports of every column, block by block.

        Places are those of slots: row * k + slot. `start` is called once for each thread.
        """
        size, k = self.block_rows, self.n_sampled
        stop = first + len(data[0])
        first_block = first // size

        def task(a, b):
            receive, reader = start(), source.reader()
            codes_of = [column.coder() for column in self.columns]
            for block in range(first_block + a, first_block + b):
                low, high = max(first, block * size), min(stop, (block + 1) * size)
                drawn = draw(reader, block, high - block * size, len(self), k)
                skip = (low - block * size) * k
                for number, at in enumerate(places_of(drawn.ravel(), len(self))):
                    # (of rows that were reported by an earlier call)
                    before = int(np.searchsorted(at, skip)) if skip else 0
                    mine = at[before:] + (block * size - first) * k
                    if len(mine):
                        law = self.laws[number]
                        codes = codes_of[number](data[number][mine // k if k > 1 else mine])
                        report = np.empty((len(mine), law.report_width), law.report_dtype)
                        law.privatize(codes, reader.words(number, block, before, len(mine)), report)
                        receive(number, mine, report)

        parallel.run(task, -(-stop // size) - first_block, n_jobs)


class CountedDraws(SampledColumns):
    """Columns of which users report some; the last count of each is how many reports it has."""

    def with_columns(self, columns):
        """Return the same draw of other columns."""
        return type(self)(columns, self.inferred, self.keys, n_sampled=self.n_sampled)

    def told(self, number, counts, n):
        """Return (the counts of one of the columns, how many rows drew it)."""
        return counts[number][:-1], int(counts[number][-1])

    def _no_counts(self):
        return [np.zeros(law.n_counts + 1, np.int64) for law in self.laws]

    def _count(self, number, reports, counts):
        self.laws[number].count(reports, counts[number][:-1])
        counts[number][-1] += len(reports)


def draw(reader, block, n_rows, d, k):
    """Return (n_rows, k) ascending numbers below d: the columns that the first rows of a block report."""
    out, rejected = np.empty((n_rows, k), np.uint16), np.empty(n_rows, np.uint32)
    words = reader.words(0, block, 0, n_rows)
    left = rows.choose(words.dense(Stage.SUBSET, k).reshape(n_rows, k), d, out, rejected)
    for attempt in range(_ATTEMPTS):
        if not left:
            return out
        again = rejected[:left].astype(np.int64)
        places = (again[:, None] * _ATTEMPTS + attempt) * k + np.arange(k)
        fresh = words.sparse(Stage.SUBSET_AGAIN, _ATTEMPTS * k, places.ravel()).reshape(left, k)
        part, still = np.empty((left, k), np.uint16), np.empty(left, np.uint32)
        left = rows.choose(np.ascontiguousarray(fresh), d, part, still)
        out[again] = part
        rejected[:left] = again[still[:left]]
    if left:
        raise RuntimeError("the columns of a row could not be drawn, because the source of random words is not random: "
                           "check the random_state")
    return out


def places_of(numbers, d):
    """Return d arrays: where each number below d stands, ascending."""
    order, ends = np.empty(len(numbers), np.int64), np.empty(d, np.int64)
    rows.places(np.ascontiguousarray(numbers, np.uint16), ends, order)
    return [order[low:high] for low, high in itertools.pairwise((0, *ends.tolist()))]
