"""How far off each local law is behind a shuffler, at the local epsilon that the shuffle allows it: public numbers."""

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from scipy.special import ndtri

from dpestim._tables import Table, frame_of, short
from dpestim.central.base import checked_delta
from dpestim.local.categories.choice import candidates, faces, spread_of
from dpestim.local.categories.face import FrequencyEstimator
from dpestim.privacy.exact import canonical_epsilon
from dpestim.privacy.outward import whole
from dpestim.shuffle.amplification import largest_local
from dpestim.shuffle.histograms.fakes import Fakes
from dpestim.shuffle.transport.uniform import FOR_MESSAGES

#: By how much more error than that of direct responses a warning is worth it.
WORSE = 1.5
#: More categories than this are not planned.
_MOST_CATEGORIES = 1 << 16
#: One of these was best in all settings that were tried: 3 to 5,000 categories, 1,000 to 10^6 users, epsilon .1 to 1.
SHORT_LIST = ("GRRFrequencyEstimator", "SSFrequencyEstimator", "OUEFrequencyEstimator")


class Behind(NamedTuple):
    """A mechanism behind a shuffler: its class's name, its local epsilon, its law there, and its error."""

    name: str
    local_epsilon: object
    law: object
    rmse: float


@lru_cache(maxsize=256)
def behind(name, n_categories, honest, n_users, epsilon, delta, known=True):
    """Return the `Behind` of a mechanism with its defaults, or None where it has no law for this setting.

    Parameters
    ----------
    name : str
        Of a class of frequency estimators.
    n_categories, honest, n_users : int
    epsilon, delta : Fraction
        What the messages together promise.
    known : bool
        Whether the bound knows the law, or its local epsilon alone.
    """
    laws = candidates(epsilon, n_categories, (name,))[0]
    if name not in laws:
        return None
    law = laws[name]
    local = largest_local(law if known else None, honest, epsilon, delta * FOR_MESSAGES)
    try:
        law = type(law).make(**{**law.arguments, "epsilon": local})
        return Behind(name, local, law, spread_of(law).rmse(n_users))
    except ValueError:  # (words cannot express it)
        return None


def options(n_categories, honest, n_users, epsilon, delta, known=True, names=None):
    """Return a `Behind` for each mechanism of categories, or for those of these names, the least error first."""
    if names is None:
        names = [name for name, cls in faces().items() if cls.__bases__ == (FrequencyEstimator,)]
    found = (behind(name, n_categories, honest, n_users, epsilon, delta, known) for name in names)
    return sorted((one for one in found if one), key=lambda one: (one.rmse, one.law.report_bits, one.name))


def chosen(estimator, n_categories, *setting):
    """Return the estimator of the short list with the least error behind a shuffler, with the parameters of another."""
    name = options(n_categories, *setting, names=SHORT_LIST)[0].name
    names = ("epsilon", "categories", "postprocess", "sparse_output", "ledger", "random_state", "n_jobs")
    return faces()[name](**{own: getattr(estimator, own) for own in names})


def warn_if_far(server, columns, *setting):
    """Warn where the law of one column has far more error behind a shuffler than direct responses would have."""
    if not isinstance(server, FrequencyEstimator) or len(columns) != 1 or columns.inferred:
        return
    name, law = type(server).__name__, columns.laws[0]
    direct = behind("GRRFrequencyEstimator", law.n_categories, *setting)
    if direct is None:
        return
    n = setting[1]
    try:
        own = spread_of(law).rmse(n)
    except ValueError:  # (its errors are not planned)
        return
    if own > WORSE * direct.rmse:
        warnings.warn(f"{name} is off by about {n * own:,.0f} users in each category behind this shuffler, and "
                      f"GRRFrequencyEstimator by {n * direct.rmse:,.0f}. Take GRRFrequencyEstimator, or "
                      "ShuffledHistogram, which sends several messages", stacklevel=3)


