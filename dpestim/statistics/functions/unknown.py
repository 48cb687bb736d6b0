"""Categories that nobody declared."""

from dpestim.statistics.functions.making import function_of
from dpestim.statistics.unknown import UnknownCategories

unknown_categories = function_of(
    __name__, "unknown_categories", UnknownCategories,
    "Return the categories with enough rows, and how many they have.",
    '>>> from dpestim.statistics import unknown_categories\n>>> x = ["tea"] * 90 + ["a secret"]\n'
    ">>> unknown_categories(x, epsilon=1.0, delta=1e-6, random_state=1).keys\n(['tea'],)")
