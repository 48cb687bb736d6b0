"""The one road of the local model: laws by their arguments, columns, clients and servers, and the rooms beside it."""

import array
import ast
import copy
import math
import pickle
import threading
import warnings
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import dpestim.local
from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.local import (
    BinaryFrequencyEstimator,
    CMSFrequencyEstimator,
    DistributionEstimator,
    GRRFrequencyEstimator,
    IDUEFrequencyEstimator,
    MeanEstimator,
    OUEFrequencyEstimator,
    PMTransformer,
    SDPMTransformer,
)
from dpestim.local.categories.grr import GRR
from dpestim.local.extend import (
    ALL,
    CategoricalRandomizer,
    CodeReports,
    FrequencyEstimator,
    NumericRandomizer,
    NumericTransformer,
    Promise,
    Randomizer,
    Stage,
    WindowRandomizer,
)
from dpestim.local.numbers.pm import PM
from dpestim.local.numbers.sdpm import SDPM
from dpestim.privacy.category_weights import grr_weights
from dpestim.privacy.exact import WORD, exp_lower
from dpestim.privacy.number_weights import pm_weights
from dpestim.testing import check_mechanism

ROOM = Path(dpestim.local.__file__).parent
X = np.random.default_rng(0).uniform(0, 10, (60, 1))


FEW = {
    "one column": (GRRFrequencyEstimator(1.0, categories=[range(9)]), np.arange(40)[:, None] % 9),
    "two dtypes": (OUEFrequencyEstimator(2.0, categories=[range(9), range(300)]), np.arange(80).reshape(40, 2) % 9),
    "codes of two widths": (GRRFrequencyEstimator(2.0, categories=[range(9), range(300)]),
                            np.arange(80).reshape(40, 2) % 9),
    "blocks of one row": (OUEFrequencyEstimator(1.0, categories=[range(1 << 19)]), np.arange(40)[:, None]),
    "blocks of eight rows": (OUEFrequencyEstimator(1.0, categories=[range(1 << 15)]), np.arange(40)[:, None]),
    "numbers": (PMTransformer(1.0, bounds=(0, 10)), np.linspace(-1, 11, 80).reshape(40, 2)),
    "whole numbers": (PMTransformer(1.0, bounds=(0, 10)), np.arange(80).reshape(40, 2)),
    "floats of another width": (SDPMTransformer(1.0, bounds=(0, 10)),
                                np.linspace(-1, 11, 40, dtype=np.float32)[:, None]),
    "sampled": (PMTransformer(1.0, bounds=(0, 10), strategy="sample"), np.linspace(-1, 11, 80).reshape(40, 2)),
    "sketch": (CMSFrequencyEstimator(1.0, categories=[range(500)]), np.arange(40)[:, None]),
}


@pytest.mark.parametrize("case", FEW)
def test_reports_of_few_rows_are_those_that_they_have_among_many(case):
    """A client's record takes a shorter way, with the same words: the first rows of a seed have the same reports."""
    client, rows = FEW[case]
    client = clone(client).set_params(random_state=3)
    many = client.privatize(rows)
    for n in (1, 2, 8, 9, 16, 17):
        assert np.array_equal(client.privatize(rows[:n]), many[:n])
        assert client.privatize(rows[:n]).dtype == many.dtype


# ---------------------------------------------------------------- rooms


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module


def test_the_road_knows_no_room_and_rooms_know_each_other_one_way():
    above = {"categories": set(), "numbers": set(), "keyvalue": set(), "estimates": {"categories", "numbers"},
             "learning": {"categories", "numbers", "estimates"}, "domains": {"categories", "numbers", "estimates"},
             "attributes": {"categories", "numbers", "estimates"}}
    assert set(above) == {p.name for p in ROOM.iterdir() if (p / "__init__.py").exists()}
    for path in ROOM.rglob("*.py"):
        mine = path.relative_to(ROOM).parts[0]
        if mine in ("__init__.py", "extend.py"):
            continue
        for name in imported(path):
            parts = (name or "").split(".")
            if parts[:2] == ["dpestim", "local"] and len(parts) > 2 and parts[2] in above and parts[2] != mine:
                assert parts[2] in above.get(mine, set()), f"{path.name} imports {name}"


# ---------------------------------------------------------------- a law is its arguments


