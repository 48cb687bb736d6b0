"""Synthetic rows: the model against brute force, what a row can change, accounts, columns in and out."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpestim import Domain, Numbers, config_context
from dpestim.accounting import Ledger, largest_rho
from dpestim.postprocessing.entropy import Model
from dpestim.postprocessing.junction import Tree, all_sets, cells_of, cliques_of
from dpestim.privacy import ZCDP, Neighbours
from dpestim.rng import WordSource
from dpestim.synthesis import MarginalSynthesizer, MultiplicativeWeights
from dpestim.synthesis.marginals import AdaptivePlan
from dpestim.synthesis.multiplicative_weights import FixedPlan
from dpestim.synthesis.noise import WidthLaw, width_for
from dpestim.synthesis.scores import SCALE, counted, is_noise, scores_of

SIZES = (3, 4, 2, 5, 3)
SETS = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)]


def joint(logs, sizes=SIZES):
    """Return the table of all columns, by brute force."""
    full = sum(np.reshape(a, [sizes[j] if j in own else 1 for j in range(len(sizes))]) for own, a in logs.items())
    full = np.exp(np.broadcast_to(full, sizes))
    return full / full.sum()


def model_of(sets, sizes=SIZES, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    logs = {own: scale * rng.normal(size=[sizes[j] for j in own]) for own in sets}
    tree = Tree(sizes, cliques_of(sizes, sets))
    tree.calibrate(logs)
    return tree, logs


# ---------------------------------------------------------------- trees


@pytest.mark.parametrize("sets", [SETS, [], [(0, 4)], [(0, 1), (2, 3)], [(0, 1, 2), (2, 3, 4)], all_sets(5, 2)])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_answers_are_those_of_the_table_of_all_columns(sets, scale):
    tree, logs = model_of(sets, scale=scale)
    full = joint(logs or {(0,): np.zeros(3)})
    for degree in range(1, 6):
        for columns in itertools.permutations(range(5), degree):
            assert np.allclose(tree.marginal(columns), np.einsum(full, range(5), columns), atol=1e-12)


def test_trees_are_junction_trees():
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = int(rng.integers(2, 9))
        sets = [tuple(sorted(rng.choice(n, 2, replace=False))) for _ in range(int(rng.integers(0, 12)))]
        sizes = tuple(int(k) for k in rng.integers(1, 6, n))
        tree = Tree(sizes, cliques_of(sizes, sets))
        assert set().union(*tree.cliques) == set(range(n))
        assert all(any(set(own) <= set(c) for c in tree.cliques) for own in sets)
        for j in range(n):  # those that hold a column are connected: one of them has a parent that does not
            own = [c for c, clique in enumerate(tree.cliques) if j in clique]
            assert sum(tree.parent[c] is None or j not in tree.cliques[tree.parent[c]] for c in own) == 1
        assert cells_of(sizes, tree.cliques) == sum(math.prod(sizes[j] for j in c) for c in tree.cliques)


def test_rows_are_spread_as_evenly_as_whole_rows_can_be():
    tree, _ = model_of(SETS)
    n = 20_000
    rows = tree.draw(n, np.random.default_rng(0))
    for clique in tree.cliques:
        counts = counted(list(rows.T), clique, SIZES)
        cells = counts.size
        # a comb errs by a row a cell, and by what its parent's tables err
        assert np.abs(counts - n * tree.marginal(clique)).sum() < 3 * cells
    # what no clique holds is right on average, too
    assert np.abs(counted(list(rows.T), (1, 4), SIZES) / n - tree.marginal((1, 4))).sum() < 0.03
    assert tree.draw(1, np.random.default_rng(1)).shape == (1, 5)


def test_the_model_is_the_one_of_largest_entropy():
    rng = np.random.default_rng(1)
    full = rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    for joined in (False, True):
        model = Model((2, 3, 4), 1000.0, joined)
        for own in [(0, 1), (1, 2)]:
            model.learn(own, 1000 * np.einsum(full, range(3), own), 100.0)
        model.fit(3000)
        want = np.einsum("ab,bc,b->abc", full.sum(2), full.sum(0), 1 / full.sum((0, 2)))
        assert np.allclose(model.tree.marginal((0, 1, 2)), want, atol=1e-4)


def test_noise_that_drowns_rows_makes_no_model():
    noisy = 500 + 5000 * np.random.default_rng(0).normal(size=10)
    shares = []
    for precision in (1.0, 1 / 5000**2):
        model = Model((10,), 5000.0)
        model.learn((0,), noisy, precision)
        model.fit(500)
        shares.append(model.tree.marginal((0,)).max())
    assert shares[0] > 0.5
    assert shares[1] < 0.2


def test_what_is_measured_twice_is_a_mean_by_precision():
    model = Model((2,), 100.0)
    model.learn((0,), [40, 60], 1.0)
    model.learn((0,), [70, 30], 2.0)
    assert np.allclose(model.known[0,][0], [60, 40])
    assert model.known[0,][1] == 3.0


# ---------------------------------------------------------------- privacy


def most_moved(scores, replaces):
    """Return the largest difference of scores between neighbours, among all tables of 3 rows of columns (2, 3)."""
    sizes, worst = (2, 3), 0
    cells = list(itertools.product(range(2), range(3)))
    rng = np.random.default_rng(0)
    tables = {own: 3 * rng.dirichlet(np.ones(math.prod(sizes[j] for j in own))).reshape([sizes[j] for j in own])
              for own in [(0,), (1,), (0, 1)]}

    def scored(rows):
        codes = [np.array([row[j] for row in rows], np.int64) for j in range(2)]
        return scores({own: counted(codes, own, sizes) for own in tables}, tables,
                      dict.fromkeys(tables, 0.37))

    for rows in itertools.combinations_with_replacement(cells, 3):
        here = scored(rows)
        others = [(*rows[1:], cell) for cell in cells] if replaces else [rows[1:]]
        worst = max(worst, *(int(np.abs(here - scored(other)).max()) for other in others))
    return worst


def test_a_row_moves_a_score_by_no_more_than_the_law_is_told():
    assert most_moved(scores_of, True) == 2 * SCALE * 2
    assert most_moved(scores_of, False) == SCALE * 2

    def broken(candidates, tables, penalties):  # squares are more sensitive
        return np.array([int(np.square(counts - tables[own]).sum() * 2 * SCALE) for own, counts in candidates.items()])

    assert most_moved(broken, True) > 2 * SCALE * 2


@pytest.mark.parametrize("moved", [1, 2])
@pytest.mark.parametrize(("noisy", "nothing"), [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (0.0, 0.4), (0.5, 0.4), (0.0, 1.0)])
def test_rounds_never_cost_more_than_the_budget(moved, noisy, nothing):
    rho, sizes, rng = largest_rho(Fraction(1), Fraction(1, 10**6)), (4, 4, 4, 4), np.random.default_rng(0)
    plan = AdaptivePlan(rho, moved, sizes, 2)
    noise, _ = plan.first()
    spent, rounds = Fraction(moved * len(sizes)) / (2 * Fraction(noise.width) ** 2), 0
    assert noise.square == moved * len(sizes)
    assert noise.rho <= rho / 5
    while not plan.is_done:
        spent += plan.next().epsilon ** 2 / 8
        rounds += 1
        if rng.random() < nothing:
            plan.heard_nothing()
            continue
        own, _ = plan.measure()
        spent += Fraction(moved) / (2 * Fraction(own.width) ** 2)
        assert own.square == moved
        plan.heard(0.0 if rng.random() < noisy else 1e9, 16, rng.random() < 0.1)
    if not plan.is_spent:
        rest, _ = plan.rest(3)
        spent += Fraction(moved * 3) / (2 * Fraction(rest.width) ** 2)
        assert rest.square == moved * 3
    assert plan.is_spent
    assert rho * (1 - Fraction(1, 10**9)) < spent <= rho
    assert rounds <= plan.most_rounds
    assert (rounds > 12) == (noisy == nothing == 0)
    assert nothing < 1 or rounds == 3


def test_pure_rounds_add_up_to_epsilon():
    for rounds in (0, 1, 7):
        plan = FixedPlan(Fraction(1, 3), 2, 3, rounds)
        law, _ = plan.first()
        total = law.epsilon
        assert law.sensitivity == 6
        for _ in range(rounds):
            share, (noise, _) = plan.next(), plan.measure()
            assert noise.sensitivity == 2
            total += share.epsilon + noise.epsilon
        assert total == Fraction(1, 3)
        assert plan.is_spent


def test_noise_is_not_taken_for_what_columns_have_to_do_with_each_other():
    rng = np.random.default_rng(0)
    known = np.full((5, 5), 40.0)
    # seeded, n = 2,000 tables of 25 cells: noise of a standard deviation of 10 alone, or with as much to learn
    found = {far: np.mean([is_noise(known, known + (10**2 + far**2) ** 0.5 * rng.normal(size=(5, 5)), 1 / 100)
                           for _ in range(2000)]) for far in (0, 10)}
    assert 0.4 < found[0] < 0.7
    assert found[10] < 0.05
    assert is_noise(known, known, 1.0)


@pytest.mark.ci
def test_few_rows_are_no_worse_than_independent_columns():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (300, 8))
    errors, declared = {}, {"delta": 1e-4, "categories": [range(3)] * 8}
    for degree in (1, 2):
        models = [MarginalSynthesizer(0.5, degree=degree, random_state=seed, **declared).fit(X) for seed in range(4)]
        errors[degree] = np.mean([model.workload_error(X) for model in models])
    assert errors[2] < 1.15 * errors[1]
    X[:, 1:] = X[:, :1]  # and what cannot be mistaken for noise is learnt
    model = MarginalSynthesizer(4.0, random_state=0, **declared).fit(X)
    assert sum(len(own) == 2 for own in model.measured_) >= 7


def test_noise_of_a_width_is_that_of_the_mechanism_of_its_cost():
    width = width_for(Fraction(1, 50), 2)
    law = WidthLaw.of(width, 2)
    assert Fraction(2) / (2 * Fraction(width) ** 2) == law.rho <= Fraction(1, 50)
    assert law.curve == ZCDP(law.rho)
    drawn = law.draw(WordSource(0), 40_000)
    # seeded, n = 40,000, alpha = 1e-6: the variance of a square is 2 sigma^4
    assert abs(np.mean(drawn**2) / law.variance_steps - 1) < 4.9 * math.sqrt(2 / 40_000)
    assert abs(np.mean((2 * drawn) ** 2) / law.variance_steps - 1) > 4.9 * math.sqrt(2 / 40_000)
    assert law != WidthLaw.of(width, 1)


def test_guarantees_say_what_was_spent():
    X = np.random.default_rng(0).integers(0, 3, (50, 3))
    for neighbours in ("substitution", "add_remove"):
        one = MarginalSynthesizer(1.0, delta=1e-6, categories=[range(3)] * 3, neighbours=neighbours,
                                  random_state=0).fit(X)
        assert one.privacy_.curve.rho == largest_rho(1, 1e-6)
        assert one.privacy_.neighbours is Neighbours(neighbours)
        assert (one.n_rows_ == 50) == (neighbours == "substitution")
    two = MultiplicativeWeights(1.0, categories=[range(3)] * 3, random_state=0).fit(X)
    assert (two.privacy_.epsilon, two.privacy_.delta) == (1, 0)
    assert len(two.measured_) <= 6


# ---------------------------------------------------------------- rows


def people(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    smokes = rng.random(n) < 0.3
    return pd.DataFrame({
        "smokes": np.where(smokes, "yes", "no"),
        "age": rng.integers(18, 90, n).astype(np.int16),
        "pressure": rng.normal(120 + 20 * smokes, 10).astype(np.float32),
        "group": pd.Categorical(np.where(smokes, "b", "a"), categories=["a", "b"]),
    })


DECLARED = {"categories": {"smokes": ["no", "yes"], "group": ["a", "b"]}, "bounds": {"age": (18, 90)},
            "bins": {"age": 8, "pressure": [80, 100, 120, 140, 180]}}


def test_frames_come_out_as_they_went_in():
    data = people()
    model = MarginalSynthesizer(2.0, delta=1e-6, **DECLARED, random_state=0).fit(data)
    rows = model.sample(random_state=0)
    assert (rows.dtypes == data.dtypes).all()
    assert list(rows) == list(data)
    assert len(rows) == len(data)
    assert rows["age"].between(18, 90).all()
    assert rows["pressure"].between(80, 180).all()
    assert rows.equals(model.sample(random_state=0))
    assert not rows.equals(model.sample(random_state=1))
    assert len(model.sample(7)) == 7
    # who smokes is in group b, and has a higher pressure
    assert ((rows["smokes"] == "yes") == (rows["group"] == "b")).mean() > 0.95
    assert abs(rows.groupby("smokes")["pressure"].mean().diff().iloc[-1] - 20) < 5
    table = model.marginal(["group", "smokes"])
    assert table.shape == (2, 2)
    assert abs(table.sum() - 1) < 1e-12
    assert np.allclose(table.T, model.marginal(["smokes", "group"]))
    assert list(model.levels("smokes")) == ["no", "yes"]
    assert len(model.levels("age")) == 9
    assert model.workload_error(data) < 0.06
    shuffled = data.assign(**{name: data[name].sample(frac=1, random_state=k).to_numpy()
                              for k, name in enumerate(data)}).astype(data.dtypes)
    assert model.workload_error(shuffled) > 0.1
    other = pl.from_pandas(data.astype({"group": str}))
    again = MarginalSynthesizer(2.0, delta=1e-6, **DECLARED, random_state=0).fit(other)
    assert np.array_equal(again.counts_, model.counts_)
    assert again.sample(5).schema == other.schema


def test_what_is_kept_of_dtypes_says_nothing_of_rows():
    """Which categories occur, and how long strings are: neighbours' models would differ in it, whatever the noise."""
    rows = [["a", "x"], ["b", "xx"]] * 50
    declared = {"categories": [["b", "a", "c", None], ["x", "xx", "xxx"]], "random_state": 0}
    kept = []
    for more in (["a", "x"], ["c", "xxx"]):
        frame = pd.DataFrame([*rows, more], columns=["one", "two"]).astype("category")
        table = pl.DataFrame([*rows, more], schema=["one", "two"], orient="row")
        table = table.cast({name: pl.Enum(table[name].unique()) for name in table.columns})
        fitted = [MultiplicativeWeights(9.0, **declared).fit(data) for data in (frame, table, np.array([*rows, more]))]
        assert list(fitted[0].sample(5)["one"].cat.categories) == ["b", "a", "c"]
        kept.append([model._schema.dtypes for model in fitted])
    assert kept[0] == kept[1]
    # (whether anybody lacks a value turns integers into floats, so what comes out follows from what is declared)
    plain, lacks = pd.DataFrame({"one": [0, 1] * 20}), pd.DataFrame({"one": [0, None] * 20})
    for table in (plain, plain.to_numpy(), lacks, lacks.to_numpy()):
        model = MultiplicativeWeights(0.1, categories=[[0, 1, None]], random_state=0).fit(table)
        rows = np.asarray(model.sample(50, random_state=0))
        assert rows.dtype == np.float64
        assert 0 < np.isnan(rows).sum() < 50
    fractions = MultiplicativeWeights(9.0, categories=[[0.5, 1]], random_state=0).fit(np.ones((30, 1), int))
    assert set(fractions.sample(40).ravel()) <= {0.5, 1.0}
    numbers = pd.DataFrame({"one": [0, 1, 5] * 9}).astype("category")
    model = MultiplicativeWeights(9.0, bounds=(0, 6), bins=3, random_state=0).fit(numbers)
    assert model.sample(5)["one"].dtype == np.int64


