"""Files of reports: whole ones once, growing ones line by line, wherever they are moved; and what is none."""

import base64
import json
import os
import shutil

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpestim.collection.sources as sources
from dpestim.collection import Collector, Survey, batches
from dpestim.local import (
    GRRFrequencyEstimator,
    MeanEstimator,
    MixedEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    PMTransformer,
)

DRINKS = ["tea", "coffee", "water", "milk", "wine"]


@pytest.fixture
def survey():
    return Survey(GRRFrequencyEstimator(2.0, categories=[DRINKS]), name="drinks")


@pytest.fixture
def collector(survey, tmp_path):
    made = Collector(survey, tmp_path / "state.sqlite")
    yield made
    made.close()


def reports_of(survey, n):
    return survey.client().privatize(np.array(DRINKS, object)[np.arange(n) % 5][:, None])


def counts(reports):
    return np.bincount(reports.ravel(), minlength=5)


def text(payload):
    return base64.urlsafe_b64encode(bytes(payload)).rstrip(b"=").decode()


# -------------------------------------------------------------------- tables in `aggregate`


@pytest.mark.parametrize("client", [
    GRRFrequencyEstimator(categories=[list(range(1000))]), OUEFrequencyEstimator(categories=[list(range(1000))]),
    OLHFrequencyEstimator(categories=[list(range(9))]), PMTransformer(bounds=(0, 10)),
    GRRFrequencyEstimator(categories=[[0, 1], [0, 1, 2]]),
    MixedEstimator([("a", GRRFrequencyEstimator(categories=[[0, 1]]), [0]), ("b", PMTransformer(bounds=(0, 1)), [1])]),
], ids=lambda client: type(client).__name__)
def test_servers_take_tables(client):
    survey = Survey(client, name="x")
    reports = survey.client().privatize(np.zeros((300, 2 if survey.layout.columns.n_features == 2 else 1)))
    table = survey.to_arrow(reports)
    expected = survey.server().aggregate(reports)
    for given in (table, table.combine_chunks().to_batches()[0], pa.concat_tables([table[:7], table[7:]])):
        server = survey.server().aggregate(given)
        assert all(map(np.array_equal, server._counts, expected._counts))
        assert server.n_users_ == 300
    assert batches.survey_in(table) == Survey.of_arrow(table) == survey


def test_the_test_of_poisoning_takes_the_tables_that_servers_take():
    survey = Survey(OUEFrequencyEstimator(categories=[DRINKS]), name="x")
    reports = reports_of(survey, 300)
    table, expected = survey.to_arrow(reports), survey.server().detect_poisoning(reports)
    for given in (table, pa.concat_tables([table[:7], table[7:]])):
        assert survey.server().detect_poisoning(given).lines == expected.lines


def test_tables_are_not_copied(survey):
    table = survey.to_arrow(reports_of(survey, 100))
    (view,) = batches.reports_in(table)[1](survey.layout.columns)
    assert view.__array_interface__["data"][0] == table.column("report").chunk(0).buffers()[1].address


def test_tables_of_others_are_refused(survey, collector):
    reports = reports_of(survey, 10)
    table = survey.to_arrow(reports)
    other = Survey(GRRFrequencyEstimator(1.0, categories=[DRINKS]), name="drinks")
    for server, given, why in (
        (other.server(), table, "take the estimator from survey.server"),
        (MeanEstimator(PMTransformer(bounds=(0, 1))), table, "take the estimator from survey.server"),
        (survey.server(), table.replace_schema_metadata(None), "carry its survey"),
        (survey.server(), pl.from_arrow(table), "carry its survey"),
        (survey.server(), table[:0], "must not be empty"),
        (survey.server(), table.append_column("r", table[0]).drop(["report"]), "fixed_size_binary"),
        (survey.server(), table.set_column(0, "report", table["report"].cast(pa.binary())), "fixed_size_binary"),
        (survey.server(), table.set_column(0, "report", pa.array([None] * 10, pa.binary(1))), "without nulls"),
        (survey.server(), table.set_column(0, "report", pa.array([b"\x07"] * 10, pa.binary(1))), "below 5"),
    ):
        with pytest.raises(ValueError, match=why):
            server.aggregate(given)
        assert not server.__sklearn_is_fitted__()
    for given in (table.replace_schema_metadata(None), other.to_arrow(reports_of(other, 3))):
        with pytest.raises(ValueError, match="with the survey in the metadata"):
            collector.add(given)
    assert collector.batches_ == 0