def test_arguments_are_the_identity():
    low, high = Fraction(1, 8), Fraction(3, 4)
    law = SDPM.make(1.0, 16, low, high, 2, True)
    assert law is SDPM.make(Fraction(1), grid=16, low_from=low, low_to=high, n_levels=2, merged=True)
    assert law == SDPM(1, 16, low, high, 2, True)
    assert law.arguments == {"epsilon": 1, "grid": 16, "low_from": low, "low_to": high, "n_levels": 2, "merged": True}
    assert pickle.loads(pickle.dumps(law)) is law
    assert copy.copy(law) == copy.deepcopy(law) == law
    assert len({law, SDPM(1, 16, low, high, 2, True)}) == 1
    for other in (SDPM.make(1.0, 16, low, high, 1, True), PM.make(1.0, 16), 3, SDPM.make(1.0, 16, low, high, 2, False)):
        assert law != other
    assert "n_levels=2" in repr(law)
    assert PM.own_parameters() == ("grid",)
    with pytest.raises(AttributeError, match="never changes"):
        law.epsilon = 3


def test_nobody_changes_a_law_that_others_share():
    """Estimators of the same parameters have one law: a pickle of theirs would promise what somebody wrote into it."""
    law = PM.make(1.0, 16)
    with pytest.raises(TypeError, match="item assignment"):
        law.arguments["epsilon"] *= 2
    assert pickle.loads(pickle.dumps(law)).epsilon == 1
    thresholds = IDUEFrequencyEstimator(1.0, categories=[["a", "b"]]).randomizer()._odds
    with pytest.raises(ValueError, match="read-only"):
        thresholds[:] = 0


class Listed(GRR):
    def __init__(self, epsilon, n_categories, chosen=frozenset()):
        super().__init__(epsilon, n_categories)
        self.chosen = chosen


def test_what_is_in_a_set_has_a_type_too():
    laws = [Listed.make(1.0, 3, frozenset([chosen])) for chosen in (1, True, 1.0, -0.0, 0.0, np.int64(1))]
    assert [[*map(repr, law.chosen)] for law in laws] == [["1"], ["True"], ["1.0"], ["-0.0"], ["0.0"], ["1"]]
    assert len(set(laws)) == 5
    assert laws[0] is laws[5]


class Picky(GRR):
    def __init__(self, epsilon, n_categories, extra=None):
        super().__init__(epsilon, n_categories)


def test_arguments_are_told_apart_by_type_and_cannot_change():
    made = [Picky.make(1, 3, extra) for extra in (None, 1, True, 1.0, 0.0, -0.0, "1", (1, 2), (True, 2), Fraction(1))]
    assert len(set(made)) == len(made)
    assert all(a == b for a, b in zip(made, pickle.loads(pickle.dumps(made))))
    assert Picky.make(1, np.int64(3), np.float64(1.0)) is made[3]
    for bad in ([1], {"a": 1}, np.array([1]), object()):
        with pytest.raises(ValueError, match="extra must be"):
            Picky.make(1, 3, bad)
    PMTransformer(1.0, bounds=(0, 1), grid=16).randomizer()
    with pytest.raises(ValueError, match="grid"):
        PMTransformer(1.0, bounds=(0, 1), grid=16.0).randomizer()  # whatever the cache holds


def test_a_known_relaxation_means_what_it_says():
    class Bare(SDPM):
        @property
        def promises(self):
            return tuple(p for p in super().promises if p.outputs == ALL)

    with pytest.raises(ValueError, match="with the relaxation SDLDP must promise"):
        Bare.make(1.0, 16, Fraction(1, 8), Fraction(3, 4), 1, True)
    with pytest.raises(ValueError, match="of this epsilon"):
        type("Loud", (WindowRandomizer,), {"__init__": lambda self, epsilon, grid: WindowRandomizer.__init__(
            self, epsilon, grid, lambda e, m: pm_weights(Fraction(5), m))}).make(1.0, 16)


def test_a_law_must_name_its_parameters():
    class Keyword(GRR):
        def __init__(self, epsilon, n_categories, *, mode=1):
            super().__init__(epsilon, n_categories)

    with pytest.raises(TypeError, match="by position"):
        Keyword.make(1.0, 3)

    class Vague(GRR):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    with pytest.raises(TypeError, match="must name its parameters"):
        Vague.make(1.0, 3)


