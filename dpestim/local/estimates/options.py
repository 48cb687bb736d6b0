"""What a plan chooses from: every mechanism that a setting allows, with its errors and what it costs."""

import inspect
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrik, ndtr

from dpestim.base import all_estimators
from dpestim.local.categories.choice import candidates, spread_of
from dpestim.local.costs import Cost, Spread, cost_of
from dpestim.local.numbers.transformer import NumericTransformer

#: Where more reports than this support a value, their number is as good as normal.
_MANY_REPORTS = 10_000


class PlanRow(NamedTuple):
    """One mechanism of a plan: its class's name, its errors, and what it costs."""

    mechanism: str
    rmse: float
    max_error: float
    bits: float
    client_us: float
    server_s: float
    memory_mb: float
    parameters: str = ""


class Option(NamedTuple):
    """A mechanism in a setting: its errors, its laws (those of a row), and the parameters that make it so."""

    spread: Spread
    laws: tuple
    n_estimates: int
    parameters: str = ""

    def row(self, name, n_users, z):
        """Return the `PlanRow` of so many users."""
        each = [cost_of(law, n_users, self.n_estimates) for law in self.laws]
        cost = Cost(*map(sum, zip(*each)))
        furthest = max(float(z) * self.spread.worst(n_users), max(_by_few(law, n_users, z) for law in self.laws))
        return PlanRow(name, self.spread.rmse(n_users), furthest, *cost, self.parameters)


def _by_few(law, n, z):
    """Return how far off a frequency is, at the level of z, where few reports support a value; 0 where many do.

    Their number is binomial, with a tail that is longer than the normal one.
    """
    pair = law.support_pair() if hasattr(law, "support_pair") else None
    if pair is None or np.ndim(pair[0]) or np.ndim(pair[1]):
        return 0.0
    p, q = map(float, pair)
    share = q + (p - q) / law.n_categories
    if n * share > _MANY_REPORTS:
        return 0.0
    return float(math.ceil(bdtrik(ndtr(float(z)), n, share)) / n - share) / (p - q)


def setting_of(n_categories, n_columns):
    """Return what says, for an epsilon, what there is to choose from: ({name: option}, {name: why not}).

    It is also told which names are asked for; None: all.
    """
    if n_columns is None:
        return lambda epsilon, names=None: of_categories(epsilon, n_categories, names)
    return lambda epsilon, names=None: of_numbers(epsilon, n_columns, names)


def of_categories(epsilon, n_categories, names):
    """Return ({name: option}, {name: why not}) of mechanisms of so many categories."""
    laws, refused = candidates(epsilon, n_categories, names)
    return {name: Option(spread_of(law), (law,), n_categories) for name, law in laws.items()}, refused


def of_numbers(epsilon, n_columns, names):
    """Return the same of transformers of so many columns of numbers."""
    options, refused = {}, {}
    for _, cls in all_estimators(("local",), "numbers"):
        law = getattr(cls, "_randomizer", None)
        if not (issubclass(cls, NumericTransformer) and "bounds" in inspect.signature(cls).parameters):
            continue
        if law.relaxation is not None or not law.is_unbiased or (names is not None and cls.__name__ not in names):
            continue
        found = _of_transformer(cls, epsilon, n_columns)
        (refused if isinstance(found, str) else options)[cls.__name__] = found
    return options, refused


@lru_cache(maxsize=1024)
def _of_transformer(cls, epsilon, n_columns):
    """Return the option of the best strategy of a transformer, or why it has none."""
    best, wrong = None, ""
    for strategy in cls._strategies if n_columns > 1 else ("split",):
        transformer = cls(epsilon, bounds=([0.0] * n_columns, [1.0] * n_columns), strategy=strategy)
        try:
            columns = transformer._columns_now()
            law, k = columns.laws[0], columns.n_sampled or n_columns
            by_row = hasattr(law, "sampled_variance")
            variance = law.sampled_variance(n_columns, k) if by_row else law.even_variance()
        except ValueError as error:
            wrong = wrong or str(error)
            continue
        if best is None or variance < best.spread.unit:
            parameters = "" if strategy == "split" else f'strategy="{strategy}"'
            spread = Spread(0.0, variance, 0.0, variance)
            best = Option(spread, (law,) * (k if by_row else 1), 1 if by_row else n_columns, parameters)
    return wrong if best is None else best
