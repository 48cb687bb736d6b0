"""Rows of numbers and categories: choices of columns, exact shares, draws, estimates by column, what is refused."""

import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.compose import make_column_selector

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.base import all_estimators
from dpestim.exceptions import BudgetExceededError
from dpestim.local import (
    CMSFrequencyEstimator,
    DistributionEstimator,
    DuchiTransformer,
    GRRFrequencyEstimator,
    IDUEFrequencyEstimator,
    LGRRFrequencyEstimator,
    MeanEstimator,
    MixedEstimator,
    OUEFrequencyEstimator,
    PersonalizedEstimator,
    PMTransformer,
    PrivUnitTransformer,
    SDGRRFrequencyEstimator,
)
from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.numbers.transformer import NumberClient
from dpestim.shuffle import ShuffledEstimator

COLORS = ["red", "green", "blue"]
GRR, PM = GRRFrequencyEstimator(categories=[COLORS]), PMTransformer(bounds=([0, -5], [1, 5]))


def frame(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"id": np.arange(n), "color": rng.choice(COLORS, n, p=[0.5, 0.3, 0.2]),
                         "size": rng.uniform(0, 1, n), "tilt": rng.normal(1, 1, n), "flag": rng.random(n) < 0.1})


def mixed(**more):
    return MixedEstimator([("color", GRR, "color"), ("body", PM, ["size", "tilt"])], **{"random_state": 0, **more})


@pytest.mark.parametrize("columns", [
    ["size", "tilt"], [2, 3], [-3, -2], slice(2, 4), slice("size", "tilt"), np.array([False, False, True, True, False]),
    [False, False, True, True, False], np.array([2, 3]), ("size", "tilt"), make_column_selector(dtype_include=float),
    lambda X: [c for c in X.columns if X[c].dtype == float], pd.Index(["size", "tilt"]),
])
def test_columns_are_chosen_as_column_transformer_chooses(columns):
    est = MixedEstimator([("color", GRR, ["color"]), ("body", PM, columns)], random_state=0).fit(frame())
    assert np.array_equal(est.privatize(frame()), mixed().privatize(frame()))
    assert list(est.means_) == ["size", "tilt"]
    assert list(est.frequencies_) == ["color"]


def test_a_callable_sees_no_row():
    seen = []
    MixedEstimator([("body", PM, lambda X: seen.append(len(X)) or ["size", "tilt"])]).fit(frame())
    assert seen == [0]


@pytest.mark.parametrize("columns", [
    None, 1.5, b"size", {"size"}, [["size"]], ["size", 3], [True, 2], [True], "no", ["id", "no"], 9, -9, [],
    slice(0, 0), slice(0.5, 2), lambda X: 1 / 0, lambda X: None, True,
])
def test_other_choices_are_refused(columns):
    est = MixedEstimator([("body", PMTransformer(bounds=(0, 1)), columns)])
    with pytest.raises(ValueError, match=r"transformers: the c.* 'body'"):
        est.fit(frame())
    assert not hasattr(est, "n_features_in_")


def test_frames_arrays_and_positions_say_the_same():
    X, wanted = frame(), mixed().privatize(frame())
    assert np.array_equal(mixed().privatize(pl.from_pandas(X)), wanted)
    placed = MixedEstimator([("color", GRR, 1), ("body", PM, [2, 3])], random_state=0)
    for rows in (X, X.to_numpy(dtype=object), X.to_numpy(dtype=object).tolist()):
        assert np.array_equal(placed.privatize(rows), wanted)
    turned = X[["flag", "tilt", "color", "size", "id"]]
    assert np.array_equal(mixed().privatize(turned), wanted)
    server = placed.fit(X.to_numpy(dtype=object))
    assert list(server.means_) == [2, 3]
    assert server.n_features_in_ == 5
    assert mixed().fit(X).feature_names_in_.tolist() == list(X)


def test_later_rows_have_the_columns_of_the_first():
    est = mixed().fit(frame())
    for wrong in (frame().drop(columns="id"), frame()[["flag", "tilt", "color", "size", "id"]]):
        with pytest.raises(ValueError, match="feature"):
            est.partial_fit(wrong)
    known = mixed().aggregate(mixed().privatize(frame()))
    with pytest.raises(ValueError, match="must be a frame with one column 'tilt'"):
        known.partial_fit(frame().drop(columns="tilt"))
    assert known.partial_fit(frame()[["tilt", "color", "size"]]).n_users_ == 400


