"""k-anonymity: hand-worked tables, brute force over all small ones, and attacks that k-anonymous tables do not stop."""

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpestim import config_context
from dpestim.anonymity import (
    FullDomainGeneralization,
    Mondrian,
    anonymity,
    certainty_penalty,
    closeness,
    discernibility,
    diversity,
    equivalence_classes,
    homogeneity_attack,
    intersection_attack,
)
from dpestim.anonymity.full_domain import _Ladder
from dpestim.anonymity.table import Column
from dpestim.datasets import load_us_military

PATIENTS = pd.DataFrame({
    "age": [28, 29, 21, 23, 50, 55, 47, 49, 31, 37, 36, 35],
    "zip": ["13053", "13068", "13068", "13053", "14853", "14853", "14850", "14850", "13053", "13053", "13068", "13068"],
    "illness": ["heart", "heart", "viral", "viral", "cancer", "heart", "viral", "viral", *["cancer"] * 4],
})


def sizes(groups):
    return np.bincount(groups[groups >= 0])


def random_table(rng, n=400):
    return pd.DataFrame({
        "a": rng.integers(0, 50, n),
        "b": rng.choice(["x", "y", "z"], n, p=[0.9, 0.07, 0.03]),
        "c": np.round(rng.lognormal(0, 2, n), 2),
        "secret": rng.choice(["p", "q", "r", "s"], n, p=[0.7, 0.2, 0.07, 0.03]),
    })


@pytest.mark.parametrize("cuts", ["relaxed", "strict"])
@pytest.mark.parametrize("k", [1, 2, 7, 150, 400])
def test_mondrian_keeps_its_word(k, cuts):
    X = random_table(np.random.default_rng(k))
    est = Mondrian(k, quasi_identifiers=["a", "b", "c"], cuts=cuts)
    out = est.fit_transform(X)
    assert list(out.columns) == list(X.columns)
    assert (out["secret"] == X["secret"]).all()
    assert sizes(est.groups_).min() >= k
    assert est.n_groups_ == est.groups_.max() + 1
    # what is written for a row covers it, and classes of the output are unions of ours (relaxed texts may coincide)
    assert anonymity(out, ["a", "b", "c"]) >= k
    for text, value in zip(out["a"], X["a"]):
        low, high = (int(v) for v in text.strip("[]").split(", ")) if text[0] == "[" else (int(text), int(text))
        assert low <= value <= high
    for text, value in zip(out["b"], X["b"]):
        assert value in text
    if cuts == "relaxed":
        assert sizes(est.groups_).max() < 2 * k
    assert np.array_equal(est.fit(X).groups_, est.groups_)


def test_strict_pieces_do_not_overlap():
    X = random_table(np.random.default_rng(0))
    est = Mondrian(5, quasi_identifiers=["a"]).fit(X)
    assert max(len(set(est.groups_[X["a"] == a])) for a in X["a"].unique()) == 1
    relaxed = Mondrian(5, quasi_identifiers=["a"], cuts="relaxed").fit(X)
    assert relaxed.n_groups_ > est.n_groups_
    assert sizes(relaxed.groups_).max() < sizes(est.groups_).max()


def test_diverse_and_close_classes():
    X = random_table(np.random.default_rng(1))
    out = Mondrian(4, quasi_identifiers=["a", "c"], sensitive="secret", l=3, cuts="strict").fit_transform(X)
    assert diversity(out, ["a", "c"], "secret") >= 3
    out = Mondrian(4, quasi_identifiers=["a", "c"], sensitive="secret", t=0.15, cuts="strict").fit_transform(X)
    assert closeness(out, ["a", "c"], "secret") <= 0.15 + 1e-9
    plain = Mondrian(4, quasi_identifiers=["a", "c"], cuts="strict").fit_transform(X)
    assert closeness(plain, ["a", "c"], "secret") > 0.3
    with pytest.raises(ValueError, match="so that no generalisation has"):
        Mondrian(4, quasi_identifiers=["a"], sensitive="secret", l=5).fit(X)
    one = Mondrian(1, quasi_identifiers=["a"], sensitive="secret", t=0.0, cuts="strict").fit(X)
    assert one.n_groups_ == 1  # the whole table is as close as can be


