"""Mechanisms that add noise to answers: the exact law, the noise that follows it, what is charged, what is kept.

For estimators with `release`, `sensitivity` and `law(size)`, whose law states `probability`, `beyond` and `draw`.
"""

import importlib
import importlib.util
import math
import pickle
import warnings
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import stats
from sklearn.base import clone

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import LEAST_USE, canonical_amount, canonical_epsilon, exp_lower, exp_upper
from dpestim.rng import Stage, WordSource
from dpestim.testing._tools import Book, fresh, refuses, require, same_state

#: Sample size and significance of the statistical checks; the same test must reject noise that is 0.7 or 1.3 times as
#: large.
N = 200_000
ALPHA = 1e-6
WRONG = (0.7, 1.3)
#: Enclosures of probabilities are at least that narrow.
_TINY = Fraction(1, 10**25)


class Noise:
    """An estimator to check, its law for one answer, and noise that is drawn once for all checks."""

    def __init__(self, estimator):
        self.estimator = estimator

    @cached_property
    def law(self):
        """The law of the noise of one answer."""
        return self.estimator.law()

    @cached_property
    def drawn(self):
        """N integers of it."""
        return self.law.draw(WordSource(1), N)

    def fresh(self, **params):
        """Return an unused clone, seeded unless it is said otherwise."""
        return fresh(self.estimator, **params)

    @cached_property
    def answers(self):
        """A table of valid answers."""
        return self.estimator._test_data(6)[0]


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
        known = _delta_at(law, move, epsilon)
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


def check_noise_follows_its_law(noise):
    """Noise is distributed as stated, and the same test rejects 0.7 and 1.3 times as much; n and alpha are N, ALPHA."""
    require(_p_value(noise.law, noise.drawn) > ALPHA, "the noise does not follow its law")
    for factor in WRONG:
        wrong = np.rint(noise.drawn * factor).astype(np.int64)
        require(_p_value(noise.law, wrong) < ALPHA, f"the test cannot tell {factor} times the noise from the noise")


def check_noise_is_settled_alike(noise):
    """Attempts have the same outcome by their words in the kernel and with further digits, one by one."""
    law, n = noise.law, 200
    words = WordSource(2).reader().dense(Stage.NOISE, 0, 0, 0, n * law.per).copy()
    out = np.empty(n, np.int64)
    decided, written = law._attempts(words, out)
    settled = [law._settle(words[k * law.per : (k + 1) * law.per].tolist(), None) for k in range(decided)]
    require([z for z in settled if z is not None] == out[:written].tolist() and decided > n // 2,
            "an attempt must have one outcome, however many digits are looked at")


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
    for answers in (noise.answers * 0, noise.answers):
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


def check_release_charges(noise):
    """A release charges its guarantee, once, before anything is drawn; what is refused charges nothing."""
    est = noise.fresh(ledger=Book())
    est.release(noise.answers)
    est.fit(noise.answers).transform(noise.answers)
    require(len(est.ledger.paid) == 2, "every release must charge once, and fit never")
    for guarantee, *_ in est.ledger.paid:
        require(guarantee == est.privacy_, "privacy_ must be what is charged")
        require(guarantee.epsilon == canonical_epsilon(est.epsilon), "the charge must be the canonical epsilon")
        require(guarantee.delta == canonical_amount(_delta_of(est), "delta"), "the charge must be the declared delta")
        require(guarantee.model == "central" and guarantee.neighbours.value == est.neighbours,
                "the charge must be for the central model and the declared neighbours")
    for spent in (est.variance, est.half_width, est.law, lambda: est.tail(1.0)):
        spent()
    require(len(est.ledger.paid) == 2, "facts about the noise are free")
    refuses(lambda: noise.fresh(ledger=Book(refuse=True)).release(noise.answers), "an overdraft")


def check_release_refuses(noise):
    """Bad answers and parameters are errors that name what is wrong, show no answer and spend nothing."""
    wrong = {
        "epsilon": (0, -1.0, math.nan, math.inf, "1", True, None),
        "delta": (None, 0, 1, 1.5, -1e-9, math.nan, "0", True),
        "sensitivity": (None, 0, -1.0, math.nan, math.inf, "1", True),
        "bounds": (3, (1,), (1, 1), (2, 1), (math.nan, 1), (0, math.inf), "ab", ("0", "1")),
        "neighbours": (None, "local", "any", 1),
        "random_state": (-1, "seed", 1.5),
        "calibration": (None, "best"),
    }
    for name in set(wrong) & set(noise.estimator.get_params()):
        for value in wrong[name]:
            est = noise.fresh(ledger=Book())
            est.set_params(**{name: value})
            message = refuses(lambda est=est: est.release(noise.answers), f"{name}={value!r}", est)
            require(name in message, f"the error about {name} must name it")
            require(not est.ledger.paid, f"a bad {name} must be refused before anything is charged")
    arrays = np.array(["a"]), np.array([1j]), np.array(["2020-01-01"], "M8[D]"), np.ma.masked_array([1])
    numbers = math.nan, math.inf, -math.inf, 1j, [1.0, math.nan], [[math.inf]], [1, [2, 3]]
    for bad in (*numbers, *arrays, "text", ["a secret"], None):
        est = noise.fresh(ledger=Book())
        message = refuses(lambda est=est, bad=bad: est.release(bad), "a bad answer", est)
        require("secret" not in message, "an error must not show an answer")
        require(not est.ledger.paid, "a bad answer must be refused before anything is charged")


