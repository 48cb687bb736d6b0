"""The k best candidates: all together (joint exponential mechanism), or one after another (peeling)."""

import math
from fractions import Fraction
from itertools import permutations
from numbers import Integral
from typing import ClassVar

import numpy as np

from dpestim.central.exact_bernoulli import exp_bounds
from dpestim.central.selection.choice import ChoiceLaw, SelectionMechanism, shared_out
from dpestim.central.selection.weights import draw, propose, upper_weights
from dpestim.exact_reals import BitStream, Real
from dpestim.records import record

#: Pairs of a position and a candidate that `joint` sorts, at most; sequences whose exact law is stated.
_PAIRS, _SEQUENCES = 20_000_000, 10_000
#: Proposals of `joint`: bits of the largest, how far floats may be off, and the exponent beyond which none matters.
_BITS, _MARGIN, _FAR = 40, 2.0**-8, 1e5


@record
class TopKLaw(ChoiceLaw):
    """The law of a sequence of k different places, the best one first."""

    k: int

    def probabilities(self, codes):
        """Return how likely each candidate is among the k, as floats."""
        out = np.zeros(len(codes))
        for sequence, (low, high) in self.enclosures(codes).items():
            out[list(sequence)] += float((low + high) / 2)
        return out

    def _sequences(self, codes):
        """Return all outcomes, of few candidates."""
        if math.perm(len(codes), self.k) > _SEQUENCES:
            raise ValueError(f"probabilities are available for at most {_SEQUENCES:,} sequences of candidates: for "
                             "more, call utility_bound, which bounds the error of the choices")
        return permutations(range(len(codes)), self.k)


@record
class PeelingLaw(TopKLaw):
    """The exponential mechanism with epsilon / k, k times, without what was chosen before."""

    @property
    def rate(self):
        """What a step costs: that of one choice."""
        return super().rate / self.k

    def draw(self, codes, source):
        """Return places."""
        stream, left, chosen = BitStream(source.reader(), 0, 0), np.arange(len(codes)), []
        for _ in range(self.k):
            rest = codes[left]
            best = int(rest.max())
            place = draw(rest, best, self.rate, stream, upper_weights(rest, best, self.rate))
            chosen.append(int(left[place]))
            left = np.delete(left, place)
        return np.array(chosen)

    def enclosures(self, codes):
        """Return products of Fractions around the probabilities of the single choices."""
        powers, known = self._powers(codes), {}
        for sequence in self._sequences(codes):
            low = high = Fraction(1)
            left = dict(enumerate(powers))
            for place in sequence:
                share = shared_out(left)[place]
                low, high = low * share[0], high * share[1]
                del left[place]
            known[sequence] = low, high
        return known

    def gap(self, n, lost):
        """Return how many steps the i-th choice is below the i-th best, for all i at once."""
        return super().gap(n, lost / self.k)


