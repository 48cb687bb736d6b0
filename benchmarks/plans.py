"""Plans of surveys: of many categories, and the first of a process."""

import statistics
import subprocess
import sys

import numpy as np

from benchmarks._harness import Row, interleave
from dpestim.local import plan
from dpestim.local.categories.choice import candidates, spread_of

#: Categories of the large plan, and how many plans of one domain are timed, each with an epsilon of its own.
D = 1 << 20
#: The goals, in seconds.
LARGE_GOAL, FIRST_GOAL = 0.05, 0.1
_FIRST = """
from dpestim.local import plan_mean
import time
start = time.thread_time()
plan_mean(n_users=10_000, epsilon=1.0)
print(time.thread_time() - start)
"""


def rows(settings):
    """Yield rows: a plan of 2^20 categories beside what its laws say of all frequencies, and a first plan of means."""
    d = 1 << 12 if settings.quick else D
    laws, even = candidates(1.0, d)[0].values(), np.full(d, 1 / d)

    def fresh():
        candidates.cache_clear()
        spread_of.cache_clear()
        return plan(n_categories=d, n_users=1_000_000, epsilon=1.0)

    def all_frequencies():
        return [np.mean(law.variance(n, even)) for law in laws for n in (1, 1 << 40)]

    times, _, repeats = interleave({"ours": fresh, "all": all_frequencies})
    row = Row(f"plan, {d:,} categories", ours=times["ours"], peer="variances of all frequencies",
              baseline=times["all"], ratio=times["all"] / times["ours"], target=f"<{LARGE_GOAL * 1e3:g} ms",
              repeats=repeats)
    if not settings.quick:
        row.met = row.ours < LARGE_GOAL
    yield row
    calls = 1 if settings.quick else 5
    spent = [float(subprocess.run([sys.executable, "-c", _FIRST], check=True, capture_output=True, text=True).stdout)
             for _ in range(calls)]
    first = statistics.median(spent)
    yield Row("plan_mean, the first of a process, after its import", ours=first, peer="the goal", baseline=FIRST_GOAL,
              ratio=FIRST_GOAL / first, repeats=calls).judge(settings, 1)
