"""Traces on devices: a place is reported anew only if it is far from the latest report, by a private test."""

import copy
import math
import threading
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.geo.planar import PlaceTransformer
from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.rng import WordSource

#: Into how many parts a step of the grid is cut, for distances in integers (`predictive.md`).
PARTS = 64
#: What tests of a run pay: "svt" once for the run, "tests" each.
METHODS = ("svt", "tests")


class PredictiveTrace:
    """Report the places of one user's trace, and pay for a new report only if the user has moved far.

    A private test asks whether the user is far from the latest report. If not, the latest report is the answer. If so,
    the transformer reports the place anew. A user who stays costs little, while independent reports add up.

    **Privacy.** `budget` is for a metre and for the whole trace, of any length: two traces whose places are at most r
    metres apart at every time are told apart by at most e^(budget r), exact (integers; proof in ``predictive.md``). The
    budget is charged once, before the first answer. When it is used up, every answer is the latest report. As for the
    transformer, this is a relaxation of local differential privacy. Nobody but the user's device is trusted.

    **Utility.** An answer that is not fresh is off by about `threshold` metres and the noise of the test at most. After
    the budget is used up errors have no bound: take a budget of 2 epsilon for each time that the user moves far. A user
    who moves far at nearly every step gains nothing.

    **Complexity.** O(1) a place, about 0.1 milliseconds.

    Parameters
    ----------
    transformer : PlaceTransformer
        With declared bounds, such as `PlanarLaplaceTransformer`. Its epsilon is that of a fresh report. Its ledger is
        charged, and its random_state is the seed.
    budget : float
        Epsilon for a metre, for the whole trace; at least that of the transformer.
    test : float, default=None
        Epsilon for a metre of a run of tests ("svt"), or of one test ("tests"). None: that of the transformer ("svt"),
        or a tenth of it ("tests").
    threshold : float, default=None
        Metres from the latest report from which a place is far. None: 20 divided by the epsilon of the transformer.
    method : {"svt", "tests"}, default="svt"
        "svt": the tests up to the next fresh report cost `test` together (sparse vector technique). "tests": each test
        costs `test`, as in the paper; that is cheaper only if the user moves far at nearly every step.

    Attributes
    ----------
    privacy_ : PrivacyGuarantee
        What the whole trace promises.
    spent_, left_ : Fraction
        How much of the budget is used up, for a metre: public, as is which answers are fresh.
    n_steps_, n_fresh_ : int
        Answers so far, and how many were fresh.

    References
    ----------
    K. Chatzikokolakis, C. Palamidessi, M. Stronati, "A predictive differentially-private mechanism for mobility
    traces", PETS 2014. The accounting by runs is derived in ``predictive.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.geo import PlanarLaplaceTransformer, PredictiveTrace
    >>> device = PlanarLaplaceTransformer(0.01, bounds=([0, 0], [9000, 9000]), units="metres", random_state=0)
    >>> day = np.repeat([[1000, 1000], [8000, 7000], [1000, 1000]], 30, axis=0)
    >>> trace = PredictiveTrace(device, budget=0.2)
    >>> errors = np.hypot(*(trace.report(day) - day).T)
    >>> trace.n_steps_, trace.n_fresh_ < 15, bool(np.median(errors) < 1000)
    (90, True, True)
    """

    def __init__(self, transformer, budget, *, test=None, threshold=None, method="svt"):
        if not isinstance(transformer, PlaceTransformer):
            raise ValueError("transformer must be one of places, such as PlanarLaplaceTransformer")
        if not isinstance(method, str) or method not in METHODS:
            raise ValueError(f"method must be one of {list(METHODS)}")
        transformer._check_call_parameters()
        self._columns = transformer._columns_now()
        (self._column,), self._law = self._columns, self._columns.laws[0]
        if self._columns.inferred:
            raise ValueError("bounds must be declared, because bounds that were learned from places are private: set "
                             "bounds of the transformer")
        self._device, self._svt = copy.copy(transformer), method == "svt"
        self.budget, fresh = canonical_amount(budget, "budget"), self._law.epsilon
        if not fresh <= self.budget < math.inf:
            raise ValueError("budget must be finite, and at least the epsilon of the transformer, which one report "
                             "costs: raise budget, or lower that epsilon")
        self.test = fresh / (1 if self._svt else 10) if test is None else canonical_epsilon(test, "test")
        metres = 20 / fresh if threshold is None else canonical_amount(threshold, "threshold")
        if not metres >= 0:
            raise ValueError("threshold must be a number of metres of at least 0")
        self.threshold = metres
        self._most = math.floor(PARTS * min(metres / self._law.step, Fraction(1 << 50)))
        self._noise = law_of_rate(self.test * self._law.step / (PARTS + 1) / (3 if self._svt else 1))
        self._source, self._latest, self._limit = None, None, None
        self._lock, self.spent_, self.n_steps_, self.n_fresh_ = threading.RLock(), Fraction(0), 0, 0

    @property
    def left_(self):
        """What is left of the budget."""
        return self.budget - self.spent_

    @property
    def privacy_(self):
        """What the whole trace promises."""
        one = self._columns.guarantee(self._device.random_state is not None)
        times = self.budget / one.relaxed_epsilon
        trace = ("The guarantee is for a whole trace of any length: the distance of two traces is the largest of the "
                 "distances of their places.")
        return replace(one, epsilon=one.epsilon * times, relaxed_epsilon=self.budget, notes=(*one.notes, trace))

    def report(self, places):
        """Return the answers for the next places of the trace, in the units of the transformer.

        Parameters
        ----------
        places : array-like or data frame of shape (n, 2), or one place
            In the order of time. Places beyond the region are moved to its border.

        Returns
        -------
        ndarray of shape (n, 2), or of shape (2,) for one place

        Raises
        ------
        ValueError
            For what is no place, before anything is charged or drawn.
        """
        one = not hasattr(places, "columns") and np.ndim(places) == 1
        with self._lock:
            strict = self._device._is_strict()
            rows = self._device._container([places] if one else places, strict)
            if rows.shape[1] != 2:
                raise ValueError("places must have two columns, (latitude, longitude) or (x, y)")
            (values,) = self._columns.read(self._device._parts(rows, self._columns, strict), None, strict)
            if self._source is None:
                self._device._charge(self.privacy_, 1, self._columns.names)
                self._source = WordSource(self._device.random_state)
            cells = self._column.coder()(values).tolist()
            said = [self._answer(values[k : k + 1], cell) for k, cell in enumerate(cells)]
        answers = self._device.decode(np.array(said, self._law.report_dtype).reshape(-1, 1))
        return answers[0] if one else answers

    # ---------------------------------------------------------------- inside

    def _answer(self, value, cell):
        """Return the number of the place that is reported for the next place, in the cell (i, j)."""
        source, self.n_steps_ = self._source.part(self.n_steps_), self.n_steps_ + 1
        if self._latest is None or self._is_far(cell, source):
            self.spent_ += self._law.epsilon
            reports = self._columns.randomize([value], source.part(0), 0, 1)
            self._latest, self._limit, self.n_fresh_ = int(reports[0, 0]), None, self.n_fresh_ + 1
        return self._latest

    def _is_far(self, place, source):
        """Return what the private test says; False where what is left pays for no test and a fresh report."""
        if self._limit is None or not self._svt:  # a run, or a test, begins
            if self.left_ < self.test + self._law.epsilon:
                return False
            self.spent_ += self.test
            self._limit = self._most + (self._drawn(source.part(1)) if self._svt else 0)
        return self._apart(place) + self._drawn(source.part(2)) > self._limit

    def _drawn(self, source):
        return int(self._noise.draw(source, 1)[0])

    def _apart(self, place):
        """Return the distance from the latest report, in parts of a step, rounded down: an exact integer."""
        i, j = (abs(a - b) for a, b in zip(place, divmod(self._latest, self._law.n_second)))
        return PARTS * (i + j) if self._law.manhattan else math.isqrt(PARTS * PARTS * (i * i + j * j))

    def __repr__(self):
        """Tell what is left."""
        return f"PredictiveTrace(budget={float(self.budget):g}, left_={float(self.left_):g}, n_steps_={self.n_steps_})"

    def __reduce__(self):
        """Refuse: two copies would each go on with the same budget."""
        raise TypeError("a PredictiveTrace cannot be pickled or copied, because both copies would spend one budget: "
                        "keep it in the process that began the trace")
