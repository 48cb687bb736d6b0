"""What malicious users may aim at: a number that is estimated, and how far one report moves it."""

from fractions import Fraction
from itertools import combinations
from numbers import Real
from typing import NamedTuple

import numpy as np

from dpestim.inputs.columns import object_array
from dpestim.local.categories.column import CategoryColumn
from dpestim.local.categories.estimator import CategoryClient
from dpestim.local.categories.frequencies import Frequencies
from dpestim.local.estimates.mean import MeanEstimator
from dpestim.local.estimates.mixed import MixedEstimator
from dpestim.local.keyvalue.column import PairColumn
from dpestim.local.keyvalue.estimates import variances
from dpestim.local.numbers.joint import JointColumn
from dpestim.local.numbers.missing_column import MissingColumn
from dpestim.local.numbers.transformer import NumericTransformer

#: Frequencies that are all handed to a law to ask for its errors.
_MOST_FREQUENCIES = 1 << 22


class Linear(NamedTuple):
    """A number that is estimated by a mean over reports; ends are (least, most), exact where they are Fractions.

    reports, inputs : what one report counts as, and what the reports of one input count as on average.
    drawn : how likely a report tells of the number at all, whatever the user holds.
    honest : the number among honest users; None is the worst case.
    variance : a function from users to the variance of the estimate, or None.
    """

    what: str
    reports: tuple
    inputs: tuple
    drawn: Fraction
    honest: Fraction | None
    variance: object

    def gain(self, share, attack, raises):
        """Return how far a share of malicious users moves the expected estimate at most."""
        ends = self.inputs if attack == "input" else self.reports
        honest = self.inputs[not raises] if self.honest is None else self.honest
        return part_of(share, attack, self.drawn) * (ends[raises] - honest)


class Ratio(NamedTuple):
    """A mean that is estimated as total / share, both means over reports, and clipped to [-bound, bound].

    reports, inputs : the extreme pairs (share, total).
    honest : (share, mean) among honest users.
    most : a larger share than this is taken to be this; None: any share is divided by.
    unit : a unit of the mean, in the user's.
    """

    what: str
    reports: tuple
    inputs: tuple
    drawn: Fraction
    honest: tuple
    variance: object
    bound: Fraction
    most: Fraction | None
    unit: Fraction

    def gain(self, share, attack, raises):
        """Return how far a share of malicious users moves the limit of the estimate for many users at most.

        The estimate has no peak between reports, but where its formula changes: where the share is 0 or `most`.
        """
        part, (held, mean) = part_of(share, attack, self.drawn), self.honest
        sign = 1 if raises else -1
        points = [((1 - part) * held + part * s, sign * ((1 - part) * held * mean + part * t))
                  for s, t in (self.inputs if attack == "input" else self.reports)]
        edges = [0] if self.most is None else [0, self.most]
        points += [(edge, t + (edge - s) / (other - s) * (u - t)) for (s, t), (other, u) in combinations(points, 2)
                   for edge in edges if min(s, other) < edge < max(s, other)]
        return (sign * max(self._mean(*point) for point in points) - mean) * self.unit

    def _mean(self, share, total):
        """Return what is told where share and total are estimated as these."""
        if share <= 0:  # (it is then divided by the share of one user)
            return self.bound if total > 0 else -self.bound if total < 0 else Fraction(0)
        share = share if self.most is None else min(share, self.most)
        return max(min(total / share, self.bound), -self.bound)


def part_of(share, attack, drawn):
    """Return the share of malicious reports among those that tell of the number.

    Honest users, and those who follow the law, are drawn for it; others say that they were.
    """
    return share if attack == "input" else share / (share + (1 - share) * drawn)


def target_of(estimator, goal, column, of, honest):
    """Return the `Linear` or `Ratio` that an estimator of `dpestim.local` makes of a goal, or raise ValueError."""
    client = estimator._client() if hasattr(estimator, "_client") else estimator
    columns = estimator._columns or client._columns_now()
    if hasattr(columns, "fakes"):
        raise ValueError("estimator must not report fakes, whose worst gain is not known: take strategy='smp'")
    number = 0 if isinstance(columns.columns[0], PairColumn) else columns.number_of(column)
    own, drawn = columns.columns[number], Fraction(columns.n_sampled or len(columns), len(columns))
    if isinstance(own, PairColumn):
        return _of_pairs(estimator, own, goal, of, honest)
    if of is not None:
        raise ValueError("of must be None, because only keys have a frequency and a mean")
    if isinstance(own, CategoryColumn) and not isinstance(estimator, MeanEstimator) and isinstance(
        estimator, Frequencies | CategoryClient | MixedEstimator
    ):
        return _frequency(own, goal, drawn, honest)
    if not isinstance(estimator, MeanEstimator | MixedEstimator | NumericTransformer):
        raise ValueError("estimator must estimate frequencies, means or keys by sums over reports, as the frequency "
                         "estimators, MeanEstimator, MixedEstimator and PCKVEstimator do: audit one of these")
    if goal is not None:
        raise ValueError("goal must be None, because the estimator tells the mean of a column: name the column by "
                         "`column`")
    if isinstance(estimator, MixedEstimator):
        _check_member(columns, number)
    if isinstance(own, MissingColumn):
        return _mean_of_present(own, drawn, honest)
    return _mean(own, _place(own, column, columns.features[number], columns.n_features), drawn, honest)


# ---------------------------------------------------------------- frequencies


