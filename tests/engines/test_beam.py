"""Apache Beam: a pipeline adds up what an estimator asks of rows, and the driver releases it once."""

import pickle
import re
from itertools import pairwise

import numpy as np
import pytest

from dpestim import config_context, distributed
from dpestim.accounting import Ledger
from dpestim.base import all_estimators
from dpestim.central.stability.rows import RowMechanism
from dpestim.cluster import DPKMeans
from dpestim.decomposition import DPPCA
from dpestim.distributed.on_beam import combine_fn
from dpestim.ensemble import DPRandomForestClassifier
from dpestim.local import GRRFrequencyEstimator
from dpestim.naive_bayes import DPGaussianNB
from dpestim.statistics import ContingencyTable, Count, Mean
from dpestim.summaries import Mergeable

beam = pytest.importorskip("apache_beam", reason="apache-beam is not installed: pip install 'dpestim[beam]'")
pickler = pytest.importorskip("apache_beam.internal.pickler")
pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
FRAME = pandas.DataFrame({"age": RNG.uniform(17, 90, 5000), "hours": RNG.uniform(0, 99, 5000),
                          "kind": RNG.choice(["a", "b"], 5000)})
NUMBERS = ["age", "hours"]
BOUNDS = {"age": (17, 90), "hours": (0, 99)}
#: What says that an estimator, with its parameters, needs more than one pass over rows in any order.
WHOLE = "all rows at once|needs the rows again|read more than once"
pytestmark = pytest.mark.filterwarnings("ignore")


def run(make, folder):
    """Return what a pipeline makes: one estimator, written as a runner elsewhere would write it."""
    with beam.Pipeline(runner="DirectRunner") as pipeline:
        (make(pipeline) | beam.Map(pickle.dumps) | beam.Map(lambda text: (folder / "found").write_bytes(text)))
    return pickle.loads((folder / "found").read_bytes())


def mean(**params):
    return Mean(1.0, bounds=BOUNDS, random_state=0, **params)


def expected(make, rows):
    """Return what one machine releases of all rows at once."""
    return make().summarize(*rows).release()


def test_batches_of_any_kind(tmp_path):
    records, wanted = FRAME[NUMBERS].to_dict("records"), expected(mean, (FRAME[NUMBERS],)).value
    batches = [FRAME[NUMBERS].iloc[a : a + 1300] for a in range(0, 5000, 1300)]
    example = FRAME[NUMBERS].iloc[:1]
    for make in (
        lambda p: p | beam.Create(batches) | beam.CombineGlobally(combine_fn(mean(), example)),
        lambda p: (p | beam.Create(records) | beam.BatchElements(100, 700)
                   | beam.CombineGlobally(combine_fn(mean(), example))),
    ):
        est = mean()
        with Ledger(1.0) as ledger:
            found = est.merge(run(make, tmp_path)).release()
        assert (found.value == wanted).all()
        assert ledger.spent().epsilon == 1


def test_models(tmp_path):
    def make():
        return DPGaussianNB(1.0, classes=["a", "b"], bounds=BOUNDS, random_state=1)

    batches = [FRAME[[*NUMBERS, "kind"]].iloc[a : a + 1300] for a in range(0, 5000, 1300)]
    fn = combine_fn(make(), batches[0], y="kind")
    found = make().merge(run(lambda p: p | beam.Create(batches) | beam.CombineGlobally(fn), tmp_path)).release()
    assert (found.theta_ == expected(make, (FRAME[NUMBERS], FRAME["kind"])).theta_).all()
    assert list(found.feature_names_in_) == NUMBERS


def test_no_batch_at_all(tmp_path):
    """Whether there is a row may be secret: what comes out is a summary of none, of the same columns."""
    fn = combine_fn(mean(), FRAME[NUMBERS])
    found = run(lambda p: p | beam.Create([]) | beam.CombineGlobally(fn), tmp_path)
    assert (mean().merge(found).release().value == expected(mean, (FRAME[NUMBERS].iloc[:0],)).value).all()


