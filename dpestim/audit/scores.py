"""How well a fitted model remembers rows: a number for each row, larger where the row is likelier to have been there.

Any number is allowed (``one_run.md``); a good one makes the bound larger. What is looked at, in this order: the
probability of the label, the prediction, the density of the row, synthetic rows near it, centers, covariances,
components, and fitted numbers of a column.
"""

import numpy as np

from dpestim.inputs.frames import columns_of, is_frame

#: Synthetic rows that are drawn, and how fast the weight of one falls with its distance (columns in units of 1).
_ROWS, _FALL = 2_000, 8.0
_TINY = 1e-300


def score_of(model, X, y):
    """Return the scores of rows, an array of shape (n_rows,), or raise ValueError where nothing is known to look at."""
    if y is not None and hasattr(model, "predict_proba"):
        chances, classes = model.predict_proba(X), np.asarray(model.classes_)
        at = (classes[None, :] == np.asarray(y)[:, None]).argmax(axis=1)
        return np.log(np.maximum(chances[np.arange(len(at)), at], _TINY))
    if y is not None and hasattr(model, "decision_function"):
        side = np.asarray(model.decision_function(X), float)
        classes = np.asarray(model.classes_)
        if side.ndim == 2:
            return side[np.arange(len(side)), (classes[None, :] == np.asarray(y)[:, None]).argmax(axis=1)]
        return np.where(np.asarray(y) == classes[1], side, -side)
    if y is not None and hasattr(model, "predict"):
        said = np.asarray(model.predict(X))
        return -(np.asarray(y, float) - said) ** 2 if said.dtype.kind == "f" else (said == np.asarray(y)).astype(float)
    for look in (_density, _synthetic, _centers, _quadratic, _parts, _numbers):
        found = look(model, X)
        if found is not None:
            found = np.asarray(found, float)
            return np.where(np.isfinite(found), found, 0.0)
    raise ValueError(f"score must be given for {type(model).__name__}: pass a function of (model, rows, labels) that "
                     "returns a number for each row")


def _density(model, X):
    return model.score_samples(X) if hasattr(model, "score_samples") else None


def _synthetic(model, X):
    if not hasattr(model, "sample"):
        return None
    made = model.sample(_ROWS)
    total = 0.0
    for own, other in zip(columns_of(X if is_frame(X) else np.asarray(X)), columns_of(made)):
        own, other = np.asarray(own), np.asarray(other)
        if own.dtype.kind in "iuf" and other.dtype.kind in "iuf":
            reach = max(float(np.ptp(own)), _TINY)
            total = total + np.abs(own[:, None].astype(float) - other[None, :]) / reach
        else:
            total = total + (own[:, None] != other[None, :])
    return np.exp(-_FALL * total).sum(axis=1)


def _centers(model, X):
    centers = getattr(model, "cluster_centers_", None)
    if centers is None:
        return None
    return -((_array(X)[:, None, :] - np.asarray(centers)[None, :, :]) ** 2).sum(axis=2).min(axis=1)


def _quadratic(model, X):
    covariance = getattr(model, "covariance_", None)
    if covariance is None:
        return None
    rows = _array(X) - np.asarray(getattr(model, "location_", 0.0))
    return np.einsum("ij,jk,ik->i", rows, covariance, rows)


def _parts(model, X):
    if not hasattr(model, "components_"):
        return None
    return (np.asarray(model.transform(X), float) ** 2).sum(axis=1)


def _numbers(model, X):
    """Rows times what was learned of each column (a mean, a scale, quantiles), from the middle of the rows."""
    rows = _array(X)
    if rows is None:
        return None
    for name in ("mean_", "location_", "statistics_", "data_max_", "quantiles_", "value_"):
        learned = getattr(model, name, None)
        if learned is not None and np.shape(learned)[-1:] == rows.shape[1:]:
            middle = (rows.max(axis=0) + rows.min(axis=0)) / 2
            learned = np.asarray(learned, float).reshape(-1, rows.shape[1]).mean(axis=0)
            return ((rows - middle) * (learned - middle)).sum(axis=1)
    return None


def _array(X):
    try:
        return np.asarray(X, float)
    except (TypeError, ValueError):
        return None
