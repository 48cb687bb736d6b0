"""Statistics with differential privacy: of numbers, of categories, of groups, each with its interval and its price.

    functions      `mean(x, epsilon=1, bounds=(0, 100))` and its siblings: a value, an interval, what was promised
    sums           count, sum, mean
    moments        variance, standard deviation, covariance, correlation
    quantiles      quantiles, median, smallest and largest values
    tables         histograms, contingency tables, categories that nobody declared
    keys           what categories that nobody declared are called
    groups         any of them for each of several declared groups
    private_bounds bounds that are found with a share of the budget
    base           what they share: `summarize`, `merge`, `release`
    summary        rows become integers of a public grid, and sums that are secret
    noise          integers become noisy, by the laws of `dpestim.central`
    result         `Result`

Every statistic is a class with ``summarize``, ``merge`` and ``release``, for data that come in batches or from several
places, and a function that does all three.
"""

from dpestim.statistics.functions import (
    contingency_table,
    correlation,
    count,
    covariance,
    histogram,
    maximum,
    mean,
    median,
    minimum,
    quantile,
    std,
    sum,
    unknown_categories,
    var,
)
from dpestim.statistics.groups import group_by
from dpestim.statistics.moments import Correlation, Covariance, StandardDeviation, Variance
from dpestim.statistics.quantiles import Quantile
from dpestim.statistics.result import Result
from dpestim.statistics.sums import Count, Mean, Sum
from dpestim.statistics.tables import ContingencyTable, Histogram, UnknownCategories

__all__ = [
    "ContingencyTable",
    "Correlation",
    "Count",
    "Covariance",
    "Histogram",
    "Mean",
    "Quantile",
    "Result",
    "StandardDeviation",
    "Sum",
    "UnknownCategories",
    "Variance",
    "contingency_table",
    "correlation",
    "count",
    "covariance",
    "group_by",
    "histogram",
    "maximum",
    "mean",
    "median",
    "minimum",
    "quantile",
    "std",
    "sum",
    "unknown_categories",
    "var",
]