def test_containers_and_names():
    frame = PATIENTS
    wanted = Mondrian(3, quasi_identifiers=["age", "zip"]).fit_transform(frame)
    as_array = Mondrian(3, quasi_identifiers=[0, 1]).fit_transform(frame.to_numpy())
    assert as_array.tolist() == wanted.to_numpy().tolist()
    as_polars = Mondrian(3, quasi_identifiers=["age", "zip"]).fit_transform(pl.from_pandas(frame))
    assert as_polars["age"].to_list() == wanted["age"].tolist()
    assert as_polars.columns == list(frame.columns)
    renamed = frame.set_axis([10, 11, 12], axis=1).set_axis(range(5, 17))
    out = Mondrian(3, quasi_identifiers=[10, 11]).fit_transform(renamed)
    assert out[10].tolist() == wanted["age"].tolist()
    assert out.index.equals(renamed.index)
    assert Mondrian(3, quasi_identifiers="age").fit(frame).feature_names_in_.tolist() == list(frame.columns)


# -- full domain ----------------------------------------------------------------------------------------------------

ZIP = [lambda z: z[:4] + "*", lambda z: z[:3] + "**"]


def test_the_best_of_all_levels_is_found():
    """Beside brute force over the whole lattice, on many small tables."""
    rng = np.random.default_rng(0)
    for n_spare in (0.0, 0.2):
        for _ in range(30):
            X = np.column_stack([rng.integers(0, 12, 20), rng.integers(0, 6, 20), rng.integers(0, 2, 20)])
            est = FullDomainGeneralization(3, hierarchies={0: [2, 4], 1: [3]}, max_suppression=n_spare)
            est.fit(X)
            losses = {}
            for a, b in itertools.product(range(4), range(3)):
                left = np.zeros(20, int) if a == 3 else X[:, 0] // [1, 2, 4][a]
                right = np.zeros(20, int) if b == 2 else X[:, 1] // [1, 3][b]
                _, at, counts = np.unique(np.column_stack([left, right]), axis=0, return_inverse=True,
                                              return_counts=True)
                small = int((counts[at.ravel()] < 3).sum())
                if small <= int(n_spare * 20):
                    losses[a, b] = (small, a / 3 + b / 2, (a, b))
            minimal = [node for node in losses
                       if not any(low != node and low[0] <= node[0] and low[1] <= node[1] for low in losses)]
            best = min(minimal, key=losses.get)
            assert tuple(est.levels_.values()) == best
            assert est.n_suppressed_ == losses[best][0] == (est.groups_ < 0).sum()


def test_the_generalised_table():
    est = FullDomainGeneralization(4, hierarchies={"age": [10, 20], "zip": ZIP})
    out = est.fit_transform(PATIENTS)
    assert anonymity(out, ["age", "zip"]) >= 4
    assert set(est.levels_) == {"age", "zip"}
    spare = FullDomainGeneralization(4, hierarchies={"age": [10, 20], "zip": ZIP}, max_suppression=0.4)
    kept = spare.fit_transform(PATIENTS)
    assert len(kept) == len(PATIENTS) - spare.n_suppressed_
    assert sum(spare.levels_.values()) <= sum(est.levels_.values())
    varied = FullDomainGeneralization(2, hierarchies={"age": [10, 20], "zip": ZIP}, sensitive="illness", l=2)
    assert diversity(varied.fit_transform(PATIENTS), ["age", "zip"], "illness") >= 2


@pytest.mark.parametrize(("more", "match"), [
    ({"hierarchies": None}, "hierarchies"),
    ({"hierarchies": {"age": [3, 10]}}, "nest"),
    ({"hierarchies": {"zip": [10]}}, "does not hold numbers"),
    ({"hierarchies": {"zip": [{"13053": "a"}]}}, "every value"),
    ({"hierarchies": {"age": [-1]}}, "positive width"),
    ({"hierarchies": {"height": [2]}}, "must name columns of the table"),
    ({"max_suppression": 2}, "max_suppression"),
    ({"k": 13}, "at most"),
    ({"k": 0}, "k must"),
    ({"k": True}, "k must"),
    ({"hierarchies": {"age": 10}}, "list of levels"),
    ({"hierarchies": {"zip": [lambda cell: {}[cell]]}}, "raised an error"),
    ({"sensitive": "nope"}, "must name columns of the table"),
    ({"sensitive": "age"}, "which an attacker knows"),
    ({"l": 2}, "sensitive"),
    ({"l": 4, "sensitive": "illness"}, "no generalisation"),
])
def test_bad_parameters_of_full_domain(more, match):
    with pytest.raises(ValueError, match=match):
        FullDomainGeneralization(**{"k": 2, "hierarchies": {"age": [10]}, **more}).fit(PATIENTS)


