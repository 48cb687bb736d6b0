"""What clients keep between reports: randomised answers of longitudinal columns, and which columns a row reports."""

import threading

import numpy as np

from dpestim.local.column import Column
from dpestim.local.columns import write_column
from dpestim.local.sampling import draw, places_of


class _Step:
    """One step of a memoised law as the walk over blocks takes it."""

    def __init__(self, law, write, dtype, width):
        # (one step takes about half of the law's words, so that a block has room for twice the rows)
        self.block_rows = self.counted_rows = 2 * law.block_rows
        self.privatize = write
        self.report_dtype, self.report_width = np.dtype(dtype), width


class _Memo:
    """What the clients keep of one column: the current cells and answers, and earlier ones by row and cell."""

    def __init__(self, n_rows, law):
        self.cells, self.answers = None, np.zeros((n_rows, law.answer_width), law.answer_dtype)
        self.keys, self.kept = np.empty(0, np.int64), self.answers[:0].copy()

    def start(self, rows, cells, answers):
        """Keep the first answers of some rows; None: of all."""
        if rows is None:
            self.cells, self.answers = cells.copy(), answers
            return
        if self.cells is None:
            self.cells = np.zeros(len(self.answers), cells.dtype)
        self.cells[rows], self.answers[rows] = cells[rows], answers[rows]

    def move(self, cells, n_cells, n_fixed, again):
        """Go to other cells: where an answer is kept take that, else one of `again`, which is called at most once."""
        rows = np.flatnonzero(cells != self.cells)
        if not len(rows):
            return
        keys = np.concatenate([self.keys, rows * n_cells + self.cells[rows]])
        kept = np.concatenate([self.kept, self.answers[rows]])
        self.keys, first = np.unique(keys, return_index=True)
        self.kept, self.cells = kept[first], cells.copy()
        wanted = rows * n_cells + cells[rows]
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        known = self.keys[at] == wanted
        self.answers[rows[known]] = self.kept[at[known]]
        if not known.all():
            new = rows[~known]
            self.answers[new, n_fixed:] = again()[new, n_fixed:]


class ClientState:
    """What clients keep between reports, n rows of them: opaque, and as secret as the rows themselves.

    `client_state` of a longitudinal estimator makes one, or of a `MixedEstimator` that has one among its columns. Store
    it (it pickles, with a version) and hand it to every ``privatize(X, state=state)``, which changes it. Of two copies
    of one state use one. Where only some clients report, ``privatize(X, state=state[rows])`` changes the state of these
    rows: `rows` is a mask, a slice or an array of different row numbers, and X has the rows that it names, in its
    order. Where a row reports only some of its columns, these are drawn once and kept, too. ``len(state)`` is the
    number of rows.

    Attributes
    ----------
    n_rows : int
    n_reports : int
        The most reports that any row has made.
    """

    _version = 3

    def __init__(self, columns, n_rows, number):
        self._identity, self._known = _identity(columns), columns
        self._memos = [_Memo(n_rows, law) if law.keeps_answers else None for law in columns.laws]
        self._drawn = np.zeros((n_rows, columns.n_sampled), np.uint16) if columns.n_sampled else None
        self.n_rows, self._n_calls, self._counts = n_rows, 0, np.zeros(n_rows, np.int32)
        #: How many reports of a row each account, a ledger and a label, has paid for; and the state's place in a seed.
        self.paid, self.number = {}, number
        #: Held from the charge to the report: of two threads, the second would pay nothing, and draw answers anew.
        self.lock = threading.RLock()

    @property
    def n_reports(self):
        """The most reports that any row has made."""
        return int(self._counts.max(initial=0))

    def __len__(self):
        return self.n_rows

    def __repr__(self):
        return f"ClientState(n_rows={self.n_rows}, n_reports={self.n_reports})"

    def __getitem__(self, rows):
        """Return the part of the state that some rows keep; what the part reports, the whole state remembers."""
        places = np.arange(self.n_rows)
        try:
            chosen = places[rows]
        except (IndexError, TypeError, ValueError):
            chosen = None
        if chosen is None or chosen.ndim != 1 or len(np.unique(chosen)) < len(chosen):
            raise ValueError(f"rows must be a mask, a slice or an array of different row numbers below {self.n_rows}")
        return _Part(self, chosen)

    def __iter__(self):
        """Refuse: a state is taken apart by ``state[rows]`` only."""
        raise TypeError("a client state has no single rows to go through: take state[rows] with a mask, a slice or an "
                        "array of row numbers")

    def __getstate__(self):
        with self.lock:
            return {**vars(self), "_known": None, "lock": None, "version": self._version}

    def __setstate__(self, state):
        if state.get("version") != self._version:
            raise ValueError(f"a client state must have version {self._version}: make a new one with client_state")
        vars(self).update({name: value for name, value in state.items() if name != "version"})
        self.lock = threading.RLock()

    def check(self, columns, n_rows=None):
        """Raise ValueError unless it belongs to these columns and this many rows."""
        if columns is not self._known:  # (comparing long lists of categories takes time)
            if self._identity != _identity(columns):
                raise ValueError("state must have been made by a client of the same law and the same categories")
            self._known = columns
        if n_rows is not None and n_rows != self.n_rows:
            raise ValueError(f"X must have the {self.n_rows} rows of state, in the same order, got {n_rows}")

    def report(self, columns, data, source, n_jobs, rows=None):
        """Return the next reports of rows as `Columns.read` gave them; `rows` are their places, None all."""
        first = self._n_calls * self.n_rows  # (a seed gives every call words of its own)
        here = self._counts if rows is None else self._counts[rows]
        fresh = np.flatnonzero(here == 0)
        new = rows if len(fresh) == len(here) else fresh if rows is None else rows[fresh]
        if self._drawn is not None and len(fresh):
            drawn = _draw(columns, source, first, self.n_rows)
            self._drawn[slice(None) if new is None else new] = drawn[slice(None) if new is None else new]
        parts = []
        for number, (column, values) in enumerate(zip(columns, data)):
            write = self._again if column.law.keeps_answers else self._afresh
            part = write(column, number, values, source, first, n_jobs, rows, new if len(fresh) else ())
            parts.append(part if rows is None else part[rows])
        self._n_calls += 1
        if rows is None:
            self._counts += 1
        else:
            self._counts[rows] += 1
        if self._drawn is not None:
            return _slots(columns, parts, self._drawn if rows is None else self._drawn[rows])
        if len(parts) == 1:
            return parts[0]
        out = np.empty((len(here), columns.report_width), columns.dtype)
        for part, place in zip(parts, columns.slices):
            out[:, place] = part
        return out

    # Every column walks over all rows, as words belong to places: what it writes for a row that does not report is
    # dropped, and no call has the same words.

    def _afresh(self, column, number, values, source, first, n_jobs, rows, new):
        """Return fresh reports of a column that keeps nothing."""
        values = self._spread(values, rows)
        out = np.empty((self.n_rows, column.law.report_width), column.law.report_dtype)
        write_column(column, number, values, out, source, first, n_jobs)
        return out

    def _again(self, column, number, values, source, first, n_jobs, rows, new):
        """Return reports made of the kept answers of a column, of which `new` rows (None: all) have none yet."""
        law, memo = column.law, self._memos[number]

        def walk(write, dtype, width, values):
            out = np.empty((self.n_rows, width), dtype)
            write_column(Column(column.name, _Step(law, write, dtype, width)), number, values, out, source, first,
                         n_jobs)
            return out

        shape = law.answer_dtype, law.answer_width
        codes = self._spread(np.ascontiguousarray(column.coder()(values)), rows)
        if new is None or len(new):
            answers = walk(law.permanent, *shape, codes)
            memo.start(new, law.cells(codes, answers), answers)
        if new is not None:
            cells = law.cells(codes, memo.answers)
            if rows is not None:
                cells, moved = memo.cells.copy(), cells
                cells[rows] = moved[rows]
            memo.move(cells, law.n_cells, law.n_fixed, lambda: walk(law.again, *shape, cells))
        return walk(law.respond, law.report_dtype, law.report_width, memo.answers)

    def _spread(self, values, rows):
        """Return the values of some rows at their places; the other places have any value of the domain."""
        if rows is None:
            return values
        out = np.empty((self.n_rows, *values.shape[1:]), values.dtype)
        out[:] = values[:1]
        out[rows] = values
        return out


