"""One record on a client, in turn with a fresh generator of NumPy's, with what an expert writes, and with the least."""

import math
import os
import statistics
import time

import numpy as np

from benchmarks._harness import Row
from dpestim.local.categories.histogram_encoding import SHE
from dpestim.local.categories.idue import IDUE
from dpestim.local.categories.lunary import LongitudinalUnary
from dpestim.local.categories.unary import Unary

#: The control's time as a share of a client's own; of what has no target it is shown.
LATENCY = {"cold": 0.65, "fitted": 1, "made": None}
_WHEN = {"cold": "the client exists, no data seen", "fitted": "after its first data",
         "made": "made of its parameters for each record"}


def latency_rows(settings, text, client, server, record, law=None):
    """One record on a client, in turn with what NumPy takes to seed a generator from the system and to draw one number.

    Cold: the client exists and has declared its domain, but has seen no data, so that each call looks at all its
    parameters again. Fitted: it has, and they are frozen. Made: it is made of its parameters, too, for each record. The
    times depend on the machine by a factor of four, their ratio does not. A mechanism that decides about each of 1,024
    values is judged by the same control, which draws one number; what an expert writes for it in NumPy is shown beside.
    """
    made, given = type(client), client.get_params(deep=False)
    control, calls = lambda: np.random.default_rng().random(1), 30 if settings.quick else 500
    least, expert = least_client(law), expert_of(law)
    times = _medians({"cold": lambda: client.privatize(record), "fitted": lambda: server.privatize(record),
                      "control": control, "least": lambda: least(record),
                      **({"expert": lambda: expert(record)} if expert else {})}, calls)
    # (apart: making a client takes so long that what comes after it finds other things in the caches)
    apart = _medians({"made": lambda: made(**given).privatize(record), "control": control}, calls)
    times["made"] = apart["made"] * times["control"] / apart["control"]
    for where, target in LATENCY.items():
        notes = [_WHEN[where], f"the least client has {times['control'] / times['least']:.2f}x"]
        if expert:
            notes.append(f"an expert's NumPy of this mechanism has {times['control'] / times['expert']:.2f}x")
        row = Row(
            f"{text}, {where}",
            ours=times[where],
            peer="NumPy, default_rng().random(1)",
            baseline=times["control"],
            ratio=times["control"] / times[where],
            limit="least client",
            share=times["least"] / times[where],
            repeats=calls,
            note="; ".join(notes),
        )
        yield row if target is None else row.judge(settings, target)


def _medians(contestants, calls):
    """Return the median seconds of functions called in turn."""
    spent = {where: [] for where in contestants}
    for _ in range(calls):
        for where, call in contestants.items():
            start = time.perf_counter()
            call()
            spent[where].append(time.perf_counter() - start)
    return {where: statistics.median(t) for where, t in spent.items()}


# ---------------------------------------------------------------- what any client does


def least_client(law=None):
    """Return a client that returns a report as none does sooner: it remembers and pays nothing, and decides nothing.

    It looks whether the array is what it seems, asks the system for as many bits as the report is uncertain by, and
    writes them into an array of the report's size, whatever they mean.
    """
    n_bytes = max(1, math.ceil(entropy(law) / 8))
    width, dtype = (1, np.dtype(np.uint16)) if law is None else (law.report_width, law.report_dtype)

    def privatize(record, d=1 << 32):
        if type(record) is not np.ndarray or record.shape != (1, 1) or record.dtype.kind not in "iuf":
            raise ValueError("X must be an array of one record")
        if not -1 <= record.item(0) < d:
            raise ValueError("X must have a value of the domain")
        drawn = os.urandom(n_bytes)
        report = np.empty((1, width), dtype)
        report[0, 0] = drawn[0]
        return report

    return privatize


def entropy(law):
    """Return how many random bits a report takes at least: those of its parts that do not depend on the value.

    Of reports without such parts one word is taken.
    """
    if isinstance(law, SHE):
        return (law.n_categories - 1) * _bits(weight / (1 << 64) for weight in law.row)
    if isinstance(law, IDUE):
        return sum(_bits((q, 1 - q)) for q in law._q.tolist())
    if isinstance(law, Unary):
        q = float(law.q_star)
        return (law.n_categories - 1) * _bits((q, 1 - q))
    return 64


def _bits(chances):
    return -sum(p * math.log2(p) for p in chances if p > 0)


# ---------------------------------------------------------------- what an expert writes for one record


def expert_of(law):
    """Return a function that randomises one record in NumPy, a generator of its own included, or None."""
    return next((way(law) for kind, way in EXPERTS.items() if isinstance(law, kind)), None)


def _flipped(p, q):
    """Bits of a one-hot vector by floats."""
    def privatize(record):
        rng, code = np.random.default_rng(), record[0, 0]
        bits = rng.random(len(q)) < q
        bits[code] = rng.random() < p[code]
        return np.packbits(bits, bitorder="little")

    return privatize


def _flipped_twice(law):
    """The same, kept, and flipped again."""
    first = [t / (1 << 64) for t in law.first]
    low = law.flip_threshold / (1 << 64)
    high, d = 1 - low if law.symmetric else 0.5, law.n_categories

    def privatize(record):
        rng, code = np.random.default_rng(), record[0, 0]
        kept = rng.random(d) < first[1]
        kept[code] = rng.random() < first[0]
        return np.packbits(rng.random(d) < np.where(kept, high, low), bitorder="little")

    return privatize


def _noisy(law):
    """Laplace noise for every cell of a one-hot vector."""
    scale, d = 2 / float(law.epsilon), law.n_categories

    def privatize(record):
        report = np.random.default_rng().laplace(0.0, scale, d)
        report[record[0, 0]] += 1
        return report

    return privatize


#: By the law, the more special one first.
EXPERTS = {
    SHE: _noisy,
    LongitudinalUnary: _flipped_twice,
    IDUE: lambda law: _flipped(law._p, law._q),
    Unary: lambda law: _flipped(np.full(law.n_categories, float(law.p_star)),
                                np.full(law.n_categories, float(law.q_star))),
}
