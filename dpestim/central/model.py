"""What models of the central model share: the caller of `fit` holds the rows."""

from dpestim.models import PrivateClassifier, PrivateModel, PrivateRegressor


class CentralModel(PrivateModel):
    """Base of estimators that learn from rows which whoever calls `fit` holds, and publish what they learned."""


class CentralClassifier(PrivateClassifier, CentralModel):
    """Base of models that tell classes; a sub-class has `decision_function`, or its own `_decide`."""


class CentralRegressor(PrivateRegressor, CentralModel):
    """Base of models that tell numbers; a sub-class has `predict`."""