class Tilted(CodeReports, CategoricalRandomizer):
    """Two laws of equal p* and q* that differ in which category, not in how many, they favour with a longer name."""

    def __init__(self, epsilon, n_categories, favourite):
        super().__init__(epsilon, n_categories)
        self.weights, self.favourite = grr_weights(self.epsilon, n_categories), favourite
        self.n_words, self.report_dtype = self.weights.n_words, self.code_dtype
        self.p_star = Fraction(self.weights.keep, self.weights.total)
        self.q_star = Fraction(self.weights.other, self.weights.total)

    def privatize(self, codes, words, out):
        from dpestim._core import grr

        shifted = ((codes + self.favourite) % self.n_categories).astype(codes.dtype)
        grr.privatize(shifted, words.dense(Stage.RESPONSE, self.n_words), self.weights.keep, self.weights.other,
                      out.reshape(-1))

    def support(self, reports):
        out = np.zeros((len(reports), self.n_categories), np.uint8)
        out[np.arange(len(reports)), (reports[:, 0].astype(int) - self.favourite) % self.n_categories] = 1
        return out

    def count(self, reports, counts):
        counts += self.support(reports).sum(axis=0, dtype=np.int64)

    def transition_matrix(self):
        d = self.n_categories
        return [[self.p_star if (x + self.favourite) % d == y else self.q_star for y in range(d)] for x in range(d)]

    def law_indices(self, codes, reports):
        return codes.astype(np.int64), reports[:, 0].astype(np.int64)


class TiltedFrequencyEstimator(FrequencyEstimator):
    """A third party's mechanism with a parameter of its own: one law, one face, nothing else."""

    _randomizer = Tilted
    _test_values = {"favourite": [1, 2]}

    def __init__(self, epsilon=1.0, *, favourite=0, categories="auto", postprocess=None, sparse_output=False,
                 ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.favourite = favourite


def test_a_parameter_of_ones_own_needs_no_other_line():
    """Merging compared type, epsilon, p* and q* only, and took these two for one law."""
    check_mechanism(TiltedFrequencyEstimator(1.0, categories=[["a", "b", "c"]], favourite=1))
    rows = np.array([["a"], ["b"], ["c"]] * 50)
    one, other = (TiltedFrequencyEstimator(1.0, categories=[["a", "b", "c"]], favourite=k).fit(rows) for k in (0, 1))
    with pytest.raises(ValueError, match="parameters of the law"):
        one.merge(other)
    client = TiltedFrequencyEstimator(30.0, categories=[["a", "b", "c"]])
    assert client.privatize(rows[:3])[:, 0].tolist() == [0, 1, 2]
    assert client.set_params(favourite=1).privatize(rows[:3])[:, 0].tolist() == [1, 2, 0]  # no stale law


class Warner(NumericRandomizer):
    """Duchi's law for one number: rounded to one of the bounds, then Warner's answer, as a table of four weights."""

    def __init__(self, epsilon, grid=1):
        super().__init__(epsilon, grid)
        if grid != 1:
            raise ValueError("grid must be 1")

    def table(self):
        keep = math.floor(WORD * exp_lower(self.epsilon) / (exp_lower(self.epsilon) + 1))
        return [[keep, WORD - keep], [WORD - keep, keep]]

    def outputs(self):
        p = Fraction(self.table()[0][0], WORD)
        return [(p - 1) / (2 * p - 1), p / (2 * p - 1)]


class WarnerTransformer(NumericTransformer):
    """A third party's law of numbers in a dozen lines."""

    _randomizer = Warner

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "bounds": (-1.0, 3.0)}]


def test_a_law_of_numbers_is_a_table():
    check_mechanism(WarnerTransformer(1.0, bounds=(-1.0, 3.0)))
    check_mechanism(MeanEstimator(WarnerTransformer(2.0, bounds=(0.0, 10.0))))
    law = WarnerTransformer(1.0, bounds=(0.0, 1.0)).randomizer()
    e = math.e
    worst = ((e + 1) / (e - 1)) ** 2 / 4  # of x = 1/2, in units of the bounds
    mixed = law.positions**2 @ [0.5, 0.5] - 0.25
    assert mixed == pytest.approx(worst, rel=1e-12)
    with pytest.raises(ValueError, match="transformer must send more than two different answers for column 0"):
        DistributionEstimator(WarnerTransformer(2.0, bounds=(0.0, 10.0)), n_bins=4).fit(X)