def test_shares_are_exact():
    est = mixed(epsilon=0.1, strategy="split")
    est.transformers.append(("flag", OUEFrequencyEstimator(categories=[[False, True]]), ["flag"]))
    assert [law.epsilon for law in est.fit(frame()).randomizers_] == [Fraction(1, 40)] * 4
    assert est.privacy_.epsilon == Fraction(1, 10)
    est.set_params(shares={"color": 1, "body": 5, "flag": 0.7})
    assert [law.epsilon * 67 for law in est.fit(frame()).randomizers_] == [1, Fraction(5, 2), Fraction(5, 2),
                                                                          Fraction(7, 10)]
    assert est.privacy_.epsilon == Fraction(1, 10)
    est.set_params(shares=None, strategy="sample", n_sampled=3)
    assert {law.epsilon for law in est.fit(frame()).randomizers_} == {Fraction(1, 30)}
    assert est.privacy_.epsilon == Fraction(1, 10)
    assert est.n_sampled_ == 3
    for shares in ({"color": 1}, {"color": 1, "body": 0, "flag": 1}, {"color": 1, "body": 1, "flag": 1, "x": 1}, 2):
        with pytest.raises(ValueError, match="shares"):
            mixed(strategy="split", shares=shares).fit(frame())


def test_a_large_epsilon_may_exceed_what_one_client_takes():
    est = MixedEstimator([("body", PMTransformer(bounds=(0, 1)), list(range(4)))], epsilon=50, n_sampled=2)
    assert {law.epsilon for law in est.fit(np.zeros((2, 4))).randomizers_} == {25}
    assert est.privacy_.epsilon == 50
    with pytest.raises(ValueError, match="epsilon"):
        est.set_params(epsilon=81).fit(np.zeros((2, 4)))


def test_the_number_of_draws_follows_from_public_parameters():
    wide = [("x", PMTransformer(bounds=(0, 1)), list(range(4))), ("c", GRRFrequencyEstimator(categories=[[0, 1]] * 4),
                                                              list(range(4, 8)))]
    chosen = [MixedEstimator(wide, epsilon=e).n_sampled_ for e in (0.1, 1, 5, 20, 40)]
    assert chosen[:2] == [1, 1]
    assert chosen == sorted(chosen)
    assert chosen[-1] == 8
    all_of_them, X = MixedEstimator(wide, epsilon=40, random_state=0), np.zeros((50, 8))
    split = MixedEstimator(wide, epsilon=40, strategy="split", random_state=0)
    assert np.array_equal(all_of_them.privatize(X), split.privatize(X))


def test_a_joint_report_is_drawn_as_one_column():
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (20_000, 6))
    est = MixedEstimator([("signs", DuchiTransformer(bounds=(-1, 1), strategy="joint"), [0, 1]),
                          ("ball", PrivUnitTransformer(candidates=8), [4, 5]),
                          ("x", PMTransformer(bounds=(-1, 1)), [3])],
                         epsilon=2.0, random_state=0, n_sampled=1).fit(X)
    assert len(est.randomizers_) == 3
    assert {law.epsilon for law in est.randomizers_} == {2}
    drawn = est.reports_by_column_
    assert drawn[0] == drawn[1]
    assert drawn[4] == drawn[5]
    assert drawn[0] + drawn[3] + drawn[4] == 20_000
    for j, mean in est.means_.items():
        assert abs(mean - X[:, j].mean()) < 5 * est.standard_errors_[j]
    assert MixedEstimator(est.transformers, epsilon=2.0).n_sampled_ >= 1


@pytest.mark.ci
def test_frequencies_of_drawn_columns_have_the_errors_of_the_draw():
    """n = 300 aggregates of 200 users, alpha = 1e-6: the variance is that of claim 4, and not that without the draw."""
    n, repeats = 200, 300
    X = np.zeros((n, 3))
    X[: n // 2, 0] = 1  # both categories are as frequent, and epsilon is large: the draw is most of the variance
    est = MixedEstimator([("c", GRRFrequencyEstimator(categories=[[0, 1]]), 0),
                          ("x", PMTransformer(bounds=(0, 1), grid=4), [1, 2])],
                         epsilon=6.0, n_sampled=1, random_state=0)
    scores, plain = [], []
    reports = est.privatize(np.tile(X, (repeats, 1))).reshape(repeats, n, -1)
    for part in reports:
        one = clone(est).aggregate(part)
        off = one.frequencies_[0][1] - 0.5
        scores.append(off / one.standard_errors_[0][1])
        server = one.named_estimators_["c"]
        server._n_users = server._drawn[0]  # as if those who drew it were all there are
        plain.append(off / server.standard_errors_[0][1])
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], repeats)
    assert low < np.square(scores).sum() < high < np.square(plain).sum()


