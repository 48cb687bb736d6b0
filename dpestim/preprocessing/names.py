"""Names of columns that go in."""

import numpy as np


def feature_names(estimator, input_features):
    """Return the names of the columns that a fitted estimator takes, or raise ValueError where others are asked for."""
    names = getattr(estimator, "feature_names_in_", None)
    if input_features is None:
        known = names if names is not None else [f"x{j}" for j in range(estimator.n_features_in_)]
        return np.array(list(known), dtype=object)
    if len(input_features) != estimator.n_features_in_:
        raise ValueError("input_features should have length equal to number of features "
                         f"({estimator.n_features_in_}), got {len(input_features)}")
    if names is not None and list(input_features) != list(names):
        raise ValueError("input_features is not equal to feature_names_in_")
    return np.array(list(input_features), dtype=object)