@record
class JointLaw(TopKLaw):
    """P[s] proportional to e^(-rate t), t being the largest of what position i of s is below the i-th best."""

    slack: ClassVar[str] = "the whole epsilon is used in the limit of very many candidates"

    @property
    def rate(self):
        """What a step costs: t moves by twice the sensitivity, or by the sensitivity where scores are monotone."""
        return super().rate / 2

    def draw(self, codes, source):
        """Return places: by a limit of t, all sequences within it being equally likely."""
        stream = BitStream(source.reader(), 0, 0)
        order = np.argsort(-codes, kind="stable")
        reach = self._reach(codes[order], stream)
        chosen = []
        for i, n in enumerate(reach):
            place = stream.below(n - i)  # among those of the first n that are left
            for taken in sorted(chosen):
                place += place >= taken
            chosen.append(place)
        return order[chosen]

    def _reach(self, ranked, stream):
        """Return how many of the first candidates each position may have, for a random limit of t; see the proof."""
        positions = np.repeat(np.arange(self.k), len(ranked) - 1 - np.arange(self.k))
        others = np.concatenate([np.arange(i + 1, len(ranked)) for i in range(self.k)])
        limits = ranked[positions] - ranked[others]
        by_limit = np.argsort(limits)
        limits, positions = limits[by_limit], positions[by_limit]
        more = np.log1p(1 / (others[by_limit] - positions))
        limits = np.r_[0, limits]
        weights, scale = self._proposals(limits, np.r_[0.0, np.cumsum(more)])
        while True:
            place = propose(weights, stream)
            reach = np.arange(1, self.k + 1) + np.bincount(positions[:place], minlength=self.k)
            count = math.prod(n - i for i, n in enumerate(reach.tolist()))
            ends = [int(limit) for limit in limits[place : place + 2]]
            if Real(stream, stream.word(), 64).is_below(self._coin(count, ends, scale, int(weights[place]))):
                return reach.tolist()

    def _proposals(self, limits, logs):
        """Return (integers, scale): at least 2^40 e^-scale times the weight of each stretch between two limits."""
        rate = float(self.rate)
        width = np.diff(limits)
        logs = logs - np.minimum(rate * limits, _FAR)
        with np.errstate(divide="ignore"):
            logs[:-1] += np.log(-np.expm1(-rate * width))
        scale = float(logs.max())
        weights = np.floor(np.exp(logs - scale + _MARGIN) * 2.0**_BITS).astype(np.uint64) + np.uint64(1)
        weights[:-1][width == 0] = 0
        return weights, Fraction(scale)

    def _coin(self, count, ends, scale, weight):
        """Return the probability of a stretch (without an end: to infinity), over what it was proposed with."""

        def probability(n_digits):
            first = exp_bounds(self.rate * ends[0] + scale, n_digits)
            last = exp_bounds(self.rate * ends[1] + scale, n_digits) if ends[1:] else (0, 0)
            factor = Fraction(count << _BITS, weight)
            return max(Fraction(0), first[0] - last[1]) * factor, (first[1] - last[0]) * factor

        return probability

    def enclosures(self, codes):
        """Return Fractions around e^(-rate t) / sum of e^(-rate t)."""
        ranked = sorted((int(code) for code in codes), reverse=True)
        below = {s: max(0, *(ranked[i] - int(codes[place]) for i, place in enumerate(s))) for s in
                 self._sequences(codes)}
        return shared_out({s: exp_bounds(self.rate * t, 60) for s, t in below.items()})

    def gap(self, n, lost):
        """Return how many steps the i-th choice is below the i-th best, for all i at once."""
        return (self.k * math.log(n) - math.log(lost)) / float(self.rate)


#: The law of each method.
_LAWS = {"joint": JointLaw, "peeling": PeelingLaw}


