"""What a mechanism of your own is made from: see CONTRIBUTING.md, and `dpestim.testing.check_mechanism` to try it."""

from dpestim._docs import document
from dpestim.local._base import FrequencyEstimator
from dpestim.local._randomizer import Randomizer
from dpestim.rng import Stage

__all__ = ["FrequencyEstimator", "Randomizer", "Stage", "document"]
