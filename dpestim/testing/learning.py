"""What learns from reports of rows with classes, and what privatises columns before a plain model.

Promises are those of the laws; what is sent and what features mean is looked at with many equal rows, N of them: an
estimate further than Z standard deviations from the truth fails (alpha = 1e-6 for a few hundred cells).
"""

import math

import numpy as np

from dpestim.privacy import Neighbours
from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing.behaviour import Subject, check_parameters_are_refused
from dpestim.testing.tools import Book, differs_each_time, refuses, require

#: Rows of the statistical checks, and how many standard deviations are too many: 2 * 500 * 2.6e-10 < 1e-6.
N, Z = 20_000, 6.2
ROWS = 60


class Learners(Subject):
    """What learns from reports, to check."""

    wrong = {"classes": ([], [1], [1, 1], "ab"), "n_bins": (1, 2.5, "4", True), "n_sampled": (0, 99, 1.5, "1"),
             "alpha": (0, math.nan, "1"), "bounds": ((1, 0), (0, math.nan)), "categories": ([], [[], [1], [1]]),
             "correction": ("other", 3), "predict_on": ("none", None), "remainder": ("keep", None),
             "transformers": ([], "x", [("a", 3, [0])])}

    def checks(self):
        """Return the checks."""
        return LEARNER_CHECKS

    def takes(self, name):
        """Tell whether a setting makes something of a parameter."""
        return getattr(self.estimator, name, None) is not None or (
            name in ("random_state", "n_jobs", "n_sampled") and super().takes(name))

    def use(self, est):
        """Fit."""
        est.fit(*self.rows())

    def rows(self, n=ROWS, seed=0):
        """Return the arguments of `fit`."""
        X, y = self.estimator._test_data(n, seed)
        return (X,) if y is None else (X, y)


class Privatized(Learners):
    """What privatises columns, to check."""

    def checks(self):
        """Return the checks."""
        return PRIVATIZED_CHECKS


def check_learner_promise(learner):
    """A row has exactly epsilon, all that is reported of it together; one fit is one charge, and answers are free."""
    rows, epsilon = learner.rows(), canonical_epsilon(learner.estimator.epsilon)
    est = learner.fresh(ledger=Book()).fit(*rows)
    spent = sorted(law.plain_epsilon for law in est.randomizers_)[-(getattr(est, "n_sampled_", None) or len(
        est.randomizers_)):]
    require(sum(spent) == epsilon, "what a row reports must add up to epsilon")
    paid = est.ledger.paid
    require(len(paid) == 1 and paid[0][0].epsilon == epsilon == est.privacy_.epsilon, "a fit must charge epsilon, once")
    require(paid[0][0].neighbours is Neighbours.LOCAL and paid[0][2] == ROWS, "the charge must be local, for all rows")
    require(learner.fresh().privacy_.epsilon == epsilon, "privacy_ must be known before any data")
    if hasattr(est, "predict"):
        est.predict(rows[0])
        require(len(paid) == 1, "predictions must not charge")
    refused = learner.fresh(ledger=Book(refuse=True))
    refuses(lambda: refused.fit(*rows), "an overdraft", refused)


def check_learner_verbs(learner):
    """`fit` is `privatize` and `aggregate`; batches and merged halves count all users; a seed reproduces it all."""
    rows = learner.rows(400)
    whole = learner.fresh().fit(*rows)
    require(_same(whole, learner.fresh().aggregate(learner.fresh().privatize(*rows))), "fit must be its own two halves")
    parts = [tuple(part[at] for part in rows) for at in (slice(0, 150), slice(150, None))]
    batches = learner.fresh().fit(*parts[0]).partial_fit(*parts[1])
    require(_same(whole, batches) and batches.n_users_ == 400, "batches must give what one fit of all rows does")
    one, two = learner.fresh(random_state=1).fit(*parts[0]), learner.fresh(random_state=2).fit(*parts[1])
    joined = learner.fresh().aggregate(learner.fresh(random_state=1).privatize(*parts[0]))
    joined.aggregate(learner.fresh(random_state=2).privatize(*parts[1]))
    require(_same(one.merge(two), joined) and one.n_users_ == 400, "merging must add the counts")
    refuses(lambda: one.merge(two), "counting the same users twice", one)
    new = differs_each_time(lambda: learner.fresh(random_state=None).fit(*rows), _same)
    require(new, "random_state=None must give new noise")


