"""What a collector counts, what it rejects and for which reason, and what it says of either."""

import datetime
import json
import os
import pickle
import sqlite3
import sys
import warnings
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import dpestim.local
from dpestim.base import all_estimators
from dpestim.collection import Collector, Survey
from dpestim.collection.incoming import REASONS, Examiner
from dpestim.collection.messages import sealed
from dpestim.exceptions import CollectionError
from dpestim.local import GRRFrequencyEstimator, LDPSGDClassifier, MixedEstimator, PMTransformer

DRINKS = ["tea", "coffee", "water", "milk", "wine"]
SECRET = "vodka"


def survey_of(name="drinks", **more):
    return Survey(GRRFrequencyEstimator(2.0, categories=[DRINKS]), name=name, **more)


def reports_of(survey, n, seed=None):
    rows = np.array(DRINKS, object)[np.arange(n) % 5][:, None]
    return survey.client(random_state=seed).privatize(rows)


def same_counts(server, *reports):
    expected = np.bincount(np.concatenate(reports).ravel(), minlength=5)
    return server.n_users_ == expected.sum() and np.array_equal(server._counts[0], expected)


@pytest.fixture
def collector(tmp_path):
    made = Collector(survey_of(), tmp_path / "state.sqlite")
    yield made
    made.close()


# -------------------------------------------------------------------- batches


@pytest.mark.parametrize("form", [
    lambda s, r: s.encode(r), lambda s, r: s.encode(r, nonces=True), lambda s, r: s.encode_text(r),
    lambda s, r: [bytes(m) for m in s.encode(r)], lambda s, r: s.to_arrow(r, nonces=True, batch="a"),
    lambda s, r: s.to_arrow(r, received_on="2026-11-26").combine_chunks().to_batches()[0],
], ids=["rows", "nonces", "text", "list", "table", "record batch"])
def test_batches_in_every_form_are_counted_once(collector, form):
    reports = reports_of(collector.survey, 500)
    batch = form(collector.survey, reports)
    assert collector.add(batch, name="a") == (500, {}, 0, 0)
    assert collector.add(batch, name="a") == (0, {}, 1, 0)  # a retry is no mistake
    assert collector.rejected_ == {}
    with pytest.raises(ValueError, match="name is that of another batch"):
        collector.add(form(collector.survey, reports[:-1]), name="a")
    assert same_counts(collector.server(), reports)
    again = collector.add(batch)  # without a name nothing tells a retry from an equal batch
    assert again.n + sum(again.rejected.values()) == 500
    assert collector.add(batch).rejected == {"repeated batch": 500}
    assert collector.n_reports_ + sum(collector.rejected_.values()) == 1500


def test_one_message_is_a_batch(collector):
    message = collector.survey.encode(reports_of(collector.survey, 1), nonces=True)
    assert collector.add(bytes(message[0])).n == 1
    assert collector.add(collector.survey.encode_text(reports_of(collector.survey, 1), nonces=True)[0]).n == 1
    assert collector.add([bytes(message[0]), b""]).rejected == {"duplicate": 1, "malformed": 1}


@pytest.mark.parametrize("batch", [None, 3, np.zeros((2, 3)), np.zeros(3, np.uint8), [1], {"report": []}])
def test_other_batches_are_refused(collector, batch):
    with pytest.raises(ValueError, match="batch must be"):
        collector.add(batch)
    assert collector.batches_ == 0


def test_parameters_are_checked(tmp_path):
    survey = survey_of()
    for window in (0, True, 1.5, "30"):
        with pytest.raises(ValueError, match="nonce_window"):
            Collector(survey, tmp_path / "a", nonce_window=window)
    for received in ("yesterday", 3, datetime.datetime(2026, 1, 1)):
        with pytest.raises(ValueError, match="received must be a date"):
            Collector(survey, tmp_path / "a", received=received)
    collector = Collector(survey, tmp_path / "a")
    for name in ("", 3):
        with pytest.raises(ValueError, match="name must be"):
            collector.add(b"", name=name)
    with pytest.raises(ValueError, match="must end in"):
        collector.add_file(tmp_path / "a")
    with pytest.raises(ValueError, match="verbose"):
        collector.scan("*", verbose=-1)