def _frequency(column, goal, drawn, honest):
    if goal is None:
        raise ValueError("goal must name a category of the column, or several in a list")
    values = list(goal) if isinstance(goal, list | tuple | set | frozenset | np.ndarray) else [goal]
    try:
        codes = np.unique(column.encoder.encode(object_array(values))).astype(np.int64) if values else []
    except ValueError:
        codes = []
    if not len(codes):
        raise ValueError(f"goal must name categories of {column.name}")
    law = column.law
    share = None if honest is None else _number(honest, 0, 1)

    def variance(n):
        n, held, d = n * float(drawn), float(share or 0), law.n_categories
        if len(codes) > 1:
            return None
        if law.varies_by_own_share or d > _MOST_FREQUENCIES:
            return float(np.max(law.variance(n, held)))
        f = np.full(d, (1 - held) / (d - 1))
        f[codes] = held
        return float(law.variance(n, f)[codes[0]])

    told = ", ".join(map(repr, values[:3])) + ", ..." * (len(values) > 3)
    return Linear(f"the frequency of {told}", law.reach(codes), law.mean_reach(codes), drawn, share, variance)


# ---------------------------------------------------------------- means


def _mean(column, place, drawn, honest):
    if isinstance(column, CategoryColumn):  # categories that are numbers
        (zero, unit), numbers = map(Fraction, column.mean_scale), column.mean_values()[0]
        ends, inputs = (numbers.min(), numbers.max()), (column.values.min(), column.values.max())
        low, high = map(Fraction, inputs)
    else:
        ends, inputs = column.law.reach(), column.law.mean_reach()
        low, high = Fraction(column.lows[place]), Fraction(column.highs[place])
        zero, unit = low, high - low
    in_units = [tuple(zero + unit * Fraction(end) for end in pair) for pair in (ends, inputs)]
    own, noise = None if honest is None else _number(honest, low, high), float(column.even_variance()[place])
    return Linear(f"the mean of {column.feature_names[place]}", *in_units, drawn, own,
                  lambda n: noise / (n * float(drawn)))


def _place(column, name, features, n_features):
    """Return which of the numbers of a joint column is named, 0 of others."""
    if not isinstance(column, JointColumn):
        return 0
    if isinstance(name, str):
        return column.feature_names.index(f"column {name!r}")
    return name % n_features - features.start


def _mean_of_present(column, drawn, honest):
    p, q = column.law.says_missing
    low, high = (Fraction(end) - Fraction(1, 2) for end in column.law.number.reach())
    there = 1 + q / (p - q)
    reports = ((there, low / (1 - q)), (there, high / (1 - q)), (there - 1 / (p - q), Fraction(0)))
    half = Fraction(1, 2)
    inputs = ((1, -half), (1, half), (0, Fraction(0)))
    lower, upper = Fraction(column.low), Fraction(column.high)
    share, mean = _pair(honest, lower, upper, "the share of values that are there")
    return Ratio(f"the mean of {column.name}", reports, inputs, drawn,
                 (share, (mean - lower) / (upper - lower) - half), lambda n: None, half, None, upper - lower)


# ---------------------------------------------------------------- keys


def _of_pairs(estimator, column, key, of, honest):
    if of not in (None, "frequency", "mean"):
        raise ValueError('of must be "frequency" or "mean"')
    if getattr(estimator, "n_rounds", 1) != 1:
        raise ValueError("n_rounds must be 1 for this audit, because rounds are weighed by what they counted: audit "
                         "PrivKVEstimator with the epsilon of a round")
    at = [k for k, own in enumerate(column.keys.tolist()) if own == key] if not isinstance(key, bool) else []
    if len(at) != 1:
        raise ValueError("goal must be one of the keys: other keys are told of by other reports")
    law = column.law
    drawn, told = law.asked(at[0]), law.told()
    if of != "mean":
        share = None if honest is None else _number(honest, 0, 1)
        shares = [s for s, _ in told]

        def variance(n):
            return float(variances(law, float(share or 0), 0.0, n * float(drawn), n)[0])

        return Linear(f"the frequency of key {key!r}", (min(shares), max(shares)), (Fraction(0), Fraction(1)), drawn,
                      share, variance)
    if getattr(estimator, "correction", "unbiased") != "unbiased":
        raise ValueError('correction must be "unbiased" for this audit of means')
    low, high = Fraction(column.low), Fraction(column.high)
    share, mean = _pair(honest, low, high, "the share of users that hold the key")
    mean = 2 * (mean - low) / (high - low) - 1

    def spread(n):
        first, second, both = variances(law, float(share), float(mean), n * float(drawn), n)
        return float(second - 2 * float(mean) * both + float(mean) ** 2 * first) / float(share) ** 2 * (
            float(high - low) / 2) ** 2

    inputs = ((Fraction(1), Fraction(1)), (Fraction(1), Fraction(-1)), (Fraction(0), Fraction(0)))
    one = Fraction(1)
    return Ratio(f"the mean of key {key!r}", told, inputs, drawn, (share, mean), spread, one, one, (high - low) / 2)


# ---------------------------------------------------------------- checks


def _number(value, low, high):
    """Return a number between two ends as a Fraction."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not low <= value <= high:
        raise ValueError(f"honest must be a number from {float(low):g} to {float(high):g}")
    return Fraction(value)


def _pair(honest, low, high, share):
    """Return (share, mean), or raise ValueError."""
    if not isinstance(honest, tuple | list) or len(honest) != 2:
        raise ValueError(f"honest must be ({share}, the mean of their values) among honest users, because the mean "
                         "depends on both")
    held = _number(honest[0], 0, 1)
    if not held:
        raise ValueError("honest must have a share above 0: a mean of no values is not defined")
    return held, _number(honest[1], low, high)


def _check_member(columns, number):
    """Raise ValueError where a column of a mixed row is told of by a distribution."""
    for part in columns.members:
        if number in range(part.at.start, part.at.stop) and not isinstance(part.server, MeanEstimator):
            raise ValueError("column must be one whose mean is estimated by sums: a DistributionEstimator fits a "
                             "distribution to all reports, and is not linear in them")
