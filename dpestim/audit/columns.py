"""Which column is true: how often an attacker who sees a report with fakes guesses the column that a user drew."""

from typing import NamedTuple

import numpy as np

from dpestim.local.attributes.hidden import HiddenColumns, odds_of
from dpestim.local.categories.grr import GRR
from dpestim.local.sampling import SampledColumns
from dpestim.privacy.exact import WORD

#: Sets of values that a report of one column may support, and are enumerated.
_MOST_BITS = 16


class ColumnInference(NamedTuple):
    """How often the drawn column is guessed from a report.

    Attributes
    ----------
    accuracy : float
        Of the best guess: no attacker who knows the same is right more often.
    baseline : float
        Of a guess without the report.

    Examples
    --------
    >>> from dpestim.audit import column_inference
    >>> from dpestim.local import MultiAttributeFrequencyEstimator
    >>> column_inference(MultiAttributeFrequencyEstimator(categories=[[0, 1]] * 2), [[0.5, 0.5]] * 2)
    ColumnInference(accuracy=1.0, baseline=0.5)
    """

    accuracy: float
    baseline: float


def column_inference(estimator, shares):
    """Return how often the best attacker guesses which column a user's report tells the truth about; exact in floats.

    The attacker knows the mechanism, sees one whole report, and knows how often each value is held in each column. Of
    one user's row the attacker knows nothing else, and columns count as independent.

    Parameters
    ----------
    estimator : MultiAttributeFrequencyEstimator
        Fitted, or with declared categories. Reports of the strategy "smp" name the column: the accuracy is 1. Those of
        "spl" tell of all columns, which is an error.
    shares : list of array-like
        How often each value of each column is held; public, or an estimate such as `frequencies_`.

    Returns
    -------
    ColumnInference

    References
    ----------
    H. Arcolezi et al., "On the risks of collecting multidimensional data under local differential privacy", PVLDB 2023,
    whose attribute-inference attack trains a classifier on reports; here the best one is computed.

    Examples
    --------
    >>> from dpestim.audit import column_inference
    >>> from dpestim.local import MultiAttributeFrequencyEstimator
    >>> est = MultiAttributeFrequencyEstimator(2.0, categories=[range(4)] * 3, strategy="rsfd")
    >>> even = column_inference(est, [[0.25] * 4] * 3)  # (fakes look like the users' values)
    >>> skewed = column_inference(est, [[0.9, 0.1, 0, 0]] * 3)
    >>> round(even.accuracy, 3), round(skewed.accuracy, 3), round(even.baseline, 3)
    (0.333, 0.579, 0.333)
    """
    columns = estimator._columns_now()
    if isinstance(columns, SampledColumns) and columns.n_sampled == 1:
        return ColumnInference(1.0, 1 / len(columns))
    if not isinstance(columns, HiddenColumns):
        raise ValueError("estimator must report one drawn column: take strategy='rsfd', 'rsrfd' or 'smp'")
    if len(shares) != len(columns):
        raise ValueError(f"shares must have one array for each of the {len(columns)} columns")
    parts = [_odds_among_fakes(law, fakes, _checked(own, law.n_categories, column.name)) for law, fakes, own, column in
             zip(columns.laws, columns.fakes, shares, columns)]
    chances = [chance / WORD for chance in columns.chances]
    return ColumnInference(_mean_of_largest([(c * odds, fake) for c, (odds, fake) in zip(chances, parts)]),
                           max(chances))


def _checked(shares, size, name):
    out = np.asarray(shares, np.float64)
    if out.shape != (size,) or not (np.isfinite(out) & (out >= 0)).all() or not out.sum() > 0:
        raise ValueError(f"shares of {name} must be {size} finite numbers of at least 0, and not all of them 0")
    return out / out.sum()


def _odds_among_fakes(law, fakes, shares):
    """Return (how much likelier each report is as the truth than as a fake, its probability as a fake)."""
    a, b = map(float, odds_of(law))
    weights = None if fakes is None else np.array(fakes, np.float64) / float(WORD)
    if isinstance(law, GRR):
        fake = b + weights * (a - b)
        return (b + shares * (a - b)) / fake, fake
    k, q = law.n_categories, float(law.q_star)
    if k > _MOST_BITS:
        raise ValueError(f"estimator must have at most {_MOST_BITS} categories in columns of unary encodings, whose "
                         "reports are enumerated")
    bits = np.arange(1 << k)[:, None] >> np.arange(k) & 1
    base = np.prod(np.where(bits, q, 1 - q), axis=1)
    fake = np.ones(1 << k) if weights is None else b + (a - b) * (bits @ weights)
    return (b + (a - b) * (bits @ shares)) / fake, base * fake


def _mean_of_largest(variables):
    """Return the mean of the largest of independent variables, each (values, probabilities)."""
    points = np.unique(np.concatenate([values for values, _ in variables]))
    below = np.ones(len(points))
    for values, probabilities in variables:
        order = np.argsort(values, kind="stable")
        reached = np.concatenate([[0.0], np.cumsum(probabilities[order])])
        below *= reached[np.searchsorted(values[order], points, side="right")] / reached[-1]
    return float(points @ np.diff(below, prepend=0.0))