@pytest.mark.parametrize(("more", "match"), [
    ({"quasi_identifiers": None}, "that an attacker may know"),
    ({"quasi_identifiers": []}, "at least one"),
    ({"quasi_identifiers": ["age", "age"]}, "each once"),
    ({"quasi_identifiers": [True]}, "must name columns of the table"),
    ({"cuts": "fine"}, "cuts"),
    ({"l": 2}, "sensitive"),
    ({"t": 2, "sensitive": "illness"}, "t must"),
    ({"k": 100}, "at most"),
    ({"sensitive": "nope"}, "must name columns of the table"),
    ({"sensitive": "age"}, "which an attacker knows"),
])
def test_bad_parameters_of_mondrian(more, match):
    with pytest.raises(ValueError, match=match):
        Mondrian(**{"k": 2, "quasi_identifiers": ["age"], **more}).fit(PATIENTS)


@pytest.mark.parametrize("cells", [[1.0, np.nan], ["a", None], [[1], [2]], [np.inf, 0.0]])
def test_missing_values_are_refused(cells):
    X = np.empty((2, 1), dtype=object)
    X[:, 0] = cells
    with pytest.raises(ValueError, match="missing"):
        Mondrian(1, quasi_identifiers=[0]).fit(X if isinstance(cells[0], list | str) else X.astype(float))


@pytest.mark.parametrize(("cells", "width", "wanted"), [
    (np.array([100, 101, 30, 31], np.int8), 50, ["[100, 150)"] * 2 + ["[0, 50)"] * 2),
    (np.array([0.55, 0.6, 0.35, 0.3]), 0.1, ["[0.5, 0.6)", "[0.6, 0.7)", "[0.3, 0.4)", "[0.3, 0.4)"]),
    (np.array([-0.0, 5.0, 12.0, 13.0]), 10, ["[0, 10)"] * 2 + ["[10, 20)"] * 2),
])
def test_intervals_cover_their_values(cells, width, wanted):
    # (the whole column "*" keeps a class of two where neither value has another beside it)
    ladder = _Ladder(Column("x", cells), [width])
    assert ladder.texts(1)[ladder.codes].tolist() == wanted
    _Ladder(Column("x", np.arange(40) / 20), [0.1, 0.5])  # (these nest)


def test_what_is_left_out_is_counted_exactly():
    X = np.column_stack([np.r_[np.zeros(71, int), np.arange(1, 30)], np.zeros(100, int)])
    est = FullDomainGeneralization(2, hierarchies={0: []}, max_suppression=0.29).fit(X)
    assert est.n_suppressed_ == 29
    assert est.penalty_ == pytest.approx(0.29)
    stars = FullDomainGeneralization(2, hierarchies={0: [], 1: []})
    stars.fit([[21, "u"], [21, "u"], [22, "v"], [23, "v"], [90, "w"], [90, "w"]])
    assert stars.levels_ == {0: 1, 1: 0}
    assert stars.penalty_ == 0.5


