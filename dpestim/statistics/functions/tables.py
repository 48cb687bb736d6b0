"""Histograms and tables of counts."""

from dpestim.statistics.functions.making import function_of
from dpestim.statistics.tables import ContingencyTable, Histogram

histogram = function_of(
    __name__, "histogram", Histogram, "Return a histogram of one or several columns, with noise.",
    ">>> import numpy as np\n>>> from dpestim.statistics import histogram\n"
    ">>> histogram(np.arange(1000), epsilon=1.0, bins=2, bounds=(0, 1000), random_state=1).value\narray([500, 501])")
contingency_table = function_of(
    __name__, "contingency_table", ContingencyTable,
    "Return how many rows have each combination of declared categories.",
    '>>> from dpestim.statistics import contingency_table\n>>> X = [["tea", 1]] * 90 + [["coffee", 2]] * 60\n'
    '>>> table = contingency_table(X, epsilon=1.0, categories=[["tea", "coffee"], [1, 2]], random_state=1)\n'
    ">>> table.value.shape\n(2, 2)")
