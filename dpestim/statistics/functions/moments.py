"""Variances, standard deviations, covariances and correlations."""

from dpestim.statistics.functions.making import EXAMPLE, function_of
from dpestim.statistics.moments import Correlation, Covariance, StandardDeviation, Variance

_PAIRS = (">>> import numpy as np\n>>> from dpestim.statistics import {0}\n"
          ">>> X = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 50_000)\n"
          ">>> {0}(X, epsilon=4.0, bounds=(-5, 5), random_state=0).value.round(1)\n"
          "array([[1. , 0.6],\n       [0.6, 1. ]])")

var = function_of(
    __name__, "var", Variance, "Return the variance of the rows, clipped to bounds, with noise.",
    EXAMPLE.format("var", 4, ""))
std = function_of(
    __name__, "std", StandardDeviation, "Return the standard deviation of the rows, clipped to bounds, with noise.",
    EXAMPLE.format("std", 2, ""))
covariance = function_of(
    __name__, "covariance", Covariance, "Return the covariance matrix of columns, with noise.",
    _PAIRS.format("covariance"))
correlation = function_of(
    __name__, "correlation", Correlation, "Return the correlation matrix of columns, from noisy covariances.",
    _PAIRS.format("correlation"))