def test_columns_of_all_kinds():
    days = pd.to_datetime(["2020-01-01", "2020-01-02", "2021-01-01", "2021-06-01"])
    X = pd.DataFrame({"self": days, "s": list("pqpq")})
    out = Mondrian(2, quasi_identifiers=["self"]).fit_transform(X)
    assert out["self"].str.startswith("[2020-01-01").tolist() == [True, True, False, False]
    assert list(X["s"]) == list(out["s"])
    with pytest.raises(ValueError, match="different names"):
        Mondrian(2, quasi_identifiers=[0]).fit(X.set_axis(["a", "a"], axis=1))
    mixed = [[np.int64(10)], [1], [np.int64(2)], [9]]
    assert Mondrian(2, quasi_identifiers=[0]).fit_transform(mixed)[:, 0].tolist() == [
        "[9, 10]", "[1, 2]", "[1, 2]", "[9, 10]"]
    assert Mondrian(2, quasi_identifiers=[0]).fit_transform([["a, b"], ["a"]]).tolist() == [["{'a', 'a, b'}"]] * 2
    levels = pd.Categorical(["low", "high", "mid", "mid"], ["low", "mid", "high"], ordered=True)
    ranked = pd.DataFrame({"q": [0, 0, 1, 1], "s": levels})
    assert closeness(ranked, ["q"], "s") == closeness(ranked.assign(s=levels.codes), ["q"], "s") == 0.25
    with pytest.raises(ValueError, match="without an order"):
        closeness(X, ["self"], "s", ordered=True)
    for cells in ([[2**64]], [[2**53 + 1], [0.5]]):
        with pytest.raises(ValueError, match="integers of at most"):
            Mondrian(1, quasi_identifiers=[0]).fit(cells)
    with pytest.raises(ValueError, match="missing"):
        Mondrian(1, quasi_identifiers=["a"]).fit(pd.DataFrame({"a": pd.array(["x", None], "string")}))
    far = Mondrian(1, quasi_identifiers=[0]).fit(np.array([[-1e308], [0.0], [1.0], [1e308]]))
    assert far.n_groups_ == 4
    with pytest.raises(ValueError, match="must name columns of the table"):
        Mondrian(1, quasi_identifiers=[1.0]).fit(np.zeros((2, 2)))
    with config_context(strict=True), pytest.raises(ValueError, match="strict mode"):
        Mondrian(1, quasi_identifiers=[0]).fit(np.zeros((2, 2)))


# -- measures -------------------------------------------------------------------------------------------------------


def test_measures_by_hand():
    table = [["a", 1], ["a", 2], ["a", 2], ["b", 1], ["b", 3], ["b", 3]]
    assert anonymity(table, [0]) == 3
    assert diversity(table, [0], 1) == 2
    # class a is (1, 2) of the values 1 and 2: exp of the entropy of (1/3, 2/3)
    assert diversity(table, [0], 1, kind="entropy") == pytest.approx(3 / 2 ** (2 / 3))
    # 2 < 2 * (2 + 1), 2 < 2 * 1 does not hold
    assert diversity(table, [0], 1, kind="recursive") == 1
    assert diversity(table, [0], 1, kind="recursive", c=2.5) == 2
    # the table has (1/3, 1/3, 1/3), class a (1/3, 2/3, 0): half of 2/3 apart; of ranks: a third moves one step of two
    assert closeness(table, [0], 1, ordered=False) == pytest.approx(1 / 3)
    assert closeness(table, [0], 1) == pytest.approx(1 / 6)
    assert discernibility([0, 0, 1, -1]) == 4 + 1 + 4
    assert certainty_penalty([["a", 0], ["b", 5], ["c", 10]], [0, 0, -1], [0, 1]) == pytest.approx(4 / 6)
    assert certainty_penalty(PATIENTS, np.arange(12), ["age", "zip"]) == 0
    assert certainty_penalty(PATIENTS, np.zeros(12, int), ["age", "zip"]) == 1
    assert equivalence_classes([[1, "x"], [True, "x"], [1, "x"]], [0]).tolist() == [0, 1, 0]


