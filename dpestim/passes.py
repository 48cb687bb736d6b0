"""Passes: what a fit asks of all rows, as requests that any engine can answer part by part.

``estimator.fit_parts(ask, example)`` calls ``ask(request)`` whenever it needs something of all rows, once or in several
rounds, and goes on with the merged answer. A request is a picklable function of the rows of one part; two answers add
up by ``request.add``, in any order. All charges and all noise of the central model stay where `fit_parts` runs.
"""

from dataclasses import field
from typing import NamedTuple

from dpestim.base import PrivateEstimator
from dpestim.privacy import ambient
from dpestim.records import record
from dpestim.rng import WordSource

#: What a fitted estimator does not take to workers: what binds it to a ledger and to the rows.
_NOT_SENT = ("summary_", "_bound", "_bound_relation", "_stays_bound", "_reservations", "_dpestim_format",
             "_dpestim_sent", "_sklearn_version")


class Place(NamedTuple):
    """Where rows of a part stand: the number of the part, and how many rows of it came before."""

    part: int = 0
    before: int = 0


@record
class Blueprint:
    """An estimator without state and without a ledger: what a worker builds, reads rows with, and throws away.

    Parameters
    ----------
    kind : class
    params : dict
        Parameters; estimators among them are blueprints, too.
    strict : bool
    relation : str or None
        What the block around the driver says.
    """

    kind: type
    params: dict
    strict: bool = False
    relation: str | None = None
    #: What a later round of reports has to know of the rounds before: all of it is published.
    state: dict = field(default_factory=dict)

    @classmethod
    def of(cls, estimator, fitted=False):
        """Return the blueprint of an estimator, as the block around this place sees it; with what it has published."""
        params = {name: _sent(value) for name, value in estimator.get_params(deep=False).items()}
        if "ledger" in params:
            params["ledger"] = None
        relation = estimator._relation().value if getattr(estimator, "neighbours", "") is None else None
        state = {}
        if fitted:  # (an exact summary is as secret as the rows, and nothing that is published needs it)
            kept = estimator.__getstate__()
            state = {name: _sent(value, True) for name, value in kept.items() if name not in {*params, *_NOT_SENT}}
        return cls(type(estimator), params, estimator._is_strict(), relation, state)

    def build(self):
        """Return the estimator."""
        made = self.kind(**{name: _received(value) for name, value in self.params.items()})
        made._bound = (None, self.strict)
        if self.relation is not None:
            made._bound_relation = self.relation
        vars(made).update({name: _received(value) for name, value in self.state.items()})
        return made


class Request:
    """Base of what is asked of rows; a sub-class brings `of_rows` and ``add``."""

    #: Whether a part must know how many rows the parts before it have.
    needs_order = False

    def __call__(self, rows, place=None):
        """Return the answer of rows, a tuple of what `fit` takes; None where there are none."""
        return self.of_rows(rows, place) if size(rows) else None

    def of_rows(self, rows, place):
        """Return the answer of rows, of which there may be none."""
        raise TypeError(f"{type(self).__name__} does not say what rows answer: implement `of_rows`")

    def of_nothing(self, example):
        """Return the answer where no part has a row, as `fit` of no rows has it: whether there is one may be secret."""
        return self.of_rows(tuple(rows[:0] for rows in example), Place())


@record
class Summarize(Request):
    """Asks for the exact summary of the rows: as secret as they are."""

    blueprint: Blueprint

    def of_rows(self, rows, place):
        """Return the summary of rows."""
        found = self.blueprint.build().summarize(*rows)
        return getattr(found, "summary_", found)

    @staticmethod
    def add(one, other):
        """Return the summary of both; neither is changed."""
        return one + other


@record
class CountRows(Request):
    """Asks for the number of rows: exact, and public where neighbours have one row replaced.

    They are read as a fit in rounds will read them: rows that it would refuse must be refused before it charges.
    """

    blueprint: Blueprint
    #: what `_read_part` takes besides the rows
    known: tuple = ()

    #: Whether rows will be asked again: data that can be read once are refused at once then.
    again = True
    #: Whether the answer can be done without: then `ask` returns None for data that can be read once.
    spared = False

    def of_rows(self, rows, place):
        """Return the number of rows."""
        self.blueprint.build()._read_part(rows, *self.known)
        return size(rows)

    @staticmethod
    def add(one, other):
        """Return the number of rows of both."""
        return one + other


