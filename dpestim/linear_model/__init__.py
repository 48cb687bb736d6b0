"""Linear models under central differential privacy: logistic, linear and Poisson regression, support vectors.

How data flows::

    X, y --declared classes and norm--> clipped rows --perturb, minimise--> w --grid, integer noise--> coef_
          (logistic)               (solver, softmax, _core/logistic, softmax)    (release, exact_reals)

* `base.py`        what linear models share: predictions clip rows as fits do; the one fit, for any loss of a margin
* `svc.py`         support vectors, and
* `poisson.py`     Poisson regression: estimators, and their proof `margins.md`
* `losses.py`      what proof and solver need to know of a loss
* `logistic.py`    logistic regression: its laws, the count of the classes, probabilities
* `objective.py`   the privacy calculus: from (epsilon, delta, C) to the scale of the noise, rounded against us
* `shapes.py`      what the calculus knows of a loss: lengths of gradients, cost of the Hessian
* `base_rate.py`   a private count of the classes, from which margins start
* `softmax.py`     the loss of several classes
* `solver.py`      the minimiser with a certificate of its distance to the exact one
* `release.py`     one problem from noise to integers on a public grid
* `logistic.md`    the proof of all of it, in that order
* `gradient.py`    another way: descent by noisy sums of gradients, which are integers (`gradient.md`)
* `federated.py`   several owners who answer with such sums (`federated.md`), and `owners.py` what they agree on

Regression needs moments, and no search::

    X, y --public bounds--> integers --sums of products--> Summary --noise, once--> moments --filter--> coef_
  (statistics.row_moments)             (merge)       (statistics.moment_noise)       (shrinkage)

* `linear.py`, `moment_model.py`  the estimators, and what they share: verbs, parameters, units
* `functional.py`                  the functional mechanism, for both losses
* `adassp.py`                      the published ridge against the worst case, from a noisy smallest eigenvalue
* `tukey.py`                       no moments, and no bounds: a deep point among models of blocks of rows

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.linear_model.federated import DPFederatedLinearModel
    from dpestim.linear_model.linear import DPLinearRegression, DPRidge
    from dpestim.linear_model.logistic import DPLogisticRegression
    from dpestim.linear_model.poisson import DPPoissonRegressor
    from dpestim.linear_model.svc import DPLinearSVC
    from dpestim.linear_model.tukey import DPTukeyRegression

__getattr__, __dir__ = lazy.attach(__name__, {
    "federated": "DPFederatedLinearModel",
    "linear": "DPLinearRegression DPRidge",
    "logistic": "DPLogisticRegression",
    "poisson": "DPPoissonRegressor",
    "svc": "DPLinearSVC",
    "tukey": "DPTukeyRegression",
})

__all__ = [
    "DPFederatedLinearModel",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPRidge",
    "DPTukeyRegression",
]

#: What its estimators are for, in the tables of the documentation.
TASK = "Models, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("classes are to be predicted, and effects are linear", "DPLogisticRegression",
     "only coefficients are published; a certificate covers the minimiser"),
    ("several data owners want one model, and no owner shows rows", "DPFederatedLinearModel",
     "owners send noisy gradients, with an epsilon for each owner; the cost in accuracy is predicted beforehand"),
    ("a number is to be predicted, or coefficients with standard errors", "DPLinearRegression",
     "one pass, summaries that merge, no constant to tune"),
    ("a number is to be predicted from many rows, and bounds are unknown", "DPTukeyRegression",
     "no bounds: it asks whether models of blocks of rows agree"),
    ("counts with a public bound are to be predicted", "DPPoissonRegressor",
     "a logarithmic link; no prediction exceeds the bound"),
)