def test_measures_beside_loops_over_all_values():
    """Random tables, with ties: distances from the definitions, cell by cell."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        classes, secret = rng.integers(0, 4, 30), rng.choice([1, 5, 6, 8, 9, 12], 30)
        X, values = np.column_stack([classes, secret]), np.unique(secret)
        whole = (secret[:, None] == values).mean(axis=0)
        flat, ranks, recursive = [], [], []
        for name in np.unique(classes):
            own = (secret[classes == name][:, None] == values).mean(axis=0)
            flat.append(np.abs(own - whole).sum() / 2)
            ranks.append(np.abs(np.cumsum(own - whole)).sum() / (len(values) - 1))
            many = -np.sort(-(secret[classes == name][:, None] == values).sum(axis=0))
            recursive.append(max([j for j in range(1, len(many) + 1) if many[0] < 3 * many[j - 1 :].sum()], default=0))
        assert closeness(X, [0], 1, ordered=False) == pytest.approx(max(flat))
        assert closeness(X, [0], 1) == pytest.approx(max(ranks))
        assert diversity(X, [0], 1, kind="recursive", c=3) == min(recursive)


def test_many_values_take_little_memory():
    n = 60_000
    X = np.column_stack([np.arange(n) // 5, np.arange(n)])
    tracemalloc.start()
    assert homogeneity_attack(X, [0], 1).n_learned == 0
    assert 0.49 < closeness(X, [0], 1) < 0.51
    assert tracemalloc.get_traced_memory()[1] < 5e7
    tracemalloc.stop()
    assert discernibility([0, 10**12]) == 2
    assert certainty_penalty(np.array([[-100], [-90], [90], [100]], np.int8), [0, 0, 1, 1], [0]) == pytest.approx(0.05)


def test_what_sees_everything_is_no_quasi_identifier():
    with pytest.raises(ValueError, match="which an attacker knows"):
        diversity(PATIENTS, ["age", "illness"], "illness")
    with pytest.raises(ValueError, match="kind"):
        diversity(PATIENTS, ["age"], "illness", kind="great")
    with pytest.raises(ValueError, match="one column"):
        diversity(PATIENTS, ["age"], ["illness", "zip"])


# -- attacks --------------------------------------------------------------------------------------------------------


def test_four_anonymous_patients_are_read():
    """The table of Machanavajjhala et al.: 4-anonymous, and everybody in their thirties has cancer."""
    out = FullDomainGeneralization(4, hierarchies={"age": [10], "zip": ZIP}).fit_transform(PATIENTS)
    assert anonymity(out, ["age", "zip"]) >= 4
    decade = np.select([PATIENTS["age"] < 30, PATIENTS["age"] < 40], ["< 30", "3*"], ">= 40")
    thirties = PATIENTS.assign(age=decade)
    found = homogeneity_attack(thirties, ["age"], "illness")
    assert anonymity(thirties, ["age"]) == 4
    assert (found.n_people, found.n_learned) == (12, 4)
    assert found.learned.tolist() == [False] * 8 + [True] * 4
    assert homogeneity_attack(thirties, ["age"], "illness", confidence=0.5).n_learned == 8  # (half of the others)
    with pytest.raises(ValueError, match="confidence"):
        homogeneity_attack(thirties, ["age"], "illness", confidence=0)


def test_two_diverse_tables_are_read_together():
    first = pd.DataFrame({"group": ["u"] * 3 + ["v"] * 3, "illness": list("abcabd")})
    second = pd.DataFrame({"group": ["u", "v", "w", "u", "v", "w"], "illness": list("abcabd")})
    assert diversity(first, ["group"], "illness") == 3
    found = intersection_attack([first, second], ["group"], "illness")
    # groups u, v, w of the second table hold {a}, {b}, {c, d}, of which the first leaves one each
    assert found.n_learned == 6
    names = [list("uvwxyz"), list("zyxwvu")]
    mirrored = intersection_attack([first, second[::-1]], ["group"], "illness", people=names)
    assert mirrored.n_learned == 6
    some = intersection_attack([first, second[:2]], ["group"], "illness", people=[names[0], ["u", "q"]])
    assert (some.n_people, some.n_learned) == (1, 1)
    with pytest.raises(ValueError, match="different numbers"):
        intersection_attack([first, second[:2]], ["group"], "illness")
    with pytest.raises(ValueError, match="each once"):
        intersection_attack([first, first], ["group"], "illness", people=[["u"] * 6] * 2)
    for more, match in (({"people": [["u"] * 6]}, "for each table"), ({}, "contradict")):
        with pytest.raises(ValueError, match=match):
            intersection_attack([first, first.assign(illness=list("AAAAAA"))], ["group"], "illness", **more)
    with pytest.raises(ValueError, match="two released"):
        intersection_attack([first], ["group"], "illness")


def test_real_people_are_read_and_two_tables_tell_more():
    """Members of the US forces: each table is 5-anonymous, tells some people's grade, and with the other one more."""
    X = load_us_military(as_frame=True).frame.sample(4000, random_state=0).astype({"hisp": str, "rank": int})
    known = [["branch", "gender", "rank"], ["race", "hisp", "rank"]]
    tables = [Mondrian(5, quasi_identifiers=names, cuts="strict").fit_transform(X) for names in known]
    alone = [homogeneity_attack(table, names, "grade") for table, names in zip(tables, known)]
    both = intersection_attack(tables, known, "grade")
    assert all(anonymity(table, names) >= 5 for table, names in zip(tables, known))
    assert both.n_learned > max(attack.n_learned for attack in alone) > 100
    # whoever is known from one table is known from both
    assert all((both.learned >= attack.learned).all() for attack in alone)
    with pytest.raises(ValueError, match="one for each table"):
        intersection_attack(tables, [known[0]], "grade")