# -------------------------------------------------------------------- whole files


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_whole_files_are_counted_once_wherever_they_are(survey, collector, tmp_path, suffix):
    reports = reports_of(survey, 1000)
    path, moved, copied = (tmp_path / f"{name}{suffix}" for name in "abc")
    write(survey, path, reports)
    assert collector.add_file(path) == (1000, {}, 0, 0)
    assert collector.add_file(path) == (0, {}, 1, 0)
    os.utime(path, (1, 1))
    assert collector.add_file(path) == (0, {}, 1, 0)
    path.rename(moved)
    assert collector.add_file(moved) == (0, {}, 1, 0)
    shutil.copy(moved, copied)
    assert collector.add_file(copied) == (0, {"repeated batch": 1000}, 1, 0)
    assert collector.add_file(copied) == (0, {}, 1, 0)
    write(survey, path, reports)  # the same reports, written anew, are another file: only nonces tell reports apart
    assert collector.add_file(path).n == 1000
    assert np.array_equal(collector.server()._counts[0], 2 * counts(reports))


def write(survey, path, reports, **more):
    if path.suffix == ".parquet":
        survey.write(path, reports, **more)
    else:
        table = survey.to_arrow(reports, **more)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=300)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_large_files_are_counted_block_by_block(survey, tmp_path, monkeypatch, suffix):
    """Wherever the process stops, the rest is counted later."""
    monkeypatch.setattr(sources, "row_count", lambda _: 100)
    monkeypatch.setattr(sources, "_IN_MEMORY", 10)
    reports, path = reports_of(survey, 1234), tmp_path / f"x{suffix}"
    table = survey.to_arrow(reports, nonces=True)
    if suffix == ".parquet":
        pq.write_table(table, path, row_group_size=250)
    else:
        write(survey, path, reports, nonces=True)
    for stop in (1, 3, 4, 9):
        collector, left = Collector(survey, tmp_path / f"state{stop}"), [stop]
        enter = collector._enter

        def stopping(*args, left=left, enter=enter):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            enter(*args)

        collector._enter = stopping
        with pytest.raises(KeyboardInterrupt):
            collector.add_file(path)
        assert 0 < collector.n_reports_ < 1234
        left = 1234 - collector.n_reports_
        assert Collector(survey, collector.path).add_file(path).n == left
        assert np.array_equal(collector.server()._counts[0], counts(reports)), stop
        assert collector.n_reports_ == 1234
        assert collector.rejected_ == {}


def test_columns_of_files_are_used(survey, tmp_path):
    dated = Survey(GRRFrequencyEstimator(2.0, categories=[DRINKS]), name="drinks", valid_until="2026-06-30")
    collector = Collector(dated, tmp_path / "state", received="2026-06-30")
    reports = reports_of(survey, 7)
    table = dated.to_arrow(reports, nonces=True)
    table = table.append_column("received_on", pa.array([20_000, None, 30_000, 20_000, None, None, None], pa.date32()))
    nonces = table["nonce"].to_pylist()
    table = table.set_column(1, "nonce", pa.array([*nonces[:4], nonces[0], None, None], pa.binary(8)))
    table = table.append_column("more", pa.array(list("abcdefg")))
    pq.write_table(table.select(["more", "received_on", "nonce", "report"]), tmp_path / "x.parquet")
    assert collector.add_file(tmp_path / "x.parquet") == (5, {"outside dates": 1, "duplicate": 1}, 0, 0)


def test_files_that_are_none(survey, collector, tmp_path):
    reports = reports_of(survey, 2000)
    path = tmp_path / "x.parquet"
    survey.write(path, reports)
    content = path.read_bytes()
    other = Survey(GRRFrequencyEstimator(2.0, categories=[DRINKS]), name="other")
    other.write(tmp_path / "other.parquet", reports)
    pq.write_table(survey.to_arrow(reports).replace_schema_metadata(None), tmp_path / "bare.parquet")
    table = survey.to_arrow(reports)
    pq.write_table(table.append_column("r", table[0]).drop(["report"]), tmp_path / "names.parquet")
    (tmp_path / "cut.parquet").write_bytes(content[:-30])
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "no.parquet").write_bytes(b"no file of Parquet")
    (tmp_path / "hole.parquet").write_bytes(content[:200] + bytes(200) + content[400:])
    (tmp_path / "cut.arrow").write_bytes(b"ARROW1\0\0")
    for name, rejected in (("other.parquet", {"foreign": 2000}), ("bare.parquet", {"foreign": 2000}),
                           ("names.parquet", {"malformed": 2000}), ("cut.parquet", {"truncated": 1}),
                           ("empty.parquet", {"truncated": 1}), ("no.parquet", {"malformed": 1}),
                           ("hole.parquet", {"malformed": 1}), ("cut.arrow", {"truncated": 1})):
        assert collector.add_file(tmp_path / name)[:2] == (0, rejected), name
        assert collector.add_file(tmp_path / name).known == 1
    assert collector.n_reports_ == 0
    assert collector.add_file(path).n == 2000


