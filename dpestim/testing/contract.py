"""Behaviour, written once for any kind of data: what clients do (`privatize`), and what servers have of theirs.

A frequency estimator is both; a transformer of numbers is a client; what collects for a transformer is a server. What
depends on the kind of data (its containers, its bad values) comes from `sample.kind`.
"""

import importlib.util
import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_epsilon
from dpestim.testing.aggregates import same_estimates
from dpestim.testing.behaviour import REFUSED
from dpestim.testing.rows import sampled_as_stated, slots_of
from dpestim.testing.sample import reports_of
from dpestim.testing.tools import (
    Book,
    client_of,
    differs_each_time,
    fresh,
    layouts,
    raw_rows,
    refuses,
    require,
    same_state,
    snapshot,
    with_params,
)


def check_reports_format(sample):
    """Reports are a C-contiguous unsigned array of the declared width; a seed reproduces them, its absence never."""
    X = sample.rows(50)
    reports = sample.fresh().privatize(X)
    require(reports.flags.c_contiguous and reports.dtype.kind == "u", "reports must be C-contiguous and unsigned")
    width = sum(r.report_width for r in sample.randomizers)
    if sample.n_sampled:
        width = sample.n_sampled * (1 + max(r.report_width for r in sample.randomizers))
    require(reports.shape == (50, width), "reports have the wrong shape")
    require(np.array_equal(reports, sample.fresh().privatize(X)), "an int random_state must reproduce the reports")
    require(np.array_equal(sample.fresh().privatize(X[:1]), reports[:1]), "a row's noise must not depend on others")
    secure, many = sample.fresh(random_state=None), X[np.arange(1_000) % len(X)]
    require(differs_each_time(lambda: secure.privatize(many)), "random_state=None must give new noise")


def check_what_is_sent(sample):
    """What a client sends is, column by column, what the law that it shows makes of the codes, before and after fit."""
    X = sample.block_rows
    for est, rows in ((sample.fresh(random_state=3), X), (sample.fresh(random_state=3).fit(X[:9]), X[:1000])):
        columns = est._columns_now(X.shape[1])
        shown = list(columns.laws) == list(sample.randomizers) == [est.randomizer(j) for j in range(len(columns))]
        require(shown, "the laws that are shown are not one")
        reports = est.privatize(rows)
        data = columns.read(client_of(est)._parts(rows, columns, False), None, False)
        if sample.n_sampled:
            same = sampled_as_stated(columns, reports, data, 3)
            require(same, "privatize sends something else than the laws make of the codes of those who drew a column")
            continue
        for number, (column, law, part, values) in enumerate(zip(columns, sample.randomizers, columns.slices, data)):
            codes_of, size = column.coder(), law.block_rows
            codes = np.concatenate([codes_of(values[k : k + size]).copy() for k in range(0, len(rows), size)])
            same = np.array_equal(reports[:, part], reports_of(law, codes, 3, number))
            require(same, "privatize sends something else than the law makes of the codes")


def check_threads(sample):
    """Seeded reports are the same for every n_jobs."""
    X = sample.block_rows
    one = sample.fresh(n_jobs=1).privatize(X)
    for n_jobs in (2, 3):
        require(
            np.array_equal(one, sample.fresh(n_jobs=n_jobs).privatize(X)),
            "reports depend on n_jobs: noise must belong to a row, not to a thread",
        )


def check_containers(sample):
    """Arrays of any layout, lists, pandas and polars frames and other dtypes give the same reports."""
    X = sample.kind.rows(sample.rows(40))
    wanted = sample.fresh().privatize(X)
    for name, data in (*layouts(X), *sample.kind.containers(X)):
        require(np.array_equal(sample.fresh().privatize(data), wanted), f"{name} input gives other reports")


def check_output(sample):
    """`transform` changes nothing, and `set_output` names its columns without changing values."""
    X = sample.rows(30)
    est = sample.fresh().fit(X)
    before = snapshot(est)
    out, names = est.transform(X), list(est.get_feature_names_out())
    require(np.array_equal(est.transform(X), out), "an int random_state must reproduce what transform returns")
    require(same_state(before, snapshot(est)), "transform must not change the estimator")
    if importlib.util.find_spec("pandas"):
        frame = sample.fresh().set_output(transform="pandas").fit(X).transform(X)
        require(list(frame.columns) == names, "set_output must name the columns")
        require(np.array_equal(frame.to_numpy(), out), "set_output must not change values")
        import pandas as pd

        columns = [f"feature {j}" for j in range(X.shape[1])]
        named = sample.fresh().fit(pd.DataFrame(X, columns=columns))
        right = list(named.feature_names_in_) == columns and named.get_feature_names_out()[0].startswith("feature 0")
        require(right, "the names of a frame's columns must be kept")