def settings():
    for name, cls in all_estimators():
        if issubclass(cls, Mergeable) and not issubclass(cls, RowMechanism):
            for params in cls._test_params():
                yield pytest.param(cls, params, id=f"{name}-{len(params)}")


def _shown(totals):
    with np.printoptions(threshold=10**9):
        return sorted(map(repr, totals.items())) if isinstance(totals, dict) else repr(totals)


def made(est, rows):
    """Return (what is made, None), or (None, why nothing is)."""
    try:
        return combine_fn(est, rows), None
    except ValueError as why:
        return None, str(why)


@pytest.mark.parametrize(("cls", "params"), list(settings()))
def test_every_estimator_that_merges(cls, params):
    """By the steps that a runner takes, with a pickle between them: bit for bit what one machine releases."""
    def make():
        est = cls(**params)
        names = [name for name in est.get_params() if name.rpartition("__")[2] == "random_state"]
        return est.set_params(**dict.fromkeys(sorted(names, key=len)[:1], 3))

    X, y = make()._test_data(40)
    rows = (X,) if y is None else (X, np.asarray(y))
    fn, why = made(make(), rows)
    if why:
        assert re.search(WHOLE, why)
        with pytest.raises(ValueError, match=WHOLE):
            distributed.fit(make(), iter([rows]))  # (what is read once only, for what asks in several rounds)
        return
    fn = pickler.loads(pickler.dumps(fn))
    totals = []
    for cuts in ([0, 9, 9], [9, 30], [30, 40]):
        total = fn.create_accumulator()
        for a, b in pairwise(cuts):
            total = fn.add_input(total, tuple(part[a:b] for part in rows))
        totals.append(pickle.loads(pickle.dumps(total)))
    found = fn.extract_output(fn.merge_accumulators([totals[2], fn.create_accumulator(), totals[0], totals[1]]))
    one, other = make().merge(pickle.loads(pickle.dumps(found))), make().summarize(*rows)
    assert _shown(one.summary_.totals) == _shown(other.summary_.totals)
    assert one.summary_.n_rows == 40
    assert one.summary_.identity == other.summary_.identity


def test_strict_mode_and_relation_travel(tmp_path):
    rows = np.array([[0.5], [np.nan]])
    with config_context(strict=True, neighbours="add_remove"):
        est = Mean(1.0, bounds=(0, 1))
        found = run(lambda p: p | beam.Create([rows]) | beam.CombineGlobally(combine_fn(est, rows)), tmp_path)
        assert np.isfinite(est.merge(found).release().value)
    with pytest.raises(ValueError, match="same parameters"):
        Mean(1.0, bounds=(0, 1)).merge(found)
    with pytest.raises(ValueError, match="other rows"):
        est.merge(found)


@pytest.mark.parametrize(("make", "match"), [
    (lambda: GRRFrequencyEstimator(1.0, categories=[["a"]]), "no sums that a pipeline adds up"),
    (lambda: DPKMeans(2, bounds=BOUNDS), "no sums that a pipeline adds up"),
    (lambda: DPPCA(1, bounds=BOUNDS, method="power", delta=1e-6), "needs the rows again"),
    (lambda: DPRandomForestClassifier(1.0, classes=[0, 1], bounds=BOUNDS), "max_depth|more than once"),
    (lambda: Count(1.0, max_rows_per_user=2, neighbours="add_remove"), "max_rows_per_user must be None"),
    (lambda: Mean(1.0, bounds="private"), "declare bounds"),
    (lambda: ContingencyTable(1.0), "categories must be"),
])
def test_refusals(make, match):
    with pytest.raises(ValueError, match=match):
        combine_fn(make(), FRAME[NUMBERS])


def test_rows_in_order_are_refused():
    classes = [cls for _, cls in all_estimators() if issubclass(cls, RowMechanism) and issubclass(cls, Mergeable)]
    for cls in classes:
        est = cls(**cls._test_params()[0])
        with pytest.raises(ValueError, match="an order that Beam does not keep"):
            combine_fn(est, est._test_data(5)[0])
