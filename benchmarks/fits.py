"""Fitting private models and transformers, each beside the fastest way of its namesake without privacy; one thread."""

import itertools
import warnings
from functools import partial
from threading import Lock, Thread

import numpy as np
from scipy.sparse import csr_array
from sklearn import (
    cluster,
    covariance,
    decomposition,
    ensemble,
    feature_selection,
    impute,
    linear_model,
    naive_bayes,
    preprocessing,
    svm,
)
from threadpoolctl import threadpool_limits

from benchmarks._harness import Row, interleave, limit, share
from dpestim._core import boosting
from dpestim.cluster import DPKMeans
from dpestim.covariance import DPCovariance
from dpestim.decomposition import DPPCA
from dpestim.ensemble import DPGradientBoostingClassifier, DPGradientBoostingRegressor, curve
from dpestim.feature_selection import DPSelectKBest
from dpestim.linear_model import DPLinearRegression, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor, DPRidge
from dpestim.naive_bayes import DPCategoricalNB, DPGaussianNB
from dpestim.preprocessing import (
    DPKBinsDiscretizer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPSimpleImputer,
    DPStandardScaler,
)

COLUMNS = 20
CATEGORIES = 10
#: What the ratio should be at least; 0.9 where nothing else is said.
TARGETS = {"DPMinMaxScaler": 1.2, "DPPCA": 1.0, "DPPoissonRegressor": 1.2, "DPKBinsDiscretizer": 1.0}
#: What is fitted to few rows, too, where what does not grow with them is most of the time.
FEW = ("DPPoissonRegressor", "DPKBinsDiscretizer")


def contests():
    """Return (ours, solvers of the namesake, rows, targets); names of rows and targets are those of `data`."""
    box, norm = {"bounds": (-5.0, 5.0)}, {"data_norm": 8.0}
    classes, numbers = {"classes": [False, True]}, {"target_bounds": (-20.0, 20.0)}
    codes = {"categories": [list(range(CATEGORIES))] * COLUMNS}
    approximate = {"delta": 1e-6}
    return [
        (DPLogisticRegression(**norm, **classes),
         [linear_model.LogisticRegression(solver=name) for name in ("newton-cholesky", "lbfgs")], "X", "classes"),
        (DPLinearSVC(**norm, **classes), [svm.LinearSVC(dual=False)], "X", "classes"),
        (DPPoissonRegressor(**norm, max_target=20.0),
         [linear_model.PoissonRegressor(solver=name) for name in ("newton-cholesky", "lbfgs")], "X", "counts"),
        (DPLinearRegression(**box, **numbers, **approximate), [linear_model.LinearRegression(), linear_model.Ridge(
            1e-6, solver="cholesky")], "X", "numbers"),
        (DPRidge(**box, **numbers, **approximate), [linear_model.Ridge(solver="cholesky")], "X", "numbers"),
        (DPGaussianNB(**box, **classes), [naive_bayes.GaussianNB()], "X", "classes"),
        (DPCategoricalNB(**codes, **classes),
         [naive_bayes.CategoricalNB(min_categories=CATEGORIES)], "codes", "classes"),
        (DPGradientBoostingClassifier(**box, **classes, **approximate),
         [ensemble.HistGradientBoostingClassifier()], "X", "classes"),
        (DPGradientBoostingRegressor(**box, **numbers, **approximate),
         [ensemble.HistGradientBoostingRegressor()], "X", "numbers"),
        (DPCovariance(**box, **approximate), [covariance.EmpiricalCovariance()], "X", None),
        (DPPCA(**box, **approximate), [decomposition.PCA(svd_solver=name) for name in ("covariance_eigh", "full")], "X",
         None),
        (DPPCA(**box, **approximate, n_components=5), [decomposition.PCA(5, svd_solver="covariance_eigh")], "X", None),
        (DPStandardScaler(**box), [preprocessing.StandardScaler()], "X", None),
        (DPMinMaxScaler(**box), [preprocessing.MinMaxScaler()], "X", None),
        (DPMinMaxScaler(**box, quantiles=None), [preprocessing.MinMaxScaler()], "X", None),
        (DPSimpleImputer(**box), [impute.SimpleImputer()], "X", None),
        (DPQuantileTransformer(**box), [preprocessing.QuantileTransformer(n_quantiles=100)], "X", None),
        (DPKBinsDiscretizer(**box), [preprocessing.KBinsDiscretizer(encode="onehot-dense", **_averaged())], "X", None),
        (DPOneHotEncoder(**codes), [preprocessing.OneHotEncoder(**codes, sparse_output=False)], "codes", None),
        (DPKMeans(**box), [cluster.KMeans(random_state=0)], "X", None),
        (DPSelectKBest(10, **box, **classes), [feature_selection.SelectKBest(k=10)], "X", "classes"),
    ]


def _averaged():
    """Return the argument that newer releases of scikit-learn ask for."""
    parameters = preprocessing.KBinsDiscretizer().get_params()
    return {"quantile_method": "averaged_inverted_cdf"} if "quantile_method" in parameters else {}


