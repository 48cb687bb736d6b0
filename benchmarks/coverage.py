"""``python -m benchmarks.coverage``: which share of intervals of nominally 95 % holds the truth.

Every estimator of the registry that states an interval or a standard error has an entry here, or is said to have none:
a test demands it. Twelve shapes of data, three epsilons; a cell is the share of all intervals of all repetitions.
``--write`` writes a page of the documentation. Cells are kept in a file, by what they are made of and by the version
of the code.
"""

import argparse
import functools
import hashlib
import json
import platform
import time
import warnings
import zlib
from pathlib import Path

import numpy as np

import dpestim
from dpestim import linear_model, local, shuffle, statistics
from dpestim.base import all_estimators
from dpestim.covariance import DPCovariance
from dpestim.local.categories.estimator import FrequencyEstimator

ROOT = Path(__file__).parents[1]
EPSILONS = (0.1, 1.0, 4.0)
#: A cell outside this is named, with the reason.
ALLOWED = (0.92, 0.99)
#: An estimator of which more than this hold, over all cells, is named too: single cells are too few to tell.
CAUTIOUS = 0.98
N, FEW = 2000, 60
#: What a cell may take beyond the repetitions that are asked for.
SECONDS = 0.3


def _clip(x):
    return np.clip(x, 0.0, 1.0)


#: name -> numbers in [0, 1] of so many rows.
SHAPES = {
    "uniform": lambda r, n: r.uniform(0, 1, n),
    "normal": lambda r, n: _clip(r.normal(0.5, 0.15, n)),
    "heavy tails": lambda r, n: _clip(0.5 + 0.05 * r.standard_t(2, n)),
    "lognormal": lambda r, n: _clip(r.lognormal(-3, 1, n)),
    "heaped": lambda r, n: np.round(_clip(r.normal(0.5, 0.2, n)) * 20) / 20,
    "zero-inflated": lambda r, n: np.where(r.random(n) < 0.9, 0.0, _clip(r.exponential(0.3, n))),
    "point mass": lambda r, n: np.where(r.random(n) < 0.6, 0.337, r.uniform(0, 1, n)),
    "two humps": lambda r, n: _clip(np.where(r.random(n) < 0.5, r.normal(0.25, 0.05, n), r.normal(0.75, 0.05, n))),
    "rare value": lambda r, n: np.where(r.random(n) < 0.01, 0.9, 0.1),
    "one value": lambda r, n: np.full(n, 0.5),
    "few rows": lambda r, n: _clip(r.normal(0.5, 0.15, FEW)),
    "collinear": lambda r, n: _clip(r.normal(0.5, 0.15, n)),  # (of several columns; else as "normal")
}


def _inside(ends, truth):
    """Return for each number whether its interval holds it."""
    low, high = (np.asarray(end, float).reshape(-1) for end in ends)
    return (low <= np.reshape(truth, -1)) & (np.reshape(truth, -1) <= high)


@functools.cache
def _population(shape):
    return SHAPES[shape](np.random.default_rng(10**6), 400_000)


def _frequencies(cls, x, epsilon, seed, shape):
    params = {**cls._test_params()[0], "random_state": seed}
    if "epsilon" in cls._get_param_names():
        params["epsilon"] = epsilon
    if "epsilons" in params:  # (one for each value)
        params["epsilons"] = [[epsilon * e for e in params["epsilons"][0]]]
    if "delta" in params:
        params.update(delta=1e-6, n_users=len(x))
    values = list(params["categories"][0])
    params["categories"] = [values]
    codes = np.minimum((x * len(values)).astype(int), len(values) - 1)
    rows = np.empty((len(x), 1), object)
    rows[:, 0] = [values[code] for code in codes]
    found = cls(**params).fit(rows).confidence_interval(0.95)[0]
    return _inside(np.asarray(found).T, np.bincount(codes, minlength=len(values)) / len(x))


