"""Count-mean sketches of a million values: fit, aggregate and all frequencies, beside the same in NumPy."""

import numpy as np

from benchmarks._harness import Row, interleave, limit, share
from benchmarks.family import numpy_fwht
from benchmarks.frequencies import EPSILON, Case
from benchmarks.in_c import least_count
from dpestim.local import CMSFrequencyEstimator, HCMSFrequencyEstimator

#: Users and values that NumPy takes at a time.
BLOCK, VALUES = 1 << 14, 1 << 16
#: No part of a sketch is slower than in NumPy, which is handed codes, and neither checks nor merges.
TARGET = 1
#: Bytes of words that a user takes, of laws whose users share words.
WORD_BYTES = {"HCMS": 5}
#: Goals beyond that.
GOALS = {"HCMS fit": 5, "HCMS aggregate": 5}


def rows(settings):
    """Yield the rows; a quick run has fewer values. An array of values is read at each call, a range is not."""
    d = 1 << (16 if settings.quick else 20)
    for name, cls, privatize, count, estimate in (
        ("CMS", CMSFrequencyEstimator, cms_privatize, cms_count, cms_estimate),
        ("HCMS", HCMSFrequencyEstimator, hcms_privatize, hcms_count, hcms_estimate),
    ):
        case = Case(cls, settings.n, d)
        yield _fit(settings, name, case, privatize, count)
        yield _aggregate(settings, name, case, count)
        yield _frequencies(settings, name, case, estimate)
    yield _aggregate(settings, "HCMS", case, hcms_count, range(d))
    small = Case(HCMSFrequencyEstimator, settings.n, 1 << 10)
    yield _fit(settings, "HCMS", small, hcms_privatize, hcms_count)
    yield _aggregate(settings, "HCMS", small, hcms_count)


def _fit(settings, name, case, privatize, count):
    def numpy_fit():
        rng, counts = np.random.default_rng(), np.zeros(case.randomizer.n_counts, np.int64)
        for s in range(0, case.n, 1 << 18):  # fewer users at a time would make more of what each hash costs
            counts += count(case.randomizer, privatize(case.randomizer, case.X[s : s + (1 << 18), 0], rng))
        return counts

    times, results, repeats = interleave({"ours": case.fit, "numpy": numpy_fit, "limit": limit("keystream")})
    case.check(results["ours"]._counts[0], f"{name} fit")
    case.check(results["numpy"], f"{name} fit in NumPy")
    work = WORD_BYTES.get(name, 8 * case.randomizer.n_words) * case.n
    return _row(settings, f"{name} fit", case, times, repeats, "NumPy, the same sketch",
                limit="keystream", share=share("keystream", times["limit"], work, times["ours"]))


def _aggregate(settings, name, case, count, values=None):
    """Values: a range that declares them, in place of the array."""
    reports, n_counts, listed = case.reports, case.randomizer.n_counts, case.categories[0] if values is None else ()
    declared = case.categories if values is None else [values]
    # what any table takes: ours is read, and a bit is turned for each report; all begin with what NumPy leaves in the
    # caches, NumPy, too
    in_c = None if reports.dtype != np.uint32 else least_count(reports, n_counts, listed)
    contestants = {
        "numpy": lambda: count(case.randomizer, reports),
        "ours": lambda: case.cls(EPSILON, categories=declared).aggregate(reports),
        "kernel": lambda: case.randomizer.counted(reports), "limit": limit("memory"),
    } | ({} if in_c is None else {"in C": in_c})
    times, results, repeats = interleave(contestants, before=contestants["numpy"])
    if not np.array_equal(results["ours"]._counts[0], results["numpy"]):
        raise RuntimeError(f"{name}: NumPy counts something else")
    text, counters = f"{name} aggregate", results["numpy"].nbytes
    return _row(settings, text + (", values declared as a range" if values is not None else ""), case, times, repeats,
                "NumPy, a histogram for each hash", limit="memory",
                share=share("memory", times["limit"], reports.nbytes + counters, times["ours"]),
                note=f"NumPy beside our kernel alone: {times['numpy'] / times['kernel']:.1f}x" + (
                    "" if in_c is None else "; beside plain C without a check, which reads reports"
                    + (" and values" if len(listed) else "") + " and turns a bit of a table for each report: "
                    f"{times['numpy'] / times['in C']:.2f}x"))


def _frequencies(settings, name, case, estimate):
    law, counts = case.randomizer, case.counts(case.reports)
    times, results, repeats = interleave({"ours": lambda: law.estimate(counts, case.n),
                                          "numpy": lambda: estimate(law, counts, case.n)})
    if not np.allclose(results["ours"], results["numpy"], rtol=0, atol=1e-12):
        raise RuntimeError(f"{name}: NumPy estimates something else")
    return _row(settings, f"{name} frequencies of all values", case, times, repeats, "NumPy, in blocks")


