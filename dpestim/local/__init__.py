"""Local differential privacy: every user's device randomises, and nobody else needs to be trusted.

How data flows::

    X --encode--> codes --privatize--> reports --aggregate--> counts --release--> frequencies_
       (_encode)   (randomizer + words from dpestim.rng)  (merge adds)   (estimate, postprocess)

* `_encode.py`       categories to codes; errors that name a column, never a value
* `_randomizer.py`   `Randomizer`: one column's exact law, made from (epsilon, number of categories)
* `_plan.py`         `Plan`: what the first data freezes (encoders, randomizers, report layout); the walk over blocks
* `_base.py`         `FrequencyEstimator`: all verbs and all of scikit-learn's face, once
* `_grr.py` ...      one idea a file: its randomizer and its face; the proof beside it (`_grr.md`); the kernel of that
                     name in `dpestim/_core`

Numbers take the same road, in two objects, so that the noisy numbers can also go through a pipeline::

    X --clip, fixed point--> codes --privatize--> reports --count--> counts --release--> mean_, distribution_
       (NumericTransformer: _numeric, _pm, _sdpm)            (Collector: _collect, _mean, _distribution)

* `_numeric.py`      `NumericTransformer`: bounds, the walk over blocks, decoding, scikit-learn's face
* `_pm.py` `_sdpm.py`  the piecewise mechanism, and its sensitivity-aware form (`_inversion.py`: its unbiased numbers)
* `_collect.py`      `Collector`: integer counts of codes, and the three verbs, for any transformer
* `_em.py`           expectation maximisation on piecewise-constant and on dense channels

A randomizer gets its words from a `dpestim.rng.Words`, by stage: ``words.dense(Stage.RESPONSE, k)`` for the k words of
every record, ``words.sparse(Stage.RARE, d, places)`` for words that few records need (ties in unary encoding). Every
place has a counter of its own, so rare words are reproducible and cannot run out; this is why `privatize` takes `words`
as an object and not as one array.

`__all__` is the registry: a class listed here is exported, checked, benchmarked and documented with no further line.
"""

from dpestim.local._binary import BinaryFrequencyEstimator
from dpestim.local._distribution import DistributionEstimator
from dpestim.local._grr import GRRFrequencyEstimator
from dpestim.local._hr import HRFrequencyEstimator
from dpestim.local._mean import MeanEstimator
from dpestim.local._olh import BLHFrequencyEstimator, OLHFrequencyEstimator
from dpestim.local._pm import PMTransformer
from dpestim.local._sdpm import SDPMTransformer
from dpestim.local._ss import SSFrequencyEstimator
from dpestim.local._unary import OUEFrequencyEstimator, SUEFrequencyEstimator

__all__ = [
    "BLHFrequencyEstimator",
    "BinaryFrequencyEstimator",
    "DistributionEstimator",
    "GRRFrequencyEstimator",
    "HRFrequencyEstimator",
    "MeanEstimator",
    "OLHFrequencyEstimator",
    "OUEFrequencyEstimator",
    "PMTransformer",
    "SDPMTransformer",
    "SSFrequencyEstimator",
    "SUEFrequencyEstimator",
]
