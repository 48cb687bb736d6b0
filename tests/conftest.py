"""What every run of the suite says and asserts about itself; it holds with and without workers (pytest-xdist)."""

import gc
import importlib
import os
import pkgutil
import shutil
import tempfile
from functools import lru_cache

# workers share the machine: each keeps to its core, or libraries of linear algebra fight over all of them
if "PYTEST_XDIST_WORKER" in os.environ:
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

import pytest
from _costs import Costs

from dpestim import _core
from dpestim._core import build

#: A whole run with fewer tests than this has lost some; raise it as the suite grows.
FEWEST_TESTS = 7500
#: A folder in memory, and the bytes that must be free there.
MEMORY, ROOM = "/dev/shm", 2**30
#: What is called wherever something is fitted (declared categories, words, what is not finite): no refusal there.
EVERYWHERE, EACH_FIT = {"_cyutility", "build", "encode", "rare"}, {"all_finite"}


@pytest.fixture(scope="session", autouse=True)
def temporary_folder(tmp_path_factory):
    """Let ledgers without a path be files of this run (of this worker): in memory where there is room.

    A new ledger waits for a disk longer than a test takes. Ledgers with a path are on a disk.
    """
    before, folder = tempfile.tempdir, str(tmp_path_factory.mktemp("ledgers"))
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        folder = tempfile.mkdtemp(prefix="dpestim-tests-", dir=MEMORY)
    tempfile.tempdir = folder
    yield
    tempfile.tempdir = before
    shutil.rmtree(folder, ignore_errors=True)


@lru_cache(maxsize=1)
def kernels():
    """Return (module, name) of every function of the kernels but those of `EVERYWHERE`."""
    modules = [importlib.import_module(f"dpestim._core.{each.name}") for each in pkgutil.iter_modules(_core.__path__)
               if each.name not in EVERYWHERE]
    return [(module, name) for module in modules for name, value in vars(module).items()
            if callable(value) and name[0] != "_" and name not in EACH_FIT]


def refuse(*args, **kwargs):
    """Fail (by an exception that no `except Exception` hides)."""
    pytest.fail("what is marked `no_kernel` calls a kernel: the debug build must run it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Let all kernels refuse while a test runs that the debug build leaves out."""
    if item.get_closest_marker("no_kernel") is None:
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in kernels():
            patch.setattr(module, name, refuse)
        return (yield)


def pytest_report_header(config):
    kind = "debug (checked loops)" if build.DEBUG else f"release ({build.VECTOR_BITS}-bit vectors)"
    return f"dpestim kernels: {kind}, from {os.path.dirname(build.__file__)}"


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect no garbage meanwhile: nearly all that is made stays, and to look through it takes a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """Spare the collector of garbage what stays until the end: modules and thousands of tests."""
    gc.collect()
    gc.freeze()


def pytest_configure(config):
    if os.environ.get("DPESTIM_EXPECT_DEBUG") and not build.DEBUG:
        raise pytest.UsageError("this run is meant for the debug build, but the release build was imported")
    config.pluginmanager.register(Costs(), "dpestim-costs")
    if config.pluginmanager.hasplugin("xdist"):
        import _units

        config.pluginmanager.register(_units, "dpestim-units")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """Refuse a whole run that has lost tests. Counted at the end: with workers, only there is anything whole known."""
    config, costs = session.config, session.config.pluginmanager.getplugin("dpestim-costs")
    option = config.option
    chosen = option.keyword or option.deselect or option.markexpr not in ("", "not ci")  # (`make test`)
    whole = config.args == config.getini("testpaths") and not chosen
    stopped = option.maxfail or getattr(option, "lf", False) or option.collectonly
    if hasattr(config, "workerinput") or not whole or stopped or exitstatus not in (0, 1):
        return
    if len(costs.tests) < FEWEST_TESTS:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
        config.get_terminal_writer().line(
            f"\nonly {len(costs.tests)} tests were run, at least {FEWEST_TESTS} are expected", red=True)
