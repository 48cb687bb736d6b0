"""Statistics of reports whose law is known whatever users hold: what honest clients cannot change, and others may.

A law says by `known_counts` and `known_of` how often something happens in its reports that is as likely for every
input. Its number among independent reports is then binomial, exactly, and a number that is far off tells of reports
that no honest client made. All of it is post-processing of reports and costs no privacy (dpestim/audit/malicious.md).
"""

from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy import stats

from dpestim.tables import Table

#: Cells that a statistic is divided into, at most.
MOST_CELLS = 1 << 12
#: Values that are counted one by one; of more, ranges of about the same probability, and the tails.
_MOST_VALUES = 256
_TAILS = 10.0 ** -np.arange(3, 40, 3)
#: Standard deviations beyond which a sum is not looked at: a probability below 1e-30.
_FAR = 12.0
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1).astype(np.int64)


class Pivot(NamedTuple):
    """How often some events happened, and how likely numbers as far off are in honest reports.

    what : in words.
    names : a function from the number of an event to what it is called.
    observed, expected, p_values : arrays with an entry for each event; p values of one event, on both sides.
    """

    what: str
    names: object
    observed: np.ndarray
    expected: np.ndarray
    p_values: np.ndarray


def cells(what, observed, chances, n, names=None):
    """Return the `Pivot` of events of which each happens in a report with its chance, whatever users hold."""
    observed, chances = np.asarray(observed), np.asarray(chances, np.float64)
    low, high = stats.binom.cdf(observed, n, chances), stats.binom.sf(observed - 1, n, chances)
    return Pivot(what, names or str, observed, n * chances, np.minimum(1.0, 2 * np.minimum(low, high)))


