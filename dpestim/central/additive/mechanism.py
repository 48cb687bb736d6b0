"""What all mechanisms that add noise to query answers share: reading answers, paying, drawing, and the way back."""

import math
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Rational, Real

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from dpestim.central.additive.answers import read_answers, rewrap
from dpestim.central.additive.law import LARGEST
from dpestim.central.base import CentralMechanism, checked_bounds
from dpestim.inputs.frames import is_frame
from dpestim.rng import WordSource, check_random_state

#: A grid is so fine that rounding all answers to it moves them by at most this part of the sensitivity.
_FINENESS = 1 << 12
_LARGEST = float(LARGEST // 2)


class _Rehearsal:
    """Stands for X where scikit-learn wraps no rows, so that what its output lacks is found before anything is paid."""

    def __init__(self, n_columns):
        self.n_columns = n_columns


class AdditiveMechanism(OneToOneFeatureMixin, TransformerMixin, CentralMechanism):
    """Base of what adds noise to answers; an estimator names its `_noise`.

    It has an ``__init__`` for parameters of its own.

    Where the answers are no integers, the `exponent` of a law is that of the grid, and its `sensitivity`, in steps,
    already covers the rounding of `size` answers.
    """

    #: The law, a sub-class of `NoiseLaw`.
    _noise = None

    _checked_as = "noise"
    _not_in_parts = ("learns nothing of rows: call release with an answer of all rows, or take a statistic of "
                     "dpestim.statistics")
    _template = "sensitivity"
    _distance = "the sum of the absolute differences"

    #: Whether answers are integers: then the grid has step 1, and nothing is rounded.
    _integers = False

    #: Numbers of answers, of whose curves one follows from that of any number.
    _sizes = (1,)

    def __init__(self, epsilon=1.0, *, sensitivity=None, bounds=None, neighbours=None, ledger=None,
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
        return rewrap(values, self._add_noise(*self._read(values)))

    def fit(self, X, y=None):
        """Look at the names and the number of columns; nothing is learned, released or charged.

        {fit of rows}
        """
        self._read_table(X, reset=True)
        if self._last_relation is None:
            self._last_relation = [None]
        return self

    def transform(self, X):
        """Return a table of answers with noise, as `release` does; one release for the whole table.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
            Exact answers, such as a table of counts: no rows of data.

        Returns
        -------
        ndarray of shape (n_rows, n_columns), or what `set_output` asks for

        Raises
        ------
        ValueError
            Before anything is charged: for answers or parameters, and, where `set_output` asks for a frame, without
            `fit`, which learns the names of its columns.
        """
        if isinstance(X, _Rehearsal):
            return np.empty((0, X.n_columns))
        answers, law = self._read_table(X, reset=False)
        self.transform(_Rehearsal(answers.shape[1]))
        return self._add_noise(answers, law)

    def _randomises(self, method):
        raise ValueError(f"{type(self).__name__} adds noise to one table of exact answers, and not to rows: aggregate "
                         "the parts first, and call release on the answers")

    def law(self, size=1):
        """Return the exact law of the noise for a release of `size` answers (a `NoiseLaw`)."""
        return self._law(size)

    def variance(self, size=1):
        """Return the variance of the noise of each answer in a release of `size` answers.

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
        return law.half_width(confidence) + self._rounded(law)

    # ---------------------------------------------------------------- inside

    def _read(self, values, *, table=False):
        """Return (the answers as an array, their law) or raise ValueError; nothing is spent."""
        check_random_state(self.random_state)
        bounds, strict = self._checked_bounds(), self._is_strict()
        answers = read_answers(values, integers=self._integers, strict=strict, bounds=bounds, table=table)
        law = self._law(max(answers.size, 1))
        if bounds is not None:
            if max(-bounds[0], bounds[1]) > law.reach:
                raise ValueError(f"bounds must be at most {law.reach:g} in absolute value for this sensitivity and "
                                 "number of answers: narrow the bounds, or release fewer answers together")
        elif not strict and answers.size and _largest(answers) > law.reach:
            raise ValueError(f"{('X' if table else 'values')} must be at most {law.reach:g} in absolute value for this "
                             "sensitivity and number of answers: declare bounds, to which answers are clipped")
        return answers, law

    def _read_table(self, X, reset):
        self._law(1)
        answers, law = self._read(X, table=True)
        if is_frame(X) and len(set(X.columns)) < answers.shape[1]:
            raise ValueError("X must have columns of different names: rename columns, or call release, which ignores "
                             "names")
        validate_data(self, X if hasattr(X, "columns") else answers, reset=reset, skip_check_array=True)
        return answers, law

    def _add_noise(self, answers, law):
        """Charge, draw, and return the noisy answers."""
        bounds = self._checked_bounds()
        self._pay()
        out = self._noisy(answers.reshape(-1), law, WordSource(self.random_state))
        return (out if bounds is None else np.minimum(np.maximum(out, bounds[0]), bounds[1])).reshape(answers.shape)

    def _noisy(self, answers, law, source):
        """Return noisy answers, a flat array, by the words of a source."""
        codes = law.add(grid_codes(answers, law.exponent), source)
        return codes if self._integers else np.ldexp(codes.astype(np.float64), law.exponent)

    def _curve(self):
        """Return what is known of a release of any size."""
        try:
            curves = [getattr(self._law(size), "curve", None) for size in self._sizes]
        except ValueError:  # there is no such law: whoever releases is told so
            return None
        return None if None in curves else next(c for c in curves if all(c.follows_from(other) for other in curves))

    def _checked_bounds(self):
        return checked_bounds(self.bounds, integers=self._integers)

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
            exponent = grid_exponent(sensitivity / rounding)
            sensitivity = sensitivity / Fraction(2) ** exponent + rounding
        return self._law_of(epsilon, delta, sensitivity, exponent, size, *own)

    #: Parameters, besides those that all have, that make another law; delta, where there is one, is among them.
    _own = ()

    @classmethod
    def _law_of(cls, epsilon, delta, sensitivity, exponent, size, *own):
        """Return the law of `size` answers, from what `_make_law` has worked out."""
        return cls._noise(epsilon, delta, sensitivity, exponent, *own)

    def _rounded(self, law):
        """Return by how much the rounding of an answer can move it: it is no part of the noise."""
        return 0.0 if self._integers else law.step / 2

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


def _largest(answers):
    """Return the largest absolute value of an array that is not empty; one number is taken out of it first: faster."""
    return abs(answers.item()) if answers.size == 1 else max(answers.max().item(), -answers.min().item())


def grid_exponent(distance):
    """Return the k of the coarsest grid of step 2^k on which rounding moves by little of a distance, a Fraction."""
    x = distance / _FINENESS
    k = x.numerator.bit_length() - x.denominator.bit_length()
    return k if Fraction(2) ** k <= x else k - 1


def grid_codes(answers, exponent):
    """Return the answers as integers of the grid, the nearest, a new array; cut at 2^61 where they are floats."""
    if answers.dtype.kind == "i":
        return answers.copy()
    with np.errstate(all="ignore"):
        # a power of two changes nothing but the exponent; what underflows is nearer to 0 than half a step in any case
        scaled = np.rint(np.ldexp(answers, -exponent))
    return np.minimum(np.maximum(scaled, -_LARGEST), _LARGEST).astype(np.int64)
