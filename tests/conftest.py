"""What every run of the suite says and asserts about itself."""

import os
import tempfile

import pytest

from dpestim._core import build

#: A whole run that collects fewer tests than this has lost some; raise it as the suite grows.
FEWEST_TESTS = 300


@pytest.fixture(scope="session", autouse=True)
def temporary_folder(tmp_path_factory):
    """Let ledgers without a path be files of this run, which pytest cleans up."""
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path_factory.mktemp("ledgers"))
    yield
    tempfile.tempdir = before


def pytest_report_header(config):
    kind = "debug (checked loops)" if build.DEBUG else f"release ({build.VECTOR_BITS}-bit vectors)"
    return f"dpestim kernels: {kind}, from {os.path.dirname(build.__file__)}"


def pytest_configure(config):
    if os.environ.get("DPESTIM_EXPECT_DEBUG") and not build.DEBUG:
        raise pytest.UsageError("this run is meant for the debug build, but the release build was imported")


def pytest_collection_finish(session):
    config = session.config
    whole = config.args == config.getini("testpaths") and not config.option.keyword and not config.option.markexpr
    if whole and not getattr(config.option, "lf", False) and len(session.items) < FEWEST_TESTS:
        raise pytest.UsageError(f"only {len(session.items)} tests were collected, at least {FEWEST_TESTS} are expected")
