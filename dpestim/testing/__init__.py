"""Checks that any mechanism can be put through, those of third parties included.

``check_mechanism(estimator)`` runs them all; ``mechanism_checks(estimator)`` lists them for a parametrised test. They
are of two kinds:

    _law        the guarantee and the statistics: exact rational laws first, then samples against them, each with a
                named n and alpha, and each shown to *reject* a law whose epsilon is 0.7 or 1.3 times the true one
    _contract   behaviour: threads, blocks, merging, pickles, frames, dtypes, bad input
    _model_checks  the same for models, which predict

Transformers of numbers have their own (`_numeric_checks`: the law by kinds of inputs, exact means, rounding), and so
has what estimates from their reports (`_collector_checks`).

A check raises `MechanismError` (an AssertionError), which says what was expected. All samples are seeded, so that a
verdict is reproducible.
"""

from dpestim.testing._collector_checks import COLLECTOR_CHECKS
from dpestim.testing._contract import CONTRACT_CHECKS
from dpestim.testing._law import LAW_CHECKS
from dpestim.testing._model_checks import MODEL_CHECKS
from dpestim.testing._numeric_checks import NUMERIC_CHECKS
from dpestim.testing._tools import MechanismError, check_numeric_setting, check_setting

__all__ = ["MechanismError", "check_mechanism", "mechanism_checks"]


def mechanism_checks(estimator):
    """Return the list of (name, check) for an estimator; each check is called without arguments.

    Parameters
    ----------
    estimator : FrequencyEstimator, transformer of numbers, or what estimates from such a transformer
        Unfitted; it is cloned, never changed. Frequency estimators need declared categories: lists of at most 9 str,
        int, float or bool values, of one type a column and none missing; transformers declared bounds and a grid of at
        most 64 steps. Each column's share of epsilon must lie between 0.1 and 5, where 400,000 samples can tell it from
        0.7 and 1.3 times as much.

    Raises
    ------
    ValueError
        For a setting outside these; it says nothing about the mechanism.
    """
    checks = _checks_for(estimator)
    return [(check.__name__, lambda check=check: check(estimator)) for check in checks]


def check_mechanism(estimator):
    """Run every check on an estimator and return their names; raises `MechanismError` at the first that fails.

    Examples
    --------
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> from dpestim.testing import check_mechanism
    >>> len(check_mechanism(GRRFrequencyEstimator(1.0, categories=[["a", "b", "c"]]))) > 10
    True
    """
    names = []
    for name, check in mechanism_checks(estimator):
        check()
        names.append(name)
    return names


def _checks_for(estimator):
    """Return the checks that the capabilities of an estimator call for."""
    if hasattr(estimator, "categories"):
        check_setting(estimator)
        return (*LAW_CHECKS, *CONTRACT_CHECKS)
    if hasattr(estimator, "decode"):
        check_numeric_setting(estimator)
        return NUMERIC_CHECKS
    if hasattr(estimator, "transformer"):
        return COLLECTOR_CHECKS
    if hasattr(estimator, "predict_proba"):
        return MODEL_CHECKS
    raise ValueError(f"no checks are known for {type(estimator).__name__}")
