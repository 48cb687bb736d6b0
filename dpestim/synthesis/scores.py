"""Answers of a model, the sets of columns that are wanted, and scores of tables that may be measured."""

import itertools
import math

import numpy as np

from dpestim.postprocessing.junction import all_sets

#: Scores are in steps of a row over so many.
SCALE = 1 << 10
#: Scores are cut here.
_FAR = 1 << 60


def answer_of(model, columns):
    """Return the table of a model in rows; None where there is no room for what lies between, which is public."""
    try:
        return model.total * model.tree.marginal(columns)
    except ValueError:
        return None


def places_of(columns, what, labels, n_columns):
    """Return the places of distinct columns, given by names, or by places where there are none."""
    if isinstance(columns, str) or not isinstance(columns, list | tuple | np.ndarray) or not len(columns):
        raise ValueError(f"{what} must be a list of names of columns (without names: of places)")
    known = {label: j for j, label in enumerate(range(n_columns) if labels is None else labels)}
    try:
        places = tuple(known[column] for column in columns)
    except (KeyError, TypeError):
        kind = "places of columns, which have no names" if labels is None else "names of columns"
        raise ValueError(f"{what} must be a list of {kind}: there are {', '.join(map(repr, list(known)[:20]))}"
                         f"{', ...' if len(known) > 20 else ''}") from None
    if len(set(places)) < len(places):
        raise ValueError(f"{what} must be distinct")
    return places


def wanted_sets(workload, n_columns, degree):
    """Return the sets of 2 to `degree` columns that matter, sorted: all, or those within a set of the workload."""
    if workload is None:
        return all_sets(n_columns, degree)
    within = {part for own in workload for size in range(2, min(degree, len(own)) + 1)
              for part in itertools.combinations(sorted(own), size)}
    return sorted(within, key=lambda own: (len(own), own))


def cells_in(columns, sizes):
    """Return how many cells a table of some columns has."""
    return math.prod(sizes[j] for j in columns)


def counted(codes, columns, sizes):
    """Return how many rows have each combination of codes of some columns."""
    shape = tuple(sizes[j] for j in columns)
    cells = np.zeros(len(codes[0]), np.int64)
    for j in columns:
        cells = cells * sizes[j] + codes[j]
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)


def penalties(candidates, sizes, noise, off):
    """Return by how many rows noise would move each table, and has moved what its single columns say of it.

    Errors of single columns are independent, and so add as squares do.
    """
    return {own: noise * cells_in(own, sizes) + off * math.hypot(*(sizes[j] for j in own))
            for own in candidates}


def nothing_score(n_candidates, law):
    """Return the score of measuring nothing: it weighs four times what all candidates do that teach nothing."""
    return min(math.ceil(2 * law.sensitivity / float(law.epsilon) * math.log(4 * n_candidates)), _FAR)


def is_noise(known, noisy, precision):
    """Tell whether a noisy table is no further from what the model knew than noise alone would be, in squares."""
    return precision * np.square(noisy - known).sum() <= known.size


def scores_of(candidates, tables, penalties):
    """Return scores, integers: how far the model is from rows, less what noise does, times the columns of a table.

    Only counts are private, and they are integers here: a row that is replaced moves two cells of a table by one row
    each, and the score of it by at most 2 SCALE times its columns, exactly.
    """
    out = []
    for own, counts in candidates.items():
        public = np.rint(np.clip(tables[own], 0, 2**40) * SCALE).astype(np.int64)
        away = int(np.abs(SCALE * counts - public).sum())
        score = len(own) * (away - round(penalties[own] * SCALE))
        out.append(max(-_FAR, min(score, _FAR)))  # (which moves no two scores further apart)
    return np.array(out, np.int64)
