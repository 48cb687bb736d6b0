"""Preprocessing under central differential privacy: scalers, imputers, encoders, bins.

How data flows::

    X --declared bounds or categories--> integers --sums, ranks, counts--> noise --> what is kept
                        (statistics.summary)        (statistics, central)            mean_, quantiles_, categories_ ...
    X --clipped, mapped by what is kept--> the next step, which must be private too

* `base.py`      what all share: parameters, reading, bounds that are declared or found; `names.py` feature names
* `scalers.py`   `DPStandardScaler`, `DPMinMaxScaler`
* `quantile.py`  `DPQuantileTransformer`
* `imputer.py`   `DPSimpleImputer`, of numbers and of categories
* `bins.py`      `DPKBinsDiscretizer`
* `onehot.py`    `DPOneHotEncoder`, for categories that are declared or privately selected
* `domain.py`    `DomainEncoder`: all columns of a declared table, for linear models; it costs nothing

Beside each stands its proof. Rows that were transformed are as private as they were before: not at all. A scaler clips
to what was declared, so that the norm of its rows is public (`norm_bound`): the `data_norm` of the model that follows.

Rows go in dense. `DPOneHotEncoder` and `DPKBinsDiscretizer` can return sparse ones, which linear models that perturb an
objective take as they are; feature selection, naive Bayes and regression by moments take dense rows only.

``summarize``, ``merge`` and ``release`` do what `fit` does in one call (`dpestim.statistics.one_pass`).

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.preprocessing.bins import DPKBinsDiscretizer
    from dpestim.preprocessing.domain import DomainEncoder
    from dpestim.preprocessing.imputer import DPSimpleImputer
    from dpestim.preprocessing.norms import norm_bound
    from dpestim.preprocessing.onehot import DPOneHotEncoder
    from dpestim.preprocessing.quantile import DPQuantileTransformer
    from dpestim.preprocessing.scalers import DPMinMaxScaler, DPStandardScaler

__getattr__, __dir__ = lazy.attach(__name__, {
    "bins": "DPKBinsDiscretizer",
    "domain": "DomainEncoder",
    "imputer": "DPSimpleImputer",
    "norms": "norm_bound",
    "onehot": "DPOneHotEncoder",
    "quantile": "DPQuantileTransformer",
    "scalers": "DPMinMaxScaler DPStandardScaler",
})

__all__ = [
    "DPKBinsDiscretizer",
    "DPMinMaxScaler",
    "DPOneHotEncoder",
    "DPQuantileTransformer",
    "DPSimpleImputer",
    "DPStandardScaler",
    "DomainEncoder",
    "norm_bound",
]

#: What its estimators are for, in the tables of the documentation.
TASK = "Preprocessing, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("values are missing", "DPSimpleImputer",
     "noisy mean, median or most common category of the values that are present"),
    ("columns are categories", "DPOneHotEncoder",
     "declared categories cost nothing; undeclared ones are selected privately, with a delta"),
    ("numbers go into a linear model", "DPMinMaxScaler",
     "rows fill the norm that noise is scaled to; with quantiles=None it uses the bounds alone and costs nothing"),
    ("numbers have heavy tails", "DPQuantileTransformer", "columns become uniform or normal"),
    ("numbers are to have mean 0 and standard deviation 1", "DPStandardScaler", "two noisy numbers a column"),
    ("a model takes categories only, or effects are nonlinear", "DPKBinsDiscretizer",
     "bins of equal width or equal counts"),
)
