"""Mechanisms that add noise to answers: the exact law, the noise that follows it, what is charged, what is kept.

For estimators with `release`, `sensitivity` and `law(size)`, whose law states `probability`, `beyond` and `draw`.
"""

import importlib
import importlib.util
import math
import pickle
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import stats

from dpestim.privacy.divergence import delta_of_move
from dpestim.privacy.exact import LEAST_USE, canonical_amount, canonical_epsilon, exp_lower, exp_upper
from dpestim.rng import Stage, WordSource
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.sample import WRONG_FACTORS
from dpestim.testing.tools import refuses, require

#: Sample size and significance of the statistical checks; the same test must reject noise that is 0.7 or 1.3 times as
#: large.
N = 200_000
ALPHA = 1e-6
#: Enclosures of probabilities are at least that narrow.
_TINY = Fraction(1, 10**25)


class Noise(Releases):
    """An estimator to check, its law for one answer, and noise that is drawn once for all checks."""

    wrong = {
        "bounds": (3, (1,), (1, 1), (2, 1), (math.nan, 1), (0, math.inf), "ab", ("0", "1")),
        "calibration": (None, "best"),
    }

    @cached_property
    def law(self):
        """The law of the noise of one answer."""
        return self.estimator.law()

    @cached_property
    def drawn(self):
        """N integers of it."""
        return self.law.draw(WordSource(1), N)

    @cached_property
    def data(self):
        """A table of valid answers."""
        return super().data

    def checks(self):
        """Return the checks; noise that depends on the answer (snapping) has no law of integers to check."""
        try:
            has_law = hasattr(self.law, "probability")
        except ValueError:  # parameters that make no law are seen by the other checks
            has_law = True
        return (*(LAW_CHECKS if has_law else ()), *RELEASE_CHECKS, *ESTIMATOR_CHECKS)

    def charged(self):
        """A release, and a transform; fit is free."""
        return *super().charged(), lambda est: est.fit(self.data).transform(self.data)

    def free(self, est):
        """Facts about the noise."""
        for fact in (est.variance, est.half_width, est.law, lambda: est.tail(1.0)):
            fact()

    def entropy(self, est):
        """Noise of many answers."""
        return est.release(np.zeros(64, self.data.dtype))

    def bad(self):
        """What are no finite real numbers."""
        arrays = np.array(["a"]), np.array([1j]), np.array(["2020-01-01"], "M8[D]"), np.ma.masked_array([1])
        return math.nan, math.inf, -math.inf, 1j, [1.0, math.nan], [[math.inf]], [1, [2, 3]], *arrays

    def odd(self):
        """Yield tables with one odd answer."""
        odd = [-(2**62), 2**62, -1, 2**63 - 1] if self.estimator._integers else [math.nan, math.inf, -math.inf, 1e308,
                                                                                 5e-324]
        for value in (self.data[0, 0], *odd):
            other = self.data.copy()
            other[1, 1] = value
            yield other

    def shown(self, released):
        """Return its shape and dtype; all of it must be finite."""
        require(bool(np.isfinite(released).all()), "strict mode must release numbers")
        return released.shape, released.dtype

    def apart(self, released, data):
        """Require that the odd answer, number 3 of the table, changed no other."""
        rest = np.delete(released, 3), np.delete(self.fresh().release(self.data), 3)
        require(np.array_equal(*rest), "an answer must not change the noise of others")


def check_noise_is_a_distribution(noise):
    """Probabilities are those of a symmetric distribution whose tails `beyond` states."""
    law = noise.law
    total = law.probability(0)[0] + law.beyond(1)
    require(total * (1 + _TINY) >= 1 and float(total) < 1.01, "probabilities must sum to 1")
    for k in _places(law):
        low, high = law.probability(k)
        require(0 <= low <= high <= low * (1 + _TINY), "probability must enclose it, to a relative 1e-25")
        require(law.probability(-k) == (low, high), "noise must be symmetric")
        lost = law.beyond(k) - law.beyond(k + 1)
        require(abs(float(lost - 2 * high)) <= 1e-7 * float(law.beyond(k)), "beyond must be the tail")


