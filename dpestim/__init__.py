"""dpestim: differentially private estimators with scikit-learn's API and typed kernels underneath.

    local            local differential privacy: frequencies of categorical columns
    postprocessing   pure functions of estimates, which cost no privacy
    privacy          guarantees, neighbouring relations, exact rounding
    datasets         real data to try it on
    testing          checks that any mechanism can be put through, yours included

Layers, of which each imports only those below it: local -> testing, postprocessing -> privacy, base, rng, parallel,
datasets -> _core (kernels that know numbers and bits, no epsilon).
"""

import importlib

from dpestim._version import __version__

_SUBPACKAGES = ("datasets", "local", "postprocessing", "privacy", "testing")

__all__ = ["__version__", *_SUBPACKAGES]


def __getattr__(name):
    """Import a sub-package when it is first asked for, so that `import dpestim` stays light."""
    if name in _SUBPACKAGES:
        return importlib.import_module(f"dpestim.{name}")
    raise AttributeError(f"module 'dpestim' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_SUBPACKAGES})
