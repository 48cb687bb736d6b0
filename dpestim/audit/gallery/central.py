"""Noise on query answers: the wrong amount of it, for a claim that does not follow."""

import math
from fractions import Fraction

from dpestim.audit.density import Density
from dpestim.audit.finite_laws import compose
from dpestim.audit.gallery.mistake import event, integral, laplace_below, laplace_density, mistake
from dpestim.central import GaussianMechanism

#: The claim of the Gaussian noise: an epsilon for which the textbook's formula is not proven.
GAUSSIAN = (10.0, 1e-5)


def classic_sigma(epsilon, delta):
    """Return the standard deviation of the textbook, for a sensitivity of 1; it is proven below an epsilon of 1."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def analytic_sigma(epsilon, delta):
    """Return that of `GaussianMechanism`."""
    return math.sqrt(GaussianMechanism(epsilon, delta=delta, sensitivity=1.0).variance())


def gaussians(sigma):
    """Return the pair of densities of two answers, 1 apart, with Gaussian noise."""
    law = Density(lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi) if abs(x) < 1e9 else 0.0, (0,))
    return law.moved(0, sigma), law.moved(1, sigma)


def laplaces(distance, scale):
    """Return the pair of densities of two answers with Laplace noise."""
    law = Density(lambda x: 0.5 * math.exp(-abs(x)), (0,))
    return law.moved(0, scale), law.moved(distance, scale)


def moved_person(scale):
    """Return the pair of laws of two counts with discrete Laplace noise, between which one person moves.

    Of each count it is seen whether it is above 0: the first falls from 1 to 0, the second rises from 0 to 1.
    """
    a = math.exp(-1 / scale)
    one, none = event(1 / (1 + a)), event(a / (1 + a))
    return compose([(one, none), (none, one)])


def counts_with_cauchy_noise(epsilon, first):
    """Return the pair of densities of two neighbouring counts, by smooth sensitivity with Cauchy noise.

    The local sensitivity of a count is 1, whatever the data, so that of data k changes away is 1, too, and the smooth
    sensitivity is the largest e^(-beta k) from `first` on. Noise is 2 / epsilon times that; beta is epsilon / 2.
    """
    scale = 2 / epsilon * math.exp(-epsilon / 2 * first)
    law = Density(lambda x: 1 / (math.pi * (1 + x * x)), (0,))
    return law.moved(0, scale), law.moved(1, scale)


def tested_releases(epsilon, threshold):
    """Return the pair of laws of propose-test-release, for two data sets that are no distance from a bad one.

    Their answers are so far apart that what is released tells which it was (the local sensitivity of both is above
    the proposed one, so nothing bounds how far). The distance 0, with noise of scale 1 / epsilon, passes the test by
    chance.
    """
    passes = 0.5 * math.exp(-epsilon * threshold)
    own, refused = {"near the first answer": passes}, {"refused": 1 - passes}
    return own | refused, {"near the second answer": passes} | refused


def value_and_uniform(n):
    """Return the pair of laws of the value itself, next to one of n numbers drawn uniformly."""
    return tuple({(value, u): Fraction(1, n) for u in range(n)} for value in (0, 1))


def value_or_nothing(delta):
    """Return the pair of laws of the value itself with probability delta, and else nothing."""
    return tuple({value: delta, None: 1 - delta} for value in (0, 1))


def largest_at_most_0(answers, scale=2.0):
    """Return the law of whether the largest of the answers with Laplace noise is at most 0."""
    return event(math.prod(float(laplace_below(-1.0 * a, scale)) for a in answers))


def first_is_largest(answers, scale=2.0):
    """Return the law of whether the first of the answers with Laplace noise is the largest one."""
    def density(y):
        p = laplace_density(y - answers[0], scale)
        for a in answers[1:]:
            p = p * laplace_below(y - a, scale)
        return p

    return event(integral(density))


def central_noise():
    """Return the entries about noise on answers."""
    epsilon, delta, blog = 1.0, 1e-6, "a tutorial on differential privacy"
    return [
        mistake(
            "Gaussian noise by the textbook, epsilon = 10",
            "Dwork, Roth (2014), The algorithmic foundations of differential privacy, theorem A.1, which asks for less",
            claimed=GAUSSIAN, pairs=[gaussians(classic_sigma(*GAUSSIAN))],
            right=[gaussians(analytic_sigma(*GAUSSIAN))],
            why="The formula is a theorem for epsilon below 1 only.",
            instead="dpestim.central.GaussianMechanism, whose default calibration is exact at every epsilon"),
        mistake(
            "A sum of values in [50, 60], sensitivity 60 - 50", f"{blog}: sums, one person more or less",
            claimed=(epsilon, 0), pairs=[laplaces(60, 10 / epsilon)], right=[laplaces(60, 60 / epsilon)],
            why="A person more adds up to 60 to the sum; u - l is what one person can change who is there in both.",
            instead="max(abs(l), abs(u)) as sensitivity, with neighbours=\"add_remove\" in dpestim.central"),
        mistake(
            "Counts of two groups, one person moves", f"{blog}: parallel composition, whatever the neighbours are",
            claimed=(epsilon, 0), pairs=[moved_person(1 / epsilon)], right=[moved_person(2 / epsilon)],
            why="Groups are paid for in parallel where a person is added or removed; who moves changes two of them.",
            instead="a sensitivity of 2 for the counts of all groups; or neighbours=\"add_remove\" in dpestim.central"),
        mistake(
            "Smooth sensitivity from distance 1", f"{blog}: the maximum over k = 1, ..., n; a count, Cauchy noise",
            claimed=(3, 0), pairs=[counts_with_cauchy_noise(3.0, first=1)],
            right=[counts_with_cauchy_noise(3.0, first=0)],
            why="The maximum over k leaves out k = 0, the data themselves, so it can be below their own sensitivity.",
            instead="dpestim.central.SmoothSensitivity, the maximum over k = 0, 1, ..., n"),
        mistake(
            "Propose-test-release, threshold ln(2/delta) / (2 epsilon)", f"{blog}: the test of the distance",
            claimed=(2 * epsilon, delta), pairs=[tested_releases(epsilon, math.log(2 / delta) / (2 * epsilon))],
            right=[tested_releases(epsilon, math.log(1 / (2 * delta)) / epsilon)],
            why="Data at distance 0 pass the test with probability sqrt(delta / 8), and then nothing protects them.",
            instead="dpestim.central.ProposeTestRelease, with the threshold ln(1 / (2 delta)) / epsilon"),
        mistake(
            "(0, delta) for every single output", f"{blog}, and surveys: the definition with outputs instead of sets",
            claimed=(0, 0.01), pairs=[value_and_uniform(100)], right=[value_or_nothing(Fraction(1, 100))],
            why="Next to a uniform number of 100 every single output has probability 1/100 at most, and the value is "
                "published.",
            instead="dpestim.audit.exact_delta, which is about all sets of outputs"),
        mistake(
            "Noisy maximum, published with its value", "folklore: the budget of the index, for the value as well",
            claimed=(epsilon, 0), pairs=[(largest_at_most_0([0] * 20), largest_at_most_0([1] * 20))],
            right=[(first_is_largest([1] + [0] * 19), first_is_largest([0] + [1] * 19)),
                   (first_is_largest([0] * 20), first_is_largest([1] * 20))],
            why="The largest noisy value bounds all 20 noisy answers, and each of the answers may have moved.",
            instead="dpestim.central.ReportNoisyMax, for the index; a value needs fresh noise and a budget of its own"),
    ]
