"""Sparse vectors that are broken: noise that is too small, drawn too often or used twice; lost cut-offs."""

import copy

import numpy as np
from sklearn.base import BaseEstimator

from dpestim.base import PICKLE_FORMAT
from dpestim.central import SparseVector
from dpestim.central.selection.comparisons import Comparisons
from dpestim.central.selection.sparse_vector import SparseVectorLaw

ONE = {"epsilon": 1.0, "sensitivity": 1}
THREE = {"epsilon": 2.0, "sensitivity": 1, "max_positives": 3}
NUMBERS = {**THREE, "value_fraction": 0.5}


class _UnscaledLaw(SparseVectorLaw):
    weight = 2


class Unscaled(SparseVector):
    """Noise of queries that does not grow with the number of positives (Lee and Clifton)."""

    def law(self):
        law = super().law()
        return _UnscaledLaw(law.epsilon, law.sensitivity, law.exponent, law.max_positives)


class HalfScaled(SparseVector):
    """The noise of monotone queries for any."""

    def law(self):
        law = super().law()
        return SparseVectorLaw(law.epsilon, law.sensitivity, law.exponent, law.max_positives, True)


class _Broken(SparseVector):
    """Replaces the state behind the answers."""

    _state = Comparisons

    def _start(self, law):
        run = super()._start(law)
        run.__class__ = self._state
        return run


class Redraws(_Broken):
    """Draws the noise of the threshold again for each query."""

    class _state(Comparisons):
        def _compare(self, codes, limits):
            answers = []
            for k in range(len(codes)):
                if self.left:
                    self._offset = int(np.random.default_rng(int(self._take(1)[0]) % 2**32).laplace() / float(
                        self.law.threshold.rate_of_decay))
                    answers += super()._compare(codes[k : k + 1], limits[k : k + 1])
            return answers


class NoQueryNoise(_Broken):
    """Adds no noise to queries (Stoddard)."""

    class _state(Comparisons):
        def _take(self, n):
            return np.zeros(n, np.int64)


class SameNumbers(_Broken):
    """Releases as a number what was compared (Roth's notes)."""

    class _state(Comparisons):
        def _compare(self, codes, limits):
            noise, step = self._take(len(codes)), 2.0**self.law.exponent
            self._take = lambda n: noise
            answers = super()._compare(codes, limits)
            del self._take
            return [a if a is None else (c + z) * step for a, c, z in zip(answers, codes.tolist(), noise.tolist())]


class NoCutOff(_Broken):
    """Answers for ever (Chen)."""

    class _state(Comparisons):
        def _compare(self, codes, limits):
            left, self.left = self.left, len(codes) + 1
            answers = super()._compare(codes, limits)
            self.left = max(1, left - sum(a not in (None, False) for a in answers))
            return answers


class CutOffForEachCall(SparseVector):
    """Begins to count again with each call."""

    def _start(self, law):
        self._run = None
        return super()._start(law)


class SameNoise(_Broken):
    """The same noise in each call."""

    class _state(Comparisons):
        _first = None

        def _take(self, n):
            self._first = super()._take(500) if self._first is None else self._first
            return self._first[:n]


class Shows(SparseVector):
    """Shows its noise."""

    def __repr__(self):
        return f"{super().__repr__()} {self._run and self._run._offset}"


class Copies(SparseVector):
    """Can be cloned whenever."""

    def _refuse_copies(self):
        pass

    def __getstate__(self):
        kept = {k: v for k, v in BaseEstimator.__getstate__(self).items() if k != "_run"}
        return {**kept, "_dpestim_format": PICKLE_FORMAT}

    def __copy__(self):
        return copy.deepcopy(self)


class PaysEachCall(SparseVector):
    """Charges for each call."""

    def _start(self, law):
        if self._run is not None:
            self._pay()
        return super()._start(law)


BROKEN = [
    (Unscaled, THREE, "check_queries_keep_epsilon"),
    (HalfScaled, ONE, "check_queries_keep_epsilon"),
    (Redraws, ONE, "check_queries_follow_the_law"),
    (NoQueryNoise, ONE, "check_queries_follow_the_law"),
    (SameNumbers, NUMBERS, "check_numbers_have_noise_of_their_own"),
    (NoCutOff, ONE, "check_queries_stop"),
    (CutOffForEachCall, THREE, "check_queries_stop"),
    (SameNoise, ONE, "check_queries_are_one_sequence"),
    (Shows, ONE, "check_queries_seeds"),
    (Copies, ONE, "check_queries_cannot_be_copied"),
    (PaysEachCall, ONE, "check_release_charges"),
]
