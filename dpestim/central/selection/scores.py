"""Scores of candidates, in any container: read without showing a value, and rounded down to a public grid."""

from collections import Counter
from collections.abc import Mapping, Set

import numpy as np

from dpestim._core import choice
from dpestim.central.additive.answers import read_answers
from dpestim.inputs.frames import is_frame
from dpestim.inputs.safe_errors import attempt

#: Scores are cut at so many steps.
LARGEST = 1 << 61


def read_scores(scores, candidates, *, strict):
    """Return (an array of float64, whether its dtype says integers, what to call the candidates or None).

    What is not finite is a ValueError; in strict mode NaN is the lowest score, and infinity the highest or lowest.
    """
    names = None
    if isinstance(scores, Mapping):
        if strict:
            raise ValueError("strict mode: scores must be an array or a series, whose dtype depends on no score")
        if isinstance(scores, Counter):
            candidates = _names(candidates, None)
            scores = _looked_up(scores, candidates)
        else:
            names, scores = list(scores), list(scores.values())
    elif hasattr(scores, "iloc") and getattr(scores, "ndim", 0) == 1:
        names = scores.index
    values = read_answers(scores, integers=False, strict=strict, bounds=None, missing=-np.inf, name="scores")
    if values.ndim != 1 or not values.size:
        raise ValueError("scores must be one-dimensional: one number for each candidate, and at least one")
    if candidates is not None:
        names = _names(candidates, len(values))
    return values, _is_whole(scores), names


def _names(candidates, n):
    """Return n candidates (None: any number) as a sequence that is sure to have an entry at every place."""
    if not isinstance(candidates, str | bytes | Mapping | Set) and not is_frame(candidates):
        size, error = attempt(len, candidates)
        if not isinstance(candidates, list | tuple | range) and not hasattr(candidates, "dtype") and not error:
            candidates, error = attempt(lambda: [candidates[i] for i in range(size)])
        if not error and n in (None, size):
            return candidates
    if n is None:
        raise ValueError("candidates must be given, a public list, if scores are a Counter: its keys depend on private "
                         "data")
    raise ValueError("candidates must be a sequence with one entry for each score")


def _looked_up(counter, candidates):
    """Return the counts of public candidates, 0 for what does not occur."""
    counts, error = attempt(lambda: [counter[name_of(candidates, i)] for i in range(len(candidates))])
    if error:
        raise ValueError("candidates must be hashable if scores are a Counter")
    return counts


def _is_whole(scores):
    """Tell whether a dtype, which is public, says that all scores are integers."""
    dtype = getattr(scores, "dtype", None)
    if hasattr(dtype, "is_integer"):
        return dtype.is_integer()
    return getattr(dtype, "kind", "O") in "biu"


def to_codes(values, exponent):
    """Return scores in steps of 2^exponent, rounded down and cut: an array of int64.

    Rounding down moves no two scores further apart than the next integer number of steps. (To multiply by a power of
    two is exact, but for numbers so small that they lie next to 0 in any case.)
    """
    codes = np.empty(len(values), np.int64)
    choice.round_down(np.ascontiguousarray(values), 2.0**-exponent, float(LARGEST), codes)
    return codes


def name_of(names, place):
    """Return what the candidate at a place is called; None: its place."""
    if names is None:
        return place
    return names.iloc[place] if hasattr(names, "iloc") else names[int(place)]