@dataclass(frozen=True)
class ShufflePlan(Table):
    """What `plan` answers; ``str(plan)`` is a table.

    Attributes
    ----------
    n_users, n_categories : int
    epsilon, delta : float
        Of all messages together.
    probability : float
    rows : tuple of ShuffleRow
        One for each mechanism, the least error first: `mechanism` (the name of its class), `local_epsilon` (what a
        message keeps by itself), `rmse` and `max_error` (of frequencies), `messages` (of a user) and `bits` (of these
        together).
    """

    _most_lines = 1000
    n_users: int
    n_categories: int
    epsilon: float
    delta: float
    probability: float
    rows: tuple

    @property
    def best(self):
        """The row of the least error."""
        return self.rows[0]

    def to_frame(self):
        """Return the rows as a pandas frame."""
        return frame_of(self.rows, ShuffleRow._fields)

    def _head(self):
        return ShuffleRow._fields

    def _rows(self):
        return (map(short, row) for row in self.rows)



class ShuffleRow(NamedTuple):
    """One mechanism of a plan."""

    mechanism: str
    local_epsilon: float
    rmse: float
    max_error: float
    messages: float
    bits: float


def plan(*, n_users, n_categories, epsilon=1.0, delta=1e-6, colluding=0, probability=0.95):
    """Compare `ShuffledHistogram` and all local estimators behind `ShuffledEstimator`, before a survey is taken.

    Behind a shuffler each mechanism has another local epsilon, so that another one is best than in the local model:
    there direct responses (`GRRFrequencyEstimator`) nearly always are, of those that send one message.

    **Privacy.** A plan reads no data: it costs nothing.

    **Complexity.** 1 to 2 seconds for a new setting.

    Parameters
    ----------
    n_users : int
        From 1 to 2^53.
    n_categories : int
        From 2 to 65,536.
    epsilon : float, default=1.0
        Of the shuffled messages of one column, in (0, 80].
    delta : float, default=1e-6
        Above 0 and below 1.
    colluding : int, default=0
        How many users may tell the analyser what they sent.
    probability : float, default=0.95
        With at least this probability no category is further off than `max_error` (normal approximation).

    Returns
    -------
    ShufflePlan
        With `rows`, `best` and `to_frame`. Errors are those of exact variances, where all categories are held equally
        often.

    Raises
    ------
    ValueError
        For a parameter that does not fit.

    Examples
    --------
    >>> from dpestim.shuffle import plan
    >>> found = plan(n_users=50_000, n_categories=3)
    >>> found.best.mechanism, round(50_000 * found.best.rmse, 1)
    ('ShuffledHistogram', 6.5)
    """
    n, d = whole(n_users, "n_users"), whole(n_categories, "n_categories", 2)
    if n > 1 << 53 or d > _MOST_CATEGORIES:
        raise ValueError(f"n_users must be at most 2**53, and n_categories at most {_MOST_CATEGORIES:,}")
    honest = n - whole(colluding, "colluding", 0)
    if honest < 1:
        raise ValueError("colluding must be less than n_users")
    if isinstance(probability, bool) or not isinstance(probability, float) or not 0 < probability < 1:
        raise ValueError("probability must be a number above 0 and below 1")
    e, delta = canonical_epsilon(epsilon), checked_delta(delta)
    # the share of the law of one error that must lie within, where they all do with this probability (Sidak)
    z = -float(ndtri(-math.expm1(math.log(probability) / d) / 2))
    rows = [ShuffleRow(one.name, float(one.local_epsilon), one.rmse, z * spread_of(one.law).worst(n), 1.0,
                       float(one.law.report_bits)) for one in options(d, honest, n, e, delta)]
    try:
        law = Fakes.make(e, d, delta * FOR_MESSAGES, n, n - honest)
    except ValueError:  # (so few users would have to send too many fakes)
        law = None
    if law is not None:
        error = math.sqrt(float(law.variance(n)))
        rows.append(ShuffleRow("ShuffledHistogram", math.inf, error, z * error, 1 + law.n_fakes,
                               float(law.report_bits)))
    return ShufflePlan(n, d, float(e), float(delta), float(probability),
                       tuple(sorted(rows, key=lambda row: (row.rmse, row.bits))))
