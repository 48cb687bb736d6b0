"""Parts that Dask holds: a request is one graph of few tasks, and answers are added on the cluster.

A task of Dask costs 0.5 to 3 ms, which is as long as a part of a million rows takes to answer. So one task makes a part
and answers for it, a small request travels within its tasks, and nothing but the sum of all answers is fetched.
"""

from contextlib import suppress
from functools import cached_property, partial, reduce
from uuid import uuid4

import numpy as np

from dpestim.distributed.dask_plan import futures_of, groups_of, parts_of
from dpestim.distributed.parts import Split, added, frame_of, frame_of_records, made_up
from dpestim.passes import Place, size

#: Answers that one task adds.
_TOGETHER = 16
#: A request of more bytes is sent once, by a task of its own; others are sent in each task.
_MOST_BYTES = 4096


class DaskParts:
    """A Dask DataFrame or Series, an Array in blocks of rows, or a Bag of records (dicts)."""

    def __init__(self, data, y=None, users=None, columns=None):
        self.targets = None
        if users is not None and (y is not None or not hasattr(data, "columns")):
            raise ValueError("users must name a column of a Dask DataFrame, without y: Dask brings the rows of a user "
                             "together by this column")
        if y is not None and not isinstance(y, str):
            y, self.targets = None, _rows_together(y)
        self.split = Split.by(y, users, columns)
        if hasattr(data, "columns"):
            self.split.check(data.columns)
            data = self.split.project(data)
        if users is not None:  # (all rows of a user must meet in one part, and Dask brings them together)
            data = data.shuffle(on=users)
        self.data, self._planned = _rows_together(data), None

    @property
    def example(self):
        """One made-up row of the columns and types that Dask knows of."""
        X = _like(self.data)
        return self.split(X if self.targets is None else (X, _like(self.targets)))

    @property
    def n_parts(self):
        """How many parts there are."""
        return self.data.npartitions

    def answer(self, request):
        """Return the merged answer of all parts."""
        from dask.delayed import Delayed

        layer, names = self._answers(request, self._groups())
        level = uuid4().hex
        while len(names) > 1:
            level = f"total-{level}"
            groups = [names[at : at + _TOGETHER] for at in range(0, len(names), _TOGETHER)]
            names = [(level, number) for number in range(len(groups))]
            layer |= {name: (partial(_total, request.add), group) for name, group in zip(names, groups)}
        return Delayed(names[0], self._graph(level, layer), layer=level).compute() if names else None

    @staticmethod
    def in_processes(call):
        """Call a function in each worker, where there is a cluster."""
        with suppress(Exception):  # (a fit that was paid must not end because a worker did)
            from distributed import default_client

            default_client().run(call)

    def reports(self, request, shown):
        """Return what the rows of all parts are turned into, a Dask Array."""
        import dask.array as da

        like = shown()
        layer, names = self._answers(request, [[number] for number in range(len(self._parts))])
        name, chunks = f"reports-{uuid4().hex}", ((np.nan,) * len(names), *((n,) for n in like.shape))
        ends = (0,) * len(like.shape)
        layer |= {(name, number, *ends): (like.filled, own) for number, own in enumerate(names)}
        return da.Array(self._graph(name, layer), name, chunks, like.dtype)

    def _answers(self, request, groups):
        """Return (tasks by their keys, the keys of those that answer for a group of parts each)."""
        import cloudpickle  # (the class of an estimator, or a function in it, may be the user's)

        name, layer, known, asked = uuid4().hex, {}, (request,), ()
        if len(cloudpickle.dumps(request)) > _MOST_BYTES:
            known, asked = (), (f"request-{name}",)
            layer[asked[0]] = request
        before = np.cumsum([0, *self._sizes]).tolist() if request.needs_order else None
        names = [(f"answer-{name}", number) for number in range(len(groups))]
        for key, group in zip(names, groups):
            parts = [(Place(0, before[number]) if before else Place(number), self._parts[number]) for number in group]
            given = [self._held.get(piece, piece) for _, part in parts for piece in part.given]
            layer[key] = (partial(_answer, self.split, parts, *known), *asked, *given)
        return layer, names

    def _groups(self):
        """Return lists of the numbers of parts that one task answers for."""
        if self._planned is None:
            groups, final = groups_of(self._parts, [self.data, self.targets, *self._held.values()])
            if not final:  # (parts are being made: where they will be is not known)
                return groups
            self._planned = groups
        return self._planned

    @cached_property
    def _sizes(self):
        """How many rows each part has."""
        found = self.answer(_Sizes()) or {}
        return [found[number] for number in range(len(found))]

    @cached_property
    def _pieces(self):
        """The parts of the rows and, where there are, of the targets, as Dask makes them with fewest tasks."""
        pieces = [list(np.ravel(own.to_delayed())) for own in (self.data, self.targets) if own is not None]
        if len(pieces[0]) != len(pieces[-1]):
            raise ValueError(f"y must have the parts of the data: {len(pieces[1])} are not {len(pieces[0])}. Rechunk "
                             "or repartition one like the other")
        return pieces

    @cached_property
    def _parts(self):
        """How each part is had."""
        graph = {}
        for own in self._pieces:
            graph |= own[0].dask if own else {}
        parts = parts_of(graph, [tuple(piece.key for piece in own) for own in zip(*self._pieces)])
        self._held = futures_of({key for part in parts for key in part.given}.difference(graph))
        return parts

    def _graph(self, name, layer):
        """Return what Dask computes: tasks, with the graphs of the data (the parts of one have one)."""
        from dask.highlevelgraph import HighLevelGraph

        return HighLevelGraph.from_collections(name, layer, dependencies=[own[0] for own in self._pieces if own])