def test_writing_leaves_nothing_behind(survey, tmp_path):
    with pytest.raises(ValueError, match="at least one"):
        batches.write(tmp_path / "x.parquet", [])
    with pytest.raises(ValueError, match="batch must be a string"):
        survey.write(tmp_path / "x.parquet", reports_of(survey, 3), batch=3)
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------- lines


def lines_of(survey, kind, reports):
    payloads = map(text, survey.pack(reports))
    if kind == "txt":
        return survey.encode_text(reports)
    if kind == "csv":
        return [f"2026-11-26,{payload},{text(os.urandom(8))}" for payload in payloads]
    return [json.dumps({"report": payload, "nonce": text(os.urandom(8))}) for payload in payloads]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "txt"])
def test_growing_files_are_counted_line_by_line(survey, collector, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(sources, "_CUT", 1 << 13)
    reports = reports_of(survey, 600)
    lines = lines_of(survey, kind, reports)
    content = ("received_on,report,nonce\n" if kind == "csv" else "") + "\r\n".join(lines) + "\n"
    path, n, rng = tmp_path / f"x.{kind}", 0, np.random.default_rng(1)
    ends = sorted({*rng.integers(0, len(content), 12).tolist(), len(content) - 1, len(content)})
    for number, (start, end) in enumerate(zip([0, *ends], ends)):
        with open(path, "a", newline="") as file:
            file.write(content[start:end])
        n += collector.add_file(path).n
        whole = content[:end].count("\n") - (kind == "csv" and end > 25)
        assert n - whole in (0, 1)  # (a last line counts when it is whole)
        if number % 3 == 0:
            path = path.rename(tmp_path / f"{number}.{kind}")
        if number % 4 == 0:  # a copy under the old name: another file
            other = path.with_name(f"copy{number}.{kind}")
            shutil.copy(path, other)
            path.unlink()
            path = other
    assert n == 600
    assert np.array_equal(collector.server()._counts[0], counts(reports))
    assert set(collector.rejected_) <= {"repeated batch"}


def test_a_file_that_was_cut_and_filled_again_is_a_new_one(survey, collector, tmp_path):
    path, first, second = tmp_path / "x.txt", reports_of(survey, 20), reports_of(survey, 50)
    for reports in (first, second):
        path.write_text("\n".join(survey.encode_text(reports, nonces=True)) + "\n")
        assert collector.add_file(path).n == len(reports)
    assert np.array_equal(collector.server()._counts[0], counts(first) + counts(second))


def test_two_files_that_begin_alike_are_two(survey, collector, tmp_path):
    reports = reports_of(survey, 30)
    lines = lines_of(survey, "txt", reports)
    for name, own in (("a", lines[:10]), ("b", lines[:20]), ("c", lines[:10] + lines[20:])):
        (tmp_path / f"{name}.txt").write_text("\n".join(own) + "\n")
    assert collector.add_file(tmp_path / "a.txt") == (10, {}, 0, 0)
    assert collector.add_file(tmp_path / "b.txt") == (10, {"repeated batch": 10}, 0, 0)
    assert collector.add_file(tmp_path / "c.txt") == (10, {"repeated batch": 10}, 0, 0)
    assert np.array_equal(collector.server()._counts[0], counts(reports))


def test_machines_that_count_one_growing_file_cannot_be_merged(survey, tmp_path):
    lines, path = "\n".join(survey.encode_text(reports_of(survey, 500))), tmp_path / "x.txt"
    a, b = (Collector(survey, tmp_path / name) for name in "ab")
    for collector, end in ((a, 9000), (b, 12000), (a, 15000)):
        path.write_text(lines[:end])
        collector.add_file(path)
    with pytest.raises(ValueError, match="were counted here, too"):
        a.merge(b)


BAD_LINES = {
    "csv": ["!", '"', "a,b", "AA", "AAA", "\\u0000", "report", '"AA""', "é", "AQ,AAAAAAAAAAAA,2026-11-26",
            "AQ,,26.11.2026", "AQ,AAAA,", "AQ,,2026-11-26T10:00", "AQ,,2026-13-26"],
    "jsonl": ["!", "{", "[]", "null", "1", '"AQ"', "{}", '{"report": 1}', '{"report": null}', '{"report": "!"}',
              "[" * 100_000, '{"report": "AQ", "nonce": "AA"}', '{"report": "AQ", "received_on": 20260101}',
              '{"report": "AQ", "nonce": [1]}', '{"report": "AQ", "received_on": "2026-11-26T10:00:00"}'],
    "txt": ["!", "AQ", "RFBS", "=", "RFBSAQ", "\ud800"],
}


@pytest.mark.parametrize("kind", BAD_LINES)
def test_lines_that_are_none(survey, collector, tmp_path, kind):
    path, lines = tmp_path / f"x.{kind}", BAD_LINES[kind]
    good = {"csv": "AQ,,", "jsonl": '{"report": "AQ"}', "txt": survey.encode_text(reports_of(survey, 1))[0]}[kind]
    content = [good, *lines, "", good]
    header = ["report,nonce,received_on"] if kind == "csv" else []
    path.write_text("\n".join(header + content) + "\n", encoding="utf-8", errors="surrogatepass")
    added = collector.add_file(path)
    assert (added.n, sum(added.rejected.values())) == (2, len(lines)), added
    assert set(added.rejected) <= {"malformed", "truncated"}


def test_a_csv_file_without_names_is_none(survey, collector, tmp_path):
    (tmp_path / "x.csv").write_text("AQ\nAQ\n")
    assert collector.add_file(tmp_path / "x.csv").rejected == {"malformed": 2}


# -------------------------------------------------------------------- folders


def test_a_folder_is_scanned_with_lines_of_progress(survey, collector, tmp_path, capsys):
    reports = reports_of(survey, 400)
    for number in range(20):
        survey.write(tmp_path / f"{number}.parquet", reports[number * 20 : number * 20 + 20])
    assert collector.scan(tmp_path / "*.parquet", verbose=1) == (400, {}, 0, 0)
    lines = capsys.readouterr().err.splitlines()
    if lines[0].startswith("[Collector] file"):  # (tqdm, where it is installed, has one line)
        assert len(lines) == 10
        assert lines[-1].startswith("[Collector] file 20 of 20, 400 reports, ")
        assert " a second, standard error of the first column 0.0" in lines[-1]
    assert collector.scan(str(tmp_path / "*.parquet")) == (0, {}, 20, 0)
    assert capsys.readouterr() == ("", "")
    assert collector.scan(tmp_path / "nothing*", verbose=2) == (0, {}, 0, 0)


def test_a_disk_that_fails_is_no_fault_of_the_file(survey, collector, tmp_path, monkeypatch):
    path, left = tmp_path / "x.parquet", [True]
    survey.write(path, reports_of(survey, 10))
    opened = pq.ParquetFile

    def failing(*args, **options):
        if left.pop():
            raise OSError(5, "Input/output error")
        return opened(*args, **options)

    monkeypatch.setattr(pq, "ParquetFile", failing)
    with pytest.raises(OSError, match="Input/output"):
        collector.add_file(path)
    left.append(False)
    assert collector.add_file(path) == (10, {}, 0, 0)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "txt", "batch", "named"])
