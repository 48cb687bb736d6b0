"""The mechanism that suits: chosen from epsilon, the domain and what is to be saved, never from data."""

import math
from functools import lru_cache

import numpy as np

from dpestim.local.categories.choice import candidates, frequency_estimators, spread_of
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.costs import cost_of

#: What is saved: of a law, its root mean square error for n users and its costs, the number to be small.
OBJECTIVES = {
    "variance": lambda rmse, cost, n: rmse,
    "bits": lambda rmse, cost, n: cost.bits,
    "time": lambda rmse, cost, n: cost.server_s + n * cost.client_us / 1e6,
}
#: Users there are where nobody says how many, and errors that are equal but for rounding.
MANY, EQUAL = 1_000_000, 1e-6


@lru_cache(maxsize=256)
def _choice(epsilon, n_categories, objective, tolerance, n):
    """Return (name of the mechanism, law, why) for one column."""
    # (what has more verbs than these is a way to report, too, and not only a law)
    simple = tuple(name for name, cls in frequency_estimators().items() if cls.__bases__ == (FrequencyEstimator,))
    laws, refused = candidates(epsilon, n_categories, simple)
    if not laws:
        raise ValueError("epsilon must suit at least one mechanism, and none accepts it: "
                         f"{next(iter(refused.values()))}")
    errors = {name: spread_of(law).rmse(n) for name, law in laws.items()}
    costs = {name: cost_of(law, n, n_categories) for name, law in laws.items()}
    allowed = EQUAL if objective == "variance" else max(tolerance, EQUAL)
    near = [name for name in laws if errors[name] <= (1 + allowed) * min(errors.values())]

    def order(name):
        saved = 0.0 if objective == "variance" else OBJECTIVES[objective](errors[name], costs[name], n)
        return saved, costs[name].bits, OBJECTIVES["time"](errors[name], costs[name], n), name

    name = min(near, key=order)
    saving = {"variance": "the least error", "bits": "the shortest reports", "time": "the least work"}[objective]
    within = "" if objective == "variance" else (
        f" of the {len(near)} mechanisms whose error is at most {100 * tolerance:g} % above the least")
    return name, laws[name], (
        f"{name} has {saving}{within} for {n_categories:,} categories and epsilon = {float(epsilon):.4g}: a root mean "
        f"square error of {math.sqrt(n) * errors[name]:.4g} over the square root of the number of users, "
        f"and {costs[name].bits:,.4g} bits a user"
    )


def best_law(epsilon, n_categories):
    """Return the law of the least error for a share of epsilon, of mechanisms with their defaults."""
    return _choice(epsilon, n_categories, "variance", 0.0, MANY)[1]


