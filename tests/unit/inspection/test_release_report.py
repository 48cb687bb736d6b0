"""The report of released answers: all numbers with their intervals and cost, and the budget; nothing raw."""

import numpy as np
import pandas as pd
import pytest

from dpestim import Categories, Domain, config_context
from dpestim.accounting import Ledger
from dpestim.inspection import release_report
from dpestim.statistics import Mean, contingency_table, count, group_by, mean, quantile

X = pd.DataFrame({"height": np.linspace(150, 190, 400), "weight": np.linspace(50, 90, 400)})


def test_every_number_has_its_interval_and_its_cost(tmp_path):
    with Ledger(3, delta=1e-6) as ledger:
        answers = {
            "tall <people>": count(X["height"] > 180, epsilon=0.25),
            "means": mean(X, epsilon=0.5, bounds=([100, 20], [220, 200])),
            "median": quantile(X["height"], 0.5, epsilon=0.25, bounds=(100, 220)),
        }
        report = release_report(answers, ledger=ledger, title="Heights & weights")
    frame = report.to_frame()
    assert frame["question"].tolist() == ["tall <people>", "means", "means", "median"]
    assert frame["of"].tolist()[1:3] == ["height", "weight"]
    assert frame["epsilon"].tolist() == [0.25, 0.5, 0.5, 0.25]
    low, high = answers["means"].interval(0.95)
    assert (frame["low"][1], frame["high"][2]) == (low[0], high[1])
    assert np.isnan(frame["low"][3])  # (no interval was released)
    assert frame["level"].tolist()[:3] == [0.95] * 3
    text = str(report)
    assert text.startswith("Heights & weights\n")
    assert "Spent: epsilon = 1, delta = 0." in text
    assert "Left: epsilon = 2, delta = 1e-06." in text
    report.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<h3>Heights &amp; weights</h3>" in page
    assert "tall &lt;people&gt;" in page
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_groups_and_fitted_statistics_are_answers():
    groups = np.repeat(["a", "b"], 200)
    by_group = group_by(Mean(0.5, bounds=(100, 220), neighbours="add_remove"), X["height"], groups, ["a", "b"])
    fitted = Mean(0.5, bounds=(100, 220)).fit(X[["height"]])
    frame = release_report({"by group": by_group, "all": fitted}).to_frame()
    assert frame["of"].tolist() == ["a", "b", "height"]
    assert frame["answer"][0] == by_group["a"].value


@pytest.mark.parametrize("make", [pd.DataFrame, lambda frame: pytest.importorskip("polars").from_pandas(frame)])
def test_missing_values_are_named(make):
    kinds = X.assign(kind=["a", "b", None, None] * 100, sex=["F", "M"] * 200)
    domain = Domain({"kind": Categories(["a", "b"], missing=True), "sex": ["F", "M"], "height": (100, 220)})
    with config_context(neighbours="add_remove"):
        table = contingency_table(make(kinds[["kind", "sex"]]), epsilon=1, categories=domain[["kind", "sex"]])
        kind = Mean(80, bounds=domain, random_state=0)
        means = group_by(kind, make(kinds), ["kind", "sex"], domain, columns=["height"])
        alone = group_by(kind, make(kinds), "kind", domain, columns=["height"])
    places = [f"{kind}, {sex}" for kind in ("a", "b", "missing") for sex in "FM"]
    frame = release_report({"table": table, "means": means, "alone": alone}).to_frame()
    assert frame["of"].tolist() == [*places, *(f"{own}, height" for own in (*places, "a", "b", "missing"))]
    expected = kinds["height"][kinds["kind"].isna()].mean()
    assert alone[None].value == pytest.approx(expected, abs=0.1)
    for result in (table, means, alone):
        assert "missing" in str(result)
        assert "None" not in str(result)


@pytest.mark.parametrize(("answers", "ledger", "match"), [
    ({}, None, "answers must be a dict"),
    ([1], None, "answers must be a dict"),
    ({"q": 3}, None, "the answer to 'q' must be a result"),
    ({"q": count(X["height"] > 1, epsilon=1)}, 3, "ledger must be"),
])
def test_what_is_no_answer_is_refused(answers, ledger, match):
    with pytest.raises(ValueError, match=match):
        release_report(answers, ledger=ledger)
