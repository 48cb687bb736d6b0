"""What all mechanisms that choose share: scores and candidates, paying, the law of the choice, how good it is."""

import math
from dataclasses import fields
from fractions import Fraction
from functools import cached_property, lru_cache
from numbers import Integral, Real
from typing import ClassVar

import numpy as np

from dpestim.central.base import CentralMechanism
from dpestim.central.exact_bernoulli import exp_bounds
from dpestim.central.selection.scores import name_of, read_scores, to_codes
from dpestim.records import record
from dpestim.rng import WordSource, check_random_state

#: Parameters that make no other law.
_NO_LAW = ("ledger", "random_state")


@record
class ChoiceLaw:
    """The law of a choice by scores in steps of a public grid; frozen, and its fields are its identity.

    A sub-class brings `draw` and `enclosures`. Scores are `codes`, an array of int64.

    Parameters
    ----------
    epsilon : Fraction
        What holds for any two arrays of codes whose entries are at most `sensitivity` apart.
    sensitivity : int
        How far one score of neighbours can move, in steps, rounding included.
    exponent : int
        The step is 2^exponent.
    monotone : bool
        Whether it holds only where no score falls while another one rises.
    """

    epsilon: Fraction
    sensitivity: int
    exponent: int
    monotone: bool
    #: where much less than epsilon is used: the reason, in a sentence
    slack: ClassVar[str] = ""

    def __reduce__(self):
        """Pickle what it was made from, and none of what has been worked out."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @property
    def step(self):
        """The public step of the grid, a power of two."""
        return math.ldexp(1.0, self.exponent)

    @cached_property
    def rate(self):
        """What a step costs in the logarithm of a weight, exactly: half as much where scores may move both ways."""
        return self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)

    # ---------------------------------------------------------------- what a sub-class brings

    def draw(self, codes, source):
        """Return the place of the choice (or several); all randomness comes from a `dpestim.rng.WordSource`."""
        raise TypeError(f"{type(self).__name__} does not say how it is drawn: implement `draw`")

    def enclosures(self, codes):
        """Return {place: Fractions around its probability}, for few candidates; relative distance below 1e-30."""
        raise TypeError(f"{type(self).__name__} does not state its law: implement `enclosures`")

    def probabilities(self, codes):
        """Return the probabilities as floats, an array."""
        return np.array([float((low + high) / 2) for low, high in self.enclosures(codes).values()])

    def gap(self, n, lost):
        """Return how many steps the choice among n is below the best, but with probability `lost`, at most."""
        return math.log(n / lost) / float(self.rate)

    # ---------------------------------------------------------------- what most share

    def _powers(self, codes):
        """Return Fractions around e^(-rate gap) for each code, the gap being that to the largest."""
        codes = [int(code) for code in codes]
        best = max(codes)
        known = {code: exp_bounds(self.rate * (best - code), 60) for code in set(codes)}
        return [known[code] for code in codes]


def shared_out(weights):
    """Return {key: Fractions around its share}, from {key: Fractions around its weight}."""
    least, most = (sum(side) for side in zip(*weights.values()))
    return {key: (low / (most - high + low), high / (least - low + high)) for key, (low, high) in weights.items()}


class SelectionMechanism(CentralMechanism):
    """Base of what chooses among public candidates by private scores; an estimator names its `_choice`."""

    #: The law, a sub-class of `ChoiceLaw`.
    _choice = None

    #: The sensitivity is at least so many steps of the grid, where scores are no integers.
    _fineness = 1 << 12

    _checked_as = "choice"
    _not_in_parts = "takes scores, and no rows: call release with scores of all rows"
    _template = "neighbours"
    _more_parameters = """
    sensitivity : float, default=None
        How far the score of any one candidate can move between neighbouring data sets, above 0: it must be declared.
        (In strict mode it must hold for scores as they are read: NaN is the lowest of all.)
    monotone : bool, default=False
        Whether, between any two neighbours, all scores that move move the same way, as counts do where a record is
        added, and not where one is replaced. Declare it only if it is true; noise is then half as large. With
        substitution, pass `neighbours="substitution"` explicitly.
    """

    def __init__(self, epsilon=1.0, *, sensitivity=None, monotone=False, neighbours=None, ledger=None,
                 random_state=None):
        self.epsilon = epsilon
        self.sensitivity = sensitivity
        self.monotone = monotone
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    def release(self, scores, candidates=None):
        """Return the chosen candidate; one release of epsilon, however many candidates there are.

        Parameters
        ----------
        scores : array-like of shape (n_candidates,), Series, or dict of candidate: score
            How good each candidate is, exactly; the higher the better. Secret. (Real scores are cut beyond some 2^48
            sensitivities, integers of an integer dtype beyond 2^53.) A Counter is asked for each of `candidates`.
        candidates : sequence of n_candidates items, default=None
            What the candidates are, in the order of the scores. None: the keys of a dict, the index of a pandas Series,
            else 0, 1, ... Candidates are always a public list, not the values that occur, such as the index of
            `value_counts`: take ``counts.reindex(public_list, fill_value=0)``. Otherwise a choice of a value that one
            person alone holds reveals this person.

        Raises
        ------
        ValueError
            Before anything is charged: for parameters, scores that are no finite numbers, candidates that are no
            sequence with one entry for each score, or that are missing where scores are a Counter.

        Returns
        -------
        candidate
            One of the candidates.
        """
        codes, law, names = self._read(scores, candidates)
        self._pay()
        chosen = law.draw(codes, WordSource(self.random_state))
        return name_of(names, chosen) if np.ndim(chosen) == 0 else self._several(names, chosen)

    def probabilities(self, scores):
        """Return the probability of each candidate, as floats; exact but for their rounding.

        It is as secret as the scores, and free: for the curator, and for audits.

        Parameters
        ----------
        scores : as for `release`

        Returns
        -------
        ndarray of shape (n_candidates,)
        """
        codes, law, _ = self._read(scores, None)
        return law.probabilities(codes)

    def law(self, whole=False):
        """Return the exact law of a choice (a `ChoiceLaw`); `whole`: of scores in an array of an integer dtype."""
        return self._law(whole)

    def utility_bound(self, n_candidates, confidence=0.95):
        """Return an upper bound of the distance between the best score and the chosen one, with that probability.

        Parameters
        ----------
        n_candidates : int
            From 1 to 2^63.
        confidence : float, default=0.95
            In (0, 1).
        """
        if isinstance(n_candidates, bool) or not isinstance(n_candidates, Integral) or not (
                1 <= n_candidates <= 1 << 63):
            raise ValueError("n_candidates must be an int from 1 to 2^63")
        if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < confidence < 1 or (
                float(confidence) == 1):
            raise ValueError("confidence must be a number between 0 and 1, and a float below 1")
        law = self._law(False)
        return (law.gap(int(n_candidates), 1 - float(confidence)) + 1) * law.step  # (one step: rounding down)

    # ---------------------------------------------------------------- inside

    def _read(self, scores, candidates):
        """Return (codes, the law, names) or raise ValueError; nothing is spent."""
        self._law(False)
        check_random_state(self.random_state)
        values, whole, names = read_scores(scores, candidates, strict=self._is_strict())
        law = self._law(whole)
        return to_codes(values, law.exponent), law, names

    def _several(self, names, places):
        return np.array(places) if names is None else [name_of(names, place) for place in places]

    def _law(self, whole):
        """Return the law, from a cache where it was made before."""
        names = tuple(name for name in self._get_param_names() if name not in _NO_LAW)
        try:
            return _cached(type(self), bool(whole), names, *(getattr(self, name) for name in names))
        except TypeError:  # what cannot be hashed is no parameter of a law: say which one
            return self._make_law(whole)

    def _make_law(self, whole):
        epsilon, _, sensitivity = self._budget()
        if not isinstance(self.monotone, bool | np.bool_):
            raise ValueError("monotone must be True or False: declare whether all scores change in the same direction")
        return self._law_of(epsilon, *_grid(sensitivity, whole, self._fineness), bool(self.monotone))

    def _law_of(self, *shared):
        """Return the law from what all laws have, and the parameters of the estimator."""
        return self._choice(*shared)

    def _notes(self):
        """Return what the guarantee rests on."""
        ways = ", all of them the same way" if self.monotone else ""
        return (f"It holds if the score of each candidate differs by at most {float(self.sensitivity):g} between "
                f"neighbours{ways}; the candidates are public.",)

    def _test_data(self, n_rows, seed=0):
        """Return scores; they go with any sensitivity."""
        return np.random.default_rng(seed).integers(-50, 50, n_rows) / 8, None


@lru_cache(maxsize=512, typed=True)
def _cached(cls, whole, names, *given):
    return cls(**dict(zip(names, given)))._make_law(whole)


def _grid(sensitivity, whole, fineness):
    """Return (sensitivity in steps, exponent): integers stay what they are where the sensitivity is one too."""
    exponent = 0
    if not (whole and sensitivity.denominator == 1):
        ratio = sensitivity / fineness
        exponent = ratio.numerator.bit_length() - ratio.denominator.bit_length()
        exponent -= Fraction(2) ** exponent > ratio
    return math.ceil(sensitivity / Fraction(2) ** exponent), exponent
