"""Boosting of rows in parts: what answers keeps no row, and each part does again what scores went through.

Scores of rows follow from the terms that were added, one after the other. A request has all that was done so far, and
one question; a part does what is new to it, and answers in exact integers. A worker keeps the scores of the parts of
the last fit that it saw, until the fit ends or asks nothing for a minute. Where they are lost, a part starts anew and
comes to the same scores.
"""

import threading
import time
import uuid
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from dpestim.ensemble.rounds import Histograms
from dpestim.passes import Blueprint, Request, size
from dpestim.records import record

#: Bytes of parts that a process keeps. A part for which there is no room is read again for each question.
_MOST_BYTES = 1 << 30
#: Seconds after the last question, from which on a process drops them: an engine cannot tell each that a fit is over.
_IDLE = 60.0
_kept, _lock, _clock = {}, threading.Lock(), SimpleNamespace(last=0.0, thread=None)


@record
class Question(Request):
    """Asks rows in parts for exact sums.

    Parameters
    ----------
    fit : str
        Names the fit.
    blueprint : Blueprint
        With what is public of columns and terms.
    kind, cost
        As in `Histograms`.
    done : tuple of (str, tuple)
        Names of methods of `Histograms` that move scores or bins, and what they take, in order.
    name : str
        The method that answers.
    arguments : tuple
    """

    fit: str
    blueprint: Blueprint
    kind: int
    cost: object
    done: tuple = ()
    name: str = ""
    arguments: tuple = ()

    #: (a part is known by its number: scores of one must not be those of another)
    needs_order = False

    def of_rows(self, rows, place):
        """Return the exact answer of a part."""
        with _lock:
            part = _kept.pop((self.fit, place), None)
        if part is None or part.n_done > len(self.done):
            part = Part(self, rows)
        answer = part.answer(self)
        with _lock:
            for key in [key for key in _kept if key[0] != self.fit]:
                del _kept[key]
            if part.n_bytes + sum(other.n_bytes for other in _kept.values()) <= _MOST_BYTES:
                _kept[self.fit, place] = part
            _clock.last = time.monotonic()
            if _kept and (_clock.thread is None or not _clock.thread.is_alive()):  # (a fork has no thread)
                _clock.thread = threading.Thread(target=_drop_when_idle, daemon=True)
                _clock.thread.start()
        return answer

    @staticmethod
    def add(one, other):
        """Return the sum of both; neither is changed."""
        return one + other


def forget():
    """Drop what this process keeps of parts: a fit that has ended leaves no rows behind."""
    with _lock:
        _kept.clear()


def _drop_when_idle():
    while True:
        with _lock:
            left = _clock.last + _IDLE - time.monotonic()
            if left <= 0 or not _kept:
                _kept.clear()
                _clock.thread = None
                return
        time.sleep(left)


class Part:
    """Rows of a part, with their scores."""

    def __init__(self, question, rows):
        self.model, self.n_done = question.blueprint.build(), 0
        (self.numbers, self.columns), targets = self.model._read_part(rows)
        codes = self.model._term_codes(self.numbers, self.columns)
        sizes = [self.model._size(sides) for sides in self.model._sides]
        self.rows = Histograms(codes, sizes, targets, question.kind, question.cost, None, None, self.model.n_jobs)
        self.n_bytes = self.numbers.nbytes + sum(own.nbytes for own in codes) + 16 * size(rows) * max(question.kind, 1)

    def answer(self, question):
        """Do what is new, and return the exact answer."""
        for name, arguments in question.done[self.n_done :]:
            if name == "extend":
                pair, width = arguments
                self.model._add_pair(pair)
                codes = self.model._term_codes(self.numbers, self.columns, len(self.model._terms) - 1)
                arguments = codes[0], width
            getattr(self.rows, name)(*arguments)
        self.n_done = len(question.done)
        return getattr(self.rows, question.name)(*question.arguments)


class PartHistograms(Histograms):
    """Rows in parts, which answer as `Histograms` do; `ask` returns the merged answer to a request."""

    def __init__(self, ask, blueprint, sizes, kind, cost, law, answers):
        super().__init__([], sizes, np.zeros(0), kind, cost, law, answers)
        self._ask, self._question, self._last = ask, Question(uuid.uuid4().hex, blueprint, kind, cost), None

    def merge_all(self, first, groups):
        """Take bins together, of all terms from `first` on."""
        for term, group in enumerate(groups, first):
            self.merge(term, group)

    def merge(self, term, group):
        """Take bins of a term together."""
        self._do("merge", term, group)
        self._sizes[term] = int(group.max()) + 1
        self._bins[term] = np.arange(self._sizes[term])

    def add(self, term, change):
        """Add public numbers to the scores of rows."""
        self._do("add", term, np.array(change))

    def extend(self, pair, width):
        """Take a term more, of a pair of columns."""
        self._do("extend", pair, width)
        self._sizes.append(width)
        self._bins.append(np.arange(width))

    def _do(self, name, *arguments):
        self._question = replace(self._question, done=(*self._question.done, (name, arguments)))

    def _exact(self, name, *arguments):
        """Return the merged answer; the same question, asked again of the same scores, is answered from here."""
        asked = len(self._question.done), name, repr(arguments)
        if self._last is None or self._last[0] != asked:
            self._last = asked, self._ask(replace(self._question, name=name, arguments=arguments))
        return self._last[1]

    def _counted(self, term):
        return self._exact("_counted", term)

    def _squared(self, start):
        return self._exact("_squared", start)

    def _crossed(self, first, second, *groups):
        return self._ask(replace(self._question, name="_crossed", arguments=(first, second, *groups)))

    def _pass(self, term):
        return self._exact("_pass", term)