class TopK(SelectionMechanism):
    """Choose the k best candidates, in order, with one epsilon.

    With "peeling" k choices share epsilon; "joint" makes one choice among sequences of k candidates. The table shows
    the share of the counts of the k best of 2,000 candidates that was lost with "joint" and with "peeling" (means of 20
    runs, `monotone`):

    ===================  =======  ===============  ===============
    counts               epsilon  k = 5            k = 50
    ===================  =======  ===============  ===============
    100,000 / rank       0.1      0, 0             16 %, 5 %
    lognormal(5, 1)      0.1      0.02 %, 0.1 %    66 %, 47 %
    normal(1,000, 100)   0.1      13 %, 8 %        18 %, 17 %
    500, ten times       0.1      77 %, 1 %        83 %, 79 %
    100,000 / rank       1        0, 0             0, 0.01 %
    lognormal(5, 1)      1        0, 0             0.5 %, 0.3 %
    normal(1,000, 100)   1        0.03 %, 0.03 %   10 %, 5 %
    ===================  =======  ===============  ===============

    In this table "joint" is better only where almost nothing is lost; "peeling" is the default. With tails that are
    heavier still (a Pareto law of exponent 1.2, say) "joint" can be better for many choices, too. (The others of "500,
    ten times" have a Poisson law of mean 20.)

    **Privacy.** Pure epsilon in the central model, for the declared neighbours, exactly: the scores are rounded to a
    grid with a power of two as its step, the rounding is part of the sensitivity, and no float decides. Only the
    choices are released, not their scores. The curator, who holds the data, must be trusted.

    **Utility.** With n candidates no choice is, with probability 1 - b, further below the score that its place
    deserves than 4 sensitivity (k ln(n) + ln(1 / b)) / epsilon with "joint", and 2 k sensitivity ln(n k / b) / epsilon
    with "peeling" (half of that with `monotone`), and a step of the grid.

    **Complexity.** O(k n log(k n)) and 100 k n bytes with "joint", for k n up to 20,000,000; O(k n) with "peeling".

    {parameters}
    References
    ----------
    Gillenwater, Joseph, Munoz Medina, Ribero Diaz (2022), "A joint exponential mechanism for differentially private
    top-k", ICML, definition 3 and section 4. Durfee, Rogers (2019), "Practical differentially private top-k selection
    with pay-what-you-get composition", NeurIPS, for peeling. The proof: ``top_k.md``.

    Examples
    --------
    >>> from dpestim.central import TopK
    >>> sales = {"tea": 230, "coffee": 452, "water": 112, "juice": 15, "milk": 318}
    >>> TopK(1.0, k=3, sensitivity=1, monotone=True, neighbours="add_remove", random_state=0).release(sales)
    ['coffee', 'milk', 'tea']
    """

    _choice = JointLaw
    _more_parameters = SelectionMechanism._more_parameters + """k : int, default=1
        How many candidates are chosen, at least 1 and at most as many as there are.
    method : {"peeling", "joint"}, default="peeling"
        How they are chosen.
    """

    def __init__(self, epsilon=1.0, *, k=1, sensitivity=None, monotone=False, method="peeling",
                 neighbours=None, ledger=None, random_state=None):
        super().__init__(epsilon, sensitivity=sensitivity, monotone=monotone, neighbours=neighbours, ledger=ledger,
                         random_state=random_state)
        self.k = k
        self.method = method

    def release(self, scores, candidates=None):
        """Return the chosen candidates, the best one first; one release of epsilon for all of them.

        Parameters
        ----------
        scores : array-like of shape (n_candidates,), Series, or dict of candidate: score
            How good each candidate is, exactly; the higher the better. Secret. A Counter is asked for each of
            `candidates`.
        candidates : sequence of n_candidates items, default=None
            What the candidates are, in the order of the scores. None: the keys of a dict, the index of a pandas Series,
            else 0, 1, ... Always a public list, and not what happens to occur: for `value_counts`, take
            ``counts.reindex(public_list, fill_value=0)``.

        Returns
        -------
        list of k candidates, or ndarray of shape (k,) where they have no names
        """
        return super().release(scores, candidates)

    def probabilities(self, scores):
        """Return how likely each candidate is among the k, as floats, for at most 10,000 sequences of candidates.

        It is as secret as the scores, and free: for the curator, and for audits.

        Parameters
        ----------
        scores : as for `release`

        Returns
        -------
        ndarray of shape (n_candidates,)
        """
        return super().probabilities(scores)

    def _read(self, scores, candidates):
        codes, law, names = super()._read(scores, candidates)
        if law.k > len(codes):
            raise ValueError("k must be at most the number of candidates")
        if self.method == "joint" and law.k * len(codes) > _PAIRS:
            raise ValueError(f"method='joint' needs k times the number of candidates of at most {_PAIRS:,}: take "
                             "'peeling'")
        return codes, law, names

    def _law_of(self, *shared):
        if isinstance(self.k, bool) or not isinstance(self.k, Integral) or self.k < 1:
            raise ValueError("k must be an int of at least 1")
        if not isinstance(self.method, str) or self.method not in _LAWS:
            raise ValueError(f"method must be one of {sorted(_LAWS)}")
        law = self._choice if self.method == "joint" else PeelingLaw
        return law(*shared, int(self.k))

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "k": 2, "sensitivity": 1, "method": "joint"},
            {"epsilon": 2.0, "k": 2, "sensitivity": 0.3, "monotone": True, "method": "peeling",
             "neighbours": "add_remove"},
        ]