def test_nobody_may_have_drawn_a_column():
    X = frame(1)
    est = mixed(n_sampled=1, epsilon=4.0).fit(X)
    assert sum(est.reports_by_column_.values()) == 1
    absent = [v for v, m in est.reports_by_column_.items() if not m]
    est = MixedEstimator([("color", GRRFrequencyEstimator(categories=[COLORS], postprocess="norm_sub"), "color"),
                          ("shape", DistributionEstimator(PMTransformer(bounds=(0, 1)), n_bins=4), "size")],
                         n_sampled=1, random_state=0).fit(X)
    told, lines = est.release(), est.to_frame()
    for v, m in est.reports_by_column_.items():
        assert np.isnan(told[v]).all() == (m == 0)
        assert lines[lines.feature == v].estimate.isna().all() == (m == 0)
    assert len(absent) == 2


def test_estimates_are_those_of_each_kind_by_column():
    X = frame(5000)
    est = MixedEstimator([
        ("color", GRR, ["color"]), ("tilt", MeanEstimator(PMTransformer(bounds=(-5, 5))), ["tilt"]),
        ("size", DistributionEstimator(PMTransformer(bounds=(0, 1)), n_bins=8), ["size"]),
    ], epsilon=6.0, random_state=0).fit(X)
    assert set(est.frequencies_) == {"color"}
    assert set(est.distributions_) == {"size"}
    assert set(est.means_) == {"size", "tilt"}
    assert set(est.standard_errors_) == {"color", "tilt"}
    assert set(est.release()) == {"color", "size", "tilt"}
    assert est.categories_["color"].tolist() == COLORS
    low, high = est.confidence_interval()["tilt"]
    assert low < X.tilt.clip(-5, 5).mean() < high
    assert est.confidence_interval()["color"].shape == (3, 2)
    assert est.named_estimators_["size"].quantile(0.5).shape == (1,)
    lines = est.to_frame()
    assert lines.groupby("quantity").size().to_dict() == {"frequency": 3, "mean": 2, "share": 8}
    for level in (0, 1, True, "0.9"):
        with pytest.raises(ValueError, match="level"):
            est.confidence_interval(level)
    copies = est.named_estimators_
    with pytest.raises(ValueError, match="for reading only"):
        copies["tilt"].partial_fit(X[["tilt"]])
    assert copies["color"].n_users_ == 5000
    thawed = pickle.loads(pickle.dumps(est))
    assert thawed.means_ == est.means_


@pytest.mark.parametrize("client", [
    GRRFrequencyEstimator(), PMTransformer(), CMSFrequencyEstimator(categories=None), MeanEstimator(),
    LGRRFrequencyEstimator(1.0, epsilon_permanent=3.0, categories=[COLORS]),
    PMTransformer(bounds=(0, 1), strategy="sample"), "grr", None,
    IDUEFrequencyEstimator(categories=[COLORS], epsilons=[[0.5, 1, 1]]), mixed(), GRRFrequencyEstimator,
    GRRFrequencyEstimator(categories=[COLORS, COLORS]), GRRFrequencyEstimator(categories={"other": COLORS}),
    MeanEstimator(GRR), GRRFrequencyEstimator(categories=[COLORS], postprocess="none"),
])
def test_clients_that_do_not_fit_are_named(client):
    book = Ledger(1.0)
    with pytest.raises(ValueError, match=r"(transformers: .*mine|postprocess)"):
        MixedEstimator([("mine", client, ["color"])], ledger=book).fit(frame())
    assert not book.entries()


def test_a_ledger_pays_for_rows_and_strict_mode_tells_nothing():
    with Ledger(2.0) as ledger:
        est = mixed(epsilon=1.5).fit(frame())
        with pytest.raises(BudgetExceededError):
            est.partial_fit(frame())
    assert ledger.spent().epsilon == Fraction(3, 2)
    assert est.n_users_ == 200
    bad = frame()
    bad.loc[3, "color"], bad.loc[4, "size"] = "s3cr3t", np.nan
    with pytest.raises(ValueError, match="column 'color'") as refused:
        mixed().fit(bad)
    assert "s3cr3t" not in str(refused.value)
    cells = frame().to_numpy(dtype=object)
    cells[5, 3] = "s3cr3t"
    with pytest.raises(ValueError, match="column 3 of X"):
        MixedEstimator([("body", PM, [2, 3])]).fit(cells)
    with config_context(strict=True):
        assert mixed().fit(bad).n_users_ == 200


