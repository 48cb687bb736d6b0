"""Checks of any law: exact first, then a sample of its kernel against it."""

from fractions import Fraction

import numpy as np
from scipy import stats

from dpestim.testing.sample import ALPHA, WRONG_FACTORS, N, reports_of
from dpestim.testing.tools import differs_each_time, require

#: Reports of which something must be the same, bit by bit: where it is not for one of 4,000, so many miss it by e^-25.
EXACT = N // 4


def check_rows_sum_to_one(sample):
    """Every row of the transition matrix is a probability distribution, exactly."""
    for column in sample.columns:
        for row in column.matrix:
            require(all(isinstance(p, Fraction | int) for p in row), "transition_matrix must hold Fractions")
            require(min(row) >= 0 and sum(row) == 1, "a row of transition_matrix is no distribution")


def check_kernel_follows_law(sample):
    """Reports follow the transition matrix (chi-square, n = 400,000, alpha = 1e-6), not those of 0.7 or 1.3 epsilon."""
    for column in sample.columns:
        law = column.law
        rows, columns = column.randomizer.law_indices(column.codes, column.reports)
        require(
            rows.min() >= 0 and rows.max() < law.shape[0] and columns.min() >= 0 and columns.max() < law.shape[1],
            "law_indices points outside the transition matrix",
        )
        seen = np.bincount(rows * law.shape[1] + columns, minlength=law.size).reshape(law.shape)
        require(chi_square(seen, law) > ALPHA, "the kernel does not follow the transition matrix")
        for factor in WRONG_FACTORS:
            wrong = law**factor
            wrong /= wrong.sum(axis=1, keepdims=True)
            require(chi_square(seen, wrong) < ALPHA, f"the check cannot tell epsilon from {factor} epsilon")


def check_nothing_else_is_sent(sample):
    """A report is its public part and a column of the law, nothing else; the public part knows no value.

    Half of the rows get another value, and all of them new words, except those of `Stage.SEED`. Then each public part
    must be the same, bit by bit: it depends neither on the value nor on what the answer is drawn from (and so does
    whatever can be worked out of it, such as two of its bytes together, or the row of the law that a value has). Equal
    public parts and equal columns must make equal reports. And where the value is the same the two answers must be
    independent: they agree as often as the law says (binomial test, n = 200,000, alpha = 1e-6), and oftener if the
    answer depends on the words that the public part is made of, in whatever way. Without a public part each column must
    be one report, and each input its own row.
    """
    for column in sample.columns:
        law, codes, reports, inputs = column.randomizer, column.codes, column.reports, column.inputs
        number = column.numbers
        rows, columns = law.law_indices(codes, reports)
        public = law.public_part(reports)
        if public is None:
            require(np.array_equal(rows, number), "law_indices: without a public part input number k has row k")
            one = np.zeros((column.law.shape[1], reports.shape[1]), reports.dtype)
            one[columns] = reports
            require(np.array_equal(one[columns], reports), "a report holds more than its column of the law says")
            continue
        changed = np.arange(N) % 2 == 1
        others = inputs[np.where(changed, (number + 1) % len(inputs), number)]
        again = column.draw(others, seed=2, others=3)
        same = np.array_equal(law.public_part(again), public)
        require(same, "the public part of a report must follow from the words of Stage.SEED alone")
        few, more = reports[:EXACT], again[:EXACT]
        for x in inputs:
            every = np.ascontiguousarray(np.broadcast_to(x, (len(few), *codes.shape[1:])))
            same = np.array_equal(law.law_indices(every, few)[0], law.law_indices(every, more)[0])
            require(same, "the row of the law must follow from the value and the public part")
        equal = columns == law.law_indices(others, again)[1]
        require(np.array_equal(reports[equal], again[equal]), "a report holds more than its column of the law says")
        chance = np.square(column.law).sum(axis=1)[rows][~changed]
        room = stats.norm.isf(ALPHA) * np.sqrt((chance * (1 - chance)).sum())
        same = equal[~changed].sum() <= chance.sum() + room
        require(same, "given the public part of a report the rest does not follow the law")


def check_words_are_never_repeated(sample):
    """The noise of different rows, blocks, columns and calls is independent (correlation, alpha = 1e-6)."""
    for column in sample.columns:
        randomizer, size = column.randomizer, column.randomizer.block_rows

        def signals(x, seed=0, number=0, randomizer=randomizer):
            codes = np.repeat(np.asarray(x)[None], max(2 * randomizer.block_rows, 20_000), axis=0)
            reports = reports_of(randomizer, codes, seed, number)
            return randomizer.support(reports) if hasattr(randomizer, "support") else reports[:, :1]

        # a relaxed law may have inputs, and columns of their supports, that never vary: take the first that does
        for x in column.inputs:
            found = signals(x)
            varies = np.flatnonzero((found != found[0]).any(axis=0))
            if varies.size:
                break
        require(varies.size, "the noise of no input varies")

        def own(seed, number=0, signals=signals, x=x, place=varies[0]):
            return signals(x, seed, number)[:, place].astype(float)

        first = found[:, varies[0]].astype(float)
        pairs = {
            "neighbouring rows": (first[:-1], first[1:]),
            "rows two apart": (first[:-2], first[2:]),
            "two blocks": (first[:size], first[size : 2 * size]),
            "two columns": (first, own(0, number=1)),
            "two seeds": (first, own(1)),
        }
        for name, (a, b) in pairs.items():
            if len(a) < 30 or a.std() == 0 or b.std() == 0:
                require(len(a) < 30, f"the noise of {name} does not vary")
                continue
            require(not _correlated(a, b), f"the noise of {name} is correlated: words are repeated")
        # (without a seed, chance says more than alpha allows once in a million runs: it never does so every time)
        new = differs_each_time(lambda: own(None), _correlated)
        require(new, "the noise of two secure calls is correlated, or does not vary: words are repeated")


def _correlated(a, b):
    """Tell whether two long rows of noise are correlated (alpha = 1e-6), or one of them does not vary."""
    if a.std() == 0 or b.std() == 0:
        return True
    return abs(np.corrcoef(a, b)[0, 1]) * np.sqrt(len(a)) >= stats.norm.isf(ALPHA / 2)


def check_blocks_in_any_order(sample):
    """The reports of a block do not depend on the blocks that were randomised before it."""
    for column in sample.columns:
        n = min(2 * column.randomizer.block_rows + 17, 600_000)
        codes = column.inputs[np.arange(n) % len(column.inputs)]
        backwards = column.draw(codes, order=lambda blocks: list(blocks)[::-1])
        require(np.array_equal(column.draw(codes), backwards), "reports depend on the order of the blocks")


def chi_square(seen, law):
    """Return the p-value of counts against a law, row by row, cells of fewer than 5 expected taken together."""
    expected = law * seen.sum(axis=1, keepdims=True)
    statistic, freedom = 0.0, 0
    for observed, wanted in zip(seen, expected):
        small = wanted < 5
        observed = np.append(observed[~small], observed[small].sum())
        wanted = np.append(wanted[~small], wanted[small].sum())
        keep = wanted > 0
        if observed[~keep].any():
            return 0.0
        statistic += float((np.square(observed - wanted)[keep] / wanted[keep]).sum())
        freedom += max(int(keep.sum()) - 1, 0)
    return stats.chi2.sf(statistic, freedom) if freedom else 1.0  # (what is certain was seen: nothing else can be)


LAW_CHECKS = (
    check_rows_sum_to_one,
    check_kernel_follows_law,
    check_nothing_else_is_sent,
    check_words_are_never_repeated,
    check_blocks_in_any_order,
)
