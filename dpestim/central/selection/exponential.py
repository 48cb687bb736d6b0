"""The exponential mechanism: a candidate is chosen with probability proportional to e^(rate score)."""

import math
from collections.abc import Mapping

import numpy as np

from dpestim.central.base import checked_bounds
from dpestim.central.selection.choice import ChoiceLaw, SelectionMechanism, shared_out
from dpestim.central.selection.intervals import grid_of, read_starts
from dpestim.central.selection.weights import draw, upper_weights
from dpestim.exact_reals import BitStream
from dpestim.records import record
from dpestim.rng import WordSource


@record
class ExponentialLaw(ChoiceLaw):
    """P[i] proportional to e^(rate code_i)."""

    def upper_weights(self, codes, best):
        """Return integers of at least 2^56 e^(-rate gap).

        Any such integers give the same law, but for who asks `surely`: for them they are at most `ERROR` more.
        """
        return upper_weights(codes, best, self.rate)

    def draw(self, codes, source):
        """Return a place."""
        best = int(codes.max())
        return draw(codes, best, self.rate, BitStream(source.reader(), 0, 0), self.upper_weights(codes, best))

    def draw_point(self, codes, starts, source):
        """Return a point of a grid of integers; interval i is those from starts[i] on, and its score codes[i]."""
        stream, lengths = BitStream(source.reader(), 0, 0), np.diff(starts)
        best = int(codes[lengths > 0].max())  # (what is better has no point, and is never proposed)
        place = draw(codes, best, self.rate, stream, self.upper_weights(codes, best), lengths)
        return int(starts[place]) + stream.below(int(lengths[place]))

    def enclosures(self, codes):
        """Return Fractions around e^(-rate gap) / sum of e^(-rate gap)."""
        return shared_out(dict(enumerate(self._powers(codes))))

    def probabilities(self, codes):
        """Return the probabilities as floats, of any number of candidates."""
        return self.shares(codes, np.ones(len(codes), np.int64))

    def shares(self, codes, times):
        """Return the probabilities of intervals with so many points each."""
        some = times > 0
        weights = np.zeros(len(codes))
        weights[some] = times[some] * np.exp(-float(self.rate) * (codes[some].max() - codes[some]))
        return weights / weights.sum()


