"""Columns: what turns values into codes, the law of what is reported of a code, and the one walk over all of them."""

import math

import numpy as np

from dpestim import parallel
from dpestim.local.origin import refuse_others, sign
from dpestim.privacy import Neighbours, PrivacyGuarantee

#: Rows of reports counted at a time.
COUNT_ROWS = 1 << 16
#: Rows that are few: what is done once for all of them takes most of the time.
_FEW = 16
#: Nanoseconds that another thread's counter costs: it is cleared, and added to that of the first.
_COUNTER_NS = 2.0


class Columns:
    """What the first data freezes: the columns of a row, and the layout of its report.

    Parameters
    ----------
    columns : list of Column
    inferred : str
        What was learned from private data ("bounds", "categories"); empty where all was declared.
    keys : tuple of str, default=None
        The names of the columns, where the domain was declared by name.
    """

    #: Columns that a row reports, drawn without looking at it (`dpestim.local.sampling`); None: all of them.
    n_sampled = None

    def __init__(self, columns, inferred="", keys=None):
        self.columns, self.inferred, self.keys = list(columns), inferred, keys
        #: The numbers of a report that are of each column, and the features of X that each column stands for.
        self.laws, self.slices, self.features = [], [], []
        self.dtype, self.report_width, self.n_features = None, 0, 0
        for column in self.columns:
            law, start, first = column.law, self.report_width, self.n_features
            self.report_width, self.n_features = start + law.report_width, first + column.n_features
            self.laws.append(law)
            self.slices.append(slice(start, self.report_width))
            self.features.append(slice(first, self.n_features))
            if self.dtype is None or law.report_dtype.itemsize > self.dtype.itemsize:
                self.dtype = law.report_dtype
        #: What sends one record at a time, by its dtype (`dpestim.local.sending`).
        self.senders = {}

    def __getstate__(self):
        return {**vars(self), "senders": {}}

    def __len__(self):
        return len(self.columns)

    def __iter__(self):
        return iter(self.columns)

    @property
    def names(self):
        """How messages call the features."""
        return [name for c in self.columns for name in c.feature_names]

    def law_of(self, column):
        """Return the law of a column of X, by number or name."""
        return self.laws[self.number_of(column)]

    def number_of(self, column):
        """Return which of the columns here reads a column of X, by number or name: a joint law reads several."""
        names = {name: j for j, name in enumerate(self.names)}
        j, n = names.get(f"column {column!r}") if isinstance(column, str) else column, self.n_features
        if isinstance(j, bool) or not isinstance(j, int | np.integer) or not -n <= j < n:
            raise ValueError(f"column must be a name or a number below {n}")
        return next(number for number, part in enumerate(self.features) if j % n < part.stop)

    def parts(self, X):
        """Return what each column reads of X: one feature, or a block of those of a joint law."""
        return [X[:, part.start if c.n_joint is None else part] for c, part in zip(self.columns, self.features)]

    def reports_of(self, number, reports):
        """Return (rows, reports of one of the columns, in these rows) of checked reports; rows None: all, in order."""
        return None, reports[:, self.slices[number]]

    def told(self, number, counts, n):
        """Return (the counts that the law of one of the columns made, how many reports they are of), of n rows."""
        return counts[number], n

    def named(self, names):
        """Return the same columns under other names, one for each feature."""
        named = [c.named(*names[part]) for c, part in zip(self.columns, self.features)]
        same = all(a is b for a, b in zip(named, self.columns))
        return self if same else self.with_columns(named)

    def with_columns(self, columns):
        """Return other columns in the same layout."""
        return Columns(columns, self.inferred, self.keys)

    def same_law(self, other):
        """Tell whether reports of the two can be counted together: every domain and every argument of every law."""
        if other is self:
            return True
        same = (self.inferred, self.n_sampled, len(self)) == (other.inferred, other.n_sampled, len(other))
        return same and all(mine.is_like(theirs) for mine, theirs in zip(self.columns, other.columns))

    def read(self, parts, n_jobs, strict):
        """Return the rows of each column, or raise before anything else has happened."""
        return [c.read(part, n_jobs, strict) for c, part in zip(self.columns, parts)]

    def check_reports(self, reports, counted=False):
        """Return reports that clients could have produced, or raise ValueError.

        `counted`: they will be counted before anything changes, so that what `count` refuses need not be looked at.
        """
        plain = self._check_format(reports)
        refuse_others(reports, self)
        for law, part in zip(self.laws, self.slices):
            if not (counted and law.count_refuses and law.report_dtype == self.dtype):
                self._check_part(law, plain[:, part])
        return plain

    def possible(self, reports):
        """Return a mask: which reports a client could have produced, of an array in the right shape and dtype."""
        out = np.ones(len(reports), bool)
        for law, part in zip(self.laws, self.slices):
            out &= passing(lambda fields, law=law: self._check_part(law, fields), reports[:, part])
        return out

    def _check_format(self, reports):
        """Return reports of the right shape and dtype as a plain array."""
        if type(reports) not in (np.ndarray, np.memmap) or reports.ndim != 2 or reports.shape[1] != self.report_width:
            raise ValueError(
                f"reports must be a two-dimensional array of width {self.report_width}, as privatize returns it: pass "
                "the same parameters to clients and server, and a Domain of the columns that clients report, such as "
                "domain[['age']]"
            )
        if reports.dtype != self.dtype:
            raise ValueError(f"reports must have dtype {self.dtype}, got {reports.dtype}")
        if not len(reports):
            raise ValueError("reports must not be empty")
        return np.asarray(reports)

    def _check_part(self, law, fields):
        """Raise ValueError unless a client could have produced what is said of one column."""
        if law.report_dtype != self.dtype and fields.max() > np.iinfo(law.report_dtype).max:
            raise ValueError(f"reports of a column must fit {law.report_dtype}")
        law.check_reports(fields)

    def decode(self, reports):
        """Return what checked reports stand for, a float for each feature, in the user's units."""
        out = np.empty((len(reports), self.n_features))
        for column, part, place in zip(self.columns, self.slices, self.features):
            out[:, place] = column.decode(np.ascontiguousarray(reports[:, part], column.law.report_dtype))
        return out

    def n_reports(self, counts):
        """Return how many reports the counts are of, an array with one entry for each feature."""
        each = [c.n_reports(own) for c, own in zip(self.columns, counts)]
        return np.repeat(each, [c.n_features for c in self.columns])

    def even_variances(self):
        """Return what `Column.even_variance` says of every feature."""
        return np.concatenate([column.even_variance() for column in self.columns])


    # ---------------------------------------------------------------- the walk

    def randomize(self, data, source, first, n_jobs):
        """Return the reports of rows as `read` gave them, of which the first has this number."""
        out = np.empty((len(data[0]), self.report_width), self.dtype)
        if len(out) <= _FEW:
            self._randomize_few(data, source, first, out)
        else:
            for number, (column, values) in enumerate(zip(self.columns, data)):
                write_column(column, number, values, out[:, self.slices[number]], source, first, n_jobs)
        return sign(out, self)

    def randomize_spent(self, data, source, first, n_jobs):
        """Return the same of rows that nobody reads again: a law may write its reports in their place.

        Two arrays of the size of the reports have fresh pages in every call, where the system gets them back, which
        takes as long as the kernels of some laws do; one has none, as long as it is not far larger than all others.
        """
        (values, *others), (column, *_) = data, self.columns
        if (others or type(self) is not Columns or len(values) <= _FEW or not column.reads_afresh
                or not column.law.may_replace_codes or self.report_width != 1 or values.dtype != self.dtype
                or not values.flags.owndata):
            return self.randomize(data, source, first, n_jobs)
        values.resize((len(values), 1), refcheck=False)  # (and no view: parts of it tell which array was signed)
        write_column(column, 0, Overwritten(values.reshape(-1)), values, source, first, n_jobs)
        return sign(values, self)

    def _randomize_few(self, data, source, first, out):
        """Do it for a client's record: all columns read one reader, and a block needs no walk around it."""
        reader, n = source.reader(), len(out)
        for number, (column, values) in enumerate(zip(self.columns, data)):
            law, part = column.law, out if len(self.columns) == 1 else out[:, self.slices[number]]
            if first + n > law.block_rows:
                write_column(column, number, values, part, source, first, None)
                continue
            report = part if part.flags.c_contiguous and part.dtype == law.report_dtype else np.empty(
                (n, law.report_width), law.report_dtype)
            law.privatize(column.coder()(values), reader.words(number, 0, first, n), report)
            if report is not part:
                part[...] = report

    def randomize_and_count(self, data, source, first, n_jobs, narrow=False):
        """Return the counts of rows as `read` gave them, column by column; no report outlives its block.

        They are int64, and add up. `narrow`: or what `wide` makes them of, which no one may add to each other.
        """
        totals = []
        for number, (column, values) in enumerate(zip(self.columns, data)):
            parts = []
            if counts_unsent(type(column.law)):
                totals.append(_counted_unsent(column, number, values, source, first, n_jobs))
                continue

            def start(tile, law=column.law, parts=parts):
                counts = np.zeros(law.n_counts, np.int64)
                parts.append(counts)
                report = np.empty((tile, law.report_width), law.report_dtype)

                def add(rows, n, fill):
                    fill(report[:n])
                    law.count(report[:n], counts)

                return add

            ns = column.law.count_ns + column.law.word_ns * column.law.report_width
            _each_block(column, values, source, number, first, n_jobs, start, _worth(column.law, len(values), ns))
            totals.append(_sum(parts))
        return totals if narrow else list(map(wide, totals))

    def count(self, reports, n_jobs, narrow=False):
        """Return the counts of checked reports, column by column, as `randomize_and_count` has them."""
        totals = []
        for law, columns in zip(self.laws, self.slices):
            part, size = reports[:, columns], law.served_rows

            def task(first, last, law=law, part=part, size=size):
                return law.counted(part[first * size : last * size])

            totals.append(_sum(parallel.run(task, -(-len(part) // size), n_jobs,
                                            most=_worth(law, len(part), law.count_ns))))
        return totals if narrow else list(map(wide, totals))

    # ---------------------------------------------------------------- the guarantee

    def guarantee(self, seeded=None, times=1, n_batches=1):
        """Return what the report of one row promises, or that many reports of one user, from the laws' own data.

        `n_batches` that were counted together, each of users of its own.
        """
        if self.inferred:
            return PrivacyGuarantee(
                math.inf, seeded=seeded, notes=(f"The {self.inferred} were learned from the private data: declare "
                                                "them.",)
            )
        notes = [f"A user may have reported {times} times."] if times > 1 else []
        if n_batches > 1:
            notes.append(f"The guarantee covers {n_batches} batches together if no user was in two of them.")
        if self.n_features > 1:
            notes.append(f"It covers the {self.n_features} columns of a row together.")
        if self.n_sampled:
            notes.append(f"Each user reports {self.n_sampled} of {len(self)} columns, drawn independently of the row.")
        notes += [f"Note: {law.slack}." for law in self.laws if law.slack]
        notes += [note for law in self.laws for note in law.notes]
        if any(c.law.relaxation and c.name.removeprefix("column ").isdecimal() for c in self.columns):
            notes.append("Columns without names are named by position: declare columns by name (a dict) if a ledger is "
                         "to add up releases under this relaxation.")
        relaxation, relaxed = None, None
        costs = [law.epsilon if law.relaxation else law.plain_epsilon for law in self.laws]
        if any(law.relaxation for law in self.laws) and math.inf not in costs:
            # one name for each column, in their order: another order is another relaxation
            relaxation = " x ".join(c.relaxation() for c in self.columns if c.law.relaxation)
            relaxed = times * self.of_row(costs)
        return PrivacyGuarantee(
            times * self.of_row([law.plain_epsilon for law in self.laws]), model="local", neighbours=Neighbours.LOCAL,
            seeded=seeded, notes=tuple(dict.fromkeys(notes)), relaxation=relaxation, relaxed_epsilon=relaxed,
        )

    def of_row(self, costs):
        """Return what a row costs, from the costs of its columns: those that it may report at worst."""
        return sum(sorted(costs)[-(self.n_sampled or len(costs)) :])


class Overwritten:
    """Codes in whose place their reports are written: what is read of them is a copy, a tile at a time."""

    def __init__(self, values):
        self._values = values

    def __len__(self):
        return len(self._values)

    def __getitem__(self, rows):
        return self._values[rows].copy()


def passing(check, rows):
    """Return a mask of the rows that a check lets pass, which raises ValueError for several as for any of them.

    Halves, and halves of those that do not pass: about 5 microseconds for each row that does not.
    """
    out, left = np.ones(len(rows), bool), [(0, len(rows))] if len(rows) else []
    while left:
        a, b = left.pop()
        try:
            check(rows[a:b])
        except ValueError:
            if b - a == 1:
                out[a] = False
            else:
                left += [(a, (a + b) // 2), ((a + b) // 2, b)]
    return out


def write_column(column, number, values, part, source, first, n_jobs):
    """Write the reports of one column, which has this number among those of the row, into its part of them."""
    law = column.law
    direct = part.flags.c_contiguous and part.dtype == law.report_dtype

    def write(rows, n, fill):
        if direct:
            fill(part[rows])
        else:
            report = np.empty((n, law.report_width), law.report_dtype)
            fill(report)
            part[rows] = report

    _each_block(column, values, source, number, first, n_jobs, lambda tile: write)


def counts_unsent(law):
    """Tell whether a class of laws counts what it would send: not where a sub-class sends or counts in its own way."""
    home = next((kind for kind in law.__mro__ if "count_sent" in vars(kind)), None)
    return home is not None and all(getattr(law, name) is getattr(home, name) for name in ("privatize", "count"))


def _counted_unsent(column, number, values, source, first, n_jobs):
    """Return the counts of the reports of one column, which are written nowhere: its law counts what it would send."""
    law, stop, size = column.law, first + len(values), column.law.block_rows
    first_block, kept = first // size, []

    def start():
        counters, codes_of, reader = law.sent_counters(len(values)), column.coder(), source.reader()
        kept.append(counters)

        def step(block):
            block += first_block
            low, high = max(first, block * size), min(stop, (block + 1) * size)
            words = reader.words(number, block, low - block * size, high - low)
            law.count_sent(codes_of(values[low - first : high - first]), words, counters)

        return step

    most = _worth(law, len(values), law.count_ns + law.word_ns * law.report_width)
    parallel.walk(start, -(-stop // size) - first_block, n_jobs, most)
    return law.counts_of_sent(*kept)


def wide(counts):
    """Return counts that may be bytes, or are made when they are read, as int64: sums of them are right."""
    if not isinstance(counts, np.ndarray):
        return counts.wide()
    return counts.astype(np.int64) if counts.dtype == np.uint8 else counts


def _sum(parts):
    """Return the sum of the counts of threads, in the array of the first."""
    total, *others = parts
    if others:
        total = wide(total)
    for part in others:
        total += part
    return total


def _worth(law, n_rows, ns):
    """Return how many threads count so many rows in less time than fewer, where a row takes one so many nanoseconds.

    Each has counters of its own, which are cleared and added up.
    """
    return max(1, int(n_rows * ns / (_COUNTER_NS * law.n_counts)))


def _each_block(column, values, source, number, first, n_jobs, start, most=None):
    """Hand ``start(tile)(rows, n, fill)`` a tile of at most so many rows: a part of a block, a block or several.

    ``fill(report)`` writes n reports. `start` is called once for each thread, and threads are at most so many. Several
    take whole blocks: they would wait for each other's turn in Python more often than a block's fresh pages are worth.
    """
    size, tile = column.law.block_rows, column.law.counted_rows
    together, stop, first_block = max(1, tile // size), first + len(values), first // size
    n_steps = -(-(-(-stop // size) - first_block) // together)
    if parallel.threads(n_steps, n_jobs, most) > 1:
        tile = max(tile, size)

    def start_thread():
        receive, privatize, reader = start(tile), column.privatizer(), source.reader()

        def fill(reports, row):
            while len(reports):
                block = row // size
                n = min((block + 1) * size - row, len(reports))
                part = values[row - first : row - first + n]
                privatize(part, reader.words(number, block, row - block * size, n), reports[:n])
                reports, row = reports[n:], row + n

        def step(k):
            block = first_block + k * together
            low, high = max(first, block * size), min(stop, (block + together) * size)
            while low < high:  # (tiles end where they do in any call, whichever row is the first)
                end = min(high, low + tile - (low - block * size) % tile)
                receive(slice(low - first, end - first), end - low, lambda out, row=low: fill(out, row))
                low = end

        return step

    parallel.walk(start_thread, n_steps, n_jobs, most)


def column_names(n, names):
    """Return how messages and relaxations call the columns: by name, or by position where they have none."""
    if names is None:
        return [f"column {j}" for j in range(n)]
    # (a label that is a number must not pass for a position)
    return [f"column {str(name)!r}" if isinstance(name, str) else f"column label {name!r}" for name in names]
