"""Queries compared with noise that lasts: what a sparse vector keeps from answer to answer (`sparse_vector.md`)."""

import math
import os
from threading import Lock

import numpy as np

from dpestim.central.additive.law import COLUMNS, LARGEST, NoiseStream

#: Purposes of noise: no two share a word.
_THRESHOLD, _QUERY, _NUMBER = 0, COLUMNS, 2 * COLUMNS
#: Queries that are compared at a time, and noise that is drawn ahead for queries that come one by one, at most.
_BLOCK, _AHEAD = 1 << 14, 1 << 10
_END = object()


class Comparisons:
    """The state behind all answers of an object. SECRET: the noise of the threshold decides about every query."""

    def __init__(self, law, guarantee, source):
        self.law, self.guarantee, self.left = law, guarantee, law.max_positives
        self._offset = int(NoiseStream(law.threshold, source, _THRESHOLD).take(1)[0])
        self._noise, self._ahead = NoiseStream(law.query, source, _QUERY), np.empty(0, np.int64)
        self._numbers = NoiseStream(law.number, source, _NUMBER) if law.number else None
        self._more, self._lock, self._process = 1, Lock(), os.getpid()

    def __reduce__(self):
        """Refuse, as what holds it does."""
        raise TypeError("the state of a SparseVector cannot be copied or pickled: make a new SparseVector, which "
                        "charges again")

    def refuse_elsewhere(self):
        """Raise in a process that was forked: there are two of these now, with one noise and two counts."""
        if os.getpid() != self._process:
            raise ValueError("a SparseVector cannot be used in a forked process after its first answer: make a new one "
                             "there, which charges again")

    def answer(self, codes, limits):
        """Return a list of answers, up to the last positive; arrays of as many queries as thresholds."""
        answers = []
        self.refuse_elsewhere()
        with self._lock:
            for at in range(0, len(codes), _BLOCK):
                if not self.left:
                    break
                answers += self._compare(codes[at : at + _BLOCK], limits[at : at + _BLOCK])
        return answers

    def answer_one_by_one(self, codes, limits):
        """Yield answers; a query is read when its answer is asked for, and its threshold after it."""
        while self.left:
            code = next(codes, _END)
            if code is _END:
                return
            limit = next(limits, _END)
            if limit is _END:
                raise ValueError("threshold must have a number for each query, and has fewer numbers than there are "
                                 "queries")
            # (empty: another iterator has had the last positive in the meantime)
            yield from self.answer(code, limit)

    def _compare(self, codes, limits):
        noise = self._take(len(codes))
        if abs(self._offset) > LARGEST // 2:  # then numbers of 64 bits do not hold the sum
            limits = limits.astype(object)
        positive = (codes + noise >= limits + self._offset).astype(bool)
        places = np.flatnonzero(positive)[: self.left].tolist()
        if len(places) == self.left:
            positive = positive[: places[-1] + 1]
        self.left -= len(places)
        if self._numbers is None:
            return positive.tolist()
        answers = [None] * len(positive)
        for place, z in zip(places, self._numbers.take(len(places)).tolist()):
            number = min(max(int(codes[place]) + z, -LARGEST // 2), LARGEST // 2)
            answers[place] = math.ldexp(float(number), self.law.exponent)
        return answers

    def _take(self, n):
        """Return the noise of the next n queries; where they come one by one, it is drawn ahead."""
        missing = n - len(self._ahead)
        if missing > 0:
            self._more = min(2 * self._more, _AHEAD) if n == 1 else missing
            self._ahead = np.concatenate([self._ahead, self._noise.take(self._more)])
        noise, self._ahead = self._ahead[:n], self._ahead[n:]
        return noise
