"""Models: objective perturbation without the term for the curvature."""

import math

from scipy.optimize import brentq

from dpestim.audit.density import Density
from dpestim.audit.gallery.mistake import mistake

#: Rows of one number, and how often, whose labels are all 1: neighbours, ten of eleven rows in common.
FIRST = ((1.0, 1), (-0.006, 10))
SECOND = ((0.0, 1), (-0.006, 10))


def coefficient(data, rate, strength):
    """Return the density of the coefficient of a logistic regression whose objective is perturbed by b w.

    Parameters
    ----------
    data : sequence of (float, int)
        Rows of one number, with label 1, and how many of each.
    rate : float
        b has the density rate / 2 e^(-rate abs(b)).
    strength : float
        n Lambda: the factor of w^2 / 2 in the sum over rows.

    Returns
    -------
    Density
        By the change of variables from b to w: given the data, each w is the minimiser for exactly one b(w), minus the
        gradient, and the density is that of b(w) times the second derivative, which the first version left out.
    """

    def noise_at(w):
        return sum(n * x * _above(-x * w) for x, n in data) - strength * w

    def density(w):
        curvature = strength + sum(n * x * x * _above(x * w) * _above(-x * w) for x, n in data)
        return rate / 2 * math.exp(-rate * abs(noise_at(w))) * curvature

    reach = (1 + sum(n for _, n in data)) / strength
    return Density(density, (brentq(noise_at, -reach, reach), 0.0))


def _above(t):
    """Return 1 / (1 + e^-t)."""
    return 1 / (1 + math.exp(-t)) if t >= 0 else math.exp(max(t, -745.0)) / (1 + math.exp(max(t, -745.0)))


def corrected(epsilon, strength):
    """Return (rate, strength) as published in 2011, where the curvature costs more than epsilon."""
    return epsilon / 4, max(strength, 0.25 / math.expm1(epsilon / 4))


def objective_perturbation():
    """Return the entry about logistic regression."""
    epsilon, n, regulariser = 0.5, 11, 0.001
    rate, strength = corrected(epsilon, n * regulariser)
    return [
        mistake(
            "Objective perturbation of 2008",
            "Chaudhuri, Monteleoni (2008), Privacy-preserving logistic regression, NIPS, as recalled: without the "
            "determinant",
            claimed=(epsilon, 0),
            pairs=[tuple(coefficient(data, epsilon / 2, n * regulariser) for data in (FIRST, SECOND))],
            right=[tuple(coefficient(data, rate, strength) for data in (FIRST, SECOND))],
            why="A row also changes how curved the objective is, and so how densely coefficients lie; with little "
                "regularisation that alone tells it.",
            instead="dpestim.linear_model.DPLogisticRegression"),
    ]
