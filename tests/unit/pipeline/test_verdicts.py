"""What the checker calls harmless has the same type, shape, dtype and outcome for all neighbours."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler, PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from dpestim.linear_model import DPLogisticRegression
from dpestim.local import PMTransformer, PrivatizedColumns
from dpestim.pipeline import PrivatePipeline, check_pipeline
from dpestim.pipeline.step_rules import LEARNS_NOTHING
from dpestim.preprocessing import DPOneHotEncoder

KNOTS = np.array([[0.0] * 3, [1.0] * 3, [2.0] * 3])
#: Of each class that learns nothing: settings of which the checker says so.
HARMLESS = {
    "Normalizer": [Normalizer()],
    "Binarizer": [Binarizer()],
    "HashingVectorizer": [HashingVectorizer(n_features=8)],
    "FeatureHasher": [FeatureHasher(n_features=8, input_type="string")],
    "AdditiveChi2Sampler": [AdditiveChi2Sampler(sample_interval=0.8), AdditiveChi2Sampler()],
    "PolynomialFeatures": [PolynomialFeatures(), PolynomialFeatures(3, interaction_only=True)],
    "SkewedChi2Sampler": [SkewedChi2Sampler(n_components=4, random_state=0)],
    "PolynomialCountSketch": [PolynomialCountSketch(n_components=4, random_state=0)],
    "FunctionTransformer": [FunctionTransformer(), FunctionTransformer(np.log1p),
                            FunctionTransformer(np.log1p, inverse_func=np.expm1, check_inverse=False)],
    "OneHotEncoder": [OneHotEncoder(categories=[[0, 1, 2]] * 3, handle_unknown="ignore"),
                      OneHotEncoder(categories=[[0, 1, 2]] * 3, handle_unknown="ignore", sparse_output=False)],
    "OrdinalEncoder": [OrdinalEncoder(categories=[[0, 1, 2]] * 3, handle_unknown="use_encoded_value",
                                      unknown_value=-1)],
    "SimpleImputer": [SimpleImputer(strategy="constant", keep_empty_features=True, fill_value=1.0)],
    "MissingIndicator": [MissingIndicator(features="all")],
    "SplineTransformer": [SplineTransformer(knots=KNOTS)],
    "RBFSampler": [RBFSampler(gamma=1.0, n_components=4, random_state=0)],
    "GaussianRandomProjection": [GaussianRandomProjection(2, random_state=0)],
    "SparseRandomProjection": [SparseRandomProjection(2, density=0.5, random_state=0)],
}
#: Settings that look alike, and let a value decide.
HARMFUL = [
    FunctionTransformer(np.log1p, inverse_func=np.expm1),  # tries them on raw values, and warns
    SimpleImputer(strategy="constant"),  # drops columns that are missing throughout
    SimpleImputer(strategy="constant", keep_empty_features=True, add_indicator=True),
    MissingIndicator(),  # keeps the columns in which something is missing
    OneHotEncoder(), OneHotEncoder(categories=[[0, 1, 2]] * 3, min_frequency=2), OrdinalEncoder(),
    VarianceThreshold(), KBinsDiscretizer(), SplineTransformer(), RBFSampler(gamma="scale"),
    SparseRandomProjection(2), TransformedTargetRegressor(LinearRegression()),
]


def verdicts(step):
    return [found.verdict for found in check_pipeline(make_pipeline(clone(step))).steps]


def neighbours(step):
    """Yield rows that differ in the last one only: ordinary, far away, 0, missing where that is allowed."""
    rows = np.random.default_rng(0).integers(0, 3, (12, 3)).astype(float)
    lasts = [rows[0], [0.0] * 3, [2.0] * 3, [1e6, 0, 0]]
    if step.__sklearn_tags__().input_tags.allow_nan:
        rows[:11, 1] = np.nan
        lasts += [[np.nan] * 3]
    for last in lasts:
        table = rows.copy()
        table[-1] = last
        if isinstance(step, HashingVectorizer):
            yield ["a few words " * int(row[0]) for row in np.nan_to_num(table)]
        elif isinstance(step, FeatureHasher):
            yield [["word"] * int(row[0] % 5) for row in table]
        else:
            yield table


def outcome(step, rows):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = clone(step).fit_transform(rows)
    return type(found), found.shape, found.dtype, [str(w.message) for w in caught]


def test_every_harmless_class_is_tried():
    assert set(HARMLESS) == set(LEARNS_NOTHING)


@pytest.mark.parametrize("step", [step for steps in HARMLESS.values() for step in steps], ids=repr)
def test_neighbours_look_the_same_to_what_learns_nothing(step):
    assert verdicts(step) == ["data-independent"]
    assert len({str(outcome(step, rows)) for rows in neighbours(step)}) == 1


@pytest.mark.parametrize("step", HARMFUL, ids=repr)
def test_what_lets_a_value_decide_leaks(step):
    assert verdicts(step) == ["leaking"]


def table(encoder, **params):
    return ColumnTransformer([("hot", encoder, [0]), ("rest", Normalizer(), [1, 2])], **params)


SPARSE, DENSE = OneHotEncoder(categories=[[0, 1, 2]]), OneHotEncoder(categories=[[0, 1, 2]], sparse_output=False)
COUNTS = {
    "by default": (table(SPARSE), True),
    "some threshold": (table(SPARSE, sparse_threshold=0.01), True),
    "always dense": (table(SPARSE, sparse_threshold=0), False),
    "dense parts": (table(DENSE), False),
    "a private part": (table(DPOneHotEncoder(categories=[[0, 1, 2]], sparse_output=True)), True),
    "a dense private part": (table(DPOneHotEncoder(categories=[[0, 1, 2]])), False),
    "inside a pipeline": (table(make_pipeline("passthrough", SPARSE)), True),
    "a union": (table(FeatureUnion([("one", SPARSE)])), True),
    "in the remainder": (ColumnTransformer([("rest", Normalizer(), [1, 2])], remainder=SPARSE), True),
    "nested": (ColumnTransformer([("inner", table(SPARSE), [0, 1, 2])]), True),
    "bins": (table(KBinsDiscretizer(encode="onehot")), True),
}


@pytest.mark.parametrize(("step", "leaks"), COUNTS.values(), ids=COUNTS)
def test_a_container_that_counts_what_is_not_zero_leaks(step, leaks):
    model = DPLogisticRegression(data_norm=2.0, classes=[0, 1])
    report = check_pipeline(make_pipeline(step, model))
    found = [own for own in report.leaks if own.kind == "ColumnTransformer"]
    assert bool(found) == leaks
    if leaks:
        assert "sparse_threshold=0" in found[0].instead
        with pytest.raises(ValueError, match="sparse_threshold=0"):
            PrivatePipeline([("table", step), ("model", model)]).fit(np.zeros((9, 3)), np.arange(9) % 2)


def test_rows_that_are_sparse_stay_so_where_columns_pass():
    step = ColumnTransformer([("rest", Normalizer(), [0, 1])], remainder="passthrough")
    pipeline = PrivatePipeline([("table", step), ("model", DPLogisticRegression(data_norm=2.0, classes=[0, 1]))])
    assert pipeline.fit(np.eye(6)[:, :3], np.arange(6) % 2).privacy_.is_finite
    with pytest.raises(ValueError, match="sparse_threshold=0"):
        pipeline.fit(sparse.csr_array(np.eye(6)[:, :3]), np.arange(6) % 2)


def test_the_type_of_a_union_is_that_of_its_parts():
    """... and not of their values: scikit-learn counts nothing there."""
    union = FeatureUnion([("hot", OneHotEncoder(categories=[[0, 1, 2]] * 3, handle_unknown="ignore")),
                          ("rest", Normalizer())])
    assert set(verdicts(union)) == {"data-independent"}
    assert len({str(outcome(union, rows)) for rows in neighbours(Normalizer())}) == 1


def test_columns_that_nobody_randomised_stay_raw():
    """What PrivatizedColumns passes through is raw, and whatever learns from it leaks."""
    numbers = [("n", PMTransformer(bounds=(0, 1)), [0])]
    for remainder, verdict in (("passthrough", "leaking"), ("drop", "post-processing")):
        local = PrivatizedColumns(numbers, epsilon=1.0, remainder=remainder)
        report = check_pipeline(Pipeline([("local", local), ("bins", KBinsDiscretizer())]))
        assert [step.verdict for step in report.steps] == ["private", verdict]
        assert report.is_private == (remainder == "drop")


class Vast(Normalizer):
    """Asks for more memory than there is, as much as a value says."""

    def transform(self, X, copy=None):
        return np.empty(int(X[0, 0]) * 10**6)


def test_memory_that_runs_out_shows_no_value():
    rows = np.full((6, 2), 5123456789013.0)
    pipeline = PrivatePipeline([("vast", Vast()), ("model", DPLogisticRegression(data_norm=1.0, classes=[0, 1]))],
                               trusted=["vast"])
    with pytest.raises(ValueError, match="Vast raised") as caught:
        pipeline.fit(rows, np.arange(6) % 2)
    assert "5123456789013" not in str(caught.value)
    assert caught.value.__context__ is None


def test_the_page_of_verdicts_names_all_that_is_tested():
    page = (Path(__file__).parents[3] / "docs" / "verdicts.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|")]
    for name in HARMLESS:
        assert any(f"`{name}`" in row and "learns nothing" in row for row in rows), name
    for step in HARMFUL:
        row = next(row for row in rows if f"`{type(step).__name__}`" in row)
        assert "leaks" in row or "with" in row, step
    assert any("`ColumnTransformer`" in row and "sparse_threshold=0" in row for row in rows)
