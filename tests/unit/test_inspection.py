"""Privacy cards: what they say, about whom, and that nothing private or foreign gets into them."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context as sklearn_config
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

from dpestim.base import all_estimators
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inspection import privacy_card
from dpestim.local import GRRFrequencyEstimator, OUEFrequencyEstimator

X = np.array([[0], [1], [1], [0]])
SECTIONS = ["What was collected", "From whom", "Who must be trusted", "The promise", "The odds",
            "What is not protected"]


def grr(epsilon=1.0, **params):
    return GRRFrequencyEstimator(epsilon, **{"categories": [[0, 1]], **params})


def test_a_card_says_what_must_be_said():
    frame = pd.DataFrame({"smokes": [0, 1, 1]})
    card = privacy_card(grr(np.log(3).item()).fit(frame))
    assert list(card.sections) == SECTIONS
    text = str(card)
    for part in ("smokes", "3 reports", "GRRFrequencyEstimator", "Nobody.", "one user", "at most 3 to 1", "75 %",
                 "epsilons add up"):
        assert part in text
    assert repr(card) == text


def test_html_is_self_contained_and_escaped():
    frame = pd.DataFrame({"<script>x</script>": [0, 1, 1]})
    html = privacy_card(grr().fit(frame)).html
    assert not re.search(r"https?:|<script|<link|src=|url\(", html)
    assert "&lt;script" in html
    assert html.count("<div") == html.count("</div>")


def test_what_was_inferred_protects_nothing():
    with pytest.warns(PrivacyLeakWarning):
        est = grr(categories="auto").fit(X)
    card = privacy_card(est)
    assert card.sections["What is not protected"].startswith("Nothing, in fact. The categories were learned")
    assert "everything about anybody" in card.sections["The odds"]


def test_steps_that_are_not_private_are_named():
    raw = make_pipeline(OrdinalEncoder(), OUEFrequencyEstimator(1.0, categories=[[0.0, 1.0]])).fit(X)
    assert "Step ordinalencoder (OrdinalEncoder) learned from raw values" in str(privacy_card(raw))
    clean = make_pipeline(FunctionTransformer(), grr()).fit(X)
    assert "learned from" not in str(privacy_card(clean))
    supervised = make_pipeline(grr(), BernoulliNB()).fit(X, [0, 1, 1, 0])
    assert "Step bernoullinb (BernoulliNB) learned from reports, but its targets y were raw" in str(
        privacy_card(supervised)
    )


def test_guarantees_of_several_steps_add():
    both = ColumnTransformer([("a", grr(0.5), [0]), ("b", grr(0.25), [1])]).fit(np.hstack([X, X]))
    card = privacy_card(make_pipeline(both))
    assert "0.75-differential privacy" in card.sections["The promise"]
    assert card.sections["What was collected"].count("GRRFrequencyEstimator") == 2


def test_searches_show_their_best_and_strangers_are_refused():
    search = GridSearchCV(grr(), {"epsilon": [1.0]}, cv=2, error_score="raise").fit(X)
    assert "1-differential privacy" in str(privacy_card(search))
    with pytest.raises(ValueError, match="one of dpestim's"):
        privacy_card(LogisticRegression())


def test_notebooks_show_the_card_of_a_fitted_estimator():
    est = grr()
    assert "Privacy card" not in est._repr_html_()
    est.fit(X)
    assert est._repr_html_() == privacy_card(est).html
    assert est._repr_mimebundle_()["text/html"] == privacy_card(est).html
    with sklearn_config(display="text"):
        assert "text/html" not in est._repr_mimebundle_()


@pytest.mark.parametrize(("name", "cls"), all_estimators())
def test_every_estimator_of_the_registry_has_a_card(name, cls):
    est = cls(**cls._test_params()[0])
    rows, y = est._test_data(30)
    card = privacy_card(est.fit(rows, y))
    assert list(card.sections) == SECTIONS
    assert all(card.sections.values())
    assert cls.__name__ in card.sections["What was collected"]
