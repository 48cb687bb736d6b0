"""Sparse vectors: the split, exact numbers of any size, misuse in loops, threads and processes, what is refused."""

import math
import os
import threading
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from dpestim import config_context
from dpestim.accounting import Ledger
from dpestim.central import SparseVector
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.additive.law import LARGEST, NoiseStream
from dpestim.central.selection.comparisons import Comparisons
from dpestim.central.selection.sparse_vector import _two_thirds_power
from dpestim.exceptions import BudgetExceededError
from dpestim.rng import Stage, WordReader, WordSource


def vector(**params):
    return SparseVector(**{"epsilon": 1.0, "sensitivity": 1, "random_state": 0, **params})


@pytest.mark.parametrize("weight", [1, 2, 6, 8, 27, 2**33])
def test_the_split_is_the_best_one(weight):
    power = _two_thirds_power(weight)
    assert power**3 <= weight**2 < (power + Fraction(1, 2**40)) ** 3
    if weight in (1, 8, 27):
        assert power == {1: 1, 8: 4, 27: 9}[weight]


@pytest.mark.parametrize(("monotone", "weight"), [(False, 6), (True, 3)])
def test_no_other_split_has_less_variance(monotone, weight):
    law = vector(epsilon=0.7, max_positives=3, monotone=monotone, value_fraction=0.25).law()
    first, second, numbers = law.parts
    assert first + second + numbers == Fraction(7, 10)
    assert numbers == Fraction(7, 40)

    def variance(part):
        return 1 / part**2 + weight**2 / (first + second - part) ** 2

    assert variance(float(first)) < min(variance(float(first) * 0.99), variance(float(first) * 1.01))
    assert law.threshold.variance + law.query.variance < 2.01 * variance(float(first))
    assert law.number.variance == pytest.approx(2 * (3 / float(numbers)) ** 2, rel=1e-3)


def test_a_stream_of_noise_is_one_sequence_whatever_is_taken_at_a_time():
    law = DiscreteLaplaceLaw(Fraction(1), Fraction(0), Fraction(3), 0)
    wanted = law.draw(WordSource(0), 9_000)
    stream = NoiseStream(law, WordSource(0))
    assert np.concatenate([stream.take(n) for n in (1, 2, 5_000, 0, 3_997)]).tolist() == wanted.tolist()[:9_000]
    other = NoiseStream(law, WordSource(0), column=2).take(9_000)
    assert abs(np.corrcoef(wanted, other)[0, 1]) < 0.06  # n = 9,000, alpha = 1e-8


