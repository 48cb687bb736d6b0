"""Which mechanisms of categories there are to choose from, and how far off each of them is, from public facts only."""

from functools import lru_cache
from typing import NamedTuple

from dpestim.base import all_estimators
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.costs import Spread

#: The most categories whose frequencies are all handed to a law to ask for its errors.
_MOST_FREQUENCIES = 1 << 22
#: Users that are many: what is left of a variance then does not go away with more of them.
_MANY = 1 << 40


@lru_cache(maxsize=256)
def spread_of(law):
    """Return the `Spread` of a law whose values are held equally often, by its own `variance`, or raise ValueError."""
    if not law.varies_by_own_share and law.n_categories > _MOST_FREQUENCIES:
        raise ValueError(f"its errors are not planned for more than {_MOST_FREQUENCIES:,} categories")
    parts = []
    for once, left in zip(law.even_variance(1), law.even_variance(_MANY)):
        floor = (left * _MANY - once) / (_MANY - 1)
        floor = floor if floor * _MANY > 1e-3 * once else 0.0  # (or it is rounding)
        parts += [floor, max(once - floor, 0.0)]
    return Spread(*map(float, parts))


def frequency_estimators():
    """Return the mechanisms of the registry that keep epsilon for any two values, by name: a dict of classes."""
    return {
        cls.__name__: cls for _, cls in all_estimators(("local",), "categories")
        if issubclass(cls, FrequencyEstimator) and cls._randomizer is not None
        and getattr(cls._randomizer, "relaxation", None) is None
    }


class _Domain(NamedTuple):
    """What an estimator asks of a domain to say what its law is there."""

    categories: range
    name: str = "column 0"
    n_categories = property(lambda self: len(self.categories), doc="How many values there are.")


def _law_of(cls, epsilon, n_categories):
    """Return the law of a mechanism with its defaults, or raise ValueError where it has none for this setting."""
    most = cls._randomizer.largest_planned
    if not most:
        raise ValueError("it needs parameters of this mechanism, without which it is another mechanism")
    if n_categories > most:
        raise ValueError(f"its errors are not planned for more than {most:,} categories")
    law = cls(epsilon)._law(_Domain(range(n_categories)), 0, 1)
    if type(law) is not cls._randomizer:
        raise ValueError("it is another mechanism with these settings")
    if law.relaxation is not None or law.plain_epsilon > law.epsilon:
        raise ValueError("it does not keep epsilon for any two values")
    return law


@lru_cache(maxsize=256)
def candidates(epsilon, n_categories, names=None):
    """Return ({name: law} of the mechanisms there are for a setting, {name: why not} of the others).

    Of all in the registry, or of those in a tuple of names.
    """
    laws, refused = {}, {}
    for name, cls in frequency_estimators().items():
        if names is not None and name not in names:
            continue
        try:
            laws[name] = _law_of(cls, epsilon, n_categories)
            spread_of(laws[name])
        except ValueError as error:
            laws.pop(name, None)
            refused[name] = str(error)
    return laws, refused