class Exempt(CodeReports, CategoricalRandomizer):
    """Says the truth about what is not sensitive, always; a third party's relaxed law (URR)."""

    relaxation = "ULDP"
    relaxed_kind = "non-sensitive"

    def __init__(self, epsilon, n_categories, non_sensitive):
        super().__init__(epsilon, n_categories)
        self.open = np.isin(np.arange(n_categories), non_sensitive)
        s = int((~self.open).sum())
        if s < 1 or s == n_categories:
            raise ValueError("non_sensitive must leave out a category, and name one")
        self.n_words, self.report_dtype = 1, self.code_dtype
        other = math.ceil(WORD / (s + exp_lower(self.epsilon) - 1))
        self._other, self._keep = other, WORD - (s - 1) * other
        self.p_star, self.q_star = Fraction(self._keep, WORD), Fraction(other, WORD)

    def transition_matrix(self):
        rows = []
        for x in range(self.n_categories):
            row = [Fraction(0) if self.open[y] else self.q_star for y in range(self.n_categories)]
            row[x] = 1 - self.q_star * int((~self.open).sum() - (not self.open[x]))
            rows.append(row)
        return rows

    def law_indices(self, codes, reports):
        return codes.astype(np.int64), reports[:, 0].astype(np.int64)

    @property
    def promises(self):
        return (Promise("sensitive", "sensitive", ALL, self.epsilon), Promise(ALL, ALL, "protected", self.epsilon),
                Promise(ALL, ALL, ALL, math.inf))

    def kind_of(self, codes):
        return np.where(self.open[np.asarray(codes, np.int64)], "non-sensitive", "sensitive")

    def output_kinds(self):
        return np.where(self.open, "non-sensitive", "protected")