def check_privacy_statement(sample):
    """`privacy_` states what a row really has, what relaxation holds, the local model, and whether noise was seeded."""
    X, declared = sample.rows(10), canonical_epsilon(sample.estimator.epsilon)
    plain = sum(sorted(r.plain_epsilon for r in sample.randomizers)[-sample.n_reported :])
    for state, seeded in ((None, False), (0, True), (np.random.default_rng(0), True)):
        stated = sample.fresh(random_state=state).fit(X).privacy_
        require(stated.epsilon == plain, "privacy_.epsilon is not what a row really has")
        require(stated.seeded is seeded and stated.model == "local", "privacy_ does not say how the noise was made")
        if plain != declared:
            named = stated.relaxation and stated.relaxed_epsilon == declared
            require(named, "epsilon holds under a relaxation, which privacy_ must name")
            require(stated.notes, "privacy_ must say why epsilon is not the declared one")
        else:
            require(stated.relaxation is None or stated.relaxed_epsilon == plain, "the relaxation has another epsilon")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stated = _undeclared(sample).fit(sample.rows(200)).privacy_
    require(stated.epsilon == math.inf and stated.notes and caught, "a learned domain must void the guarantee, audibly")


def check_law_is_its_arguments(sample):
    """Every parameter of the law changes the law: nothing of another one is merged, kept in a cache, or equal."""
    client = client_of(sample.estimator)
    laws, X = sample.randomizers, sample.rows(20)
    require(all(pickle.loads(pickle.dumps(r)) == r for r in laws), "a pickle must be the same law")
    for name in client.get_params(deep=False):
        if name in client._no_law:
            continue
        params = _another(sample.estimator, name, sample.kind)
        if params is None:  # no other value suits this setting; then one suits another setting
            settings = [type(client)(**setting) for setting in type(client)._test_params()]
            found = any(_another(setting, name, sample.kind) for setting in settings)
            require(found, f"bring another value of {name} in a setting of _test_params, or in _test_values")
            continue
        before, other = sample.fresh(), sample.fresh(**params)
        before.privatize(X)  # what is kept for the next call must not be
        after = with_params(before, **params)
        n = raw_rows(client, 2).shape[1]
        mine, theirs = (client_of(est)._columns_now(n) for est in (sample.fresh(), other))
        if name in client._chooses and mine.same_law(theirs):
            require(_changes_some_law(client, name, sample.kind), f"another {name} must be another law in some setting")
            continue
        require(not mine.same_law(theirs), f"another {name} must be another law")
        now = client_of(after)._columns_now(n)
        require(now.same_law(theirs), f"another {name} must be heeded by the next call")
        if _serves(sample):
            full = sample.fresh().fit(X)
            refuses(lambda full=full, other=other, X=X: full.merge(other.fit(X)), f"merging another {name}", full)


def _changes_some_law(client, name, kind):
    """Tell whether another value of a parameter leads to another law in one of the settings of a class."""
    for setting in type(client)._test_params():
        one = type(client)(**setting)
        params = _another(one, name, kind)
        n = raw_rows(one, 2).shape[1]
        if params and not one._columns_now(n).same_law(fresh(one, **params)._columns_now(n)):
            return True
    return False


def _another(estimator, name, kind):
    """Return a parameter with another value that suits a setting, or None."""
    client = client_of(estimator)
    if name == "epsilon":
        values = [float(client.epsilon) * factor for factor in (0.5, 1.25, 0.8)]
    elif name == client._domain:
        values = [kind.other_domain(client)[name]]
    else:
        values = [p[name] for p in type(client)._test_params() if name in p]
        values += [v for base in type(client).__mro__ for v in vars(base).get("_test_values", {}).get(name, ())]
    n = raw_rows(client, 2).shape[1]
    for value in values:
        if not same_state(getattr(client, name), value):
            try:
                client_of(fresh(estimator, **{name: value}))._columns_now(n)
            except ValueError:
                continue
            return {name: value}
    return None


