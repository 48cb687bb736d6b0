"""scikit-learn's own checks on every estimator, with a few reasoned expected failures and no others."""

import functools
import inspect
import re

import pytest
import sklearn
from sklearn.base import BaseEstimator, is_clusterer
from sklearn.utils.estimator_checks import check_estimator

from dpestim.base import all_estimators
from dpestim.central.base import CentralMechanism
from dpestim.central.model import CentralModel
from dpestim.docstrings import Documented, filling
from dpestim.linear_model import DPLogisticRegression, DPTukeyRegression
from dpestim.local import LaplaceTransformer, PrivatizedColumns, StaircaseTransformer
from dpestim.model_selection import PrivateSearchCV
from dpestim.naive_bayes import DPGaussianNB
from dpestim.preprocessing import DomainEncoder
from dpestim.shuffle import BooleanSum, ShuffledEstimator
from dpestim.shuffle.base import ShuffleProtocol
from dpestim.statistics import ContingencyTable, Histogram
from dpestim.statistics.base import DPStatistic

EXPECTED = {
    "check_methods_sample_order_invariance": "noise belongs to a row's position, so permuted rows get other noise",
    "check_methods_subset_invariance": "noise belongs to a row's position, so a row alone gets other noise",
}
CLUSTERS = {"check_clustering": "the label of a row is an exact function of it, so `labels_` is not kept"}
OLD = {"check_positive_only_tag_during_fit": "scikit-learn 1.6 subtracts a float from its own integer codes"}


def expected(estimator):
    """Only noise in rows of output can depend on their order; only what takes categories, or integers, gets codes."""
    draws = not isinstance(estimator, CentralModel)  # (which draw no rows, and take what is no category)
    coded = draws and estimator.__sklearn_tags__().input_tags.categorical
    if isinstance(estimator, PrivateSearchCV):
        return CLASSES
    old = OLD if sklearn.__version__.startswith("1.6.") and coded else {}
    if isinstance(estimator, DPStatistic):
        return STATISTICS
    if is_clusterer(estimator):
        return CLUSTERS
    if "max_iter" in estimator.get_params():
        return ROUNDS
    return old | (EXPECTED if draws and hasattr(estimator, "transform") else {})


#: Three classes are declared, and so are those of the model, whatever a check has in y: as for its estimator.
CLASSES = dict.fromkeys(
    ("check_dtype_object", "check_classifiers_classes", "check_classifiers_train", "check_decision_proba_consistency",
     "check_classifiers_regression_target", "check_estimator_sparse_array", "check_estimator_sparse_matrix"),
    "classes are declared: others are refused, and each has its column")
#: Every round is paid for, so that their number is declared and never found.
ROUNDS = {"check_non_transformer_estimators_n_iter": "all of max_iter rounds are released: there is no n_iter_"}
#: A column is data of a statistic, and so is a table without rows: how many there are may be secret.
STATISTICS = {name: "columns, and tables without rows, are data of statistics"
              for name in ("check_fit1d", "check_estimators_empty_data_messages")}


#: What scikit-learn makes requests of.
METHODS = ("fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "decision_function", "score", "split",
           "transform", "inverse_transform")

#: No estimator gets fewer of scikit-learn's checks.
FEWEST = 35


def ready(cls):
    """The default, where there is one that can be used: a sensitivity, or a delta, has to be declared."""
    if issubclass(cls, ShuffleProtocol | ShuffledEstimator):
        return cls(delta=0.01)  # (a smaller one takes far more fakes)
    if cls is DPTukeyRegression:
        return cls(delta=1e-6)
    if cls is PrivatizedColumns:  # (what "posterior" estimates for each fit takes longer than all else here)
        return cls(correction="unbiased")
    if issubclass(cls, LaplaceTransformer | StaircaseTransformer):  # (a table of the default grid takes longer, too)
        return cls(grid=64)
    return cls(**cls._test_params()[0]) if issubclass(cls, CentralMechanism) else cls()


def fitted():
    """Yield what has `fit`; of statistics, which share it, one of each kind of release.

    Of what takes one column only, or columns that are declared one by one (`DomainEncoder`, too), nothing but 0 and 1,
    a square matrix or steps in an order, scikit-learn has no checks.
    """
    seen = {ContingencyTable._plan}
    none = BooleanSum | DomainEncoder
    own = "graph", "lists", "nodes", "stream"
    for cls in (cls for _, cls in all_estimators()
                if hasattr(cls, "fit") and not issubclass(cls, none) and cls._checked_as not in own):
        plan = cls._plan if issubclass(cls, DPStatistic) else cls
        if plan not in seen and ready(cls).__sklearn_tags__().input_tags.two_d_array:
            seen.add(plan)
            yield ready(cls)


