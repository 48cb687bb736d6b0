"""`Error`: by how much what a program releases can be off, before it is run."""

import math
import uuid
from fractions import Fraction
from numbers import Rational, Real

import numpy as np

from dpestim.accuracy.joint import Largest, Norm
from dpestim.accuracy.numbers import Number
from dpestim.privacy import PrivacyGuarantee
from dpestim.tables import Table, as_text

#: The probabilities of errors that are shown.
_SHOWN = (0.1, 0.05, 0.01)
#: Numbers of an error, at most.
MOST = 1 << 17


class Error(Table):
    """The error of a number or an array of numbers that a program will release: what its noise can do, and rounding.

    `dpestim.accuracy.of` makes it from an estimator. Errors add up, are subtracted and multiplied by numbers as the
    outputs of the program are; an index takes a part. An error knows which noise it is made of: in ``error - error``
    nothing is left, and the errors of two releases are independent.

    ``print(error)`` shows a table; `to_frame` and `plot` take it from there.

    Attributes
    ----------
    shape : tuple of int
        That of the released values.
    against : tuple of str
        What the values are compared with, in words: exact statistics of rows that are clipped to the bounds. What
        clipping itself does is not part of the error, since it depends on the rows; `at_most` declares it.
    privacy : PrivacyGuarantee
        What all releases that the error is made from would promise together. The error itself costs nothing.
    standard_deviation : float or ndarray
        That of the noise; NaN where the value is no linear function of it.

    Examples
    --------
    >>> from dpestim import accuracy
    >>> from dpestim.statistics import Count
    >>> old, new = (accuracy.of(Count(1.0), 1000) for _ in range(2))
    >>> (new - old).bound(0.05), accuracy.max_of(old, new).bound(0.05)
    (4.0, 4.0)
    >>> (old - old).bound(0.05)
    0.0
    """

    def __init__(self, numbers, releases, against=(), labels=None, titles=()):
        self._numbers, self._releases, self.against = np.asarray(numbers, object), releases, tuple(against)
        if self._numbers.size > MOST:
            raise ValueError(f"the error must be of at most {MOST:,} numbers: take fewer cells or columns")
        self.titles = tuple(titles)
        self._labels = labels

    @property
    def shape(self):
        """The shape of the released values."""
        return self._numbers.shape

    @property
    def privacy(self):
        """What all releases that the error is made from would promise together; the error itself costs nothing."""
        return sum(self._releases.values()) if self._releases else PrivacyGuarantee(0)

    @property
    def standard_deviation(self):
        """The standard deviation of the noise of each number."""
        return self._each(lambda number: math.sqrt(number.variance))

    def bound(self, beta=0.05):
        """Return what each absolute error exceeds with probability beta at most, whatever the rows are.

        The exact quantile of the noise where it is known, and rounding; by concentration and union bounds else.

        Parameters
        ----------
        beta : float, default=0.05
            In (0, 1); for each number by itself. For all at once take `max_of`.

        Returns
        -------
        float or ndarray
        """
        beta = checked_beta(beta)
        return self._each(lambda number: number.bound(beta))

    def quantile(self, beta=0.05):
        """Return the least width that the absolute noise exceeds with probability beta at most; no rounding.

        It is exact up to a 2^-18th of the range of the noise, and exact where the noises have one lattice.

        Parameters
        ----------
        beta : float, default=0.05
            In (0, 1).

        Returns
        -------
        float or ndarray

        Raises
        ------
        ValueError
            Where the law of the error is not known: `bound` holds then.
        """
        beta = checked_beta(beta)

        def quantile(number):
            found = number.quantile(beta)
            if found is None:
                raise ValueError("the law of this error is not known, since it depends on the rows, or combines noises "
                                 "in a way that is not linear: ask for its bound")
            return found[0]

        return self._each(quantile)

    # ---------------------------------------------------------------- arithmetic

    def __getitem__(self, index):
        """Return the error of a part of the numbers."""
        labels = self._labels[index] if self._labels is not None else None
        taken = self._numbers[index]
        if isinstance(taken, Number):
            taken, labels = _scalar(taken), None if labels is None else _scalar(labels)
        return Error(taken, self._releases, self.against, labels, self.titles)

    def __len__(self):
        return len(self._numbers)

    def __iter__(self):
        if not self.shape:
            raise TypeError("the error of one number has no parts")
        return (self[k] for k in range(len(self)))

    def __add__(self, other):
        if isinstance(other, Error):
            return self._combined(self._numbers + other._numbers, other)
        _factors(other)  # (what is known adds no error)
        return self

    __radd__ = __add__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other if isinstance(other, Error) else self + other

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, factor):
        return self._combined(self._numbers * _factors(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor):
        factors = _factors(divisor)
        if not np.all(factors):
            raise ValueError("an error is divided by numbers other than 0")
        return self._combined(self._numbers * (Fraction(1) / factors))

    #: NumPy and pandas leave arithmetic with arrays and series to this class.
    __array_ufunc__, __pandas_priority__ = None, 5000

    def _combined(self, numbers, other=None):
        numbers = numbers if isinstance(numbers, np.ndarray) else _scalar(numbers)
        releases, against = _merged([self] if other is None else [self, other])
        keeps = numbers.shape == self.shape
        return Error(numbers, releases, against, self._labels if keeps else None, self.titles if keeps else ())

    # ---------------------------------------------------------------- inside

    def _each(self, function):
        if not self.shape:
            return float(function(self._numbers[()]))
        return np.array([function(number) for number in self._numbers.ravel()], float).reshape(self.shape)

    def _head(self):
        return (*self._names(), "standard deviation", *(f"{100 - 100 * beta:g} % bound" for beta in _SHOWN))

    def _names(self):
        return (self.titles if self._labels is not None else ()) or (("number",) if self.shape else ())

    @property
    def _n_labels(self):
        return len(self._names())

    @property
    def _plotted(self):
        return "95 % bound", None, None

    def _records(self):
        for place in np.ndindex(self.shape):
            number = self._numbers[place]
            labels = () if not self.shape else self._labels[place] if self._labels is not None else (
                place[0] if len(place) == 1 else place,)
            deviation = math.sqrt(number.variance)
            yield (*labels, deviation if deviation == deviation else None, *(number.bound(beta) for beta in _SHOWN))

    def _rows(self):
        for *labels, deviation, first, second, third in self._records():
            yield (*map(str, labels), *(as_text(None if x is None else float(f"{x:.4g}"))
                                        for x in (deviation, first, second, third)))

    def _remarks(self):
        return (f"Against {' and '.join(self.against)}." if self.against else "Against what was declared.",)

    def _about(self):
        return f"Nothing yet: an error of a release to come. {self._remarks()[0]}"


def _scalar(value):
    out = np.empty((), object)
    out[()] = value
    return out


def _factors(values):
    """Return numbers as an array of Fractions, or raise."""
    if isinstance(values, Error):
        raise TypeError("the error of a product of released values depends on the values: errors are added, "
                        "subtracted and multiplied by known numbers")
    array = np.asarray(values)
    if array.dtype.kind == "b" or (array.dtype.kind not in "iuf" and not all(
            isinstance(x, Real) and not isinstance(x, bool) for x in array.ravel().tolist())) or not array.size:
        raise TypeError("an error is combined with errors and with numbers")
    flat = array.ravel().tolist()
    if not all(isinstance(x, Rational) or math.isfinite(x) for x in flat):
        raise ValueError("numbers must be finite")
    out = np.empty(len(flat), object)
    out[:] = [_exact(x) for x in flat]
    return out.reshape(array.shape)


def _exact(x):
    """Return a number as the Fraction that its shortest decimal form names."""
    return Fraction(x) if isinstance(x, Rational) else Fraction(repr(float(x)))


def checked_beta(beta):
    """Return beta as a Fraction, or raise ValueError."""
    if isinstance(beta, bool) or not isinstance(beta, Real) or not 0 < beta < 1:
        raise ValueError("beta must be a number between 0 and 1: the probability of a larger error")
    return Fraction(beta)


def new_release():
    """Return a name that no other release has."""
    return uuid.uuid4().hex


def _numbers_of(errors):
    if not errors or not all(isinstance(error, Error) for error in errors):
        raise TypeError("give errors, as dpestim.accuracy.of returns them")
    numbers = tuple(number for error in errors for number in error._numbers.ravel())
    if not numbers:
        raise ValueError("the error of no number has no bound")
    return numbers, *_merged(errors)


def _merged(errors):
    """Return the releases of errors, each once, and what they are against."""
    releases = {name: promise for error in errors for name, promise in error._releases.items()}
    return releases, dict.fromkeys(sentence for error in errors for sentence in error.against)


def sum_of(*errors):
    """Return the error of the sum of all numbers of errors.

    Parameters
    ----------
    *errors : Error

    Returns
    -------
    Error
        Of one number.

    Examples
    --------
    >>> from dpestim import accuracy
    >>> from dpestim.statistics import Histogram
    >>> cells = accuracy.of(Histogram(1.0, bins=50, bounds=(0, 1)), 1000)
    >>> accuracy.sum_of(cells).bound(0.05), cells[0].bound(0.05)
    (39.0, 6.0)
    """
    numbers, *made_from = _numbers_of(errors)
    terms, rounding = {}, Fraction(0)
    for number in numbers:
        rounding += number.rounding
        for source, c in number.terms.items():
            terms[source] = terms.get(source, 0) + c
    return Error(_scalar(Number({source: c for source, c in terms.items() if c}, rounding)), *made_from)


def max_of(*errors):
    """Return the largest absolute error of all numbers of errors, which bounds the error of their maximum, too.

    Its quantile is exact where the numbers are independent; a bound is the union bound else.

    Parameters
    ----------
    *errors : Error

    Returns
    -------
    Error
        Of one number.

    Examples
    --------
    >>> from dpestim import accuracy
    >>> from dpestim.statistics import Histogram
    >>> cells = accuracy.of(Histogram(1.0, bins=50, bounds=(0, 1)), 1000)
    >>> accuracy.max_of(cells).bound(0.05)
    14.0
    """
    numbers, *made_from = _numbers_of(errors)
    numbers = tuple({(frozenset(each.terms.items()), each.rounding): each for each in numbers}.values())  # (once each)
    return Error(_scalar(Number({Largest(numbers): Fraction(1)})), *made_from)


def norm(*errors, order=2):
    """Return the norm of the vector of all errors, which bounds the error of the norm of the values, too.

    Parameters
    ----------
    *errors : Error
    order : {1, 2, inf}, default=2

    Returns
    -------
    Error
        Of one number.

    Examples
    --------
    >>> from dpestim import accuracy
    >>> from dpestim.statistics import Histogram
    >>> cells = accuracy.of(Histogram(1.0, bins=50, bounds=(0, 1)), 1000)
    >>> round(accuracy.norm(cells).bound(0.05), 1), accuracy.norm(cells, order=1).bound(0.05)
    (24.9, 121.0)
    """
    if order == math.inf:
        return max_of(*errors)
    if isinstance(order, bool) or order not in (1, 2):
        raise ValueError("order must be 1, 2 or inf")
    numbers, *made_from = _numbers_of(errors)
    return Error(_scalar(Number({Norm(numbers, int(order)): Fraction(1)})), *made_from)


def at_most(amount):
    """Return an error that never exceeds a number, such as what clipping moves a sum by.

    Parameters
    ----------
    amount : float
        At least 0.

    Returns
    -------
    Error
        Of one number, without noise.

    Examples
    --------
    >>> from dpestim import accuracy
    >>> from dpestim.statistics import Mean
    >>> error = accuracy.of(Mean(1.0, bounds=(0, 100)), 1000) + accuracy.at_most(0.5)
    >>> round(error.bound(0.05), 2)
    0.8
    """
    if isinstance(amount, bool) or not isinstance(amount, Real) or not 0 <= amount < math.inf:
        raise ValueError("amount must be a number of at least 0")
    return Error(_scalar(Number({}, Fraction(amount))), {})
