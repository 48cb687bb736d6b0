"""From counts to what a reader sees: interval ends, post-processing, names."""

import numpy as np

from dpestim import postprocessing


def shown(categories):
    """Return categories as they are written in a name."""
    return (categories.astype(str) if categories.dtype.kind in "mM" else categories).tolist()


#: What a law tells a function of this name besides the estimates and their standard errors.
_TOLD = {
    "ibu": lambda law, counts, n: law.likelihood(counts, n) if hasattr(law, "likelihood") else None,
    "mle_apx": lambda law, counts, n: _line(*law.variance_line(counts, n)),
    "power": lambda law, counts, n: {"smallest": 1 / max(n, 2)},
}
_TOLD["power_ns"] = _TOLD["calibrate"] = _TOLD["power"]


def check_postprocess(postprocess, *, of_one_law=True):
    """Raise ValueError for what is no way to post-process, or none for estimates that several laws have part in."""
    if postprocess is None or callable(postprocess):
        return
    names = [name for name in postprocessing.__all__ if of_one_law or name != "ibu"]
    if postprocess not in names:
        raise ValueError(f"postprocess must be None, a callable or one of {names}, got {postprocess!r}")


def postprocessed(postprocess, f, errors, *told):
    """Return estimates as a parameter wants them; told: the law that they are of, the counts, the number of users."""
    if postprocess is None:
        return f
    check_postprocess(postprocess, of_one_law=bool(told))
    if callable(postprocess):
        done = postprocess(f, errors)
    else:
        more = _TOLD[postprocess](*told) if told and postprocess in _TOLD else {}
        if more is None:  # the law cannot say how likely its counts are: noise is normal in the limit of many reports
            postprocess, more = "mle_apx", _TOLD["mle_apx"](*told)
        done = getattr(postprocessing, postprocess)(f, errors, **more)
    done = np.asarray(done, dtype=np.float64)
    if done.shape != f.shape or not np.isfinite(done).all():
        raise ValueError(f"postprocess must return a finite array of shape {f.shape}")
    return done


def _line(at_zero, slope):
    return {"at_zero": np.maximum(at_zero, 0.0), "slope": slope}
