"""Central differential privacy: mechanisms for single answers: noise, choices, thresholds, functions of rows.

    base.py      `CentralMechanism`: budget, whom it protects, the ledger
    model.py     what models (linear_model, preprocessing, ...) share: `dpestim.models`, for whoever holds the rows
    exact_bernoulli.py    uniform reals and probabilities, known by as many digits as a question needs
    additive     noise on the answers of queries: Laplace, Gaussian, discrete ones, staircase, snapping
    selection    choosing: exponential, noisy maximum, permute-and-flip, top-k, sparse vector
    stability    noise as these data need it: propose-test-release, smooth sensitivity, sample-and-aggregate

A mechanism is told the *sensitivity*: how far apart the answers of two neighbouring data sets can be. Nothing is ever
learned from the data, and there is no default that would protect. A random float never decides.

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.central.additive.discrete_gaussian import DiscreteGaussianMechanism
    from dpestim.central.additive.discrete_laplace_mechanism import DiscreteLaplaceMechanism
    from dpestim.central.additive.gaussian_mechanism import GaussianMechanism
    from dpestim.central.additive.laplace import LaplaceMechanism
    from dpestim.central.additive.snapping import SnappingMechanism
    from dpestim.central.additive.staircase import StaircaseMechanism
    from dpestim.central.selection.base2 import Base2ExponentialMechanism
    from dpestim.central.selection.exponential import ExponentialMechanism
    from dpestim.central.selection.noisy_max import ReportNoisyMax
    from dpestim.central.selection.permute_and_flip import PermuteAndFlip
    from dpestim.central.selection.sparse_vector import SparseVector
    from dpestim.central.selection.top_k import TopK
    from dpestim.central.stability.propose_test_release import ProposeTestRelease
    from dpestim.central.stability.sample_and_aggregate import SampleAndAggregate
    from dpestim.central.stability.smooth_sensitivity import SmoothSensitivity
    from dpestim.central.stability.stable_release import StableRelease

__getattr__, __dir__ = lazy.attach(__name__, {
    "additive.discrete_gaussian": "DiscreteGaussianMechanism",
    "additive.discrete_laplace_mechanism": "DiscreteLaplaceMechanism",
    "additive.gaussian_mechanism": "GaussianMechanism",
    "additive.laplace": "LaplaceMechanism",
    "additive.snapping": "SnappingMechanism",
    "additive.staircase": "StaircaseMechanism",
    "selection.base2": "Base2ExponentialMechanism",
    "selection.exponential": "ExponentialMechanism",
    "selection.noisy_max": "ReportNoisyMax",
    "selection.permute_and_flip": "PermuteAndFlip",
    "selection.sparse_vector": "SparseVector",
    "selection.top_k": "TopK",
    "stability.propose_test_release": "ProposeTestRelease",
    "stability.sample_and_aggregate": "SampleAndAggregate",
    "stability.smooth_sensitivity": "SmoothSensitivity",
    "stability.stable_release": "StableRelease",
})

__all__ = [
    "Base2ExponentialMechanism",
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "ExponentialMechanism",
    "GaussianMechanism",
    "LaplaceMechanism",
    "PermuteAndFlip",
    "ProposeTestRelease",
    "ReportNoisyMax",
    "SampleAndAggregate",
    "SmoothSensitivity",
    "SnappingMechanism",
    "SparseVector",
    "StableRelease",
    "StaircaseMechanism",
    "TopK",
]