class ExemptFrequencyEstimator(FrequencyEstimator):
    _randomizer = Exempt

    def __init__(self, epsilon=1.0, *, non_sensitive=(), categories="auto", postprocess=None, sparse_output=False,
                 ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.non_sensitive = non_sensitive

    def _law_arguments(self, column, n_columns, encoder):
        return {"non_sensitive": self._codes_of("non_sensitive", column, n_columns, encoder)}


def test_a_relaxed_law_names_its_column_and_its_inputs():
    domain = {"illness": ["flu", "hiv", "none"]}
    est = ExemptFrequencyEstimator(1.0, categories=domain, non_sensitive=[["none", "flu"]])
    assert est.privacy_.epsilon == math.inf
    people = "column 'illness': non-sensitive=['flu', 'none', and any value not in ['flu', 'hiv', 'none']]"
    assert est.privacy_.relaxation == f"ULDP({people})"
    assert est.privacy_.relaxed_epsilon == 1
    assert est.guarantee_by_input_ == [{"sensitive-sensitive": 1}]
    for bad, why in (([["cold"]], "among its categories"), ([["flu", "flu"]], "distinct"), (["flu"], "one list of"),
                     ([["flu"], ["flu"]], "each"), ([], "one list of values for each column"),
                     ([["flu", "hiv", "none"]], "leave out")):
        with pytest.raises(ValueError, match=why) as error:
            est.set_params(non_sensitive=bad).randomizer()
        assert "non_sensitive" in str(error.value)
    dictionary = est.set_params(non_sensitive={"illness": ["none"]})
    assert dictionary.randomizer().arguments["non_sensitive"] == (2,)


# ---------------------------------------------------------------- clients and servers


def test_randomizer_on_both_halves():
    pm = PMTransformer(1.0, bounds=([0, 0], [1, 2]), grid=16)
    assert pm.randomizer(1) == MeanEstimator(pm).randomizer(1) == PM.make(Fraction(1, 2), 16)
    named = PMTransformer(1.0, bounds={"w": (0, 1), "h": (0, 2)}, grid=16)
    assert named.randomizer("h") == MeanEstimator(named).randomizer("h") == pm.randomizer(-1)
    for bad in ("x", 2, 1.0, None, True):
        with pytest.raises(ValueError, match="column must be"):
            named.randomizer(bad)
    grr = GRRFrequencyEstimator(1.0, categories=[["a", "b"]])
    assert grr.randomizer() is DistributionEstimator(grr).randomizer() is GRR.make(1, 2)
    assert isinstance(BinaryFrequencyEstimator(1.0, categories=[["a", "b"]]).randomizer(), Randomizer)
    assert grr.guarantee_by_input_ == [{"all-all": 1}]


def test_means_of_numeric_categories():
    stars = np.repeat([[1], [2], [5]], [2000, 3000, 5000], axis=0)
    est = MeanEstimator(GRRFrequencyEstimator(2.0, categories=[[1, 2, 3, 5]], random_state=0)).fit(stars)
    assert abs(est.mean_[0] - 3.3) < 5 * est.standard_error_[0] < 0.3
    assert est.bias_[0] < 1e-12
    assert est.score(stars) <= 0
    for categories in (["a", "b"], [1.0, None]):
        named = MeanEstimator(GRRFrequencyEstimator(2.0, categories=[categories]))
        with pytest.raises(ValueError, match="must be numbers"):
            named.fit(np.array(categories, dtype=object)[:, None])
    with pytest.raises(ValueError, match="one matrix"):
        MeanEstimator(OUEFrequencyEstimator(2.0, categories=[[1, 2]])).fit(np.array([[1], [2]]))


def test_several_batches_say_what_they_presume():
    one = GRRFrequencyEstimator(1.0, categories=[["a", "b"]]).fit([["a"]])
    assert "batches" not in str(one.privacy_)
    one.partial_fit([["b"]])
    assert "2 batches together if no user was in two of them" in str(one.privacy_)
    one.merge(GRRFrequencyEstimator(1.0, categories=[["a", "b"]]).fit([["a"]]))
    assert "3 batches" in str(one.privacy_)
    mean = MeanEstimator(PMTransformer(1.0, bounds=(0, 10))).fit(X).partial_fit(X)
    assert "2 batches" in str(mean.privacy_)
    assert "batches" not in str(mean.fit(X).privacy_)


def test_names_come_with_the_first_frame_and_stay():
    frame = pd.DataFrame({"weight": X[:, 0]})
    est = MeanEstimator(PMTransformer(1.0, bounds={"weight": (0.0, 10.0)})).fit(frame)
    assert est.feature_names_in_.tolist() == ["weight"]
    with pytest.raises(ValueError, match=r"bounds must have an entry .*lacks 'height'"):
        est.fit(frame.rename(columns={"weight": "height"}))
    with pytest.raises(ValueError, match="feature names"):
        GRRFrequencyEstimator(1.0, categories=[["a", "b"]]).fit(pd.DataFrame({"x": ["a"]})).partial_fit(
            pd.DataFrame({"y": ["a"]}))
    two = SDPMTransformer(1.0, bounds={"w": (0, 10), "h": (0, 2)}, low_sensitivity={"w": (2, 7), "h": (0, 1)})
    assert two.privacy_.relaxation == "SDLDP(column 'w': low=[2.0, 7.0]) x SDLDP(column 'h': low=[-inf, 1.0] and NaN)"
    with pytest.raises(ValueError, match="names where bounds have them"):
        two.set_params(low_sensitivity={"h": (0, 1), "w": (2, 7)}).randomizer()
    with pytest.raises(ValueError, match="pair"):
        PMTransformer(1.0, bounds={"w": 3}).randomizer()


# ---------------------------------------------------------------- what is refused comes before what is paid


def refused_for_free(make, rows, why):
    ledger = Ledger(100, durability="fast")
    with ledger, pytest.raises(ValueError, match=why):
        make().fit(rows)
    assert ledger.spent().epsilon == 0
    assert not ledger.entries()


def test_bins_that_do_not_suit_the_law_are_refused_before_the_charge():
    pm = PMTransformer(2.0, bounds=(0, 10))
    refused_for_free(lambda: DistributionEstimator(pm, n_bins=10**9), X, "at most 32768")
    refused_for_free(lambda: DistributionEstimator(OUEFrequencyEstimator(1.0, categories=[[0, 1]])),
                     np.array([[0], [1]]), "one matrix")


@pytest.mark.parametrize("start", [1.0, 1 + 2**-52, -3.5, 0.0, 1e300, 1e-300])
@pytest.mark.parametrize("ulps", [1, 2, 3, 4, 7])
def test_bounds_a_few_ulps_wide_work_or_are_refused_before_the_charge(start, ulps):
    floats = [start]
    for _ in range(ulps):
        floats.append(float(np.nextafter(floats[-1], np.inf)))
    ledger = Ledger(math.inf, durability="fast")
    for low in (None, *((a, b) for k, a in enumerate(floats) for b in floats[k:])):
        for n_cells in (1, 2):
            t = SDPMTransformer(1.0, bounds=(floats[0], floats[-1]), low_sensitivity=low, n_cells=n_cells, grid=64)
            before = len(ledger.entries())
            with ledger:
                try:
                    mean = MeanEstimator(t).fit(np.array(floats)[:, None]).mean_
                except ValueError:
                    assert len(ledger.entries()) == before
                else:
                    assert np.isfinite(mean).all()


def test_a_refused_fit_leaves_the_old_one():
    est = DistributionEstimator(PMTransformer(2.0, bounds=(0, 10)), n_bins=8).fit(X)
    before = est.distribution_[0]
    for n_bins in (0, 10**9, 1.5, True):
        est.set_params(n_bins=n_bins)
        for verb in (est.fit, est.partial_fit):
            with pytest.raises(ValueError, match="n_bins"):
                verb(X)
    assert est.set_params(n_bins=8).n_users_ == len(X)
    np.testing.assert_array_equal(est.distribution_[0], before)
    grr = GRRFrequencyEstimator(1.0, categories=[["a", "b"]]).fit([["a"]])
    with pytest.raises(ValueError, match="not among"):
        grr.fit([["c"]])
    assert grr.n_users_ == 1


# ---------------------------------------------------------------- relaxations are promises about people


@pytest.mark.parametrize(("low", "start", "stop", "nan"), [
    ((2.0, 7.0), 2.0, 7.0, False), ((0.0, 4.0), -math.inf, 4.0, True), ((4.0, 10.0), 4.0, math.inf, False),
])
def test_the_named_set_is_that_of_all_floats_that_become_low(low, start, stop, nan):
    t = SDPMTransformer(1.0, bounds=(0.0, 10.0), low_sensitivity=low, n_cells=4)
    [column] = t._columns_now()
    assert column.relaxed_interval() == (start, stop, nan)
    ends = np.array([0.0, 10.0, *low])
    values = np.concatenate([
        ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf), np.linspace(-5, 15, 4001),
        [np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -5e-324, -0.0],
        np.random.default_rng(0).integers(0, 1 << 63, 5000).view(np.float64),
        -np.random.default_rng(1).integers(0, 1 << 63, 5000).view(np.float64),
    ])
    law, codes = column.law, np.empty(len(values), np.int64)
    law.encode(values, column.low, column.high, codes)
    named = np.where(np.isnan(values), nan, (values >= start) & (values <= stop))
    assert ((law.kind_of(codes) == "low") == named).all()
    assert t.privacy_.relaxation == f"SDLDP(column 0: low=[{start!r}, {stop!r}]{' and NaN' if nan else ''})"


