"""One model of several parties: what each sends, who pays, and which estimators can be served."""

import re
import socket
import sys
from contextlib import closing
from fractions import Fraction
from threading import Thread

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from dpestim.accounting import Ledger
from dpestim.base import all_estimators
from dpestim.cluster import DPKMeans
from dpestim.distributed.exact_share import polya_share
from dpestim.distributed.parts import made_up
from dpestim.distributed.shared_noise import share_of
from dpestim.exceptions import BudgetExceededError, PartiesError
from dpestim.linear_model import DPLinearRegression
from dpestim.parties import Certificate, Directory, Identity, RoundsClient, SumTerms, federated, serve_rounds, take_part
from dpestim.parties.model_of_all import _SHARES, _check_served, _Meeting, _rehearse, _run
from dpestim.passes import InProcesses, Place
from dpestim.preprocessing import DPKBinsDiscretizer, DPQuantileTransformer
from dpestim.results import LEARNED
from dpestim.rng import WordSource, sums_here
from dpestim.statistics import Count, Mean, Quantile, Variance

#: Who is served, of the registry; `test_registry` tells whether the others say why not.
SERVED = {
    "ContingencyTable", "Correlation", "Count", "Covariance", "DPCategoricalNB", "DPCovariance", "DPGaussianNB",
    "DPGradientBoostingClassifier", "DPGradientBoostingRegressor", "DPKMeans", "DPLinearRegression",
    "DPLogisticRegression", "DPPCA", "DPQuantileTransformer", "DPRandomForestClassifier",
    "DPRandomForestRegressor", "DPRidge", "DPSimpleImputer", "Histogram", "Mean", "StandardDeviation", "Sum",
    "Variance",
}
N_PARTIES, N_ROWS = 3, 200
CERTIFICATE = Certificate.make()
#: What is said of those that are not; or why their rows cannot be in parts.
REFUSALS = "sums of parts|all rows at once|draw nothing else|row_allocation|edges_fraction|needs"
module = sys.modules["dpestim.parties.model_of_all"]


class Exact:
    """Stands in for noise: adds none, and keeps what would have got it."""

    def __init__(self, sums=None):
        self.codes, self.releases, self.sums = [], [], sums

    def noisy(self, law, codes):
        share_of(law, 1)
        found = codes if self.sums is None else self.sums.total(codes.view(np.uint64).copy(), "").view(np.int64)
        self.codes.append(found.copy())
        self.releases.append((law, codes.size))
        return found


class Told:
    """Adds up as `_Meeting` does, and keeps what a party sends."""

    def __init__(self, seat, ledger=None):
        self.seat, self.ledger, self.sent = seat, ledger, []
        self.n_parties, self.place = seat.n_parties, seat.place

    def total(self, words, label):
        self.sent.append((label, words.copy(), None if self.ledger is None else float(self.ledger.spent().epsilon)))
        return self.seat.total(words, label)