class _Part(ClientState):
    """Some rows of a state; all that it learns, the whole state keeps."""

    def __init__(self, whole, rows):
        self._whole, self._rows, self.n_rows = whole, rows, len(rows)

    paid = property(lambda self: self._whole.paid)
    number = property(lambda self: self._whole.number)
    lock = property(lambda self: self._whole.lock)
    _counts = property(lambda self: self._whole._counts[self._rows])

    def __getitem__(self, rows):
        part = super().__getitem__(rows)
        return _Part(self._whole, self._rows[part._rows])

    def __getstate__(self):
        raise ValueError("a part of a client state must not be copied or pickled: store the whole state")

    def check(self, columns, n_rows=None):
        self._whole.check(columns)
        if n_rows is not None and n_rows != self.n_rows:
            raise ValueError(f"X must have the {self.n_rows} rows of this part of state, in its order, got {n_rows}")

    def report(self, columns, data, source, n_jobs):
        return self._whole.report(columns, data, source, n_jobs, self._rows)


def _identity(columns):
    """Return what two rows must share for one state to serve both."""
    parts = [part.name for part in getattr(columns, "members", ())]
    return columns.inferred, columns.n_sampled, parts, [column.identity() for column in columns]


def _draw(columns, source, first, n):
    """Return the columns that rows report, (n, n_sampled) ascending numbers: from no value, with words of this call."""
    reader, size = source.reader(), columns.block_rows
    parts = []
    for block in range(first // size, -(-(first + n) // size)):
        low, high = max(first, block * size), min(first + n, (block + 1) * size)
        parts.append(draw(reader, block, high - block * size, len(columns), columns.n_sampled)[low - block * size :])
    return np.concatenate(parts)


def _slots(columns, parts, drawn):
    """Return the slots of rows that report some of their columns, as `dpestim.local.sampling` has them."""
    out = np.zeros((len(drawn), columns.report_width), columns.dtype)
    slots, flat = out.reshape(-1, columns.slot_width), drawn.ravel()
    for number, (part, at) in enumerate(zip(parts, places_of(flat, len(columns)))):
        slots[at, 0] = number
        slots[at, 1 : 1 + part.shape[1]] = part[at // columns.n_sampled]
    return out
