"""What the suite costs: seconds per check and per mechanism, summed over workers, printed after every run.

A family grows, and each newcomer brings all checks: a check that costs a second for one setting costs minutes for
a hundred mechanisms. So the price of each stands below every run, beside what a family of `FAMILY` would take. Seconds
are those of the processor, child processes included: they hardly depend on what else the machine does. Before its
first test each worker imports and collects all of them, which nobody shares.
"""

import os
from collections import defaultdict
from functools import cached_property

import pytest

#: The size of family for which the suite is planned, and the minutes that it may then take on two cores.
FAMILY, MINUTES = 120, 5
#: Lines of each table.
SHOWN = 12


class Costs:
    """Collects the cost of tests, wherever they ran."""

    def __init__(self):
        #: node id -> (check, mechanism or "", seconds)
        self.tests = {}
        #: What each worker took before its first test.
        self.before = []
        self._is_first = True

    @cached_property
    def names(self):
        """The registry: read where tests run. Who only hands them out starts workers before scikit-learn is loaded."""
        from dpestim.base import all_estimators

        return {cls: name for name, cls in all_estimators()}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Note when a test starts, its fixtures included."""
        self.start = _seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item):
        """Write down what a test was about and what it cost; this travels in its last report, from workers too."""
        try:
            return (yield)
        finally:
            seconds = _seconds() - self.start  # (before the registry is read for the first of all tests)
            if self._is_first:
                item.user_properties.append(("before", self.start))
                self._is_first = False
            item.user_properties.append(("cost", (*self._about(item), seconds)))

    def pytest_runtest_logreport(self, report):
        """Keep what the last report of a test says."""
        for name, value in report.user_properties:
            if name == "cost":
                self.tests[report.nodeid] = value
            if name == "before":
                self.before.append(value)

    def pytest_terminal_summary(self, terminalreporter, config):
        """Print the tables and the forecast."""
        if len(self.tests) < 100:
            return
        checks, mechanisms = defaultdict(lambda: [0.0, 0]), defaultdict(lambda: [0.0, 0])
        for check, mechanism, seconds in self.tests.values():
            for table, key in ((checks, check), (mechanisms, mechanism)):
                table[key][0] += seconds
                table[key][1] += 1
        write = terminalreporter.write_line
        total, shared = sum(s for s, _ in checks.values()), mechanisms.pop("", (0.0, 0))[0]
        workers = getattr(config.option, "numprocesses", None) or 1
        terminalreporter.write_sep("=", f"costs: {total:.0f} s of the processor, {workers} worker(s)")
        for title, table in (("check", checks), ("mechanism", mechanisms)):
            ranked = sorted(table.items(), key=lambda pair: -pair[1][0])
            if len(ranked) > SHOWN:
                rest = [pair[1] for pair in ranked[SHOWN:]]
                ranked[SHOWN:] = [(f"the other {title}s", (sum(s for s, _ in rest), sum(n for _, n in rest)))]
            for name, (seconds, tests) in ranked:
                write(f"{seconds:7.1f} s  {tests:5d} tests  {name}")
        if mechanisms:
            each = (total - shared) / len(mechanisms)
            before = sum(self.before) / max(len(self.before), 1)
            minutes = (before + (shared + FAMILY * each) / 2) / 60
            write(f"{each:.1f} s a mechanism, {shared:.0f} s besides, and {before:.0f} s before the first test: "
                  f"{FAMILY} mechanisms would take {minutes:.1f} minutes on two free cores; planned are {MINUTES}")

    def _about(self, item):
        """Return (check, mechanism): where a parameter is a check, its name; else the test's, or its file's."""
        values = getattr(getattr(item, "callspec", None), "params", {})
        kinds = [v if isinstance(v, type) else type(v) for v in values.values()]
        mechanism = next((self.names[kind] for kind in kinds if kind in self.names), "")
        check = values.get("check", "")
        if not isinstance(check, str):
            check = getattr(getattr(check, "func", check), "__name__", "")
        if not check.startswith("check_"):
            check = item.originalname if mechanism else item.path.stem
        return check, mechanism


def _seconds():
    return sum(os.times()[:4])
