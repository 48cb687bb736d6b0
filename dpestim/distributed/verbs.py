"""What is done to rows in parts, by an estimator that knows no engine, and an engine that knows no estimator."""

import os
from dataclasses import replace

from sklearn.utils.validation import check_is_fitted

from dpestim.base import PrivateEstimator
from dpestim.distributed.engines import parts_of
from dpestim.distributed.parts import Shown
from dpestim.distributed.watch import Watch
from dpestim.passes import Blueprint, CountGiven, InProcesses, Place, Privatize, Transform, names_in

#: What `transform` calls.
_METHODS = ("transform", "predict", "predict_proba", "predict_log_proba", "decision_function")


def fit(estimator, data, y=None, *, users=None, columns=None, check_first=True, verbose=0):
    """Fit an estimator to rows in parts; returns it.

    Parameters
    ----------
    estimator : estimator of dpestim
        One that has `fit_parts`. All domains must be declared.
    data : Dask DataFrame, Array or Bag, Spark DataFrame, pyarrow.dataset.Dataset, str, path, or iterable
        A str is the name or a pattern of Parquet files, and so is each str or path in a list. Another iterable has
        batches: frames of pandas or polars, Arrow tables or record
        batches, arrays, or pairs (X, y).
    y : str, default=None
        The column of the targets. Pairs have their own.
    users : str, default=None
        The column that says whose row each is, for statistics with `max_rows_per_user`; Dask and Spark bring all rows
        of a user together.
    columns : list of str, default=None
        The columns of the features, in this order. Dask, Spark, Parquet files and datasets read no others. None: all
        columns but that of `y` or `users`.
    check_first : bool, default=True
        Whether a local estimator reads all rows once before it charges, so that a value that is refused costs nothing.
        False saves this reading. Data that can be read once only, such as a generator, are never read before.
    verbose : int, default=0
        1 prints a line on standard error for each second and each reading of the data, 2 one for each part: how many
        parts were read, and rows a second where the number of rows is public. Dask and Spark show their own progress
        within a reading.

    Returns
    -------
    estimator
        Fitted: with a seed, bit for bit as ``estimator.fit`` of all rows would have it, in the order of the parts. From
        262,144 rows on `DPKMeans` has other numbers, because one machine counts a sample of the rows in cells.

    Raises
    ------
    ValueError
        Where the estimator needs all rows at once, or the data are not in parts.

    Notes
    -----
    The ledger is charged once, here. **Who sees what.** Workers see the rows of their parts. In the central model the
    exact sums of parts travel to this process: they are as secret as the rows. In the local model the key of the noise
    travels to the workers: whoever has it and the reports has the rows. Encrypt the connections of the cluster. Where
    parts belong to owners who do not show each other their sums, use `Owner` and `combine`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim import distributed
    >>> from dpestim.statistics import Mean
    >>> rows = np.random.default_rng(0).uniform(size=(6, 1000))
    >>> mean = distributed.fit(Mean(1.0, bounds=(0, 1), random_state=0), [batch for batch in rows])
    >>> bool(mean.value_ == Mean(1.0, bounds=(0, 1), random_state=0).fit(rows.ravel()).value_)
    True
    """
    if not hasattr(estimator, "fit_parts"):
        why = getattr(estimator, "_not_in_parts", PrivateEstimator._not_in_parts)
        raise ValueError(f"{type(estimator).__name__} {why}")
    watch = Watch(estimator, verbose)
    _check_users(estimator, users)
    parts = parts_of(data, y, users, columns)
    example = parts.example

    def ask(request):
        if isinstance(request, InProcesses):
            request.call()
            return getattr(parts, "in_processes", lambda call: None)(request.call)
        if getattr(request, "spared", False) and (not check_first or getattr(parts, "once", False)):
            return None
        with watch.reading(parts):
            answer = parts.answer(request)
        return request.of_nothing(example) if answer is None else answer

    estimator.fit_parts(ask, example)
    return estimator


def privatize(estimator, data, y=None, *, columns=None):
    """Return reports of rows in parts, each part as the engine has it; the ledger is charged at once, for all of them.

    Parameters
    ----------
    estimator : estimator of `dpestim.local` with `privatize`
        Its domain must be declared.
    data, y, columns : as for `fit`

    Returns
    -------
    dask.array.Array, Spark DataFrame, or iterator of ndarray
        Dask: an array of shape (n_rows, width), lazy. Spark: one column of bytes, "report", lazy. All else: an array a
        batch, made when it is asked for.

    Notes
    -----
    What is lazy may be made more than once: a part that is made again has the same reports. **Rows must not change in
    between**: two reports with the same noise tell both values. Each call of `privatize` is a release of all rows.
    Store the reports, and count them by `aggregate`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim import distributed
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> drinks = GRRFrequencyEstimator(2.0, categories=[["tea", "coffee"]], random_state=0)
    >>> parts = [np.array([["tea"]] * 300), np.array([["coffee"]] * 700)]
    >>> reports = distributed.privatize(drinks, parts)
    >>> est = distributed.aggregate(drinks, reports)
    >>> est.n_users_, est.frequencies_[0].round(1)
    (1000, array([0.3, 0.7]))
    """
    client_here = getattr(estimator, "_client_here", None)
    if client_here is None:
        raise ValueError(f"{type(estimator).__name__} makes no reports of rows in parts: take an estimator of "
                         "dpestim.local that is fitted to them, or a transformer")
    parts, client = parts_of(data, y, None, columns), client_here()
    estimator._as_rows(*parts.example)
    state = _round_of(client)
    law = state.get("_columns") or client._columns_like(parts.example[0])
    request = client._asks(Privatize, estimator, law)
    request = replace(request, blueprint=replace(request.blueprint, state=state), names=names_in(parts.example[0]))
    return parts.reports(request, lambda: Shown("report", law.report_width, law.dtype))


