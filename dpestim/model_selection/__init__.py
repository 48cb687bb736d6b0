"""Private search for parameters: one budget for all fits, the scores and the choice.

    PrivateSearchCV   trains candidates, scores them on rows set aside, and publishes only the one that was chosen

* `search.py`   the estimator: rehearsal before the charge, runs, what is published
* `plan.py`     from parameters alone: what the total is divided into, and who pays for the fits inside
* `runs.py`     how often to run: random numbers with which the best of many costs little more than one
* `scores.py`   rows set aside, and scores that are sums of bounded integers
* `search.md`   the proof of all of it
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.model_selection.search import PrivateSearchCV

__getattr__, __dir__ = lazy.attach(__name__, {
    "search": "PrivateSearchCV",
})

__all__ = ["PrivateSearchCV"]
