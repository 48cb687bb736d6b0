"""`SecureQuantile`: a quantile of the records of several owners, of whom none shows anything (`quantile.md`)."""

from fractions import Fraction
from numbers import Integral, Real

import numpy as np

from dpestim.central.base import CentralMechanism
from dpestim.inputs.frames import refuse_masked
from dpestim.parties.quantile_law import weight_law
from dpestim.parties.quantile_owner import QuantileOwner, QuantilePlan, exchange
from dpestim.privacy.trust import Parties
from dpestim.rng import WordSource

__all__ = ["SecureQuantile"]

#: Points of a domain at most: with weights for each, and by bisection.
_MOST_POINTS, _MOST_STEPS = 1 << 16, 1 << 62
#: Quantiles are fractions with at most this denominator.
_DENOMINATOR = 100


class SecureQuantile(CentralMechanism):
    """Release a quantile of the records of three or more owners, who show them to nobody.

    The first three owners compute on shares that all owners send them. They learn the quantile and nothing else, and
    tell it to all. `fit` plays all owners in one process, for tests and simulations; in real use each owner has a
    `QuantileOwner` in its own process.

    **Privacy.** Pure epsilon of the exponential mechanism in the central model, for the declared neighbours, with
    nobody trusted: against any one of the three computing owners together with all owners who do not compute, where all
    follow the protocol (honest-but-curious). Two computing owners who collude learn all records. An owner who does not
    follow the protocol can change the result, and an active one of the three can learn more. By bisection the noisy
    counts of all steps are revealed too, epsilon is divided among them, and at most n_owners - `honest` owners may
    collude: one by default.

    **Utility.** With weights, the law is that of the exponential mechanism on the points of the domain, with an epsilon
    that is at most a few percent smaller (`law`). By bisection each of `log2(|domain|)` steps has noise, of standard
    deviation 1.4 `log2(|domain|)` / epsilon ranks, for domains of any size.

    **Complexity.** With weights about 240 rounds among the three, and 140 words each for a point of the domain (1,000
    points, epsilon 1). By bisection `log2(|domain|)` steps of one word.

    {parameters}
    References
    ----------
    Boehler, Kerschbaum (2020), "Secure sublinear time differentially private median computation", NDSS, for the
    mechanism. Araki, Furukawa, Lindell, Nof, Ohara (2016), "High-throughput semi-honest secure three-party computation
    with an honest majority", CCS, for the shares. Mohassel, Rindal (2018), "ABY3", CCS, for the conversions. The proof:
    ``quantile.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.parties import SecureQuantile
    >>> rng = np.random.default_rng(0)
    >>> hospitals = [rng.normal(60, 12, 400).round() for _ in range(5)]
    >>> median = SecureQuantile(1.0, domain=range(0, 120), random_state=0).fit(hospitals)
    >>> bool(55 <= median.value_ <= 65)
    True
    """

    _more_parameters = """q : float, default=0.5
    Between 0 and 1, the nearest fraction with a denominator of at most 100.
domain : range or array-like of shape (n_points,)
    The public points among which the quantile is, sorted and distinct; at most 2^16 with weights.
method : {"exponential", "bisection"}, default="exponential"
    Whether one point is chosen in proportion to weights, and nothing else is revealed; or whether the domain is halved
    by noisy counts, all of which are revealed and paid.
honest : int, default=None
    By bisection: how many owners follow the protocol and tell nobody their secrets, at least. None: all but one. The
    variance of the noise is n_owners / honest times that of one machine.
"""

    def __init__(self, epsilon=1.0, *, q=0.5, domain=None, method="exponential", honest=None, neighbours=None,
                 ledger=None, random_state=None):
        self.epsilon = epsilon
        self.q = q
        self.domain = domain
        self.method = method
        self.honest = honest
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, parts, y=None):
        """Play all owners in one process; the ledger is charged once.

        Parameters
        ----------
        parts : list of array-like of shape (n_records,)
            The records of each owner, three or more.
        y : None

        Returns
        -------
        self
        """
        if not isinstance(parts, list | tuple) or len(parts) < 3:
            raise ValueError("parts must be a list of the records of each owner, three or more")
        plan = self._planned(len(parts))
        rows = [self._rows(part) for part in parts]
        for own in rows:
            plan.check_size(len(own), len(rows))
        source = WordSource(self.random_state)
        self._pay()
        owners = [QuantileOwner(_Played(self, plan, source.part(at))) for at in range(len(rows))]
        exchange(owners, rows)
        return self._become({"value_": owners[0].value, "_kept_promise": self._guarantee(),
                             "_revealed": (plan, owners[0]._counts, len(rows))})

    def confidence_interval(self, level=0.95):
        """Return (low, high), points that hold the quantile of the records, with at least this probability.

        With `method="bisection"` only: the noisy counts that were revealed say where the quantile is. Over the noise.
        The quantile is the first point of the domain at or below which a share of at least `q` of all records are, or
        the last point.

        Parameters
        ----------
        level : float, default=0.95
        """
        if not hasattr(self, "value_"):
            raise ValueError("confidence_interval comes after fit: call fit first")
        plan, counts, n_owners = self._revealed
        return plan.interval(counts, n_owners, level)

    def law(self):
        """Return the integer weights of the exponential mechanism, as an object with its `epsilon`, and `weights`."""
        plan = self._planned(3)
        if plan.law is None:
            raise ValueError('method must be "exponential", because bisection has no weights')
        return plan.law

    def __sklearn_is_fitted__(self):
        return hasattr(self, "value_")

    # ---------------------------------------------------------------- inside

    @property
    def _made_by(self):
        if self.method == "exponential":
            return (Parties(None, None, name="owners", computing=True),)
        most = 1 if self.honest is None else None
        return (Parties(None, most, name="owners", computing=True, honest=self.honest),)

    def _notes(self):
        against = ("any one of the three computing owners, together with owners who do not compute, where all follow "
                   "the protocol")
        told = (f"It holds against {against}.",)
        if self.method == "exponential":
            return told
        honest = "all owners but one" if self.honest is None else f"at least {self.honest} of the owners"
        return (*told, f"Noise came in shares: it holds where {honest} tell nobody their secrets.")

    def _planned(self, n_owners):
        """Return the plan of so many owners, or raise ValueError."""
        epsilon = self._budget()[0]
        if epsilon > 80:
            raise ValueError("epsilon must be at most 80")
        target, points = self._target(), self._points()
        honest = n_owners - 1 if self.honest is None else self.honest
        if isinstance(honest, bool) or not isinstance(honest, Integral) or not 1 <= honest <= n_owners:
            raise ValueError(f"honest must be None or an int from 1 to {n_owners}, the number of owners")
        moved = target.denominator if self._replaces else max(target.numerator, target.denominator - target.numerator)
        law = weight_law(epsilon, target, len(points), self._replaces) if self.method == "exponential" else None
        declared = (self.method, str(epsilon), str(self._replaces), str(int(honest)))
        return QuantilePlan(points, target, law, epsilon, moved, int(honest), declared)

    def _target(self):
        if isinstance(self.q, bool) or not isinstance(self.q, Real) or not 0 <= self.q <= 1:
            raise ValueError("q must be a number between 0 and 1")
        return Fraction(self.q).limit_denominator(_DENOMINATOR)

    def _points(self):
        if self.method not in ("exponential", "bisection"):
            raise ValueError('method must be "exponential" or "bisection"')
        domain, most = self.domain, _MOST_POINTS if self.method == "exponential" else _MOST_STEPS
        if isinstance(domain, range):
            fits = domain.step > 0 and all(abs(end) <= 1 << 53 for end in (domain.start, domain.stop))
            points = domain if fits else ()
        else:
            try:
                points = np.asarray(domain, float)
            except (TypeError, ValueError):
                points = np.zeros(0)
            if points.ndim != 1 or not np.all(np.isfinite(points)) or np.any(np.diff(points) <= 0):
                points = np.zeros(0)
            points = points.tolist()
        if not 2 <= len(points) <= most:
            raise ValueError("domain must be a range or a list of public numbers, sorted and distinct, from 2 to "
                             f'{most} of them with method="{self.method}"')
        return points

    def _rows(self, X):
        """Return the records of one owner as floats, or raise ValueError."""
        refuse_masked(X, "X")
        try:
            rows = np.asarray(X, float)
        except (TypeError, ValueError):
            rows = np.zeros((0, 0))
        if rows.ndim == 2 and rows.shape[1] == 1:
            rows = rows[:, 0]
        if rows.ndim != 1:
            raise ValueError("X must be numbers, one for each record, in one column")
        if np.isnan(rows).any():
            if not self._is_strict():
                raise ValueError("X must not have missing values: leave these records out, or put a number in")
            rows = np.where(np.isnan(rows), -np.inf, rows)
        return rows


class _Played:
    """An owner's estimator that `fit` plays: it has paid already."""

    def __init__(self, estimator, plan, source):
        self._estimator, self._plan = estimator, plan
        self.random_state = int.from_bytes(source.key_for_workers(), "little")

    def _planned(self, n_owners):
        return self._plan

    def _rows(self, X):
        return X

    def _pay(self):
        pass
