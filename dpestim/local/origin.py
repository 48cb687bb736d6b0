"""Where reports came from: which law made an array in this process, and whether counts can be a law's at all.

Reports carry numbers only, so that a server cannot tell the epsilon or the categories that a client had. Where client
and server are in one process the array itself is known; elsewhere counts tell, if they are far from all that any data
would give.
"""

import weakref

import numpy as np

#: The columns that made an array: by its id, as long as it lives.
_made = {}
#: Standard deviations beyond the end of what any data give: a probability of less than 1e-11.
FAR = 7.0
#: Fewer reports than this tell nothing by their counts.
FEWEST = 50

OTHERS = ("counts of {} are impossible under this law: the reports were made with another epsilon or another domain, "
          "or are forged. Compare the parameters of client and server")


def sign(reports, columns):
    """Remember which columns made an array of reports; returns it."""
    key = id(reports)
    _made[key] = weakref.ref(reports, lambda _: _made.pop(key, None)), columns
    return reports


def refuse_others(reports, columns):
    """Raise ValueError for an array, or rows of one, that other columns made in this process."""
    made, width = reports, reports.shape[1]
    while isinstance(made, np.ndarray):
        entry = _made.get(id(made))
        if entry is not None and entry[0]() is made:
            same = len(entry[1]) == len(columns) or columns.n_sampled  # (views of a row are as many as a law asks for)
            if made.shape[1] == width and same and not columns.same_law(entry[1]):
                raise ValueError(f"reports were made with {_difference(entry[1], columns)}: pass the same parameters "
                                 "to client and server")
            return
        made = made.base


def _difference(theirs, mine):
    """Return what differs, by name alone."""
    for one, other in zip(theirs, mine):
        names = [name for name in one.law.arguments
                 if name in other.law.arguments and one.law.arguments[name] != other.law.arguments[name]]
        if "epsilon" in names:  # (by which a mechanism may be chosen)
            return f"another epsilon in {other.name}"
        if type(one.law) is not type(other.law):
            return f"another mechanism in {other.name}"
        if names or one.identity() != other.identity():
            return f"{'another ' + names[0] if names else 'other categories or bounds'} in {other.name}"
    return "other parameters"


def is_impossible(law, counts, n):
    """Tell whether counts of n reports are far from what this law gives for any data; False where that is not known.

    An estimated frequency is 7 standard deviations below 0, or above 1.
    """
    if n < FEWEST or not getattr(law, "varies_by_own_share", False) or len(counts) > 4 * n:
        return False
    found = np.asarray(law.estimate(np.asarray(counts, np.int64), n))
    low, high = (np.sqrt(np.asarray(law.variance(n, share), float).max()) for share in (0.0, 1.0))
    return bool(found.min() < -FAR * low or found.max() > 1 + FAR * high)
