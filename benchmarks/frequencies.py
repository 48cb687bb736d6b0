"""The mechanisms of the registry: every verb, hand-written baselines where there are any, and latency."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks._harness import Row, interleave, limit, share, show
from benchmarks.one_record import latency_rows
from dpestim._core import build
from dpestim.base import all_estimators
from dpestim.local import OLHFrequencyEstimator, PGRFrequencyEstimator
from dpestim.local.categories.estimator import FrequencyEstimator

EPSILON = 1.0
DOMAINS = (1024, 16)
#: Bytes of all reports, beyond which a tenth of the users is timed: SHE sends a byte for every value.
MOST_REPORTS = 500_000_000
#: Bits of a threshold: probabilities are multiples of 2**-64.
WORD = 1 << 64


def mechanisms():
    """Return (short name, class) of the registry's frequency estimators."""
    return [(c.__name__.removesuffix("FrequencyEstimator"), c) for _, c in all_estimators()
            if issubclass(c, FrequencyEstimator)]


def estimator(cls, d, **parameters):
    """Return an estimator of the domain 0 .. d - 1."""
    return cls(EPSILON, categories=[np.arange(d)], **parameters)


@dataclass
class Case:
    """One mechanism, one domain, one column of users."""

    cls: type
    n: int
    d: int

    @cached_property
    def X(self):
        return np.random.default_rng(0).integers(0, self.d, (self.n, 1))

    @cached_property
    def categories(self):
        return [np.arange(self.d)]

    def estimator(self):
        """Return an estimator of a list of values that exists, as it does for the baselines."""
        return self.cls(EPSILON, categories=self.categories)

    @cached_property
    def randomizer(self):
        return self.estimator().fit(np.zeros((1, 1), int)).randomizers_[0]

    @cached_property
    def reports(self):
        return self.privatize()

    def privatize(self):
        return self.estimator().privatize(self.X)

    def aggregate(self):
        return self.estimator().aggregate(self.reports)

    def collect(self):
        both = self.estimator()
        return both.aggregate(both.privatize(self.X))

    def fit(self):
        return self.estimator().fit(self.X)

    def counts(self, reports):
        """Return what the randomizer counts of reports."""
        counts = np.zeros(self.randomizer.n_counts, np.int64)
        self.randomizer.check_reports(reports)
        self.randomizer.count(reports, counts)
        return counts

    def check(self, counts, what):
        """Raise unless estimates are what the law says: within 6 standard errors, and as spread as they should be."""
        truth = np.bincount(self.X[:, 0], minlength=self.d) / self.n
        z = (self.randomizer.estimate(counts, self.n) - truth) / np.sqrt(self.randomizer.variance(self.n, truth))
        worst, spread = np.abs(z).max(), np.mean(z**2)
        if not (worst < 6 and spread < 1 + 6 * np.sqrt(2 / self.d)):
            raise RuntimeError(f"{what} has another law: {worst:.1f} standard errors away, mean square {spread:.2f}")