@pytest.mark.parametrize("library", [None, pd, pl])
def test_integers_stay_in_what_their_dtype_holds(library):
    for dtype, bounds in ((np.uint8, (-9, 300)), (np.int8, (-128, 128)), (np.int64, (0, 2.0**63))):
        rows = np.arange(40).astype(dtype).reshape(20, 2)
        table = rows if library is None else library.DataFrame({"a": rows[:, 0], "b": rows[:, 1]})
        drawn = MultiplicativeWeights(1.0, bounds=bounds, bins=2, random_state=0).fit(table).sample(200)
        values = np.asarray(drawn)
        assert values.dtype == dtype
        assert library is not pl or not drawn.null_count().to_numpy().any()


def test_what_is_measured_twice_is_measured_of_the_same_rows():
    """Noise was added to the counts themselves, so that later rounds saw earlier noise: |z| of 2 and more."""
    rows, squares = np.random.default_rng(0).integers(0, 3, (3000, 3)), []
    for seed in range(12):
        model = MultiplicativeWeights(2.0, categories=[[0, 1, 2]] * 3, rounds=12, random_state=seed).fit(rows)
        for own, (found, precision) in model._model.known.items():
            if len(own) > 1:
                exact = counted(list(rows.T), own, (3, 3, 3))
                squares.append(precision * np.square(found - exact).mean())
    assert 0.6 < np.mean(squares) < 1.4  # (about 400 noisy numbers: 7 standard errors; it was 3.7)


