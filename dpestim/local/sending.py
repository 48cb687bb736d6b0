"""One record on a client: where nothing is left to be looked at but its values, they go straight to the kernels.

A `Sender` holds what a dtype and some columns settle for good: how values become codes, and where reports lie. It
keeps no words, no values and no memory to work in, so that threads, copies and forked processes may share it. Whatever
it does not know, and every value that it would have to refuse, is left to `Client.privatize`, before anything is paid
or drawn.
"""

from functools import lru_cache

import numpy as np

from dpestim.local.columns import Columns
from dpestim.local.origin import sign
from dpestim.rng import sums_here
from dpestim.words_of_one import words_of_one

#: What a sub-class of a client, or a client, may read or pay in its own way: then it is asked.
_ASKED = frozenset({"_container", "_names_of", "_parts", "_pay", "_read", "_schema"})
#: Dtypes of which the senders of some columns are kept: of strings each length has one.
_KEPT = 8


class Sender:
    """Sends records of one dtype.

    Parameters
    ----------
    columns : Columns
    coders : list of callables
        One for each column, from a record to its codes, or to None where somebody else must look at it.
    """

    def __init__(self, columns, coders):
        self._columns, self._width, self._dtype = columns, columns.report_width, columns.dtype
        self._coders = coders
        self._only = columns.laws[0] if len(columns) == 1 else None
        self._parts = list(zip(columns.laws, columns.slices))
        self._n_words = [law.n_words + law.n_spare for law in columns.laws]

    def codes(self, X):
        """Return the codes of each column of a record, or None where somebody else must look at it."""
        found = []
        for coder in self._coders:
            codes = coder(X)
            if codes is None:
                return None
            found.append(codes)
        return found

    def send(self, codes):
        """Return the report of a record, by words of its own."""
        out = np.empty((1, self._width), self._dtype)
        if self._only is not None:
            self._only.privatize(codes[0], words_of_one(self._n_words[0], 0), out)
            return sign(out, self._columns)
        for number, (law, part) in enumerate(self._parts):
            report = np.empty((1, law.report_width), law.report_dtype)
            law.privatize(codes[number], words_of_one(self._n_words[number], number), report)
            out[:, part] = report
        return sign(out, self._columns)


def sent(client, X):
    """Return the report of one record as `privatize` does, or None where that must look at more than its values."""
    if type(X) is not np.ndarray or X.ndim != 2 or len(X) != 1 or client.random_state is not None:
        return None
    if X.dtype.kind not in _kinds_of(type(client)) or client._is_strict() or not _ASKED.isdisjoint(vars(client)):
        return None  # (in strict mode a value that is none of the domain must not take longer)
    client._check_call_parameters()
    columns = client._columns
    if columns is None:
        if not (X.size and client._is_declared):
            return None
        columns = client._declared_columns(X.shape[1])
    elif "feature_names_in_" in vars(client):  # (scikit-learn warns of an array that has none)
        return None
    if columns.n_features != X.shape[1]:
        return None
    sender = _sender(columns, X.dtype)
    codes = sender and sender.codes(X)
    if codes is None or client._find_ledger() is not None or sums_here.get() is not None:
        return None
    return sender.send(codes)


@lru_cache(maxsize=256)
def _kinds_of(cls):
    """Return the kinds of dtypes that clients of a class read as they stand; none, where a sub-class has its ways."""
    home = next((kind for kind in cls.__mro__ if "_plain_kinds" in vars(kind)), None)
    own = home is not None and all(getattr(cls, name) is getattr(home, name) for name in _ASKED)
    return home._plain_kinds if own else ""


def _sender(columns, dtype):
    """Return the sender of records of a dtype, or None where there is none."""
    senders = columns.senders
    try:
        return senders[dtype]
    except KeyError:
        pass
    coders = [None]
    if type(columns) is Columns:
        coders = [column.coder_of_one(dtype, place.start) for column, place in zip(columns, columns.features)]
    if len(senders) >= _KEPT:
        senders.clear()
    sender = senders[dtype] = None if any(coder is None for coder in coders) else Sender(columns, coders)
    return sender  # (which another thread may have cleared meanwhile)