def data(n):
    """Return rows and targets by name."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((n, COLUMNS)), rng.standard_normal(COLUMNS)
    margins = X @ w
    return {"X": X, "codes": rng.integers(0, CATEGORIES, (n, COLUMNS)), None: None, "numbers": margins
            + rng.standard_normal(n), "classes": margins > rng.logistic(size=n),
            "counts": np.minimum(rng.poisson(np.exp(margins / 4)), 20).astype(float)}


def work(model, X, y):
    """Return a function that fits, and transforms where the model does."""
    call = model.fit_transform if hasattr(model, "transform") else model.fit

    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where a baseline gives up
            return call(X, y)

    return run


def rows(settings):
    """Yield a row for each estimator and number of rows."""
    for n in (settings.n // 10, *(() if settings.short else (settings.n,))):
        table = data(n)
        for contest in contests():
            yield contested(settings, table, *contest)
    if settings.short:
        return
    few = data(settings.n // 500)
    for contest in contests():
        if type(contest[0]).__name__ in FEW:
            yield contested(settings, few, *contest)
    yield from predictions(settings, table)
    yield from sparse_predictions(settings)
    yield boosting_by_threads(settings)


def contested(settings, table, ours, theirs, X, y):
    """Return the row of one of ours beside the fastest of theirs; the limit is the `least` that any design does.

    Transformers are timed with their output: `fit_transform`.
    """
    (limit_name, least_work) = least(ours, table[X])
    runs = {str(peer): work(peer, table[X], table[y]) for peer in theirs}
    contestants = {"ours": work(ours, table[X], table[y]), **runs, "least": least_work}
    with threadpool_limits(1):  # (around all: to look for the libraries takes longer than some fits)
        times, _, repeats = interleave(contestants, slow=2.0)
    fastest = min(runs, key=times.get)
    return Row(
        f"{named(ours)}, {len(table[X]):,} x {COLUMNS}", times["ours"], peer=fastest.split("(")[0],
        baseline=times[fastest], ratio=times[fastest] / times["ours"], repeats=repeats, limit=limit_name,
        share=times["least"] / times["ours"],
    ).judge(settings, TARGETS.get(type(ours).__name__, 0.9))


def least(model, X):
    """Return (its name, a function) of what any design does: rows are read to be learned from, and mapped rows written.

    Of components also the products of columns, and of rows with components, by BLAS.
    """
    directions = np.eye(COLUMNS)[: getattr(model, "n_components", None)]
    if isinstance(model, DPPCA):
        return "least", lambda: (X.T @ X, X @ directions.T)
    if isinstance(model, DPMinMaxScaler):
        return "least", X.copy if model.quantiles is None else lambda: (X.sum(), X.copy())
    return "reads", X.sum


def named(model):
    """Return the name of a model, and what it is told besides, where there are two of them."""
    told = {"n_components": "5 components", "quantiles": "bounds alone"}
    parameters, defaults = model.get_params(), type(model)().get_params()
    return ", ".join([type(model).__name__, *(words for key, words in told.items()
                                              if parameters.get(key) != defaults.get(key))])


def predictions(settings, table):
    """Yield a row for each kind of prediction of a linear model, of clipped rows; the limit is to read them."""
    X, y = table["X"], table["classes"]
    ours = DPLogisticRegression(data_norm=8.0, classes=[False, True]).fit(X[:5000], y[:5000])
    peer = linear_model.LogisticRegression().fit(X[:5000], y[:5000])
    orders = {"": X, " in Fortran's order": np.asfortranarray(X), " of float32": X.astype(np.float32)}
    for name, kind in itertools.product(("decision_function", "predict", "predict_proba"), orders):
        rows = orders[kind]
        runs = {"ours": partial(getattr(ours, name), rows), "peer": partial(getattr(peer, name), rows)}
        with threadpool_limits(1):
            times, _, repeats = interleave({**runs, "read": limit("memory")})
        yield Row(
            f"logistic {name}, {len(X):,} x {COLUMNS}{kind}", times["ours"], peer="LogisticRegression",
            baseline=times["peer"], ratio=times["peer"] / times["ours"], limit="memory", repeats=repeats,
            share=share("memory", times["read"], rows.nbytes, times["ours"]),
        ).judge(settings, 1)


def sparse_predictions(settings):
    """Yield a row for each kind of prediction of sparse rows, one entry in a hundred; the limit is to read them."""
    rng, n = np.random.default_rng(0), settings.n
    index = rng.integers(0, 100, (n, 10), dtype=np.int32) + 100 * np.arange(10, dtype=np.int32)
    ends = np.arange(0, 10 * n + 1, 10, dtype=np.int32)
    X = csr_array((rng.standard_normal(10 * n), index.ravel(), ends), (n, 1000))
    few = X[:5000]
    y = np.arange(few.shape[0]) % 2 == 0
    ours = DPLogisticRegression(data_norm=5.0, classes=[False, True]).fit(few, y)
    peer = linear_model.LogisticRegression().fit(few, y)
    for name in ("decision_function", "predict", "predict_proba"):
        runs = {"ours": partial(getattr(ours, name), X), "peer": partial(getattr(peer, name), X)}
        with threadpool_limits(1):
            times, _, repeats = interleave({**runs, "read": limit("memory")})
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        yield Row(
            f"logistic {name}, {n:,} x 1,000, sparse, 1 %", times["ours"], peer="LogisticRegression",
            baseline=times["peer"], ratio=times["peer"] / times["ours"], limit="memory", repeats=repeats,
            share=share("memory", times["read"], size, times["ours"]),
        ).judge(settings, 1)


def boosting_by_threads(settings):
    """Return the row of two threads beside one, and about what the machine allows: passes and curves, in turn.

    Sums of a pass need scores that the curve before it moved, and the curve needs all sums of its pass: so curves are
    learned one after another, each by less arithmetic than a thread is worth waking for. The limit has the very passes
    and curves of a fit, each begun when the one before is over, and the other thread woken by a bare lock; of noise, of
    counts, of standard errors and of Python it has nothing. All else, rows that are read and coded, gains as much from
    two threads there as passes do where each thread keeps its own half of the rows and nobody waits. No proof: a thread
    that spins is woken sooner, other work may gain more, and gains differ from minute to minute.
    """
    table, steps = data(settings.n), []
    runs = {threads: work(
        DPGradientBoostingClassifier(bounds=(-5.0, 5.0), classes=[False, True], delta=1e-6, n_jobs=threads),
        table["X"], table["classes"]) for threads in (1, 2)}
    sum_residuals, learn = boosting.sum_residuals, curve.kernel.learn

    def passed(*args):
        steps.append((sum_residuals, args))
        sum_residuals(*args)

    def learned(*args):
        steps.append((learn, args))
        learn(*args)

    boosting.sum_residuals, curve.kernel.learn = passed, learned
    try:
        runs[1]()
    finally:
        boosting.sum_residuals, curve.kernel.learn = sum_residuals, learn
    alone = [step for step in steps if step[0] is sum_residuals][-40:]
    replays = {f"{name} {threads}": replay(own, threads, name == "turns")
               for name, own in (("passes", alone), ("turns", steps)) for threads in (1, 2)}
    with threadpool_limits(1):
        times, _, repeats = interleave({**runs, **replays}, slow=15.0)
    gain = times["passes 1"] / times["passes 2"]
    most = times[1] / (max(times[1] - times["turns 1"], 0.0) / gain + times["turns 2"])
    return Row(
        f"DPGradientBoostingClassifier, {settings.n:,} x {COLUMNS}, 2 threads", times[2], peer="one thread",
        baseline=times[1], ratio=times[1] / times[2], repeats=repeats, limit="passes, curves",
        share=times[1] / times[2] / most,
        note=f"passes that wait for nobody gain {gain:.2f}x; passes and curves in turn take "
             f"{times['turns 1'] * 1e3:.0f} ms by one thread, {times['turns 2'] * 1e3:.0f} ms by two; with all else "
             f"that makes about {most:.2f}x",
    ).judge(settings, 1.7)


def replay(steps, threads, waits):
    """Return a function that does again what kernels of a fit did, each step (kernel, what it was handed).

    Threads share the rows of a pass. Who `waits`, begins a step when the one before is over, as a fit must.
    """
    scores = steps[0][1][-2]
    edges = [len(scores) * k // threads for k in range(threads + 1)]
    halves = [slice(*ends) for ends in itertools.pairwise(edges)]

    def take(args, place, taken, sums):
        if waits:  # (who is quicker takes rows of the other)
            boosting.sum_residuals(*args[:5], place, taken, scores, sums)
        else:
            before, change, codes, targets, kind = args[:5]
            own, taken = halves[place], np.zeros(1, np.int32)
            boosting.sum_residuals(before[own], change, codes[own], targets[own], kind, 0, taken, scores[own], sums)

    def run():
        scores[:] = 0.0
        taken = [np.zeros(threads, np.int32) for _ in steps]
        locks = [(Lock(), Lock()) for _ in range(1, threads)]
        for lock in itertools.chain(*locks):
            lock.acquire()

        def follow(place):
            sums = np.zeros((256, 1), np.int64)
            for k, (kernel, args) in enumerate(steps):
                if kernel is boosting.sum_residuals:
                    if waits and place:
                        locks[place - 1][0].acquire()
                    for go, _ in locks if waits and not place else ():
                        go.release()
                    take(args, place, taken[k], sums)
                    if waits and place:
                        locks[place - 1][1].release()
                    for _, over in locks if waits and not place else ():
                        over.acquire()
                elif not place:
                    kernel(*args)

        helpers = [Thread(target=follow, args=(place,)) for place in range(1, threads)]
        for helper in helpers:
            helper.start()
        follow(0)
        for helper in helpers:
            helper.join()

    return run
