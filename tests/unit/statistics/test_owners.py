"""Owners of rows who do not trust each other: exact sums, masks, the law of the noise, and what each may learn."""

import copy
import json
import math
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from time import sleep

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from scipy import stats
from scipy.signal import fftconvolve

from dpestim import config_context, distributed
from dpestim.accounting import Ledger
from dpestim.base import all_estimators
from dpestim.distributed import owners as module
from dpestim.distributed.shared_noise import SharedNoise, _half_width
from dpestim.exceptions import BudgetExceededError
from dpestim.naive_bayes import DPGaussianNB
from dpestim.shuffle.transport.secure_sum import one_sided
from dpestim.statistics import ContingencyTable, Count, Covariance, Histogram, Mean, Quantile, Sum, Variance
from dpestim.statistics.base import DPStatistic

#: Probability that a test of a law fails by chance.
ALPHA = 1e-6
TRUE = np.arange(300) < 120


def count(**params):
    return Count(1.0, **params)


def answers(make, parts, honest=None, users=None):
    """Return the owners, their keys, and their messages about parts, tuples of what `answer` takes."""
    found = [distributed.Owner(make(), honest, users) for _ in parts]
    keys = [owner.key for owner in found]
    return found, keys, [owner.answer(keys, *part) for owner, part in zip(found, parts)]


def settings():
    for name, cls in all_estimators():
        if issubclass(cls, DPStatistic):
            for params in cls._test_params():
                for relation in ("substitution", "add_remove"):
                    yield pytest.param(cls, {**params, "neighbours": relation}, id=f"{name}-{relation}-{len(params)}")


#: Statistics, by relation, whose releases are noise on sums of parts.
ADD_UP = {"Count", "Sum", "Mean", "Histogram", "ContingencyTable"}
MOMENTS = {"Covariance", "Correlation", "Variance", "StandardDeviation"}


@pytest.mark.parametrize(("cls", "params"), list(settings()))
def test_sums_of_owners_are_those_of_one_machine(cls, params, monkeypatch):
    """For every statistic of the registry: refused, or what one machine makes of its integers before noise."""
    est = cls(**params)
    if cls.__name__ not in ADD_UP | (MOMENTS if params["neighbours"] == "add_remove" else set()):
        with pytest.raises(ValueError, match=r"must add noise to sums|bounds"):
            distributed.Owner(est)
        return
    monkeypatch.setattr(module, "_drawn", lambda share, source, size: np.zeros(size, np.uint64))
    X, _ = est._test_data(60)
    X = np.asarray(X)
    parts = [(X[a:b],) for a, b in ((0, 13), (13, 13), (13, 60))]  # (one owner has no rows)
    messages = answers(lambda: cls(**est.get_params()), parts, 3)[2]
    found = distributed.combine(cls(**est.get_params()), messages)
    whole = module._twin(est, 3, 3)
    plan = module._planned(whole, whole._summary_of(*whole._read(X, None)))
    part = plan.parts[0]
    total = part.noise.total(sum(message["masked"] for message in messages))
    expected = whole._result(plan.finish([part.noise.scaled(total)]))
    for one, other in zip((found.value_, *found.result_.interval()), (expected.value, *expected.interval())):
        assert (np.asarray(one) == other).all()
    # (large integers are rounded by each owner)
    assert np.abs(total - part.noise.codes(part.numbers)).max() <= (0 if part.noise.single.unit == 1 else 2)


def test_large_integers_are_rounded_by_each_owner(monkeypatch):
    monkeypatch.setattr(module, "_drawn", lambda share, source, size: np.zeros(size, np.uint64))

    def make():
        return Sum(1.0, bounds=(2**20, 2**20 + 1), neighbours="add_remove")

    X = 2**20 + np.random.default_rng(0).uniform(size=30)
    found = distributed.combine(make(), answers(make, [(X[:7],), (X[7:20],), (X[20:],)], 3)[2])
    twin = module._twin(make(), 3, 3)
    noise = module._planned(twin, twin._summary_of(*twin._read(X, None))).parts[0].noise
    assert noise.single.unit > 1
    step = twin._identity(1, True)[-1][0].step
    assert abs(found.value_ - X.sum()) <= (3 / 2 * noise.single.unit + 30 / 2) * step
    exact = noise.law.half_width(0.95) * noise.single.unit
    assert noise.half_width(0.95) == exact + 3 / 2 * noise.single.unit