def test_a_server_is_a_new_estimator_of_what_is_counted(collector):
    assert not collector.server().__sklearn_is_fitted__()
    reports = reports_of(collector.survey, 1000)
    collector.add(collector.survey.to_arrow(reports[:400]))
    server = collector.server()
    collector.add(collector.survey.to_arrow(reports[400:]))
    assert same_counts(server, reports[:400])
    assert same_counts(collector.server(), reports)
    assert "2 batches" in str(collector.server().privacy_)
    assert collector.privacy_.epsilon == 2.0
    with pytest.raises(ValueError, match="some of the same reports"):  # the counts of one state do not add up
        collector.server().merge(server)


def test_a_clone_of_a_worker_goes_on(collector):
    reports = reports_of(collector.survey, 90)
    collector.add(collector.survey.encode(reports[:30]))
    twin = pickle.loads(pickle.dumps(collector))
    twin.add(collector.survey.encode(reports[30:60]))
    with get_context("fork").Pool(1) as pool:
        pool.apply(collector.add, (collector.survey.encode(reports[60:]),))
    assert same_counts(collector.server(), reports)
    twin.close()


def test_a_round_of_learning_is_collected(tmp_path):
    model = LDPSGDClassifier(4.0, data_norm=2.0, classes=[0, 1])
    X, y = model._test_data(300)
    model.next_round(n_features=X.shape[1])
    survey = Survey(model, name="round")
    reports, collector = survey.client(random_state=0).privatize(X, y), Collector(survey, tmp_path / "state")
    collector.add(survey.to_arrow(reports))
    expected, server = survey.server().aggregate(survey.to_arrow(reports)), collector.server()
    for one in (expected, server):
        one.next_round()
    assert np.array_equal(server.coef_, expected.coef_)
    assert server.coef_.any()


# -------------------------------------------------------------------- what is rejected


def damaged(message, at, value=None):
    out = bytearray(message)
    out[at] = out[at] ^ 1 if value is None else value
    return bytes(out)


def test_every_reason(tmp_path):
    survey = survey_of(valid_from="2026-11-01", valid_until="2026-11-30")
    longer = Survey(GRRFrequencyEstimator(2.0, categories=[list(range(70_000))]), name="other")
    collector = Collector(survey, tmp_path / "state", received="2026-11-26", keep_rejected=tmp_path / "rejected")
    (message,), (unique,) = survey.encode(reports_of(survey, 1)), survey.encode(reports_of(survey, 1), nonces=True)
    message, unique = bytes(message), bytes(unique)
    impossible = survey.layout.pack(np.array([[5]], np.uint8))
    cases = {
        "malformed": [b"", b"GET / HTTP/1.1", damaged(message, 0), damaged(message, 3, 0), b"DPS"],
        "newer": [damaged(message, 3, 2), damaged(message, 4, 2)],
        "damaged": [damaged(message, len(message) - 1), damaged(message, 21), message + b"\0"],
        "truncated": [message[:-1], message[:10], message[:24], unique[:-1], message[:1]],
        "foreign": [bytes(survey_of("other").encode(reports_of(survey, 1))[0]),
                    bytes(longer.encode(longer.client().privatize([[3]]), nonces=True)[0])],
        "duplicate": [unique],
        "impossible": [bytes(sealed(impossible, survey.id)[0]), bytes(sealed(impossible | 0xF0, survey.id)[0])],
    }
    assert collector.add(unique).n == 1
    for reason, messages in cases.items():
        for number, form in enumerate((messages, *([m] for m in messages))):
            before = collector.rejected_.get(reason, 0)
            collector.add(form, name=f"{reason} {number}")
            assert collector.rejected_[reason] - before == len(form), (reason, form)
    for day, n in (("2026-10-30", 0), ("2026-10-31", 1), ("2026-12-01", 1), ("2026-12-02", 0)):
        for given, said in ((day, None), ("2026-11-26", day)):
            late = Collector(survey, collector.path, received=given)
            added = late.add(survey.to_arrow(reports_of(survey, 1), received_on=said))
            assert (added.n, added.rejected) == (n, {} if n else {"outside dates": 1})
    assert collector.add(survey.encode(reports_of(survey, 1)), name="x").n == 1
    assert set(collector.rejected_) <= set(REASONS)
    assert collector.n_reports_ == 6
    kept = [json.loads(line) for path in (tmp_path / "rejected").iterdir() for line in path.read_text().splitlines()]
    assert sum(collector.rejected_.values()) - 4 == len(kept)  # (those of the other collectors are not kept)
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "rejected").iterdir())


