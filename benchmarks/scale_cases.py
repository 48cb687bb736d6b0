"""What `benchmarks.scale` fits: twelve estimators, one for each task that a newcomer starts with, and their data.

Four oracles, because their costs differ in kind (a code, a bit for each category, a hash, a code of a large domain);
the mean and the distribution of reported numbers; the shuffle model; three statistics of a trusted holder of the data;
a linear model and one of trees.
"""

import numpy as np

from dpestim.ensemble import DPGradientBoostingClassifier
from dpestim.linear_model import DPLogisticRegression
from dpestim.local import (
    DistributionEstimator,
    GRRFrequencyEstimator,
    HRFrequencyEstimator,
    MeanEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PMTransformer,
)
from dpestim.shuffle import ShuffledHistogram
from dpestim.statistics import Histogram, Mean, Quantile

DELTA = 1e-6


def codes(n, columns, categories, rng):
    """Return columns of categories."""
    return (rng.integers(0, categories, (n, columns)),)


def numbers(n, columns, categories, rng):
    """Return columns of numbers in [0, 1)."""
    return (rng.random((n, columns)),)


def steps(n, columns, categories, rng):
    """Return columns of numbers, of which so many differ."""
    return (rng.integers(0, categories, (n, columns)) / categories,)


def labelled(n, columns, categories, rng):
    """Return columns of numbers, and a target of so many classes that depends on the first of them."""
    X = rng.random((n, columns))
    return X, (X[:, 0] * categories).astype(int)


def oracle(cls, **more):
    """Return what makes a frequency estimator for so many columns of so many categories."""
    return lambda columns, categories: cls(
        1.0, categories=[range(categories)] * columns, random_state=0, n_jobs=1, **more)


def model(cls):
    """Return what makes a classifier for so many classes."""
    return lambda columns, categories: cls(
        1.0, delta=DELTA, bounds=(0.0, 1.0), classes=list(range(categories)), random_state=0, n_jobs=1)


def reported(columns):
    """Return what privatises columns of numbers: each has the same epsilon and law (epsilon is at most 80 in all)."""
    return PMTransformer(0.08 * columns, bounds=(0.0, 1.0), random_state=0, n_jobs=1)


#: {name: (estimator of columns and categories, data, what the third axis counts or None, what is read of a fit)}
CASES = {
    "local.GRRFrequencyEstimator": (oracle(GRRFrequencyEstimator), codes, "categories", "frequencies_"),
    "local.OUEFrequencyEstimator": (oracle(OUEFrequencyEstimator), codes, "categories", "frequencies_"),
    "local.OLHFrequencyEstimator": (oracle(OLHFrequencyEstimator), codes, "categories", "frequencies_"),
    "local.HRFrequencyEstimator": (oracle(HRFrequencyEstimator), codes, "categories", "frequencies_"),
    "local.MeanEstimator": (lambda columns, categories: MeanEstimator(reported(columns)), numbers, None, "mean_"),
    "local.DistributionEstimator": (
        lambda columns, categories: DistributionEstimator(reported(columns), n_bins=categories),
        numbers, "bins", "distribution_"),
    "shuffle.ShuffledHistogram": (oracle(ShuffledHistogram, delta=DELTA), codes, "categories", "frequencies_"),
    "statistics.Mean": (
        lambda columns, categories: Mean(1.0, bounds=(0.0, 1.0), random_state=0), numbers, None, "result_"),
    "statistics.Histogram": (
        lambda columns, categories: Histogram(1.0, bins=categories, bounds=(0.0, 1.0), random_state=0),
        numbers, "bins", "result_"),
    "statistics.Quantile": (
        lambda columns, categories: Quantile(1.0, bounds=(0.0, 1.0), random_state=0),
        steps, "different values", "result_"),
    "linear_model.DPLogisticRegression": (model(DPLogisticRegression), labelled, "classes", "classes_"),
    "ensemble.DPGradientBoostingClassifier": (model(DPGradientBoostingClassifier), labelled, "classes", "classes_"),
}


def case(name, n, columns, categories):
    """Return a function that fits an estimator to rows, and reads what it estimates: some do that when asked."""
    make, data, _, read = CASES[name]
    estimator, rows = make(columns, categories), data(n, columns, categories, np.random.default_rng(0))
    return lambda: getattr(estimator.fit(*rows), read)
