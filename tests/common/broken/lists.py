"""Randomised neighbour lists whose users are not on their own, or whose noise is not what is stated."""

import numpy as np
from scipy import sparse

from dpestim.graph import DegreeEstimator, EdgeCountEstimator, RNLTransformer
from dpestim.graph.lists.flips import BitLaw
from dpestim.graph.lists.reading import Lists


class FlipsForMore(RNLTransformer):
    """Bits keep more than is stated."""

    @property
    def bit_law_(self):
        """The law of another epsilon."""
        return BitLaw(2 * super().bit_law_.epsilon)


class ReportsTwice(RNLTransformer):
    """With half of the lists, an edge is reported by both of its users all the same."""

    def _noisy(self, found, source):
        self.lists = "whole"
        try:
            return super()._noisy(found, source)
        finally:
            self.lists = "half"


class FlipsLess(RNLTransformer):
    """Every third flip is left out."""

    def _noisy(self, found, source):
        noisy, law = super()._noisy(found, source), self.bit_law_
        keys = noisy.rows * noisy.n_nodes + noisy.nodes
        truth = found.after() if self._half else found
        false = ~np.isin(keys, truth.rows * noisy.n_nodes + truth.nodes)
        keep = ~(false & (np.cumsum(false) % 3 == 0)) | (law.q > 1)
        starts = np.concatenate([[0], np.cumsum(keep)])[noisy.starts]
        return Lists(noisy.users, starts, noisy.nodes[keep], noisy.n_nodes)


class FlipsNotTheLast(RNLTransformer):
    """The bit of the last node is reported as it is."""

    def _noisy(self, found, source):
        noisy, last = super()._noisy(found, source).matrix().tolil(), found.n_nodes - 1
        noisy[:-1, [last]] = found.matrix()[:-1][:, [last]]
        noisy = noisy.tocsr()
        return Lists(found.users, noisy.indptr.astype(np.int64), noisy.indices.astype(np.int32), found.n_nodes)


class NoiseOfTheCall(RNLTransformer):
    """Noise belongs to the place of a user among those who report."""

    def _noisy(self, found, source):
        numbered = Lists(np.arange(len(found.users)), found.starts, found.nodes, found.n_nodes)
        return super()._noisy(numbered if not self._half else found, source)


class ReadsWholeNumbers(RNLTransformer):
    """Takes an array of floats for one without edges."""

    def privatize(self, X, users=None):
        return super().privatize(X * 0 if isinstance(X, np.ndarray) and X.dtype == float else X, users)


class PaysLate(RNLTransformer):
    """Charges for everybody, whoever reports."""

    def _charge(self, guarantee, n_rows, columns=()):
        super()._charge(guarantee, 12, columns)


class OneSeed(RNLTransformer):
    """Secure reports repeat their noise."""

    def _paid(self, X, users=None):
        found, source = super()._paid(X, users)
        return found, type(source)(0) if self.random_state is None else source


class SymmetricInStrictMode(RNLTransformer):
    """In strict mode an entry counts for both of its users."""

    def privatize(self, X, users=None):
        if self._is_strict() and users is None:
            X = np.maximum(X != 0, (X != 0).T)
        return super().privatize(X, users)


class PacksFromTheTop(RNLTransformer):
    """Packed bits are the other way round."""

    def _randomised(self, found, source):
        reports = super()._randomised(found, source)
        if sparse.issparse(reports):
            return reports
        return np.packbits(np.unpackbits(reports, axis=1, bitorder="little"), axis=1)


class HalfTheNoise(EdgeCountEstimator):
    """Numbers have half of the noise that is stated."""

    def _randomised(self, found, source):
        counted = found.after().lengths
        noise = super()._randomised(found, source) - counted
        return counted + noise // 2


class CountsTwice(DegreeEstimator):
    """Reports their degree and adds what both users know."""

    def _randomised(self, found, source):
        return super()._randomised(found, source) + found.lengths


class TakesUsersTwice(EdgeCountEstimator):
    """A user who reports again takes the place of another one."""

    def _take(self, read, seeded, afresh=False):
        if self._seen is not None and len(read.users) == 1:
            return self
        return super()._take(read, seeded, afresh)


class ForgetsTheFalse(EdgeCountEstimator):
    """Counts reported ones as they are, though many are false."""

    def _estimates(self, read):
        return {**super()._estimates(read), "edges_": float(len(read.nodes))}


class AddsBoth(DegreeEstimator):
    """The error is stated as that of one report, where two are averaged."""

    def _estimates(self, read):
        found = super()._estimates(read)
        return {**found, "standard_error_": found["standard_error_"] * 2**0.5}


_HALF, _WHOLE = RNLTransformer._test_params()
BROKEN = [
    (FlipsForMore, _HALF, "check_lists_keep_epsilon"),
    (ReportsTwice, _HALF, "check_lists_keep_epsilon"),
    (FlipsLess, _HALF, "check_lists_follow_law"),
    (FlipsNotTheLast, _HALF, "check_lists_each_has_noise"),
    (NoiseOfTheCall, _WHOLE, "check_lists_are_apart"),
    (ReadsWholeNumbers, _HALF, "check_lists_containers"),
    (PaysLate, _HALF, "check_lists_charge"),
    (OneSeed, _HALF, "check_lists_seeds"),
    (SymmetricInStrictMode, _WHOLE, "check_lists_strict_mode"),
    (PacksFromTheTop, _WHOLE, "check_lists_formats"),
    (HalfTheNoise, {"epsilon": 1.0}, "check_lists_follow_law"),
    (CountsTwice, {"epsilon": 1.0}, "check_lists_keep_epsilon"),
    (TakesUsersTwice, {"epsilon": 1.0}, "check_lists_aggregate"),
    (ForgetsTheFalse, {"epsilon": 2.0, "method": "rnl"}, "check_lists_exactly"),
    (AddsBoth, {"epsilon": 1.0, "method": "rnl"}, "check_lists_exactly"),
]