def _mean(cls, x, epsilon, seed, shape):
    est = cls(local.PMTransformer(epsilon, bounds=(0, 1), random_state=seed)).fit(x[:, None])
    return _inside(est.confidence_interval(0.95).T, np.mean(_population(shape)))


def _bins(cls, x, epsilon, seed, shape):
    est = cls(local.PMTransformer(epsilon, bounds=(0, 1), random_state=seed)).fit(x[:, None])
    found = est.confidence_interval(0.95)[0]
    edges = np.linspace(0, 1, len(found) + 1)
    return _inside(found.T, np.histogram(x, edges)[0] / len(x))


def _distribution_quantiles(cls, x, epsilon, seed, shape):
    est = cls(local.PMTransformer(epsilon, bounds=(0, 1), random_state=seed)).fit(x[:, None])
    q = [0.25, 0.5, 0.9]
    return _inside(np.reshape(est.quantile_interval(q, 0.95), (3, -1, 2))[:, 0].T,
                   np.quantile(x, q, method="inverted_cdf"))


def _mixed(cls, x, epsilon, seed, shape):
    codes = np.minimum((x * 3).astype(int), 2)
    est = cls([("kind", local.GRRFrequencyEstimator(categories=[[0, 1, 2]]), [0]),
               ("size", local.PMTransformer(bounds=(0, 1)), [1])], epsilon=epsilon, random_state=seed)
    kind, size = est.fit(np.c_[codes, x]).confidence_interval(0.95).values()
    return np.r_[_inside(np.asarray(kind).T, np.bincount(codes, minlength=3) / len(x)),
                 _inside(np.reshape(size, (2, 1)), np.mean(x))]


def _sum(cls, x, epsilon, seed, shape):
    params = {"delta": 1e-6, "n_users": len(x), "random_state": seed}
    if cls is shuffle.BooleanSum:
        rows = x[:, None] > 0.5
    else:
        rows, params["bounds"] = x[:, None], (0.0, 1.0)
    found = cls(epsilon, **params).fit(rows).confidence_interval(0.95)
    return _inside(found.T, rows.sum())


def _shuffled(cls, x, epsilon, seed, shape):
    codes = np.minimum((x * 4).astype(int), 3)
    inner = local.GRRFrequencyEstimator(categories=[[0, 1, 2, 3]], random_state=seed)
    found = cls(inner, epsilon, delta=1e-6).fit(codes[:, None]).confidence_interval(0.95)[0]
    return _inside(np.asarray(found).T, np.bincount(codes, minlength=4) / len(x))


def _found(method, cls, x, epsilon, seed, shape):
    """Intervals of values that were found among 1,024, for the shares of the population, by ten times as many users."""
    x = x if len(x) < N else SHAPES[shape](np.random.default_rng([6, seed]), 10 * N)
    est = cls(epsilon, n_bits=10, method=method, n_top=5, n_users=len(x), random_state=seed)
    found = est.fit((x[:, None] * 1023).astype(int))
    values, shares = np.unique((_population(shape) * 1023).astype(int), return_counts=True)
    truth = dict(zip(values.tolist(), shares / shares.sum()))
    return _inside(found.confidence_interval(0.95).T, [truth.get(v, 0.0) for v in found.heavy_hitters_.values.tolist()])


#: How likely a user with the number 1 holds each of twelve items; with x it is x times as likely.
_HELD = 1 / np.sqrt(np.arange(1, 13))


def _itemsets(cls, x, epsilon, seed, shape, method="svim", n_top=12):
    held = np.random.default_rng([6, seed]).random((len(x), 12)) < x[:, None] * _HELD
    est = cls(epsilon, method=method, n_top=n_top, random_state=seed).fit(held)
    sets, many = est.itemsets_.values, _population(shape)
    truth = [np.mean(many ** len(own)) * np.prod(_HELD[list(own)]) for own in sets]
    return _inside(est.confidence_interval(0.95).T, truth)


