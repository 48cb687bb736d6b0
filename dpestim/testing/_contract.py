"""The behaviour of a mechanism: what scikit-learn's users, servers and clients rely on."""

import copy
import importlib.util
import pickle
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone

from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing._tools import fresh, randomizers, raw_rows, reports_of, require


def check_threads_and_blocks(estimator):
    """Seeded results are the same for every n_jobs, for shuffled blocks and for fit, aggregate and partial_fit."""
    X = raw_rows(estimator, 3)
    laws = randomizers(estimator)
    n = min(max(2 * max(r.block_rows for r in laws) + 17, 1000), 600_000)
    X = X[np.arange(n) % 3]
    one = fresh(estimator, n_jobs=1).privatize(X)
    for n_jobs in (2, 3):
        require(
            np.array_equal(one, fresh(estimator, n_jobs=n_jobs).privatize(X)),
            "reports depend on n_jobs: noise must belong to a row, not to a thread",
        )
    fitted = fresh(estimator, n_jobs=2).fit(X)
    whole = fresh(estimator).aggregate(one)
    parts = fresh(estimator).partial_fit(X[: n // 3]).partial_fit(X[n // 3 :])
    require(_same(fitted, whole), "fit must equal privatize followed by aggregate")
    require(_same(fitted, parts), "two partial_fit under one seed must equal one fit of all rows")
    for column, randomizer in enumerate(laws):
        codes = np.arange(n) % randomizer.n_categories
        codes = codes.astype(randomizer.code_dtype)
        require(
            np.array_equal(
                reports_of(randomizer, codes, column=column),
                reports_of(randomizer, codes, column=column, order=lambda blocks: list(blocks)[::-1]),
            ),
            "reports depend on the order of the blocks",
        )


def check_reports_format(estimator):
    """Reports are a C-contiguous unsigned array of the declared width, and every one passes check_reports."""
    X = raw_rows(estimator, 50)
    reports = fresh(estimator).privatize(X)
    laws = randomizers(estimator)
    require(reports.flags.c_contiguous and reports.dtype.kind == "u", "reports must be C-contiguous and unsigned")
    require(reports.shape == (50, sum(r.report_width for r in laws)), "reports have the wrong shape")
    again = fresh(estimator).privatize(X)
    require(np.array_equal(reports, again), "an int random_state must reproduce the reports")
    secure, many = fresh(estimator, random_state=None), X[np.arange(10_000) % len(X)]
    require(
        not np.array_equal(secure.privatize(many), secure.privatize(many)),
        "random_state=None must give new noise each call",
    )
    one = fresh(estimator).privatize(X[:1])
    require(np.array_equal(one, reports[:1]), "a row's noise must not depend on the rows after it")


def check_merge(estimator):
    """Merge equals aggregating all reports at once; merging with itself, another law or repeated noise is refused."""
    X = raw_rows(estimator, 60)
    reports = fresh(estimator).privatize(X)
    whole = fresh(estimator).aggregate(reports)
    left, right = fresh(estimator).aggregate(reports[:20]), fresh(estimator).aggregate(reports[20:])
    require(_same(left.merge(right), whole), "merge must equal the aggregate of all reports")
    empty = fresh(estimator).merge(whole)
    require(_same(empty, whole), "merging into an empty aggregate must copy it")
    refuses(lambda: whole.merge(whole), "itself", whole)
    other = fresh(estimator, epsilon=float(estimator.epsilon) / 2).fit(X)
    refuses(lambda: whole.merge(other), "another epsilon", whole)
    refuses(lambda: whole.merge(fresh(estimator)), "an aggregate without data", whole)
    a, b = fresh(estimator).fit(X), fresh(estimator).fit(X[:5])
    refuses(lambda: a.merge(b), "repeated seeded noise", a)
    require(a.merge(fresh(estimator, random_state=1).fit(X)).n_users_ == 120, "different seeds must merge")


def check_clone_and_pickle(estimator):
    """Clone forgets state and keeps parameters; a pickle keeps both and refuses another format."""
    est = fresh(estimator).fit(raw_rows(estimator, 40))
    twin = clone(est)
    require(not hasattr(twin, "n_users_") and twin.epsilon == est.epsilon, "clone must keep parameters only")
    copied = pickle.loads(pickle.dumps(est))
    require(_same(copied, est) and copied.privacy_ == est.privacy_, "pickle must keep the state")
    state = est.__getstate__()
    state["_dpestim_format"] = -1
    refuses(lambda: type(est).__new__(type(est)).__setstate__(state), "a pickle of another format")


def check_transform(estimator):
    """`transform` gives the 0/1 support matrix; fit_transform is one randomisation; state does not change."""
    X = raw_rows(estimator, 30)
    est = fresh(estimator).fit(X)
    before = copy.deepcopy(est.__getstate__())
    support = est.transform(X)
    names = est.get_feature_names_out()
    width = sum(len(c) for c in est.categories_)
    require(support.shape == (30, width) == (30, len(names)), "transform must have one column for each category")
    require(support.dtype == np.uint8 and set(np.unique(support)) <= {0, 1}, "transform must return 0/1 in uint8")
    require(_equal_state(before, est.__getstate__()), "transform must not change the estimator")
    require(np.array_equal(fresh(estimator).fit_transform(X), support), "fit_transform must equal fit and transform")
    require(_same(_fit_transformed(estimator, X), est), "fit_transform must count the reports it returns")
    sparse = fresh(estimator, sparse_output=True).fit(X).transform(X)
    require(np.array_equal(sparse.toarray(), support), "sparse_output must hold the same matrix")
    if importlib.util.find_spec("pandas"):
        frame = fresh(estimator).set_output(transform="pandas").fit(X).transform(X)
        require(list(frame.columns) == list(names), "set_output must name the columns")
        require(np.array_equal(frame.to_numpy(), support), "set_output must not change values")


def check_containers(estimator):
    """Arrays, lists, read-only memory maps, fixed-width strings, pandas and polars frames give the same reports."""
    X = raw_rows(estimator, 40)
    wanted = fresh(estimator).privatize(X)
    same = {"list": X.tolist(), "Fortran order": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=0)[::2]}
    if importlib.util.find_spec("pandas"):
        import pandas as pd

        frame = pd.DataFrame({f"c{j}": list(X[:, j]) for j in range(X.shape[1])})
        same["pandas"] = frame
        same["pandas categorical"] = frame.astype("category")
    if importlib.util.find_spec("polars"):
        import polars as pl

        same["polars"] = pl.DataFrame({f"c{j}": list(X[:, j]) for j in range(X.shape[1])})
    kinds = {type(v) for v in X.ravel()}
    if kinds == {int}:
        low, high = min(X.ravel()), max(X.ravel())
        for dtype in (t for t in "bhilqBHILQ" if np.iinfo(t).min <= low and high <= np.iinfo(t).max):
            same[f"dtype {np.dtype(dtype)}"] = X.astype(dtype)
        if max(-low, high) < 1 << 53:
            same["float"] = X.astype(float)
    if kinds == {str}:
        same["fixed-width strings"] = X.astype(str)
    for name, data in same.items():
        require(np.array_equal(fresh(estimator).privatize(data), wanted), f"{name} input gives other reports")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.npy"
        np.save(path, wanted)
        mapped = np.load(path, mmap_mode="r")
        require(
            _same(fresh(estimator).aggregate(mapped), fresh(estimator).aggregate(wanted)),
            "read-only memory maps must be accepted",
        )
        del mapped


def check_freeze(estimator):
    """The first data freezes the law: a later epsilon changes nothing until the next fit."""
    X = raw_rows(estimator, 30)
    est = fresh(estimator).fit(X)
    law, guarantee = est.randomizers_, est.privacy_
    est.set_params(epsilon=float(estimator.epsilon) / 2).partial_fit(X)
    require(est.randomizers_ is law and est.privacy_.epsilon == guarantee.epsilon, "partial_fit changed the law")
    est.fit(X)
    require(est.privacy_.epsilon == guarantee.epsilon / 2 and est.n_users_ == 30, "fit must start anew")


def check_privacy_statement(estimator):
    """`privacy_` states the canonical epsilon, the local model, and whether the noise was seeded."""
    X = raw_rows(estimator, 10)
    for state, seeded in ((None, False), (0, True), (np.random.default_rng(0), True)):
        stated = fresh(estimator, random_state=state).fit(X).privacy_
        require(stated.epsilon == canonical_epsilon(estimator.epsilon), "privacy_.epsilon is not the declared one")
        require(stated.seeded is seeded and stated.model == "local", "privacy_ does not say how the noise was made")
    auto = fresh(estimator, categories="auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stated = auto.fit(raw_rows(estimator, 200)).privacy_
    require(stated.epsilon == float("inf") and stated.notes, "learned categories must void the guarantee")


def check_bad_input(estimator):
    """Bad parameters, values and reports are ValueErrors that change nothing and never show a value."""
    X = raw_rows(estimator, 20)
    secret = "value-that-must-not-be-shown"
    foreign, missing, nan = X.copy(), X.copy(), X.copy()
    foreign[7, -1], missing[7, -1], nan[7, -1] = secret, None, float("nan")
    est = fresh(estimator).fit(X)
    for verb in ("privatize", "fit", "partial_fit", "fit_transform", "transform"):
        for name, data in {
            "an unknown category": foreign,
            "None": missing,
            "NaN": nan,
            "no rows": X[:0],
            "one dimension": foreign[:, -1],
            "no dimension": np.array(secret, dtype=object),
            "rows of unequal length": [[secret], [secret, secret]],
            "a masked array": np.ma.array(foreign, mask=foreign == secret),
            "complex numbers": np.full(X.shape, 8888j),
            "another number of columns": np.concatenate([X, X], axis=1),
        }.items():
            message = refuses(lambda verb=verb, data=data: getattr(est, verb)(data), f"{name} in {verb}", est)
            require(secret not in message and "8888" not in message, "an error message shows a private value")
            if name in ("an unknown category", "None", "NaN"):
                require(f"column {X.shape[1] - 1}" in message, f"the error for {name} does not name the column")
    for name, params in {
        "epsilon = 0": {"epsilon": 0},
        "epsilon < 0": {"epsilon": -1.0},
        "epsilon = inf": {"epsilon": float("inf")},
        "epsilon = nan": {"epsilon": float("nan")},
        "epsilon as text": {"epsilon": "1"},
        "epsilon as bool": {"epsilon": True},
        "a domain of one value": {"categories": [[c[0]] for c in estimator.categories]},
        "repeated categories": {"categories": [[c[0], c[0]] for c in estimator.categories]},
        "no categories": {"categories": []},
        "an unknown postprocess": {"postprocess": "no such function"},
        "a negative seed": {"random_state": -1},
        "no thread at all": {"n_jobs": 0},
        "threads in words": {"n_jobs": "two"},
        "a ledger that is none": {"ledger": object()},
    }.items():
        bad = fresh(estimator, **params)
        message = refuses(lambda bad=bad: bad.fit(X), name)
        require(next(iter(params)) in message, f"the error for {name} does not name the parameter")
        require(not hasattr(bad, "n_users_"), f"{name} left state behind")
    reports = est.privatize(X)
    wrong = {
        "a list": reports.tolist(),
        "one dimension": reports[:, 0],
        "another width": np.concatenate([reports, reports], axis=1),
        "another dtype": reports.astype(np.int64),
        "no reports": reports[:0],
    }
    wrong["a masked array"] = np.ma.array(reports, mask=reports > 0)
    for name, data in wrong.items():
        refuses(lambda data=data: est.aggregate(data), f"reports: {name}", est)
    start = 0
    for randomizer in randomizers(estimator):
        columns = slice(start, start + randomizer.report_width)
        start = columns.stop
        part = np.full((1, randomizer.report_width), np.iinfo(randomizer.report_dtype).max, randomizer.report_dtype)
        outside = len(randomizer.transition_matrix()[0])
        if randomizer.law_indices(np.zeros(1, randomizer.code_dtype), part)[1].max() >= outside:
            for row in (0, len(reports) // 2, len(reports) - 1):
                bad = reports.copy()
                bad[row, columns] = part
                refuses(lambda bad=bad: est.aggregate(bad), f"a report that no input can give, in row {row}", est)


def _same(a, b):
    """Tell whether two aggregates hold the same counts."""
    return a.n_users_ == b.n_users_ and all(
        np.array_equal(x, y) and np.array_equal(s, t)
        for x, y, s, t in zip(a.frequencies_, b.frequencies_, a.standard_errors_, b.standard_errors_)
    )


def _fit_transformed(estimator, X):
    est = fresh(estimator)
    est.fit_transform(X)
    return est


def _equal_state(a, b):
    return pickle.dumps(a) == pickle.dumps(b)


def refuses(call, what, estimator=None):
    """Require a ValueError that leaves the estimator as it was, and return its message."""
    before = pickle.dumps(estimator)
    try:
        call()
    except ValueError as error:
        require(pickle.dumps(estimator) == before, f"{what}: the ValueError left a change behind")
        return str(error)
    except Exception as error:
        require(False, f"{what} must be a ValueError, got {type(error).__name__}")
    require(False, f"{what} must be a ValueError")
    return ""


CONTRACT_CHECKS = (
    check_threads_and_blocks,
    check_reports_format,
    check_merge,
    check_clone_and_pickle,
    check_transform,
    check_containers,
    check_freeze,
    check_privacy_statement,
    check_bad_input,
)