# ---------------------------------------------------------------- the law of the noise


def law_of(rate, shares, reach=400):
    """Return P[X - X' = z] for |z| <= reach, both negative binomial."""
    one = stats.nbinom.pmf(np.arange(4 * reach), shares, -math.expm1(-rate))
    return (np.convolve if reach < 1000 else fftconvolve)(one, one[::-1])[4 * reach - 1 - reach : 4 * reach + reach]


def p_value(noise, law):
    """Return that of Pearson's test, tails pooled."""
    reach = (len(law) - 1) // 2
    kept = np.flatnonzero(law * len(noise) > 20)
    seen = np.array([(noise == z - reach).sum() for z in kept])
    seen, expected = np.r_[seen, len(noise) - seen.sum()], np.r_[law[kept], 1 - law[kept].sum()] * len(noise)
    return stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1)


@pytest.mark.parametrize(("n_owners", "honest"), [(3, 3), (3, 2), (4, 1)])
def test_total_noise_follows_its_law(n_owners, honest):
    """6,000 empty cells: with all honest it is discrete Laplace noise, else the stated one, and no other."""
    def make(seed):
        return Histogram(1.0, bins=6000, bounds=(0, 1), random_state=seed)

    owners = [distributed.Owner(make(seed), honest) for seed in range(n_owners)]
    keys = [owner.key for owner in owners]
    found = distributed.combine(make(9), [owner.answer(keys, np.zeros(0)) for owner in owners])
    laws = {shares: law_of(0.5, shares) for shares in (1, 1.5, 4)}
    assert laws[1][400] == pytest.approx(math.tanh(0.25))  # (of discrete Laplace noise: (1 - a) / (1 + a))
    for shares, law in laws.items():
        assert (p_value(found.value_, law) > ALPHA) == (shares == n_owners / honest)
    assert found.result_.standard_error[0] ** 2 == pytest.approx(found.value_.var(), rel=0.1)
    assert found.privacy_.seeded


@pytest.mark.parametrize(("rate", "shares"), [(1.0, 1.5), (0.5, 4 / 3), (0.05, 2.0), (0.0015, 10 / 9)])
def test_half_widths_hold_and_are_hardly_wider(rate, shares):
    reach = int(12 / rate)
    law = law_of(rate, shares, reach)
    beyond = 1 - np.cumsum(np.r_[law[reach], 2 * law[reach + 1 :]])  # P[|Z| > w]
    for level in (0.5, 0.9, 0.95, 0.999):
        width = _half_width(rate, shares, level)
        exact = int(np.argmax(beyond <= 1 - level))
        assert exact <= width <= exact + max(0, 0.006 / rate), (level, width, exact)
    # and far out, where another bound stands
    assert _half_width(rate, shares, 1 - 1e-9) >= _half_width(rate, shares, 1 - 2e-6)


@pytest.mark.parametrize(("honest", "left"), [(3, 3), (3, 2), (3, 1), (2, 1)])
@pytest.mark.parametrize(("size", "moved"), [(1, 1), (2, 2), (1, 3), (3, 2)])
def test_what_fewer_honest_owners_keep(honest, left, size, moved):
    """All outcomes and all moves of a vector are enumerated: the stated epsilon is no less than the worst loss."""
    noise = SharedNoise.maker(4, honest)(1, 0, moved, moved * moved, 1)
    law = law_of(float(noise.law.rate_of_decay), left / honest, 40)
    worst = [max(np.abs(np.log(law[20 + s : 60] / law[20 : 60 - s])).max(), 0) for s in range(moved + 1)]
    found = max(sum(worst[s] for s in steps) for steps in product(range(moved + 1), repeat=size)
                if sum(steps) <= moved)
    stated = noise.epsilon_left(size, left)
    assert found <= stated * (1 + 1e-9)
    assert (found > 1 + 1e-6) == (left < honest)  # (what was promised needs as many as were promised)
    if moved <= size or size == 1:
        assert stated == pytest.approx(found, rel=1e-4)
    assert noise.epsilon_left(size, 0) == math.inf


# ---------------------------------------------------------------- masks


