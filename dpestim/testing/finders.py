"""What finds frequent values of huge domains by reports: promises, verbs, what is found and refused, strict mode."""

import math
import warnings

import numpy as np

from dpestim.privacy.config import config_context
from dpestim.testing.behaviour import Subject, check_parameters_are_refused, check_state_stays
from dpestim.testing.learning import Learners, check_learner_promise, check_learner_verbs
from dpestim.testing.tools import Book, refuses, require

#: Rows of the statistical check, and how many standard errors are too many.
N, Z = 20_000, 6.2


class Finders(Learners):
    """What finds frequent values, to check."""

    wrong = {"n_bits": (0, 65, 1.5, "8", True), "max_length": (0, 65, 1.5, "8", True), "alphabet": ("", "aa", 3, ["a"]),
             "method": ("other", None, 1), "n_top": (0, 1001, 1.5, "2", True), "threshold": (-0.1, 1.0, math.nan, "0"),
             "alpha": (0, 1, math.nan, "1"), "hash_seed": (-1, 1.5, "0", None)}

    def checks(self):
        """Return the checks."""
        return (check_learner_promise, check_learner_verbs, check_finder_state, check_finder_finds,
                check_finder_refusals, check_finder_is_total_in_strict_mode)

    def takes(self, name):
        """Tell whether a setting makes something of a parameter."""
        given = getattr(self.estimator, name, None) is not None
        return name in self.estimator.get_params() and (given or name in ("random_state", "n_jobs"))

    def rows(self, n=60, seed=0):
        """Return the arguments of `fit`."""
        return (self.estimator._test_data(n, seed)[0],)


class _Plain(Subject):
    """The same estimator, whose rows are those of `fit` by themselves."""

    def rows(self, n=60, seed=0):
        """Return valid rows."""
        return self.estimator._test_data(n, seed)[0]


def check_finder_state(finder):
    """Pickles and clones stay what they were; the first data freezes the law; merging is of the same law, new users."""
    check_state_stays(_Plain(finder.estimator))


def check_finder_finds(finder):
    """Of equal rows, their value is found first and confirmed, with about the frequency 1."""
    X = np.repeat(finder.rows(1)[0], N, axis=0)
    est = finder.fresh().fit(X)
    found = est.heavy_hitters_
    require(found.values[0] == X[0, 0] and found.confirmed[0], "the value of all rows must be found first")
    require(abs(found.frequencies[0] - 1) < Z * found.standard_errors[0], "its frequency must be 1")
    require(len(est.confidence_interval()) == len(found.values) <= est.n_top, "an interval for each of n_top values")
    others = [value for value in finder.rows()[0][:, 0] if value != X[0, 0]]
    other = est.estimate(np.array(others[:1], X.dtype))
    require(abs(other.frequencies[0]) < Z * other.standard_errors[0], "a value that nobody holds must have frequency 0")
    answer = est.estimate(X[:2, 0])
    require((answer.frequencies == found.frequencies[0]).all(), "estimate must say of a value what was found")


def check_finder_refusals(finder):
    """Bad parameters and rows are errors that name them, and never a value, before anything is charged."""
    check_parameters_are_refused(finder)
    rows, tables = finder.rows()[0], []
    for value in (None, np.nan, "a secret that is much too long", -1, 2.5, b"a secret", [1]):
        tables.append(rows.astype(object))
        tables[-1][3, 0] = value
    if rows.dtype.kind == "i":  # (which are read in another way)
        tables += [rows - 1000, rows + (1 << finder.estimator.n_bits)]
    for X in tables:
        est = finder.fresh(ledger=Book())
        message = refuses(lambda X=X, est=est: est.fit(X), "what is no value", est)
        require("column" in message and "secret" not in message, "the error must name the column, and no value")
        require(not est.ledger.paid, "bad rows must be refused before anything is charged")


def check_finder_is_total_in_strict_mode(finder):
    """In strict mode what is no value counts as one, without an error or a warning."""
    X = finder.rows()[0].astype(object)
    with config_context(strict=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in (X[0, 0], None, "a secret that is much too long", -1, 2.5, float("inf"), 10**30, b"x"):
            X[3, 0] = value
            require(finder.fresh().fit(X).n_users_ == len(X), "strict mode must take whatever the values are")
