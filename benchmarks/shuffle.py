"""The shuffle model: encoding, adding up and counting many users' messages, and how long bounds take.

The peers are what a good NumPy user would write for the same messages: floats decide there, and nobody has proven
anything. Who wants the law of the counts, and no message of any user, needs one binomial number for each: the notes say
how long that takes, which no protocol whose users draw for themselves can.
"""

import numpy as np

from benchmarks._harness import Row, interleave
from dpestim.shuffle import BooleanSum, RealSum, ShuffledHistogram
from dpestim.shuffle.amplification import clones

DELTA = 1e-9
#: How much faster than NumPy the rows are whose words are few.
TARGET = 3


def rows(settings):
    """Yield rows: fits of protocols beside NumPy, and bounds."""
    n = settings.n
    rng = np.random.default_rng(0)
    values, bits = rng.uniform(size=(n, 1)), (rng.random((n, 1)) < 0.3).astype(np.uint8)
    codes = rng.integers(0, 100, (n, 1))
    yield _row(f"BooleanSum, fit, {n:,}", n, BooleanSum(1.0, delta=DELTA), bits, "vectorised flips", _flips,
               _flips_at_once).judge(settings, TARGET)
    yield _row(f"RealSum, split and mix, fit, {n:,}", n, RealSum(1.0, delta=DELTA, bounds=(0, 1)), values,
               "Generator.negative_binomial and shares", _shares)
    yield _row(f"RealSum, one level, fit, {n:,}", n, RealSum(1.0, delta=DELTA, bounds=(0, 1), protocol="balle"), values,
               "vectorised levels", _levels)
    yield _row(f"ShuffledHistogram, fit, {n:,} x 100", n,
               ShuffledHistogram(1.0, delta=DELTA, categories=[np.arange(100)]), codes, "vectorised fakes", _fakes,
               _fakes_at_once).judge(settings, TARGET)
    times, _, repeats = interleave({"ours": lambda: clones(10**9, 1.0, DELTA)})
    yield Row("clones bound, n = 1e9 (goal 1 s)", ours=times["ours"], repeats=repeats)


def _row(title, n, protocol, X, peer, baseline, at_once=None):
    """Return a row: both with secure or seeded noise as they come, on the same rows."""
    protocol.fit(X)
    law, rng = protocol.randomizer(), np.random.default_rng(1)
    truth = X.sum() if not hasattr(protocol, "counts_") else np.bincount(X[:, 0], minlength=100)
    peers = {"numpy": baseline, **({"at once": at_once} if at_once else {})}
    spread = 6 * (protocol.standard_error_ if hasattr(protocol, "sum_") else n * protocol.standard_errors_[0])
    for function in peers.values():
        if (np.abs(function(rng, X[:, 0], law) - truth) > spread + 1e-3 * n**0.5).any():
            raise AssertionError(f"the baseline of {title} estimates something else")
    times, _, repeats = interleave({"ours": lambda: protocol.fit(X), **{
        name: lambda function=function: function(rng, X[:, 0], law) for name, function in peers.items()}})
    note = f"counts with binomial noise, without the messages: {times['at once'] * 1e3:.2f} ms" if at_once else ""
    row = Row(title, ours=times["ours"], peer=peer, baseline=times["numpy"], ratio=times["numpy"] / times["ours"],
              repeats=repeats, note=note)
    if at_once:
        row.limit, row.share = "counts alone", times["at once"] / times["ours"]
    return row


def _flips(rng, bits, law):
    flip = law.flip / 2**64
    sent = bits ^ (rng.random(len(bits)) < flip)
    return (sent.sum() - len(bits) * flip) / (1 - 2 * flip)


def _flips_at_once(rng, bits, law):
    flip, ones = law.flip / 2**64, np.count_nonzero(bits)
    sent = rng.binomial(ones, 1 - flip) + rng.binomial(len(bits) - ones, flip)
    return (sent - len(bits) * flip) / (1 - 2 * flip)


def _shares(rng, values, law):
    n, k, m = len(values), law.steps, law.report_width
    alpha = np.exp(-1.0 / k)
    noise = rng.negative_binomial(1 / n, 1 - alpha, n) - rng.negative_binomial(1 / n, 1 - alpha, n)
    whole = np.floor(values * k)
    total = (whole + (rng.random(n) < values * k - whole)).astype(np.int64) + noise
    shares = rng.integers(0, 2**64, (n, m), np.uint64, endpoint=False)
    shares[:, -1] = total.view(np.uint64) - shares[:, :-1].sum(axis=1, dtype=np.uint64)
    return float(shares.sum(dtype=np.uint64).view(np.int64)) / k


def _levels(rng, values, law):
    k, blanket = law.sizes[0], law.n_counts * law.weights[0][1] / 2**64
    whole = np.floor(values * k)
    level = whole + (rng.random(len(values)) < values * k - whole)
    sent = np.where(rng.random(len(values)) < blanket, rng.integers(0, k + 1, len(values)), level)
    return (sent.sum() / k - len(values) * blanket / 2) / (1 - blanket)


def _fakes(rng, codes, law):
    d, places = law.n_categories, law.n_places
    drawn = rng.random((len(codes), places)) / (law.other / 2**64)
    fakes = drawn[drawn < d].astype(np.int64)
    counts = np.bincount(codes, minlength=d) + np.bincount(fakes, minlength=d)
    return counts - len(codes) * places * law.other / 2**64


def _fakes_at_once(rng, codes, law):
    d, places, share = law.n_categories, len(codes) * law.n_places, law.other / 2**64
    return np.bincount(codes, minlength=d) + rng.multinomial(places, [share] * d + [1 - d * share])[:d] - places * share
