"""The sparse vector technique: which of many queries are above a threshold, for the price of those that are."""

import math
from collections.abc import Iterable, Mapping, Set
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import repeat
from numbers import Integral, Number
from threading import Lock

import numpy as np

from dpestim.central.additive.answers import read_answers
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.mechanism import grid_codes, grid_exponent
from dpestim.central.base import CentralMechanism
from dpestim.central.selection.comparisons import Comparisons
from dpestim.inputs.frames import is_frame, is_series
from dpestim.privacy.exact import canonical_amount
from dpestim.records import record
from dpestim.rng import WordSource, check_random_state

_MOST_POSITIVES = 1 << 32
_STARTING = Lock()  # a lock in the object could not be pickled, before its first answer


@record
class SparseVectorLaw:
    """The exact laws of the noise of a `SparseVector`, integers in steps of a public grid.

    Parameters
    ----------
    epsilon : Fraction
        What holds, exactly, for all answers together.
    sensitivity : int
        How far each query can move, in steps, its rounding to the grid included.
    exponent : int
        The step is 2^exponent.
    max_positives : int
    monotone : bool
    value_fraction : Fraction
        The part of epsilon that is for numbers.
    """

    epsilon: Fraction
    sensitivity: int
    exponent: int
    max_positives: int = 1
    monotone: bool = False
    value_fraction: Fraction = Fraction(0)

    @property
    def weight(self):
        """How many times the sensitivity all positives together can cost: 2 c, and c where all move alike."""
        return self.max_positives * (1 if self.monotone else 2)

    @cached_property
    def parts(self):
        """Epsilon for the threshold, the comparisons and the numbers: Fractions that sum to epsilon."""
        numbers = self.epsilon * self.value_fraction
        first = (self.epsilon - numbers) / (1 + _two_thirds_power(self.weight))
        return first, self.epsilon - numbers - first, numbers

    @cached_property
    def threshold(self):
        """The law of the noise of the threshold, drawn once (a `NoiseLaw`)."""
        return self._laplace(self.parts[0], 1)

    @cached_property
    def query(self):
        """The law of the noise of each query that is compared."""
        return self._laplace(self.parts[1], self.weight)

    @cached_property
    def number(self):
        """The law of the noise of each number that is released, or None."""
        return self._laplace(self.parts[2], self.max_positives) if self.value_fraction else None

    def _laplace(self, epsilon, times):
        return DiscreteLaplaceLaw(epsilon, Fraction(0), Fraction(times * self.sensitivity), self.exponent)