def test_arrays_come_out_as_they_went_in():
    whole = np.random.default_rng(0).integers(0, 9, (200, 2))
    numbers = {"bounds": (0, 8), "bins": 4, "random_state": 0}
    rows = MultiplicativeWeights(9.0, **numbers).fit(whole).sample(500, random_state=0)
    assert rows.dtype == whole.dtype
    assert rows.min() == 0
    assert rows.max() == 8
    rows = MultiplicativeWeights(9.0, **numbers).fit(whole / 3).sample(500, np.random.default_rng(0))
    assert rows.dtype == np.float64
    assert len(np.unique(rows)) == 1000
    text = MultiplicativeWeights(9.0, categories=[["a", None], ["b", "ccc"]], random_state=0)
    rows = text.fit([["a", "b"], [None, "ccc"]] * 50).sample(9, np.random.RandomState(0))
    assert rows.dtype == object
    assert set(rows.ravel()) <= {"a", None, "b", "ccc"}
    assert MultiplicativeWeights(9.0, categories=[["a"]]).fit(np.array([["a"], ["a"]])).sample(2).dtype.kind == "U"


@pytest.mark.parametrize(("change", "message"), [
    ({"delta": None}, "delta must be declared"),
    ({"categories": None}, "column 'smokes' must be declared"),
    ({"categories": {"smokes": ["no", "yes"], "nobody": [1]}}, "column 'group' must be declared"),
    ({"categories": [["no", "yes"]]}, "a list of values for each of the 4 columns"),
    ({"categories": {**DECLARED["categories"], "age": [1, 2]}}, "column 'age' must have either categories, or bounds"),
    ({"bounds": {"age": (90, 18)}}, "bounds must be a pair"),
    ({"bounds": (1, 1)}, "bounds must be a pair"),
    ({"bins": {"age": 0}}, "bins must be"),
    ({"bins": (3, 2, 1)}, "bins must be"),
    ({"bins": {"age": 8}}, "column 'pressure' must be declared"),
    ({"degree": 0}, "degree must be"),
    ({"max_cells": 15}, "max_cells must be at least 16"),
    ({"max_cells": True}, "max_cells must be an int"),
    ({"workload": "age"}, "workload must be None or a list"),
    ({"workload": ["age"]}, "sets of workload must be a list of names"),
    ({"workload": [("age", "nobody")]}, "sets of workload must be a list of names"),
    ({"workload": [("age", "age")]}, "sets of workload must be distinct"),
    ({"neighbours": "any"}, "neighbours must be"),
])
def test_bad_parameters_are_named_and_cost_nothing(change, message):
    ledger = Ledger(5, delta=0.1)
    model = MarginalSynthesizer(**({"delta": 1e-6, "ledger": ledger} | DECLARED | change))
    with pytest.raises(ValueError, match=message):
        model.fit(people(20))
    assert not ledger.spent().epsilon
    assert not hasattr(model, "counts_")


