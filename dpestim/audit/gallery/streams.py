"""Rows of a stream: noise for coefficients that move together, and steps at which nothing seems to be released."""

import math

import numpy as np

from dpestim.audit.gallery.mistake import event, laplace_below, mistake

_SURVEY = ("a survey of local privacy, on Ghane, Jolfaei, Kulik et al. (2020), Preserving privacy in the internet of "
           "connected vehicles")
#: Cells of a row are 2 to this power, and steps of a stream.
LEVELS, STEPS = 3, 20


def haar_rows(levels=LEVELS):
    """Return the orthonormal Haar matrix: the coefficients of a row of 2^levels cells are its product with the row."""
    rows, n = [np.ones(2**levels)], 2**levels
    for level in range(levels, 0, -1):
        half = 2 ** (level - 1)
        for start in range(0, n, 2 * half):
            row = np.zeros(n)
            row[start : start + half], row[start + half : start + 2 * half] = 1, -1
            rows.append(row)
    return np.array([row / math.sqrt((row * row).sum()) for row in rows])


def coefficients_move(levels=LEVELS):
    """Return by how much one event moves each coefficient that it moves: of the total, and one of each level."""
    return [2 ** (-levels / 2), *(2 ** (-level / 2) for level in range(1, levels + 1))]


def noisy_coefficients(scale):
    """Return the pair of laws of whether no coefficient that an event moves is above 0, for no event and for one."""
    moves = coefficients_move()
    return tuple(event(math.prod(float(laplace_below(-1.0 * there * move, scale)) for move in moves))
                 for there in (0, 1))


def first_publication(counts, scale, threshold=1.0):
    """Return the law of the first step whose noisy count is above the threshold, None: there is none."""
    law, nothing = {}, 1.0
    for t, count in enumerate(counts):
        silent = float(laplace_below(np.array(threshold - count), scale))
        law[t], nothing = nothing * (1 - silent), nothing * silent
    return {**law, None: nothing}


def silent_steps(scale, others):
    """Return the pair of laws of whether all steps are silent: every row has so many users, and one more."""
    return tuple(event(first_publication([others + there] * STEPS, scale)[None]) for there in (0, 1))


def tested_row(scale):
    """Return the pair of laws of whether a row is published, and then above 1: noisy decision, then a noisy count."""
    return tuple(event(math.prod(float(laplace_below(np.array(there - 1.0), scale)) for _ in range(2)))
                 for there in (0, 1))


def rows_of_streams():
    """Return the entries about rows of a stream, all at a claimed epsilon of 1."""
    shared = {"claimed": (1, 0)}
    return [
        mistake(
            "Orthonormal Haar coefficients, noise for a change of 1",
            f"folklore, where noise is for counts; {_SURVEY}, names independent Laplace noise and no sensitivity",
            **shared, pairs=[noisy_coefficients(1.0)], right=[noisy_coefficients(sum(coefficients_move()))],
            why="One event moves the total and a coefficient of each level, together by up to 1 + sqrt(2) in the L1 "
                "norm.",
            instead="dpestim.stream.HaarRelease, whose noise is for all coefficients that an event moves"),
        mistake(
            "A row is published only where the exact one has changed",
            "folklore: a step without a publication is said to cost nothing",
            **shared, pairs=[({"nothing": 1}, {"published": 1})], right=[tested_row(2.0)],
            why="Whether the exact row has changed is released without noise.",
            instead="dpestim.stream.SVTRelease or dpestim.stream.WEventRelease, whose decisions are noisy and paid "
                    "for"),
        mistake(
            "Steps of a stream without a publication, not counted",
            f"{_SURVEY}: rows get noise, and cost budget where they differ from the published one",
            **shared, pairs=[silent_steps(1.0, others) for others in (0, 1)],
            right=[silent_steps(1.0 * STEPS, others) for others in (0, 1)],
            why="A decision on a noisy row costs the epsilon of its noise, whether the row is then published or not.",
            instead="dpestim.stream.SVTRelease, or dpestim.stream.WEventRelease with an epsilon for any w steps"),
    ]
