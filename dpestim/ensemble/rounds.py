"""Cyclic rounds of noisy histograms: sums of residuals in bins leave with noise, and everything else is arithmetic.

    Histograms rows of one owner, as codes of bins: noisy counts once, and noisy sums of residuals, so often as was paid
    boost      rounds over terms; it sees noisy histograms alone, besides telling the owner which scores rows now have

A round of a term does not step along its noisy gradient. All noisy sums of a term, of whichever round, are measurements
of one curve: they are averaged, and the curve is estimated anew under smooth priors, by how likely the measurements of
all terms make each scale. With Gaussian noise rounds hence cost next to nothing: twice as many have twice the variance
each, and average it out. Laplace noise grows with their number, so one is best where there is no delta.
"""

import math
from collections import deque
from contextlib import ExitStack
from functools import partial
from threading import get_ident

import numpy as np
from scipy.special import expit, logit, softmax

from dpestim import parallel
from dpestim._core import boosting as kernel
from dpestim.ensemble.curve import Curve, bins_for, merged, offset_of, settled, steps_of

#: Rows that a thread takes at a time, at least; codes of bins there may be.
_BLOCK, _CODES = 1 << 14, 256
#: Bins that are counted for one that is kept; standard errors of a count by which rows may be more.
_FINE, _DOUBT = 8, 0.5
#: Rounds go two by two, between which scores stay, where less than this is seen of a column (`bins_for`).
_CLEAR = 100.0
#: The largest score of a term, of classes and (True) of numbers in [-1, 1].
_MOST = {False: 10.0, True: 2.0}


