"""Statistics under central differential privacy, with intervals: means, quantiles, tables, groups.

    functions      `mean(x, epsilon=1, bounds=(0, 100))` and its siblings: a value, an interval, what was promised
    sums           count of rows that are true, sum, mean
    moments        variance, standard deviation, covariance, correlation
    quantiles      quantiles, median, smallest and largest values
    ranges         counts of any ranges, from trees (`range_noise`: how much noise a level has)
    tables         histograms, contingency tables, categories that nobody declared
    keys           what categories that nobody declared are called
    groups         any of them for each of several declared groups
    private_bounds bounds that are found with a share of the budget
    base           what they share: `summarize`, `merge`, `release`
    summary        rows become integers of a public grid (their secret sums: `dpestim/summaries.py`)
    noise          integers become noisy, by the laws of `dpestim.central`, at once or (`Answers`) round by round
    row_moments    rows become integers of a public norm, and exact sums of their products
    moment_noise   which joint noise hides a row in such sums
    plan           what a release draws, by which law, and what it makes of that; `choice`: its parts that choose
    result         `Result`, and those of groups: shown as tables
    one_pass       what models share that are functions of such sums: preprocessing, naive Bayes, choosing columns

Every statistic is a class with ``summarize``, ``merge`` and ``release``, for data that come in batches or from several
places, and a function that does all three.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.statistics.functions.moments import correlation, covariance, std, var
    from dpestim.statistics.functions.quantiles import maximum, median, minimum, quantile
    from dpestim.statistics.functions.sums import count, mean, n_rows, sum
    from dpestim.statistics.functions.tables import contingency_table, histogram
    from dpestim.statistics.functions.unknown import unknown_categories
    from dpestim.statistics.groups import group_by
    from dpestim.statistics.moments import Correlation, Covariance, StandardDeviation, Variance
    from dpestim.statistics.quantiles import Quantile
    from dpestim.statistics.ranges import RangeCounts
    from dpestim.statistics.result import Result
    from dpestim.statistics.sums import Count, Mean, Sum
    from dpestim.statistics.tables import ContingencyTable, Histogram
    from dpestim.statistics.unknown import UnknownCategories

__getattr__, __dir__ = lazy.attach(__name__, {
    "functions.moments": "correlation covariance std var",
    "functions.quantiles": "maximum median minimum quantile",
    "functions.sums": "count mean n_rows sum",
    "functions.tables": "contingency_table histogram",
    "functions.unknown": "unknown_categories",
    "groups": "group_by",
    "moments": "Correlation Covariance StandardDeviation Variance",
    "quantiles": "Quantile",
    "ranges": "RangeCounts",
    "result": "Result",
    "sums": "Count Mean Sum",
    "tables": "ContingencyTable Histogram",
    "unknown": "UnknownCategories",
})

__all__ = [
    "ContingencyTable",
    "Correlation",
    "Count",
    "Covariance",
    "Histogram",
    "Mean",
    "Quantile",
    "RangeCounts",
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
    "n_rows",
    "quantile",
    "std",
    "sum",
    "unknown_categories",
    "var",
]

#: What its estimators are for, in the tables of the documentation.
TASK = "Statistics, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("an average is wanted", "Mean", "exact integer sums of clipped rows; the interval is part of the result"),
    ("a median, other quantiles, or the range is wanted", "Quantile",
     "works for any distribution, ties included; returns confidence intervals when `level` is set"),
    ("the number of rows in each cell is wanted", "Histogram",
     "the noise of a cell does not grow with the number of cells"),
    ("the numbers of rows in any ranges, or many quantiles, are wanted", "RangeCounts",
     "a range of many cells has little noise"),
    ("counts of declared categories, or of their combinations, are wanted", "ContingencyTable",
     "pure epsilon; rare categories appear too"),
    ("counts of categories that nobody declared are wanted", "UnknownCategories",
     "needs a delta; rare categories stay hidden"),
    ("the correlation of columns is wanted", "Correlation", "a function of private covariances"),
)
