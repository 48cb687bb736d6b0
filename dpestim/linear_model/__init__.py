"""Linear models under central differential privacy: whoever calls `fit` holds the data and is trusted with them.

How data flows::

    X, y --declared classes and norm--> clipped rows --perturb, minimise--> w --grid, integer noise--> coef_
          (_logistic)                   (_solver, _core/logistic)            (_release, noise)

* `_logistic.py`    the face: parameters, what is checked before anything is charged, scikit-learn's methods
* `_objective.py`   the privacy calculus: from (epsilon, delta, C) to the scale of the noise, rounded against us
* `_solver.py`      the minimiser with a certificate of its distance to the exact one
* `_release.py`     one binary problem from noise to integers on a public grid
* `_logistic.md`    the proof of all of it, in that order

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from dpestim.linear_model._logistic import DPLogisticRegression

__all__ = ["DPLogisticRegression"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Models, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("classes are to be predicted, and whoever fits may hold the rows", "DPLogisticRegression",
     "only coefficients are published; scikit-learn's methods, and a certificate for the minimiser"),
)
