"""Parts that Spark holds, classic or Connect: a request is one pass of `mapInPandas`, and answers are added here."""

import pickle

from dpestim.distributed.parts import Split, added, made_up
from dpestim.passes import Place


class SparkParts:
    """A Spark DataFrame."""

    def __init__(self, data, y=None, users=None):
        self.split = Split.by(y, users)
        # (all rows of a user must meet in one part, and Spark brings them together)
        self.data = data if users is None else data.repartition(data[users])

    @property
    def example(self):
        """One made-up row of the columns and types of the schema."""
        return self.split(made_up(self.data.limit(0).toPandas()))

    def answer(self, request):
        """Return the merged answer of all parts."""
        before = self._sizes() if request.needs_order else {}
        split, together = self.split, self.split.of == "users"

        def ask(batches):
            import pandas
            from pyspark import TaskContext

            part, seen, total = TaskContext.get().partitionId(), 0, None
            if together:  # (all rows of a user count together)
                batches = [pandas.concat(list(batches) or [pandas.DataFrame()])]
            for batch in batches:
                if not len(batch):
                    continue
                rows = split(batch)
                place = Place(0, before[part] + seen) if before else Place(part, seen)
                total, seen = added(request, total, request(rows, place)), seen + len(batch)
            yield pandas.DataFrame({"part": [part], "answer": [pickle.dumps(total)]})

        total = None
        answers = self.data.mapInPandas(ask, "part int, answer binary").collect()
        for row in sorted(answers, key=lambda row: row["part"]):
            total = added(request, total, pickle.loads(bytes(row["answer"])))
        return total

    def reports(self, request, width, dtype):
        """Return a Spark DataFrame with one column of bytes, "report"."""
        before, split = self._sizes() if request.needs_order else {}, self.split

        def ask(batches):
            import pandas
            from pyspark import TaskContext

            part, seen = TaskContext.get().partitionId(), 0
            for batch in batches:
                if len(batch):
                    found = request(split(batch), Place(0, before[part] + seen) if before else Place(part, seen))
                    seen += len(batch)
                    yield pandas.DataFrame({"report": [row.tobytes() for row in found]})

        return self.data.mapInPandas(ask, "report binary")

    def _sizes(self):
        """Return how many rows come before each part."""
        def size(batches):
            import pandas
            from pyspark import TaskContext

            yield pandas.DataFrame({"part": [TaskContext.get().partitionId()], "n": [sum(map(len, batches))]})

        before, n = {}, 0
        for row in sorted(self.data.mapInPandas(size, "part int, n long").collect(), key=lambda row: row["part"]):
            before[row["part"]], n = n, n + row["n"]
        return before