#: name of a statistic -> (parameters, the truth of a column): they have no other interval than `result_.interval`.
STATISTICS = {
    "Count": ({}, lambda x: np.sum(x > 0.5)),
    "Sum": ({"bounds": (0, 1)}, np.sum),
    "Mean": ({"bounds": (0, 1)}, np.mean),
    "Variance": ({"bounds": (0, 1)}, np.var),
    "StandardDeviation": ({"bounds": (0, 1)}, np.std),
    "Covariance": ({"bounds": (0, 1)}, None),
    "Correlation": ({"bounds": (0, 1)}, None),
    "Histogram": ({"bins": 4, "bounds": (0, 1)}, lambda x: np.histogram(x, 4, (0, 1))[0]),
    "ContingencyTable": ({"categories": [[0, 1, 2, 3]]}, None),
    "Quantile": ({"q": [0.25, 0.5, 0.9], "bounds": (0, 1), "level": 0.95},
                 lambda x: np.quantile(x, [0.25, 0.5, 0.9], method="inverted_cdf")),
}


def _statistic(cls, x, epsilon, seed, shape):
    params, truth = STATISTICS[cls.__name__]
    est = cls(epsilon, random_state=seed, **params)
    if cls.__name__ in ("Covariance", "Correlation"):
        rows = np.c_[x, _beside(x, shape, seed)]
        exact = np.cov(rows, rowvar=False, bias=True)
        if cls.__name__ == "Correlation":
            with np.errstate(invalid="ignore", divide="ignore"):
                exact = exact / np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        some = np.triu_indices(2, 1 if cls.__name__ == "Correlation" else 0)
        low, high = est.fit(rows).result_.interval(0.95)
        held = _inside((low[some], high[some]), exact[some])
        return held[np.isfinite(exact[some])]
    if cls.__name__ == "ContingencyTable":
        codes = np.minimum((x * 4).astype(int), 3)
        return _inside(est.fit(codes[:, None]).result_.interval(0.95), np.bincount(codes, minlength=4))
    rows = x > 0.5 if cls.__name__ == "Count" else x
    return _inside(est.fit(rows).result_.interval(0.95), truth(x))


def _beside(x, shape, seed):
    rng = np.random.default_rng([7, seed])
    other = SHAPES[shape](rng, len(x))[: len(x)]
    return 0.9 * x + 0.1 * other if shape == "collinear" else other


#: Coefficients that linear models are to find; residuals are of the size of the first.
_W = np.array([0.5, -0.25, 0.0])


def _table(x, shape, seed):
    X = np.c_[x, _beside(x, shape, seed), np.random.default_rng([8, seed]).uniform(0, 1, len(x))]
    return X, X @ _W + np.random.default_rng([9, seed]).normal(0, 0.1, len(x))


def _coefficients(cls, x, epsilon, seed, shape):
    X, y = _table(x, shape, seed)
    alpha = 0.0
    params = {"bounds": (0, 1), "target_bounds": (-0.6, 0.9), "delta": 1e-5, "random_state": seed}
    if cls is linear_model.DPRidge:
        params["alpha"] = alpha = 0.01 * len(x)
    fit = cls(epsilon, **params).fit(X, y)
    big, _ = _table(_population(shape), shape, 10**6)
    C = np.cov(big, rowvar=False) * len(x)
    truth = np.linalg.lstsq(C + alpha * np.eye(3), C @ _W, rcond=None)[0]
    return _inside(fit.confidence_interval(0.95).T, truth)[fit.identified_]


def _entries(cls, x, epsilon, seed, shape):
    X, _ = _table(x, shape, seed)
    ends = cls(epsilon, bounds=(0, 1), random_state=seed).fit(X).confidence_interval(0.95)
    some = np.triu_indices(3)
    return _inside((ends[..., 0][some], ends[..., 1][some]), np.cov(X, rowvar=False, bias=True)[some])