def test_parameters_of_clients_have_names():
    est = mixed()
    est.set_params(body__grid=64, color=OUEFrequencyEstimator(categories=[COLORS]))
    assert est.get_params()["body__grid"] == 64
    assert est.transformers[0][2] == "color"
    assert type(est.fit(frame()).randomizers_[0]).__name__ == "OUE"
    assert clone(est).get_params()["body__grid"] == 64
    with pytest.raises(ValueError, match="nothing"):
        est.set_params(nothing=1)
    est.set_params(body__grid=256)


def clients():
    for name, cls in all_estimators(("local",)):
        if issubclass(cls, FrequencyEstimator | NumberClient):
            params = cls._test_params()[0]
            yield pytest.param(cls(**{k: v for k, v in params.items() if not k.startswith("epsilon")}), id=name)


@pytest.mark.parametrize("client", list(clients()))
def test_every_client_has_a_place_in_a_row(client):
    X = client._test_data(60)[0]
    n = X.shape[1]
    rows = np.empty((60, n + 1), dtype=object)
    rows[:, :n], rows[:, n] = X, np.arange(60) % 2
    flag = GRRFrequencyEstimator(categories=[[0, 1]])
    est = MixedEstimator([("it", client, list(range(n))), ("flag", flag, n)], epsilon=3.0, random_state=0)
    if not getattr(client, "_adds_same_users", True):
        state = est.client_state(rows)
        assert est.aggregate(est.privatize(rows[::-3], state=state[::-3])).n_users_ == 20
    privacy = est.fit(rows).privacy_
    assert (privacy.epsilon if privacy.relaxed_epsilon is None else privacy.relaxed_epsilon) == 3
    assert len(est.release()) == n + 1 == len(est.means_) + len(est.frequencies_)
    if est.n_sampled_ == 1:
        joint = client._n_parts(n) < n
        assert sum(est.reports_by_column_.values()) == 60 or joint
    for wrapper in (PersonalizedEstimator(est), ShuffledEstimator(est, delta=1e-5)):
        with pytest.raises(ValueError, match="estimator must"):
            wrapper.fit(rows)


def test_only_the_same_row_merges():
    a, b = mixed().fit(frame()), mixed(random_state=1).fit(frame(seed=1))
    assert clone(a).merge(b).merge(a).means_ == clone(a).merge(a).merge(b).means_
    turned = MixedEstimator([("color", GRR, "color"), ("body", PM, ["tilt", "size"])], random_state=1).fit(frame())
    for other in (mixed(random_state=1, n_sampled=2).fit(frame()), mixed(random_state=1, strategy="split").fit(frame()),
                  turned, mixed(random_state=1, epsilon=2).fit(frame())):
        with pytest.raises(ValueError, match="other must have the same"):
            a.merge(other)
    chosen = MixedEstimator([("color", GRR, ["color"]), ("body", PM, slice(2, 4))])
    with pytest.raises(ValueError, match="names, or positions of at least 0"):
        chosen.aggregate(a.privatize(frame()))
    assert chosen.merge(a).means_ == a.means_


def test_a_relaxed_client_is_named():
    lax = SDGRRFrequencyEstimator(categories={"color": COLORS}, low_sensitivity={"color": ["red"]})
    est = MixedEstimator([("color", lax, ["color"]), ("body", PM, ["size", "tilt"])], epsilon=1.5, strategy="split")
    stated = est.fit(frame()).privacy_
    assert "column 'color'" in stated.relaxation
    assert stated.relaxed_epsilon == Fraction(3, 2)


def test_the_servers_of_parts_are_to_be_read():
    """Counts of drawn columns do not add up as those of others do, and nobody would have paid."""
    X = np.random.default_rng(0).integers(0, 2, (400, 2))
    make = partial(MixedEstimator, [(str(j), GRRFrequencyEstimator(categories=[[0, 1]]), [j]) for j in range(2)],
                   n_sampled=1)
    parts = [make(random_state=seed).fit(X).named_estimators_["0"] for seed in range(2)]
    own = GRRFrequencyEstimator(1.0, categories=[[0, 1]]).fit(X[:, :1])
    for use in (lambda: parts[0].merge(parts[1]), lambda: own.merge(parts[0]), lambda: parts[0].fit(X[:, :1]),
                lambda: parts[0].partial_fit(X[:, :1]), lambda: parts[0].aggregate(own.privatize(X[:, :1]))):
        with pytest.raises(ValueError, match="part of a MixedEstimator"):
            use()
    assert clone(parts[0]).fit(X[:, :1]).n_users_ == 400