def case_of(cls, n, d):
    """Return the case of n users, or of a tenth; ValueError where the mechanism refuses so many categories."""
    case = Case(cls, n, d)
    size = n * case.randomizer.report_width * case.randomizer.report_dtype.itemsize
    return case if size <= MOST_REPORTS else Case(cls, n // 10, d)


# ---------------------------------------------------------------- baselines, by class name


def grr_collect(case, block=1 << 16):
    """With probability p - q the own value, else any value: randomised response, and its histogram."""
    rng, gap = np.random.default_rng(), np.float32(case.randomizer.p_star - case.randomizer.q_star)
    codes, counts = case.X[:, 0], np.zeros(case.d, np.int64)
    for s in range(0, case.n, block):
        own = codes[s : s + block]
        keep = rng.random(len(own), np.float32) < gap
        reports = np.where(keep, own, rng.integers(0, case.d, len(own), dtype=np.uint16)).astype(np.uint16)
        counts += np.bincount(reports, minlength=case.d)
    return counts


def grr_collect_words(case, block=1 << 16):
    """The same from one word a user: the whole word decides, and its low half names any value by a multiplication."""
    rng, top, half = np.random.default_rng(), np.iinfo(np.uint64).max, np.uint64(32)
    keep_from = np.uint64(WORD - int((case.randomizer.p_star - case.randomizer.q_star) * WORD))
    codes, counts = case.X[:, 0].view(np.uint64), np.zeros(case.d, np.int64)
    for s in range(0, case.n, block):
        own = codes[s : s + block]
        words = rng.integers(0, top, len(own), dtype=np.uint64, endpoint=True)
        other = (words & np.uint64(0xFFFFFFFF)) * np.uint64(case.d) >> half
        reports = np.where(words >= keep_from, own, other).astype(np.uint16)
        counts += np.bincount(reports, minlength=case.d)
    return counts


def oue_privatize_floats(case, rows=256):
    """Compare a float32 for every bit, a block of rows at a time."""

    def draw(rng, n_bits):
        rng.random(dtype=np.float32, out=buffer[:n_bits])
        return buffer[:n_bits] < q

    q, buffer = np.float32(case.randomizer.q_star), np.empty(rows * case.d, np.float32)
    return _oue_privatize(case, rows, draw)


def oue_privatize_bytes(case, rows=1024):
    """One random byte a bit against the threshold's first digit, a float only where it ties."""
    digit, rest = divmod(int(case.randomizer.q_star * WORD), WORD >> 8)
    rest, top = rest / (WORD >> 8), np.iinfo(np.uint64).max

    def draw(rng, n_bits):
        words = rng.integers(0, top, -(-n_bits // 8), dtype=np.uint64, endpoint=True)  # much faster than rng.bytes
        drawn = words.view(np.uint8)[:n_bits]
        bits = drawn < digit
        ties = np.flatnonzero(drawn == digit)
        bits[ties] = rng.random(len(ties)) < rest
        return bits

    return _oue_privatize(case, rows, draw)


def _oue_privatize(case, rows, draw):
    rng, codes, out = np.random.default_rng(), case.X[:, 0], np.empty((case.n, -(-case.d // 8)), np.uint8)
    p = float(case.randomizer.p_star)
    for s in range(0, case.n, rows):
        own = codes[s : s + rows]
        bits = draw(rng, len(own) * case.d).reshape(len(own), case.d)
        bits[np.arange(len(own)), own] = rng.random(len(own)) < p
        out[s : s + rows] = np.packbits(bits, axis=1, bitorder="little")
    return out


def oue_count_wide(case, rows=2048):
    """Unpack a block of rows and sum its columns."""
    counts = np.zeros(case.d, np.int64)
    for s in range(0, case.n, rows):
        bits = np.unpackbits(case.reports[s : s + rows], axis=1, bitorder="little", count=case.d)
        counts += bits.sum(axis=0, dtype=np.uint16)
    return counts


def oue_count_bytes(case):
    """The same in bytes: 255 rows cannot overflow them, so that no bit is ever widened."""
    counts = np.zeros(case.d, np.int64)
    for s in range(0, case.n, 255):
        bits = np.unpackbits(case.reports[s : s + 255], axis=1, bitorder="little", count=case.d)
        counts += np.add.reduce(bits, axis=0, dtype=np.uint8)
    return counts


def olh_count_buckets(case, users=1 << 14):
    """Hash every value for a block of users, which stays in the cache: one addition, bucket, comparison."""
    counts, g, half = np.zeros(case.d, np.int64), np.uint64(case.randomizer.n_buckets), np.uint64(32)
    for s in range(0, case.n, users):
        a, h, y = np.ascontiguousarray(case.reports[s : s + users].T)
        y = y.astype(np.uint64)
        bucket, same = np.empty(len(a), np.uint64), np.empty(len(a), bool)
        for v in range(case.d):
            np.multiply(h, g, out=bucket)
            np.right_shift(bucket, half, out=bucket)
            np.equal(bucket, y, out=same)
            counts[v] += np.count_nonzero(same)
            np.add(h, a, out=h)
    return counts


def olh_count_intervals(case, users=1 << 14):
    """A bucket is an interval of hashes: one addition and one comparison, all on 32 bits."""
    counts, g = np.zeros(case.d, np.int64), case.randomizer.n_buckets
    edges = np.array([-(-(y << 32) // g) for y in range(g + 1)], np.uint64)
    for s in range(0, case.n, users):
        a, b, y = np.ascontiguousarray(case.reports[s : s + users].T)
        h, width = b - edges[y].astype(np.uint32), (edges[y + 1] - edges[y]).astype(np.uint32)
        inside = np.empty(len(a), bool)
        for v in range(case.d):
            np.less(h, width, out=inside)
            counts[v] += np.count_nonzero(inside)
            np.add(h, a, out=h)
    return counts


#: What is timed of a mechanism, and how far the machine could go: limit and work of a case.
VERBS = {
    "privatize": (Case.privatize, "keystream", lambda case: 8 * case.randomizer.n_words * case.n),
    "aggregate": (Case.aggregate, "memory", lambda case: case.reports.nbytes),
    "privatize + aggregate": (Case.collect, "keystream", lambda case: 8 * case.randomizer.n_words * case.n),
    "fit": (Case.fit, "keystream", lambda case: 8 * case.randomizer.n_words * case.n),
}
#: How much sooner a server of PGR has its estimates than one of OLH.
PGR_TARGET = 20
#: How much sooner bits are drawn; tables of bytes are looked up in vectors of 512 bits, or a byte at a time.
UNARY_TARGET = 25 if build.VECTOR_BITS >= 512 else 14
#: Where aggregating is more than reading: operations for each user and value (an addition, a comparison, a count).
LANE_OPERATIONS = {"OLHFrequencyEstimator": 3, "BLHFrequencyEstimator": 3}
#: Seconds that are aimed at besides, of a million users and 1,024 values on the machine of the records.
GOALS = {("OLHFrequencyEstimator", "aggregate"): 0.04}
_OURS_IN_NUMPY = "our algorithm in NumPy"
#: (class, verb) -> target, baselines by name. They are written for d = 1024.
PEERS = {
    ("GRRFrequencyEstimator", "privatize + aggregate"): (
        1.5,
        {"NumPy, float32 a user": grr_collect, "NumPy, one word a user": grr_collect_words},
    ),
    ("GRRFrequencyEstimator", "fit"): (2, {"NumPy, float32 a user": grr_collect}),
    ("OUEFrequencyEstimator", "privatize"): (
        UNARY_TARGET, {"NumPy, float32 a bit": oue_privatize_floats, _OURS_IN_NUMPY: oue_privatize_bytes}
    ),
    ("SUEFrequencyEstimator", "privatize"): (UNARY_TARGET, {"NumPy, float32 a bit": oue_privatize_floats}),
    ("SUEFrequencyEstimator", "aggregate"): (10, {"NumPy, unpackbits + sum": oue_count_wide}),
    ("OUEFrequencyEstimator", "aggregate"): (
        10, {"NumPy, unpackbits + sum": oue_count_wide, "NumPy, the same in bytes": oue_count_bytes}
    ),
    ("OLHFrequencyEstimator", "aggregate"): (
        25 if build.VECTOR_BITS >= 256 else 8,
        {"NumPy, hash + bucket": olh_count_buckets, _OURS_IN_NUMPY: olh_count_intervals},
    ),
}


# ---------------------------------------------------------------- rows


def rows(settings):
    """Yield the rows of every mechanism."""
    if settings.short:
        for name, cls in mechanisms():
            for verb in (verb for known, verb in PEERS if known == cls.__name__):
                yield from _verb_rows(settings, name, case_of(cls, settings.n, DOMAINS[0]), verb)
        return
    for name, cls in mechanisms():
        for d in DOMAINS:
            try:
                case = case_of(cls, settings.n, d)
            except ValueError:  # a mechanism for fewer values
                continue
            for verb in VERBS:
                if verb != "privatize + aggregate" or (cls.__name__, verb) in PEERS:
                    yield from _verb_rows(settings, name, case, verb)
            yield from _latency_rows(settings, name, cls, d)
    for epsilon in (1.0, 2.0, 4.0):
        yield _decoding_row(settings, epsilon)


def _decoding_row(settings, epsilon, d=1024):
    """From reports to estimates: PGR beside local hashing, which has about the same error and asks for every value."""
    X, contestants, spread = np.random.default_rng(0).integers(0, d, (settings.n, 1)), {}, {}
    for name, cls in (("ours", PGRFrequencyEstimator), ("OLH", OLHFrequencyEstimator)):
        est = cls(epsilon, categories=[np.arange(d)])
        reports = est.privatize(X)
        contestants[name] = lambda est=est, reports=reports: est.aggregate(reports).frequencies_
        spread[name] = est.fit(X[:1]).randomizers_[0].variance(1, 1 / d)
    times, _, repeats = interleave(contestants)
    row = Row(f"PGR aggregate and estimate, epsilon = {epsilon:g}, {settings.n:,} x {d}", ours=times["ours"],
              peer="OLH of this package", baseline=times["OLH"], ratio=times["OLH"] / times["ours"], repeats=repeats,
              note=f"{spread['ours'] / spread['OLH']:.3f} of its variance")
    return row.judge(settings, PGR_TARGET)


def _verb_rows(settings, name, case, verb):
    function, bound, work = VERBS[verb]
    key = (case.cls.__name__, verb)
    if verb in ("aggregate", "fit") and case.cls.__name__ in LANE_OPERATIONS:
        bound, work = "vector", lambda case: LANE_OPERATIONS[case.cls.__name__] * case.n * case.d
    target, peers = PEERS.get(key, (None, {})) if case.d == 1024 else (None, {})
    amount = work(case)  # makes the reports, where they are what is timed
    contestants = {"ours": lambda: function(case), "limit": limit(bound)}
    contestants.update({peer: lambda baseline=baseline: baseline(case) for peer, baseline in peers.items()})
    times, results, repeats = interleave(contestants)
    if verb == "privatize":
        case.check(case.counts(results["ours"]), f"{name} privatize")
    for peer in peers:
        if verb == "aggregate":
            if not np.array_equal(results[peer], case.counts(case.reports)):
                raise RuntimeError(f"{peer} ({name} {verb}) counts something else")
        else:
            counts = case.counts(results[peer]) if verb == "privatize" else results[peer]
            case.check(counts, f"{peer} ({name} {verb})")
    ours = times["ours"]
    common = dict(ours=ours, limit=bound, share=share(bound, times["limit"], amount, ours), repeats=repeats)
    if key in GOALS and (case.n, case.d) == (1_000_000, 1024):
        common["note"] = f"goal {show(GOALS[key], 's')}"
    text = f"{name} {verb}, {case.n:,} x {case.d}"
    for peer in peers:
        row = Row(text, peer=peer, baseline=times[peer], ratio=times[peer] / ours, **common)
        # transcribing our algorithm into NumPy is not what a NumPy user writes: shown, not judged
        yield row if peer == _OURS_IN_NUMPY else row.judge(settings, target)
    if not peers:
        yield Row(text, **common)


def _latency_rows(settings, name, cls, d):
    client, server = estimator(cls, d), estimator(cls, d).fit(np.arange(d)[:, None])
    text = f"{name} privatize one record, d = {d}"
    yield from latency_rows(settings, text, client, server, np.array([[d // 2]]), server.randomizers_[0])
