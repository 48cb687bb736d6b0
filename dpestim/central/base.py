"""What all mechanisms of the central model share: the budget, whom it protects, and the ledger that pays."""

import copy
from fractions import Fraction
from numbers import Integral, Real

import numpy as np

from dpestim.base import PrivateEstimator
from dpestim.inputs.declared import columns_seen, names_columns, settle_to
from dpestim.inputs.public import is_column
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import canonical_amount, canonical_epsilon

#: Less could not be told from the rounding of floats, which have few digits below 1e-308.
_LEAST_DELTA = Fraction(1, 10**300)
#: With less, nothing in floats that is divided by epsilon would be sure to be finite; no answer is of use long before.
LEAST_EPSILON = Fraction(1, 10**100)


class CentralMechanism(PrivateEstimator):
    """Base of what whoever holds the data uses; sub-classes have an ``__init__``, and verbs that release.

    Parameters of all: epsilon, neighbours, ledger and random_state; most have a sensitivity, some a delta.
    """

    #: Which shared text fills the docstring (`dpestim.docstrings`).
    _template = "neighbours"

    #: How the distance between neighbouring answers is measured, in words (of those with a sensitivity).
    _distance = None

    #: What the release that a fit keeps has promised.
    _kept_promise = None
    #: [the name of the relation of the last release, None before the first]: a list, which `transform` may change where
    #: scikit-learn asks it to leave all attributes as they are
    _last_relation = None
    #: Of which parties something is asked in place of a curator (`dpestim.privacy.trust`).
    _made_by = ()

    @property
    def privacy_(self):
        """The guarantee of the fitted release, also if parameters changed since; without a fit that of one release.

        That is about the relation of the last release, where no parameter says another one.
        """
        if self._kept_promise is not None:
            return self._kept_promise
        shown, (last,) = self, self._last_relation or [None]
        if last is not None and getattr(self, "neighbours", "") is None:
            shown = copy.copy(self)
            shown.neighbours = last
        return shown._guarantee()

    # ---------------------------------------------------------------- inside

    def _pay(self):
        """Charge one release, where there is a ledger: after all checks, before anything is drawn."""
        relation = self._relation_of_release()
        if self._find_ledger() is not None:
            self._charge(self._guarantee(), None)
        if self._last_relation is None:
            self._last_relation = [None]
        self._last_relation[0] = relation.value

    def __getstate__(self):
        state = dict(super().__getstate__())
        if "_last_relation" in state:  # (what a copy releases is no release of this one)
            state["_last_relation"] = list(state["_last_relation"])
        return state

    def _guarantee(self):
        return self._guarantee_with(self._curve())

    def _guarantee_with(self, curve):
        """Return the guarantee of a release of which this is known besides (epsilon, delta), or None."""
        epsilon, delta, _ = self._budget()
        return PrivacyGuarantee(epsilon, delta, "central", self._relation_of_release(), self.random_state is not None,
                                self._notes(), curve=curve, parties=self._made_by)

    def _relation_of_release(self):
        """Return whom a release protects, or raise ValueError where `monotone` was hardly declared for these."""
        relation = self._relation()
        if getattr(self, "monotone", False) and self.neighbours is None and relation is Neighbours.SUBSTITUTION:
            raise ValueError('monotone=True needs neighbours="add_remove": counts all change in the same direction if '
                             "a record is added or removed, but not if a record is replaced. If your scores are "
                             'monotone under replacement too, pass neighbours="substitution" explicitly')
        return relation

    def _curve(self):
        """Return what is known besides (epsilon, delta), or None (pure ones imply theirs)."""
        return None

    def _settled(self, X):
        """Return one whose declarations by name are those of the columns of X."""
        return self._settled_to(*columns_seen(X)[:2]) if names_columns(self) else self

    def _settled_to(self, names, n_columns, target=None):
        """Return one whose declarations by name are those of so many columns of these names."""
        if not names_columns(self):
            return self
        twin = copy.copy(self)
        settle_to(twin, names, n_columns)
        return twin

    def _notes(self):
        """Return what else a reader of the guarantee should know, in sentences."""
        return (f"It holds if the answers of neighbours differ by at most {float(self.sensitivity):g} in all "
                f"({self._distance}).",)

    def _budget(self):
        """Return (epsilon, delta, sensitivity), exact (0 and None where it has none), or raise ValueError."""
        sensitivity = checked_sensitivity(self.sensitivity) if hasattr(self, "sensitivity") else None
        self._relation()
        epsilon = canonical_epsilon(self.epsilon)
        if epsilon < LEAST_EPSILON:
            raise ValueError("epsilon is too small: it must be at least 1e-100")
        return epsilon, checked_delta(self.delta) if hasattr(self, "delta") else Fraction(0), sensitivity


def checked_sensitivity(sensitivity):
    """Return a sensitivity as an exact fraction."""
    if sensitivity is None:
        raise ValueError("sensitivity must be declared: the largest change of the answers between two neighbouring "
                         "data sets")
    value = canonical_amount(sensitivity, "sensitivity")
    if not 0 < value < 2**53 or value < Fraction(1, 2**200):
        raise ValueError("sensitivity must be a number above 0 and below 2^53")
    return value


def checked_bounds(bounds, *, integers=False):
    """Return a public range as a pair of floats or ints; None stays None."""
    if bounds is None:
        return None
    if is_column(bounds, "numbers"):
        bounds = bounds.low, bounds.high
    pair = isinstance(bounds, tuple | list | np.ndarray) and len(bounds) == 2
    kind = Integral if integers else (float, Real)
    # (abstract classes are slow: most bounds are floats or ints)
    if not pair or not all((type(b) is int or (isinstance(b, kind) and not isinstance(b, bool))) and abs(b) < 2**53
                           for b in bounds):
        what = "integers" if integers else "numbers"
        raise ValueError(f"bounds must be None or a pair (low, high) of {what} between -2^53 and 2^53, as floats "
                         "cannot tell larger integers apart: write answers, sensitivity and bounds in another unit")
    bounds = tuple(int(b) if integers else float(b) for b in bounds)
    if not bounds[0] < bounds[1]:
        raise ValueError("bounds must be a pair (low, high) with low below high")
    return bounds


def declared_delta(delta):
    """Return delta as an exact fraction in [0, 1): None and 0 both say that there is none."""
    value = Fraction(0) if delta is None else canonical_amount(delta, "delta")
    if value and not _LEAST_DELTA <= value < 1:
        raise ValueError("delta must be None or 0, or a number of at least 1e-300 and below 1")
    return value


def checked_delta(delta):
    """Return delta as an exact fraction in (0, 1), of what cannot be private without one."""
    value = declared_delta(delta)
    if not value:
        raise ValueError("delta must be declared, above 0 and below 1: take much less than one over the number of "
                         "people")
    return value
