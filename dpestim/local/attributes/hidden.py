"""The truth about one column and fakes of the others: which column is true is drawn, and nobody is told.

Every user draws a column without looking at the row, reports its value by the column's law, and reports a fake of each
other column by the same laws: of a value drawn from a public list of weights, or of no value. A report so looks like
that of `Columns`, and is counted like it. All chances are integers over 2^64, and the worst case is exact.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpestim import parallel
from dpestim.local.attributes.blank import BlankOUE, BlankSUE
from dpestim.local.categories.grr import GRR
from dpestim.local.categories.unary import OUE, SUE
from dpestim.local.columns import Columns
from dpestim.privacy.exact import WORD, canonical_epsilon, within
from dpestim.rng import Stage

#: Rows whose columns and fakes are drawn at a time.
_BLOCK = 1 << 16
#: The laws whose worst case among fakes is known, by the names of parameters; and those that can report no value.
LAWS = {"grr": GRR, "oue": OUE, "sue": SUE}
BLANK = {"oue": BlankOUE, "sue": BlankSUE}
#: Epsilons are solved for up to this step.
_STEP = Fraction(1, 1 << 30)


def weights_of(shares):
    """Return integers that add up to 2^64, in proportion to shares (Fractions of at least 0) up to rounding."""
    total = sum(shares)
    whole = [WORD * share // total for share in shares]
    whole[max(range(len(shares)), key=shares.__getitem__)] += WORD - sum(whole)
    return tuple(int(weight) for weight in whole)


def even_weights(n):
    """Return n integers that add up to 2^64 and differ by one at most."""
    return tuple((k + 1) * WORD // n - k * WORD // n for k in range(n))


def ends_of(weights):
    """Return where one number ends and the next begins, as words: a word's number is how many ends are at most it."""
    ends, total = [], 0
    for weight in weights[:-1]:
        total += weight
        if total < WORD:  # (none of the numbers after all weight is drawn)
            ends.append(total)
    return np.array(ends, np.uint64)


def odds_of(law):
    """Return (a, b): a report is a : b times as likely for a value that it supports as for one that it does not."""
    if isinstance(law, GRR):
        return law.p_star, law.q_star
    return law.p_star / law.q_star, (1 - law.p_star) / (1 - law.q_star)


def bounds_of(law, fakes):
    """Return (odds, h, l) of a column, Fractions: claim 3 of ``multi.md``.

    Odds are those of two values. Over all reports that tell two values apart, the chance of the report for the less
    likely value is at most h times that as a fake; over all reports and values it is at least l times that.
    """
    a, b = odds_of(law)
    if fakes is None:
        return a / b, b, b
    shares = [Fraction(weight, WORD) for weight in fakes]
    if isinstance(law, GRR):
        return a / b, b / (b + min(shares) * (a - b)), b / (b + max(shares) * (a - b))
    return a / b, b / (b + min(shares) * (a - b)), b / (a - min(shares) * (a - b))


def ratio_of_one(laws, fakes, chances):
    """Return the largest ratio of the chances of a report for two rows that differ in one column, a Fraction."""
    parts = [(Fraction(chance, WORD), *bounds_of(law, own)) for chance, law, own in zip(chances, laws, fakes)]
    least = sum(chance * low for chance, _, _, low in parts)
    worst = Fraction(1)
    for chance, odds, high, low in parts:
        others = least - chance * low
        worst = max(worst, (chance * odds * high + others) / (chance * high + others))
    return worst


def solved(epsilon, make, fakes, chances):
    """Return the largest epsilon of the laws, up to 2^-30, with which rows that differ in one column have `epsilon`.

    `make` returns the laws of an epsilon. The worst case of what is returned was computed, and is at most e^epsilon.
    """
    low, high = 0, int((80 - epsilon) / _STEP)
    while low < high:
        middle = (low + high + 1) // 2
        ratio = ratio_of_one(make(epsilon + middle * _STEP), fakes, chances)
        low, high = (middle, high) if within(ratio.numerator, ratio.denominator, epsilon) else (low, middle - 1)
    return canonical_epsilon(epsilon + low * _STEP)


