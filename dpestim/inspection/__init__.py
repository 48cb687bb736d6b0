"""Privacy cards, and displays that plot results with their intervals.

    privacy_card          what was collected, from whom, and what is and is not protected, as a page
    Estimates             what a fitted estimator tells, `estimator.result_`: numbers with labels and intervals
    release_report        questions, answers with intervals, and the budget, as a table and a page
    ResultDisplay         any result: numbers with their intervals (`result.plot()`)
    GuaranteeDisplay      the least epsilon at each delta (`guarantee.plot()`)
    FrequencyDisplay      the frequencies of a column of categories
    DistributionDisplay   the distribution of a column of numbers
    MechanismComparisonDisplay   errors of mechanisms against what they cost, from a plan or from estimators
    EpsilonCurveDisplay   errors against epsilon, from a plan or from an estimator
    ShapeFunctionDisplay  what a column, or a pair of them, adds to the score of an additive model

All read `privacy_` and public attributes only; that costs no privacy, and never sees raw data.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.inspection.card import privacy_card
    from dpestim.inspection.curves import ShapeFunctionDisplay
    from dpestim.inspection.displays import DistributionDisplay, FrequencyDisplay
    from dpestim.inspection.plans import EpsilonCurveDisplay, MechanismComparisonDisplay
    from dpestim.inspection.releases import release_report
    from dpestim.plots import GuaranteeDisplay, ResultDisplay
    from dpestim.results import Estimates

__getattr__, __dir__ = lazy.attach(__name__, {
    "card": "privacy_card",
    "curves": "ShapeFunctionDisplay",
    "displays": "DistributionDisplay FrequencyDisplay",
    "plans": "EpsilonCurveDisplay MechanismComparisonDisplay",
    "releases": "release_report",
    "dpestim.plots": "GuaranteeDisplay ResultDisplay",
    "dpestim.results": "Estimates",
})

__all__ = [
    "DistributionDisplay",
    "EpsilonCurveDisplay",
    "Estimates",
    "FrequencyDisplay",
    "GuaranteeDisplay",
    "MechanismComparisonDisplay",
    "ResultDisplay",
    "ShapeFunctionDisplay",
    "privacy_card",
    "release_report",
]