def check_charges(sample):
    """Each release is charged once, before words are drawn, as `privacy_` says; scores are recorded."""
    X, client = sample.rows(30), client_of(sample.estimator)
    serves, book = _serves(sample), Book()
    est = sample.fresh(ledger=book).fit(X)
    expected = [30] if serves else []  # (a transformer learns nothing)
    if serves:
        est.partial_fit(X[:9])
        est.release()
        expected.append(9)
    est.privatize(X[:7])
    expected.append(7)
    if hasattr(est, "transform"):
        est.transform(X[:5])
        expected.append(5)
    require([n for _, _, n, _ in book.paid] == expected, "each release, and nothing else, must be charged once")
    n = raw_rows(client, 2).shape[1]  # (the client's own columns: a group stands beside them)
    right = all(g.epsilon == est.privacy_.epsilon and c == n for g, _, _, c in book.paid)
    require(right, "the charge is not privacy_")
    require({who for _, who, _, _ in book.paid} == {type(client).__name__}, "whoever randomises must pay")
    require(not book.scores, "only score compares with raw data")
    if serves:
        est.score(X)
        require(book.scores == [(type(est).__name__, 30)], "the ledger must be told of a score")
    book = Book()
    later = with_params(sample.fresh().fit(X), ledger=book)
    later.privatize(X[:5])
    require([n for _, _, n, _ in book.paid] == [5], "a ledger that comes later must be charged from then on")
    for data in (X[:0], X[:, 0]):
        refuses(lambda data=data: later.privatize(data), "bad input", later)
    require(len(book.paid) == 1, "bad input must be refused before anything is charged")
    empty = sample.fresh(ledger=Book(refuse=True))
    for verb in ("privatize", "fit") if serves else ("privatize",):
        refuses(lambda verb=verb: getattr(empty, verb)(X), "an overdraft")
        require(not hasattr(empty, "n_users_"), "what was refused must leave nothing behind")


def check_clone_and_pickle(sample):
    """Clone forgets state and keeps parameters; a pickle keeps both and refuses another format."""
    X = sample.rows(40)
    est = sample.fresh().fit(X)
    twin = clone(est)
    try:
        check_is_fitted(twin)
        forgotten = False
    except NotFittedError:
        forgotten = True
    require(forgotten and client_of(twin).epsilon == client_of(est).epsilon, "clone must keep parameters only")
    copied = pickle.loads(pickle.dumps(est))
    require(same_state(copied.__getstate__(), est.__getstate__()), "pickle must keep the state")
    require(copied.privacy_ == est.privacy_, "pickle must keep the guarantee")
    require(np.array_equal(copied.privatize(X), est.privatize(X)), "pickle must keep the law")
    if _serves(sample):
        require(same_estimates(copied, est), "pickle must keep the counts")
    state = {**est.__getstate__(), "_dpestim_format": -1}
    refuses(lambda: type(est).__new__(type(est)).__setstate__(state), "a pickle of another format")


def check_freeze(sample):
    """The first data freezes the law: a later epsilon changes nothing until the next fit."""
    X = sample.rows(30)
    est = sample.fresh().fit(X)
    before, reports = est.privacy_.epsilon, est.privatize(X)
    less = canonical_epsilon(client_of(est).epsilon) * Fraction(9, 10)
    with_params(est, epsilon=less)
    frozen = np.array_equal(est.privatize(X), reports) and est.privacy_.epsilon == before
    require(frozen, "a later epsilon changed the law")
    if _serves(sample):
        est.partial_fit(X)
        require(est.n_users_ == 60 and est.privacy_.epsilon == before, "partial_fit changed the law")
        est.fit(X)
        require(est.n_users_ == 30, "fit must start anew")
    stated = est.fit(X).privacy_
    now = stated.epsilon if stated.relaxed_epsilon is None else stated.relaxed_epsilon
    require(now == less, "fit must take the parameters as they are now")


def check_strict_mode_stays(sample):
    """What was made in strict mode tells nothing about a value after it, either; it learns no domain and scores not.

    A row with a value outside the domain is a row like any other: it is reported and counted, and others stay the same.
    """
    plain = sample.rows(20)
    X = sample.kind.strange(plain)
    with config_context(strict=True):
        strict = sample.fresh()
        refuses(lambda: _undeclared(sample).fit(sample.rows(20)), "a learned domain in strict mode")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for verb in ("privatize", "fit", "partial_fit", "transform"):
            if hasattr(strict, verb):
                try:
                    getattr(strict, verb)(X)
                except (ValueError, Warning):
                    require(False, f"{verb} of what was made in strict mode must not tell about a value")
        with config_context(strict=True):
            same = np.array([same_state(list(a), list(b)) for a, b in zip(X, plain)])
            mixed = sample.rows(20, seed=1)
            mixed[~same] = X[~same]
            odd, usual, others = (sample.fresh().privatize(rows) for rows in (X, plain, mixed))
            require(len(odd) == len(X), "strict mode must report every row, whatever is in it")
            alone = np.array_equal(odd[same], usual[same]) and np.array_equal(odd[~same], others[~same])
            require(alone, "a report must not depend on what is in another row")
            if _serves(sample):
                require(sample.fresh().fit(X).n_users_ == len(X), "strict mode must count every row")
    if hasattr(strict, "score"):
        refuses(lambda: strict.score(sample.rows(20)), "a score of what was made in strict mode")