class AdaptiveFrequencyEstimator(FrequencyEstimator):
    """Estimate frequencies by a mechanism that is chosen from epsilon and the declared categories.

    The estimator chooses another estimator with its defaults for each column, and then has the same reports under the
    same seed, the same estimates and the same guarantee. The choice depends on public facts only: the column's share of
    epsilon, the number of its categories, and the parameters below. Take it where epsilon or the domain is unknown when
    the code is written, as in a search over epsilon; `dpestim.local.plan` lists all candidates. Mechanisms with a
    relaxed guarantee and longitudinal mechanisms are not candidates.

    Reports carry numbers only, so clients and servers must choose alike: give them the same parameters, and the same
    version of this package, as another one may know more mechanisms. Otherwise read `chosen_` once, and use that class.

    **Privacy.** epsilon-local differential privacy for a row, exact: that of the chosen law, which no data have a part
    in choosing (proof in ``adaptive.md``), neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Unbiased; the variance is that of the chosen law, and on average over uniform data the least there is,
    or with another objective at most (1 + tolerance)^2 times that.

    **Complexity.** That of the chosen mechanism; choosing takes a few milliseconds, once for each size of a domain.

    {parameters}
    References
    ----------
    T. Wang, J. Blocki, N. Li, S. Jha, "Locally differentially private protocols for frequency estimation", USENIX
    Security 2017, section 5, whose rule d < 3 e^epsilon + 2 chooses between two mechanisms; here the exact variances
    of all are compared.

    Examples
    --------
    >>> from dpestim.local import AdaptiveFrequencyEstimator
    >>> AdaptiveFrequencyEstimator(4.0, categories=[range(3), range(1000)]).chosen_
    ['GRRFrequencyEstimator', 'SSFrequencyEstimator']
    >>> AdaptiveFrequencyEstimator(1.0, categories=[range(1000)], objective="bits").chosen_
    ['PGRFrequencyEstimator']
    """

    _more_parameters = """
    objective : {"variance", "bits", "time"}, default="variance"
        What is made least: the mean square error over all categories where they are held equally often; or, among the
        mechanisms with little more error than that, the bits of a report, or the work of all clients and the server
        together, as it is estimated (`dpestim.local.plan` says how).
    tolerance : float, default=0.1
        How much more root mean square error that may cost, as a share of the least. "variance" does not use it.
    n_users : int, default=None
        How many users are expected, from 1 to 2^53, which is public; it decides close cases only. None: 1,000,000.
    """
    _more_attributes = """
    chosen_ : list of str
        The name of the chosen mechanism's class for each column; known before any data where the domain is declared.
    reason_ : list of str
        Why, in a sentence for each column.
    """
    _chooses = frozenset({"objective", "tolerance", "n_users"})
    _test_values = {"objective": ["variance", "bits"], "tolerance": [0.0], "n_users": [1]}
    #: What the frozen law was chosen for, where there is one.
    _asked = None

    def __init__(
        self,
        epsilon=1.0,
        *,
        objective="variance",
        tolerance=0.1,
        n_users=None,
        categories="auto",
        postprocess=None,
        sparse_output=False,
        ledger=None,
        random_state=None,
        n_jobs=None,
    ):
        super().__init__(
            epsilon,
            categories=categories,
            postprocess=postprocess,
            sparse_output=sparse_output,
            ledger=ledger,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.objective = objective
        self.tolerance = tolerance
        self.n_users = n_users

    @property
    def chosen_(self):
        """The names of the chosen mechanisms' classes, one for each column."""
        return [name for name, _, _ in self._choices()]

    @property
    def reason_(self):
        """Why each column has its mechanism, a sentence each."""
        return [reason for _, _, reason in self._choices()]

    # ---------------------------------------------------------------- inside

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with; in the last every parameter matters."""
        return [
            {"epsilon": 1.0, "categories": [list(range(9))]},
            {"epsilon": 0.5, "categories": [["a", "b", "c"], [False, True]], "objective": "bits"},
            {"epsilon": 0.5, "categories": [list(range(9))], "objective": "time", "tolerance": 0.3, "n_users": 10**6},
        ]

    def _law(self, encoder, column, n_columns):
        return _choice(self._share(n_columns), encoder.n_categories, *self._settings())[1]

    def _settings(self):
        """Return what decides besides epsilon and the domain, or raise ValueError."""
        if not isinstance(self.objective, str) or self.objective not in OBJECTIVES:
            raise ValueError(f"objective must be one of {list(OBJECTIVES)}, got {self.objective!r}")
        number = isinstance(self.tolerance, int | float | np.number) and not isinstance(self.tolerance, bool)
        if not number or not 0 <= self.tolerance < math.inf:
            raise ValueError(f"tolerance must be a finite number of at least 0, got {self.tolerance!r}")
        n = MANY if self.n_users is None else self.n_users
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= 1 << 53:
            raise ValueError(f"n_users must be None or an integer from 1 to 2**53, got {n!r}")
        return self.objective, float(self.tolerance), int(n)

    def _choices(self):
        """Return the choices that led to the laws in use."""
        columns = self._columns_now()
        asked = self._asked if self._columns is not None and self._asked else self._settings()
        return [_choice(law.epsilon, law.n_categories, *asked) for law in columns.laws]

    def _freeze(self, columns, names):
        if self._columns is None:
            self._asked = self._settings()
        super()._freeze(columns, names)

    def _thaw(self):
        super()._thaw()
        vars(self).pop("_asked", None)
