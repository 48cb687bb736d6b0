"""Budgets: ledgers, composition of guarantees, calibration of noise for series of releases.

A ledger adds up what happens:

    Ledger                    a budget in a SQLite file; every release is entered before its words are drawn

Declared in advance, a series of releases costs less than the sum:

    PrivacyLossDistribution   the tightest: losses added up by FFT, deltas never below the truth
    RenyiCurve                Renyi and concentrated privacy, converted tightly (`simple_epsilon`, `concentrated_of`)
    optimal_delta             the best that holds for all mechanisms with given guarantees (`optimal_epsilon`)
    calibrate                 the largest budget of each of n releases, or the least noise

Chosen as results come in:

    BasicFilter, ConcentratedFilter, RenyiFilter, ConcentratedOdometer

And for parts, groups and samples of the records: `parallel`, `group_privacy`, `subsampled`.

What a release promises is a `dpestim.privacy.PrivacyGuarantee`, which adds, compares and converts, and keeps as its
`curve` the losses or the Renyi divergences of the noise, where they are known: both kinds are made here (`series`). The
ledger itself is in `dpestim.privacy.ledger`, below the mechanisms, so that every estimator can be charged. All numbers
are bounds, rounded against the one who asks.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.accounting.calibration import calibrate
    from dpestim.accounting.composition import advanced_composition, optimal_delta, optimal_epsilon
    from dpestim.accounting.filters import BasicFilter, ConcentratedFilter, ConcentratedOdometer, RenyiFilter
    from dpestim.accounting.loss import PrivacyLossDistribution
    from dpestim.accounting.neighbourhoods import group_privacy, parallel, subsampled
    from dpestim.accounting.renyi import RenyiCurve
    from dpestim.exceptions import BudgetExceededError, LedgerError
    from dpestim.privacy.concentrated import concentrated_of, largest_rho, simple_epsilon
    from dpestim.privacy.ledger import Ledger

__getattr__, __dir__ = lazy.attach(__name__, {
    "calibration": "calibrate",
    "composition": "advanced_composition optimal_delta optimal_epsilon",
    "filters": "BasicFilter ConcentratedFilter ConcentratedOdometer RenyiFilter",
    "loss": "PrivacyLossDistribution",
    "neighbourhoods": "group_privacy parallel subsampled",
    "renyi": "RenyiCurve",
    "dpestim.exceptions": "BudgetExceededError LedgerError",
    "dpestim.privacy.concentrated": "concentrated_of largest_rho simple_epsilon",
    "dpestim.privacy.ledger": "Ledger",
})

__all__ = [
    "BasicFilter",
    "BudgetExceededError",
    "ConcentratedFilter",
    "ConcentratedOdometer",
    "Ledger",
    "LedgerError",
    "PrivacyLossDistribution",
    "RenyiCurve",
    "RenyiFilter",
    "advanced_composition",
    "calibrate",
    "concentrated_of",
    "group_privacy",
    "largest_rho",
    "optimal_delta",
    "optimal_epsilon",
    "parallel",
    "simple_epsilon",
    "subsampled",
]
