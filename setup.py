"""Build of the kernels: found by glob, with directives and flags in this one place."""

import multiprocessing
import os
import re
import sys
import sysconfig
from glob import glob
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("DPESTIM_DEBUG", "") not in ("", "0")

# One set of directives for every kernel. The loops check nothing (lengths are checked once, at the call), so the
# debug build turns the checks on and runs the same suite.
DIRECTIVES = {
    "language_level": "3",
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
    "embedsignature": True,
    "embedsignature.format": "python",
    "freethreading_compatible": True,  # what they touch is their caller's; `entry` has a lock
}

# -O3 comes last and so wins over the interpreter's own flags: at -O2 gcc 12 does not vectorise the counting loops.
# -g0 makes the libraries five times smaller; the debug build has lines for a backtrace (-g takes a third longer). No
# -march=native and no -ffast-math: wheels are portable and exact; wide vectors are chosen when running (src/wide.h).
# No contraction: a fused multiply-add would make floats differ between processors. MSVC: `restrict` and hexadecimal
# floats are of C11.
COMPILE = ["/O2", "/std:c11", "/fp:precise"] if sys.platform == "win32" else [
    *(["-O1", "-g1"] if DEBUG else ["-O3", "-g0"]), "-ffp-contract=off"
]

# The limited API of CPython 3.11: one wheel serves every later version. Typed memoryviews only, so no NumPy ABI.
# Interpreters without a GIL have no limited API (before 3.15): a wheel for one of them is for one version.
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
MACROS = [("DPESTIM_DEBUG", "1" if DEBUG else "0")]
if not FREE_THREADED:
    MACROS.append(("Py_LIMITED_API", "0x030B0000"))
if DEBUG:  # what MSVC compiles: no integers of 128 bits, nothing of GNU C (_core/src/wide_int.h, portable.h)
    MACROS += [("DPESTIM_NO_INT128", "1"), ("DPESTIM_PLAIN", "1")]
HEADERS = "dpestim/_core/src"
# What Cython needs for memoryviews is 20,000 lines of C a kernel; compiled once, in a module of its own, they halve the
# time of a build and the size of the libraries.
SHARED = "dpestim._core._cyutility"
# What a kernel or a header names: a header of ours, or a module whose .pxd it reads.
NAMED = re.compile(r'^\s*(?:cdef\s+extern\s+from|#\s*include)\s*"([^"]+)"|^\s*(?:from|cimport)\s+(dpestim[\w.]+)', re.M)


def needs(path, known=()):
    """Return the files that a kernel's text leads to, so that a change rebuilds what is made of it and nothing else.

    These are headers (`cdef extern from`, and what they include) and the .pxd files of itself and of what it cimports.
    """
    found = list(known)
    named = [path.replace(".pyx", ".pxd")] if path.endswith(".pyx") else []
    for match in NAMED.finditer(Path(path).read_text(encoding="utf-8")):
        header, module = match.groups()
        named.append(f"{HEADERS}/{header}" if header else module.replace(".", "/") + ".pxd")
    for file in named:
        if file not in found and Path(file).is_file():
            found = needs(file, [*found, file])
    return found


def extension(name, sources, **more):
    return Extension(name, sources, define_macros=MACROS, extra_compile_args=COMPILE, py_limited_api=not FREE_THREADED,
                     **more)


extensions = [
    extension(path[: -len(".pyx")].replace("/", "."), [path], include_dirs=[HEADERS], depends=sorted(needs(path)))
    for path in sorted(p.replace(os.sep, "/") for p in glob("dpestim/_core/*.pyx"))
]

# Metadata and lists of files need no C: who builds in a new environment (`make wheel`) asks for them first, and there
# Cython, newer than any C, would write all of it. Nor does it need C to pack what is compiled.
COMMANDS = [word for word in sys.argv[1:] if not word.startswith("-")]
NEEDS_C = "--skip-build" not in sys.argv and (
    COMMANDS[:1] not in (["egg_info"], ["dist_info"], ["sdist"], ["build_py"])
    or any(re.match("build|bdist|install|develop|editable", word) for word in COMMANDS[1:])
)

setup(
    ext_modules=cythonize(
        [*extensions, extension(SHARED, [])],  # (it writes the source of that one itself)
        shared_utility_qualified_name=SHARED,
        compiler_directives=DIRECTIVES,
        # side by side, where a worker need not read this file again
        nthreads=os.cpu_count() if multiprocessing.get_start_method() == "fork" else 0,
        # cythonize decides by time stamps and does not see the directives, so the debug build has its own folder
        build_dir="build/cython-debug" if DEBUG else "build/cython",
        force=DEBUG,
    ) if NEEDS_C else extensions,
    options={
        "bdist_wheel": {} if FREE_THREADED else {"py_limited_api": "cp311"},
        "build_ext": {"parallel": os.cpu_count()},
    },
)