@pytest.mark.parametrize("ahead", [1, 2])
def test_what_another_process_counts_meanwhile_is_not_counted_again(survey, tmp_path, monkeypatch, kind, ahead):
    """The other one is as far ahead as it can be: between the examination of a block and its transaction."""
    monkeypatch.setattr(sources, "row_count", lambda _: 100)
    mine, other = (Collector(survey, tmp_path / "state.sqlite") for _ in range(2))
    reports, path, left = reports_of(survey, 450), tmp_path / f"x.{kind}", [ahead]
    if kind == "txt":
        path.write_text("\n".join(survey.encode_text(reports)) + "\n")
    elif kind in ("parquet", "arrow"):
        write(survey, path, reports)
    else:
        path = survey.encode(reports)
    count = {"batch": Collector.add, "named": lambda c, batch: c.add(batch, name="x")}.get(kind, Collector.add_file)
    examine = mine._examiner.add

    def examining(*args):
        examine(*args)
        left[0] -= 1
        if not left[0]:
            assert count(other, path).n or ahead == 2  # (a batch has one block)

    mine._examiner.add = examining
    count(mine, path)
    count(mine, path)
    assert mine.n_reports_ == 450
    assert np.array_equal(mine.server()._counts[0], counts(reports))
    assert set(mine.rejected_) <= {"repeated batch"}
    assert mine.rejected_.get("repeated batch", 0) % 450 == 0
    for each in (mine, other):
        each.close()


def test_a_large_file_must_not_change_while_it_is_read(survey, collector, tmp_path, monkeypatch):
    path, examine = tmp_path / "x.parquet", collector._examiner.add
    survey.write(path, reports_of(survey, 100))

    def examining(*args):
        examine(*args)
        with open(path, "ab") as file:
            file.write(b"more")

    collector._examiner.add = examining
    monkeypatch.setattr(sources, "_IN_MEMORY", 10)
    with pytest.raises(ValueError, match="was changed while it was read"):
        collector.add_file(path)
    assert collector.n_reports_ == 0
    collector._examiner.add = examine
    survey.write(path, reports_of(survey, 100))
    assert collector.scan(path).n == 100