def grouped(what, observed, chances, n):
    """Return the `Pivot` of many cells in their order: of groups of neighbours, at most `MOST_CELLS`."""
    size = -(-len(observed) // MOST_CELLS)
    starts = np.arange(0, len(observed), size)
    return cells(what, np.add.reduceat(observed, starts), np.add.reduceat(chances, starts), n,
                 lambda k: str(k) if size == 1 else f"{k * size} to {min((k + 1) * size, len(observed)) - 1}")


def values(what, seen, law):
    """Return the `Pivot` of a number of each report, from 0 on, whose probabilities are known."""
    tallies, n = np.bincount(seen, minlength=len(law)), len(seen)
    if len(law) <= _MOST_VALUES:
        return cells(what, tallies, law, n)
    below, above = np.cumsum(law) - law, np.cumsum(law[::-1])[::-1]
    place = np.stack([np.floor(below * _MOST_VALUES / 2), *(below < tail for tail in _TAILS),
                      *(above < tail for tail in _TAILS)])
    starts = np.flatnonzero(np.append(True, (np.diff(place, axis=1) != 0).any(axis=0)))
    stops = np.append(starts[1:], len(law))
    return cells(what, np.add.reduceat(tallies, starts), np.add.reduceat(law, starts), n,
                 lambda k: f"{starts[k]} to {stops[k] - 1}")


def total(what, observed, parts):
    """Return the `Pivot` of a sum of two independent binomial numbers, each (trials, chance), exactly."""
    (many, q), (few, p) = parts
    middle, spread = few * p, max(1.0, np.sqrt(few * p * (1 - p)))
    own = np.arange(max(0, int(middle - _FAR * spread) - 40), min(few, int(middle + _FAR * spread) + 40) + 1)
    weights = stats.binom.pmf(own, few, p)
    low = float(weights @ stats.binom.cdf(observed - own, many, q))
    high = float(weights @ stats.binom.sf(observed - own - 1, many, q))
    return Pivot(what, lambda k: "all reports", np.array([observed]), np.array([many * q + few * p]),
                 np.array([min(1.0, 2 * min(low, high) + 1e-30)]))


def repeats(what, fields, n_bits):
    """Return the `Pivot` of pairs of reports that share all fields, which are uniform over 2^n_bits values."""
    n = len(fields)
    _, times = np.unique(fields, axis=0, return_counts=True)
    pairs, expected = int((times * (times - 1) // 2).sum()), n * (n - 1) / 2 / 2.0**n_bits
    return Pivot(what, lambda k: "equal pairs", np.array([pairs]), np.array([expected]),
                 np.array([min(1.0, expected / max(pairs, 1)) if pairs else 1.0]))  # (Markov's inequality)


def ones_of(reports):
    """Return the number of bits that are 1 in each row of bytes."""
    return _ONES[reports].sum(axis=1)


def law_of_ones(many, q, few, p):
    """Return the probabilities of 0, 1, ... for the sum of two independent binomial numbers."""
    return np.convolve(stats.binom.pmf(np.arange(many + 1), many, q), stats.binom.pmf(np.arange(few + 1), few, p))


class Suspicion(NamedTuple):
    """One statistic: the event that is farthest off, and the p value of all events of the statistic together.

    Examples
    --------
    >>> from dpestim.local import MeanEstimator, PMTransformer
    >>> server = MeanEstimator(PMTransformer(1.0, bounds=(0, 1), grid=4, random_state=0)).fit([[0.5]] * 100)
    >>> server.detect_poisoning().lines[0].statistic
    'remainders of codes modulo 3'
    """

    column: str
    statistic: str
    event: str
    observed: int
    expected: float
    p_value: float


class PoisoningTest(Table):
    """Whether reports can be those of honest clients, as ``server.detect_poisoning`` finds.

    Attributes
    ----------
    p_value : float
        Of all statistics together: at most alpha with a probability of at most alpha, for any alpha, if all clients are
        honest, for any values that their users hold.
    alpha : float
        The rate of false alarms.
    suspicious : bool
        Whether `p_value` is at most `alpha`.
    lines : tuple of Suspicion
        (column, statistic, event, observed, expected, p_value) of each statistic.
    n_reports : int
        Reports that were tested.
    privacy : PrivacyGuarantee
        What these reports promise; the test costs nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import OUEFrequencyEstimator
    >>> est = OUEFrequencyEstimator(1.0, categories=[range(8)], random_state=0)
    >>> reports = np.array(est.privatize([[k % 8] for k in range(2000)]))
    >>> est.detect_poisoning(reports).suspicious
    False
    >>> reports[:20] = 255  # all bits are 1
    >>> est.detect_poisoning(reports).suspicious
    True
    """

    _n_labels = 3

    def __init__(self, lines, alpha, n_reports, privacy):
        self.lines, self.alpha, self.n_reports, self.privacy = tuple(lines), alpha, n_reports, privacy
        self.p_value = min(1.0, len(self.lines) * min(line.p_value for line in self.lines))

    @property
    def suspicious(self):
        """Whether the p value is at most alpha."""
        return self.p_value <= self.alpha

    def _head(self):
        return "column", "statistic", "farthest event", "observed", "expected", "p value"

    def _columns(self):
        return Suspicion._fields

    _plotted = ("p_value", None, None)

    def _rows(self):
        return iter(self.lines)

    def _about(self):
        return f"Whether {self.n_reports:,} reports can be those of honest clients."

    def _remarks(self):
        found = "is an alarm" if self.suspicious else "is no alarm"
        return (f"Together: p value {self.p_value:.3g}, which {found} at alpha = {self.alpha:g}.",
                f"If all clients are honest, an alarm has a probability of at most {self.alpha:g}, for any values.",
                "No test finds malicious users who choose their values and follow the law.")


def detect(columns, counts, n, reports, alpha, privacy):
    """Return the `PoisoningTest` of the counts of n reports, or of checked reports, where they are given.

    `privacy` is what the reports promise.
    """
    if isinstance(alpha, bool) or not isinstance(alpha, Real) or not 0 < alpha < 1:
        raise ValueError("alpha must be a number in (0, 1)")
    lines, drawn, lacking = [], [], False
    for number, column in enumerate(columns):
        if reports is None:
            told, m = columns.told(number, counts, n)
            pivots = column.law.known_counts(told, m) if m else []
            lacking = lacking or (m and not pivots and column.law.knows_reports)
        else:
            _, part = columns.reports_of(number, reports)
            m, part = len(part), np.ascontiguousarray(part, column.law.report_dtype)
            pivots = column.law.known_of(part) if m else []
        drawn.append(m)
        lines += [_line(column.name, pivot) for pivot in pivots]
    if columns.n_sampled and columns.n_sampled < len(columns):
        chances = np.full(len(drawn), columns.n_sampled / len(columns))
        lines.append(_line("all", cells("columns that were drawn", drawn, chances, n,
                                        lambda k: columns.columns[k].name)))
    if not lines:
        laws = sorted({type(column.law).__name__ for column in columns})
        raise ValueError(
            f"reports must be given for {' and '.join(laws)}, because counts do not tell enough: call "
            "detect_poisoning(reports)" if lacking else
            f"{' and '.join(laws)} allows no test: reports of malicious users look like those of honest users who hold "
            "other values. Compare the estimates with what is known, or take a law with a test, such as OUE")
    return PoisoningTest(lines, float(alpha), n, privacy)


def _line(name, pivot):
    worst = int(np.argmin(pivot.p_values))
    return Suspicion(name, pivot.what, pivot.names(worst), int(pivot.observed[worst]), float(pivot.expected[worst]),
                     float(min(1.0, len(pivot.p_values) * pivot.p_values[worst])))

