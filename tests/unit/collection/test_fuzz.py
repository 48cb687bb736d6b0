"""Damaged and forged reports and files: none is counted that a reader of the specification would not count.

``python tests/unit/collection/test_fuzz.py 1000000 20000`` takes a million reports and 20,000 files.
"""

import json
import os
import random
import sys
import tempfile
import warnings
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpestim.collection import Collector, Survey, store
from dpestim.collection.messages import to_text
from dpestim.local import GRRFrequencyEstimator

N_VALUES = 5


def survey_of(name="fuzz"):
    return Survey(GRRFrequencyEstimator(2.0, categories=[list(range(N_VALUES))]), name=name)


def reports_of(survey, n):
    return survey.client(random_state=0).privatize(np.arange(n)[:, None] % N_VALUES)


def read(message, survey):
    """Return (value, nonce) of a message by the specification, or None."""
    for flags, start in ((0, 21), (1, 29)):
        head = b"DPR\x01" + bytes([flags]) + bytes.fromhex(survey.id)
        if message[:21] == head and len(message) == start + 5:
            value, check = message[start], message[start + 1 :]
            if int.from_bytes(check, "little") == zlib.crc32(message[:-4]) and value < N_VALUES:
                return value, message[21:29] if flags else None
    return None


def damaged(message, others, rng):
    """Return a message with one of the faults that a network, a disk or an attacker makes."""
    out, kind = bytearray(message), rng.randrange(9)
    at = rng.randrange(len(out))
    if kind == 0:
        out[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        out[at] = rng.randrange(256)
    elif kind == 2:
        del out[at:]
    elif kind == 3:
        out[at:at] = rng.randbytes(rng.randrange(9))
    elif kind == 4:
        out[at:] = rng.choice(others)[at:]
    elif kind == 5:
        out = bytearray(rng.randbytes(rng.randrange(60)))
    elif kind == 6:
        out[rng.randrange(len(out) - 4)] = rng.randrange(256)  # ... with a checksum that holds
        out[-4:] = zlib.crc32(out[:-4]).to_bytes(4, "little")
    elif kind == 7:
        out = out[:21] + rng.randbytes(rng.randrange(20)) + out[29:-4]
        out += zlib.crc32(out).to_bytes(4, "little")
    return bytes(out)


def fuzz_reports(n, seed, folder):
    """Add damaged messages in batches, as bytes, and compare the counts."""
    rng, survey = random.Random(seed), survey_of()
    collector = Collector(survey, folder / "state.sqlite", keep_rejected=None)
    reports = reports_of(survey, 400)
    pool = [bytes(own) for nonces in (False, True) for s in (survey, survey_of("other"))
            for own in s.encode(reports_of(s, 400) if s is not survey else reports, nonces=nonces)]
    expected, seen = np.zeros(N_VALUES, np.int64), set()
    for start in range(0, n, 10_000):
        batch = [damaged(rng.choice(pool), pool, rng) for _ in range(min(10_000, n - start))]
        for message in batch:
            found = read(message, survey)
            if found is not None and (found[1] is None or found[1] not in seen):
                expected[found[0]] += 1
                seen.add(found[1])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            added = collector.add(batch, name=str(start), durable=False)
        assert added.n + sum(added.rejected.values()) == len(batch)
        assert collector.n_reports_ == expected.sum(), (seed, start)
    assert np.array_equal(counts_in(collector), expected)
    assert len(collector.rejected_) >= 6, collector.rejected_
    return collector.n_reports_, collector.rejected_


def fuzz_files(n, seed, folder):
    """Count damaged files of every kind: at most what was in them, and nothing is raised."""
    rng, survey = random.Random(seed), survey_of()
    reports = reports_of(survey, 200)
    have, table = np.bincount(reports.ravel(), minlength=N_VALUES), survey.to_arrow(reports, nonces=True)
    survey.write(folder / "x.parquet", reports)
    with pa.OSFile(str(folder / "x.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    (folder / "x.txt").write_text("\n".join(survey.encode_text(reports)))
    texts = to_text(survey.pack(reports))
    (folder / "x.csv").write_text("report,nonce\n" + "".join(f"{text},\n" for text in texts))
    lines = [json.dumps({"report": text}) for text in survey.encode_text(reports)]
    (folder / "x.jsonl").write_text("\n".join(lines))
    good = {path.suffix: path.read_bytes() for path in folder.glob("x.*")}
    totals = dict.fromkeys(good, 0)
    for number in range(n):
        suffix = rng.choice(list(good))
        path, state = folder / f"{number}{suffix}", folder / f"{number}.sqlite"
        path.write_bytes(harmed(good[suffix], rng))
        collector = Collector(survey, state)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            added = collector.add_file(path)
            counts = counts_in(collector)
        assert added.n == counts.sum() == collector.n_reports_
        if suffix in CHECKED:  # what has checksums is counted as it was, or not at all
            assert (counts <= have).all(), (seed, number, suffix)
        totals[suffix] += added.n
        collector.close()
        path.unlink()
        state.unlink()
    return totals


#: Files whose reports, or pages, have checksums.
CHECKED = (".parquet", ".txt", ".jsonl")


def harmed(content, rng):
    """Return the bytes of a file with some of them changed, lost or added, often near its end."""
    content = bytearray(content)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(content)) if rng.random() < 0.6 else max(0, len(content) - 1 - rng.randrange(2000))
        kind = rng.randrange(4)
        if kind == 0:
            content[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            content[at : at + 8] = rng.randbytes(8)
        elif kind == 2 and len(content) > 100:
            del content[at : at + rng.randrange(1, 50)]
        else:
            content[at:at] = rng.randbytes(rng.randrange(1, 20))
    return bytes(content)


def counts_in(collector):
    with collector._store.transaction(write=False) as execute:
        counts = store.counts_of(execute)
    return counts[0] if counts else np.zeros(N_VALUES, np.int64)


def test_damaged_reports_are_not_counted(tmp_path):
    n, rejected = fuzz_reports(6_000, 1, tmp_path)
    assert n
    assert sum(rejected.values()) > 3_000


def test_damaged_files_are_not_counted(tmp_path):
    assert sum(fuzz_files(60, 2, tmp_path).values())


if __name__ == "__main__":
    for name, run, number in (("reports", fuzz_reports, sys.argv[1]), ("files", fuzz_files, sys.argv[2])):
        with tempfile.TemporaryDirectory() as folder:
            print(number, name, run(int(number), int.from_bytes(os.urandom(4), "little"), Path(folder)), flush=True)