def _codes(x, shape, seed):
    """Return three columns: four bins, whether a number is large (mostly rare), three bins of another column."""
    return np.c_[np.minimum((x * 4).astype(int), 3), x > 0.8, np.minimum((_beside(x, shape, seed) * 3).astype(int), 2)]


_SIZES = (4, 2, 3)


def _attributes(cls, x, epsilon, seed, shape, **more):
    X = _codes(x, shape, seed)
    ends = cls(epsilon, categories=[range(k) for k in _SIZES], random_state=seed, **more).fit(X).confidence_interval()
    truth = [np.bincount(X[:, j], minlength=k) / len(X) for j, k in enumerate(_SIZES)]
    held = np.concatenate([_inside(own.T, f) for own, f in zip(ends, truth)])
    return held[np.isfinite(np.concatenate(ends)[:, 0])]


def _marginals(cls, x, epsilon, seed, shape, **more):
    X, held = _codes(x, shape, seed), []
    est = cls(epsilon, categories=[range(k) for k in _SIZES], random_state=seed, **more).fit(X)
    for own in ([0], [1], [0, 1], [0, 2], [1, 2]):
        truth = np.zeros([_SIZES[j] for j in own])
        np.add.at(truth, tuple(X[:, j] for j in own), 1 / len(X))
        ends = est.confidence_interval(own).reshape(-1, 2)
        held.append(_inside(ends.T, truth)[np.isfinite(ends[:, 0])])
    return np.concatenate(held)


def _ranges(method, cls, x, epsilon, seed, shape):
    est = cls(epsilon, bounds=([0.0], [1.0]), n_bins=32, method=method, random_state=seed).fit(x[:, None])
    edges = [(0, 1 / 4), (1 / 4, 5 / 8), (5 / 8, 1), (5 / 16, 11 / 32)]
    truth = [((x >= low) & ((x < high) | (high == 1))).mean() for low, high in edges]
    return _inside(np.transpose([est.confidence_interval(*own) for own in edges]), truth)


def _range_quantiles(cls, x, epsilon, seed, shape):
    est = cls(epsilon, bounds=([0.0], [1.0]), n_bins=32, random_state=seed).fit(x[:, None])
    q = [0.25, 0.5, 0.9]
    # (values are spread evenly within bins)
    below = np.append(0, np.cumsum(np.histogram(x, 32, (0, 1))[0])) / len(x)
    return _inside(est.quantile_interval(q)[:, 0].T, np.interp(q, below, np.linspace(0, 1, 33)))


def _rectangles(method, cls, x, epsilon, seed, shape):
    X = np.column_stack([x, _clip(_beside(x, shape, seed))])
    est = cls(epsilon, bounds=(0, 1), n_bins=32, method=method, n_users=len(x), random_state=seed).fit(X)
    held = []
    for a, b, c, d in ((0, 1, 0, 1), (0, 1, 0, -1), (1, -1, 1, -1)):  # (edges of cells)
        (low, high), (first, last) = est.cell_edges_[0][[a, b]] / 32, est.cell_edges_[1][[c, d]] / 32
        start, stop = np.array([low, first]), np.array([high, last])
        inside = (start <= X) & ((stop > X) | (stop == 1))
        held.append(_inside(est.confidence_interval((low, high), (first, last)), inside.all(axis=1).mean()))
    return np.concatenate(held)


