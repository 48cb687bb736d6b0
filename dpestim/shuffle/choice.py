"""How far off each local law is behind a shuffler, at the local epsilon that the shuffle allows it: public numbers."""

import warnings
from functools import lru_cache
from typing import NamedTuple

from dpestim.local.categories.choice import candidates, frequency_estimators, spread_of
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.shuffle.amplification import largest_local
from dpestim.shuffle.transport.uniform import FOR_MESSAGES

#: By how much more error than that of direct responses a warning is worth it.
WORSE = 1.5
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
        names = [name for name, cls in frequency_estimators().items() if cls.__bases__ == (FrequencyEstimator,)]
    found = (behind(name, n_categories, honest, n_users, epsilon, delta, known) for name in names)
    return sorted((one for one in found if one), key=lambda one: (one.rmse, one.law.report_bits, one.name))


def chosen(estimator, n_categories, *setting):
    """Return the estimator of the short list with the least error behind a shuffler, with the parameters of another."""
    name = options(n_categories, *setting, names=SHORT_LIST)[0].name
    names = ("epsilon", "categories", "postprocess", "sparse_output", "ledger", "random_state", "n_jobs")
    return frequency_estimators()[name](**{own: getattr(estimator, own) for own in names})


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
        warnings.warn(f"{name} has an error of about {n * own:,.0f} users in each category behind this shuffler, and "
                      f"GRRFrequencyEstimator of {n * direct.rmse:,.0f}. Take GRRFrequencyEstimator, or "
                      "ShuffledHistogram, which sends several messages", stacklevel=3)
