"""What all mechanisms that add noise to query answers share: reading answers, paying, drawing, and the way back."""

import math
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Rational, Real

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from dpestim._docs import fill_docstring
from dpestim.base import PrivateEstimator
from dpestim.central.answers import cut_integers, read_answers, rewrap
from dpestim.central.law import LARGEST
from dpestim.inputs import number_rows, refuse_infinite
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.rng import WordSource, check_random_state

#: A grid is so fine that rounding all answers to it moves them by at most this part of the sensitivity.
_FINENESS = 1 << 12
#: Less could not be told from the rounding of floats, which have few digits below 1e-308.
_LEAST_DELTA = Fraction(1, 10**300)
_RELATIONS = {n.value: n for n in (Neighbours.SUBSTITUTION, Neighbours.ADD_REMOVE)}


class CentralMechanism(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """Base of what adds noise to answers; a face names its `_noise`, and has an ``__init__`` for parameters of its own.

    Where the answers are no integers, the `exponent` of a law is that of the grid, and its `sensitivity`, in steps,
    already covers the rounding of `size` answers.
    """

    #: The law, a sub-class of `NoiseLaw`.
    _noise = None

    #: Whether answers are integers: then the grid has step 1, and nothing is rounded.
    _integers = False

    def __init_subclass__(cls, **kwargs):
        """Fill in the parameters that all share in the docstring."""
        super().__init_subclass__(**kwargs)
        fill_docstring(cls)

    def __init__(self, epsilon=1.0, *, sensitivity=None, bounds=None, neighbours="substitution", ledger=None,
                 random_state=None):
        self.epsilon = epsilon
        self.sensitivity = sensitivity
        self.bounds = bounds
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    def release(self, values):
        """Return the answers with noise; one release of epsilon for all of them together.

        Parameters
        ----------
        values : number, array-like of any shape, pandas or polars Series or DataFrame
            The exact answers of a query (not rows of data), which all together have the declared sensitivity.

        Returns
        -------
        number, ndarray, Series or DataFrame
            Of the shape of values: a number for a number, a frame with the same labels for a frame, else an array.
        """
        law, answers = self._read(values)
        return rewrap(values, self._add_noise(answers, law))

    def fit(self, X, y=None):
        """Look at the names and the number of columns; nothing is learned, released or charged.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
        y : ignored

        Returns
        -------
        self
        """
        self._read_table(X, reset=True)
        return self

    def transform(self, X):
        """Return a table of answers with noise, as `release` does; one release for the whole table.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
            Exact answers, such as a table of counts: no rows of data.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
        """
        rows = self._read_table(X, reset=False)
        law, answers = self._read(rows)
        return self._add_noise(answers, law)

    @property
    def privacy_(self):
        """What one release promises; known before any answer."""
        return self._guarantee()

    def law(self, size=1):
        """Return the exact law of the noise, for so many answers in one release (a `NoiseLaw`)."""
        return self._law(size)

    def variance(self, size=1):
        """Return the variance of the noise of each answer, for so many answers in one release.

        Without that of the rounding to the grid, which is at most a quarter of a step squared.
        """
        return self._law(size).variance

    def tail(self, t, size=1):
        """Return the probability that the noise of an answer exceeds t in absolute value, rounded up."""
        if isinstance(t, bool) or not isinstance(t, Real) or math.isnan(t):
            raise ValueError("t must be a number")
        return self._law(size).tail(t if isinstance(t, Rational) else float(t))

    def half_width(self, confidence=0.95, size=1):
        """Return w such that release - w and release + w enclose each exact answer with that probability, at least.

        Parameters
        ----------
        confidence : float, default=0.95
            In (0, 1); for each answer by itself.
        size : int, default=1
            Answers in one release.
        """
        if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < confidence < 1:
            raise ValueError("confidence must be a number between 0 and 1")
        law = self._law(size)
        confidence = confidence if isinstance(confidence, Rational) else float(confidence)
        return law.half_width(confidence) + (0.0 if self._integers else law.step / 2)

    # ---------------------------------------------------------------- inside

    def _read(self, values):
        """Return (the law, the answers as an array) and raise ValueError; nothing is spent."""
        check_random_state(self.random_state)
        bounds = self._checked_bounds()
        answers = read_answers(values, integers=self._integers, strict=self._is_strict(), bounds=bounds)
        return self._law(max(answers.size, 1)), answers

    def _read_table(self, X, reset):
        self._law(1)
        check_random_state(self.random_state)
        self._checked_bounds()
        strict = self._is_strict()
        rows = cut_integers(number_rows(X, strict=strict), X, integers=self._integers)
        validate_data(self, X if hasattr(X, "columns") else rows, reset=reset, skip_check_array=True)
        if not strict:
            refuse_infinite(rows, [f"column {j}" for j in range(rows.shape[1])])
            read_answers(rows, integers=self._integers, strict=False, bounds=None)
        return rows

    def _add_noise(self, answers, law):
        """Charge, draw, and return the noisy answers."""
        bounds = self._checked_bounds()
        if self._find_ledger() is not None:
            self._charge(self._guarantee(), None)
        out = self._noisy(answers.reshape(-1), law, WordSource(self.random_state))
        return (out if bounds is None else np.clip(out, *bounds)).reshape(answers.shape)

    def _noisy(self, answers, law, source):
        """Return noisy answers, a flat array, by the words of a source."""
        codes = _codes(answers, law.exponent)
        codes += law.draw(source, answers.size)
        # |code| <= 2^61 and |noise| <= 2^62: the sum fits, and is cut as that with uncut noise would be
        codes = np.maximum(np.minimum(codes, LARGEST // 2), -LARGEST // 2)
        return codes if self._integers else np.ldexp(codes.astype(np.float64), law.exponent)

    def _guarantee(self):
        epsilon, delta, _ = self._budget()
        return PrivacyGuarantee(
            epsilon, delta, "central", self._relation(), self.random_state is not None,
            (f"It holds if the answers of neighbours differ by at most {float(self.sensitivity):g} in all "
             f"({self._distance}).",),
        )

    #: How the distance between answers is measured, in words.
    _distance = "the sum of the absolute differences"

    def _relation(self):
        if not isinstance(self.neighbours, str) or self.neighbours not in _RELATIONS:
            raise ValueError(f"neighbours must be one of {sorted(_RELATIONS)}")
        return _RELATIONS[self.neighbours]

    def _budget(self):
        """Return (epsilon, delta, sensitivity) as exact fractions, or raise ValueError."""
        sensitivity = self.sensitivity
        if sensitivity is None:
            raise ValueError("sensitivity must be declared: how far apart the answers of two neighbouring data sets "
                             "can be; there is no default that protects")
        self._relation()
        epsilon = canonical_epsilon(self.epsilon)
        delta = _delta(self.delta) if hasattr(self, "delta") else Fraction(0)
        sensitivity = canonical_amount(sensitivity, "sensitivity")
        if not 0 < sensitivity < 2**53 or sensitivity < Fraction(1, 2**200):
            raise ValueError("sensitivity must be a number above 0 and below 2^53")
        return epsilon, delta, sensitivity

    def _checked_bounds(self):
        bounds = self.bounds
        if bounds is None:
            return None
        pair = isinstance(bounds, tuple | list | np.ndarray) and len(bounds) == 2
        kind = Integral if self._integers else Real
        if not pair or not all(isinstance(b, kind) and not isinstance(b, bool) and abs(b) < 2**53 for b in bounds):
            what = "integers" if self._integers else "numbers"
            raise ValueError(f"bounds must be None or a pair (low, high) of {what} between -2^53 and 2^53")
        bounds = tuple(int(b) if self._integers else float(b) for b in bounds)
        if not bounds[0] < bounds[1]:
            raise ValueError("bounds must be a pair (low, high) with low below high")
        return bounds

    def _law(self, size):
        """Return the law of `size` answers, from a cache where it was made before."""
        if isinstance(size, bool) or not isinstance(size, Integral) or not 1 <= size <= 2**40:
            raise ValueError("size must be an int of at least 1: the number of answers in one release")
        names = ("epsilon", "sensitivity", "neighbours", *self._own)
        given = [getattr(self, name) for name in names]
        try:
            return _law(type(self), int(size), names, *given)
        except TypeError:  # what cannot be hashed is no parameter of a law: say which one
            return self._make_law(int(size))

    def _make_law(self, size):
        """Return the law of `size` answers, made anew."""
        epsilon, delta, sensitivity = self._budget()
        own = [getattr(self, name) for name in self._own if name != "delta"]
        exponent = 0
        if not self._integers:
            rounding = self._rounding(size)
            exponent = _floor_log2(sensitivity / (rounding * _FINENESS))
            sensitivity = sensitivity / Fraction(2) ** exponent + rounding
        return self._law_of(epsilon, delta, sensitivity, exponent, size, *own)

    #: Parameters, besides those that all have, that make another law; delta, where there is one, is among them.
    _own = ()

    @classmethod
    def _law_of(cls, epsilon, delta, sensitivity, exponent, size, *own):
        """Return the law of `size` answers, from what `_make_law` has worked out."""
        return cls._noise(epsilon, delta, sensitivity, exponent, *own)

    #: by how many steps rounding can move `size` answers, in the norm of the sensitivity (an upper bound)
    @staticmethod
    def _rounding(size):
        return size

    def __sklearn_is_fitted__(self):
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        if self._integers:
            tags.input_tags.categorical = True  # the tag for integers only: no other says what codes and counts are
            tags.transformer_tags.preserves_dtype = []
        return tags

    def _test_data(self, n_rows, seed=0):
        """Return a table of answers; they go with any sensitivity."""
        rng = np.random.default_rng(seed)
        answers = rng.integers(-50, 50, (n_rows, 2))
        return (answers if self._integers else answers / 8), None


@lru_cache(maxsize=512, typed=True)
def _law(cls, size, names, *given):
    return cls(**dict(zip(names, given)))._make_law(size)


def _floor_log2(x):
    """Return the largest k with 2^k <= x, a Fraction."""
    k = x.numerator.bit_length() - x.denominator.bit_length()
    return k if Fraction(2) ** k <= x else k - 1


def _codes(answers, exponent):
    """Return the answers as integers of the grid, the nearest, cut at 2^61."""
    if answers.dtype.kind == "i":
        return np.maximum(np.minimum(answers, LARGEST // 2), -LARGEST // 2)
    with np.errstate(all="ignore"):
        # a power of two changes nothing but the exponent; what underflows is nearer to 0 than half a step in any case
        scaled = np.rint(np.ldexp(answers, -exponent))
    return np.clip(scaled, -float(LARGEST // 2), float(LARGEST // 2)).astype(np.int64)


def _delta(delta):
    """Return delta as an exact fraction in (0, 1)."""
    if delta is None:
        raise ValueError("delta must be declared, above 0 and below 1 (much less than one over the number of people)")
    value = canonical_amount(delta, "delta")
    if not _LEAST_DELTA <= value < 1:
        raise ValueError("delta must be a number of at least 1e-300 and below 1")
    return value