class HiddenColumns(Columns):
    """The columns of a row of which each user tells the truth about one, and nobody learns which.

    Parameters
    ----------
    columns, inferred, keys : as `Columns`
        With laws of `LAWS` and `BLANK`.
    fakes : tuple of (tuple of int or None)
        For each column, integers that add up to 2^64: how often each value is a fake one. None: no value is.
    neighbours : {"tuple", "attribute"}
    promised : Fraction
        Epsilon for these neighbours.
    """

    def __init__(self, columns, inferred="", keys=None, *, fakes, neighbours, promised):
        super().__init__(columns, inferred, keys)
        self.fakes, self.neighbours, self.promised = tuple(fakes), neighbours, promised
        self.chances = even_weights(len(self))

    def with_columns(self, columns):
        """Return the same draws of other columns."""
        return HiddenColumns(columns, self.inferred, self.keys, fakes=self.fakes, neighbours=self.neighbours,
                             promised=self.promised)

    def same_law(self, other):
        """Tell whether reports of the two can be counted together: fakes, too."""
        return isinstance(other, HiddenColumns) and super().same_law(other) and (
            self.fakes, self.neighbours, self.promised) == (other.fakes, other.neighbours, other.promised)

    def randomize(self, data, source, first, n_jobs):
        """Return the reports of rows as `read` gave them, of which the first has this number."""
        return super().randomize(self._mixed(data, source, first, n_jobs), source, first, n_jobs)

    def randomize_and_count(self, data, source, first, n_jobs, narrow=False):
        """Return the counts of rows as `read` gave them, column by column."""
        return super().randomize_and_count(self._mixed(data, source, first, n_jobs), source, first, n_jobs, narrow)

    def _mixed(self, data, source, first, n_jobs):
        """Return the codes that are reported: the true ones of the drawn column of a row, fake ones of the others."""
        stop, first_block = first + len(data[0]), first // _BLOCK
        out = [np.empty(len(data[0]), law.code_dtype) for law in self.laws]
        of_column, of_value = ends_of(self.chances), [None if own is None else ends_of(own) for own in self.fakes]

        def task(a, b):
            reader = source.reader()
            for block in range(first_block + a, first_block + b):
                low, high = max(first, block * _BLOCK), min(stop, (block + 1) * _BLOCK)
                at, rows = (block, low - block * _BLOCK, high - low), slice(low - first, high - first)
                drawn = np.searchsorted(of_column, reader.words(0, *at).dense(Stage.SUBSET, 1), side="right")
                for number, ends in enumerate(of_value):
                    fake = self.laws[number].n_categories
                    if ends is not None:
                        fake = np.searchsorted(ends, reader.words(number, *at).dense(Stage.SECOND, 1), side="right")
                    out[number][rows] = np.where(drawn == number, data[number][rows], fake)

        parallel.run(task, -(-stop // _BLOCK) - first_block, n_jobs)
        return out

    # ---------------------------------------------------------------- what is promised, and what counts tell

    def of_row(self, costs):
        """Return what a row costs: as much as its column of the largest cost, because one of them tells the truth."""
        return max(costs)

    def guarantee(self, seeded=None, times=1, n_batches=1):
        """Return what the report of one row promises; for rows that differ in one column under a relaxation."""
        plain = super().guarantee(seeded, times, n_batches)
        if self.inferred:
            return plain
        notes = (*plain.notes, f"Each user reports the value of 1 of {len(self)} columns and fakes of the others; "
                 "nobody is told which.")
        if self.neighbours == "tuple":
            return replace(plain, notes=notes)
        return replace(plain, notes=notes, relaxation=f"one column differs({', '.join(self.names)})",
                       relaxed_epsilon=times * self.promised)

    def of_all(self, number):
        """Return the `Mixture` that the reports of a column follow."""
        own, chance = self.fakes[number], self.chances[number] / WORD
        return Mixture(self.laws[number], chance, 0.0 if own is None else np.array(own, np.float64) / float(WORD))


class Mixture:
    """What all reports of a column tell, of which a share are fakes; floats.

    Parameters
    ----------
    law : CategoricalRandomizer
    chance : float
        How often a report is true.
    fake : ndarray or float
        How often each value is a fake one.
    """

    def __init__(self, law, chance, fake):
        self.law, self.chance, self.fake = law, chance, fake
        p, q = float(law.p_star), float(law.q_star)
        others = (1 - chance) * (q + fake * (p - q))
        #: How often a report supports a value, of who holds it, and of who does not.
        self.own, self.other = chance * p + others, chance * q + others

    def estimate(self, counts, n):
        """Return the shares of the values, without bias."""
        return (self.law.estimate(counts, n) - (1 - self.chance) * self.fake) / self.chance

    def variance_line(self, counts, n):
        """Return (at_zero, slope) of n times the variance as a line in the share that holds a value."""
        one, none = self.own * (1 - self.own), self.other * (1 - self.other)
        unit = (self.own - self.other) ** 2
        return none / unit, (one - none) / unit

    def likelihood(self, counts, n):
        """Return what `dpestim.postprocessing.ibu` needs: a report is one code, or supports values independently."""
        size = self.law.n_categories
        pair = np.broadcast_to(self.own, size), np.broadcast_to(self.other, size)
        return {"law": pair, "counts": counts, **({} if isinstance(self.law, GRR) else {"n": n})}
