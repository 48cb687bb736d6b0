"""What every estimator of dpestim shares: an honest pickle, a seam for the ledger, a registry."""

import importlib
import inspect

from sklearn.base import BaseEstimator

#: Raised by one whenever the state of a pickled estimator changes its meaning.
PICKLE_FORMAT = 1
#: The sub-packages whose `__all__` is the registry, in the order of the documentation.
SUBPACKAGES = ("local",)


class PrivateEstimator(BaseEstimator):
    """Base of all estimators: parameters are only stored, state is versioned, budget is charged in one place."""

    def __getstate__(self):
        state = dict(super().__getstate__())
        state["_dpestim_format"] = PICKLE_FORMAT
        return state

    def __setstate__(self, state):
        state = dict(state)
        found = state.pop("_dpestim_format", None)
        if found != PICKLE_FORMAT:
            raise ValueError(
                f"this pickle of {type(self).__name__} has format {found}, and this version of dpestim reads "
                f"{PICKLE_FORMAT} only: fit again, or load it with the version that wrote it"
            )
        super().__setstate__(state)

    def _charge(self, guarantee, n_rows):
        """Charge a release to the ledger, where there is one; called after validation and before words are drawn."""
        if self.ledger is None:
            return
        if not callable(getattr(self.ledger, "charge", None)):
            raise ValueError("ledger must be None or have a method charge(guarantee, estimator=..., n_rows=...)")
        self.ledger.charge(guarantee, estimator=type(self).__name__, n_rows=n_rows)


def all_estimators():
    """Return the registry: (name, class) of every estimator in an `__all__` that brings `_test_params()`.

    Whatever is listed there is exported, tested, benchmarked and documented with no further line.
    """
    found = []
    for package in SUBPACKAGES:
        module = importlib.import_module(f"dpestim.{package}")
        for name in module.__all__:
            item = getattr(module, name)
            if inspect.isclass(item) and issubclass(item, BaseEstimator) and hasattr(item, "_test_params"):
                found.append((f"{package}.{name}", item))
    return found
