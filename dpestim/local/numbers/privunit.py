"""PrivUnit: means of vectors in a ball, from public candidates; those near the user's vector are likelier."""

import math
import warnings
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product

import numpy as np
from scipy.special import bdtr, betainc, betaincinv

from dpestim._core import privunit
from dpestim.exceptions import PrivacyLeakWarning
from dpestim.inputs import refuse_infinite
from dpestim.local.columns import Columns, column_names
from dpestim.local.numbers.ball import BallColumn, centre_of, radius_of
from dpestim.local.numbers.joint import JointRandomizer
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.local.reports import FieldReports
from dpestim.privacy.category_weights import cap_weights
from dpestim.privacy.exact import WORD, uses_enough
from dpestim.rng import Stage

LARGEST_DIMENSION, MOST_CANDIDATES = 1 << 16, 1 << 16
#: What the radius is in a fixed point.
RADIUS = 1 << 30
#: In the integer coordinates of a candidate: what its length is where these are few, else the root of the mean square.
UNIT, ROOT = float(1 << 15), float(1 << 10)
#: Errors left of frames of signs, times the square of their size: measured, not proven (``privunit.md``).
FRAME_ERROR = 64.0
#: A standard error allows for so many reports that were turned, and as many that were not, besides those seen.
TURNED = 2
#: Floats in a line of the cache.
_LINE = 16
#: Of up to so many reports a standard error is at least what the law makes it; of more it is what is seen.
FEW = 1000


