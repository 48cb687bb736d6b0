"""Pipelines, step by step: what is private, what learns nothing, what leaks; and pipelines that refuse to leak."""

import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, LeaveOneOut, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection

from dpestim import config_context
from dpestim.accounting import BudgetExceededError, Ledger
from dpestim.central import LaplaceMechanism
from dpestim.linear_model import DPLogisticRegression
from dpestim.local import PMTransformer, SDPMTransformer
from dpestim.pipeline import PrivatePipeline, check_pipeline
from dpestim.preprocessing import DPSimpleImputer

X = np.linspace(0, 1, 40).reshape(20, 2)
Y = np.arange(20) % 2


def model(epsilon=1.0, **params):
    return DPLogisticRegression(epsilon, **{"data_norm": 2.0, "classes": [0, 1], **params})


def verdicts(pipeline, **params):
    return [step.verdict for step in check_pipeline(pipeline, **params).steps]


@pytest.mark.parametrize("step", [
    Normalizer(), FunctionTransformer(np.log1p), FunctionTransformer(), OneHotEncoder(categories=[[0, 1]] * 2),
    OrdinalEncoder(categories=[[0, 1]] * 2), RBFSampler(gamma=0.5), GaussianRandomProjection(2),
    SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True),
    SplineTransformer(knots=np.array([[0.0, 0.0], [1.0, 1.0]])), "passthrough",
], ids=lambda step: type(step).__name__)
def test_what_learns_nothing(step):
    """And it does not: fitted to other rows it is the same."""
    report = check_pipeline(make_pipeline(step, model()))
    assert not report.leaks
    assert report.privacy_.epsilon == 1
    if step != "passthrough":
        rows = (X > 0.5).astype(float)
        other = rows.copy()
        other[0] = 1 - other[0]
        seeded = {"random_state": 0} if "random_state" in step.get_params() else {}
        one, two = (clone(step).set_params(**seeded).fit(data).transform(rows) for data in (rows, other))
        assert np.array_equal(*(part.toarray() if hasattr(part, "toarray") else part for part in (one, two)))


@pytest.mark.parametrize("step", [
    StandardScaler(), MinMaxScaler(), PCA(1), OneHotEncoder(), OneHotEncoder(categories=[[0, 1]], min_frequency=2),
    OrdinalEncoder(), SimpleImputer(), SimpleImputer(strategy="constant"), KBinsDiscretizer(), SplineTransformer(),
    RBFSampler(gamma="scale"), GaussianRandomProjection(), SelectKBest(), FunctionTransformer(lambda x: x - x.mean()),
], ids=lambda step: type(step).__name__)
def test_what_leaks_and_what_to_use_instead(step):
    report = check_pipeline(make_pipeline(step, model()))
    assert [leak.kind for leak in report.leaks] == [type(step).__name__]
    assert report.leaks[0].instead
    assert report.privacy_.epsilon == math.inf
    assert not report.is_private
    assert "No privacy guarantee" in str(report)
    assert report.leaks[0].name in str(report)