def test_different_sets_never_share_a_name():
    names = set()
    for bounds in ((0.0, 10.0), (0.0, 20.0), (-5.0, 10.0)):
        for low in ((0.0, 4.0), (2.0, 4.0), (2.0, 10.0)):
            t = SDPMTransformer(1.0, bounds=bounds, low_sensitivity=low)
            [column] = t._columns_now()
            names.add((t.privacy_.relaxation, column.relaxed_interval()))
    assert len({name for name, _ in names}) == len(names)
    one, other = (SDPMTransformer(1.0, bounds={name: (0, 9)}, low_sensitivity=(2, 7)).privacy_.relaxation
                  for name in ("weight", "income"))
    assert one != other  # two attributes never share an account


def test_names_of_columns_that_are_no_strings():
    def charged(frame, **params):
        ledger = Ledger(math.inf, durability="fast")
        with ledger:
            SDPMTransformer(1.0, **{"bounds": (0, 9), "low_sensitivity": (2, 7), **params}).privatize(frame)
        return ledger.entries()[0]["columns"]

    values = np.array([[1.0]])
    assert charged(pd.DataFrame(values)) == charged(values) == ["column 0"]
    assert charged(pd.DataFrame(values, columns=[5])) == ["column label 5"]
    assert charged(pd.DataFrame(values, columns=["5"])) == ["column '5'"]
    assert charged(values, bounds={0: (0, 9)}) == ["column 0"]
    with pytest.raises(ValueError, match="by place"):
        charged(values, bounds={5: (0, 9)})
    assert charged(values, bounds={np.str_("a"): (0, 9)}) == charged(values, bounds={"a": (0, 9)})
    assert "declare columns by name" in str(SDPMTransformer(1.0, bounds=(0, 9)).privacy_)
    assert "declare columns by name" not in str(SDPMTransformer(1.0, bounds={"a": (0, 9)}).privacy_)


