"""Reports on runs of a program whose bits are too true, shared or of a part of the runs."""

import numpy as np

from dpestim.graph import ControlFlowCoverage
from dpestim.graph.pairs import PairFlips
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource


class WholeEpsilonEach(ControlFlowCoverage):
    """Each block gets all of epsilon, although runs may differ in several."""

    def _law(self, flow):
        return PairFlips(canonical_epsilon(self.epsilon))


class DrawsCoveredBlocks(ControlFlowCoverage):
    """A user draws among the blocks that the run covers: which one is drawn tells."""

    def _randomised(self, runs, source):
        reports = super()._randomised(runs, source)
        drawn = (reports[:, 0] >> 1).astype(int)
        for run, place in zip(runs, range(len(runs))):
            some = np.flatnonzero(run[1:])
            if len(some):
                reports[place] = 2 * some[drawn[place] % len(some)] + (reports[place] & 1)
        return reports


class FlipsTooFew(ControlFlowCoverage):
    """Bits flip less often than stated."""

    def _randomised(self, runs, source):
        twin = ControlFlowCoverage(2 * self.epsilon, flow=self.flow, entry=self.entry, relation=self.relation,
                                   max_blocks=self.max_blocks)
        return twin._randomised(runs, source)


class TakesBitsAsTheyAre(ControlFlowCoverage):
    """Counts the reported ones."""

    def _counted(self, reports, size):
        ones, asked = super()._counted(reports, size)
        return ones + asked // 4, asked


class SaysFarTooMuch(ControlFlowCoverage):
    """Intervals of a tenth."""

    def confidence_interval(self, level=0.95):
        low, high = super().confidence_interval(level)
        return self.counts_ - (self.counts_ - low) / 10, self.counts_ + (high - self.counts_) / 10


class ReadsWholeNumbers(ControlFlowCoverage):
    """Takes an array of floats for runs that cover nothing."""

    def _read(self, X, flow):
        return super()._read(np.zeros_like(X) if getattr(X, "dtype", None) == np.float64 else X, flow)


class PaysForOneRun(ControlFlowCoverage):
    """All runs together are charged as one."""

    def _charge(self, guarantee, n_records):
        super()._charge(guarantee, 1)


class OneSeed(ControlFlowCoverage):
    """Noise has always the same seed."""

    def _randomised(self, runs, source):
        return super()._randomised(runs, WordSource(0))


class ReadsOnes(ControlFlowCoverage):
    """In strict mode an entry that is no 1 is no covered block."""

    def _read(self, X, flow):
        return super()._read((X == 1).astype(float) if self._is_strict() else X, flow)


_STRICT, _RELAXED = ControlFlowCoverage._test_params()
BROKEN = [
    (WholeEpsilonEach, _RELAXED, "check_coverage_keeps_epsilon"),
    (DrawsCoveredBlocks, _STRICT, "check_coverage_keeps_epsilon"),
    (FlipsTooFew, _STRICT, "check_coverage_follows_law"),
    (FlipsTooFew, _RELAXED, "check_coverage_follows_law"),
    (TakesBitsAsTheyAre, _RELAXED, "check_coverage_estimates"),
    (SaysFarTooMuch, _STRICT, "check_coverage_estimates"),
    (ReadsWholeNumbers, _STRICT, "check_coverage_containers"),
    (PaysForOneRun, _STRICT, "check_coverage_charges"),
    (OneSeed, _STRICT, "check_coverage_seeds"),
    (ReadsOnes, _RELAXED, "check_coverage_strict_mode"),
]