def transform(estimator, data, *, columns=None, method="transform"):
    """Return what a fitted estimator makes of rows in parts, each part as the engine has it.

    Parameters
    ----------
    estimator : fitted estimator of dpestim
    data, columns : as for `fit`
        Targets of pairs (X, y) are left out.
    method : {"transform", "predict", "predict_proba", "predict_log_proba", "decision_function"}, default="transform"

    Returns
    -------
    dask.array.Array, Spark DataFrame, or iterator
        Dask: an array of a row for each row, lazy. Spark: one column with the name of the method, lazy, in the order of
        the rows. All else: what the method returns for each batch, made when it is asked for.

    Raises
    ------
    ValueError
        Where the method does not turn each row by itself.

    Notes
    -----
    Where `transform` randomises rows, as that of local estimators does, this is `privatize`: the ledger is charged at
    once for all rows, a part that is made again has the same reports, and rows must not change in between. All else is
    **not private**, as in the method itself: strict mode enters one call in the ledger. The engine moves the fitted
    estimator to the workers, without its ledger.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim import distributed
    >>> from dpestim.preprocessing import DPStandardScaler
    >>> rows = np.random.default_rng(0).uniform(size=(6, 100, 2))
    >>> scaler = distributed.fit(DPStandardScaler(1.0, bounds=(0, 1), random_state=0), list(rows))
    >>> [part.shape for part in distributed.transform(scaler, list(rows))][:2]
    [(100, 2), (100, 2)]
    """
    if method not in _METHODS or not hasattr(estimator, method):
        have = [name for name in _METHODS if hasattr(estimator, name)]
        raise ValueError(f"method must be one that {type(estimator).__name__} has: "
                         f"{' or '.join(map(repr, have)) or 'it has none that turns rows'}")
    if not hasattr(estimator, "_randomises"):
        raise ValueError(f"{type(estimator).__name__} is no estimator of dpestim: transform the parts by each of its "
                         "estimators, one after the other")
    check_is_fitted(estimator)
    parts = parts_of(data, None, None, columns)
    blueprint, example, randomises = Blueprint.of(estimator, True), parts.example[0], estimator._randomises(method)
    request = Privatize(blueprint, os.urandom(32), False, names_in(example), True) if randomises else Transform(
        blueprint, method)
    strict = replace(request, blueprint=replace(blueprint, strict=True))

    def made_up():
        try:  # (a made-up row may have values that are refused; strict mode refuses none)
            return strict((example,), Place())
        except ValueError:
            return request((example,), Place())

    if randomises:
        made_up()  # (columns that are refused cost nothing)
        paid = estimator._asks(Privatize, estimator, estimator._columns)
        request = replace(request, key=paid.key, seeded=paid.seeded)
    elif estimator._is_strict() and hasattr(estimator, "_note_predictions"):
        estimator._note_predictions(None)
    return parts.reports(request, lambda: Shown.like(method, made_up()))


def aggregate(estimator, reports):
    """Add reports in parts to the counts of an estimator; returns it.

    Parameters
    ----------
    estimator : estimator of `dpestim.local` with `aggregate`
    reports : Dask Array, Spark DataFrame with one column of bytes, or iterable of arrays
        As `privatize` returns them. A part that an engine reads twice is counted once.

    Returns
    -------
    estimator
    """
    if not hasattr(estimator, "aggregate"):
        raise ValueError(f"{type(estimator).__name__} counts no reports: take an estimator of dpestim.local")
    found = parts_of(reports).answer(CountGiven(replace(Blueprint.of(estimator), state=_round_of(estimator))))
    if found is None:
        raise ValueError("reports must have at least one row")
    return estimator.merge(found)


def _round_of(estimator):
    """Return what workers must know of closed rounds, where the estimator asks in rounds: all of it is published."""
    return getattr(estimator, "_round_state", dict)()


def _check_users(estimator, users):
    """Raise ValueError unless users are named where rows of users are limited, and nowhere else.

    The limit holds where all rows of a user are in one part. Users that come by another way may be in several.
    """
    limited = getattr(estimator, "max_rows_per_user", None) is not None
    if limited and users is None:
        raise ValueError("users must name the column that says whose row each is, because max_rows_per_user needs all "
                         "rows of a user in one part: give users, and data of Dask or Spark; or call fit with all rows")
    if users is not None and not limited:
        raise ValueError("users must be None, because no max_rows_per_user limits the rows of a user: declare it in a "
                         "statistic, or leave users out")
