"""Central differential privacy: whoever holds the data answers queries, and noise is added to the answers.

How an answer flows::

    answers --answers.py--> integers of a public grid --+ NoiseLaw.draw--> integers --clipped--> release
              (shape, dtype, bounds)   (mechanism.py)     (law.py, _core/noise)

* `mechanism.py`  `CentralMechanism`: parameters, what is checked before anything is charged, `release`, `transform`
* `answers.py`    numbers, arrays and frames of answers, and the way back
* `law.py`        `NoiseLaw`: exact integers, a law and its guarantee as data; its fields are its identity
* `digits.py`     uniform reals and probabilities, known by as many digits as a question needs
* `normal.py`     deltas of Gaussian noise as upper bounds, and the least noise for a delta

One idea a file, law and face, with its proof beside it: discrete_laplace, laplace, gaussian, discrete_gaussian,
staircase, snapping.

A mechanism is told the *sensitivity*: how far apart the answers of two neighbouring data sets can be. Nothing is ever
learned from the data, and there is no default that would protect. Real answers are rounded to a grid whose step is a
power of two, and the rounding is part of the sensitivity; then noise is an integer with an exact law, so that no low
bit of a float tells what was added. With `bounds`, a public range, answers and results are clipped to it.

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from dpestim.central.discrete_gaussian import DiscreteGaussianMechanism
from dpestim.central.discrete_laplace import DiscreteLaplaceMechanism
from dpestim.central.gaussian import GaussianMechanism
from dpestim.central.laplace import LaplaceMechanism
from dpestim.central.snapping import SnappingMechanism
from dpestim.central.staircase import StaircaseMechanism

__all__ = [
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "GaussianMechanism",
    "LaplaceMechanism",
    "SnappingMechanism",
    "StaircaseMechanism",
]

#: What its estimators are for, in the tables of the documentation.
TASK = "Noise on query answers, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("an answer is a count", "DiscreteLaplaceMechanism", "it stays an integer, and its law is exact as it stands"),
    ("answers are real numbers", "LaplaceMechanism", "no delta; the sum of all changes is what counts"),
    ("one person changes many answers a little", "GaussianMechanism",
     "noise grows with the Euclidean norm of the changes, for a small delta"),
    ("there is one answer, and epsilon is above 3", "StaircaseMechanism", "the least mean absolute noise"),
)
