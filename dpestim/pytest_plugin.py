"""A plug-in of pytest: the fixture `assert_private`.

pytest loads this file in every suite of an environment in which dpestim is installed, so it imports nothing but pytest:
audits, and with them NumPy and SciPy, are loaded when a test asks for the fixture.
"""

import pytest


def pytest_addoption(parser):
    """Add the option."""
    parser.getgroup("dpestim", "audits of privacy").addoption(
        "--dpestim-time-limit", type=float, metavar="SECONDS",
        help="time limit of each assert_private, in place of what the test says (default: 10)")


@pytest.fixture(scope="session")
def assert_private(pytestconfig):
    """Return `dpestim.audit.assert_private`: it fails a test whose code is less private than claimed."""
    from dpestim.audit import assert_private as checked

    limit = pytestconfig.getoption("--dpestim-time-limit")

    def assert_private(mechanism, **known):
        __tracebackhide__ = True
        return checked(mechanism, **(known if limit is None else {**known, "time_limit": limit}))

    return assert_private