def check_release_keeps_the_container(noise):
    """Numbers, arrays of any shape, series and frames come back as what they were."""
    est, whole = noise.fresh(), noise.answers
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


def check_release_seeds(noise):
    """A seed reproduces a release, its absence never does; clones and pickles release the same, and seeds say so."""
    one = noise.fresh().release(noise.answers)
    require(np.array_equal(one, noise.fresh().release(noise.answers)), "an int random_state must reproduce the noise")
    require(not np.array_equal(one, noise.fresh(random_state=1).release(noise.answers)), "another seed, other noise")
    secure = noise.fresh(random_state=None)
    wide = np.zeros(64, noise.answers.dtype)
    require(not np.array_equal(secure.release(wide), secure.release(wide)), "no two secure releases share their noise")
    require(noise.fresh().privacy_.seeded and not secure.privacy_.seeded, "privacy_ must say whether there was a seed")
    est = noise.fresh()
    before = est.__getstate__()
    est.release(noise.answers)
    require(same_state(before, est.__getstate__()), "a release must leave nothing behind: no answer, and no noise")
    for twin in (clone(est), pickle.loads(pickle.dumps(est))):
        require(np.array_equal(twin.release(noise.answers), one), "clones and pickles must release the same")
    law = noise.law
    require(pickle.loads(pickle.dumps(law)) == law and hash(law) == hash(noise.estimator.law()),
            "a law is what its arguments are")


def check_release_is_total_in_strict_mode(noise):
    """In strict mode neighbouring answers look the same: no error, warning or charge depends on a value."""
    answers = noise.answers
    odd = [-(2**62), 2**62, -1, 2**63 - 1] if noise.estimator._integers else [math.nan, math.inf, -math.inf, 1e308,
    5e-324]
    with config_context(strict=True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wanted = None
        for value in (answers[0, 0], *odd):
            other = answers.copy()
            other[1, 1] = value
            est = noise.fresh(ledger=Book())
            released = est.release(other)
            seen = (released.shape, released.dtype, bool(np.isfinite(released).all()), len(est.ledger.paid))
            wanted = wanted or seen
            require(seen == wanted and seen[2:] == (True, 1), "strict mode must release whatever the answers are")
            rest = np.delete(released, 3), np.delete(noise.fresh().release(answers), 3)
            require(np.array_equal(*rest), "an answer must not change the noise of others")
            require(not caught, "strict mode must not warn of an answer")
        refuses(lambda: noise.fresh().release([1.0, "a"]), "a list in strict mode")


def _delta_of(estimator):
    return getattr(estimator, "delta", 0)


def _places(law):
    """Return integers at which to look at a law: the first ones, and some as far out as noise gets."""
    scale = max(1, math.isqrt(int(law.variance_steps)))
    return sorted({*range(1, 9), *(round(scale * x) for x in (0.3, 0.7, 1, 2, 3.5, 6)), math.ceil(law.sensitivity)})


def _delta_at(law, move, epsilon):
    """Return the exact delta of a move: the mass beyond the place where the loss reaches epsilon, from `beyond`."""

    def is_over(z):
        return law.probability(z)[0] > exp_upper(epsilon) * law.probability(z + move)[1]

    low, high = -move, move
    while not is_over(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_over(middle) else (middle, high)

    def mass(z):  # P[Z >= z]
        return law.beyond(z) / 2 if z >= 1 else 1 - law.beyond(1 - z) / 2

    return mass(high) - exp_lower(epsilon) * mass(high + move)


def _p_value(law, drawn):
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
    check_noise_follows_its_law,
    check_noise_is_settled_alike,
    check_noise_is_as_large_as_stated,
    check_release_adds_the_noise,
)
FACE_CHECKS = (
    check_release_charges,
    check_release_refuses,
    check_release_keeps_the_container,
    check_release_seeds,
    check_release_is_total_in_strict_mode,
)


def checks_for(noise):
    """Return the checks of a mechanism; noise that depends on the answer (snapping) has no law of integers to check."""
    try:
        has_law = hasattr(noise.law, "probability")
    except ValueError:  # parameters that make no law are seen by the other checks
        has_law = True
    return (*(LAW_CHECKS if has_law else ()), *FACE_CHECKS)