def together(makers, rows, ledgers=None, **options):
    """Let parties take part in threads; returns (fitted estimators or errors, what each sent)."""
    meeting = _Meeting(len(rows))
    told = [Told(meeting.seat(k), None if ledgers is None else ledgers[k]) for k in range(len(rows))]
    found = [None] * len(rows)

    def attend(k):
        try:
            found[k] = take_part(makers(k), told[k], *rows[k], **options)
        except BaseException as error:
            found[k] = error
            meeting.barrier.abort()

    threads = [Thread(target=attend, args=(k,)) for k in range(len(rows))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return found, told


def cut(data):
    return [tuple(part[a : a + N_ROWS] for part in data) for a in range(0, N_PARTIES * N_ROWS, N_ROWS)]


def cases(wanted):
    return [pytest.param(cls, params, id=f"{name}-{k}", marks=[pytest.mark.ci] if k else [])
            for name, cls in all_estimators() if (cls.__name__ in SERVED) == wanted
            for k, params in enumerate(cls._test_params()[: None if wanted else 1])]


def data_of(est):
    return tuple(part for part in est._test_data(N_PARTIES * N_ROWS) if part is not None)


@pytest.mark.parametrize(("cls", "params"), cases(True))
def test_the_integers_of_parties_add_up_to_those_of_all_rows(cls, params, monkeypatch):
    """And get the same noise, so that models are those of one machine; or all is refused before rows are asked."""
    made = []
    monkeypatch.setattr(module, "_Shares", lambda sums, *rest: made.append(Exact(sums)) or made[-1])
    est = cls(**params)
    data = data_of(est)
    refused = []
    try:
        federated(est, [part if len(part) > 1 else part[0] for part in cut(data)])
    except ValueError as error:
        refused.append(str(error))
    if refused:
        assert re.search(REFUSALS, refused[0])
        assert not made
        return
    alone = Exact()

    def ask(request):
        return request.call() if isinstance(request, InProcesses) else request(data, Place())

    _run(cls(**est.get_params(deep=False)), ask, made_up(data), alone, N_PARTIES, 2)
    central, machine = cls(**est.get_params(deep=False)), Exact()
    token = sums_here.set(machine)
    try:
        central.fit(*data)
    finally:
        sums_here.reset(token)
    assert machine.releases == made[0].releases  # (laws and sizes)
    learned = {name: value for name, value in vars(central).items() if name in LEARNED}
    assert learned or hasattr(central, "predict")
    for name, value in learned.items():
        pairs = (value, getattr(est, name)) if isinstance(value, list) else ([value], [getattr(est, name)])
        for one, several in zip(*pairs, strict=True):
            np.testing.assert_allclose(several, one, rtol=1e-3, atol=1e-3, err_msg=name)
    if hasattr(central, "predict"):
        found, expected = est.predict(data[0]), central.predict(data[0])
        assert np.mean(found == expected) > 0.99 if found.dtype.kind in "OUiub" else np.allclose(found, expected, 1e-3)
    assert len(alone.codes) == len(made[0].codes) > 0
    for one, several in zip(alone.codes, made[0].codes):
        # (where integers are large, each party rounds its own)
        assert np.abs(one - several).max(initial=0) <= N_PARTIES


@pytest.mark.parametrize(("cls", "params"), cases(False))
def test_who_is_not_served_says_why(cls, params):
    est = cls(**params)
    with pytest.raises(ValueError) as error:
        federated(est, [[0.5], [0.5]])
    why = None if hasattr(est, "fit_parts") else est._not_in_parts
    assert re.search(REFUSALS, str(error.value)) if why is None else str(error.value) == f"{cls.__name__} {why}"


def test_every_class_that_is_served_has_a_setting_that_is():
    for name, cls in all_estimators():
        found = False
        for params in cls._test_params():
            try:
                est = cls(**params)
                _check_served(est)
                _rehearse(est, made_up(data_of(est)))
                found = True
            except (ValueError, TypeError, AttributeError, KeyError):
                continue
        assert found == (cls.__name__ in SERVED), name


def test_what_leaves_a_party_is_its_integers_and_its_share():
    rows = [(np.arange(20) < k,) for k in (3, 5, 11)]
    counts, told = together(lambda k: Count(1 / 64, neighbours="add_remove", random_state=k), rows, honest=2)
    for place, (party, (own,)) in enumerate(zip(told, rows)):
        (_, start, _), (_, sent, _) = party.sent
        share = polya_share(Fraction(1, 64), 2)
        source = WordSource(place).part(_SHARES).part(place).part(0)
        assert start.tolist() == [0]  # (how many rows there are is secret)
        noise = share.draw(source, 1).view(np.int64)
        assert noise.any()
        assert sent.view(np.int64).tolist() == (own.sum() + noise).tolist()
    total = sum(party.sent[1][1].view(np.int64)[0] for party in told)
    assert [count.value_ for count in counts] == [total] * 3
    said = str(counts[0].result_.privacy)
    assert "as long as at most 1 of the 3 parties colludes or drops out" in said
    assert "curator" not in said


def test_labels_tell_nothing_of_rows():
    labels = []
    for shift in (0.0, 0.4):
        rows = [(np.linspace(0, 0.5, 50)[:, None] + shift,) for _ in range(3)]
        _, told = together(lambda k: DPKMeans(1.0, n_clusters=2, bounds=(0, 1), neighbours="add_remove"), rows)
        labels.append([label for label, *_ in told[0].sent])
    # (from the second round on, the law may follow from what was released)
    assert labels[0][:2] == labels[1][:2]


def test_each_party_pays_before_it_sends():
    ledgers = [Ledger(2.0) for _ in range(3)]
    rows = [(np.linspace(0, 1, 30),)] * 3
    means, told = together(lambda k: Mean(0.75, bounds=(0, 1), ledger=ledgers[k]), rows, ledgers)
    for party in told:
        assert [spent for *_, spent in party.sent] == [0.0, 0.75]
    assert means[0].value_ == means[1].value_ == means[2].value_


def test_a_party_that_cannot_pay_sends_nothing_of_its_rows():
    ledgers = [Ledger(2.0), Ledger(0.5), Ledger(2.0)]
    rows = [(np.linspace(0, 1, 30),)] * 3
    found, told = together(lambda k: Mean(0.75, bounds=(0, 1), ledger=ledgers[k]), rows, ledgers)
    assert isinstance(found[1], BudgetExceededError)
    assert len(told[1].sent) == 1  # (the public number of rows)
    assert all(isinstance(error, BaseException) for error in found)


def test_refusals_cost_nothing():
    for est, data in (
        (DPKBinsDiscretizer(1.0, bounds=(0, 1)), np.ones((20, 2))), (Count(1.0), np.array(["a"] * 20)),
        (Quantile(1.0, bounds=(0, 1)), np.ones(20)), (Variance(1.0, bounds=(0, 1)), np.ones(20)),
        (Mean(1.0, bounds=(0, 1)), np.array(["a"] * 20)),
        (DPLinearRegression(1.0, delta=1e-5, method="adassp", bounds=(0, 1), target_bounds=(0, 1)),
         (np.ones((20, 2)), np.ones(20))),
    ):
        est.set_params(ledger=Ledger(5.0, delta=0.1))
        with pytest.raises(ValueError):
            federated(est, [data, data])
        assert est.ledger.spent().epsilon == 0


def test_other_parameters_or_columns_are_refused():
    rows = [(np.ones(9),)] * 2
    found, _ = together(lambda k: Mean(1.0 + k, bounds=(0, 1)), rows)
    assert any("same parameters" in str(error) for error in found)
    frames = [pd.DataFrame({name: np.ones(9)}) for name in "ab"]
    with pytest.raises(ValueError, match="same columns"):
        federated(Mean(1.0, bounds=(0, 1)), frames)
    ledger = Ledger(5.0)
    for widths in ((1, 3), (3, 1), (2, 3)):  # (the party that pays first once had paid when another was refused)
        with pytest.raises(ValueError, match="same columns"):
            federated(Mean(1.0, bounds=(0, 1), ledger=ledger), [np.ones((9, width)) for width in widths])
    assert ledger.spent().epsilon == 0
    assert federated(Mean(1.0, bounds=(0, 1), ledger=ledger), [np.ones((9, 1)), np.ones(9)]).value_ is not None
    with pytest.raises(ValueError, match="two or more"):
        federated(Mean(1.0, bounds=(0, 1)), [np.ones(9)])
    for honest in (0, 3, True, 1.5):
        with pytest.raises(ValueError, match="honest"):
            federated(Mean(1.0, bounds=(0, 1)), [np.ones(9)] * 2, honest=honest)


def test_users_are_those_of_one_party():
    count = Count(8.0, neighbours="add_remove", max_rows_per_user=1)
    rows = [(np.ones(40, bool), np.arange(40) // 2) for _ in range(2)]
    with pytest.raises(ValueError, match="disjoint"):
        federated(count, rows)
    assert abs(federated(count, rows, users="disjoint").value_ - 40) < 10


def test_a_source_whose_noise_others_make_draws_nothing():
    token = sums_here.set(Exact())
    try:
        source = WordSource(1)
    finally:
        sums_here.reset(token)
    for draw in (source.reader, source.part(3).reader, source.key_for_workers):
        with pytest.raises(ValueError, match="several parties"):
            draw()
    WordSource(1).reader()


def over_sockets(makers, rows, dies=None):
    """Let parties take part over sockets; one of them may break its connection before a sum of a number."""
    terms = SumTerms(len(rows), 64, dropout=0.26, label="test")
    owner, *identities = (Identity() for _ in range(len(rows) + 1))
    directory = Directory(owner.public, [identity.public for identity in identities])
    found = [None] * len(rows)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def attend(place):
            with closing(RoundsClient(socket.create_connection(listener.getsockname()), terms, directory, place,
                                      identities[place], CERTIFICATE.fingerprint, deadline=20)) as sums:
                total, n = sums.total, []

                def counted(*given):
                    n.append(given)
                    if dies == (place, len(n)):
                        raise ConnectionError("died")
                    return total(*given)

                sums.total = counted
                try:
                    found[place] = take_part(makers(place), sums, *rows[place])
                except (ValueError, ConnectionError) as error:
                    found[place] = error

        threads = [Thread(target=attend, args=(place,)) for place in range(len(rows))]
        [thread.start() for thread in threads]
        try:
            seen = serve_rounds(listener, terms, directory, owner, CERTIFICATE, deadline=20)
        except PartiesError as error:
            seen = error
        [thread.join() for thread in threads]
    return found, seen


@pytest.mark.parametrize("dies", [None, (2, 2)])
def test_over_sockets_a_party_may_drop_out(dies):
    rows = [(np.ones(100 * (k + 1), bool),) for k in range(4)]
    found, seen = over_sockets(lambda k: Count(20.0, neighbours="add_remove"), rows, dies)
    left = [0, 1, 2, 3] if dies is None else [0, 1, 3]
    assert [survivors for _, survivors, _ in seen] == [[0, 1, 2, 3], left]
    assert {found[k].value_ for k in left} == {found[0].value_}
    assert abs(found[0].value_ - (1000 if dies is None else 700)) < 20
    if dies:
        assert isinstance(found[2], ConnectionError)


def test_over_sockets_a_public_number_of_rows_is_of_all_or_there_is_an_error():
    rows = [(np.linspace(0, 1, 50),)] * 4
    found, _ = over_sockets(lambda k: Mean(5.0, bounds=(0, 1)), rows, (2, 2))
    assert all(isinstance(error, ConnectionError if k == 2 else PartiesError) for k, error in enumerate(found))


def test_over_sockets_a_stranger_that_says_nothing_keeps_nobody_waiting():
    terms = SumTerms(2, 1)
    owner, *identities = (Identity() for _ in range(3))
    directory, found = Directory(owner.public, [identity.public for identity in identities]), [None] * 2

    def attend(place, address):
        with closing(RoundsClient(socket.create_connection(address), terms, directory, place, identities[place],
                                  CERTIFICATE.fingerprint, deadline=2)) as sums:
            found[place] = int(sums.total(np.array([place + 1], np.uint64), "")[0])

    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()):
        threads = [Thread(target=attend, args=(place, listener.getsockname()), daemon=True) for place in range(2)]
        [thread.start() for thread in threads]
        seen = serve_rounds(listener, terms, directory, owner, CERTIFICATE, deadline=3)
        [thread.join() for thread in threads]
    assert found == [3, 3]
    assert len(seen) == 1


def test_over_sockets_other_parameters_are_refused():
    found, seen = over_sockets(lambda k: Mean(5.0 + k // 3, bounds=(0, 1)), [(np.linspace(0, 1, 50),)] * 4)
    assert isinstance(seen, PartiesError)
    assert all(isinstance(error, PartiesError) for error in found)
    assert "same parameters" in str(seen)


def test_models_are_about_as_good_as_those_of_one_machine():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 2))
    y = X @ [0.5, -0.3] + rng.normal(0, 0.05, 6000)
    parties = [(X[a : a + 1200], y[a : a + 1200]) for a in range(0, 6000, 1200)]
    model = federated(DPLinearRegression(4.0, bounds=(-1, 1), target_bounds=(-1, 1), random_state=0), parties)
    assert np.abs(model.coef_ - [0.5, -0.3]).max() < 0.1
    assert "5 parties" in str(model.privacy_)


@pytest.mark.parametrize("est", [
    Mean(1.0, bounds=(0, 1)), Mean(1.0, bounds=(0, 1), neighbours="add_remove"),
    DPKMeans(1.0, n_clusters=2, bounds=(0, 1), n_iter=1), DPQuantileTransformer(1.0, bounds=(0, 1))], ids=repr)
def test_the_ledger_of_a_block_pays_once(est):
    rows = [np.linspace(0, 1, 60).reshape(-1, 1)] * 3
    with Ledger(8) as alone:
        clone(est).fit(rows[0])
    with Ledger(8) as ledger:
        federated(est, rows)
    assert ledger.spent().epsilon == alone.spent().epsilon


def test_a_later_fit_of_the_same_object_does_not_claim_shares():
    rows = [np.linspace(0, 1, 60)] * 3
    mean = federated(Mean(1.0, bounds=(0, 1)), rows)
    assert "3 parties" in str(mean.privacy_)
    assert "3 parties" in str(mean.result_.privacy)
    assert "parties" not in str(mean.fit(rows[0]).privacy_)


@pytest.mark.parametrize("kind", [
    np.array, pd.Series, pl.Series, pd.Index, list, tuple, pd.DataFrame, sparse.csr_array, sparse.coo_matrix,
    lambda x: pl.DataFrame({"x": x}), lambda x: {"names": [pd.Series(x)]}, lambda x: Mean(1.0, bounds=pd.Series(x)),
    lambda x: pd.Series([1] * len(x), index=x)])
def test_parameters_that_differ_in_the_middle_are_other_ones(kind):
    """Whatever holds them: what is shown of a long column, or of a sparse matrix, is the same for both."""
    x = np.arange(1, 2001).reshape(-1, 1) if kind in (pd.DataFrame, sparse.csr_array, sparse.coo_matrix) else (
        np.arange(1, 2001))
    other = x.copy()
    other[1000] = 7
    one, same, other = (module._plain(kind(values)) for values in (x, x.copy(), other))
    assert one == same != other


def test_equal_parameters_in_other_containers_are_equal():
    assert module._plain(pd.Series([1, 2])) == module._plain([1, 2]) == module._plain(np.array([1, 2]))
    assert module._plain(np.array(1.5)) == module._plain(1.5) == module._plain(np.float64(1.5))
    assert module._plain(pd.DataFrame({"a": [1]})) != module._plain(pd.DataFrame({"b": [1]}))