@record
class CheckRows(CountRows):
    """Asks for the number of rows as `CountRows` does, where one more reading is possible.

    Rows that a fit of one pass would refuse are then refused before it charges.
    """

    again = False
    spared = True

    def of_rows(self, rows, place):
        """Return the number of rows; in strict mode no value is refused, and one row shows the columns."""
        super().of_rows(tuple(own[:1] for own in rows) if self.blueprint.strict else rows, place)
        return size(rows)


@record
class CountReports(Request):
    """Asks for counts of the reports of rows, which are randomised where they are.

    Noise of a row is a function of the key and of the row's place: a part that is read again, by a second attempt or by
    two workers at once, gives the same reports. Other noise for the same users would tell twice as much of them.
    """

    blueprint: Blueprint
    #: of the random source: whoever knows it can take the noise away
    key: bytes = field(repr=False)
    seeded: bool

    @property
    def needs_order(self):
        """With a seed, rows have the noise that they have on one machine: it depends on how many came before."""
        return self.seeded

    def of_rows(self, rows, place):
        """Return an aggregate of the reports."""
        return self.blueprint.build()._count_sent(rows, self, place)

    def of_nothing(self, example):
        """Raise ValueError: how many users report is public."""
        raise ValueError("the data must have at least one row")

    @staticmethod
    def add(one, other):
        """Return the aggregate of both; neither is changed."""
        return one._copied().merge(other)


@record
class Privatize(CountReports):
    """Asks for the reports of rows, which stay where they are; the same as `CountReports` counts."""

    #: The names of the columns of all parts: reports carry none, so that nobody could tell those of another order.
    names: list | None = None
    #: Whether to return what `transform` makes of the reports, in place of them.
    transforms: bool = False

    def of_rows(self, rows, place):
        """Return the reports of rows, an array."""
        if names_in(rows[0]) != self.names:
            raise ValueError("all parts must have the same columns, in the same order: reorder or rename those of one, "
                             "and give all rows as data frames, or all as arrays")
        made = self.blueprint.build()
        if not self.transforms:
            return made._client_here()._privatize_sent(rows, self, place)
        return made._transformed_reports(made._privatize_sent(rows, self, place), rows[0])


@record
class Transform(Request):
    """Asks for what a method of a fitted estimator makes of each row; exact, and as secret as the rows."""

    blueprint: Blueprint
    method: str

    def of_rows(self, rows, place):
        """Return what the method returns."""
        with ambient.unnoted():  # (who asked has been noted, once)
            return getattr(self.blueprint.build(), self.method)(rows[0])


@record
class CountGiven(Request):
    """Asks for counts of reports that clients have made."""

    blueprint: Blueprint

    add = staticmethod(CountReports.add)

    def of_rows(self, rows, place):
        """Return an aggregate of reports."""
        made = self.blueprint.build()
        return made.aggregate(made._reports_of(rows[0]))


@record
class InProcesses:
    """Asks each process that has answered to call a function: of rows it learns nothing, and nothing comes back.

    Not each engine can reach all of its processes: what must happen, happens without this, too.
    """

    call: object


def size(rows):
    """Return how many rows there are in a tuple of what `fit` takes."""
    return rows[0].shape[0] if hasattr(rows[0], "shape") else len(rows[0])


def names_in(X):
    """Return the names of the columns of X, a list, or None where these are no strings."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def words_of(request, place):
    """Return the random source of a request for a place: with a seed, the one of one machine."""
    source = WordSource.of_key(request.key, request.seeded)
    return source if request.seeded else source.part(place.part)


def _sent(value, fitted=False):
    if isinstance(value, PrivateEstimator):
        return Blueprint.of(value, fitted)
    if type(value) in (list, tuple):
        return type(value)(_sent(part, fitted) for part in value)
    if type(value) is dict:
        return {key: _sent(part, fitted) for key, part in value.items()}
    return value


def _received(value):
    if isinstance(value, Blueprint):
        return value.build()
    if type(value) in (list, tuple):
        return type(value)(map(_received, value))
    if type(value) is dict:
        return {key: _received(part) for key, part in value.items()}
    return value
