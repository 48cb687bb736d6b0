"""What a reader of a collector's state file can find out about single reports."""

import contextlib
import hashlib
import sqlite3
import zlib

import numpy as np

from dpestim.collection import Collector, Survey
from dpestim.local import GRRFrequencyEstimator


def _unmixed(digest):
    """Return the nonce of a digest that is the public mix of SplitMix64, which has an inverse."""
    def back(x, shift):
        found = x
        for _ in range(64 // shift):
            found = x ^ (found >> shift)
        return found

    x = back(digest % 2**64, 31) * pow(0x94D049BB133111EB, -1, 2**64) % 2**64
    x = back(x, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) % 2**64
    return back(x, 30) ^ 0x9E3779B97F4A7C15


def test_a_reader_of_the_state_cannot_try_reports_with_nonces(tmp_path):
    survey = Survey(GRRFrequencyEstimator(2.0, categories=[["tea", "coffee"]]), name="drinks")
    collector = Collector(survey, tmp_path / "state")
    message = bytes(survey.encode(survey.client().privatize([["tea"]]), nonces=True)[0])
    collector.add([message])
    collector.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "state")) as file:
        (identity,), = file.execute("SELECT identity FROM batches")
        (digest,), = file.execute("SELECT digest FROM nonces")
    raw = (tmp_path / "state").read_bytes()
    nonce = message[21:29]
    assert nonce not in raw
    assert nonce[::-1] not in raw
    found, size = [], survey.report_bytes
    for said in (digest % 2**64, _unmixed(digest)):
        for code in range(256):
            tried = message[:21] + said.to_bytes(8, "little") + code.to_bytes(size, "little")
            tried += zlib.crc32(tried).to_bytes(4, "little")
            found.append(_identity([tried]) == identity)
    assert _identity([message]) == identity
    assert not any(found)


def _identity(messages):
    sizes = np.array([len(message) for message in messages], "<i8").tobytes()
    parts = (b"list", sizes, b"".join(messages))
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).digest()
