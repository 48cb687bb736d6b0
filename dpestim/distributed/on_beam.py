"""Sums of rows in a pipeline of Apache Beam: a `CombineFn` made of what an estimator asks of all rows.

Beam may run a step twice. So nothing is drawn or charged in the pipeline: it adds up exact sums, and the process that
has the ledger releases them, once.
"""

from contextlib import suppress
from functools import reduce

from dpestim.central.stability.rows import RowMechanism
from dpestim.distributed.parts import Split, added, frame_of, frame_of_records, made_up
from dpestim.passes import Blueprint, Summarize
from dpestim.summaries import Mergeable


def combine_fn(estimator, example, y=None):
    """Return a `CombineFn` that makes of batches of rows one estimator that has summarised all of them.

    Parameters
    ----------
    estimator : estimator of dpestim with ``summarize``, ``merge`` and ``release``
        All domains must be declared.
    example : batch
        Of which the columns and types are taken, and no value: the result of no batch has these. (Models that need a
        row raise ValueError then, as ``fit`` does.)
    y : str, default=None
        The column of the targets.

    Returns
    -------
    apache_beam.CombineFn
        For ``CombineGlobally``, of batches: frames, Arrow tables or record batches, arrays, lists of dicts (as
        ``BatchElements`` makes them of dicts), or pairs (X, y). Its result goes to ``merge`` of the estimator that has
        the ledger, and ``release`` of that charges and draws.

    Raises
    ------
    ValueError
        For an estimator that needs several rounds, rows in order, or all rows of a user at once.

    Notes
    -----
    The result, and all that Beam stores on the way, are exact sums, as secret as the rows.
    """
    if not isinstance(estimator, Mergeable):
        raise ValueError(f"{type(estimator).__name__} has no sums that a pipeline adds up: take an estimator with "
                         "summarize, merge and release, or let each step privatize rows for one of dpestim.local")
    estimator._check_mergeable()
    if getattr(estimator, "max_rows_per_user", None) is not None:
        raise ValueError("max_rows_per_user must be None, because Beam may put rows of a user in several batches: use "
                         "distributed.fit with users and data of Dask or Spark")
    if isinstance(estimator, RowMechanism):
        raise ValueError(f"{type(estimator).__name__} needs rows in an order that Beam does not keep: use "
                         "distributed.fit with batches, files, or data of Dask or Spark")
    split = Split.by(y, None)
    example = split(made_up(_frame(example)))
    request = _asked(Blueprint.of(estimator).build(), example)
    if not isinstance(request, Summarize):
        raise ValueError(f"{type(estimator).__name__} asks rows more than once with these parameters, and a pipeline "
                         "is one pass: use distributed.fit")
    from apache_beam import CombineFn

    class Summaries(CombineFn):
        """Adds up the summaries of batches; None is that of no row."""

        def create_accumulator(self):
            return None

        def add_input(self, total, rows):
            return added(request, total, request(split(_frame(rows))))

        def merge_accumulators(self, totals):
            return reduce(lambda one, other: added(request, one, other), totals, None)

        def extract_output(self, total):
            found = request.blueprint.build()
            found.summary_ = request.of_nothing(example) if total is None else total
            return found

    return Summaries()


def _asked(estimator, example):
    """Return what an estimator asks of all rows: nothing is charged before the answer, which never comes."""
    asked = []

    def ask(request):
        asked.append(request)
        raise InterruptedError

    with suppress(InterruptedError):
        estimator.fit_parts(ask, example)
    return asked[0]


def _frame(rows):
    """Return a batch as what `fit` takes; dicts as a frame."""
    return frame_of_records(rows) if isinstance(rows, list) and rows and isinstance(rows[0], dict) else frame_of(rows)