class ExponentialMechanism(SelectionMechanism):
    """Choose a candidate by the exponential mechanism.

    Better candidates are exponentially more likely. `PermuteAndFlip` is never worse for a finite set, and up to twice
    as good. The exponential mechanism also chooses a number from a range, by scores that are constant between `edges`:
    with sorted data as edges and minus the distance from a rank as scores, it chooses a quantile of mostly distinct
    values. Where many values are equal, such as ages in years, the choice lies anywhere between two adjacent values,
    for any number of rows; with 1,000 equal values all numbers of the range have the same score. Then choose among
    `candidates`, the distinct values that there can be, or take `dpestim.statistics.quantile`, which scores a value by
    all ranks that it has, or `SmoothSensitivity`.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours, exactly: the scores are rounded to a
    grid with a power of two as its step, the rounding is part of the sensitivity, and no float decides. Only the choice
    is released, not its score. The curator, who holds the data, must be trusted.

    **Utility.** With n candidates the score of the choice is, with probability 1 - b, at most
    2 sensitivity ln(n / b) / epsilon below the best (half of that with `monotone`), and a step of the grid. In a range,
    n is its length over that of the interval with the best score.

    **Complexity.** O(1) a candidate or interval, without randomness; then O(1) expected draws.

    {parameters}
    References
    ----------
    McSherry, Talwar (2007), "Mechanism design via differential privacy", FOCS, definition 2 and theorem 6. Dwork, Roth
    (2014), "The algorithmic foundations of differential privacy", theorem 3.11, for the utility. The proof:
    ``exponential.md``.

    Examples
    --------
    >>> from dpestim.central import ExponentialMechanism
    >>> mechanism = ExponentialMechanism(2.0, sensitivity=1, monotone=True, neighbours="add_remove", random_state=0)
    >>> mechanism.release({"tea": 30, "coffee": 52, "water": 12})
    'coffee'
    >>> mechanism.probabilities([30, 31, 32]).round(3)
    array([0.016, 0.117, 0.867])

    A median of distinct values: the rank of a number changes by at most 1 where a record is replaced.

    >>> import numpy as np
    >>> incomes = np.sort(np.random.default_rng(0).lognormal(10, 0.7, 1001))
    >>> median = ExponentialMechanism(1.0, sensitivity=1, bounds=(0, 1e6), random_state=0)
    >>> bool(abs(median.release(-np.abs(np.arange(1002) - 500.5), edges=incomes) / np.median(incomes) - 1) < 0.02)
    True

    Of values with ties, among public candidates: how far the rank that is wanted is from all that a candidate has.

    >>> ages, years = np.full(1000, 40), np.arange(121)
    >>> below, above = (ages[:, None] < years).sum(axis=0), (ages[:, None] > years).sum(axis=0)
    >>> median = ExponentialMechanism(1.0, sensitivity=1, random_state=0)
    >>> median.release(-np.maximum(0, np.maximum(below, above) - 500), candidates=years.tolist())
    40
    """

    _choice = ExponentialLaw
    _more_parameters = SelectionMechanism._more_parameters + """bounds : (low, high), default=None
        Public range of the numbers to choose from, below 2^53 in absolute value; for `edges` only. The grid has a power
        of two as its step, and about 2^40 points.
    """

    def __init__(self, epsilon=1.0, *, sensitivity=None, monotone=False, bounds=None, neighbours=None,
                 ledger=None, random_state=None):
        super().__init__(epsilon, sensitivity=sensitivity, monotone=monotone, neighbours=neighbours, ledger=ledger,
                         random_state=random_state)
        self.bounds = bounds

    def release(self, scores, candidates=None, *, edges=None):
        """Return the chosen candidate, or a number; one release of epsilon, however many candidates there are.

        Parameters
        ----------
        scores : array-like of shape (n_candidates,), Series, or dict of candidate: score
            How good each candidate, or each interval, is, exactly; the higher the better. Secret. (Real scores are cut
            beyond some 2^48 sensitivities, integers of an integer dtype beyond 2^53.) A Counter is asked for each of
            `candidates`.
        candidates : sequence of n_candidates items, default=None
            What the candidates are, in the order of the scores. None: the keys of a dict, the index of a pandas Series,
            else 0, 1, ... Candidates are always a public list, not the values that occur: for `value_counts`, take
            ``counts.reindex(public_list, fill_value=0)``.
        edges : array-like of shape (n_candidates - 1,), default=None
            Sorted numbers, which may be secret: scores[i] is that of all numbers of the range from edges[i - 1] on and
            below edges[i]. The declared sensitivity is that of the score of a *number*, wherever the edges are.

        Returns
        -------
        candidate or float
            One of the candidates; with `edges`, a number of the grid within `bounds`.
        """
        if edges is None:
            return super().release(scores, candidates)
        codes, law, starts = self._read_intervals(scores, candidates, edges)
        self._pay()
        point = law.draw_point(codes, starts, WordSource(self.random_state))
        return math.ldexp(point, grid_of(checked_bounds(self.bounds))[2])

    def probabilities(self, scores, *, edges=None):
        """Return the probability of each candidate or interval, as floats; exact but for their rounding.

        It is as secret as the scores, and free: for the curator, and for audits.

        Parameters
        ----------
        scores, edges : as for `release`

        Returns
        -------
        ndarray of shape (n_candidates,)
        """
        if edges is None:
            return super().probabilities(scores)
        codes, law, starts = self._read_intervals(scores, None, edges)
        return law.shares(codes, np.diff(starts))

    def _read_intervals(self, scores, candidates, edges):
        if self.bounds is None:
            raise ValueError("bounds must be declared with edges, a pair (low, high): the range of the numbers to "
                             "choose from")
        if candidates is not None or isinstance(scores, Mapping):
            raise ValueError("candidates must be None with edges, because the mechanism then chooses a number")
        codes, law, _ = self._read(scores, None)
        grid = grid_of(checked_bounds(self.bounds))
        return codes, law, read_starts(edges, len(codes), grid, strict=self._is_strict())

    def _make_law(self, whole):
        checked_bounds(self.bounds)
        return super()._make_law(whole)

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "sensitivity": 1},
            {"epsilon": 2.0, "sensitivity": 0.3, "monotone": True, "bounds": (-1, 5), "neighbours": "add_remove"},
        ]
