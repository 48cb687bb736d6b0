"""The same estimators where one machine is not enough: Dask, Spark, files, and batches of any origin.

    fit          what `fit` of the estimator does, of rows in parts
    privatize    reports of rows in parts, made where the rows are
    transform    what a fitted estimator makes of rows in parts, where they are
    aggregate    counts of reports in parts
    Owner        one of several owners of rows, who do not trust each other: sums with a share of the noise, under masks
    combine      the statistic that the messages of all owners add up to

Pipelines of Apache Beam add up sums by `dpestim.distributed.on_beam.combine_fn`.

No engine is here, and no estimator is known here: data say how a request is answered part by part (`parts`), and an
estimator says what it asks (`fit_parts`, ``dpestim.passes``). What comes back from parts of the central model are exact
sums, as secret as the rows. They meet where `fit` was called, which charges the ledger and draws the noise, once. In
the local model each part sends counts of reports only. The noise of a row follows from a key and the row's place, so
that a part that an engine reads twice gives the same reports, and is counted once.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.distributed.owners import Owner, combine
    from dpestim.distributed.verbs import aggregate, fit, privatize, transform

__getattr__, __dir__ = lazy.attach(__name__, {
    "owners": "Owner combine",
    "verbs": "aggregate fit privatize transform",
})

__all__ = ["Owner", "aggregate", "combine", "fit", "privatize", "transform"]
