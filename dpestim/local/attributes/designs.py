"""Which tables users report: chosen from epsilon and the sizes of columns by the exact expected error."""

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

from dpestim.local.attributes.noise import cells_of, moments_of, table_law
from dpestim.local.attributes.parities import n_coefficients
from dpestim.local.categories.grr import GRR

METHODS = ("auto", "calm", "pairs", "full", "fourier")
#: The most views of a row, and sets of columns for which designs are compared.
MOST_VIEWS, _MOST_SETS = 1 << 16, 5000


class Design(NamedTuple):
    """What users report, and how far off that is.

    Attributes
    ----------
    sets : tuple of tuple of int or None
        The columns of each table; None: parities.
    error : float
        The variance of a cell of a consistent table times the number of users, on average over cells and tables of
        `order` columns, where all cells are held equally often.
    """

    sets: tuple | None
    error: float


@lru_cache(maxsize=64)
def design_for(method, epsilon, sizes, order, max_cells):
    """Return the `Design` of a method, or raise ValueError where it does not fit."""
    d = len(sizes)
    if method == "full":
        if math.prod(sizes) > max_cells:
            raise ValueError(f"method must not be 'full' for {math.prod(sizes):,} cells, more than max_cells: take "
                             "method='calm'")
        return _of_tables((tuple(range(d)),), epsilon, sizes, order)
    if method == "fourier":
        return _of_parities(epsilon, sizes, order)
    goals = tuple(itertools.combinations(range(d), order))
    if len(goals) > MOST_VIEWS or max(cells_of(sizes, own) for own in goals) > max_cells:
        raise ValueError(f"order must be smaller: tables of {order} columns are too many, or have more cells than "
                         "max_cells")
    found = [_of_tables(goals, epsilon, sizes, order)]
    if method == "pairs":
        return found[0]
    if len(goals) <= _MOST_SETS:
        covers = {cover(goals, sizes, width, max_cells) for width in range(order + 1, d + 1)}
        found += [_of_tables(sets, epsilon, sizes, order) for sets in sorted(covers)]
    if method == "auto" and n_coefficients(sizes, order) <= MOST_VIEWS:
        found.append(_of_parities(epsilon, sizes, order))
    return min(found, key=lambda design: design.error)


def cover(goals, sizes, width, max_cells):
    """Return sets of up to `width` columns that hold all goals between them, greedily: few sets of few cells."""
    left, out = set(goals), []
    for goal in goals:
        if goal not in left:
            continue
        own = set(goal)
        while len(own) < width:
            gains = {}
            for j in set(range(len(sizes))) - own:
                if cells_of(sizes, own | {j}) <= max_cells:
                    held = sum(tuple(sorted((*part, j))) in left for part in itertools.combinations(own, len(goal) - 1))
                    gains[j] = held, -sizes[j], -j
            if not gains:
                break
            own.add(max(gains, key=gains.get))
        out.append(tuple(sorted(own)))
        left -= set(itertools.combinations(out[-1], len(goal)))
    return tuple(out)


def _of_tables(sets, epsilon, sizes, order):
    """Return the design of tables, with the error after all tables were made consistent: claim 5 of ``marginals.md``.

    Effects of sets of columns (main effects, interactions) are estimated by every table that holds these columns.
    """
    worth = {}  # of the effects of these columns: the users, over the variance of a contrast
    for own in sets:
        cells = cells_of(sizes, own)
        contrast = moments_of(table_law(epsilon, cells), 1).contrast(cells)
        for k in range(1, order + 1):
            for part in itertools.combinations(own, k):
                block = cells // cells_of(sizes, part)
                worth[part] = worth.get(part, 0.0) + 1 / (len(sets) * block * contrast)
    errors = []
    for goal in itertools.combinations(range(len(sizes)), order):
        cells = cells_of(sizes, goal)
        # (about the users who took part: what they leave of the people they are drawn from is no error)
        errors.append(sum(math.prod(sizes[j] - 1 for j in part) * (cells_of(sizes, part) / worth[part] - 1)
                          for k in range(1, order + 1) for part in itertools.combinations(goal, k)) / cells**2)
    return Design(tuple(sets), sum(errors) / len(errors))


def _of_parities(epsilon, sizes, order):
    n = n_coefficients(sizes, order)
    if n > MOST_VIEWS:
        raise ValueError(f"method must not be 'fourier' for {n:,} coefficients, more than {MOST_VIEWS:,}: take "
                         "method='calm'")
    return Design(None, _error_of_parities(epsilon, sizes, order, n))


def _error_of_parities(epsilon, sizes, order, n):
    law, total, goals = GRR.make(epsilon, 2), 0.0, 0
    variance = 4 * (float(law.variance(1, 0.5)) + 0.25)  # (of 1 - 2 f, with who is drawn)
    for goal in itertools.combinations(sizes, order):
        width = math.prod(1 << (size - 1).bit_length() for size in goal)
        total, goals = total + (width - 1) * (variance * n - 1) / width**2, goals + 1
    return total / goals


def error_of(design, epsilon, sizes, order, columns):
    """Return the variance of a cell of tables of so many columns, times users, of a design for tables of `order`."""
    if design.sets is None:
        return _error_of_parities(epsilon, sizes, columns, n_coefficients(sizes, order))
    return _of_tables(design.sets, epsilon, sizes, columns).error