class SparseVector(CentralMechanism):
    """Compare queries with a threshold by the sparse vector technique: only positive answers spend budget.

    The object answers any number of queries, each of which may depend on earlier answers, until `max_positives` queries
    have been answered "above". To choose the *best* of several candidates take a selection mechanism; for the answers
    of few queries take a mechanism that adds noise.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours and *all* answers of one object
    together, however many `process` calls: the first one charges it, and after the last positive nothing is answered.
    Thresholds and the number of queries must be public, or follow from earlier answers; the sensitivity is that of each
    query by itself. Queries and thresholds are rounded to a public grid (at most 1/4096 of the sensitivity), integers
    with exact discrete Laplace laws are compared, and no random float decides. From its first answer on the object
    holds secret noise: keep it where the data are. From then on the object cannot be cloned, copied, pickled or used in
    a forked process, because two copies could each give all positive answers. The curator, who holds the data, must be
    trusted.

    **Utility.** An answer compares the query with the threshold with noise of variance 2 (D / e1)^2 + 2 (w D / e2)^2,
    about, where D is the sensitivity, w = 2 max_positives (max_positives, if monotone) and e1 : e2 = 1 : w^(2/3), the
    split for which it is least. The first term is the same for all answers of an object. A number has noise of its own,
    of variance 2 (max_positives D / e3)^2, about: it is unbiased for its query, and independent of the noise that
    decided.

    **Complexity.** Expected O(1) a query: 32 random bits for each binary digit of its noise. Arrays are answered in
    blocks, with O(1) memory beside the answers.

    {parameters}
    References
    ----------
    Lyu, Su, Li (2017), "Understanding the sparse vector technique for differential privacy", PVLDB 10(6), algorithms 1
    and 7, and the optimal allocation of the budget between e1 and e2. Dwork, Naor, Reingold, Rothblum, Vadhan (2009),
    "On the complexity of differentially private data release", STOC, for the idea. The proof, for integers:
    ``sparse_vector.md``.

    Examples
    --------
    An array is answered as a whole:

    >>> from dpestim.central import SparseVector
    >>> visits = [3, 5, 4, 90, 2, 80, 100]
    >>> monitor = SparseVector(4.0, sensitivity=1, max_positives=2, random_state=0)
    >>> list(monitor.process(visits, 50))
    [False, False, False, True, False, True]
    >>> monitor.is_exhausted_
    True

    A generator may look at each answer before it makes the next query. Here the width of a window is halved until fewer
    than 200 of 1,000 people are within it:

    >>> import numpy as np
    >>> ages, widths = np.arange(1000) / 10, [64.0]
    >>> def outside():
    ...     while True:
    ...         yield (abs(ages - 50) > widths[-1]).sum()
    >>> search = SparseVector(1.0, sensitivity=1, monotone=True, neighbours="add_remove", random_state=0)
    >>> for is_narrow in search.process(outside(), 800):
    ...     if not is_narrow:
    ...         widths.append(widths[-1] / 2)
    >>> widths
    [64.0, 32.0, 16.0, 8.0]
    """

    _more_parameters = """
    sensitivity : float, default=None
        How far the answer of each single query can move between neighbouring data sets, above 0: it must be declared.
        It must hold for queries as they are read: in strict mode, where NaN is no error, with 0 for NaN.
    max_positives : int, default=1
        After this number of positive answers the object answers nothing more; from 1 to 2^32.
    monotone : bool, default=False
        Whether, from a data set to a neighbour, no query that may be asked rises while another falls, as where all
        are counts and neighbours have one record more or less. Then half the noise suffices. (Under substitution,
        counts do not move alike: then it needs that `neighbours` says so.)
    value_fraction : float, default=0
        The part of epsilon, in [0, 1), that is kept for numbers: above 0, a positive is answered by the query's
        value with fresh noise and not by True, and anything else by None and not by False. One half is a good choice
        where numbers matter as much as finding the right queries.
    """
    _more_attributes = """
    positives_ : int
        Positives among the answers so far; an array is answered as a whole, as soon as it is given.
    is_exhausted_ : bool
        Whether there were `max_positives` of them, so that nothing is answered any more.
    """

    _checked_as = "queries"
    _not_in_parts = "takes answers to queries, and no rows: call process with answers of all rows"

    #: what `process` keeps from call to call: SECRET, noise that has been used is in it
    _run = None

    def __init__(self, epsilon=1.0, *, sensitivity=None, max_positives=1, monotone=False, value_fraction=0,
                 neighbours=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.sensitivity = sensitivity
        self.max_positives = max_positives
        self.monotone = monotone
        self.value_fraction = value_fraction
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    def process(self, queries, threshold):
        """Return an iterator over the answers, in the order of the queries, up to the last positive.

        The first call charges epsilon, for this and all later calls, and fixes the parameters. Calls go on where
        earlier ones ended: under a seed, many calls give the answers of one.

        Parameters
        ----------
        queries : array-like of shape (n_queries,), Series or iterable of numbers
            Exact answers of the queries. An array, a list, a tuple or a series is answered as a whole, at once. Of any
            other iterable, such as a generator, a query is read when its answer is asked for, and not before.
        threshold : number, array-like of shape (n_queries,), Series or iterable of numbers
            Public thresholds, one for all queries or one for each.

        Returns
        -------
        iterator
            Of bool: True where a query is found above its threshold, or at it. With a `value_fraction`, of float (the
            query's value, with noise) there, and None elsewhere.

        Raises
        ------
        ValueError
            Before anything is charged or answered: for parameters, arrays with a value that is no finite number,
            lengths that differ, or because there have been `max_positives` positives. By the iterator: for a query or
            threshold of an iterable that is no finite number, or thresholds that end before the queries do; it answers
            nothing. Messages never show a query. In strict mode NaN is 0, and infinity the largest number.
        """
        if self.is_exhausted_:
            raise ValueError(f"all max_positives={self.positives_} positive answers of this object have been given, "
                             "and its epsilon is spent: make a new SparseVector, which charges again")
        strict, law = self._is_strict(), self.law()
        check_random_state(self.random_state)
        codes, limits = _read(queries, "queries", law, strict), _read(threshold, "threshold", law, False)
        if isinstance(codes, np.ndarray) and codes.ndim != 1:
            raise ValueError("queries must be one-dimensional: a number for each query")
        if not (isinstance(codes, np.ndarray) and isinstance(limits, np.ndarray)):
            return self._start(law).answer_one_by_one(_one_by_one(codes), _one_by_one(limits))
        if limits.shape not in ((), codes.shape):
            raise ValueError("threshold must be one number, or one for each query")
        return iter(self._start(law).answer(codes, np.broadcast_to(limits, codes.shape)))

    def law(self):
        """Return the exact laws of the noise (a `SparseVectorLaw`); from the first answer on, those in use."""
        if self._run is not None:
            return self._run.law
        epsilon, _, sensitivity = self._budget()
        count, share = self.max_positives, canonical_amount(self.value_fraction, "value_fraction")
        if isinstance(count, bool) or not isinstance(count, Integral) or not 1 <= count <= _MOST_POSITIVES:
            raise ValueError("max_positives must be an int from 1 to 2^32")
        if not isinstance(self.monotone, bool | np.bool_):
            raise ValueError("monotone must be True or False")
        if not share < 1:
            raise ValueError("value_fraction must be a number of at least 0 and below 1")
        return _make_law(epsilon, sensitivity, int(count), bool(self.monotone), share)

    @property
    def privacy_(self):
        """What all answers of this object together promise."""
        return self._guarantee() if self._run is None else self._run.guarantee

    @property
    def positives_(self):
        """Positives among the answers so far."""
        return 0 if self._run is None else self._run.law.max_positives - self._run.left

    @property
    def is_exhausted_(self):
        """Whether nothing is answered any more."""
        return self._run is not None and not self._run.left

    def set_params(self, **params):
        """Set parameters, before the first answer; from then on they are fixed, and setting any is a ValueError."""
        if params and self._run is not None:
            raise ValueError("parameters must be set before the first answer of a SparseVector: make a new one, which "
                             "charges again")
        return super().set_params(**params)

    # ---------------------------------------------------------------- inside

    def _start(self, law):
        """Return the state behind all answers; the first call charges and makes it."""
        with _STARTING:
            if self._run is None:
                guarantee = self._guarantee()
                self._pay()
                self._run = Comparisons(law, guarantee, WordSource(self.random_state))
        self._run.refuse_elsewhere()
        return self._run

    def _notes(self):
        moves = ", and all move in the same direction" if self.monotone else ""
        return (f"It holds for all answers of one object together, if the answer of each query differs by at most "
                f"{float(self.sensitivity):g} between neighbours{moves}, and thresholds are public.",)

    def __sklearn_clone__(self):
        self._refuse_copies()
        return super().__sklearn_clone__()

    def __getstate__(self):
        self._refuse_copies()
        return super().__getstate__()

    def _refuse_copies(self):
        if self._run is not None:
            raise TypeError("a SparseVector cannot be cloned, copied or pickled after its first answer, because two "
                            "copies could each give all positive answers: make a new one, which charges again")

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "sensitivity": 1},
            {"epsilon": 2.0, "sensitivity": 0.3, "max_positives": 3, "value_fraction": 0.5, "neighbours": "add_remove"},
            {"epsilon": 0.5, "sensitivity": 1.0, "max_positives": 3, "monotone": True, "neighbours": "add_remove"},
        ]

    def _test_data(self, n_rows, seed=0):
        """Return answers of queries; they go with any sensitivity."""
        return np.random.default_rng(seed).integers(-50, 50, n_rows) / 8, None


