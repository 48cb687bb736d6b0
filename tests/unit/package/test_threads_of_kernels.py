"""Kernels need no GIL: every module says so, keeps nothing of its own, and gives many threads what it gives one."""

import importlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from dpestim import _core
from dpestim._core import grr, olh, streams, unary
from dpestim.accounting import Ledger
from dpestim.local import GRRFrequencyEstimator

CORE = Path(__file__).resolve().parents[3] / "dpestim" / "_core"
SOURCES = pytest.mark.skipif(not CORE.is_dir() or not (CORE.parents[1] / "setup.py").is_file(),
                             reason="the tests of an installed package")
N = 4000


@SOURCES
def test_every_kernel_declares_that_it_needs_no_gil():
    """The slot is compiled for interpreters without a GIL alone, so it is looked for in what Cython wrote."""
    assert '"freethreading_compatible": True' in (CORE.parents[1] / "setup.py").read_text()
    for path in (CORE.parents[1] / "build" / "cython" / "dpestim" / "_core").glob("*.c"):
        if path.stem == "_cyutility" or (CORE / f"{path.stem}.pyx").exists():
            text = path.read_text(errors="replace")
            assert "__Pyx_FREETHREADING_COMPATIBLE Py_MOD_GIL_NOT_USED" in text, path.name
            assert "Py_mod_gil, __Pyx_FREETHREADING_COMPATIBLE" in text, path.name


@SOURCES
def test_kernels_keep_nothing_between_two_calls():
    """A C variable of a module is shared by all threads; one is filled when the module is imported, and then read."""
    kept = {}
    for path in (*CORE.glob("*.pyx"), *CORE.glob("src/*.h")):
        text = path.read_text()
        found = re.findall(r"^cdef (?!extern|enum|inline|class)[\w ]+?(\w+)(?:\[\w+\])*(?: *=.*| *#.*)?$", text, re.M)
        found += re.findall(r"^\s*static (?!inline|.*\()(?!const).*?(\w+)(?:\[\w+\])* *[=;]", text, re.M)
        if found:
            kept[path.name] = found
    # (a hash of nothing that is only copied; and, before Python 3.12 alone, of which each has a GIL, who is inside)
    of_entries = ["SHA256", "COLLECTS_INSIDE", "n_inside", "collected"]
    assert kept == {"entry.pyx": of_entries, "wire.pyx": ["TABLES"]}
    entries = (CORE / "entry.pyx").read_text()
    assert re.findall(r"\bSHA256\b.*", entries) == ["SHA256 = hashlib.sha256()", "SHA256.copy()"]
    guarded = re.findall(r"    global n_inside.*\n    if COLLECTS_INSIDE:", entries)
    assert len(guarded) == entries.count("global n_inside")
    filled, _, rest = (CORE / "wire.pyx").read_text().partition("\n\n\nfill_tables()\n")
    write = re.compile(r"TABLES\[.*\] = ")
    assert len(write.findall(filled)) == 2
    assert rest
    assert not write.search(rest)


@pytest.mark.skipif(getattr(sys, "_is_gil_enabled", lambda: True)(), reason="an interpreter with a GIL")
def test_an_interpreter_without_a_gil_stays_without_one():
    for path in Path(_core.__file__).parent.glob("*.so"):
        importlib.import_module(f"dpestim._core.{path.name.partition('.')[0]}")
    assert not sys._is_gil_enabled()


def everything(seed):
    """Return what kernels make of seeded words: with 64 and 128 bits, floats, and rows of bits."""
    rng = np.random.default_rng(seed)
    codes, words = rng.integers(0, 9, N).astype(np.uint8), rng.integers(0, 2**64, 2 * N, dtype=np.uint64)
    made = [np.empty(N, np.uint8) for _ in range(2)]
    made += [np.empty((N, 3), np.uint64), np.empty(N), np.zeros(64, np.int64)]
    w = 2**64 // 20
    grr.privatize(codes, words[:N].copy(), 2**64 - 8 * w, w, made[0])
    w = 2**128 // 20
    grr.privatize(codes, words, 2**128 - 8 * w, w, made[1])
    olh.privatize(codes, words, words, 3, 2**128 - 2 * (2**128 // 5), 2**128 // 5, made[2])
    numbers, shifts = rng.integers(-50, 50, (2, N)), np.array([1, 3, 5], np.int32)
    sums = np.zeros((3, 2), np.uint64)
    streams.codes(numbers[0], numbers[1], shifts, np.array([3, 2, 1]), 5, 40, 42, 1.0, sums, made[3])
    unary.count(words.view(np.uint8).reshape(-1, 8), made[4])
    return made


def test_many_threads_get_what_one_gets():
    alone = [everything(seed) for seed in range(4)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(everything, [seed for seed in range(4) for _ in range(8)]))
    for k, made in enumerate(together):
        for a, b in zip(made, alone[k // 8]):
            np.testing.assert_array_equal(a, b)


def test_threads_that_fit_pay_each_once_and_agree():
    data = np.array(["a", "b", "c"])[np.arange(300) % 3].reshape(-1, 1)
    ledger = Ledger(9.0)

    def fit(seed):
        with ledger:
            model = GRRFrequencyEstimator(1.0, categories=[["a", "b", "c"]], random_state=seed % 2)
            return model.fit(data).frequencies_[0]

    with ThreadPoolExecutor(8) as pool:
        fitted = list(pool.map(fit, range(8)))
    for k, frequencies in enumerate(fitted):
        np.testing.assert_array_equal(frequencies, fitted[k % 2])
    assert ledger.remaining().epsilon == 1
