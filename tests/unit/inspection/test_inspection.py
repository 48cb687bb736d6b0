"""Privacy cards: what they say, about whom, and that nothing private or foreign gets into them."""

import re

import _host
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context as sklearn_config
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder, StandardScaler

from dpestim.base import all_estimators
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inspection import privacy_card
from dpestim.local import GRRFrequencyEstimator, OUEFrequencyEstimator, SDPMTransformer

X = np.array([[0], [1], [1], [0]])
SECTIONS = ["What was collected", "From whom", "Who must be trusted", "The promise", "The odds",
            "With you and without you", "What an attacker gains", "What is not protected"]


def grr(epsilon=1.0, **params):
    return GRRFrequencyEstimator(epsilon, **{"categories": [[0, 1]], **params})


def test_a_card_says_what_must_be_said():
    frame = pd.DataFrame({"smokes": [0, 1, 1]})
    card = privacy_card(grr(1.0).fit(frame))
    assert list(card.sections) == SECTIONS
    text = str(card)
    for part in ("smokes", "3 reports", "GRRFrequencyEstimator", "Nobody, if", "one user", "at most 2.72 to 1",
                 "73.11 %", "add up"):
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
    assert "everything about a person" in card.sections["The odds"]


def test_a_relaxed_model_is_not_called_nothing():
    sdpm = SDPMTransformer(1.0, bounds=(0, 10), low_sensitivity=(2, 5)).fit(X + 2.5)
    card = privacy_card(sdpm)
    assert card.sections["The odds"].startswith("For the values that SDLDP(column 0: low=[2.0, 5.0]) protects: Even")
    assert "For all other values: no bound" in card.sections["The odds"]
    assert "low cells a low value lies in is not protected" in card.sections["What is not protected"]


def test_steps_that_are_not_private_are_named():
    raw = make_pipeline(OrdinalEncoder(), OUEFrequencyEstimator(1.0, categories=[[0.0, 1.0]])).fit(X)
    assert "Step ordinalencoder (OrdinalEncoder): Learns from raw values" in str(privacy_card(raw))
    clean = make_pipeline(FunctionTransformer(), grr()).fit(X)
    assert "Learns from" not in str(privacy_card(clean))
    supervised = make_pipeline(grr(), BernoulliNB()).fit(X, [0, 1, 1, 0])
    assert "Step bernoullinb (BernoulliNB): Learns from private results and from the raw targets y" in str(
        privacy_card(supervised))


def test_guarantees_of_several_steps_add():
    both = ColumnTransformer([("a", grr(0.5), [0]), ("b", grr(0.25), [1])]).fit(np.hstack([X, X]))
    card = privacy_card(make_pipeline(both))
    assert "0.75-differential privacy" in card.sections["The promise"]
    assert card.sections["What was collected"].count("GRRFrequencyEstimator") == 2


def test_raw_values_beside_reports_are_found():
    two = np.hstack([X, X])
    y = [0, 1, 1, 0]
    beside = ColumnTransformer([("g", grr(), [0]), ("s", StandardScaler(), [1])])
    text = str(privacy_card(make_pipeline(beside, LogisticRegression()).fit(two, y)))
    assert "Step columntransformer__s (StandardScaler): Learns from raw values" in text
    assert "Step logisticregression (LogisticRegression): Learns from raw values" in text
    assert "Those who run the steps that are not private" in text
    through = ColumnTransformer([("g", grr(), [0])], remainder="passthrough").fit(two)
    assert "Step remainder of ColumnTransformer passes raw values on" in str(privacy_card(through))
    dropped = ColumnTransformer([("g", grr(), [0])]).fit(two)
    assert "raw values" not in str(privacy_card(dropped))
    union = FeatureUnion([("a", grr(0.5)), ("b", grr(0.25))]).fit(X)
    assert "0.75-differential privacy" in str(privacy_card(union))


def test_searches_say_what_they_leave_out_and_strangers_are_refused():
    search = GridSearchCV(grr(), {"epsilon": [1.0, 0.5]}, cv=2, error_score="raise").fit(X)
    text = str(privacy_card(search))
    assert "-differential privacy" in text
    assert "compares 4 further fits with raw data" in text
    with pytest.raises(ValueError, match="an estimator of dpestim or a pipeline"):
        privacy_card(LogisticRegression())


def test_notebooks_show_the_card_of_a_fitted_estimator():
    est = grr()
    assert "Privacy card" not in est._repr_html_()
    est.fit(X)
    assert est._repr_html_() == privacy_card(est).html
    assert est._repr_mimebundle_()["text/html"] == privacy_card(est).html
    with sklearn_config(display="text"):
        assert "text/html" not in est._repr_mimebundle_()


def test_notebooks_show_cards_though_nobody_imported_inspection():
    code = """
import sys
from dpestim.local import GRRFrequencyEstimator
est = GRRFrequencyEstimator(1.0, categories=[[0, 1]]).fit([[0], [1]])
assert "dpestim.inspection" not in sys.modules
print("Privacy card" in est._repr_html_())
"""
    done = _host.run(code)
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize(("name", "cls"), all_estimators())
def test_every_estimator_of_the_registry_has_a_card(name, cls):
    est = cls(**cls._test_params()[0])
    rows, y = est._test_data(30)
    card = privacy_card(est.fit(rows, y) if hasattr(est, "fit") else est)
    assert list(card.sections) == SECTIONS
    assert all(card.sections.values())
    assert cls.__name__ in card.sections["What was collected"]
    assert not card.sections["What was collected"].startswith(f"{cls.__name__}: ")  # (it is said once)
    german = privacy_card(est, "de")
    assert len(german.sections) == len(SECTIONS)
    assert german.chances == card.chances
    assert all(german.sections.values())
