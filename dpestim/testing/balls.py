"""Checks of laws of vectors in a ball (means, whole reports of short ones, fixed points) and data for a radius."""

import math

import numpy as np
from scipy import stats

from dpestim.testing.law import chi_square
from dpestim.testing.numbers import Numbers
from dpestim.testing.sample import ALPHA, WRONG_FACTORS
from dpestim.testing.tools import require

#: Reports of each vector whose mean is looked at.
_ROWS = 100_000
#: Lengths of these vectors, in radii.
_LENGTHS = (1.0, 0.5, 0.0)
#: Lengths of vectors whose whole reports are looked at, in radii, and reports of each.
_SHORT, _SHORT_ROWS = (0.0, 0.25, 0.5, 0.75, 0.999), 10_000


def check_setting(estimator):
    """Raise ValueError where the checks of a transformer of vectors have no power, or its law is not enumerated."""
    if estimator.radius is None or estimator.candidates > 8:
        raise ValueError("declare the radius of the transformer to check, and at most 8 candidates")
    if not 0.1 <= float(estimator.epsilon) <= 5:
        raise ValueError("the checks need an epsilon between 0.1 and 5")


def check_mean_of_vectors(sample):
    """The mean of decoded reports is the vector (chi-square, n = 100,000, alpha = 1e-6), whatever its length.

    The bias that is stated is allowed for. Vectors 0.7 and 1.3 times as long are rejected, and so are their opposites.
    """
    (column,) = sample.columns
    law, d = column.randomizer, column.randomizer.n_numbers
    direction = np.arange(1.0, d + 1) * (-1.0) ** np.arange(d)
    direction /= np.sqrt(np.square(direction).sum())
    for number, length in enumerate(_LENGTHS):
        x = length * direction
        codes = np.empty((_ROWS, d), law.code_dtype)
        law.encode(np.tile(x, (_ROWS, 1)), np.zeros(d), 1.0, codes)
        reports, counts = column.draw(codes, seed=20 + number), np.zeros(law.n_counts, np.int64)
        law.count(reports, counts)
        seen = law.decode(reports)
        means, errors, biases = law.means(counts)
        require(np.allclose(seen.mean(axis=0), means, rtol=0, atol=1e-9), "the means are not those of decoded reports")
        require(np.allclose(seen.std(axis=0, ddof=1) / math.sqrt(_ROWS), errors), "standard errors are not those seen")
        limit = stats.chi2.isf(ALPHA, d)

        def away(truth, means=means, errors=errors, biases=biases):
            return np.square(np.maximum(np.abs(means - truth) - biases, 0) / errors).sum()

        require(away(x) < limit, f"the mean of reports is not the vector of length {length}")
        for factor in (*WRONG_FACTORS, -1.0) if length else ():
            require(away(factor * x) > limit, f"the check cannot tell a vector from {factor} times it")


