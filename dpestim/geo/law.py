"""The law of a place: noise that falls with the distance, and the nearest place of a region."""

from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim._core import places
from dpestim.geo.layers import _root, layers_of
from dpestim.local.fields import Field, bits_for
from dpestim.local.law import ALL, Promise, Randomizer
from dpestim.privacy.exact import WORD, canonical_amount
from dpestim.rng import Stage

#: Attempts whose words all places have, and those of all attempts; after the last one the report is of the box.
_DENSE, _ATTEMPTS = 4, 64
#: Places of a region, in one coordinate and in both, and those of a law that is enumerated.
LARGEST_SIDE, LARGEST_REGION, LARGEST_ENUMERATED = 1 << 22, 1 << 40, 1 << 10


class PlaceLaw(Randomizer):
    """Base of laws whose inputs and reports are places of a region; a sub-class brings what is drawn.

    Parameters
    ----------
    epsilon : Fraction
        For a metre.
    n_first, n_second : int
        Places of the region in each coordinate.
    step : Fraction
        Metres between neighbouring places.
    manhattan : bool
        Whether distances are sums of both coordinates' distances; else they are Euclidean.
    """

    relaxation, relaxed_kind = "geo-indistinguishability", ALL
    heavy = True
    code_dtype = np.dtype(np.int32)
    report_width = 1
    word_ns = 20.0

    def __init__(self, epsilon, n_first, n_second, step, manhattan=False):
        super().__init__(epsilon)
        sides = int(n_first), int(n_second)
        if min(sides) < 1 or max(sides) > LARGEST_SIDE or sides[0] * sides[1] > LARGEST_REGION:
            raise ValueError(f"step must be larger, or the bounds closer: a region has at most {LARGEST_SIDE} places "
                             f"in a coordinate, and {LARGEST_REGION} in all")
        if max(sides) == 1:
            raise ValueError("bounds must be further apart than step: take a smaller step")
        self.n_first, self.n_second = sides
        self.step, self.manhattan = canonical_amount(step, "step"), bool(manhattan)
        self.n_inputs = self.n_counts = sides[0] * sides[1]
        self.report_dtype = np.dtype(np.uint32 if self.n_inputs <= 1 << 32 else np.uint64)
        self.report_bits = bits_for(self.n_inputs)
        self.notes = (
            "Epsilon of two places is proportional to their distance on the grid; the stated epsilon is that of the "
            f"two places that are furthest apart, {float(self.diameter):g} metres.",)

    @property
    def diameter(self):
        """The largest distance of two places of the region in metres, rounded up: a Fraction."""
        first, second = self.n_first - 1, self.n_second - 1
        return self.step * (first + second if self.manhattan else _root(first**2 + second**2, True))

    @property
    def promises(self):
        """What any two places of the region have; `relaxed_between` says what two given ones have."""
        return (Promise(ALL, ALL, ALL, self.epsilon * self.diameter),)

    def relaxed_between(self, x, other):
        """Return epsilon of two places, by their numbers, rounded down: epsilon times their distance."""
        i, j = (abs(a - b) for a, b in zip(divmod(x, self.n_second), divmod(other, self.n_second)))
        return self.epsilon * self.step * (i + j if self.manhattan else _root(i * i + j * j, False))

    @property
    def fields(self):
        """The number of the place."""
        return (Field("place", bits_for(self.n_inputs), self.n_inputs),)

    def check_reports(self, reports):
        """Refuse numbers of no place."""
        if int(reports.max()) >= self.n_inputs:
            raise ValueError(f"a report must be the number of a place, below {self.n_inputs}")

    def count(self, reports, counts):
        """Add how often each place was reported."""
        counts += np.bincount(reports[:, 0].astype(np.int64), minlength=self.n_counts)

    def chances(self):
        """Return the transition matrix as an array of floats."""
        return np.array([[float(p) for p in row] for row in self.transition_matrix()])

    def law_indices(self, codes, reports):
        """Return the number of each place, and of each report."""
        return codes[:, 0].astype(np.int64) * self.n_second + codes[:, 1], reports[:, 0].astype(np.int64)

    @property
    def input_codes(self):
        """All places of a small region, else its corners."""
        ends = [np.arange(n) if self.n_inputs <= LARGEST_ENUMERATED else np.unique([0, n - 1])
                for n in (self.n_first, self.n_second)]
        return np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, 2).astype(self.code_dtype)

    def input_of(self, codes):
        """Return the number of the place among the inputs."""
        return self.law_indices(codes, np.zeros((len(codes), 1), self.report_dtype))[0]