#: class -> (name beside the class's, what returns for each interval whether it holds): what is not of a family.
ENTRIES = {
    local.MeanEstimator: [("means", _mean)],
    local.DistributionEstimator: [("bins", _bins), ("quantiles", _distribution_quantiles)],
    local.MixedEstimator: [("", _mixed)],
    local.RangeEstimator: [*((method, functools.partial(_ranges, method)) for method in (
        "hierarchy", "haar", "hio", "square_wave")), ("quantiles", _range_quantiles)],
    local.RectangleEstimator: [(method, functools.partial(_rectangles, method)) for method in (
        "uniform", "hdg", "adaptive")],
    local.HeavyHitterEstimator: [(method, functools.partial(_found, method))
                                 for method in ("pem", "treehist", "bitstogram", "sfp")],
    local.ItemsetEstimator: [("items", _itemsets), ("itemsets that are shown", functools.partial(
        _itemsets, method="svsm", n_top=8))],
    shuffle.BooleanSum: [("", _sum)],
    shuffle.RealSum: [("", _sum)],
    shuffle.ShuffledHistogram: [("", _frequencies)],
    shuffle.ShuffledEstimator: [("of GRR", _shuffled)],
    linear_model.DPLinearRegression: [("identified coefficients", _coefficients)],
    linear_model.DPRidge: [("identified coefficients", _coefficients)],
    DPCovariance: [("", _entries)],
    local.MultiAttributeFrequencyEstimator: [("smp", _attributes), (
        "rsfd", functools.partial(_attributes, strategy="rsfd", neighbours="attribute"))],
    local.MarginalEstimator: [(method, functools.partial(_marginals, method=method)) for method in (
        "pairs", "full", "fourier")],
    **{getattr(statistics, name): [("", _statistic)] for name in STATISTICS},
}
#: Which have none here, and why.
ELSEWHERE = {
    "PersonalizedEstimator": "groups are those of the wrapped estimator; tests/unit/local/test_personalized.py",
    "PCKVEstimator": "pairs; tests/unit/local/test_keyvalue.py",
    "PrivKVEstimator": "pairs; tests/unit/local/test_keyvalue.py",
    "PrivKVMEstimator": "pairs; tests/unit/local/test_keyvalue.py",
    "RangeCounts": "ranges; tests/unit/statistics/test_ranges_of_counts.py",
    "ClusteringCoefficientEstimator": "ratios of counts of one graph; benchmarks/list_patterns.py",
    "KStarEstimator": "counts of one graph; benchmarks/list_patterns.py",
    "ModularityEstimator": "one graph; benchmarks/list_patterns.py",
    "TriangleEstimator": "counts of one graph; benchmarks/list_patterns.py",
    "DegreeEstimator": "degrees of one graph; tests/unit/graph/test_lists.py",
    "EdgeCountEstimator": "counts of one graph; tests/unit/graph/test_lists.py",
    "ControlFlowCoverage": "bands of all blocks; tests/unit/graph/test_coverage_of_runs.py",
    "CutEstimator": "cuts of one graph; tests/unit/graph/test_graph_answers.py",
    "DegreeDistribution": "bands of one graph; tests/unit/graph/test_graph_answers.py",
    "GraphSpectrum": "bands of one graph; tests/unit/graph/test_graph_answers.py",
    "PageRankEstimator": "degrees of one graph; tests/unit/graph/test_pagerank.py",
    "SpatialDensity": "rectangles of cells; tests/unit/geo/test_density.py",
    "LDPartEstimator": "says that it has no intervals; tests/unit/geo/test_density.py",
    "ContinualHistogram": "totals at every step; tests/unit/stream/test_counter.py",
    "HaarRelease": "cells of every step; tests/unit/stream/test_stream_rows.py",
    "StreamCounter": "totals at every step; tests/unit/stream/test_counter.py",
    "SVTRelease": "none: how far rows went since the last release is private",
    "WEventRelease": "none: how far rows went since the last release is private",
    "SubgraphCount": "counts of one graph; tests/unit/graph/test_graphs.py",
    "NodeDegreeDistribution": "one-sided, of one graph; tests/unit/graph/test_nodes.py",
    "NodeSubgraphCount": "one-sided, of one graph; tests/unit/graph/test_nodes.py",
    "TmFGenerator": "the number of edges; tests/unit/graph/test_tmf.py",
    "UnknownCategories": "what is not released has no interval; tests/unit/statistics/test_statistics_tables.py",
    "DPGradientBoostingClassifier": "bands of curves; table in boosting.md",
    "DPGradientBoostingRegressor": "bands of curves; table in boosting.md",
}
#: Why cells are outside: by the start of a row's name, below and above.
REASONS = {
    "DistributionEstimator, bins": ("values that many users share lie within a bin that is told apart from its "
                                    "neighbours by the smoothness of the rest alone",
                                    "intervals of up to 8 bins hold for any distribution"),
    "DistributionEstimator, quantiles": ("the chi-square is approximate", "intervals hold for any distribution"),
    "RangeEstimator, square_wave": ("the chi-square is approximate", "intervals hold for any distribution"),
    "RangeEstimator, quantiles": ("few reports", "all places are held that the cumulative share allows"),
    "MeanEstimator": ("few reports of a discrete law", "errors cover the drawing of the users, and few reports count "
                      "at least the noise of the law"),
    "MarginalEstimator, fourier": ("", "parities of columns that hardly vary count as less sure than they are"),
    "Covariance": ("", "holds for any data and any number of entries"),
    "Correlation": ("", "ends follow from those of three covariances, each of which holds"),
    "Quantile": ("", "values that many share: an end that is off by a step holds too"),
    "": ("normal quantiles, where few reports or few rows decide", "at least its level: integers, or noise that "
         "exceeds what is counted"),
}


