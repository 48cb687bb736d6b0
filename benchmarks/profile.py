"""Where the time of `fit` goes: its stages one by one, each over all users, in one thread."""

import numpy as np

from benchmarks._harness import Row, interleave
from benchmarks.frequencies import Case, mechanisms
from dpestim.rng import Stage, WordSource


class _Drawn:
    """Words that were drawn before: what is left of `privatize` is the kernel (and the rare words, drawn anew)."""

    def __init__(self, words):
        self._words, self._drawn = words, {}

    def dense(self, stage, per_row):
        if (stage, per_row) not in self._drawn:
            self._drawn[stage, per_row] = self._words.dense(stage, per_row).copy()
        return self._drawn[stage, per_row]

    def __getattr__(self, name):
        return getattr(self._words, name)


def rows(settings):
    """Yield one row for each mechanism: the whole fit, and in the note what its stages take by themselves."""
    for name, cls in mechanisms():
        case = Case(cls, settings.n, 1024)
        try:
            times, repeats = _stages(case)
        except ValueError:  # a mechanism for fewer values
            continue
        stages = ", ".join(f"{stage} {1e3 * seconds:.2f} ms" for stage, seconds in times.items() if stage != "fit")
        yield Row(f"{name} profile of fit, {case.n:,} x {case.d}", ours=times["fit"], repeats=repeats, note=stages)


def _stages(case):
    fitted = case.fit()
    randomizer, columns = fitted.randomizer(), fitted._columns
    codes = columns.read([case.X[:, 0]], None, False)[0]
    size = min(randomizer.block_rows, case.n)
    blocks = range(case.n // size)
    reader = WordSource().reader()
    drawn = _Drawn(reader.words(0, 0, 0, size))
    reports = np.empty((size, randomizer.report_width), randomizer.report_dtype)
    counts = np.zeros(randomizer.n_counts, np.int64)

    def words():
        for block in blocks:
            reader.dense(Stage.RESPONSE, 0, block, 0, size * randomizer.n_words)

    def kernel():
        for block in blocks:
            randomizer.privatize(codes[block * size : (block + 1) * size], drawn, reports)

    def count():
        for _ in blocks:
            randomizer.count(reports, counts)

    times, _, repeats = interleave({
        "fit": case.fit,
        "declare": lambda: type(fitted)(1.0, categories=[np.arange(case.d)]).randomizer(),
        "encode": lambda: columns.read([case.X[:, 0]], None, False),
        "words": words,
        "answer": kernel,
        "count": count,
    })
    return times, repeats