@pytest.mark.parametrize(("cls", "more"), [(MarginalSynthesizer, {"delta": 1e-6}), (MultiplicativeWeights, {})])
def test_a_workload_says_what_is_measured(cls, more):
    data = people()
    model = cls(4.0, **more, **DECLARED, workload=[("pressure", "smokes", "age")], random_state=0).fit(data)
    assert {own for own in model.measured_ if len(own) == 2} <= {(0, 1), (0, 2), (1, 2)}
    assert (0, 2) in model.measured_
    assert (0, 3) in cls(4.0, **more, **DECLARED, random_state=0).fit(data).measured_
    assert 0 < model.workload_error(data) < model.workload_error(data, 4)
    alone = cls(1.0, **more, **DECLARED, workload=[("age",)], random_state=0).fit(data)
    plain = cls(1.0, **more, **DECLARED, degree=1, random_state=0).fit(data)
    assert np.array_equal(alone.counts_, plain.counts_)  # all of the budget is for single columns
    assert alone.workload_error(data) < 0.1


def test_bad_questions_are_named():
    data = people(100)
    model = MarginalSynthesizer(1.0, delta=1e-6, **DECLARED, random_state=0)
    with pytest.raises(ValueError, match="column 'age'"):
        model.fit(data.assign(age=np.where(data.index == 3, np.nan, 30.0)))
    with pytest.raises(ValueError, match="column 'smokes' has a value"):
        model.fit(data.assign(smokes="s3cr3t"))
    model.fit(data)
    for columns in ("age", [], ["nobody"], ["age", "age"], [0], 3, [[1]]):
        with pytest.raises(ValueError, match="columns must be"):
            model.marginal(columns)
    for n_rows in (0, 1.5, True):
        with pytest.raises(ValueError, match="n_rows must be"):
            model.sample(n_rows)
    with pytest.raises(ValueError, match="degree must be"):
        model.workload_error(data, 5)
    with pytest.raises(ValueError, match="all columns together"):
        MultiplicativeWeights(1.0, **DECLARED, max_cells=100).fit(data)
    with config_context(strict=True), pytest.raises(ValueError, match="compares with raw data"):
        model.workload_error(data)