def entries():
    """Return [(name, class, function)] of the registry: what states an interval, however it came to be there."""
    found = []
    for _, cls in all_estimators():
        if cls in ENTRIES:
            found += [(f"{cls.__name__}{', ' * bool(of)}{of}", cls, function) for of, function in ENTRIES[cls]]
        elif issubclass(cls, FrequencyEstimator):
            found.append((cls.__name__, cls, _frequencies))
    return found


def cell(cls, function, shape, epsilon, repetitions, seconds=SECONDS):
    """Return (share of intervals that hold, standard error of that); None for the share where there were none.

    Ten times as many repetitions as asked for, if that takes so many seconds at most.
    """
    held, start = [], time.process_time()
    for k in range(10 * repetitions):
        if k >= repetitions and time.process_time() - start > seconds:
            break
        seed = zlib.crc32(f"{cls.__name__} {shape} {epsilon} {k}".encode())
        x = SHAPES[shape](np.random.default_rng([seed, 5]), N)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                held.append(function(cls, x, epsilon, seed, shape))
            except ValueError:  # (no interval can be had)
                continue
    means = np.array([one.mean() for one in held if len(one)])
    if not len(means):
        return None, 0.0
    # (numbers of one repetition may have their errors in common)
    error = max(float(means.std()), (0.95 * 0.05 / np.mean([len(one) for one in held if len(one)])) ** 0.5)
    return round(float(np.concatenate(held).mean()), 4), round(error / len(means) ** 0.5, 4)


def is_outside(share, error):
    """Return -1 or 1 where a share is below or above what is allowed, and chance does not explain it; else 0."""
    if share is None:
        return 0
    return -1 if share + 2 * error < ALLOWED[0] else 1 if share - error > ALLOWED[1] else 0