def test_what_others_see_of_two_honest_owners(monkeypatch):
    """One of three owners tells all it has: the messages of the others are words, which add up to what they may."""
    shares, draw = [], module._drawn
    monkeypatch.setattr(module, "_drawn", lambda *args: shares.append(draw(*args)) or shares[-1])

    def make():
        return Histogram(1.0, bins=5000, bounds=(0, 1))

    X = np.random.default_rng(0).uniform(size=900)
    owners, keys, messages = answers(make, [(X[:300],), (X[300:600],), (X[600:],)])
    secret, terms, bare = owners[2]._secret, bytes.fromhex(messages[0]["terms"]), []
    for place in (0, 1):  # what the third owner knows of their masks is taken away
        agreed = secret.exchange(X25519PublicKey.from_public_bytes(keys[place]))
        mask = one_sided(place, 2, module._mask(2, place, agreed, terms, 5000))
        bare.append(messages[place]["masked"] - mask)
    cells = [np.histogram(part, 5000, (0, 1))[0] for part in (X[:300], X[300:600])]
    assert (sum(bare).view(np.int64) == cells[0] + cells[1] + (shares[0] + shares[1]).view(np.int64)).all()
    for words in (*bare, *(message["masked"] for message in messages)):
        seen = np.bincount(words.view(np.uint8), minlength=256)
        assert stats.chisquare(seen).pvalue > 1e-12  # (keys are fresh in each run)
        assert (words.view(np.int64) > 2**40).mean() > 0.4
    assert stats.chisquare(np.bincount(sum(bare).view(np.uint8), minlength=256)).pvalue < ALPHA


def test_a_key_that_is_written_otherwise_takes_no_mask_away():
    """The highest bit of a key is not read: of an honest key and this one, between them, masks would cancel."""
    honest, middle = distributed.Owner(count()), distributed.Owner(count())
    forged = honest.key[:31] + bytes([honest.key[31] ^ 128])
    message = middle.answer([honest.key, middle.key, forged], TRUE)
    assert abs(int(message["masked"].view(np.int64)[0])) > 2**20


@pytest.mark.parametrize("other", [{"delta": 1e-9}, {"neighbours": "add_remove"}])
def test_owners_with_other_parameters_have_other_masks(other):
    one, two = distributed.Owner(count(), 1), distributed.Owner(count(**other), 1)
    keys = [one.key, two.key]
    total = one.answer(keys, TRUE)["masked"] + two.answer(keys, TRUE)["masked"]
    assert abs(int(total.view(np.int64)[0])) > 2**20


def test_owners_with_other_lists_have_other_masks():
    """Who is told another list makes a message that cancels with none."""
    found = [distributed.Owner(count()) for _ in range(3)]
    keys = [owner.key for owner in found]
    turned = [keys[0], keys[2], keys[1]]
    messages = [found[0].answer(keys, TRUE), found[1].answer(turned, TRUE), found[2].answer(keys, TRUE)]
    assert len({message["terms"] for message in messages}) == 2
    total = sum((message["masked"] for message in messages), np.zeros(1, np.uint64)).view(np.int64)
    assert abs(int(total[0])) > 2**20
    with pytest.raises(ValueError, match=r"is missing|one statistic"):
        distributed.combine(count(), messages)


# ---------------------------------------------------------------- who pays, and how often


def test_each_owner_pays_once_before_anything_is_drawn(monkeypatch):
    ledgers = [Ledger(1.0) for _ in range(3)]
    owners = [distributed.Owner(count(ledger=ledger)) for ledger in ledgers]
    keys = [owner.key for owner in owners]
    messages = [owner.answer(keys, TRUE) for owner in owners]
    with Ledger(1.0) as here:
        found = distributed.combine(count(), messages)
    assert not here.entries()
    for ledger in ledgers:
        (entry,) = ledger.entries()
        assert (entry["epsilon"], entry["delta"]) == (1, 0)
    assert found.privacy_.epsilon == 1
    assert found.privacy_ == owners[0]._estimator._promised
    assert found.privacy_.curve == count().fit(TRUE).privacy_.curve
    assert "up to 1 of the 3 owners" in str(found.privacy_)
    assert "Against one owner more, epsilon is" in str(found.privacy_)
    again = distributed.Owner(count(ledger=ledgers[0]))
    monkeypatch.setattr(module, "_drawn", lambda *args: pytest.fail("drawn without budget"))
    with pytest.raises(BudgetExceededError):
        again.answer([again.key, keys[1]], TRUE)
    assert again.message is None


