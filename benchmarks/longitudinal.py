"""Reports from what a client keeps, beside the mechanism that keeps nothing."""

import numpy as np

from benchmarks._harness import Row, interleave, limit, share
from benchmarks.frequencies import Case, estimator
from dpestim.local import (
    GRRFrequencyEstimator,
    LGRRFrequencyEstimator,
    LOLOHAFrequencyEstimator,
    LOSUEFrequencyEstimator,
    LOUEFrequencyEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    SUEFrequencyEstimator,
)

#: A report of a value that stayed takes at most twice as long as one of the same kind that nothing is kept for.
TARGET = 0.5
PAIRS = {
    "LGRR": (LGRRFrequencyEstimator, GRRFrequencyEstimator),
    "LOLOHA": (LOLOHAFrequencyEstimator, OLHFrequencyEstimator),
    "LOSUE": (LOSUEFrequencyEstimator, SUEFrequencyEstimator),
    "LOUE": (LOUEFrequencyEstimator, OUEFrequencyEstimator),
}


def rows(settings):
    """Yield a row for each mechanism."""
    for name, (cls, once) in PAIRS.items():
        case, other = Case(cls, settings.n, 1024), Case(once, settings.n, 1024)
        # (clients that exist, and a state that has answers: only the reports are timed)
        client, control = estimator(cls, case.d), estimator(once, case.d)
        state = client.client_state(case.X)
        client.privatize(case.X, state=state)
        times, results, repeats = interleave({
            "ours": lambda client=client, X=case.X, state=state: client.privatize(X, state=state),
            "first": lambda client=client, X=case.X: client.privatize(X, state=client.client_state(X)),
            "once": lambda control=control, X=case.X: control.privatize(X),
            "limit": limit("memory"),
        })
        case.check(case.counts(results["ours"]), f"{name}, a later report")
        case.check(case.counts(results["first"]), f"{name}, a first report")
        other.check(other.counts(results["once"]), f"the one-shot form of {name}")
        if np.array_equal(results["ours"], client.privatize(case.X, state=state)):
            raise RuntimeError(f"{name}: two reports from one state are the same")
        moved = case.X.nbytes + results["ours"].nbytes
        yield Row(
            f"{name} report of a kept answer, {case.n:,} x {case.d}",
            ours=times["ours"],
            peer=f"{once.__name__.removesuffix('FrequencyEstimator')} of this package",
            baseline=times["once"],
            ratio=times["once"] / times["ours"],
            limit="memory",
            share=share("memory", times["limit"], moved, times["ours"]),
            repeats=repeats,
            note=f"a first report, with what is kept, {times['first'] / times['once']:.1f} times the one-shot form",
        ).judge(settings, TARGET)
