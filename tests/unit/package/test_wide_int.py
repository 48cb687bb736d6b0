"""Integers of 128 bits: those of the compiler and those of two words say what Python's integers say."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
HEADERS = ROOT / "dpestim" / "_core" / "src"
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
WORD, WIDE = 1 << 64, 1 << 128

#: Every function over arrays of words: two of `a`, two of `b`, a shift, the signed word; out: two words.
LOOPS = r"""
#include <stddef.h>
#include <string.h>
#include "portable.h"
#include "wide_int.h"
#define LOOP(name, value)                                                                              \
    void loop_##name(size_t n, const uint64_t *w, const int *by, uint64_t *out) {                       \
        for (size_t i = 0; i < n; i++, w += 4, out += 2) {                                              \
            const dpestim_u128 a = dpestim_join(w[0], w[1]), b = dpestim_join(w[2], w[3]);              \
            const int shift = by[i];                                                                    \
            const dpestim_u128 r = (value);                                                             \
            (void)a; (void)b; (void)shift;                                                              \
            out[0] = dpestim_high_word(r);                                                              \
            out[1] = dpestim_low_word(r);                                                               \
        }                                                                                               \
    }
static dpestim_u128 word(uint64_t x) { return dpestim_join(0, x); }
static dpestim_u128 bits(double x) { uint64_t r; memcpy(&r, &x, 8); return word(r); }
LOOP(times, dpestim_times(w[0], w[2]))
LOOP(high, word(dpestim_high(w[0], w[2])))
LOOP(multiple, dpestim_multiple(a, w[2]))
LOOP(plus, dpestim_plus(a, b))
LOOP(minus, dpestim_minus(a, b))
LOOP(less, word((uint64_t)dpestim_less(a, b)))
LOOP(up, dpestim_up(a, shift))
LOOP(down, dpestim_down(a, shift))
LOOP(quotient, word(dpestim_quotient(a, b)))
LOOP(signed, dpestim_signed((int64_t)w[0]))
LOOP(signed_multiple, dpestim_signed_multiple(a, (int64_t)w[2]))
LOOP(signed_down, dpestim_signed_down(a, shift))
LOOP(signed_float, bits(dpestim_signed_float(a)))
LOOP(ones, word((uint64_t)dpestim_ones(w[0])))
LOOP(odd_ones, word(dpestim_odd_ones(w[0])))
LOOP(lowest_one, word(dpestim_lowest_one(w[0] | ((uint64_t)1 << 63))))
int compiler_has_them(void) { return DPESTIM_HAS_INT128; }
"""


def signed(x, size):
    return x - size if x >= size // 2 else x


def nearest(x):
    return int(np.float64(float(x)).view(np.uint64))  # (Python rounds an integer once, to nearest and ties to even)


#: What each function is, of integers a, b, the words a_high, b_high and a shift.
MEANT = {
    "times": lambda a, b, s: (a >> 64) * (b >> 64),
    "high": lambda a, b, s: (a >> 64) * (b >> 64) >> 64,
    "multiple": lambda a, b, s: a * (b >> 64),
    "plus": lambda a, b, s: a + b,
    "minus": lambda a, b, s: a - b,
    "less": lambda a, b, s: int(a < b),
    "up": lambda a, b, s: a << s,
    "down": lambda a, b, s: a >> s,
    "quotient": lambda a, b, s: a // b % WORD,
    "signed": lambda a, b, s: signed(a >> 64, WORD),
    "signed_multiple": lambda a, b, s: signed(a, WIDE) * signed(b >> 64, WORD),
    "signed_down": lambda a, b, s: signed(a, WIDE) >> s,
    "signed_float": lambda a, b, s: nearest(signed(a, WIDE)),
    "ones": lambda a, b, s: (a >> 64).bit_count(),
    "odd_ones": lambda a, b, s: (a >> 64).bit_count() % 2,
    "lowest_one": lambda a, b, s: ((x := (a >> 64) | 1 << 63) & -x).bit_length() - 1,
}


def cases():
    """Return pairs of integers below 2^128, the second not 0, and shifts: edges, all of them, and random lengths."""
    powers = (0, 1, 31, 32, 53, 54, 62, 63, 64, 65, 96, 117, 127, 128)
    edges = sorted({x for k in powers for e in (-1, 0, 1) if 0 <= (x := (1 << k) + e) < WIDE})
    pairs = [(a, b) for a in edges for b in edges if b]
    rng = np.random.default_rng(0)
    for cut in rng.integers(0, 128, (1500, 2)).tolist():
        a, b = (int.from_bytes(rng.bytes(16)) >> k for k in cut)
        pairs.append((a, b or 1))
    # floats: halfway between two of them, and a little more or less
    pairs += [(((1 << 53) + odd << up) + (1 << up - 1) + e, 1)
              for odd in (0, 1) for up in (2, 9, 10, 11, 40, 73) for e in (-1, 0, 1)]
    pairs += [(WIDE - a, b) for a, b in pairs[-36:]]
    return pairs, [0, 127, *range(128)] * (len(pairs) // 128 + 1)


@pytest.mark.skipif(COMPILER is None or not HEADERS.is_dir(), reason="no compiler, or the headers are not here")
@pytest.mark.parametrize("plain", [False, True], ids=["compiler", "words"])
def test_integers_of_128_bits_are_those_of_python(tmp_path, plain):
    # the second is strict ISO C, as compilers that are neither gcc nor clang take it
    flags = ["-DDPESTIM_NO_INT128", "-DDPESTIM_PLAIN", "-pedantic-errors"] if plain else []
    (tmp_path / "loops.c").write_text(LOOPS)
    library = tmp_path / "loops.so"
    subprocess.run([COMPILER, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", *flags, "-shared", "-fPIC",
                    f"-I{HEADERS}", str(tmp_path / "loops.c"), "-o", str(library)], check=True)
    loops = ctypes.CDLL(str(library))
    assert plain is False or not loops.compiler_has_them()
    pairs, shifts = cases()
    words = np.array([(a >> 64, a % WORD, b >> 64, b % WORD) for a, b in pairs], np.uint64)
    by, out = np.array(shifts[: len(pairs)], np.int32), np.empty((len(pairs), 2), np.uint64)
    address = [ctypes.c_void_p(x.ctypes.data) for x in (words, by, out)]
    assert set(re.findall(r"^LOOP\((\w+)", LOOPS, re.M)) == set(MEANT)
    for name, meant in MEANT.items():
        getattr(loops, f"loop_{name}")(ctypes.c_size_t(len(pairs)), *address)
        got = [(high << 64) | low for high, low in out.tolist()]
        wrong = [(a, b, s) for (a, b), s, g in zip(pairs, shifts, got) if g != meant(a, b, s) % WIDE]
        assert not wrong, f"{name}: {len(wrong)} of {len(pairs)}, such as {wrong[0]}"


@pytest.mark.skipif(not HEADERS.is_dir(), reason="the headers are not here")
def test_what_compilers_spell_differently_has_three_homes():
    spelled = re.compile(r"__int128|__builtin_\w+|__attribute__|vector_size|_Pragma|__pragma|typeof|__GNUC__|_MSC_VER")
    found = {path.name: sorted(set(spelled.findall(path.read_text())))
             for pattern in ("src/*.h", "*.pyx", "*.pxd") for path in HEADERS.parent.glob(pattern)}
    homes = {"portable.h", "wide_int.h", "wide.h"}
    assert {name for name, words in found.items() if words} == homes
    assert [name for name, words in found.items() if "__int128" in words] == ["wide_int.h"]