@pytest.mark.parametrize("cls", [MarginalSynthesizer, MultiplicativeWeights])
def test_odd_tables(cls):
    more = {"delta": 1e-6} if cls is MarginalSynthesizer else {}
    X = np.zeros((1, 3), int)
    for n_columns, degree in ((1, 2), (3, 1), (3, 8)):
        made = cls(1.0, **more, categories=[[0, 1]] * n_columns, degree=degree, random_state=0).fit(X[:, :n_columns])
        assert made.sample(5).shape == (5, n_columns)
        assert made.sample().shape == (1, n_columns)
        assert np.isfinite(made.marginal([0])).all()
    constant = cls(1.0, **more, categories=[["a"], ["b"]], random_state=0).fit([["a", "b"]] * 20)
    assert (constant.sample(3) == [["a", "b"]] * 3).all()


def test_a_budget_that_words_cannot_express_costs_nothing():
    cases = (MarginalSynthesizer, {"delta": 1e-6}, {"delta": 1e-100}), (MultiplicativeWeights, {}, {})
    for cls, more, least in cases:
        ledger = Ledger(5, delta=0.1)
        with pytest.raises(ValueError, match="epsilon"):
            cls(1e-30, **least, categories=[[0, 1]] * 2, ledger=ledger).fit(np.zeros((9, 2), int))
        assert not ledger.spent().epsilon
        for epsilon in (1e-8, 70.0):
            rows = cls(epsilon, **more, categories=[[0, 1]] * 2, random_state=0).fit(np.zeros((9, 2), int)).sample(9)
            assert rows.shape == (9, 2)