def _row(settings, text, case, times, repeats, peer, **more):
    return Row(f"{text}, {case.n:,} x {case.d:,}", ours=times["ours"], peer=peer, baseline=times["numpy"],
               ratio=times["numpy"] / times["ours"], repeats=repeats, **more).judge(settings, GOALS.get(text, TARGET))


# ---------------------------------------------------------------- baselines


def cms_privatize(law, codes, rng):
    """Compare a float32 for every bit of the own bucket's unary code, a block of rows at a time."""
    p, q = float(law.bits.p_star), np.float32(law.bits.q_star)
    out = np.empty((len(codes), 2 + law.n_buckets // 8), np.uint8)
    for s in range(0, len(codes), BLOCK // 64):
        own = codes[s : s + BLOCK // 64]
        hashes = rng.integers(0, law.n_hashes, len(own), dtype=np.uint32)
        held = own[:, None] >> np.arange(law.columns.shape[1]) & 1
        buckets = np.bitwise_xor.reduce(law.columns[hashes] * held.astype(np.uint32), axis=1)
        bits = rng.random((len(own), law.n_buckets), np.float32) < q
        bits[np.arange(len(own)), buckets] = rng.random(len(own)) < p
        part = out[s : s + BLOCK // 64]
        part[:, 0], part[:, 1] = hashes & 255, hashes >> 8
        part[:, 2:] = np.packbits(bits, axis=1, bitorder="little")
    return out


def cms_count(law, reports):
    """Sort the reports by hash, and add up the bits of each."""
    hashes = reports[:, 0] | reports[:, 1].astype(np.uint16) << 8
    order = np.argsort(hashes, kind="stable")
    ends = np.cumsum(np.bincount(hashes, minlength=law.n_hashes))
    counts = np.empty((law.n_hashes, law.n_buckets), np.int64)
    for j, rows_of_hash in enumerate(np.split(order, ends[:-1])):
        bits = np.unpackbits(reports[rows_of_hash, 2:], axis=1, bitorder="little")
        counts[j] = bits.sum(axis=0, dtype=np.uint16)
    return counts.ravel()


def cms_estimate(law, counts, n):
    """Look up every value's bucket in every hash; as hashes are linear, high bits of a value shift the low ones."""
    table, n_low = counts.reshape(law.n_hashes, law.n_buckets), VALUES.bit_length() - 1
    n_high = max(law.n_categories // VALUES, 1)
    sums = np.zeros((n_high, min(VALUES, law.n_categories)), np.int64)
    for columns, row in zip(law.columns, table):
        low, high = (_all_buckets(part) for part in (columns[:n_low], columns[n_low:]))
        for part, shift in zip(sums, high):
            part += row[low ^ shift]
    p, q = float(law.p_star), float(law.q_star)
    return (sums.ravel() / n - q) / (p - q)


def _all_buckets(columns):
    """Return the buckets of all codes of so many bits."""
    out = np.zeros(1, np.uint32)
    for column in columns:
        out = np.concatenate([out, out ^ column])
    return out


#: Parities of 16 bits.
_PARITY = _all_buckets(np.ones(16, np.uint32)).astype(np.uint8)


def hcms_privatize(law, codes, rng):
    """Draw hash, row and truth for a block of users at a time; a sign is a parity, looked up 16 bits at a time."""
    out, keep = np.empty((len(codes), 3), law.report_dtype), np.float32(law.p_star)
    for s in range(0, len(codes), BLOCK):
        own, part = codes[s : s + BLOCK], out[s : s + BLOCK]
        if law.n_hashes > 1:
            raise ValueError("the baseline is written for one hash, the identity")
        part[:, 0], part[:, 1] = 0, rng.integers(0, law.n_buckets, len(own), dtype=np.uint32)
        common = own & part[:, 1]
        part[:, 2] = _PARITY[(common ^ common >> 16) & 0xFFFF] ^ (rng.random(len(own), np.float32) >= keep)
    return out


def hcms_count(law, reports):
    """Count the reports by row and sign."""
    cells = 2 * (reports[:, 0].astype(np.int64) * law.n_buckets + reports[:, 1]) + reports[:, 2]
    return np.bincount(cells, minlength=law.n_counts)


def hcms_estimate(law, counts, n):
    """Transform the sums of the signs of each row, in place."""
    agreeing = (n + numpy_fwht(counts[::2] - counts[1::2])[: law.n_categories]) / 2
    p, q = float(law.p_star), float(law.q_star)
    return (agreeing / n - q) / (p - q)