def test_names_of_scikit_learn_are_not_taken_from_strangers():
    class Normalizer(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            self.mean_ = X.mean()
            return self

    assert verdicts(Normalizer()) == ["leaking"]
    pipeline = make_pipeline(Normalizer(), model())
    assert verdicts(pipeline, trusted=["normalizer"]) == ["data-independent", "private"]
    with pytest.raises(ValueError, match="there is no step 'other'"):
        check_pipeline(pipeline, trusted=["normalizer", "other"])
    for wrong in ("normalizer", [1], [""], None, (name for name in ["normalizer"])):
        with pytest.raises(ValueError, match="trusted must be a list"):
            check_pipeline(pipeline, trusted=wrong)


def test_what_follows_local_randomisation():
    randomise = PMTransformer(1.0, bounds=(0, 1))
    assert verdicts(make_pipeline(randomise, StandardScaler(), PCA(1))) == ["private", *["post-processing"] * 2]
    report = check_pipeline(make_pipeline(randomise, LogisticRegression()))
    assert [step.verdict for step in report.steps] == ["private", "leaking"]
    assert "targets y" in report.leaks[0].reason
    assert verdicts(make_pipeline(randomise, SelectKBest())) == ["private", "leaking"]
    assert verdicts(make_pipeline(randomise, model(0.5))) == ["private", "private"]
    assert not check_pipeline(randomise).ends_raw


def test_costs_add_up():
    halves = FeatureUnion([("a", PMTransformer(0.5, bounds=(0, 1))), ("b", PMTransformer(0.25, bounds=(0, 1)))])
    assert check_pipeline(halves).privacy_.epsilon == 0.75
    beside = ColumnTransformer([("a", PMTransformer(1.0, bounds=(0, 1)), [0])], remainder="passthrough")
    report = check_pipeline(make_pipeline(beside, StandardScaler()))
    assert report.passes_raw == [("remainder", "columntransformer")]
    assert [step.kind for step in report.leaks] == ["StandardScaler"]
    dropped = check_pipeline(ColumnTransformer([("a", PMTransformer(1.0, bounds=(0, 1)), [0])]))
    assert not dropped.ends_raw
    assert dropped.is_private
    relaxed = check_pipeline(SDPMTransformer(1.0, bounds=(0, 10), low_sensitivity=(2, 5)))
    assert relaxed.steps[0].verdict == "private"
    assert "under the relaxation SDLDP" in relaxed.steps[0].reason


@pytest.mark.parametrize("step", [PMTransformer(1.0), model(classes=None)], ids=["bounds", "classes"])
def test_what_is_not_declared_leaks(step):
    report = check_pipeline(step)
    assert report.leaks
    assert "declare" in report.leaks[0].reason.lower()
    assert report.privacy_.epsilon == math.inf


def test_answers_are_released_by_every_transform():
    report = check_pipeline(LaplaceMechanism(1.0))
    assert "sensitivity must be declared" in report.leaks[0].reason
    report = check_pipeline(make_pipeline(LaplaceMechanism(1.0, sensitivity=1.0), StandardScaler()))
    assert [step.verdict for step in report.steps] == ["private", "post-processing"]
    assert "epsilon 1 a transform" in str(report)
    assert not report.ends_raw
    assert "Predictions for private rows are not private" in str(check_pipeline(model()))
    assert "do not publish its output" in str(check_pipeline(make_pipeline(Normalizer())))


def test_only_parameters_count_also_of_what_is_fitted():
    pipeline = PrivatePipeline([("norm", Normalizer()), ("model", model(0.5))]).fit(X, Y)
    pipeline.set_params(model__epsilon=50.0)
    assert pipeline.privacy_.epsilon == 50
    pipeline.set_params(model__classes=None)
    with pytest.raises(ValueError, match="steps must not leak: model"):
        pipeline.fit(X, Y)
    columns = ColumnTransformer([("part", Normalizer(), [0, 1])])
    pipeline = PrivatePipeline([("columns", columns), ("model", model())]).fit(X, Y)
    pipeline.set_params(columns__part=StandardScaler())
    with pytest.raises(ValueError, match="columns__part"):
        pipeline.fit(X, Y)


def test_columns_that_a_function_of_the_data_chooses_leak():
    by_data = ColumnTransformer([("part", Normalizer(), lambda X: [int(abs(X).max(0).argmax())])])
    assert verdicts(make_pipeline(by_data, model()))[0] == "leaking"
    by_dtype = ColumnTransformer([("part", Normalizer(), make_column_selector(dtype_include=float))])
    assert verdicts(make_pipeline(by_dtype, model())) == ["data-independent", "private"]


@pytest.mark.parametrize("step", [
    FunctionTransformer(np.frompyfunc(lambda x: x, 1, 1)), FunctionTransformer(np.add), FunctionTransformer(np.modf),
    FunctionTransformer(np.log1p, kw_args={"where": True}),
], ids=["python", "two arguments", "two results", "keywords"])
def test_functions_that_may_look_at_other_rows(step):
    assert verdicts(make_pipeline(step, model())) == ["leaking", "private"]


def test_sub_classes_may_learn_by_themselves():
    class Own(Pipeline):
        def fit(self, X, y=None):
            self.mean_ = X.mean(axis=0)
            return super().fit(X, y)

    assert verdicts(Own([("model", model())])) == ["leaking"]


def test_memory_leaks(tmp_path):
    cached = Pipeline([("norm", Normalizer()), ("model", model())], memory=str(tmp_path))
    assert verdicts(cached) == ["leaking", "data-independent", "private"]
    private = PrivatePipeline(cached.steps)
    private.memory = str(tmp_path)
    with pytest.raises(ValueError, match="memory must be None"):
        private.fit(X, Y)


def test_parts_of_a_private_pipeline_are_pipelines():
    pipeline = PrivatePipeline([("norm", Normalizer()), ("model", model())]).fit(X, Y)
    assert type(pipeline[:-1]) is Pipeline
    assert pipeline[:-1].transform(X).shape == X.shape
    assert pipeline["model"] is pipeline[1]


def test_searches_leak_and_say_what_they_cost():
    search = GridSearchCV(model(), {"epsilon": [0.5, 1.0]}, cv=3)
    report = check_pipeline(search)
    assert [step.verdict for step in report.steps] == ["leaking", "private"]
    assert "6 further fits" in report.steps[0].reason
    assert "epsilon 4.5 besides" in report.steps[0].reason
    many = RandomizedSearchCV(model(), {"epsilon": [0.5, 1.0]}, n_iter=2, cv=3)
    assert "6 further fits" in check_pipeline(many).steps[0].reason
    assert "many fits" in check_pipeline(GridSearchCV(model(), {"epsilon": [1.0]}, cv=LeaveOneOut())).steps[0].reason
    inside = make_pipeline(StandardScaler(), GridSearchCV(model(), {"epsilon": [0.5]}))
    assert [step.name for step in check_pipeline(inside).steps] == [
        "standardscaler", "gridsearchcv", "gridsearchcv__estimator"]


@pytest.mark.parametrize("wrap", [CalibratedClassifierCV, OneVsRestClassifier])
def test_wrappers_that_fit_in_their_own_way_leak(wrap):
    assert verdicts(wrap(model())) == ["leaking"]


def test_before_and_after_fit_the_report_is_the_same():
    pipeline = make_pipeline(Normalizer(), ColumnTransformer([("n", Normalizer(), [0, 1])]), model())
    before = str(check_pipeline(pipeline))
    assert str(check_pipeline(pipeline.fit(X, Y))) == before


def test_a_private_pipeline_refuses_before_anything_is_charged():
    ledger = Ledger(2.0)
    leaking = PrivatePipeline([("scale", StandardScaler()), ("model", model(ledger=ledger))])
    for verb in (leaking.fit, leaking.fit_predict, leaking.fit_transform):
        with pytest.raises(ValueError, match=r"not leak: scale \(StandardScaler\).*Instead: .*DPStandardScaler"):
            verb(X, Y)
    assert ledger.spent().is_nothing
    with pytest.raises(ValueError, match="steps must contain a private estimator"):
        PrivatePipeline([("norm", Normalizer())]).fit(X)


def test_a_private_pipeline_is_a_pipeline():
    pipeline = PrivatePipeline([("norm", Normalizer()), ("model", model(random_state=0))])
    plain = Pipeline(pipeline.steps)
    assert pipeline.privacy_.epsilon == 1
    assert np.array_equal(pipeline.fit(X, Y).predict(X), plain.fit(X, Y).predict(X))
    assert clone(pipeline).get_params()["model__epsilon"] == 1.0
    own = FunctionTransformer(lambda x: x / 2)
    with pytest.raises(ValueError, match="name the step in trusted"):
        PrivatePipeline([("own", own), ("model", model())]).fit(X, Y)
    assert PrivatePipeline([("own", own), ("model", model())], trusted=["own"]).fit(X, Y).privacy_.epsilon == 1
    randomise = PrivatePipeline([("pm", PMTransformer(1.0, bounds=(0, 1))), ("scale", StandardScaler())])
    assert randomise.fit_transform(X).shape == X.shape


def test_what_foreign_steps_raise_shows_no_values():
    rows = np.array([["a"]] * 19 + [["s3cr3t"]], dtype=object)
    encode = OneHotEncoder(categories=[["a", "b"]])
    pipeline = PrivatePipeline([("encode", ColumnTransformer([("e", encode, [0])], sparse_threshold=0)),
                                ("model", model())])
    for verb in (pipeline.fit, PrivatePipeline([("inside", pipeline)]).fit):
        with pytest.raises(ValueError, match="OneHotEncoder raised ValueError") as caught:
            verb(rows, Y)
        assert "s3cr3t" not in str(caught.value)
        assert caught.value.__context__ is None
    with pytest.raises(ValueError, match="not declared"):  # the own words of a private step stay
        PrivatePipeline([("norm", Normalizer()), ("model", model())]).fit(X, Y + 1)


def test_in_strict_mode_all_steps_are_private():
    holes = X.copy()
    holes[3, 1] = np.nan
    with config_context(strict=True):
        pipeline = PrivatePipeline([("norm", Normalizer()), ("model", model())])
        fine = PrivatePipeline([("no", "passthrough"), ("model", model())])
        for rows in (X, holes):
            assert fine.fit(rows, Y)["model"].coef_.shape == (1, 2)
    for rows in (X, holes):  # bound to it by the private step
        with pytest.raises(ValueError, match=r"strict mode: all steps must be private.* norm"):
            pipeline.fit(rows, Y)


def test_nothing_is_charged_for_a_fit_that_a_later_step_would_refuse():
    """... for its parameters, its targets, or want of budget."""
    holes = np.where(np.arange(len(X) * 2).reshape(-1, 2) % 7, X, np.nan)

    def pipeline(ledger, **params):
        given = {"data_norm": 2.0, "classes": [0, 1], **params}
        return PrivatePipeline([("fill", DPSimpleImputer(0.5, bounds=(-2, 2), ledger=ledger)),
                                ("model", DPLogisticRegression(0.5, ledger=ledger, **given))])

    for budget, params, y, error, what in (
        (1, {"classes": ["a", "b"]}, Y, ValueError, "classes"),
        (1, {}, Y + 5, ValueError, "classes"),
        (1, {"data_norm": -1.0}, Y, ValueError, "data_norm"),
        (Fraction(7, 10), {}, Y, BudgetExceededError, "needs epsilon"),
    ):
        ledger = Ledger(budget)
        for fit in (pipeline(ledger, **params).fit, PrivatePipeline([("all", pipeline(ledger, **params))]).fit):
            with pytest.raises(error, match=what):
                fit(holes, y)
        with ledger, pytest.raises(error, match=what):
            pipeline(None, **params).fit(holes, y)
        assert ledger.spent().epsilon == 0
    ledger = Ledger(1)
    pipeline(ledger).fit(holes, Y)
    assert ledger.spent().epsilon == 1