def test_a_nonce_is_known_for_the_window(tmp_path, monkeypatch):
    survey, day = survey_of(), [20_000]
    monkeypatch.setattr("dpestim.collection.collector.today", lambda: day[0])
    collector, ignoring = (Collector(survey, tmp_path / name, nonce_window=w) for name, w in (("a", 3), ("b", None)))
    reports = reports_of(survey, 50)
    table, rows = survey.to_arrow(reports, nonces=True), []
    for passed, name in ((0, "a"), (2, "b"), (1, "c"), (1, "d"), (3, "e")):
        day[0] += passed
        rows.append(collector.add(table, name=name).n)
        ignoring.add(table, name=name)
    # the window begins when a report is counted, and a duplicate does not make it longer
    assert rows == [50, 0, 0, 50, 0]
    assert ignoring.n_reports_ == 250
    assert same_counts(collector.server(), reports, reports)
    twice = survey.encode(reports, nonces=np.zeros((50, 8), np.uint8))
    assert collector.add(twice) == (1, {"duplicate": 49}, 0, 0)
    more = reports_of(survey, 80)
    mixed = np.concatenate([survey.encode(more, nonces=True), twice])[np.random.default_rng(0).permutation(130)]
    assert collector.add(mixed) == (80, {"duplicate": 50}, 0, 0)
    assert same_counts(collector.server(), reports, reports, reports[:1], more)


def test_all_that_is_impossible_is_found_in_every_client():
    rng, seen = np.random.default_rng(0), 0
    for name, cls in all_estimators(["local"]):
        for params in cls._test_params():
            try:
                survey = Survey(cls(**params), name=name)
            except (ValueError, AttributeError):
                continue
            examiner_of(survey, rng)
            seen += 1
            break
    assert seen > 25
    assert len(dpestim.local.__all__) > seen


def examiner_of(survey, rng):
    """Compare the mask of a block with what is said of each report alone."""
    client = survey.client()
    given = [part for part in client._test_data(60) if part is not None]
    payload = survey.pack(client.privatize(*given) if "y" in client.privatize.__code__.co_varnames else
                          client.privatize(given[0]))
    other = payload.copy()
    other[np.arange(len(other)), rng.integers(0, survey.report_bytes, len(other))] ^= (
        1 << rng.integers(0, 8, len(other))).astype(np.uint8)
    payload = np.concatenate([payload, other, rng.integers(0, 256, (60, survey.report_bytes), np.uint8)])
    reports, fine = Examiner(survey, True, True).reports_of(payload)
    alone = np.array([is_possible(survey, row) for row in payload])
    assert alone[:60].all()
    assert np.array_equal(np.ones(len(payload), bool) if fine is None else fine, alone), survey
    assert len(reports) == alone.sum()


def is_possible(survey, payload):
    try:
        survey.unpack(payload[None])
    except ValueError:
        return False
    return True