def test_cells_stay_within_their_limit():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (1000, 9))
    X[:, 1:] = np.where(rng.random((1000, 8)) < 0.5, X[:, :1], X[:, 1:])
    for most in (100, 1000):
        model = MarginalSynthesizer(5.0, delta=1e-6, categories=[range(6)] * 9, max_cells=most, random_state=0).fit(X)
        assert cells_of([6] * 9, model.cliques_) <= most


@pytest.mark.parametrize("synthesizer", [MarginalSynthesizer, MultiplicativeWeights])
@pytest.mark.parametrize("kind", ["pandas", "polars", "Int64", "array"])
def test_missing_numbers_are_a_bin_where_they_are_declared(synthesizer, kind):
    rng = np.random.default_rng(0)
    size, gone = rng.integers(0, 10, 4000).astype(float), rng.random(4000) < 0.3
    size[gone] = np.nan
    frame = pd.DataFrame({"size": size, "lost": gone.astype(int)})
    rows = {"pandas": frame, "polars": pl.from_pandas(frame.astype({"size": "Int64"})),
            "Int64": frame.astype({"size": "Int64"}), "array": frame.to_numpy()}[kind]
    domain = Domain({"size": Numbers(0, 10, missing=True), "lost": [0, 1]})
    delta = {"delta": 1e-6} if synthesizer is MarginalSynthesizer else {}
    model = synthesizer(4.0, bounds=domain, bins=5, random_state=0, **delta).fit(rows)
    assert model.marginal([0] if kind == "array" else ["size"]).shape == (6,)
    made = model.sample(3000, random_state=0)
    made = pd.DataFrame(made, columns=frame.columns) if kind == "array" else made
    if kind == "polars":  # (NaN would be a number)
        whole, plain = made["size"], synthesizer(4.0, bounds=domain, **delta).fit(rows.cast(pl.Float64)).sample(90)
        assert (whole.null_count() > 0, plain["size"].null_count() > 0, plain["size"].is_nan().any()) == (1, 1, 0)
        made = made.to_pandas()
    drawn = pd.to_numeric(made["size"]).to_numpy(float, na_value=np.nan)
    assert abs(np.isnan(drawn).mean() - 0.3) < 0.05
    assert np.mean(np.isnan(drawn) == (made["lost"] == 1)) > 0.9
    assert np.nanmin(drawn) >= 0
    assert np.nanmax(drawn) <= 10
    with pytest.raises(ValueError, match=r"infinity.*missing=True"):
        synthesizer(4.0, bounds=Domain({"size": (0, 10), "lost": [0, 1]}), **delta).fit(rows)


def test_a_column_of_integers_that_may_be_missing_is_sampled_as_floats():
    rows = pd.DataFrame({"size": np.arange(1000) % 10})
    made = MarginalSynthesizer(0.1, delta=1e-6, bounds=Domain({"size": Numbers(0, 10, missing=True)}),
                               random_state=0).fit(rows).sample(500, random_state=0)
    assert made["size"].dtype == np.float64
    assert made["size"].isna().any()  # (noise)