def check_learner_shares(learner):
    """Of equal rows, the pair of class and value that they hold has the share 1, and others 0."""
    rows = tuple(np.repeat(part[:1], N, axis=0) for part in learner.rows(1))
    est = learner.fresh().fit(*rows)
    label = list(est.classes_).index(rows[1][0])
    for column, value, (shares, noise, _) in zip(est._columns, rows[0][0], est._columns.shares(est._counts)):
        truth = np.zeros_like(shares)
        truth[label, column.feature.read(np.array([value]), None)[0][0]] = 1.0
        # (variances of the law are lines between that of a share of 0 and of 1)
        law, m = column.law, N * est.n_sampled_ / len(est._columns)
        room = Z * np.sqrt(max(noise, *(float(np.max(law.variance(m, f))) for f in (0.0, 1.0))))
        require(np.abs(shares - truth).max() < room, "what is reported is not the pair of class and value")


def check_learner_predictions(learner):
    """Probabilities are finite, sum to 1, and agree with `predict`; classes are those that were declared."""
    X, y = learner.rows()
    est = learner.fresh().fit(X, y)
    proba = est.predict_proba(X)
    require(list(est.classes_) == sorted(set(np.asarray(est.classes).tolist())), "classes_ must be the declared")
    require(proba.shape == (ROWS, len(est.classes_)) and np.isfinite(proba).all(), "one finite number a class")
    require(np.allclose(proba.sum(axis=1), 1) and (proba >= 0).all(), "probabilities must sum to 1")
    require((est.classes_[proba.argmax(axis=1)] == est.predict(X)).all(), "predict must be the likeliest class")


def check_learner_refusals(learner):
    """Bad parameters and rows are errors that name them, and never a value, before anything is charged."""
    rows = learner.rows()
    check_parameters_are_refused(learner)
    X = rows[0].astype(object)
    X[3] = np.nan
    bad = learner.fresh(ledger=Book())
    require("column" in refuses(lambda: bad.fit(X, *rows[1:]), "a missing value", bad), "the error must name a column")
    if len(rows) > 1:
        y = rows[1].astype(object)
        y[3] = "a secret"
        require("secret" not in refuses(lambda: bad.fit(rows[0], y), "a class that is none", bad), "it shows a class")
    require(not bad.ledger.paid, "bad rows must be refused before anything is charged")


def check_privatized_features(step):
    """Features have their names; of equal rows they have the mean of the true ones, unless they are uncorrected.

    With a correction by the posterior that is what all rows together say; without bias each report does.
    """
    X = np.repeat(step.rows(1)[0], N, axis=0)
    exact = step.fresh(predict_on="raw").fit(X[:9]).transform(X[:1])[0]
    raw = step.fresh(predict_on="raw", correction="unbiased").fit_transform(X)
    require(raw.shape == (N, len(exact)), "a row must have the features of its true values")
    room = Z * raw.std(axis=0) / np.sqrt(N)
    require((np.abs(raw.mean(axis=0) - exact) <= room).all(), "features without bias must have the true mean")
    est = step.fresh(correction="posterior")
    known = est.fit_transform(X)
    # (an estimated distribution next to the edge of a domain is biased inwards by about its error)
    require((np.abs(known.mean(axis=0) - exact) <= 2 * room + 0.02).all(), "posterior means must add up to the truth")
    require(len(est.get_feature_names_out()) == len(exact), "every feature must have a name")


def check_privatized_noise(step):
    """A seed reproduces features; new rows cost epsilon where they are reported, and true values are for no analyst."""
    X = step.rows()[0]
    one = step.fresh(ledger=Book())
    first = one.fit_transform(X)
    require(np.array_equal(first, step.fresh().fit_transform(X)), "an int random_state must reproduce the features")
    require(not np.array_equal(first, step.fresh(random_state=1).fit_transform(X)), "another seed gives other noise")
    one.set_params(predict_on="privatized").transform(X)
    require(len(one.ledger.paid) == 2, "reporting rows again must be charged again")
    one.set_params(predict_on="raw").transform(X)
    require(len(one.ledger.paid) == 2, "what leaves nobody's device must cost nothing")
    with config_context(strict=True):
        refuses(lambda: one.transform(X), "true values in strict mode", one)


def _same(a, b):
    return all(np.array_equal(mine, other) for mine, other in zip(a._counts, b._counts, strict=True))


LEARNER_CHECKS = (check_learner_promise, check_learner_verbs, check_learner_shares, check_learner_predictions,
                  check_learner_refusals)
PRIVATIZED_CHECKS = (check_learner_promise, check_learner_refusals, check_privatized_features, check_privatized_noise)
