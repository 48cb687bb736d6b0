"""scikit-learn's own checks on every estimator, with a few reasoned expected failures and no others."""

import sklearn
from sklearn.base import is_clusterer
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpestim.base import all_estimators
from dpestim.central.base import CentralMechanism
from dpestim.central.model import CentralModel
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
    old = OLD if sklearn.__version__.startswith("1.6.") and coded else {}
    if isinstance(estimator, DPStatistic):
        return STATISTICS
    if is_clusterer(estimator):
        return CLUSTERS
    if "max_iter" in estimator.get_params():
        return ROUNDS
    return old | (EXPECTED if draws and hasattr(estimator, "transform") else {})


#: Every round is paid for, so that their number is declared and never found.
ROUNDS = {"check_non_transformer_estimators_n_iter": "all of max_iter rounds are released: there is no n_iter_"}
#: A column is data of a statistic, and so is a table without rows: how many there are may be secret.
STATISTICS = {name: "columns, and tables without rows, are data of statistics"
              for name in ("check_fit1d", "check_estimators_empty_data_messages")}


def ready(cls):
    """The default, where there is one that can be used: a sensitivity, or a delta, has to be declared."""
    if issubclass(cls, ShuffleProtocol | ShuffledEstimator):
        return cls(delta=1e-5)
    return cls(**cls._test_params()[0]) if issubclass(cls, CentralMechanism) else cls()


def fitted():
    """Yield what has `fit`; of statistics, which share it, one of each kind of release.

    Of what takes one column only, or columns that are declared one by one, or nothing but 0 and 1, scikit-learn has no
    checks.
    """
    seen = {ContingencyTable._plan, BooleanSum}
    for cls in (cls for _, cls in all_estimators() if hasattr(cls, "fit")):
        plan = cls._plan if issubclass(cls, DPStatistic) else cls
        if plan not in seen and ready(cls).__sklearn_tags__().input_tags.two_d_array:
            seen.add(plan)
            yield ready(cls)


@parametrize_with_checks([*fitted(), Histogram(bins=4, bounds=(-3.0, 3.0))], expected_failed_checks=expected)
def test_sklearn(estimator, check):
    try:
        check(estimator)
    except Exception as error:
        if check.func.__name__ not in expected(estimator):
            raise
        # without its frames: to show those of scikit-learn takes pytest ten times as long as the check
        raise AssertionError(str(error)) from None
