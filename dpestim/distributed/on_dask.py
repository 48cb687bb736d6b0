"""Parts that Dask holds: a request is a task for each part, and answers are added on the cluster."""

import numpy as np

from dpestim.distributed.parts import Split, added, frame_of, frame_of_records, made_up
from dpestim.passes import Place, size

#: Answers that one task adds.
_TOGETHER = 16


class DaskParts:
    """A Dask DataFrame or Series, an Array in blocks of rows, or a Bag of records (dicts)."""

    def __init__(self, data, y=None, users=None):
        self.targets = None
        if users is not None and (y is not None or not hasattr(data, "columns")):
            raise ValueError("users must name a column of a Dask DataFrame, without y: Dask brings the rows of a user "
                             "together by this column")
        if y is not None and not isinstance(y, str):
            y, self.targets = None, _rows_together(y)
        self.split = Split.by(y, users)
        if users is not None:  # (all rows of a user must meet in one part, and Dask brings them together)
            data = data.shuffle(on=users)
        self.data = _rows_together(data)

    @property
    def example(self):
        """One made-up row of the columns and types that Dask knows of."""
        X = _like(self.data)
        return self.split(X if self.targets is None else (X, _like(self.targets)))

    def answer(self, request):
        """Return the merged answer of all parts."""
        import dask

        asked, answers = self._answers(request)
        while len(answers) > 1:
            answers = [dask.delayed(_total)(asked, answers[at : at + _TOGETHER])
                       for at in range(0, len(answers), _TOGETHER)]
        return dask.compute(answers[0])[0] if answers else None

    def reports(self, request, width, dtype):
        """Return the reports of all parts, a Dask Array."""
        import dask
        import dask.array as da

        _, answers = self._answers(request)
        parts = [da.from_delayed(dask.delayed(_filled)(answer, width, dtype), (np.nan, width), dtype)
                 for answer in answers]
        return da.concatenate(parts, allow_unknown_chunksizes=True)

    def _answers(self, request):
        """Return (the request as a task knows it, the answer of each part, to be made)."""
        import dask

        pieces = self._pieces()
        places = [Place(number) for number in range(len(pieces))]
        if request.needs_order:
            sizes = dask.compute(*[dask.delayed(_size)(self.split, piece) for piece in pieces])
            places = [Place(0, int(before)) for before in np.cumsum([0, *sizes[:-1]])]
        asked = dask.delayed(request, traverse=False)
        return asked, [dask.delayed(_answer)(asked, self.split, piece, place) for piece, place in zip(pieces, places)]

    def _pieces(self):
        import dask

        pieces = _delayed(self.data)
        if self.targets is None:
            return pieces
        others = _delayed(self.targets)
        if len(others) != len(pieces):
            raise ValueError(f"y must have the parts of the data: {len(others)} are not {len(pieces)}. Rechunk or "
                             "repartition one like the other")
        return [dask.delayed(_pair)(X, y) for X, y in zip(pieces, others)]


def _rows_together(data):
    """Return a collection whose parts are whole rows."""
    return data.rechunk({1: -1}) if getattr(data, "ndim", 0) == 2 and hasattr(data, "rechunk") else data


def _delayed(data):
    pieces = data.to_delayed()
    return list(pieces.ravel() if isinstance(pieces, np.ndarray) else pieces)


def _like(data):
    """Return a made-up row of a collection."""
    if hasattr(data, "chunks"):
        return made_up(np.empty((0, *data.shape[1:]), data.dtype))
    if hasattr(data, "take"):
        import pandas

        return made_up(pandas.DataFrame(list(data.take(1))))
    return made_up(data._meta)


def _frame(rows):
    """Return the rows of a part of any collection; records as a frame."""
    return frame_of_records(rows) if isinstance(rows, list) else frame_of(rows)


def _pair(X, y):
    return _frame(X), y


def _size(split, piece):
    return size(split(piece if type(piece) is tuple else _frame(piece)))


def _answer(request, split, piece, place):
    return request(split(piece if type(piece) is tuple else _frame(piece)), place)


def _total(request, answers):
    total = None
    for answer in answers:
        total = added(request, total, answer)
    return total


def _filled(answer, width, dtype):
    return np.empty((0, width), dtype) if answer is None else answer