class Histograms:
    """Rows that answer with noisy histograms; whoever holds the rows is trusted.

    Parameters
    ----------
    codes : list of ndarray of shape (n_rows,)
        The bin of each row, for each term.
    sizes : list of int
        Bins of each term.
    targets : ndarray of shape (n_rows,)
    kind : int
        0 for numbers, 1 for two classes, else the number of classes.
    cost : Cost
    law : NoiseLaw
    answers : dpestim.statistics.calibrated_noise.Answers
        Of these rows alone.
    n_jobs : int, default=None
        Threads; what is answered does not depend on it.
    """

    def __init__(self, codes, sizes, targets, kind, cost, law, answers, n_jobs=None):
        self._codes, self._sizes, self._kind = [np.ascontiguousarray(own, np.uint8) for own in codes], list(sizes), kind
        self._bins = [np.arange(size) for size in sizes]
        self._held = {}  # rows of each bin of a term, where they were counted on the way
        self._targets = np.ascontiguousarray(targets, float)
        self._cost, self._law, self._answers, self._n_jobs = cost, law, answers, n_jobs
        self._n_threads = parallel.threads(-(-len(targets) // _BLOCK), n_jobs)
        self._aside = deque()  # what other threads do before they help with a pass
        self._scores = np.zeros((len(targets), max(kind, 1)))
        self._pending = None  # (codes, what they add to scores): rows move when they are next asked

    def _noisy(self, integers):
        return self._answers.add(self._law, integers)

    def counts(self, term):
        """Return how many rows each bin of a term has, with noise; once for each term."""
        return self._noisy(self._counted(term) * self._cost.weight) / self._cost.weight

    def size(self, term):
        """Return how many bins a term has: a public number."""
        return self._sizes[term]

    def sums(self, term):
        """Return the sums of residuals in each bin of a term, of shape (n_bins, n_outputs), with noise."""
        times, bins = 1 if term else self._cost.lead, self._bins[term]
        whole = np.zeros((int(bins.max()) + 1, self._scores.shape[1]), np.int64)
        np.add.at(whole, bins, self._pass(term))
        return self._noisy(whole * times) * (self._cost.unit / times)

    def draw(self, terms):
        """Draw the noise of the next sums, which are those of these terms in turn, and of nothing else."""
        if self._answers is not None:
            n_outputs = self._scores.shape[1]
            self._answers.draw(self._law, [(int(self._bins[term].max()) + 1) * n_outputs for term in terms])

    def squares(self, start):
        """Return the sum of the squares of the residuals of numbers at one score, each at most 1, with noise."""
        return float(self._noisy(np.array([self._squared(start)]))[0]) / self._cost.square

    @property
    def unit(self):
        """What an integer of the sums stands for, per unit of residual."""
        return self._cost.unit

    def strength(self, first, second, *groups):
        """Return the sum of the sizes of the sums of residuals in the cells of two columns, an integer: **not noisy**.

        For `choose` alone. Groups say what bins of either term are together.
        """
        return int(np.abs(self._crossed(first, second, *groups)).sum())

    def choose(self, law, scores):
        """Return the place of one of several scores, which `strength` made: a private choice."""
        return self._answers.choose(law, scores)

    def extend(self, codes, size):
        """Take a term more."""
        self._codes.append(np.ascontiguousarray(codes, np.uint8))
        self._sizes.append(size)
        self._bins.append(np.arange(size))

    def beside(self, call):
        """Call it beside a pass, on another thread before that helps; at once where there is no other thread.

        It is arithmetic on public numbers, which this thread needs after the pass at the earliest.
        """
        if self._n_threads > 1:
            self._aside.append(call)
        else:
            call()

    def settle(self):
        """Do what was to be done beside passes, and nobody has begun."""
        while self._aside:
            try:
                call = self._aside.popleft()
            except IndexError:  # another thread was quicker
                return
            call()

    # exact and secret, each one pass over rows; those of parts of the rows add up (`dpestim.ensemble.parts`)

    def _counted(self, term):
        """Return how many rows each bin of a term has."""
        if term not in self._held:
            self.merge(term, np.arange(self._sizes[term]))
        return self._held[term][: self._sizes[term]]

    def _squared(self, start):
        """Return the sum of the squares of the residuals of numbers at one score, in integers."""
        off = np.nan_to_num(np.clip(self._targets - start, -1.0, 1.0))
        return np.rint(off * off * self._cost.square).astype(np.int64).sum()

    def _crossed(self, first, second, *groups):
        """Return the sums of residuals in the cells of two columns, in integers."""
        if self._pending:
            self._pass(first)
        one, two = (group[self._codes[term]] for term, group in zip((first, second), groups))
        return self._sums_of((one * (int(groups[1].max()) + 1) + two).astype(np.uint8))

    def _pass(self, term):
        """Return the sums of residuals, in integers, after scores have moved: one pass over rows."""
        return self._sums_of(self._codes[term])[: self._sizes[term]]

    def _sums_of(self, codes):
        n_outputs = self._scores.shape[1]
        before, change = self._pending or (codes, np.zeros((_CODES, n_outputs)))
        taken = np.zeros(self._n_threads, np.int32)  # (pieces of rows, which threads count together)
        this = get_ident()

        def task(own, _):
            if get_ident() != this:
                self.settle()
            sums = np.zeros((_CODES, n_outputs), np.int64)
            kernel.sum_residuals(before, change, codes, self._targets, self._kind, own, taken, self._scores,
                                 sums)
            return sums

        sums = parallel.run(task, self._n_threads, self._n_threads)
        self._pending = None
        return sum(sums)

    def merge_all(self, first, groups):
        """Take bins together, of all terms from `first` on: threads take a term each."""
        def task(one, last):
            for k in range(one, last):
                self.merge(first + k, groups[k], len(groups) == 1)

        parallel.run(task, len(groups), self._n_jobs)

    def merge(self, term, group, in_threads=True):
        """Take bins of a term together: a public function of what was released."""
        codes, places = self._codes[term], np.zeros(_CODES, np.uint8)
        places[: len(group)] = group
        merged = np.empty_like(codes)

        def task(first, last):
            held, ends = np.zeros(_CODES, np.int64), (min(k * _BLOCK, len(codes)) for k in (first, last))
            kernel.merge(codes, places, *ends, merged, held)
            return held

        held = parallel.run(task, -(-len(codes) // _BLOCK), self._n_jobs if in_threads else 1)
        self._held[term] = np.sum(held, axis=0)
        self._codes[term], self._sizes[term] = merged, int(group.max()) + 1
        self._bins[term] = np.arange(self._sizes[term])

    def gather(self, term, bins):
        """Take sums of residuals of a term in these bins of its places from now on; scores are of places."""
        self._bins[term] = bins

    def add(self, term, change):
        """Add public numbers, one for each bin and output of a term, to the scores of rows."""
        if self._pending:
            self._pass(term)
        table = np.zeros((_CODES, self._scores.shape[1]))
        table[: len(change)] = change
        self._pending = self._codes[term], table


def start_of(sums, total, deviation, kind):
    """Return (scores that every row starts with, the curvature there) from the sum of residuals of all rows at 0."""
    # where noise is all there is, shares are even, and numbers in the middle
    even, trusted = 1 / max(kind, 2), 1 / (1 + (deviation / total) ** 2 * (3 if kind == 0 else 12))
    if kind == 0:
        return np.clip(sums.ravel() / total * trusted, -1.0, 1.0), 1.0
    # noise of one number cannot make a class all but certain
    part = trusted / (total + 2 * deviation)
    shares = sums.ravel() * part
    least = max(1e-4, min(0.5 * deviation * part, 0.5 * even))
    shares = np.clip(shares + even, least, 1 - least)
    # rows are not as sure as their mean, and some not at all: the curvature is half way to its largest, in logarithms
    curvature = 0.5 * math.sqrt((shares * (1 - shares)).mean())
    return (logit(shares) if kind == 1 else np.log(shares) - np.log(shares).mean()), curvature


def unsure_of(curve, rows, noise, kind):
    """Return by which part of itself the curvature of a class is off, for noise in its share; 0 for numbers.

    Parameters
    ----------
    curve : Curve
        That of all rows; `rows` is how many there are.
    rows : float
    noise : float
        The variance of the noise of their average sum.
    kind : int
    """
    if not kind:
        return 0.0
    share = sure_of(curve.scores[0], kind)
    return np.minimum(math.sqrt(noise) / rows / np.maximum(share * (1 - share), 1e-9), 1.0)


def sure_of(scores, kind):
    """Return the shares of classes that scores stand for: of one of two, or of each."""
    return expit(scores) if kind == 1 else softmax(scores)


def _and_missing(codes):
    """Return codes and one more, of the bin for missing numbers."""
    return np.append(codes, codes.max(initial=-1) + 1)


def boost(rows, ordered, n_bins, n_rounds, kind, noise, counted, n_rows=None, squared=0.0, lead=1, *,
          pure=False, later=None, done=None):
    """Return (curves of terms, which of their bins each bin belongs to, standard errors) after so many rounds.

    The first term has one bin: all rows start with what its first round says.

    Parameters
    ----------
    rows : Histograms
    ordered : list of bool or tuple
        Whether the bins of a term have an order, all but the last, which is for missing numbers; then there are at
        most `n_bins` once they were counted. Of a pair: two of (how many bins, whether they have an order).
    n_bins : int
    n_rounds : int
    kind : int
        As in `Histograms`.
    noise : float
        The variance of a sum of residuals.
    counted : float
        The variance of a count.
    n_rows : int, default=None
        Where it is public.
    squared : float, default=0
        The standard deviation of the noise of the sum of squares, of numbers.
    lead : int, default=1
        How many times as precise the sums of all rows are as others.
    pure : bool, default=False
        Whether noise is Laplace's: its squares vary by 5/2 of what those of normal noise do, less in an average.
    later : callable, default=None
        From rows, curves and the sampling variance of a residual to more terms, (codes, number of bins, order) each,
        which have as many rounds when those of all others are over.
    done : callable, default=None
        Told how many rounds are over.
    """
    with ExitStack() as stack:  # (from the first wide term on, BLAS has one thread)
        return _boosted(stack, rows, ordered, n_bins, n_rounds, kind, noise, counted, n_rows, squared, lead, pure,
                        later, done)


def _boosted(stack, rows, ordered, n_bins, n_rounds, kind, noise, counted, n_rows, squared, lead, pure, later, done):
    everybody = float(rows.counts(0)[0])
    total = float(n_rows) if n_rows else max(everybody, math.sqrt(counted), 1.0)
    start, curvature = start_of(rows.sums(0), total, math.sqrt(noise) / lead, kind)
    # the sampling variance of a residual in units of the curvature: of classes they are the same
    spread = 1.0
    if kind == 0:
        # (not below what its noise hides: too little would let noise of bins of few rows run away)
        error = squared / total
        spread = min(max(rows.squares(start[0]) / total, 0.0) + error, 1.0)
    # an average over rounds has 9/8 of the variance that a single one with all the budget would have
    signal = curvature * total / math.sqrt(noise * 9 / 8 / n_rounds)
    wide = bins_for(signal * math.sqrt(spread), kind == 0)
    groups, curves, errors, trust = [], [], {}, 2 / (2 + 3 / n_rounds) if pure else 1.0

    def declare_all(first, orders):
        own = []
        for term, in_order in enumerate(orders, first):
            size = rows.size(term)
            # (with fewer bins there is less noise in the counts of those that are kept; the rest is by noisy counts)
            own.append(_and_missing(np.arange(size - 1) * min(size - 1, _FINE * wide) // (size - 1))
                       if in_order is True else np.arange(size))
        rows.merge_all(first, own)
        groups.extend(own)
        for term, in_order in enumerate(orders, first):
            declare(term, in_order)

    def declare(term, in_order):
        size = rows.size(term)
        known, left = settled(rows.counts(term), total, counted) if term else (np.array([total]), 0.0)
        stack.enter_context(parallel.one_thread(len(known)))  # (several threads would only wait for each other)
        joint = _and_missing(merged(known[:-1], wide, n_bins - 1)) if in_order is True else np.arange(size)
        uncertain, held = np.sqrt(left * np.bincount(joint)), np.bincount(joint, weights=known)
        doubt = _DOUBT / n_rounds  # (several rounds mend what a long step did)
        rows.gather(term, joint)
        first = np.zeros_like(start) if term else start
        curves.append(Curve(known, joint, np.minimum(uncertain, (total - held) / doubt), doubt,
                            partial(steps_of, known, in_order), curvature, noise if term else noise / lead**2, first,
                            _MOST[kind == 0], trust, spread, in_order is True))

    def learn(first, over=0):
        pace = 2 if signal < _CLEAR else 1
        for k in range(0, n_rounds, pace):
            most = min(pace, n_rounds - k)  # (the first answer of all rows was the start)
            asked = {term: most - (not term and not k) for term in range(first, len(curves))}
            rows.draw([term for term, times in asked.items() for _ in range(times)])
            for term, times in asked.items():
                if times:
                    curve = curves[term]
                    alike, offset = curves[1:] if term else curves[:1], offset_of(curves[0].scores[0], kind, term)
                    if not k:
                        rows.beside(curve.prepare)
                    sums = sum(rows.sums(term) for _ in range(times)) / times
                    rows.add(term, curve.measure(sums, math.sqrt(times * (k + times)), times, alike, offset))
                if term and k + most == n_rounds:  # (nothing moves this curve any more)
                    rows.beside(partial(find_errors, term))
            if done is not None:
                done(over + min(k + pace, n_rounds))

    def find_errors(term):
        unsure = unsure_of(curves[0], float(curves[0].counts[0]), noise * 9 / 8 / n_rounds, kind)
        errors[term] = curves[term].deviations(unsure)

    declare_all(0, ordered)
    rows.add(0, curves[0].scores)
    learn(0)
    if later is not None:
        shares = sure_of(start, kind)
        varies = spread if kind == 0 else np.sqrt(shares * (1 - shares)).sum() ** 2
        first = len(curves)
        more = later(rows, curves[1:], varies)
        for codes, size, _ in more:
            rows.extend(codes, size)
        declare_all(first, [sides for _, _, sides in more])
        learn(first, n_rounds)
    rows.settle()
    return curves, groups, [errors[term] for term in range(1, len(curves))]
