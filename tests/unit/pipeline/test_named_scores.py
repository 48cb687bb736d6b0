"""Scores of a private search by the names that scikit-learn has for them."""

import math

import numpy as np
import pytest
from sklearn import metrics
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import dpestim
from dpestim.linear_model import DPLinearRegression, DPLinearSVC, DPLogisticRegression
from dpestim.model_selection import PrivateSearchCV
from dpestim.model_selection.scores import NAMED, scorer_of
from dpestim.naive_bayes import DPGaussianNB
from dpestim.privacy import Neighbours
from dpestim.testing import tools

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(300, 2))
CLASSES, NUMBERS = np.where(X[:, 0] > 0.4, "b", np.where(X[:, 1] > 0.2, "c", "a")), X[:, 0] - X[:, 1] / 2
WIDE = {"neg_log_loss": (-40, 0), "neg_brier_score": (-1, 0), "neg_mean_absolute_error": (-4, 0),
        "neg_mean_squared_error": (-16, 0)}


def classifier(**params):
    return DPGaussianNB(bounds=(-1, 1), **{"classes": ["a", "b", "c"], **params})


def regressor():
    return DPLinearRegression(bounds=(-1, 1), target_bounds=(-1.5, 1.5))


@pytest.mark.parametrize("name", NAMED)
def test_named_scores_are_those_of_scikit_learn(name):
    assert WIDE.keys() == NAMED.keys()
    several = (classifier(), CLASSES) if NAMED[name][0] == "predict_proba" else (regressor(), NUMBERS)
    two = (classifier(classes=["no", "yes"]), np.where(X[:, 0] > 0, "yes", "no"))
    for model, y in (several, two) if NAMED[name][0] == "predict_proba" else (several,):
        fitted, scorer = model.set_params(random_state=0).fit(X, y), scorer_of(name, WIDE[name])
        if name == "neg_brier_score":
            found = fitted.predict_proba(X)
            theirs = -np.square(found - (np.asarray(y)[:, None] == fitted.classes_)).sum(axis=1).mean() / 2
            if len(fitted.classes_) == 2:
                assert theirs == pytest.approx(-metrics.brier_score_loss(y, found[:, 1], pos_label="yes"))
        else:
            theirs = metrics.get_scorer(name)(fitted, X, y)
        assert scorer.mean(scorer.total(fitted, X, y, False), len(X)) == pytest.approx(theirs, abs=1e-4)


@pytest.mark.parametrize("name", sorted(metrics.get_scorer_names()))
def test_every_name_of_scikit_learn_is_taken_or_refused_with_what_stands_for_it(name):
    """One row moves a named score by no more than the width of its bounds, and others are refused before the charge."""
    for model, y in ((classifier(), CLASSES), (regressor(), NUMBERS)):
        book = tools.Book()
        bounds = (-1, 0) if NAMED.get(name, (0, 0, 0))[2] is None else None
        search = PrivateSearchCV(model, {}, epsilon=8.0, scoring=name, score_bounds=bounds, ledger=book, random_state=0)
        known, fits = name == "accuracy" or name in NAMED, name.endswith("_error") == (y is NUMBERS)
        if known and fits:
            assert math.isfinite(search.fit(X, y).best_score_)
            assert len(book.paid) == 1
            continue
        with pytest.raises(ValueError, match="scoring") as caught:
            search.fit(X, y)
        assert known or any(f'"{other}"' in str(caught.value) or f"'{other}'" in str(caught.value) for other in NAMED)
        assert not book.paid


def test_what_cannot_be_scored_is_refused():
    search = PrivateSearchCV(DPLinearSVC(data_norm=2.0, classes=[False, True]), {}, scoring="neg_log_loss")
    with pytest.raises(ValueError, match="predict_proba"):
        search.fit(X, X[:, 0] > 0)
    search = PrivateSearchCV(regressor(), {}, scoring="neg_mean_squared_error")
    with pytest.raises(ValueError, match="score_bounds"):
        search.fit(X, NUMBERS)


def test_one_row_counts_little_and_a_strict_search_takes_names():
    fitted, scorer = classifier(random_state=0).fit(X, CLASSES), scorer_of("neg_log_loss", None)
    least = scorer.total(fitted, X[:1], np.array(["nobody"]), True)
    assert least == 0  # (of a class that nobody declared: the lowest score, as nothing may be said)
    totals = [scorer.total(fitted, X[:1], np.array([y]), False) for y in ("a", "b", "c")]
    assert all(0 <= total <= scorer.sensitivity for total in totals)
    model = DPLogisticRegression(data_norm=2.0, classes=["a", "b", "c"])
    with dpestim.config_context(strict=True):
        search = PrivateSearchCV(make_pipeline(Normalizer(), model), {"dplogisticregression__C": [1.0, 2.0]},
                                 epsilon=9.0, scoring="neg_log_loss", random_state=0)
        with pytest.raises(ValueError, match="strict"):
            search.fit(X, CLASSES)  # (the normalizer is no private estimator)
        search = PrivateSearchCV(model, {}, epsilon=9.0, scoring="neg_log_loss", random_state=0)
        assert search.fit(X, CLASSES).best_score_ < 0


def test_a_search_is_about_replaced_rows_in_any_block():
    with dpestim.config_context(neighbours="add_remove"):
        search = PrivateSearchCV(classifier(), {"var_smoothing": [1e-9, 1e-3]}, epsilon=8.0, random_state=0)
        search.fit(X, CLASSES)
    assert search.privacy_.neighbours is search.best_estimator_.privacy_.neighbours is Neighbours.SUBSTITUTION
    assert search.estimator.neighbours is None