def check_bad_input(sample):
    """Bad rows and parameters are ValueErrors that name the column or parameter, change nothing and show no value."""
    X, kind = sample.rows(20), sample.kind
    client, est = client_of(sample.estimator), sample.fresh().fit(X)
    wrong = [*kind.bad_rows(client, X), ("no rows", X[:0], False),
             ("another number of columns", np.concatenate([X, X], axis=1), False)]
    any_width = kind.any_width(client)
    for verb in ("privatize", "fit", "partial_fit", "fit_transform", "transform"):
        for name, data, named in wrong if hasattr(est, verb) else ():
            if any_width and name == "another number of columns" and verb in ("fit", "fit_transform"):
                continue  # such a domain suits any number of columns
            message = refuses(lambda verb=verb, data=data: getattr(est, verb)(data), f"{name} in {verb}", est)
            require(not any(s in message for s in kind.shown), "an error message shows a private value")
            require(not named or "column" in message, f"the error for {name} does not name the column")
    common = [(name, value) for name in ("epsilon", "random_state", "n_jobs") for value in REFUSED[name]]
    bad = [*kind.bad_params(client),
           *((f"{name} = {value!r}", {name: value}) for name, value in (*common, ("ledger", object())))]
    for name, params in bad:
        trial = sample.fresh(**params)
        use = trial.privatize if "ledger" in params else trial.fit
        message = refuses(lambda use=use: use(X), name)
        require(next(iter(params)) in message, f"the error for {name} does not name the parameter")
        for attribute in ("n_users_", "bounds_", "categories_"):
            require(not hasattr(trial, attribute), f"{name} left state behind")


def check_bad_reports(sample):
    """Reports that no client can have sent are ValueErrors that change nothing."""
    X = sample.rows(20)
    est = sample.fresh().fit(X)
    read = est.aggregate if _serves(sample) else est.decode
    reports = est.privatize(X)
    for name, data in {
        "a list": reports.tolist(),
        "one dimension": reports[:, 0],
        "another width": np.concatenate([reports, reports], axis=1),
        "another dtype": reports.astype(np.int64),
        "no reports": reports[:0],
        "a masked array": np.ma.array(reports, mask=reports > 0),
    }.items():
        refuses(lambda data=data: read(data), f"reports: {name}", est)
    if sample.n_sampled:
        slots = slots_of(est._columns, reports)
        for name, at, number in (("a column beyond the last", (3, -1, 0), len(sample.randomizers)),
                                 ("a column that is drawn twice", (3, -1, 0), int(slots[3, 0, 0])),
                                 ("a code beyond the last", (3, 0, -1), np.iinfo(reports.dtype).max)):
            if number != slots[at]:
                bad = slots.copy()
                bad[at] = number
                refuses(lambda bad=bad: read(bad.reshape(reports.shape)), f"reports: {name}", est)
        return
    start = reports.shape[1] - sum(r.report_width for r in sample.randomizers)  # (a group's number may stand before)
    for column in sample.columns:
        randomizer = column.randomizer
        columns = slice(start, start + randomizer.report_width)
        start = columns.stop
        part = np.full((1, randomizer.report_width), np.iinfo(randomizer.report_dtype).max, randomizer.report_dtype)
        n_outputs = len(column.matrix[0]) if hasattr(randomizer, "support") else randomizer.n_counts
        if randomizer.law_indices(column.inputs[:1], part)[1].max() >= n_outputs:
            for row in (0, len(reports) // 2, len(reports) - 1):
                bad = reports.copy()
                bad[row, columns] = part
                refuses(lambda bad=bad: read(bad), f"a report that no input can give, in row {row}", est)


def _serves(sample):
    return hasattr(sample.estimator, "aggregate")


def _undeclared(sample):
    """Return a clone whose domain would be learned from data."""
    known = client_of(sample.estimator).get_params()
    return sample.fresh(**{name: value for name, value in sample.kind.undeclared.items() if name in known})


CLIENT_CHECKS = (
    check_reports_format,
    check_what_is_sent,
    check_threads,
    check_containers,
    check_output,
    check_privacy_statement,
)
BOTH_CHECKS = (
    check_law_is_its_arguments,
    check_charges,
    check_clone_and_pickle,
    check_freeze,
    check_strict_mode_stays,
    check_bad_input,
    check_bad_reports,
)
