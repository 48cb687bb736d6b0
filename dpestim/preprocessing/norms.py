"""The largest norm of a row that several transformers side by side make, for the model that follows."""

from fractions import Fraction

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline


def norm_bound(transformer):
    """Return the largest Euclidean norm of a row that a transformer returns, from parameters alone.

    It is the `data_norm` of the private model that follows. Parts of a ColumnTransformer or a FeatureUnion stand side
    by side, so that their squares add up; of a Pipeline the last step counts.

    Parameters
    ----------
    transformer : ColumnTransformer, FeatureUnion, Pipeline, or transformer with `norm_bound`
        Fitted or not; where columns have to be counted first, fitted.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For a part whose rows have no known norm; the message names the part.

    Notes
    -----
    **Privacy.** No data are looked at: the norm is as public as the parameters. O(number of parts).

    Examples
    --------
    >>> from sklearn.compose import ColumnTransformer
    >>> from dpestim.preprocessing import DPMinMaxScaler, DPOneHotEncoder, norm_bound
    >>> scaled = DPMinMaxScaler(bounds=([0, 0, 0], [1, 2, 3]), feature_range=(-1, 1))
    >>> colour = DPOneHotEncoder(categories=[["red", "blue"]])
    >>> table = ColumnTransformer([("numbers", scaled, [0, 1, 2]), ("colour", colour, [3])])
    >>> round(norm_bound(table), 6)
    2.0
    """
    return float(np.nextafter(np.sqrt(float(_square(transformer, type(transformer).__name__))), np.inf))


def _square(step, name):
    """Return the square of the norm of a part, exactly."""
    if isinstance(step, Pipeline):
        last, inner = step.steps[-1]
        return _square(inner, f"{name}__{last}" if name else last)
    if isinstance(step, ColumnTransformer | FeatureUnion):
        return _square_of_parts(step, name)
    try:
        found = step.norm_bound
    except AttributeError as error:
        why = str(error)
    else:
        return Fraction(float(found)) ** 2
    raise ValueError(f"{name} must have a known norm_bound, as DPStandardScaler(clip=3), DPMinMaxScaler, "
                     f"DPOneHotEncoder and DomainEncoder have: {why}")


def _square_of_parts(step, name):
    parts, weights = getattr(step, "transformers", None), step.transformer_weights or {}
    if parts is None:
        parts = step.transformer_list
    elif step.remainder != "drop":
        parts = [*parts, ("remainder", step.remainder, ())]
    total = Fraction(0)
    for label, part, *_ in parts:
        if isinstance(part, str) and part == "drop":
            continue
        weight = Fraction(float(weights.get(label, 1.0)))
        fitted = getattr(step, "named_transformers_", {}).get(label, part)
        total += _square(fitted, f"{name}__{label}") * weight * weight
    return total
