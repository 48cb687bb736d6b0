"""What the checks of one setting share: its laws, and reports that are drawn once and looked at by all.

A `Sample` is made with the list of checks and filled when the first of them asks; it lives as long as that list does,
and holds about 30 bytes a report: some 15 MB a column.
"""

from functools import cached_property

import numpy as np

from dpestim.privacy.divergence import as_integers
from dpestim.rng import Stage, Words, WordSource
from dpestim.testing.tools import client_of, fresh, raw_rows

#: Sample size and significance of the statistical checks. A correct mechanism fails one with probability ALPHA (once
#: and for all, because samples are seeded); the same test must reject the laws of 0.7 and 1.3 times epsilon.
N = 400_000
ALPHA = 1e-6
WRONG_FACTORS = (0.7, 1.3)
#: The sample is also that many populations of so many users, whose values are the same but for their order: the ratio
#: of the variances of their estimates has a standard error of sqrt(2 / 4000) = 2 %.
REPEATS, USERS = 4000, 100


class Sample:
    """An estimator to check, and what its checks share."""

    def __init__(self, estimator, kind=None):
        self.estimator, self.kind = estimator, kind

    @cached_property
    def randomizers(self):
        """The frozen laws, one for each column."""
        client = client_of(self.estimator)
        return fresh(client).fit(raw_rows(client, 2)).randomizers_

    @cached_property
    def columns(self):
        """One `ColumnSample` for each column."""
        return [ColumnSample(randomizer, k) for k, randomizer in enumerate(self.randomizers)]

    @cached_property
    def n_sampled(self):
        """Columns that a row reports, where not all of them; else None."""
        if getattr(client_of(self.estimator), "strategy", None) != "sample":
            return None
        return fresh(client_of(self.estimator)).fit(raw_rows(self.estimator, 2)).n_sampled_

    @property
    def n_reported(self):
        """The number of laws whose reports make that of a row."""
        return self.n_sampled or len(self.randomizers)

    def rows(self, n, seed=0):
        """Return raw rows that suit the declared domain."""
        return raw_rows(self.estimator, n, seed)

    @cached_property
    def block_rows(self):
        """Raw rows that fill two blocks of random words in every column, and start a third."""
        n = min(max(2 * max(r.block_rows for r in self.randomizers) + 17, 1000), 600_000)
        return self.rows(1000)[np.arange(n) % 1000]

    def fresh(self, **params):
        """Return an unfitted clone with other parameters of what randomises, seeded unless they say otherwise."""
        return fresh(self.estimator, **params)


class ColumnSample:
    """The law of a column, and reports that follow it."""

    def __init__(self, randomizer, number):
        self.randomizer, self.number = randomizer, number

    @cached_property
    def matrix(self):
        """The law as the randomizer states it."""
        return self.randomizer.transition_matrix()

    @cached_property
    def whole(self):
        """The law as Python integers over one denominator, for exact comparisons."""
        return as_integers(self.matrix)[0]

    @cached_property
    def law(self):
        """The law as floats, for statistics."""
        return np.array([[float(p) for p in row] for row in self.matrix])

    @cached_property
    def inputs(self):
        """The codes that rows of the law are about."""
        r = self.randomizer
        return r.input_codes if hasattr(r, "input_codes") else np.arange(r.n_categories).astype(r.code_dtype)

    @cached_property
    def population(self):
        """The codes of USERS users: every input about as often as any other (the first of few twice as often)."""
        return self.inputs[self._population]

    @cached_property
    def _population(self):
        k = len(self.inputs)
        return np.sort(np.arange(USERS) % (k + 1) % k)

    @cached_property
    def numbers(self):
        """Which inputs are those of N users: REPEATS times the population, each time in another order.

        Or drawn, where inputs outnumber it.
        """
        rng = np.random.default_rng(1)
        if 3 * len(self.inputs) > USERS:
            return rng.integers(0, len(self.inputs), N)
        return rng.permuted(np.tile(self._population, (REPEATS, 1)), axis=1).ravel()

    @cached_property
    def codes(self):
        """Their codes."""
        return self.inputs[self.numbers]

    @cached_property
    def reports(self):
        """Their reports."""
        return self.draw(self.codes, seed=2)

    @cached_property
    def support(self):
        """What these support, for laws of categories."""
        return self.randomizer.support(self.reports)

    @cached_property
    def truth(self):
        """The frequencies of the categories in every population."""
        return np.bincount(self.population, minlength=len(self.inputs)) / USERS

    @cached_property
    def estimates(self):
        """REPEATS estimates of the truth, from USERS users each."""
        r = self.randomizer
        estimates = np.empty((REPEATS, len(self.inputs)))
        for k, part in enumerate(self.reports.reshape(REPEATS, USERS, -1)):
            counts = np.zeros(r.n_counts, np.int64)
            r.count(part, counts)
            estimates[k] = r.estimate(counts, USERS)
        return estimates

    def draw(self, codes, seed=0, order=None, others=None):
        """Return the reports of codes, block by block (in the given order), as every estimator makes them."""
        return reports_of(self.randomizer, codes, seed, self.number, order, others)


def reports_of(randomizer, codes, seed=0, column=0, order=None, others=None):
    """Return the reports of one column's codes, block by block (in the given order), as every estimator makes them.

    Where `others` is given all words are of that seed, except those of `Stage.SEED`.
    """
    out = np.zeros((len(codes), randomizer.report_width), randomizer.report_dtype)
    size = randomizer.block_rows
    reader = WordSource(seed).reader()
    if others is not None:
        reader = _TwoReaders(reader, WordSource(others).reader())
    blocks = range(-(-len(codes) // size))
    for block in blocks if order is None else order(blocks):
        part = np.ascontiguousarray(codes[block * size : (block + 1) * size])
        words = Words(reader, column, block, 0, len(part))
        randomizer.privatize(part, words, out[block * size : (block + 1) * size])
    return out


class _TwoReaders:
    """Words of one reader for `Stage.SEED`, of another for all other stages."""

    def __init__(self, seeds, others):
        self._seeds, self._others = seeds, others

    def _of(self, stage):
        return self._seeds if stage == Stage.SEED else self._others

    def dense(self, stage, *at):
        return self._of(stage).dense(stage, *at)

    def sparse(self, stage, *at):
        return self._of(stage).sparse(stage, *at)

    def cipher(self, stage, *at):
        return self._of(stage).cipher(stage, *at)

    def below(self, stage, *at):
        return self._of(stage).below(stage, *at)

    def scratch(self, size, dtype):
        return self._others.scratch(size, dtype)