def test_merging_refuses_reports_without_names_beside_others():
    def mean(rows, seed):
        return MeanEstimator(SDPMTransformer(1.0, bounds=(0, 9), low_sensitivity=(2, 7), random_state=seed)).fit(rows)

    for first in (0, 1):
        parts = [mean(X, 0), mean(pd.DataFrame({"w": X[:, 0]}), 1)]
        with pytest.raises(ValueError, match="all in data frames with names"):
            parts[first].merge(parts[1 - first])
    merged = mean(pd.DataFrame({"w": X[:, 0]}), 2).merge(parts[1])
    assert merged.privacy_.relaxation == "SDLDP(column 'w': low=[2.0, 7.0])"
    assert merged.feature_names_in_.tolist() == ["w"]


def test_what_was_fitted_or_paid_in_a_block_stays_bound_for_everybody():
    ledger = Ledger(9.0, durability="fast")
    t = PMTransformer(1.0, bounds=(0.0, 10.0))
    with ledger:
        t.fit(X)
    t.transform(X)
    assert ledger.spent().epsilon == 1
    grr = GRRFrequencyEstimator(0.5, categories=[["a", "b"]])
    with ledger.for_users("wave 1"):
        grr.fit([["a"]])
    grr.partial_fit([["b"]])
    assert [e["users"] for e in ledger.entries()] == ["", "wave 1", ""]