@lru_cache(maxsize=512)
def _make_law(epsilon, sensitivity, *own):
    exponent = grid_exponent(sensitivity)
    law = SparseVectorLaw(epsilon, math.floor(sensitivity / Fraction(2) ** exponent) + 1, exponent, *own)
    try:
        _ = law.threshold, law.query, law.number
    except ValueError:
        raise ValueError("epsilon is too small for max_positives or value_fraction, because the noise would exceed "
                         "64-bit integers: take a larger epsilon or fewer positives") from None
    return law


def _two_thirds_power(n):
    """Return n^(2/3), n a positive int, rounded down to a multiple of 2^-40."""
    cube, root = n * n << 120, 0
    for bit in reversed(range(cube.bit_length() // 3 + 1)):
        if (root | 1 << bit) ** 3 <= cube:
            root |= 1 << bit
    return Fraction(root, 1 << 40)


def _read(values, name, law, strict):
    """Return integers of the grid, an array, or an iterator over arrays of one such integer; nothing is drawn."""
    if isinstance(values, np.ndarray | np.generic | Number | list | tuple) or is_series(values):
        return _codes(values, name, law, strict)
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping | Set) or is_frame(values):
        number = "a number, or " if name == "threshold" else ""
        raise ValueError(f"{name} must be {number}an array, a series or another iterable of numbers")
    return _read_one_by_one(iter(values), name, law, strict)


def _read_one_by_one(values, name, law, strict):
    for value in values:
        code = _codes(value, name, law, strict)
        if code.size != 1:
            raise ValueError(f"{name} must be an iterable of numbers, not of arrays")
        yield code.reshape(1)


def _one_by_one(codes):
    """Return an iterator over arrays of one integer; a single one is repeated."""
    if not isinstance(codes, np.ndarray):
        return codes
    return iter(codes.reshape(-1, 1)) if codes.ndim else repeat(codes.reshape(1))


def _codes(values, name, law, strict):
    try:
        answers = read_answers(values, integers=False, strict=strict, bounds=None)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return np.asarray(grid_codes(answers, law.exponent))
