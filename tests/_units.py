"""Which tests stay together on one worker (pytest-xdist, ``--dist loadgroup``): those that share what is dear to make.

All checks of a setting share samples, the tests of a file in `WHOLE` a fixture, and the cases of a test whatever it
caches. pytest-xdist's own groups are not used: they are marks that it writes into the names of tests, which pytest
from 9.2 on does not read, and then each worker silently makes everything anew. Names are all that is known where the
work is shared out.
"""

from xdist.scheduler import LoadScopeScheduling

#: Files whose tests share one run of something.
WHOLE = ("test_reproduction.py",)


def unit(nodeid):
    """Return the name of what a test stays together with: a setting, a file, or the test without its parameters."""
    file, _, test = nodeid.partition("::")
    if file.endswith(WHOLE):
        return file
    if file.endswith("test_mechanisms.py"):
        return nodeid.partition("-check_")[0]
    return f"{file}::{test.partition('[')[0]}"


class Units(LoadScopeScheduling):
    """Hands out units; those of most tests first, so that small ones fill the end."""

    def _split_scope(self, nodeid):
        return unit(nodeid)


def pytest_xdist_make_scheduler(config, log):
    return Units(config, log) if config.getvalue("dist") == "loadgroup" else None