def test_a_million_impossible_reports_take_seconds(tmp_path):
    """(A twentieth of them; the mixed row has the dearest check.)"""
    row = MixedEstimator([("kind", GRRFrequencyEstimator(categories=[DRINKS]), ["drink"]),
                          ("age", PMTransformer(bounds=(0, 100)), ["age"])])
    for survey in (survey_of(), Survey(row, name="row")):
        payload = np.full((20_000, survey.report_bytes), 255, np.uint8)
        start = os.times().user
        assert not Examiner(survey, False, False).reports_of(payload)[1].any()
        assert os.times().user - start < 2  # a hundred seconds for a million


def test_messages_of_errors_hold_nothing_of_reports(tmp_path):
    survey = survey_of()
    collector = Collector(survey, tmp_path / "state")
    for suffix in (".csv", ".jsonl", ".txt", ".parquet", ".arrow"):
        path = tmp_path / f"x{suffix}"
        for content in (SECRET, f"report\n{SECRET}\n", json.dumps({"report": SECRET}) + "\n", f"PAR1{SECRET}PAR1",
                        f"{SECRET},report\n{SECRET}\n"):
            path.write_text(content)
            with warnings.catch_warnings(record=True) as caught:
                assert collector.add_file(path).n == 0
            assert not caught
    assert SECRET.encode() not in Path(collector.path).read_bytes()
    collector.close()
    assert SECRET.encode() not in Path(collector.path).read_bytes()


# -------------------------------------------------------------------- merging


def test_collectors_of_two_machines_add_up_once(tmp_path):
    survey = survey_of()
    a, b, c, whole = (Collector(survey, tmp_path / name) for name in "abcw")
    reports = reports_of(survey, 300)
    a.add(survey.to_arrow(reports[:100], nonces=True))
    b.add(survey.to_arrow(reports[100:300], nonces=True))
    b.add(b"DPR")
    assert whole.merge(a) is whole
    whole.merge(b.path)
    assert same_counts(whole.server(), reports)
    assert whole.rejected_ == {"truncated": 1}
    for other in (a, b, whole):
        with pytest.raises(ValueError, match=r"merged before|another machine"):
            whole.merge(other)
    c.merge(whole)  # (what was merged travels along)
    with pytest.raises(ValueError, match="merged before"):
        c.merge(a)
    with pytest.raises(ValueError, match="merged before"):
        a.merge(c)
    with pytest.raises(ValueError, match="some of the same reports"):
        c.server().merge(a.server())
    assert same_counts(whole.server(), reports)
    with pytest.raises(ValueError, match="same survey"):
        a.merge(Collector(survey_of("other"), tmp_path / "other"))
    with pytest.raises(ValueError, match="missing"):
        a.merge(tmp_path / "nothing")


def test_a_batch_on_two_machines_is_no_half_merge(tmp_path):
    survey = survey_of()
    a, b = (Collector(survey, tmp_path / name) for name in "ab")
    reports = reports_of(survey, 40)
    for path, part in (("both", reports[:10]), ("a", reports[10:20]), ("b", reports[20:])):
        survey.write(tmp_path / f"{path}.parquet", part)
    for collector, own in ((a, "a"), (b, "b")):
        for path in (own, "both"):
            collector.add_file(tmp_path / f"{path}.parquet")
    before = a.n_reports_, a.batches_, a.rejected_
    with pytest.raises(ValueError, match="1 batches of other were counted here"):
        a.merge(b)
    assert (a.n_reports_, a.batches_, a.rejected_) == before
    assert same_counts(a.server(), reports[:20])


def test_reports_that_reached_two_machines_are_told(tmp_path):
    survey = survey_of()
    a, b = (Collector(survey, tmp_path / name) for name in "ab")
    messages = survey.encode(reports_of(survey, 5), nonces=True)
    a.add(messages)
    b.add(messages[2:])
    with pytest.warns(UserWarning, match="3 nonces are in both"):
        a.merge(b)
    assert a.n_reports_ == 8


# -------------------------------------------------------------------- the state file