def check_noise_keeps_epsilon(noise):
    """The worst ratio of probabilities is e^epsilon, or little less; with a delta, the exact delta is."""
    law = noise.law
    epsilon, delta = canonical_epsilon(noise.estimator.epsilon), canonical_amount(_delta_of(noise.estimator), "delta")
    require((law.epsilon, law.delta) == (epsilon, delta), "the law of one answer must have the declared budget")
    apart = canonical_amount(noise.estimator.sensitivity, "sensitivity") / Fraction(2) ** law.exponent
    if law.exponent or not noise.estimator._integers:
        apart += 1
    require(law.sensitivity >= apart, "the sensitivity of the law must cover the rounding of the answer")
    move = math.floor(apart)
    if delta:
        known = delta_of_move(law, move, epsilon)
        require(known <= delta * (1 + Fraction(1, 10**6)), f"delta is {float(known):g}, more than declared")
        require(law.slack or known >= delta * Fraction(9, 10), f"only a delta of {float(known):g} is used")
        return
    worst = 0
    for z in sorted({*_places(law), *(-k for k in _places(law)), 0}):
        for s in {1, move // 2, move} - {0}:
            for one, two in ((z, z + s), (z + s, z)):
                ratio = law.probability(one)[0] / law.probability(two)[1]
                require(ratio <= exp_upper(epsilon) * (1 + _TINY), "the ratio of two probabilities exceeds e^epsilon")
                worst = max(worst, ratio)
    require(law.slack or worst >= exp_lower(LEAST_USE * epsilon), "less than 0.99 of epsilon is used")


def check_noise_falls_as_stated(noise):
    """Probabilities never rise away from 0, and fall by `decay` where a law states it: what audits build on."""
    law = noise.law
    places = [0, *_places(law)]
    values = [law.probability(k) for k in places]
    require(all(far[0] <= near[1] for near, far in pairwise(values)), "probabilities must not rise away from 0")
    if getattr(law, "decay", None) is None:
        require(law.delta, "a law without a delta must state its decay: else its ratio has no bound")
        return
    period, fall = law.decay
    for k, near in zip(places, values):
        far = law.probability(k + period)
        require(far[0] <= near[1] * exp_upper(-fall) and near[0] * exp_lower(-fall) <= far[1],
                "probability must fall by decay")
    times = math.ceil(60 / fall)  # (noise that is cut falls as stated up to the cut)
    require(law.probability(0)[0] * exp_lower(-fall * times) <= law.probability(times * period)[1],
            "probability must fall by decay as far as there is noise: noise that is cut has no decay")


def check_noise_keeps_its_curve(noise):
    """What a law states besides, by which ledgers charge, holds: the exact delta at each epsilon of the curve."""
    law = noise.law
    if law.curve is None:
        return
    for delta in {Fraction(1, 100), Fraction(1, 10**6), law.delta / 10} - {0}:
        epsilon = law.curve.epsilon_at(float(delta))
        if epsilon != math.inf:
            known = delta_of_move(law, math.floor(law.sensitivity), Fraction(epsilon))
            require(known <= delta * (1 + Fraction(1, 10**6)),
                    "curve must promise no less epsilon than the noise keeps: None states no curve")


def check_noise_follows_its_law(noise):
    """Noise is distributed as stated, and the same test rejects 0.7 and 1.3 times as much; n and alpha are N, ALPHA."""
    require(p_value(noise.law, noise.drawn) > ALPHA, "the noise does not follow its law")
    for factor in WRONG_FACTORS:
        wrong = np.rint(noise.drawn * factor).astype(np.int64)
        require(p_value(noise.law, wrong) < ALPHA, f"the test cannot tell {factor} times the noise from the noise")


def check_noise_is_settled_alike(noise):
    """Attempts have the same outcome by their words in the kernel and with further digits, one by one."""
    law, n = noise.law, 200
    words = WordSource(2).reader().dense(Stage.NOISE, 0, 0, 0, n * law.per).copy()
    out = np.empty(n, np.int64)
    decided, written = law._attempts(words, out)
    settled = [law._settle(words[k * law.per : (k + 1) * law.per].tolist(), None) for k in range(decided)]
    require([z for z in settled if z is not None] == out[:written].tolist() and decided > n // 2,
            "an attempt must have one outcome, however many digits are looked at")
    few = np.empty(written // 2, np.int64)
    decided, _ = law._attempts(words, few)
    require([z for z in settled[:decided] if z is not None] == few.tolist(),
            "attempts must stop where there is no more room: integers must not depend on how many are drawn at a time")


def check_noise_is_as_large_as_stated(noise):
    """Variance, tail and half width are those of the noise, tails rounded up."""
    est, law = noise.estimator, noise.law
    size = np.abs(noise.drawn) * law.step
    fourth = float(np.mean((size / size.std()) ** 4)) if size.any() else 3.0
    z = (float(np.mean(size**2)) / est.variance() - 1) / math.sqrt((fourth - 1) / N)
    require(abs(z) < 6, "variance must be that of the noise")
    for confidence in (0.5, 0.9, 0.99):
        width = est.half_width(confidence)
        inside, wanted = float(np.mean(size <= width)), 1 - est.tail(width)
        require(inside > confidence - 6 * math.sqrt(0.25 / N), "half_width must enclose as often as it says")
        require(abs(inside - wanted) < 6 * math.sqrt(0.25 / N), "tail must be the probability of larger noise")
        require(est.tail(width) <= 1 - confidence + 1e-12, "half_width must be one that tail allows")
    require(est.tail(-1.0) == 1 and est.tail(math.inf) == 0, "tail must be 1 below 0, and 0 at infinity")
    refuses(lambda: est.tail(math.nan), "tail of NaN")
    refuses(lambda: est.half_width(1.0), "a confidence of 1")


def check_release_adds_the_noise(noise):
    """A release is the answer on its grid and noise of the stated law, for all answers together."""
    for answers in (noise.data * 0, noise.data):
        est = noise.fresh()
        law = est.law(answers.size)
        drawn = law.draw(WordSource(0), answers.size).reshape(answers.shape)
        wanted = (np.rint(answers / law.step) + drawn) * law.step
        if est.bounds is not None:
            wanted = np.clip(wanted, *est.bounds)
        require(np.array_equal(est.release(answers), wanted), "a release must be the rounded answers and the noise")
        require(np.array_equal(est.transform(answers), wanted), "transform must be a release")
    many = noise.estimator.law(64)
    if not noise.estimator._integers:
        rounding = 64 if many.norm == 1 else 8 if many.norm == 2 else 1
        exact = canonical_amount(noise.estimator.sensitivity, "sensitivity") / Fraction(2) ** many.exponent
        require(many.sensitivity >= exact + rounding, "the rounding of all answers must be part of the sensitivity")


def check_release_keeps_the_container(noise):
    """Numbers, arrays of any shape, series and frames come back as what they were."""
    est, whole = noise.fresh(), noise.data
    kind = np.int64 if est._integers else np.float64
    number = whole[0, 0].item()
    require(type(est.release(number)) is (int if est._integers else float), "a number must come back as a number")
    require(type(est.release(3)) is type(est.release(number)), "an int is an answer like any other")
    for shape in ((), (12,), (3, 4), (2, 3, 2), (0,)):
        answers = whole.ravel()[: math.prod(shape)].reshape(shape)
        released = est.release(answers)
        require(np.shape(released) == shape, "the shape of the answers must be kept")
        require(not shape or released.dtype == kind, f"arrays must be of {np.dtype(kind)}")
    want = est.release(whole)
    narrow = np.float32 if kind is np.float64 else np.int16
    for same in (whole.tolist(), np.asfortranarray(whole), whole.astype(narrow)):
        require(np.array_equal(est.release(same), want), "lists, memory orders and dtypes must not matter")
    for library in ("pandas", "polars"):
        if importlib.util.find_spec(library):
            frames = importlib.import_module(library)
            frame = frames.DataFrame({"a": whole[:, 0], "b": whole[:, 1]})
            released = est.release(frame)
            require(type(released) is type(frame) and list(released.columns) == ["a", "b"], "frames must stay frames")
            require(np.array_equal(released.to_numpy(), want), "a frame must get the noise of its array")
            series = est.release(frame["a"])
            require(type(series) is type(frame["a"]) and series.name == "a", "series must stay series")


def check_laws_are_their_arguments(noise):
    """A law survives a pickle, and two of the same arguments are equal."""
    law = noise.law
    require(pickle.loads(pickle.dumps(law)) == law and hash(law) == hash(noise.estimator.law()),
            "a law is what its arguments are")


def _delta_of(estimator):
    return getattr(estimator, "delta", None) or 0


def _places(law):
    """Return integers at which to look at a law: the first ones, and some as far out as noise gets."""
    scale = max(1, math.isqrt(int(law.variance_steps)))
    return sorted({*range(1, 9), *(round(scale * x) for x in (0.3, 0.7, 1, 2, 3.5, 6)), math.ceil(law.sensitivity)})


def p_value(law, drawn):
    """Return the p-value of a chi-square test of noise against its law, in some 40 bins of about equal probability."""
    edges = [0]
    for share in np.linspace(0.95, 0.0005, 20):
        low, high = edges[-1], max(edges[-1], 1) * 2
        while law.beyond(high + 1) > share:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if law.beyond(middle + 1) > share else (low, middle)
        if high > edges[-1]:
            edges.append(high)
    tails = [1.0, *(float(law.beyond(k)) for k in edges[1:])]
    one_side = -np.diff([float(law.beyond(1)), *tails[1:], 0.0]) / 2  # 1 <= |z| < edges[1], ..., edges[-1] <= |z|
    expected = np.r_[one_side[::-1], float(law.probability(0)[0]), one_side] * len(drawn)
    bins = np.searchsorted(edges[1:], np.abs(drawn), side="right") + 1
    bins = np.where(drawn == 0, 0, np.sign(drawn) * bins) + len(one_side)
    observed = np.bincount(bins, minlength=2 * len(one_side) + 1)
    keep = expected > 5
    if observed[~keep].sum() > 5 * expected[~keep].sum() + 30:
        return 0.0
    statistic = ((observed[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    return float(stats.chi2.sf(statistic, keep.sum() - 1))


LAW_CHECKS = (
    check_noise_is_a_distribution,
    check_noise_keeps_epsilon,
    check_noise_falls_as_stated,
    check_noise_keeps_its_curve,
    check_noise_follows_its_law,
    check_noise_is_settled_alike,
    check_noise_is_as_large_as_stated,
    check_release_adds_the_noise,
)
ESTIMATOR_CHECKS = (check_release_keeps_the_container, check_laws_are_their_arguments)