class _Sizes:
    """Asks how many rows each part has; the answer of an empty part counts, too."""

    needs_order = False

    def __call__(self, rows, place):
        return {place.part: size(rows)}

    @staticmethod
    def add(one, other):
        return one | other


def _rows_together(data):
    """Return a collection whose parts are whole rows; those of a Bag may be generators, which are no data."""
    if hasattr(data, "take"):
        return data.map_partitions(list)
    return data.rechunk({1: -1}) if getattr(data, "ndim", 0) == 2 and hasattr(data, "rechunk") else data


def _like(data):
    """Return a made-up row of a collection."""
    if hasattr(data, "chunks"):
        return made_up(np.empty((0, *data.shape[1:]), data.dtype))
    if hasattr(data, "take"):
        import pandas

        return made_up(pandas.DataFrame(_first_record(data)))
    return made_up(data._meta)


def _first_record(bag):
    """Return a list of the first record of a bag, which the first parts may be without; empty where there is none."""
    for part in bag.to_delayed():
        for record in part.compute():
            return [record]
    return []


def _frame(rows):
    """Return the rows of a part of any collection; records as a frame."""
    return frame_of_records(rows) if isinstance(rows, list) else frame_of(rows)


def _answer(split, parts, request, *given):
    """Return the answer of parts, each (place, part), which are made one after the other from what is given."""
    given, total = iter(given), None
    for place, part in parts:  # (no name here holds a part: it must be gone when the next is made)
        total = added(request, total, request(split(_made(part, [next(given) for _ in part.given])), place))
    return total


def _made(part, given):
    """Return the rows of a part, or a tuple (rows, targets)."""
    import dask

    known = dict(zip(part.given, given))
    if part.tasks:
        tasks = {**part.tasks, **{key: (partial(_same, own),) for key, own in known.items()}}
        known = dict(zip(part.keys, dask.get(tasks, list(part.keys))))
    X, *targets = [known[key] for key in part.keys]
    return (_frame(X), *targets) if targets else _frame(X)


def _same(rows):
    return rows


def _total(plus, answers):
    found = [answer for answer in answers if answer is not None]
    return reduce(plus, found) if found else None
