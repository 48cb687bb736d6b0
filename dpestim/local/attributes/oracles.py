"""Which law reports a column: the best, or that of a name; and which laws suit fakes of the other columns."""

from functools import lru_cache

import numpy as np

from dpestim.local.attributes.hidden import BLANK, LAWS, Mixture, even_weights, solved
from dpestim.local.categories.adaptive import best_law
from dpestim.local.categories.choice import candidates
from dpestim.privacy.exact import WORD

#: The laws that a column may be given by name.
NAMES = ("grr", "oue", "sue", "ss", "pgr", "hr", "olh")


def names_for(estimator, n_columns, names):
    """Return the name of a law, or "auto", for each column."""
    if isinstance(estimator, dict):
        keys = [name[len("column ") :] for name in names]
        lost = [key for key in estimator if repr(key) not in keys]
        if lost or len(estimator) != n_columns:
            raise ValueError("estimator must have one law for each column, by the names in categories")
        estimator = [next(own for key, own in estimator.items() if repr(key) == name) for name in keys]
    each = [estimator] * n_columns if isinstance(estimator, str) else estimator
    if not isinstance(each, list | tuple) or len(each) != n_columns or not all(
            isinstance(own, str) and own in ("auto", *NAMES) for own in each):
        raise ValueError(f"estimator must be 'auto' or one of {list(NAMES)}, or a list or dict of these with one for "
                         f"each of the {n_columns} columns")
    return list(each)


def plain_law(epsilon, size, name):
    """Return the law of a column that is reported as it is."""
    if name == "auto":
        return best_law(epsilon, size)
    wanted = f"{name.upper()}FrequencyEstimator"
    laws, refused = candidates(epsilon, size, (wanted,))
    if not laws:
        raise ValueError(f"estimator {name!r} does not suit {size:,} categories: {refused[wanted]}")
    return laws[wanted]


@lru_cache(maxsize=256)
def hidden_laws(epsilon, sizes, names, fakes, neighbours):
    """Return the laws of columns that hide among fakes, for the least error on average over columns.

    Parameters
    ----------
    epsilon : Fraction
        For rows that differ in one column, or everywhere.
    sizes, names : tuple
        Of each column.
    fakes : tuple of (tuple of int or None)
    neighbours : {"tuple", "attribute"}
    """
    choices = [_choices(name, own) for name, own in zip(names, fakes)]
    if neighbours == "tuple":
        return _least([[law.make(epsilon, size) for law in own] for own, size in zip(choices, sizes)], fakes)
    best = None
    for kind in sorted({law for own in choices for law in own}, key=lambda law: law.__name__):
        # (which law is best depends on the epsilon that is solved for: one kind at a time, where there is a choice)
        kinds = [kind if kind in own else own[0] for own in choices]

        def make(e, kinds=kinds):
            return [law.make(e, size) for law, size in zip(kinds, sizes)]

        found = make(solved(epsilon, make, fakes, even_weights(len(sizes))))
        error = sum(_errors(found, fakes))
        best = (error, found) if best is None or error < best[0] else best
    return best[1]


def _choices(name, fakes):
    known = LAWS if fakes is not None else BLANK
    if name != "auto" and name not in known:
        raise ValueError(f"estimator must be one of {list(known)} for these fakes, because the worst case of "
                         f"{name!r} among them is not known: set fake='uniform', or another estimator")
    return list(known.values()) if name == "auto" else [known[name]]


def _least(laws, fakes):
    """Return the law of the least error of each column."""
    out = [own[0] for own in laws]
    for number, own in enumerate(laws):
        out[number] = min(own, key=lambda law: _errors([*out[:number], law, *out[number + 1 :]], fakes)[number])
    return out


def _errors(laws, fakes):
    """Return the variance of each column for one user, on average over values held equally often."""
    out = []
    for law, own in zip(laws, fakes):
        fake = 0.0 if own is None else np.array(own, np.float64) / float(WORD)
        at_zero, slope = Mixture(law, 1 / len(laws), fake).variance_line(None, None)
        out.append(float(np.mean(at_zero + slope / law.n_categories)))
    return out