class PlanarLaw(PlaceLaw):
    """A report is the number of a place: the one of the region that is nearest to the user's place and noise."""

    slack = "noise that leaves the region is moved to its border, so that far places are told apart by less"

    def __init__(self, epsilon, n_first, n_second, step, manhattan=False):
        super().__init__(epsilon, n_first, n_second, step, manhattan)
        self.layers = layers_of(self.epsilon * self.step, max(self.n_first, self.n_second), self.manhattan)
        self.n_words = 2 * _DENSE

    # ---------------------------------------------------------------- what is sent

    def privatize(self, codes, words, out):
        """Write the number of a place for each place (i, j)."""
        codes, n = np.ascontiguousarray(codes, np.int32), len(codes)
        numbers, done = np.empty(n, np.uint64), np.zeros(n, np.uint8)
        self._attempt(codes, words.dense(Stage.RESPONSE, 2 * _DENSE).reshape(n, -1), numbers, done)
        at, many, per_row = 0, 2, 2 * (_ATTEMPTS - _DENSE)
        left = np.flatnonzero(done == 0)
        while len(left) and at < per_row:  # (twice as many attempts each time: few calls, and few words in vain)
            many = min(many, per_row - at)
            drawn = words.sparse(Stage.RARE, per_row, ((left * per_row + at)[:, None] + np.arange(many)).ravel())
            more, hit = np.empty(len(left), np.uint64), np.zeros(len(left), np.uint8)
            self._attempt(codes[left], drawn.reshape(len(left), many), more, hit)
            numbers[left[hit == 1]] = more[hit == 1]
            left, at, many = left[hit == 0], at + many, 2 * many
        if len(left):  # (2^-40 of the places at most)
            ends = self._tables[0][:0]
            drawn = words.sparse(Stage.SECOND_RARE, 1, left)
            more, hit = np.empty(len(left), np.uint64), np.zeros(len(left), np.uint8)
            self._attempt(codes[left], np.stack([drawn, drawn], axis=1), more, hit, ends)
            numbers[left] = more
        out[:, 0] = numbers

    def _attempt(self, codes, words, numbers, done, ends=None):
        """Try once or several times; without `ends`, nothing but the box is drawn from."""
        all_ends, guide, starts, counts, bits = self._tables
        if ends is not None:
            guide, starts, counts, bits = np.zeros_like(guide), starts[:0], counts[:0], bits[:0]
        places.scatter(codes, np.ascontiguousarray(words), all_ends if ends is None else ends, guide, starts, counts,
                       bits, self.layers.box_bits, self.n_first, self.n_second, self.manhattan, numbers, done)

    @cached_property
    def _tables(self):
        layers = self.layers
        ends = np.cumsum(np.array(layers.masses, object)).astype(np.uint64)
        firsts = np.array([k << 52 for k in range(4096)], np.uint64)
        guide = np.append(np.searchsorted(ends, firsts, side="right"), len(ends)).astype(np.int32)
        return (ends, guide, np.array(layers.starts, np.int64), np.array(layers.counts, np.uint8),
                np.array(layers.bits, np.uint8))

    # ---------------------------------------------------------------- the exact law

    def around(self):
        """Return (weights, total): an array of integers, weight [r + i, r + j] is that of the noise (i, j).

        One attempt ends at a point with this weight over the total, 2^64 4^box_bits 2^62; beyond r the weight is the
        one at the corner. For laws of few places.
        """
        layers = self.layers
        last = layers.starts[-1] + (1 << layers.counts[-1])
        radius = last if self.manhattan else int(_root(last, True)) + 1
        if radius > 512:
            raise ValueError("the law is too large to enumerate: take a larger step")
        at, size = np.abs(np.arange(-radius, radius + 1)), {}
        i, j = np.meshgrid(at, at, indexing="ij")
        sizes = i + j if self.manhattan else i * i + j * j
        for one in np.unique(sizes).tolist():
            size[one] = layers.at(one)
        return np.array([[size[one] for one in row] for row in sizes.tolist()], dtype=object)

    def transition_matrix(self):
        """Return the law of the report of each place, Fractions; for regions of few places."""
        return self._matrix

    @cached_property
    def _matrix(self):
        side, hit = 1 << self.layers.box_bits, self._sums[1]
        total, missed = WORD * side**2 << 62, (1 - hit) ** _ATTEMPTS
        repeated = (1 - missed) / hit
        return self._rows(lambda weight, cells: repeated * Fraction(weight, total) + missed * Fraction(
            cells, side * side))

    def chances(self):
        """Return the same as an array of floats, which takes far less time."""
        side, hit = 1 << self.layers.box_bits, self._sums[1]
        total, missed = WORD * side**2 << 62, float((1 - hit) ** _ATTEMPTS)
        repeated = (1 - missed) / float(hit)
        return np.array(self._rows(lambda weight, cells: repeated * (weight / total) + missed * cells / side**2))

    @cached_property
    def _sums(self):
        """(Sums of the weights of noise from a corner on, without that of the box; the probability of a hit.)"""
        if self.n_inputs > LARGEST_ENUMERATED:
            raise ValueError("the law is too large to enumerate: take a larger step, or a smaller region")
        weights, layers = self.around(), self.layers
        least = layers.anywhere << 62  # the weight of any other point of the box
        hit = Fraction(int((weights - least).sum()) + (least << 2 * layers.box_bits), WORD * 4**layers.box_bits << 62)
        sums = np.zeros((len(weights) + 1,) * 2, dtype=object)
        sums[1:, 1:] = np.cumsum(np.cumsum(weights - least, axis=0), axis=1)
        return sums, hit

    def _rows(self, number):
        """Return, for each place, what `number` makes of the weight and of the points of the box of each report."""
        sums, least = self._sums[0], self.layers.anywhere << 62
        radius, side = len(sums) // 2 - 1, 1 << self.layers.box_bits
        spans = [_spans(n, side, radius) for n in (self.n_first, self.n_second)]
        matrix = []
        for x in range(self.n_first):
            for y in range(self.n_second):
                row = []
                for low0, high0, cells0 in spans[0](x):
                    for low1, high1, cells1 in spans[1](y):
                        near = sums[high0, high1] - sums[low0, high1] - sums[high0, low1] + sums[low0, low1]
                        row.append(number(int(near) + cells0 * cells1 * least, cells0 * cells1))
                matrix.append(row)
        return matrix


def _spans(n, side, radius):
    """Return a function of a place x of n: for each reported place (first, last in `sums`, points of the box)."""
    before = (side - n) // 2

    def spans(x):
        def near(k):  # the place in the sums of noise of so many steps
            return min(max(k + radius, 0), 2 * radius + 1)

        for u in range(n):
            low, high = (-before if u == 0 else u), (side - before if u == n - 1 else u + 1)
            yield near(low - x), near(high - x), high - low

    return spans
