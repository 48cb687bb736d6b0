"""dpestim: differentially private estimators with scikit-learn's API and typed kernels underneath.

    local            local differential privacy: frequencies of categorical columns
    postprocessing   pure functions of estimates, which cost no privacy
    privacy          guarantees, neighbouring relations, exact rounding
    datasets         real data to try it on
    testing          checks that any mechanism can be put through, yours included

Layers, of which each imports only those below it: local -> testing, postprocessing -> privacy, base, rng, parallel,
datasets -> _core (kernels that know numbers and bits, no epsilon).
"""

from dpestim._version import __version__

__all__ = ["__version__"]
