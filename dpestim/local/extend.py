"""What a mechanism of your own is made from: see CONTRIBUTING.md, and `dpestim.testing.check_mechanism` to try it."""

from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.categories.law import CategoricalRandomizer
from dpestim.local.categories.relaxed import Relaxed
from dpestim.local.law import ALL, Promise, Randomizer
from dpestim.local.numbers.law import NumericRandomizer, WindowRandomizer
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.local.reports import CodeReports, FieldReports, PackedBits
from dpestim.rng import Stage

__all__ = [
    "ALL",
    "CategoricalRandomizer",
    "CodeReports",
    "FieldReports",
    "FrequencyEstimator",
    "NumericRandomizer",
    "NumericTransformer",
    "PackedBits",
    "Promise",
    "Randomizer",
    "Relaxed",
    "Stage",
    "WindowRandomizer",
]