@functools.cache
def version_of_code():
    """Return a hash of all that a cell depends on."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "dpestim").rglob("*.py*")):
        if path.suffix in (".py", ".pyx"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Kept:
    """Cells in a file, by what they are made of."""

    def __init__(self, path):
        self.path, self.cells = path, {}
        if path is not None and path.exists():
            self.cells = json.loads(path.read_text())

    def of(self, key, make):
        """Return what is kept under a key, or what `make` returns."""
        key = f"{version_of_code()} {key}"
        if key not in self.cells:
            self.cells[key] = make()
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.write_text(json.dumps(self.cells))
        return self.cells[key]


def measured(repetitions, kept, names=None):
    """Yield (name, epsilon, {shape: (share, number)})."""
    for name, cls, function in entries():
        if names and not any(one in name for one in names):
            continue
        for epsilon in EPSILONS:
            cells = {}
            for shape in SHAPES:
                made_of = cls, function, shape, epsilon, repetitions
                cells[shape] = kept.of(f"{name} {shape} {epsilon} {repetitions}", lambda of=made_of: cell(*of))
            yield name, epsilon, cells


def page(rows, repetitions, seconds):
    """Return the text of the documentation's page."""
    lines = [
        "# What intervals cover", "",
        "Written by `python -m benchmarks.coverage --write`. A cell is the share of intervals of nominally 95 % that "
        "hold the truth: that of the rows at hand, or of their population where an interval says so (means of the "
        f"local model, linear models). {N:,} rows ({FEW} in \"few rows\"), {repetitions} to {10 * repetitions} "
        "repetitions, as time allows, each with rows and noise of its own; all numbers of an estimator together. Delta "
        "is 1e-6 in the shuffle model and 1e-5 in linear models. A dash: no interval can be had, or no coefficient is "
        f"identified. dpestim {dpestim.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"{platform.machine()}, {seconds:,.0f} s of one core.", "",
        f"Bold: below {ALLOWED[0]} by more than two standard errors of what was measured, or above {ALLOWED[1]} by "
        "one. Other cells that differ from .95 differ by chance, as far as these repetitions tell.", "",
        "| intervals of | epsilon | " + " | ".join(SHAPES) + " |",
        "|---|---|" + "---|" * len(SHAPES),
    ]
    outside = {}
    for name, epsilon, cells in rows:
        texts = []
        for shape in SHAPES:
            side = is_outside(*cells[shape])
            text = "-" if cells[shape][0] is None else f"{cells[shape][0]:.2f}"
            texts.append(f"**{text}**" if side else text)
            if side:
                outside.setdefault(name, [[], []])[side > 0].append(f"{shape} at {epsilon:g}")
        lines.append(f"| {name} | {epsilon:g} | " + " | ".join(texts) + " |")
    shares = {}
    for name, _, cells in rows:
        shares.setdefault(name, []).extend(share for share, _ in cells.values() if share is not None)
    cautious = {name: float(np.mean(own)) for name, own in shares.items() if own and np.mean(own) > CAUTIOUS}
    lines += ["", "## Cells outside, and why", ""]
    for name, (low, high) in outside.items():
        below, above = next(reasons for start, reasons in REASONS.items() if name.startswith(start))
        parts = []
        if low:
            parts.append(f"below: {', '.join(low)} ({below or 'not explained'})")
        if high:
            parts.append(f"above: {len(high)} of {len(EPSILONS) * len(SHAPES)} cells ({above})")
        lines.append(f"* **{name}** {'; '.join(parts)}.")
    lines += ["", "## Wider than they had to be", "", f"More than {CAUTIOUS} of the intervals of all cells hold.", ""]
    lines += [f"* **{name}**: {share:.3f} "
              f"({next(reasons for start, reasons in REASONS.items() if name.startswith(start))[1]})."
              for name, share in cautious.items()]
    lines += ["", "## Intervals that are measured elsewhere", "",
              *(f"* `{name}`: {why}." for name, why in ELSEWHERE.items())]
    return "\n".join(lines) + "\n"


def main(arguments=None):
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=30, help="at least; ten times as many where it is quick")
    parser.add_argument("--only", nargs="*", help="parts of names")
    parser.add_argument("--write", action="store_true", help="write docs/coverage.md")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "coverage.json", help="where cells are kept")
    chosen = parser.parse_args(arguments)
    start, rows = time.process_time(), []
    for name, epsilon, cells in measured(chosen.repetitions, Kept(chosen.cache), chosen.only):
        rows.append((name, epsilon, cells))
        print(f"{name:40s} {epsilon:4g} " + " ".join("  - " if cells[s][0] is None else f"{cells[s][0]:.2f}"
                                                      for s in SHAPES), flush=True)
    text = page(rows, chosen.repetitions, time.process_time() - start)
    if chosen.write:
        (ROOT / "docs" / "coverage.md").write_text(text)
    return text


if __name__ == "__main__":
    main()
