"""Which tests stay together on one worker (pytest-xdist, ``--dist loadgroup``): those that share what is dear to make.

All checks of a setting share samples, the tests of a file in `WHOLE` a fixture, and the cases of a test whatever it
caches. pytest-xdist's own groups are not used: they are marks that it writes into the names of tests, which pytest
from 9.2 on does not read, and then each worker silently makes everything anew. Names are all that is known where the
work is shared out.
"""

import contextlib
import importlib
import sys
from collections import OrderedDict
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from xdist.scheduler import LoadScopeScheduling

#: Files whose tests share one run of something.
WHOLE = ("test_js_client.py", "test_reproduction.py")
#: Units of few tests that take longest: at the end the other workers would wait for them.
LONG = (*WHOLE, "::test_all_examples_of_a_page_run_one_after_another", "loky")


def unit(nodeid):
    """Return the name of what a test stays together with: a setting, a file, a pool, or the test without parameters."""
    file, _, test = nodeid.partition("::")
    if file.endswith(WHOLE):
        return file
    if test.endswith("[loky]"):  # one pool of new interpreters, which take seconds to start, for all of them
        return "loky"
    if file.endswith("test_mechanisms.py"):
        return nodeid.partition("-check_")[0]
    return f"{file}::{test.partition('[')[0]}"


class _Queue(OrderedDict):
    """Units in the order in which they are handed out: those that take seconds go first, however few their tests."""

    def __setitem__(self, scope, tests):
        super().__setitem__(scope, tests)
        if scope.endswith(LONG):
            self.move_to_end(scope, last=False)


class Units(LoadScopeScheduling):
    """Hands out units; those of most tests first, so that small ones fill the end."""

    def __init__(self, *args):
        super().__init__(*args)
        self.workqueue, self._places = _Queue(), {}

    def _assign_work_unit(self, node):
        """As ever, but know where in a collection a test is: to look through all of it for each takes seconds."""
        scope, tests = self.workqueue.popitem(last=False)
        self.assigned_work.setdefault(node, {})[scope] = tests
        if not self._places:  # (that of all nodes is the same)
            self._places = {test: place for place, test in enumerate(self.registered_collections[node])}
        node.send_runtest_some([self._places[test] for test, is_done in tests.items() if not is_done])

    def _split_scope(self, nodeid):
        return unit(nodeid)

    def _reschedule(self, node):
        """As ever, but forget units that are done: all that a node ever had is counted anew after every test."""
        work = self.assigned_work[node]
        for done in [scope for scope, tests in work.items() if all(tests.values())]:
            del work[done]
        super()._reschedule(node)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """In every other worker, import the files of a whole run from the last to the first.

    In a fresh clone the asserts of every file are rewritten and compiled. Side by side, all workers would do that for
    the same file at the same time; so each finds half of the files done.
    """
    config = session.config
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    if config.args != config.getini("testpaths") or int(worker.removeprefix("gw")) % 2 == 0:
        return
    files = sorted(Path(__file__).parent.rglob("test_*.py"), reverse=True)
    sys.path[:0] = {str(file.parent) for file in files}.difference(sys.path)
    for file in files:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # (the collection says so itself)
            importlib.import_module(file.stem)


def pytest_xdist_make_scheduler(config, log):
    return Units(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """In a worker, send one message about a test that passed, not five: they take longer than many a test."""
    if not hasattr(item.config, "workerinput"):
        return None
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if len(reports) == 3 and all(report.passed for report in reports):
        _, call, teardown = reports
        call.user_properties, reports = teardown.user_properties, [call]  # (what a test cost is known last)
        call.keywords = {}  # (a third of the message; nobody selects by them any more)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