def test_strict_mode_reads_what_the_name_says():
    with config_context(strict=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        t = SDPMTransformer(40.0, bounds=(0.0, 10.0), low_sensitivity=(0.0, 4.0), n_cells=2)
        codes = t.privatize(np.array([[np.nan], [-1e300], [3.0], [9.0], [1e300]]))[:, 0]
    assert (t.randomizer().output_kinds()[codes] == ["low", "low", "low", "high", "high"]).all()


# ---------------------------------------------------------------- one object, many hands


def test_threads_that_share_a_server_lose_nothing():
    est = GRRFrequencyEstimator(1.0, categories=[[0, 1, 2]], random_state=0)
    rows = np.zeros((60, 1), int)

    def work():
        for _ in range(25):
            est.partial_fit(rows)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert est.n_users_ == 6000
    assert [(start, stop) for _, start, stop in est._seeds] == [(0, 6000)]
    assert "100 batches" in str(est.privacy_)


def test_a_copy_is_the_same_users():
    est = GRRFrequencyEstimator(1.0, categories=[["a", "b"]]).fit([["a"], ["b"]])
    third = GRRFrequencyEstimator(1.0, categories=[["a", "b"]]).fit([["a"]])
    for twin in (copy.deepcopy(est), pickle.loads(pickle.dumps(est)), copy.deepcopy(est).partial_fit([["a"]]),
                 GRRFrequencyEstimator(1.0, categories=[["a", "b"]]).merge(est).merge(third)):
        with pytest.raises(ValueError, match="copy of this aggregate"):
            est.merge(twin)
    assert est.merge(third).n_users_ == 3
    assert est.fit([["a"]]).merge(third).n_users_ == 2  # a new fit is nobody's copy


def test_domains_changed_in_place_are_noticed():
    for make in (list, np.array, pd.Series, pl.Series, lambda v: array.array("d", v)):
        low, high = make([0.0]), make([1.0])
        t = PMTransformer(1.0, bounds=(low, high))
        assert t._columns_now().columns[0].high == 1
        high[0] = 100.0
        assert t._columns_now().columns[0].high == 100
    for make in (list, np.array, pd.Series, pl.Series, lambda v: np.array(v, dtype=object)):
        values = make(["healthy", "ill"])
        grr = GRRFrequencyEstimator(40.0, categories=[values])
        assert grr.privatize([["ill"]]).tolist() == [[1]]
        values[0], values[1] = "ill", "healthy"
        assert grr.privatize([["ill"]]).tolist() == [[0]]


def test_what_pays_once_pays_for_what_collects_for_it():
    ledger = Ledger(9.0, durability="fast")
    with ledger:
        t = PMTransformer(1.0, bounds=(0, 10))
    mean = MeanEstimator(t).fit(X)
    mean.set_params(transformer=PMTransformer(1.0, bounds=(0, 10))).fit(X)
    assert ledger.spent().epsilon == 2


def test_arrow_tables_have_names():
    table = pa.table({"a": [0, 1, 1]})
    assert len(GRRFrequencyEstimator(1.0, categories={"a": [0, 1]}).privatize(table)) == 3
    with pytest.raises(ValueError, match=r"categories must have an entry .*lacks 'a'"):
        GRRFrequencyEstimator(1.0, categories={"b": [0, 1]}).privatize(table)


def test_zones_are_part_of_a_time():
    times = [datetime(2020, 1, k, tzinfo=UTC) for k in (1, 2, 3)]
    est = GRRFrequencyEstimator(40.0, categories=[times])
    for frame in (pl.DataFrame({"a": times}), pd.DataFrame({"a": times})):
        assert est.privatize(frame)[:, 0].tolist() == [0, 1, 2]
    naive = [t.replace(tzinfo=None) for t in times]
    with pytest.raises(ValueError, match="not among"):
        GRRFrequencyEstimator(40.0, categories=[naive]).privatize(pl.DataFrame({"a": times}))


def test_what_would_fail_later_is_refused_before_the_charge():
    pm = PMTransformer(2.0, bounds=(0, 10))
    refused_for_free(lambda: DistributionEstimator(pm, smoothing="x"), X, "smoothing")
    far = GRRFrequencyEstimator(1.0, categories=[[-1e308, 1e308]])
    refused_for_free(lambda: MeanEstimator(far), np.array([[1e308]]), "finite differences")


@pytest.mark.ci
def test_means_know_the_outliers_that_the_law_hides():
    """With everybody at a bound and a large epsilon the spread of few reports is next to nothing."""
    for transformer, value in ((PMTransformer(12.0, bounds=(0, 1)), 1.0), (PMTransformer(4.0, bounds=(0, 1)), 1.0),
                               (GRRFrequencyEstimator(8.0, categories=[[0, 1, 2, 3]]), 0)):
        covered = 0
        for seed in range(200):
            est = MeanEstimator(transformer.set_params(random_state=seed)).fit(np.full((100, 1), value))
            [(low, high)] = est.confidence_interval()
            covered += low <= value <= high
        assert covered >= 180  # binomial: below 0.95 by 5 points has p < 0.001


def test_distributions_of_numeric_categories_are_in_their_units():
    years = np.random.default_rng(3).integers(2000, 2010, (5000, 1))
    est = DistributionEstimator(GRRFrequencyEstimator(9.0, categories=[list(range(2000, 2010))])).fit(years)
    assert abs(est.mean_[0] - years.mean()) < 0.1
    assert est.quantile(0.5)[0] in (2004, 2005)
    assert est.bin_edges_[0][[0, -1]].tolist() == [1999.5, 2009.5]
    coin = DistributionEstimator(GRRFrequencyEstimator(10.0, categories=[[0, 1]]), smoothing=False).fit(years % 2)
    assert coin.variance_[0] <= 0.25 + 1e-9
    halves = MeanEstimator(GRRFrequencyEstimator(9.0, categories=[[0, 0.5, 1]])).fit(years % 2)
    assert abs(halves.mean_[0] - 0.5) < 0.05


def test_an_overdraft_says_which_relaxation_would_pay():
    t = SDPMTransformer(1.0, bounds={"w": (0, 9)}, low_sensitivity=(2, 7), ledger=Ledger(5.0, durability="fast"))
    with pytest.raises(ValueError, match=r"Under the relaxation SDLDP\(column 'w'.*to pay for the release"):
        t.privatize([[1.0]])
    ledger = Ledger(5.0, durability="fast")
    PMTransformer(1.0, bounds=(0, 1), ledger=ledger).privatize([[0.5]])
    assert "local model" in str(ledger.remaining())