def check_short_vectors(sample):
    """Whole reports of a vector of length r are a mixture: (1 + r) / 2 of its direction's law, the rest its opposite's.

    Given the public part (chi-square, n = 10,000 for each of five lengths, alpha = 1e-6). Means alone would not do:
    candidates can have the right one where some of them are never reported. The law of full length is rejected. The
    public part is the same for other vectors and other words of the answer, which does not follow from it: the same
    vector has the same answer again as often as chance says (binomial test, n = 25,000).
    """
    (column,) = sample.columns
    law, d, size = column.randomizer, column.randomizer.n_numbers, len(column.law)
    directions = np.random.default_rng(30).normal(size=(len(_SHORT), d))
    directions[0] = np.eye(d)[0]  # (a vector of no length is rounded to this axis or against it)
    directions /= np.sqrt(np.square(directions).sum(axis=1, keepdims=True))
    point = np.repeat(np.arange(len(_SHORT)), _SHORT_ROWS)
    lengths = np.array(_SHORT)[:, None]
    short, full, opposite = np.empty((3, len(_SHORT), d), law.code_dtype)
    for out, rows in ((short, lengths * directions), (full, directions), (opposite, -directions)):
        law.encode(rows, np.zeros(d), 1.0, out)
    reports = column.draw(short[point], seed=31)
    own, at = law.law_indices(full[point], reports)
    away, _ = law.law_indices(opposite[point], reports)
    cells, where = np.unique((point * size + own) * size + away, return_inverse=True)
    seen = np.bincount(where * column.law.shape[1] + at, minlength=len(cells) * column.law.shape[1])
    seen = seen.reshape(len(cells), -1)
    share = (1 + lengths[cells // size**2]) / 2
    straight, turned = column.law[cells // size % size], column.law[cells % size]
    mixed = share * straight + (1 - share) * turned
    right = chi_square(seen, mixed) > ALPHA
    require(right, "reports of shorter vectors are not those of the direction and of its opposite, mixed by length")
    require(chi_square(seen, straight) < ALPHA, "the check cannot tell short vectors from long ones")
    changed = np.arange(len(point)) % 2 == 1
    again = column.draw(np.where(changed[:, None], full[-1 - point], short[point]), seed=31, others=32)
    public = np.array_equal(law.public_part(again), law.public_part(reports))
    require(public, "the public part of a report must follow from the words of Stage.SEED alone")
    chance = np.square(mixed).sum(axis=1)[where][~changed]
    same = (law.law_indices(full[point], again)[1] == at)[~changed].sum() - chance.sum()
    limit = stats.norm.isf(ALPHA) * np.sqrt((chance * (1 - chance)).sum())
    require(same <= limit, "given the public part of a report the rest does not follow the law")


def check_points(sample):
    """Any row has a fixed point: linear within the ball, shortened beyond it, total for what is no finite number."""
    for law in sample.randomizers:
        d, centre, radius = law.n_numbers, 3.0 + np.arange(law.n_numbers), 2.5
        rng = np.random.default_rng(11)
        rows = rng.normal(size=(2000, d)) * rng.exponential(1, (2000, 1)) + centre
        rows[:5] = centre + radius * np.eye(d)[0] * np.array([[1.0], [-1.0], [1e300], [-1e300], [0.0]])
        out = np.empty((len(rows), d), law.code_dtype)
        law.encode(rows, centre, radius, out)
        offset = (rows - centre) / radius
        longest = np.maximum(np.abs(offset).max(axis=1, keepdims=True), 1.0)
        part = offset / longest  # (so that no square is too large)
        length = np.sqrt(np.square(part).sum(axis=1, keepdims=True))
        wanted = np.where(length * longest > 1, part / np.maximum(length, 1e-300), offset)
        require(np.abs(out / 2.0**30 - wanted).max() < 2.0**-29, "a fixed point is not where its row is")
        square = (out.astype(object) ** 2).sum(axis=1)
        require(max(square) <= 2**60, "a fixed point lies beyond the ball")
        odd = np.full((3, d), centre)
        odd[:, 0] = np.nan, np.inf, -np.inf
        out = np.empty((3, d), law.code_dtype)
        law.encode(odd, centre, radius, out)
        right = np.abs(out[:, 0] / 2.0**30 - [0, 1, -1]).max() < 2.0**-29
        require(right and not out[:, 1:].any(), "what is no finite number has no fixed point")


class Balls(Numbers):
    """The data that the checks of behaviour need for a declared radius."""

    undeclared = {"radius": None}

    @staticmethod
    def probes(client, column):
        """Return rows of all kinds: inside and beyond the ball, and rows that are no finite numbers."""
        rows = client._test_data(500, seed=4)[0]
        odd = np.array([-np.inf, np.inf, np.nan, 1e300, -1e300, 0.0])
        return np.concatenate([rows, np.repeat(odd[:, None], rows.shape[1], axis=1)])

    @staticmethod
    def declared_relaxed(client, column, values):
        """Tell which rows have less protection: none."""
        return np.zeros(len(values), bool)

    @staticmethod
    def other_domain(client):
        """Return the parameter of another domain that the same rows suit."""
        return {"radius": 2.0 * client.radius}

    @staticmethod
    def clipped(client, X):
        """Return rows as a fitted client takes them: the longer ones shortened."""
        offset = X - client.center_
        length = np.sqrt(np.square(offset).sum(axis=1, keepdims=True))
        return client.center_ + offset / np.maximum(length / client.radius_, 1.0)

    @staticmethod
    def any_width(client):
        """Tell whether the declared domain suits any number of columns."""
        return client.center is None

    @staticmethod
    def bad_params(estimator):
        """Yield (what is wrong, parameters)."""
        for radius in (0.0, -1.0, math.inf, math.nan, "1", True, [1.0], 1e-200):
            yield f"radius {radius!r}", {"radius": radius}
        for center in ("00", 1.0, [math.nan] * 3, [0.0] * 9, [["a"]], [1e9] * 3):
            yield f"center {center!r}", {"center": center}
        for candidates in (12, 2, 1 << 17, True, 8.0):
            yield f"candidates {candidates!r}", {"candidates": candidates}
        yield "epsilon beyond a word", {"epsilon": 1e-19}


LAW_CHECKS = (check_mean_of_vectors, check_short_vectors, check_points)
