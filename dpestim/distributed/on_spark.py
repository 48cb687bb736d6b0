"""Parts that Spark holds, classic or Connect: a request is one pass of `mapInArrow`, and answers are added here.

Not `mapInPandas`: it makes floats of integers beside a null, which would change the values of other rows.
"""

import pickle

from dpestim.distributed.parts import Split, added, made_up
from dpestim.passes import Place

#: Rows and bytes that are answered at once: more change nothing but the memory.
_MOST_ROWS, _MOST_BYTES = 1 << 18, 1 << 25


class SparkParts:
    """A Spark DataFrame."""

    def __init__(self, data, y=None, users=None, columns=None):
        self.split = Split.by(y, users, columns)
        self.split.check(data.columns)
        if columns is not None:
            data = data.select(*map(_quoted, self.split.wanted))
        # (all rows of a user must meet in one part, and Spark brings them together)
        data = data if users is None else data.repartition(data[_quoted(users)])
        # (columns have numbers: `mapInArrow` takes a dot in a name for a field within a column)
        self.names, self.data = data.columns, data.toDF(*map(str, range(len(data.columns))))

    @property
    def example(self):
        """One made-up row of the columns and types of the schema."""
        return self.split(made_up(self.data.limit(0).toPandas().set_axis(self.names, axis=1)))

    def answer(self, request):
        """Return the merged answer of all parts."""
        before = self._sizes() if request.needs_order else {}
        split, names, together = self.split, self.names, self.split.of == "users"

        def ask(batches):
            import pyarrow
            from pyspark import TaskContext, cloudpickle  # (the class of an estimator may be the user's)

            part, seen, total = TaskContext.get().partitionId(), 0, None
            for batch in _joined(batches, everything=together):  # (all rows of a user count together)
                place = Place(0, before[part] + seen) if before else Place(part, seen)
                rows, seen = split(_named(batch, names)), seen + batch.num_rows
                total = added(request, total, request(rows, place))
            yield _batch({"part": ([part], pyarrow.int32()), "answer": ([cloudpickle.dumps(total)], pyarrow.binary())})

        total = None
        answers = self.data.mapInArrow(ask, "part int, answer binary").collect()
        for row in sorted(answers, key=lambda row: row["part"]):
            total = added(request, total, pickle.loads(bytes(row["answer"])))
        return total

    def reports(self, request, shown):
        """Return a Spark DataFrame with one column of what the rows are turned into; reports are bytes."""
        like = shown()
        kind = None if like.name == "report" else _kind_of(like)
        before, split = self._sizes() if request.needs_order else {}, self.split
        names = self.names

        def ask(batches):
            import pyarrow
            from pyspark import TaskContext

            part, seen = TaskContext.get().partitionId(), 0
            for batch in batches:
                if batch.num_rows:
                    place = Place(0, before[part] + seen) if before else Place(part, seen)
                    found, seen = request(split(_named(batch, names)), place), seen + batch.num_rows
                    values = [row.tobytes() for row in found] if kind is None else like.filled(found).tolist()
                    yield _batch({like.name: (values, *([pyarrow.binary()] if kind is None else []))})

        return self.data.mapInArrow(ask, f"{like.name} {kind or 'binary'}")

    def _sizes(self):
        """Return how many rows come before each part."""
        def size(batches):
            import pyarrow
            from pyspark import TaskContext

            n = sum(batch.num_rows for batch in batches)
            yield _batch({"part": ([TaskContext.get().partitionId()], pyarrow.int32()), "n": ([n], pyarrow.int64())})

        before, n = {}, 0
        for row in sorted(self.data.mapInArrow(size, "part int, n long").collect(), key=lambda row: row["part"]):
            before[row["part"]], n = n, n + row["n"]
        return before


def _joined(batches, *, everything):
    """Yield tables of the rows of batches: Spark sends 10,000 rows at once, and each answer costs 0.5 ms besides."""
    import pyarrow

    found, n_rows, n_bytes = [], 0, 0
    for batch in batches:
        if batch.num_rows:
            found.append(batch)
            n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batch.nbytes
        if not everything and (n_rows >= _MOST_ROWS or n_bytes >= _MOST_BYTES):
            yield pyarrow.Table.from_batches(found)
            found, n_rows, n_bytes = [], 0, 0
    if found:
        yield pyarrow.Table.from_batches(found)


def _named(rows, names):
    """Return a table or a batch of Arrow with these names of columns."""
    return type(rows).from_arrays(rows.columns, names=names)


def _quoted(name):
    """Return the name of a column as Spark reads it."""
    return f"`{name.replace('`', '``')}`"


def _kind_of(like):
    """Return what Spark calls the type of what rows are turned into."""
    kind = {"f": "double", "i": "bigint", "u": "bigint", "b": "boolean"}.get(like.dtype.kind, "string")
    return kind if like.width is None else f"array<{kind}>"


def _batch(columns):
    """Return a record batch of columns, each (values, type)."""
    import pyarrow

    return pyarrow.RecordBatch.from_arrays([pyarrow.array(*own) for own in columns.values()], names=list(columns))
