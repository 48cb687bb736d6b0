"""How accurate a program will be, before it is run: bounds of the errors of what it releases.

    an estimator -- readers.py --> Error, of independent noises of known laws, and rounding
                                     | + - * [] sum_of max_of norm   (error.py: which noise is in what)
                                     v
                    bound, quantile  (sums.py: convolution, else concentration; joint.py: several numbers at once)

* `of`          the error of a statistic of `dpestim.statistics` or a mechanism of `dpestim.central`
* `Error`       adds up, is subtracted and scaled as the outputs of a program are; `bound` and `quantile`
* `budget_for`  the least epsilon with which errors are small enough

    numbers    the error of one number: a linear function of noises
    functions  errors that are not linear in noise: ratios, covariances, roots, ranks
    tails      laws as floats
    accuracy.md  the proof

No data is read and nothing is charged. The idea is DPella's (Lobo-Vesga, Russo, Gaboardi, "A programming framework for
differential privacy with accuracy concentration bounds", IEEE S&P 2020).
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.accuracy.budget import budget_for
    from dpestim.accuracy.error import Error, at_most, max_of, norm, sum_of
    from dpestim.accuracy.readers import of

__getattr__, __dir__ = lazy.attach(__name__, {
    "budget": "budget_for",
    "error": "Error at_most max_of norm sum_of",
    "readers": "of",
})

__all__ = ["Error", "at_most", "budget_for", "max_of", "norm", "of", "sum_of"]