class PrivUnit(FieldReports, JointRandomizer):
    """Ranked candidates: of 2 `n_half`, the `n_top` nearest to the user's direction are e^epsilon times likelier.

    Codes are points of the unit ball in fixed point. A report is a public seed and the number of a candidate.

    Attributes
    ----------
    n_half, n_top : int
        Candidates without their negatives, and how many of all are likelier.
    inside, outside : int
        The weights of both kinds, out of 2^64.
    """

    field_names = ("seed", "candidate")

    heavy = True
    n_words = 3
    code_dtype, report_dtype = np.dtype(np.int32), np.dtype(np.uint64)

    def __init__(self, epsilon, n_numbers, candidates=2048):
        super().__init__(epsilon)
        self.n_numbers = d = n_numbers
        if not 1 <= d <= LARGEST_DIMENSION:
            raise ValueError(f"X must have at most {LARGEST_DIMENSION:,} columns for a mean by ranked candidates")
        if isinstance(candidates, bool) or not isinstance(candidates, int | np.integer) or (
            not 4 <= candidates <= MOST_CANDIDATES or candidates & (candidates - 1)
        ):
            raise ValueError(f"candidates must be a power of two from 4 to {MOST_CANDIDATES}")
        few = d < privunit.DENSE
        self.size = d if few else max(privunit.LEAST, 1 << (d - 1).bit_length())
        self.n_half = 1 if d == 1 else int(candidates) // 2 if few else max(int(candidates) // 2, self.size)
        self.n_counts, self.report_bits = 1 + 2 * d, 65 + math.log2(self.n_half)
        self.field_limits = (None, 2 * self.n_half)
        # what Python does once a block must be small beside the block, and a block must fit the cache
        self.block_words = self.n_words * max(1, (1 << 19) // max(self.size, 64))
        self.n_top = self._best_cap()
        self.inside, self.outside = cap_weights(self.epsilon, self.n_top, 2 * self.n_half)
        if not uses_enough(self.inside, self.outside, self.epsilon):
            self.slack = "a probability is a multiple of 2**-64, which is coarser than this epsilon needs"

    # ---------------------------------------------------------------- what is sent

    def encode(self, block, centre, radius, out):
        """Write the fixed points of rows: offsets from the centre, shortened to the radius, 2^30 a radius."""
        privunit.encode(block, centre, 1 / radius, np.empty(self.n_numbers), out)

    def privatize(self, codes, words, out):
        """Write one report for each point."""
        privunit.answer(codes, *self._asked(words), out[: len(codes)])

    def privatize_values(self, block, centre, radius, words, out):
        """Write one report for each row, as `encode` and `privatize` do, without going through memory twice."""
        offset, code = np.empty(self.n_numbers), np.empty(self.n_numbers, self.code_dtype)
        privunit.answer_rows(block, centre, 1 / radius, offset, code, *self._asked(words), out[: len(block)])

    def _asked(self, words):
        """Return what the kernel takes from the words of rows on, but for the reports."""
        memory = words.scratch(2 * max(self.size, privunit.DENSE) + self.n_half + _LINE, np.float32)
        memory = memory[-(memory.ctypes.data // memory.itemsize) % _LINE :]  # vectors that begin a line are read faster
        return (
            words.dense(Stage.SEED, 1), words.dense(Stage.RESPONSE, 2), self._points, self.n_top, self.inside,
            self.outside, *self._near, memory, words.scratch(self.n_half, np.uint8),
        )

    def public_part(self, reports):
        """Return the seeds."""
        return reports[:, 0]

    def candidates_of(self, reports):
        """Return an (n, n_numbers) array of the integer vectors that reports name; all are `length` long."""
        out = np.empty((len(reports), self.n_numbers), np.int32)
        memory = np.empty(2 * self.size, np.int32)
        privunit.lift(np.ascontiguousarray(reports), self._points, self.n_half, memory, out)
        return out

    def count(self, reports, counts):
        """Add the number of reports, their candidates, and the squares of the coordinates of these."""
        d = self.n_numbers
        counts[0] += len(reports)
        memory = np.empty(2 * self.size, np.int32)
        privunit.count(reports, self._points, self.n_half, memory, counts[1 : 1 + d], counts[1 + d :])

    @cached_property
    def _points(self):
        """Unit vectors in the columns of a (dimensions, n_half) array; (0, 0) where there are frames of signs instead.

        Any will do, because the seed rotates them: evenly spaced in the plane, the axes of random rotations beyond it.
        """
        d, n = self.n_numbers, self.n_half
        if d >= privunit.DENSE:
            return np.empty((0, 0), np.float32)
        if d <= 2:
            angle = np.pi * np.arange(n) / n
            return np.ascontiguousarray(np.stack([np.cos(angle), np.sin(angle)])[:d], np.float32)
        at = np.arange(n, dtype=np.uint64)
        axes = np.stack([at // np.uint64(d), at % np.uint64(d)], axis=1)
        points = np.empty((n, d), np.int32)
        privunit.lift(axes, np.eye(d, dtype=np.float32), d, np.empty(2 * d, np.int32), points)
        return np.ascontiguousarray((points / np.linalg.norm(points, axis=1, keepdims=True)).T, np.float32)

    # ---------------------------------------------------------------- the law, given the seed

    @cached_property
    def _best_sets(self):
        """All sets that may be the best ones, as masks over the candidates, in order; for few candidates."""
        n = self.n_half
        if n > 4:
            raise ValueError("the law of more than 8 candidates is not enumerated")
        sets = (sum(1 << i + n * side for i, side in zip(chosen, sides))
                for chosen in combinations(range(n), self.n_top) for sides in product((0, 1), repeat=self.n_top))
        return np.array(sorted(sets))

    def transition_matrix(self):
        """Return the law of the candidate's number for each set of best candidates; there are at most 8 candidates."""
        weights = Fraction(self.outside, WORD), Fraction(self.inside, WORD)
        return [[weights[best >> y & 1] for y in range(2 * self.n_half)] for best in self._best_sets.tolist()]

    def worst_ratio(self):
        """Return the ratio of the weights of two candidates."""
        return Fraction(self.inside, self.outside)

    def law_indices(self, codes, reports):
        """Return (number of the set of best candidates, number of the candidate), for points of full length."""
        y = self.products(reports[:, 0], codes / np.linalg.norm(codes, axis=1, keepdims=True))
        order = np.argsort(-np.abs(y), axis=1, kind="stable")[:, : self.n_top]
        sides = np.take_along_axis(y < 0, order, axis=1)
        best = (1 << (order + self.n_half * sides)).sum(axis=1)
        return np.searchsorted(self._best_sets, best), np.minimum(reports[:, 1], np.uint64(RADIUS)).astype(np.int64)

    @property
    def input_codes(self):
        """Some points of full length: along the first axis, and against the last."""
        axes = np.eye(self.n_numbers, dtype=np.int32) * np.int32(RADIUS)
        return np.stack([axes[0], -axes[-1]])

    def products(self, seeds, directions):
        """Return an (n, n_half) array: products of the unit candidates of each seed with a unit vector."""
        out = np.empty((len(seeds), self.n_half), np.float32)
        memory = np.empty(2 * self.size, np.float32)
        directions = np.ascontiguousarray(directions, np.float32)
        privunit.products(np.ascontiguousarray(seeds), directions, self._points, memory, out)
        return out / self._gain

    # ---------------------------------------------------------------- what reports stand for

    @property
    def length(self):
        """The length of a candidate in the integers that `candidates_of` returns (with the padding, where there is)."""
        return UNIT if self.n_numbers < privunit.DENSE else ROOT * math.sqrt(self.size)

    @cached_property
    def scale(self):
        """(What a unit of a candidate's coordinates stands for, in radii; the relative error that this may have)."""
        best, error = self._best_sum
        relative = error / best
        if self.n_numbers >= privunit.DENSE:
            relative += FRAME_ERROR / self.size**2
        return WORD / ((self.inside - self.outside) * best * self.length), relative

    def decode(self, reports):
        """Return an (n, n_numbers) array of offsets from the centre, in radii."""
        return self.candidates_of(reports) * self.scale[0]

    def even_variance(self):
        """Return the mean square of a number of a decoded report, in square radii; nearly, where there is padding.

        All reports are equally long, and the direction of a row, along which they are longer, lies in its numbers.
        """
        (*_, squares), unit, d = self._squares, (self.scale[0] * self.length) ** 2, self.n_numbers
        if self.size == d:
            return unit / d
        return unit * (squares + (1 - squares) * (d - 1) / (self.size - 1)) / d

    def reach(self):
        """Refuse: which candidate of any seed lies nearest to an axis is not known."""
        raise ValueError("the largest number that a report of PrivUnit can stand for depends on 2^64 seeds, and is not "
                         "known: no number of a report is beyond scale[0] * length of its law")

    def n_reports(self, counts):
        """Return how many reports the counts are of."""
        return int(counts[0])

    def means(self, counts):
        """Return (means, standard errors, largest biases) of offsets from the centre, in radii."""
        n, d, (scale, relative) = int(counts[0]), self.n_numbers, self.scale
        mean, errors = counts[1 : 1 + d] / n * scale, np.full(d, np.nan)
        if n > 1:
            seen = (counts[1 + d :] / n * scale**2 - np.square(mean)) * n / (n - 1)
            # few reports may agree by chance: the law has so much noise at least, and a short vector is turned at times
            turned = np.square(mean) * (1 - (n / (n + 2 * TURNED)) ** 2)
            errors = np.sqrt(np.maximum(np.maximum(seen, turned), self.least_noise * min(1.0, FEW / n)) / n)
        return mean, errors, np.full(d, relative + 1 / RADIUS)

    @cached_property
    def least_noise(self):
        """The least variance of a number of a decoded report, in radii, for uniform candidates (``privunit.md``)."""
        (by_rank, anyhow, squares), unit, size = self._squares, (self.scale[0] * self.length) ** 2, self.size
        along = anyhow * (1 / by_rank + unit / size)
        if size == 1:
            return along
        return max(0.0, min(along, unit * (1 - squares) / (size - 1)))

    @cached_property
    def _squares(self):
        """(How often one of the best candidates is sent, how often any; the mean square, at most, of the product of
        what is sent, as a unit vector, with the direction of the user's vector)."""
        by_rank, anyhow = self.n_top * (self.inside - self.outside) / WORD, 2 * self.n_half * self.outside / WORD
        if self.size == 1:
            return by_rank, anyhow, 1.0
        best = self.n_half / self.n_top / self.size * (1 - betainc(1.5, (self.size - 1) / 2, self._quantile[0] ** 2))
        return by_rank, anyhow, by_rank * min(1.0, best) + anyhow / self.size

    # ---------------------------------------------------------------- products of uniform unit vectors with a fixed one

    @property
    def _gain(self):
        """What products in the kernel are times as long as those of unit vectors."""
        return 1.0 if self.n_numbers < privunit.DENSE else self.size ** (privunit.n_layers(self.size) / 2)

    @cached_property
    def _quantile(self):
        """(A number that n_top of n_half |products| exceed on average; (1 - its square) to the power (size - 1) / 2;
        the constant of the density)."""
        half, share = (self.size - 1) / 2, self.n_top / self.n_half
        square = 1 - betaincinv(half, 0.5, share) if share < 1 else 0.0
        peak = 2 * math.exp(math.lgamma(self.size / 2) - math.lgamma(half)) / math.sqrt(math.pi)
        return math.sqrt(square), (1 - square) ** half, peak

    @cached_property
    def _near(self):
        """About where the best products begin, in the kernel's units, and how far apart they are there."""
        if self.size == 1:
            return 0.5, 1.0
        t, power, peak = self._quantile
        density = self.n_half * peak * power / max(1 - t * t, 1e-9)
        return t * self._gain, self._gain / max(density, 1e-9)

    @cached_property
    def _best_sum(self):
        """(The mean of the sum of the n_top largest |products|, what its error may be: five standard errors).

        For any t, S = sum of the n_top largest |y| is n_top t + sum of (|y| - t)+ less what this is too much; the mean
        of the first is known for uniform y, and the last is small where t is the n_top / n_half quantile: it is all
        that a sample, by fixed seeds, has to tell.
        """
        n, k, size = self.n_half, self.n_top, self.size
        if size == 1:
            return 1.0, 0.0
        t, power, peak = self._quantile
        known = n * peak * power / (size - 1)  # n E[|y|; |y| > t], as n P[|y| > t] is n_top
        rng, excess = np.random.default_rng(0), []
        rows = min(1 << 14, max(1, (1 << 20) // n))
        for _ in range(8):
            x = rng.standard_normal((rows, self.n_numbers))
            x /= np.linalg.norm(x, axis=1, keepdims=True)
            y = np.abs(self.products(rng.integers(0, WORD, rows, np.uint64), x))
            above = np.maximum(y - t, 0).sum(axis=1, dtype=np.float64) + k * t
            y.partition(n - k, axis=1)
            excess.append(above - y[:, n - k :].sum(axis=1, dtype=np.float64))
        excess = np.concatenate(excess)
        return known - excess.mean(), 5 * excess.std() / math.sqrt(len(excess))

    def _best_cap(self):
        """Return the number of best candidates that makes the mean report longest, and so the variance least."""
        if self.size == 1:
            return 1
        low, high, e = 1, self.n_half, math.expm1(self.epsilon)
        angle = np.linspace(0, math.asin(min(1.0, 9 / math.sqrt(self.size))), 2049)
        tail = betainc((self.size - 1) / 2, 0.5, np.square(np.cos(angle)))  # P[|y| > sin(angle)]

        def gain(k):
            # the mean sum of the k largest of n independent |y|: the integral of E min(k, number of them above y)
            n = self.n_half
            fewer = n * tail * bdtr(k - 2, n - 1, tail) if k > 1 else 0.0
            least = fewer + k * (1 - bdtr(k - 1, n, tail))
            height = least * np.cos(angle)
            area = (np.diff(angle) * (height[1:] + height[:-1]) / 2.0).sum()  # (`np.trapezoid` is of NumPy 2)
            return area * e / (k * e + 2 * n)

        while low < high:  # it has one peak, and next to it neighbours are as good
            middle = (low + high) // 2
            low, high = (middle + 1, high) if gain(middle) < gain(middle + 1) else (low, middle)
        return low


class PrivUnitTransformer(NumericTransformer):
    """Randomise vectors by PrivUnit (PU), the optimal law for the mean of vectors in a ball.

    The columns of X are one vector, and the whole epsilon goes to its direction: for the mean of d numbers whose
    *vector* is at most `radius` long, no unbiased report has less variance in total (Asi, Feldman and Talwar 2022).
    Where each column has bounds of its own and vectors fill the box, take a mechanism for numbers. A public seed
    generates candidate directions, which are ranked by their distance to the user's vector; the top candidates are
    e^epsilon times likelier to be reported. Lengths are rounded without bias, so that a user with a short vector
    sometimes reports the opposite direction. Rows longer than `radius` are shortened to it. `MeanEstimator` estimates
    the means.

    **Privacy.** epsilon-local differential privacy for a row, exact (integer weights; for any candidates; proof in
    ``privunit.md``), neighbours: any two rows of one user; no other party is trusted.

    **Utility.** Up to 63 columns the decoded report is unbiased but for the 2^-30 of a radius that fixed points have
    and for the error of a computed constant; from 64 on candidates are only nearly uniform, for less time:
    `MeanEstimator` states all of it (`bias_`, below 0.0015 of a radius with 2,048 candidates). The variance, in total
    over the columns and for radius 1, is 9.5 (2 columns), 98 (16), 809 (128) and 6,480 (1,024) at epsilon = 1, and
    0.022, 1.6, 17 and 137 at epsilon = 8: at most 3 % more than that of PrivUnit with its best parameters (6.5 % at 64
    columns; table in ``privunit.md``).

    **Complexity.** O(D log D + K) time a user, D the next power of two, from 64 columns on, and O(d^2 + K d) below;
    O(D log D) or O(d^2) a report at the server; 64 + log2(K) bits sent, K = max(candidates, 2 D).

    {parameters}
    References
    ----------
    A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor, R. Rogers, "Protection against reconstruction and its applications
    in private federated learning", 2018, section 4.1 (PrivUnit); H. Asi, V. Feldman, K. Talwar, "Optimal algorithms for
    mean estimation under local differential privacy", ICML 2022 (optimality); V. Feldman, K. Talwar, "Lossless
    compression of efficient private local randomizers", ICML 2021, and A. Shah, W.-N. Chen, J. Balle, P. Kairouz,
    L. Theis, "Optimal compression of locally differentially private mechanisms", AISTATS 2022 (public candidates).
    Ranks in place of a threshold, which make it exact, are derived in ``privunit.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import MeanEstimator, PrivUnitTransformer
    >>> X = np.random.default_rng(0).normal([0.3, -0.2, 0.1], 0.1, (20_000, 3))
    >>> est = MeanEstimator(PrivUnitTransformer(4.0, radius=1.0, random_state=0)).fit(X)
    >>> bool(np.abs(est.mean_ - X.mean(axis=0)).max() < 0.03)
    True
    """

    _randomizer = PrivUnit
    _domain, _same_domain = "radius", "the same radius and center"
    _reads_missing = False
    _test_values = {"center": [[0.5, 0.5]], "candidates": [4]}

    def __init__(self, epsilon=1.0, *, radius=1.0, center=None, candidates=2048, ledger=None, random_state=None,
                 n_jobs=None):
        self.epsilon = epsilon
        self.radius = radius
        self.center = center
        self.candidates = candidates
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- inside

    def _freeze(self, columns, names):
        super()._freeze(columns, names)
        (ball,) = columns
        self.center_, self.radius_ = ball.centre, ball.radius

    def _thaw(self):
        super()._thaw()
        for name in ("center_", "radius_"):
            vars(self).pop(name, None)

    def _columns_of_width(self, width):
        if self._columns is None and self._is_declared and self.center is None:
            raise ValueError("center must be declared, or fit must come first, because a report does not contain the "
                             "number of columns")
        return self._columns_now()

    def _declare(self, n_columns):
        centre = centre_of(self.center, n_columns)
        return self._ball(centre, radius_of(self.radius), column_names(len(centre), None))

    def _n_parts(self, n_columns):
        return 1

    def _ball(self, centre, radius, names, **more):
        if not np.abs(centre).max() <= radius * (1 << 22):
            raise ValueError("radius must be larger relative to center, because too few floats lie between the center "
                             "and the sphere")
        arguments = self._law_arguments(0, 1, (centre, radius))
        law = self._randomizer.make(self._share(1), n_numbers=len(centre), **arguments)
        return Columns([BallColumn(names, law, centre, radius)], **more)

    def _like(self, columns):
        (ball,) = columns
        return self._ball(ball.centre, ball.radius, columns.names, inferred=columns.inferred, keys=columns.keys)

    def _infer(self, X, names):
        """Return columns whose radius was learned from private data, which leaks."""
        refuse_infinite(X, names)
        warnings.warn(
            "radius=None learns the radius from private data: the result has no privacy guarantee (privacy_.epsilon is "
            "infinite). Declare the radius.",
            PrivacyLeakWarning,
            stacklevel=4,
        )
        centre = centre_of(self.center, X.shape[1])
        longest = float(np.sqrt(np.square(np.asarray(X, np.float64) - centre).sum(axis=1)).max())
        return self._ball(centre, radius_of(longest or 1.0), names, inferred="radius")

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "radius": 2.0, "center": [0.0, 0.0], "candidates": 8},
            {"epsilon": 3.0, "radius": 1.0, "center": [1.0, -1.0, 0.5], "candidates": 8},
        ]

    def _test_data(self, n_rows, seed=0):
        """Return rows within and a little beyond the ball."""
        centre = centre_of(self.center, 2 if self.center is None else None)
        rows = np.random.default_rng(seed).normal(0.3, 0.5, (n_rows, len(centre)))
        return centre + self.radius * rows, None
