"""The check of promises, on laws made by hand: what it accepts, and one law for each thing that it must reject."""

import math
from fractions import Fraction

import pytest

from dpestim.privacy.category_weights import grr_weights
from dpestim.privacy.divergence import as_integers, worst_ratio
from dpestim.testing import MechanismError
from dpestim.testing.promises import at_most, keeps_promises

INF = math.inf
HALF = Fraction(1, 2)


def response(epsilon, d=3):
    """Return the law of randomised response, at most epsilon and nearly all of it."""
    w = grr_weights(Fraction(epsilon), d)
    return [[Fraction(w.keep if x == y else w.other, w.total) for y in range(d)] for x in range(d)]


def plain(epsilon):
    return [("all", "all", "all", Fraction(epsilon))]


def check(matrix, promises, inputs=None, outputs=None, slack=""):
    inputs = inputs or ["all"] * len(matrix)
    outputs = outputs or ["all"] * len(matrix[0])
    return keeps_promises(matrix, promises, inputs, outputs, slack)


@pytest.mark.parametrize("epsilon", ["1/10", 1, 5])
def test_a_plain_law(epsilon):
    epsilon = Fraction(epsilon)
    assert check(response(epsilon), plain(epsilon)) == epsilon
    with pytest.raises(MechanismError, match="broken"):
        check(response(epsilon), plain(epsilon * Fraction(999, 1000)))
    with pytest.raises(MechanismError, match="idle"):
        check(response(epsilon), plain(epsilon * Fraction(102, 100)))
    assert check(response(epsilon), plain(2 * epsilon), slack="a reason") == 2 * epsilon
    with pytest.raises(MechanismError, match="broken"):  # a slack excuses idleness, nothing else
        check(response(epsilon), plain(epsilon / 2), slack="a reason")


def test_the_inverse_ratio_counts():
    """Two inputs: the ratio is small one way and large the other; which way is the worst must not matter."""
    matrix = [[HALF, HALF], [Fraction(1, 50), Fraction(49, 50)]]  # 25 one way at the first output
    for rows in (matrix, matrix[::-1]):
        with pytest.raises(MechanismError, match="broken"):
            check(rows, plain(1))


def test_zeros():
    zero = [[HALF, HALF, 0], [HALF, HALF, 0]]  # an output that nobody sends says nothing
    assert check(zero, plain(0)) == 0
    revealing = [[1, 0], [HALF, HALF]]
    with pytest.raises(MechanismError, match=r"broken: inf"):
        check(revealing, plain(9), slack="a reason")
    assert check(revealing, [("all", "all", "all", INF)]) == INF
    with pytest.raises(MechanismError, match="idle"):  # infinite, and nothing is infinite about it
        check(response(1), [("all", "all", "all", INF)])
    with pytest.raises(MechanismError, match="protected, and no promise"):
        check(response(1), [("all", "all", "all", INF)], slack="a reason")


#: Utility-optimised response: input a and b are sensitive, c is not and may say so; x is a's and b's own, z only c's.
QUARTER = Fraction(1, 4)
RELAXED = [[3 * QUARTER, QUARTER, 0], [QUARTER, 3 * QUARTER, 0], [QUARTER, QUARTER, HALF]]
KINDS = (["high", "high", "low"], ["own", "own", "said"])
THREE = Fraction(math.floor(math.log(3) * 10**15) + 2, 10**15)  # ln 3 from above
PROMISES = [
    ("all", "all", "own", THREE),
    ("high", "all", "all", THREE),
    ("low", "high", "said", INF),
    ("low", "low", "all", 0),
    ("all", "all", "all", INF),
]


def without(k, *more):
    return [p for i, p in enumerate(PROMISES) if i != k] + list(more)


def test_a_relaxed_law():
    assert check(RELAXED, PROMISES, *KINDS) == INF


@pytest.mark.parametrize(("promises", "message"), [
    (without(0, ("all", "all", "own", Fraction(1))), "broken"),
    (without(0, ("all", "all", "own", Fraction(2))), "idle"),
    (without(0, ("all", "all", "said", THREE)), "broken"),
    (without(1, ("low", "high", "all", THREE)), "broken"),  # the direction counts
    (without(2, ("high", "low", "said", INF)), "idle"),  # and here too
    (without(3), "(low, low, said)"),
    (without(4), "once"),
    (without(4, ("all", "all", "all", THREE)), "broken"),
    ([*PROMISES, PROMISES[4]], "once"),
    ([*PROMISES, ("hihg", "all", "own", THREE)], "does not exist"),
    ([*PROMISES, ("high", "high", "own", 1.0986)], "exact"),
    ([*PROMISES, ("high", "high", "own", math.nan)], "exact"),
    ([*PROMISES, ("low", "low", "all", Fraction(-1))], "exact"),
])
def test_a_relaxed_law_that_says_the_wrong_thing(promises, message):
    with pytest.raises(MechanismError) as error:
        check(RELAXED, promises, *KINDS)
    assert message in str(error.value)


def test_the_wrong_values_protected():
    """A mechanism that protects other inputs than it names: the kinds of its rows are exchanged."""
    with pytest.raises(MechanismError, match="broken"):
        check(RELAXED, PROMISES, ["low", "high", "high"], KINDS[1])


def test_a_promise_above_the_plain_epsilon():
    law = response(1)
    with pytest.raises(MechanismError, match="exceeds"):
        check(law, [*plain(1), ("all", "all", "own", Fraction(2))], None, ["own"] * 3, slack="a reason")


@pytest.mark.parametrize(("inputs", "outputs"), [(["all"] * 2, ["all"] * 3), (["all"] * 3, ["all"] * 2)])
def test_every_row_and_column_has_a_kind(inputs, outputs):
    with pytest.raises(MechanismError, match="must name a kind"):
        check(response(1), plain(1), inputs, outputs)


def test_worst_ratio_is_exact():
    tiny = Fraction(1, 3**80)
    whole = as_integers([[HALF + tiny, HALF - tiny], [HALF, HALF]])[0]
    every = [True, True]
    assert worst_ratio(whole, every, every, every) == Fraction(HALF, HALF - tiny)
    assert worst_ratio(whole, [True, False], [False, True], every) == (HALF + tiny) / HALF
    assert worst_ratio(whole, [False, True], [True, False], [True, False]) < 1
    for ratio, epsilon, holds in ((HALF, 0, True), (Fraction(1), Fraction(0), True), (1 + tiny, 0, False),
                                  (INF, INF, True), (Fraction(5), INF, True), (INF, Fraction(80), False)):
        assert at_most(ratio, epsilon) == holds