def name(estimator):
    return type(estimator).__name__


#: Where there is no default that can be used, or not with what scikit-learn's checks have in their columns.
MORE = (
    Histogram(bins=4, bounds=(-3.0, 3.0)),
    PrivateSearchCV(DPLogisticRegression(data_norm=10.0, classes=[0, 1, 2]), {"C": [None, 1.0]}, epsilon=80.0,
                    gamma=0.9, random_state=0),
)


def wrong(estimator, failing):
    """Return what scikit-learn says against an estimator, and which checks ought to have failed and did not."""
    done = check_estimator(estimator, expected_failed_checks=failing, on_skip=None, on_fail=None)
    assert len(done) >= FEWEST
    found = [check for check in done if check["status"] == ("passed" if check["expected_to_fail"] else "failed")]
    return {check["check_name"]: check["exception"] for check in found}


@pytest.mark.parametrize("estimator", [*fitted(), *MORE], ids=name)
def test_sklearn(estimator):
    """All checks of an estimator are one test: what pytest does around a test takes longer than most of them."""
    assert wrong(estimator, expected(estimator)) == {}


class Overwrites(DPGaussianNB):
    """A model whose `fit` sets what belongs to the one who made it."""

    def fit(self, X, y):
        super().fit(X, y)
        self.epsilon = 2.0
        return self


def test_what_scikit_learn_says_is_heard():
    found = wrong(Overwrites(), {"check_fit2d_1sample": "which it does not"})
    assert isinstance(found["check_estimators_overwrite_params"], AssertionError)
    assert found["check_fit2d_1sample"] is None


def test_every_class_has_the_requests_that_scikit_learn_reads_from_its_methods():
    """It is not asked for a class whose methods take rows alone: a base's requests must then be those of the class."""
    some = 0
    for _, kind in all_estimators():
        plain = type(kind.__name__, (BaseEstimator,), {name: getattr(kind, name) for name in METHODS
                                                       if inspect.isfunction(getattr(kind, name, None))})
        for request in (f"set_{name}_request" for name in METHODS):
            found, expected = (getattr(of, request, None) for of in (kind, plain))
            assert (found is None) == (expected is None), (kind, request)
            if found:
                some += 1
                assert str(inspect.signature(found)) == str(inspect.signature(expected)).replace(
                    f"{plain.__module__}.{plain.__qualname__}", f"{kind.__module__}.{kind.__qualname__}")
    assert some > 20


def test_methods_of_which_requests_are_made_are_those_of_scikit_learn():
    takes_more = {name: lambda self, X, price: None for name in [*METHODS, "fit_transform", "fit_parts", "release"]}
    plain = type("Plain", (BaseEstimator,), takes_more)
    found = {name[len("set_") : -len("_request")] for name in dir(plain) if re.fullmatch("set_[a-z_]+_request", name)}
    assert found == set(METHODS) == filling._ROUTED


def test_a_class_that_adds_a_method_has_its_requests():
    class Below(DPGaussianNB):
        """It adds a parameter of a method."""

        def predict(self, X, price):
            """Predict."""

    class Same(Below):
        """It adds nothing."""

    class Mixed(Documented, BaseEstimator):
        """What it adds comes from another base."""

    class Added:
        def fit(self, X, y, cost):
            """Fit."""

    class Joined(Added, Mixed):
        """It has that method."""

    class Fewer(Below):
        """It takes rows alone again."""

        def predict(self, X):
            """Predict."""

    class Wrapped(DPGaussianNB):
        """It takes what its code does not tell."""

        @functools.wraps(Below.predict)
        def predict(self, X):
            """Predict."""

    assert not hasattr(DPGaussianNB, "set_predict_request")
    plain = type("Plain", (type("Base", (BaseEstimator,), {"predict": Below.predict}),), {"predict": Fewer.predict})
    asked, expected = (list(inspect.signature(of.set_predict_request).parameters) for of in (Fewer, plain))
    assert asked == expected  # (older releases leave the parameter of the base)
    assert "price" in inspect.signature(Wrapped.set_predict_request).parameters
    assert all(map(hasattr, (Below, Same, Joined), ("set_predict_request", "set_predict_request", "set_fit_request")))
