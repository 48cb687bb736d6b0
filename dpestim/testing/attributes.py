"""What estimates many columns, or tables of them, from one report a user: promises, verbs, refusals.

What is estimated is looked at with many equal rows, N of them: an estimate further than Z standard deviations from the
truth fails (alpha = 1e-6 for a few hundred cells).
"""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np

from dpestim.privacy import Neighbours
from dpestim.privacy.exact import WORD, canonical_epsilon, within
from dpestim.testing.behaviour import Subject, check_parameters_are_refused
from dpestim.testing.learning import N, Z, check_learner_verbs
from dpestim.testing.tools import Book, refuses, require

ROWS = 60


class Attributes(Subject):
    """What estimates many columns, to check."""

    wrong = {"strategy": ("other", None, 3), "estimator": ("other", 3, ["grr"], {}), "fake": ("other", 3),
             "neighbours": ("other", None, 1), "categories": ([], [[], [1]]), "postprocess": ("other", 3),
             "prior": ([[1.0]], 3), "order": (0, 1.5, 99, True, "2"), "method": ("other", None, 3),
             "max_cells": (0, 1.5, "4", True), "n_users": (0, 1.5, "4", True)}

    def checks(self):
        """Return the checks."""
        return CHECKS

    def rows(self, n=ROWS, seed=0):
        """Return the arguments of `fit`."""
        return (self.estimator._test_data(n, seed)[0],)

    def use(self, est):
        """Fit."""
        est.fit(*self.rows())

    def takes(self, name):
        """Tell whether a setting makes something of a parameter: a prior is for fakes of it, `None` is the default."""
        return (super().takes(name) and name != "prior") or getattr(self.estimator, name, None) is not None


def check_attributes_promise(subject):
    """A row has exactly epsilon, under a relaxation that is named or plainly; one fit is one charge."""
    rows, epsilon = subject.rows(), canonical_epsilon(subject.estimator.epsilon)
    est = subject.fresh(ledger=Book()).fit(*rows)
    paid, stated = est.ledger.paid, est.privacy_
    require(len(paid) == 1 and paid[0][0].epsilon == stated.epsilon and paid[0][2] == ROWS, "a fit must charge once")
    require(stated.neighbours is Neighbours.LOCAL and not stated.delta, "the guarantee must be local and pure")
    if stated.relaxation is None:
        require(stated.epsilon == epsilon, "a row must have epsilon")
    else:
        require(stated.relaxed_epsilon == epsilon <= stated.epsilon, "epsilon must hold under the relaxation")
    require(subject.fresh().privacy_.epsilon == stated.epsilon, "privacy_ must be known before any data")
    refused = subject.fresh(ledger=Book(refuse=True))
    refuses(lambda: refused.fit(*rows), "an overdraft", refused)


def check_attributes_truth(subject):
    """Of equal rows the values that they hold have the share 1, and others 0, but for the stated errors."""
    X = np.repeat(subject.rows(1)[0], N, axis=0)
    est = subject.fresh(random_state=7).fit(X)
    for column, f, errors in est._told_of(X[0]):
        require(np.isfinite(f).all(), "shares must be finite")
        truth = np.zeros(f.shape)
        truth[column] = 1.0
        require((np.abs(f - truth) <= Z * errors + 1e-6).all(), "what is reported is not what the rows hold")


def check_attributes_hidden(subject):
    """Where the true column hides among fakes, reports of all columns together have the law that keeps the promise.

    The law is enumerated, exactly, for all pairs of rows.
    """
    est = subject.fresh(random_state=7)
    columns = est._columns_now()
    if not hasattr(columns, "fakes") or None in columns.fakes:
        return
    sizes = [range(law.n_categories) for law in columns.laws]
    laws = {row: _law_of_row(columns, row) for row in product(*sizes)}
    for one, other in permutations(laws, 2):
        worst = max(a / b for a, b in zip(laws[one], laws[other]))
        alike = sum(a == b for a, b in zip(one, other)) == len(sizes) - 1
        promised = columns.promised if alike and columns.neighbours == "attribute" else est.privacy_.epsilon
        require(within(worst, 1, promised), "no report may be likelier than e^epsilon lets")
    row = tuple(size[-1] for size in sizes)
    X = np.array([[own[place] for own, place in zip(est.categories, row)]] * N, object)
    reports, place = est.privatize(X), np.zeros(N, np.int64)
    for law, part in zip(columns.laws, columns.slices):
        own = np.ascontiguousarray(reports[:, part], law.report_dtype)
        told = law.law_indices(np.zeros(N, law.code_dtype), own)[1]
        place = place * len(law.transition_matrix()[0]) + told
    chances = np.array(list(map(float, laws[row])))
    apart = np.abs(np.bincount(place, minlength=len(chances)) - N * chances)
    require((apart <= Z * np.sqrt(N * chances * (1 - chances)) + 1).all(), "reports must have the law of fakes")


def _law_of_row(columns, row):
    """Return the law of the report of a row, a list of Fractions over the reports of all columns together."""
    true = [law.transition_matrix()[place] for law, place in zip(columns.laws, row)]
    fake = [[sum(Fraction(weight, WORD) * line[y] for weight, line in zip(own, law.transition_matrix()))
             for y in range(len(line))] for law, own, line in zip(columns.laws, columns.fakes, true)]
    out = []
    for report in product(*(range(len(line)) for line in true)):
        each = [math.prod((true if k == j else fake)[k][y] for k, y in enumerate(report)) for j in range(len(true))]
        out.append(sum(Fraction(chance, WORD) * own for chance, own in zip(columns.chances, each)))
    return out


def check_attributes_refusals(subject):
    """Bad parameters and rows are errors before anything is charged, and name a column and never a value."""
    check_parameters_are_refused(subject)
    X = subject.rows()[0].astype(object)
    X[3, 0] = "a secret"
    bad = subject.fresh(ledger=Book())
    message = refuses(lambda: bad.fit(X), "a value that is none", bad)
    require("column" in message and "secret" not in message, "the error must name the column, and no value")
    require(not bad.ledger.paid, "bad rows must be refused before anything is charged")
    one, turned = subject.fresh().fit(*subject.rows()), [list(own)[::-1] for own in subject.estimator.categories]
    other = subject.fresh(categories=turned, random_state=1).fit(*subject.rows(seed=1))
    refuses(lambda: one.merge(other), "merging where the same code is another value", one)


CHECKS = (check_attributes_promise, check_learner_verbs, check_attributes_truth, check_attributes_hidden,
          check_attributes_refusals)