def test_no_word_is_used_twice(monkeypatch):
    """The words of all noise of an object, in whatever portions it is drawn."""
    drawn, dense = [], WordReader.dense

    def watched(self, stage, column, block, start, size):
        drawn.append((stage, column, block, start, size))
        return dense(self, stage, column, block, start, size)

    monkeypatch.setattr(WordReader, "dense", watched)
    est = vector(max_positives=20, value_fraction=0.5)
    law, n = est.law(), 3_000
    answers = [*est.process(np.zeros(n // 2), 500), *est.process(iter(np.zeros(n // 2)), 500)]
    assert len(answers) == n
    assert est.positives_ > 1
    columns = {column: [] for _, column, *_ in drawn}
    for stage, column, block, start, size in drawn:
        assert (stage, block) == (Stage.NOISE, 0)
        columns[column].append((start, start + size))
    assert {0, 2, 4} <= set(columns) <= set(range(6))  # the odd ones are further digits
    pers = {0: law.threshold.per, 2: law.query.per, 4: law.number.per}
    for column in {0, 2, 4}:  # a portion may begin in what was drawn and not used, never after or in what was
        ends = columns[column]
        assert all(a <= c <= b and c % pers[column] == 0 for (a, b), (c, _) in pairwise(ends))


class Huge(DiscreteLaplaceLaw):
    """Integers that 64 bits do not hold, in turns."""

    def _attempts(self, words, out):
        return 0, 0  # (all are settled)

    def _settle(self, words, stream):
        return (words[0] % 5 - 2) << 70


@pytest.mark.parametrize("offset", [0, 3 << 70, -(3 << 70), (1 << 70) + 1])
def test_noise_of_any_size_is_compared_exactly(offset):
    law = Huge(Fraction(1), Fraction(0), Fraction(1), 0)
    run = Comparisons(vector(max_positives=1000).law(), None, WordSource(0))
    run._offset, run._noise = offset, NoiseStream(law, WordSource(0))
    exact = NoiseStream(law, WordSource(0)).take(40)
    codes, limits = np.full(40, LARGEST // 2), np.full(40, -LARGEST // 2)
    wanted = [int(q) + int(z) >= int(t) + offset for q, z, t in zip(codes, exact, limits)]
    assert run.answer(codes, limits) == wanted
    assert len({abs(int(z)) for z in exact}) == 3
    assert law.draw(WordSource(0), 40).tolist() == [min(max(int(z), -LARGEST), LARGEST) for z in exact]


def test_values_of_any_size():
    est = vector(max_positives=10, value_fraction=0.5, epsilon=4.0)
    top = 2.0**61 * est.law().query.step
    values = [1e308, -1e308, 2.0**80, -(2.0**80), 5e-324]
    answers = list(est.process(values, [0.0, 0.0, 1e308, 1e308, -1e6]))
    assert answers[1] is answers[3] is None
    assert answers[0] == pytest.approx(top, rel=1e-9)  # cut: as far as integers reach
    assert abs(answers[4]) < 100


def test_strict_mode_reads_everything():
    with config_context(strict=True):
        est = vector(max_positives=9)
        wide = np.array([np.nan, np.inf, -np.inf, 1e308])
        assert list(est.process(wide, [-1e6, 1e6, 1e6, 1e6])) == [True, True, False, True]
        assert list(est.process(iter(wide), iter([-1e6, 1e6, 1e6, 1e6]))) == [True, True, False, True]
        with pytest.raises(ValueError, match="threshold"):
            est.process(wide, math.nan)


def test_thresholds_and_queries_that_do_not_fit():
    est = vector(max_positives=9, ledger=Ledger(1.0, durability="fast"))
    for queries, threshold, name in (
        ([1.0], math.nan, "threshold"), ([1.0], math.inf, "threshold"), ([1.0, 2.0], [1.0], "threshold"),
        ([1.0], [[1.0]], "threshold"), ([1.0], None, "threshold"), ([1.0], "high", "threshold"),
        ([1.0], {1.0}, "threshold"), (pd.DataFrame({"a": [1.0]}), 0.0, "queries"), ("12", 0.0, "queries"),
        ({1.0: 2}, 0.0, "queries"), (np.float64(3), 0.0, "queries"), ([[1.0]], 0.0, "queries"), (None, 0.0, "queries"),
    ):
        with pytest.raises(ValueError, match=name):
            est.process(queries, threshold)
    assert len(est.ledger.entries()) == 0
    for queries, threshold, name in (
        (iter([1.0, math.nan]), -1e6, "queries"), (iter(["s3cr3t"]), 0.0, "queries"),
        (iter([[1.0, 2.0]]), 0.0, "queries"),
        (iter([1.0, 1.0]), [-1e6], "threshold"), (iter([1.0, 1.0]), iter([-1e6]), "threshold"),
        ([1.0], iter([math.nan]), "threshold"),
    ):
        with pytest.raises(ValueError, match=name) as caught:
            list(est.process(queries, threshold))
        assert "s3cr3t" not in str(caught.value)
    assert len(est.ledger.entries()) == 1
    assert est.positives_ == 3  # what was answered before is


def test_containers():
    values = [0.0, 100.0, 0.0, 200.0]
    wanted = list(vector(max_positives=2, epsilon=4.0).process(values, 50))
    assert wanted == [False, True, False, True]
    for same in (tuple(values), np.array(values, np.float32), pd.Series(values), pl.Series(values), iter(values),
                 (np.float64(v) for v in values), map(int, values), np.array(values, object)):
        assert list(vector(max_positives=2, epsilon=4.0).process(same, 50)) == wanted
    assert list(vector().process([], 0)) == []


def test_parameters_are_fixed_by_the_first_answer():
    est = vector(max_positives=2)
    promise = est.privacy_
    assert list(est.process([-1e6], 0)) == [False]
    before = repr(est)
    with pytest.raises(ValueError, match="before the first answer"):
        est.set_params(max_positives=100, epsilon=9.0, sensitivity=None)
    assert repr(est) == before
    est.__init__(5.0)
    assert est.privacy_ == promise
    assert list(est.process([1e6] * 5, 0)) == [True, True]
    with pytest.raises(ValueError, match="max_positives=2"):
        est.process([0.0], 0)


def test_too_little_epsilon_is_refused_before_it_is_charged():
    ledger = Ledger(1.0, durability="fast")
    with pytest.raises(ValueError, match="epsilon is too small"):
        vector(epsilon=1e-9, max_positives=2**32, ledger=ledger).process([0.0], 0)
    assert len(ledger.entries()) == 0
    poor = vector(epsilon=2.0, ledger=ledger)
    with pytest.raises(BudgetExceededError):
        poor.process([0.0], 0)
    assert clone(poor).positives_ == poor.positives_ == 0  # nothing has begun


def test_one_budget_wherever_it_is_used():
    ledger = Ledger(1.0, durability="fast")
    est = vector(max_positives=3)
    with ledger:
        est.process([-1e6], 0)
    list(est.process([1e6], 0))
    assert len(ledger.entries()) == 1


def test_an_exception_of_the_queries_changes_nothing():
    est, calm = vector(max_positives=3), vector(max_positives=3)

    def fails():
        yield -1e6
        raise KeyError("mine")

    with pytest.raises(KeyError):
        list(est.process(fails(), 0))
    asked = np.random.default_rng(0).normal(size=200) * 20
    assert list(est.process(asked, 30)) == list(calm.process(np.r_[-1e6, asked], 30))[1:]


def test_queries_that_use_the_object_themselves():
    est = vector(max_positives=3)

    def nested():
        yield -1e6
        assert list(est.process([1e6], 0)) == [True]
        yield 1e6
        assert list(est.process([1e6] * 9, 0)) == [True]
        yield 1e6

    assert list(est.process(nested(), 0)) == [False, True]
    assert est.is_exhausted_


def test_threads_share_the_cut_off():
    est, found = vector(max_positives=40, random_state=None), []

    def work():
        try:
            found.extend(est.process((1e6 for _ in range(100)), 0))
            found.extend(est.process(np.full(100, 1e6), 0))
        except ValueError:
            pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_answers_nothing():
    est = vector(max_positives=3)
    pending = est.process(iter([0.0, 0.0]), 1e6)
    next(pending)
    child = os.fork()
    if not child:  # pragma: no cover (another process)
        refused = 0
        for use in (lambda: est.process([0.0], 0), lambda: next(pending)):
            try:
                use()
            except ValueError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert next(pending) is False


def test_state_and_streams_do_not_travel():
    est = vector()
    est.process([0.0], 0)
    for secret in (est._run, est._run._noise):
        with pytest.raises(TypeError):
            secret.__reduce__()
    assert str(est._run._offset) not in repr(est) + str(est.privacy_) + repr(vars(est))


def test_a_threshold_may_be_a_number_and_the_message_says_so():
    with pytest.raises(ValueError, match="threshold must be a number, or an array"):
        SparseVector(1.0, sensitivity=1).process([1, 2], "3")
