"""Sparse vector techniques: which of many queries are above a threshold, with noise, and only those cost budget.

All answer queries of sensitivity 1, with thresholds of 0. A threshold gets noise of scale `rho`, once, and each query
gets noise of scale `nu`. The neighbours are those at which such a mechanism loses most: queries that are answered
"below" rise by 1, and those that are answered "above" fall by 1.
"""

import numpy as np

from dpestim.audit.gallery.mistake import event, integral, laplace_below, laplace_density, mistake

_PAPER = "Lyu, Su, Li (2017), Understanding the sparse vector technique, PVLDB 10, figure 1"


def answered(rho, nu, below=(), above=(), then=None):
    """Return the law of whether all of `below` are answered "below", and then all of `above` are answered "above".

    Both are pairs (answer, how many such queries). `then` maps the noisy threshold, an array, to the probability of
    whatever else is to happen. It is one integral over the noisy threshold, given which queries are independent.
    """

    def density(r):
        p = laplace_density(r, rho)
        for answer, n in below:
            p = p * laplace_below(r - answer, nu) ** n
        for answer, n in above:
            p = p * laplace_below(answer - r, nu) ** n
        return p if then is None else p * then(r)

    return event(integral(density))


def neighbours(rho, nu, n_below, n_above):
    """Return the pair of laws of "below" n_below times, then "above" n_above times."""
    return (answered(rho, nu, [(0, n_below)], [(0, n_above)]), answered(rho, nu, [(1, n_below)], [(-1, n_above)]))


def noisy_value(n_below):
    """Return the pair of laws of n_below times "below", and then an answer at most 0 that is its own noisy value."""

    def between(r):  # the value, 0 and noise of scale 2, is above the threshold and at most 0
        return np.where(r < 0, 0.5 - laplace_below(r, 2), 0.0)

    return tuple(answered(2, 2, [(answer, n_below)], then=between) for answer in (0, 1))


def fresh_value(n_below):
    """Return the pair of laws of the same with noise of its own for the value, a third of epsilon for each part."""
    return tuple(
        answered(3, 6, [(answer, n_below)], [(-answer, 1)], then=lambda r, a=answer: laplace_below(np.array(-a), 3.0))
        for answer in (0, 1))


def sparse_vectors():
    """Return the sparse vector techniques of the gallery, all at a claimed epsilon of 1."""
    shared = {"claimed": (1, 0)}
    return [
        mistake(
            "Sparse vector that releases the compared value", f"A. Roth, lecture notes, 2011; algorithm 3 in {_PAPER}",
            **shared, pairs=[noisy_value(20)], right=[fresh_value(20)],
            why="A released value that is above the threshold tells that the noisy threshold is below it, and then "
                "every answer \"below\" costs budget: the loss is half an epsilon for each of 20 queries.",
            instead="dpestim.central.SparseVector, with a value_fraction for fresh noise on values"),
        mistake(
            "Sparse vector, noise that ignores the cut-off", f"Lee, Clifton, 2014; algorithm 4 in {_PAPER}",
            **shared, pairs=[neighbours(4, 4 / 3, 60, 5)], right=[neighbours(2, 20, 60, 5)],
            why="Five answers \"above\" are each paid for with three quarters of epsilon, twice, as if there were one.",
            instead="dpestim.central.SparseVector, with noise for as many answers \"above\" as are allowed"),
        mistake(
            "Sparse vector without noise on the queries",
            f"Stoddard, Chen, Machanavajjhala, 2014; algorithm 5 in {_PAPER}",
            **shared, pairs=[(answered(2, 0, [(0, 1)], [(1, 1)]), answered(2, 0, [(1, 1)], [(0, 1)]))],
            right=[(answered(2, 4, [(0, 1)], [(1, 1)]), answered(2, 4, [(1, 1)], [(0, 1)]))],
            why="One noisy threshold cannot hide the order of two queries: \"below, above\" is impossible where the "
                "first is the larger one.",
            instead="dpestim.central.SparseVector, with noise of scale 2 c / epsilon_2 for each query"),
        mistake(
            "Sparse vector without a cut-off", f"Chen, Xiao, Zhang, Xu, 2015; algorithm 6 in {_PAPER}",
            **shared, pairs=[neighbours(2, 2, 20, 20)], right=[neighbours(2, 80, 20, 20)],
            why="Every answer \"above\" costs budget, and nothing stops after the number that was paid for.",
            instead="dpestim.central.SparseVector, with a cut-off c and noise of scale 2 c / epsilon_2 for each query"),
        mistake(
            "Sparse vector, noise for monotone queries on others",
            "folklore: the noise that Lyu, Su, Li (2017) prove for monotone queries, on any",
            **shared, pairs=[neighbours(2, 6, 200, 3)], right=[neighbours(2, 12, 200, 3)],
            why="Noise of scale c / epsilon_2 is enough where all queries move to the same side; here some rise and "
                "others fall.",
            instead="dpestim.central.SparseVector, whose monotone= is for queries that all move to the same side"),
    ]
