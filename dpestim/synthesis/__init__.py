"""Synthetic data under central differential privacy: rows that are drawn from a private model of a table.

How data flows::

    X --declared categories, bounds, bins--> codes --counts--> the exponential mechanism chooses a table
             (_columns)                                        noise on it --> model --> rows, answers
                                                               (again, while there is budget)

* `base.py`                    `Synthesizer`: parameters, the loop, `sample`, `marginal`, `workload_error`
* `columns.py`                 columns as codes and back: categories, and numbers in bins; frames in, frames out
* `noise.py`                   discrete Gaussian noise of a given width
* `marginals.py`               `MarginalSynthesizer`: many columns, rounds by a concentrated budget
* `multiplicative_weights.py`  `MultiplicativeWeights`: few columns, pure epsilon

What stands after a choice and a measurement is a function of released numbers, which local tables share: it is in
`dpestim.postprocessing` (`junction`, `entropy`). `__all__` is the registry: a class listed here is exported, checked
and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.synthesis.marginals import MarginalSynthesizer
    from dpestim.synthesis.multiplicative_weights import MultiplicativeWeights

__getattr__, __dir__ = lazy.attach(__name__, {
    "marginals": "MarginalSynthesizer",
    "multiplicative_weights": "MultiplicativeWeights",
})

__all__ = ["MarginalSynthesizer", "MultiplicativeWeights"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Synthetic data, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("rows are to be published that resemble the data", "MarginalSynthesizer", "any number of columns, small delta"),
    ("few columns are to be published with pure epsilon", "MultiplicativeWeights", "one table of all columns"),
)