def test_other_files_are_no_state(tmp_path):
    survey, path = survey_of(), tmp_path / "state"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(CollectionError, match="is not the state of a collector"):
        Collector(survey, path)
    assert path.read_bytes().startswith(b"no database")
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (a)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(CollectionError, match="is not the state of a collector"):
        Collector(survey, path)
    assert path.read_bytes() == before
    for where in (tmp_path, tmp_path / "no" / "state"):
        with pytest.raises(CollectionError, match="folder"):
            Collector(survey, where)


def test_the_state_of_another_survey_or_version_is_refused(tmp_path):
    path = tmp_path / "state"
    Collector(survey_of(), path).close()
    with pytest.raises(CollectionError, match="another survey"):
        Collector(survey_of("other"), path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=2")
    connection.close()
    with pytest.raises(CollectionError, match="version 2 of the tables"):
        Collector(survey_of(), path)


def test_a_deleted_state_is_not_made_again(collector):
    collector.add(collector.survey.encode(reports_of(collector.survey, 3)))
    collector.close()
    collector.add(collector.survey.encode(reports_of(collector.survey, 2)))
    os.unlink(collector.path)
    with pytest.raises(CollectionError, match="missing: restore"):
        collector.add(collector.survey.encode(reports_of(collector.survey, 2)))
    assert not os.path.exists(collector.path)


def test_a_transaction_keeps_others_from_writing_from_its_beginning(collector):
    with sqlite3.connect(collector.path, timeout=0, isolation_level=None) as other, collector._store.transaction():
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        assert other.execute("SELECT reports FROM totals").fetchone() == (0,)  # readers do not wait
    other.close()


def test_a_full_disk_counts_nothing(collector):
    survey = collector.survey
    collector.add(survey.encode(reports_of(survey, 3)))
    with collector._store.transaction() as execute:
        pages = execute("PRAGMA page_count").fetchone()[0]
    collector._store._connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(CollectionError, match=r"disk of .* is full, and nothing of this batch was counted"):
        collector.add(survey.encode(reports_of(survey, 20_000), nonces=True), name="big")
    assert collector.n_reports_ == 3
    collector._store._connection.execute("PRAGMA max_page_count=1000000")
    assert collector.add(survey.encode(reports_of(survey, 20_000), nonces=True), name="big").n == 20_000


def test_a_state_that_cannot_be_written(collector):
    collector._store._connection.execute("PRAGMA query_only=1")  # (root may write everywhere)
    with pytest.raises(CollectionError, match="cannot be written, and nothing of this batch was counted"):
        collector.add(collector.survey.encode(reports_of(collector.survey, 1)))
    assert collector.n_reports_ == 0


def test_what_was_rejected_is_kept_before_it_is_counted(tmp_path):
    (tmp_path / "rejected").write_text("in the way")
    collector = Collector(survey_of(), tmp_path / "state", keep_rejected=tmp_path / "rejected")
    with pytest.raises(CollectionError, match="cannot be written"):
        collector.add(b"x")
    assert collector.rejected_ == {}


def test_arrow_is_needed_for_tables_alone(collector, tmp_path, monkeypatch):
    survey, reports = collector.survey, reports_of(collector.survey, 2)
    survey.write(tmp_path / "x.parquet", reports)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert collector.add(survey.encode(reports)).n == 2
    for call in (lambda: survey.to_arrow(reports), lambda: collector.add_file(tmp_path / "x.parquet")):
        with pytest.raises(ImportError, match=r"dpestim\[arrow\]"):
            call()


def test_tables_that_differ_in_any_column_are_two(collector):
    survey, reports = collector.survey, reports_of(collector.survey, 40)
    table = survey.to_arrow(reports, nonces=True, received_on="2026-11-26")
    other = survey.to_arrow(reports, nonces=True, received_on="2026-11-27")
    for part in (table, table.set_column(1, "nonce", other["nonce"]), table.drop(["nonce"]),
                 table.drop(["nonce"]).set_column(1, "received_on", other["received_on"])):
        assert collector.add(part) == (40, {}, 0, 0)
        assert collector.add(part).rejected == {"repeated batch": 40}