def test_an_owner_made_in_a_block_pays_to_its_ledger():
    est = count()
    with Ledger(1.0) as ledger:
        owner = distributed.Owner(est)
    est.set_params(epsilon=0.25)  # (what is set later is no matter of the owner)
    owner.answer([owner.key, distributed.Owner(count()).key], TRUE)
    assert ledger.spent().epsilon == 1


def test_an_owner_has_one_message(monkeypatch):
    """A second one, about other rows with the same masks and noise, would tell the difference exactly."""
    draw = module._drawn
    monkeypatch.setattr(module, "_drawn", lambda *args: sleep(0.05) or draw(*args))
    ledger = Ledger(5.0)
    owner, other = distributed.Owner(count(ledger=ledger)), distributed.Owner(count())
    keys = [owner.key, other.key]

    def ask(k):
        try:
            return owner.answer(keys, TRUE[k:])
        except ValueError as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(40)))
    assert sum(isinstance(one, dict) for one in found) == 1
    assert len(ledger.entries()) == 1
    assert "an owner has one message" in ask(0)
    assert "an owner has one message" in str([ask(0) for keys in ([other.key, owner.key],)])
    for make in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            make(owner)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_has_no_second_message_with_the_same_noise():
    owners = [distributed.Owner(Count(1.0)) for _ in range(2)]
    keys, (end, start) = [owner.key for owner in owners], os.pipe()
    child = os.fork()
    if not child:
        try:
            owners[0].answer(keys, [True] * 9)
        except BaseException as error:
            os.write(start, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(start)
    assert b"an Owner answers in the process that made it" in os.read(end, 1000)
    os.close(end)
    assert owners[0].answer(keys, [True] * 8)["place"] == 0


def test_no_value_matters_in_strict_mode():
    with config_context(strict=True):
        values = []
        for x in (0.5, np.nan, np.inf, 1e300):
            def make():
                return Mean(1.0, bounds=(0, 1))
            messages = answers(make, [(np.array([x, 0.2]),), (np.array([0.1]),)])[2]
            values.append(distributed.combine(make(), messages).value_)
            assert set(messages[0]) == set(module._FIELDS)
        assert np.isfinite(values).all()


# ---------------------------------------------------------------- messages, columns, users


def test_frames_and_transports():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = np.random.default_rng(0).uniform(size=(2000, 2)) * [1, 50]
    bounds = {"hours": (0, 50), "share": (0, 1)}

    def make():
        return Mean(5.0, bounds=bounds)

    frames = [pandas.DataFrame(rows[:900], columns=["share", "hours"]),
              polars.DataFrame(rows[900:], schema=["share", "hours"])]
    messages = answers(make, [(frame,) for frame in frames])[2]
    sent = json.loads(json.dumps([{**message, "masked": message["masked"].tolist()} for message in messages]))
    found = distributed.combine(make(), sent)
    same = distributed.combine(make(), iter(pickle.loads(pickle.dumps(messages))[::-1]))
    assert (found.value_ == same.value_).all()
    assert found.value_ == pytest.approx(rows.mean(axis=0), rel=0.1)
    assert list(found.feature_names_in_) == ["share", "hours"]
    assert found.result_.axes == Mean(5.0, bounds=bounds).fit(frames[0]).result_.axes
    # columns in another order are other columns
    messages = answers(make, [(frames[0],), (frames[0][["hours", "share"]],)])[2]
    with pytest.raises(ValueError, match="the same columns"):
        distributed.combine(make(), messages)


def test_users_are_those_of_one_owner():
    def make():
        return Count(8.0, max_rows_per_user=2, neighbours="add_remove")

    with pytest.raises(ValueError, match='users must be "disjoint"'):
        distributed.Owner(make())
    messages = answers(make, [(TRUE[:90], np.arange(90) // 3), (TRUE[90:180], np.arange(90) // 3)], users="disjoint")[2]
    found = distributed.combine(make(), messages)
    assert found.value_ == pytest.approx(80, abs=15)  # (two of three rows of each user, of the first 120)
    assert messages[0]["n_rows"] is None


def test_an_owner_may_summarise_rows_first(monkeypatch):
    """In batches, or on an engine of its own."""
    monkeypatch.setattr(module, "_drawn", lambda share, source, size: np.zeros(size, np.uint64))
    est = count().summarize(TRUE[:50]).summarize(TRUE[50:])
    messages = answers(count, [(est,), (TRUE,)])[2]
    assert distributed.combine(count(), messages).value_ == 240
    assert est.merge(count().summarize(TRUE)).summary_.n_rows == 600  # (what the owner has is as it was)
    others = count(neighbours="add_remove").summarize(TRUE), Sum(1.0, bounds=(0, 1)).summarize(TRUE)
    for bad, match in ((count(), "release needs rows"), (others[0], "set the same"), (others[1], "set the same")):
        with pytest.raises(ValueError, match=match):
            answers(count, [(bad,), (TRUE,)])


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(("make", "match"), [
    (lambda: DPGaussianNB(1.0), "estimator must be a statistic"),
    (lambda: "count", "estimator must be a statistic"),
    (lambda: Quantile(1.0, bounds=(0, 1)), "must add noise to sums of parts"),
    (lambda: Mean(1.0, bounds="private"), "declare bounds"),
    (lambda: Variance(1.0, bounds=(0, 1)), 'neighbours="add_remove"'),
    (lambda: Covariance(1.0, bounds=(0, 1), neighbours="substitution"), 'neighbours="add_remove"'),
])
def test_estimators_without_a_proof_are_refused(make, match):
    with pytest.raises(ValueError, match=match):
        distributed.Owner(make())
    with pytest.raises(ValueError, match=match):
        distributed.combine(make(), [])


@pytest.mark.parametrize("honest", [0, -1, True, 1.5, "all"])
def test_honest_is_a_number(honest):
    with pytest.raises(ValueError, match="honest must be"):
        distributed.Owner(count(), honest)


def test_keys_are_those_of_all_owners():
    owner, other = distributed.Owner(count(), honest=2), distributed.Owner(count())
    for keys, match in (([owner.key], "two or more"), ("keys", "list of the keys"), ([owner.key, 5], "each bytes"),
                        ([owner.key, other.key, other.key], "two are equal"), ([other.key, b"1" * 32], "of this owner"),
                        ([owner.key, bytes(32)], "one of them is not")):
        with pytest.raises(ValueError, match=match):
            owner.answer(keys, TRUE)
    with pytest.raises(ValueError, match="honest must be at most 2"):
        (third := distributed.Owner(count(), 3)).answer([third.key, other.key], TRUE)
    seeded = [distributed.Owner(count(random_state=3)) for _ in range(2)]
    with pytest.raises(ValueError, match="the same random_state"):
        seeded[0].answer([one.key for one in seeded], TRUE)


def test_messages_that_do_not_belong_together():
    messages = answers(count, [(TRUE,)] * 3)[2]
    bad = [
        ([], "there are none"), (messages[:2], "owner 2 .* is missing"),
        ([*messages, messages[0]], "one owner has two"), ([{}], "must be dicts"), (["message"], "must be dicts"),
        ([*messages[:2], {**messages[2], "place": 3}], "must be dicts"),
        ([*messages[:2], {**messages[2], "masked": [1, 2]}], "masked of each"),
        ([*messages[:2], {**messages[2], "masked": ["a"]}], "masked of each"),
        ([*messages[:2], {**messages[2], "masked": [-1]}], "masked of each"),
        ([*messages[:2], {**messages[2], "key": "zz" * 32}], "must be dicts"),
        ([*messages[:2], {**messages[2], "key": "00" * 32}], "about one statistic"),
        ([*messages[:2], {**messages[2], "terms": "00"}], "about one statistic"),
        (answers(count, [(TRUE,), (TRUE[:, None],)])[2], "about one statistic"),
        ([{**message, "honest": 3} for message in messages], "about one statistic"),
    ]
    for some, match in bad:
        with pytest.raises(ValueError, match=match):
            distributed.combine(count(), some)
    for other in (Count(2.0), count(delta=1e-9), count(neighbours="add_remove"),
                  Sum(1.0, bounds=(0, 1))):
        with pytest.raises(ValueError, match="about one statistic"):
            distributed.combine(other, messages)
    assert distributed.combine(count(), messages).value_ == pytest.approx(360, abs=40)


def test_categories_of_any_type():
    def make():
        return ContingencyTable(3.0, categories=[["a", None, 3], [True, False]])

    rows = np.array([["a", True], [None, False], [3, True]] * 200, object)
    found = distributed.combine(make(), answers(make, [(rows[:250],), (rows[250:],)])[2])
    assert found.value_ == pytest.approx(np.array([[200, 0], [0, 200], [200, 0]]), abs=30)
