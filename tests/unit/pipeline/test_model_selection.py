"""Private search: laws of the whole search by enumeration, what it pays, publishes and refuses."""

import math
import pickle
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

from dpestim import Categories, Domain, config_context
from dpestim.accounting import Ledger
from dpestim.base import PrivateEstimator
from dpestim.central import PermuteAndFlip
from dpestim.exact_reals import BitStream
from dpestim.exceptions import BudgetExceededError
from dpestim.inspection import privacy_card
from dpestim.linear_model import DPLogisticRegression
from dpestim.local import PMTransformer
from dpestim.model_selection import PrivateSearchCV
from dpestim.model_selection.plan import plan_of
from dpestim.model_selection.runs import best_of, expected_runs, n_runs, usual_gamma
from dpestim.pipeline import PrivatePipeline, check_pipeline
from dpestim.preprocessing import DomainEncoder
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.rng import WordSource
from dpestim.testing.tools import Book, differs_each_time

ETAS = [Fraction(-1, 2), Fraction(0), Fraction(1, 3), Fraction(1)]
SELECTIONS = ("papernot_steinke", "liu_talwar", "exponential")
SPACE = {"C": [None, 1.0, 0.01]}
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(400, 3))
Y = X[:, 0] > 0.3


def model(**params):
    return DPLogisticRegression(data_norm=1.0, classes=[False, True], **params)


def search(estimator=None, param_distributions=SPACE, **params):
    return PrivateSearchCV(estimator or model(), param_distributions, **{"random_state": 0, "gamma": 0.3, **params})


def stream(seed, part=0):
    return BitStream(WordSource(seed).part(part).reader(), 0, 0)


class Constant(ClassifierMixin, PrivateEstimator):
    """A private classifier that knows its answer, and remembers what it was fitted with."""

    seen = []

    def __init__(self, answer=0, epsilon=1.0, cost=1, delta=0.0, ledger=None, random_state=None):
        self.answer, self.epsilon, self.cost, self.delta = answer, epsilon, cost, delta
        self.ledger, self.random_state = ledger, random_state

    def _promise(self):
        return PrivacyGuarantee(Fraction(self.epsilon), self.delta, "central", Neighbours.SUBSTITUTION)

    def fit(self, X, y):
        if self.cost:
            self._charge(PrivacyGuarantee(self.cost * Fraction(self.epsilon), self.delta, "central",
                                          Neighbours.SUBSTITUTION), len(X))
        self.classes_, self.n_features_in_ = np.arange(3), 1
        self.seen.append((self.answer, self.epsilon, self.random_state, np.asarray(X)[:, 0].tolist()))
        return self

    def predict(self, X):
        return np.full(len(X), self.answer)


class Unseeded(ClassifierMixin, PrivateEstimator):
    """A private step without a random state."""

    def __init__(self, epsilon=1.0, ledger=None):
        self.epsilon, self.ledger = epsilon, ledger

    def _promise(self):
        return PrivacyGuarantee(Fraction(self.epsilon), 0, "central", Neighbours.SUBSTITUTION)

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X), bool)


# ---------------------------------------------------------------- how often to run

def weights(gamma, eta, n):
    """P[k], k = 1 to n and the rest, of the law of `n_runs`, as floats."""
    out = [1.0]
    for k in range(1, 3000):
        out.append(out[-1] * float((1 - gamma) * (k + eta) / (k + 1)))
    out = np.array(out) / sum(out)
    return np.append(out[:n], out[n:].sum())


@pytest.mark.law
@pytest.mark.parametrize("eta", ETAS)
def test_the_number_of_runs_has_its_law(eta):
    """n = 1000, alpha = 1e-5; a law with eta larger by a half is rejected."""
    gamma, n = Fraction(1, 20), 1000
    words = stream(3)
    counts = np.bincount(np.minimum([n_runs(words, gamma, eta) for _ in range(n)], 7), minlength=8)[1:]
    assert stats.chisquare(counts, n * weights(gamma, eta, 6)).pvalue > 1e-5
    assert stats.chisquare(counts, n * weights(gamma, eta + Fraction(1, 2), 6)).pvalue < 1e-5


@pytest.mark.law
def test_the_number_of_runs_on_average():
    for eta in ETAS:
        for gamma in (Fraction(1, 20), Fraction(1, 2), Fraction(1)):
            whole = weights(gamma, eta, 2900)
            assert expected_runs(gamma, eta) == pytest.approx(whole[:-1] @ np.arange(1, 2901), rel=1e-6)
        assert expected_runs(usual_gamma(12, eta), eta) == pytest.approx(48, rel=0.01)
    assert n_runs(stream(0), Fraction(1), Fraction(0)) == 1


# ---------------------------------------------------------------- the law of the best, enumerated

def rise(x, y, gamma, eta):
    """Return f(y) - f(x), f(x) = E[x^K], of Decimals; exact but for 60 digits."""
    a = 1 - gamma
    if not eta:
        return ((1 - a * x).ln() - (1 - a * y).ln()) / -gamma.ln()
    return ((1 - a * y) ** -eta - (1 - a * x) ** -eta) / (gamma**-eta - 1)


def law_of_best(base, gamma, eta):
    """Return P[best = (score, candidate)] from {score: [probabilities of candidates]}."""
    out, below = [], Decimal(0)
    for score in sorted(base):
        mass = sum(base[score], Decimal(0))
        grows = rise(below, below + mass, gamma, eta)
        out += [grows * p / mass for p in base[score]]
        below += mass
    return out


def worst(base, other, gamma, eta):
    """Return the logarithm of the worst ratio of any event, in either direction, in units of that of a run."""
    with localcontext() as context:
        context.prec = 60
        gamma, eta = (Decimal(v.numerator) / Decimal(v.denominator) for v in (gamma, eta))
        one, two = law_of_best(base, gamma, eta), law_of_best(other, gamma, eta)
        assert abs(sum(one) - 1) < Decimal("1e-40")
        pairs = list(zip(one, two))
        single = max(abs((p / q).ln()) for score in base for p, q in zip(base[score], other[score]))
        return float(max(abs((p / q).ln()) for p, q in pairs) / single)


@pytest.mark.law
@pytest.mark.parametrize("eta", ETAS)
def test_the_best_of_runs_costs_what_is_claimed_and_no_less(eta):
    """Runs of three outcomes as in the proof, and runs at random: a ratio of e^epsilon each at most."""
    with localcontext() as context:
        context.prec = 60
        e, top, mid = Decimal(2), Decimal("1e-6"), Decimal("1e-12")
        base = {2: [top], 1: [mid], 0: [1 - top - mid]}
        other = {2: [top * e], 1: [mid / e], 0: [1 - top * e - mid / e]}
    found = worst(base, other, Fraction(1, 10**12), eta)
    assert 0.99 * (2 + eta) < found <= 2 + eta
    assert found > 2 + eta - Fraction(1, 2)  # so half an eta less would be a false claim
    rng = np.random.default_rng(1)
    for _ in range(40):  # randomised response over outcomes, two to a score
        keep, rest = Decimal(3) / 8, Decimal(1) / 8
        tables = [[keep if i == chosen else rest for i in range(6)] for chosen in rng.choice(6, 2, replace=False)]
        base, other = ({s: table[2 * s:2 * s + 2] for s in range(3)} for table in tables)
        assert worst(base, other, Fraction(int(rng.integers(1, 100)), 100), eta) <= 2 + eta


@pytest.mark.law
def test_a_fixed_number_of_runs_would_cost_more():
    """The best of 20 runs: the reason for a random number."""
    p, q = 0.1, 0.2
    assert math.log((1 - p) ** 20 / (1 - q) ** 20) > 3 * math.log(q / p)


@pytest.mark.law
def test_the_best_of_runs_has_its_law():
    """n = 1500, alpha = 1e-5: of equal scores the first, and candidates keep their odds; swapped scores fail."""
    base = {0: [0.3, 0.2], 1: [0.1, 0.25], 2: [0.05, 0.1]}
    names = [(score, place) for score in base for place in range(2)]
    odds = [p for score in base for p in base[score]]
    gamma, eta, n = Fraction(1, 10), Fraction(1, 2), 1500
    want = np.array([float(p) for p in law_of_best({s: list(map(Decimal, p)) for s, p in base.items()},
                                                   Decimal("0.1"), Decimal("0.5"))])
    rng, words = np.random.default_rng(2), stream(5)
    drawn = [names.index(best_of(words, gamma, eta, lambda: names[rng.choice(6, p=odds)])) for _ in range(n)]
    counts = np.bincount(drawn, minlength=6)
    assert stats.chisquare(counts, n * want / want.sum()).pvalue > 1e-5
    assert stats.chisquare(counts, n * want[[0, 1, 4, 5, 2, 3]] / want.sum()).pvalue < 1e-5


def laplace(share, centre, reach=60):
    """Return P[centre + noise = s] for s from -reach to reach."""
    p = np.exp(-float(share) * np.abs(np.arange(-reach, reach + 1) - centre))
    return p * np.tanh(float(share) / 2)


def whole_law(counts, share, gamma, eta):
    """Return P[candidate, noisy score] of a search whose models count so many rows rightly."""
    base = np.stack([laplace(share, c) for c in counts], axis=1) / len(counts)
    top = np.concatenate([[0.0], np.cumsum(base.sum(axis=1))])
    nodes, parts = np.polynomial.legendre.leggauss(12)  # f' over a score, by quadrature
    x = top[:-1, None] + np.diff(top)[:, None] * (1 + nodes) / 2
    rising = ((1 - (1 - float(gamma)) * x) ** (-float(eta) - 1)) @ parts / 2
    whole = -math.log(gamma) if not eta else (float(gamma) ** -float(eta) - 1) / float(eta)
    return base * rising[:, None] * (1 - float(gamma)) / whole


@pytest.mark.law
@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_whole_search_follows_its_law_and_keeps_its_total(selection):
    """Constant models on 20 rows: n = 150, alpha = 1e-5; equal chances are rejected; neighbours, exactly."""
    rows, answers, n = np.zeros((20, 1)), np.repeat([0, 1, 2], [12, 6, 2]), 150
    face = PrivateSearchCV(Constant(), {"answer": [0, 1, 2]}, epsilon=1.5, selection=selection,
                           validation_fraction=0.95, gamma=0.2, eta=0, random_state=np.random.default_rng(0))
    places = [face.fit(rows, answers).best_params_["answer"] for _ in range(n)]
    eta = Fraction(selection == "liu_talwar")
    share = Fraction(3, 2) / (2 + eta)

    def law(counts):
        if selection == "exponential":
            return PermuteAndFlip(1.5, sensitivity=1).probabilities(np.array(counts))
        return whole_law(counts, share, Fraction(1, 5), eta)

    # one row of 20 is trained on: one answer has one less
    parts = [law(counts) for counts in ((11, 6, 2), (12, 5, 2), (12, 6, 1))]
    want = sum(w * part.reshape(-1, 3).sum(axis=0) for w, part in zip((0.6, 0.3, 0.1), parts))
    assert want.sum() == pytest.approx(1)
    assert stats.chisquare(np.bincount(places, minlength=3), n * want).pvalue > 1e-5
    assert stats.chisquare(np.bincount(places, minlength=3)).pvalue < 1e-5
    for other in ((10, 7, 2), (12, 6, 2), (11, 5, 3), (10, 6, 2)):
        p, q = law((11, 6, 2)), law(other)
        sure = (p > 1e-9) & (q > 1e-9)
        assert np.abs(np.log(p[sure] / q[sure])).max() <= 1.5 + 1e-6


@pytest.mark.law
def test_scores_have_the_noise_of_a_share():
    """One run: the noisy count is right with probability tanh(share / 2); n = 120, alpha = 1e-4, half of it fails."""
    face = PrivateSearchCV(Constant(), {"answer": [0]}, epsilon=2.5, gamma=1, random_state=np.random.default_rng(1))
    rows, answers = np.zeros((50, 1)), np.zeros(50, int)
    exact = sum(face.fit(rows, answers).best_score_ == 1 for _ in range(120))
    assert stats.binomtest(exact, 120, math.tanh(1 / 2)).pvalue > 1e-4
    for scale in (0.5, 2):
        assert stats.binomtest(exact, 120, math.tanh(scale / 2)).pvalue < 1e-4


# ---------------------------------------------------------------- rows, seeds, shares

@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_run_gets_its_share_and_the_same_rows_and_a_seed_of_its_own(selection):
    rows = np.arange(50.0)[:, None]
    Constant.seen.clear()
    PrivateSearchCV(Constant(), {"answer": [0, 1]}, epsilon=1, selection=selection, gamma=0.05, random_state=1).fit(
        rows, np.zeros(50, int))
    shares = {"papernot_steinke": Fraction(2, 5), "liu_talwar": Fraction(1, 3), "exponential": Fraction(1, 2)}
    assert {share for _, share, _, _ in Constant.seen} == {shares[selection]}
    parts = {tuple(part) for _, _, _, part in Constant.seen}
    assert [len(part) for part in parts] == [40]
    assert parts != {tuple(range(40))}
    seeds = [seed for _, _, seed, _ in Constant.seen]
    assert len(set(seeds)) == len(seeds) > 1
    Constant.seen.clear()
    PrivateSearchCV(Constant(random_state=7), {"answer": [0, 1]}, gamma=0.2).fit(rows, np.zeros(50, int))
    assert {seed for _, _, seed, _ in Constant.seen} == {None}  # a seed of the estimator would repeat its noise


def test_seeds_reproduce_and_say_so():
    one, two, other = search().fit(X, Y), search().fit(X, Y), search(random_state=1).fit(X, Y)
    assert np.array_equal(one.best_estimator_.coef_, two.best_estimator_.coef_)
    assert not np.array_equal(one.best_estimator_.coef_, other.best_estimator_.coef_)
    assert one.best_score_ == two.best_score_
    secure = search(random_state=None)
    assert one.privacy_.seeded
    assert not secure.privacy_.seeded
    assert differs_each_time(lambda: secure.fit(X, Y).best_estimator_.coef_)


def test_budgets_of_several_steps_keep_their_proportion():
    pipeline = make_pipeline(Normalizer(), model(epsilon=3.0))
    plan = plan_of(PrivateSearchCV(pipeline, {"dplogisticregression__C": [1.0, 2.0]}, epsilon=0.1))
    assert [m[-1].epsilon for m in plan.models] == [Fraction(1, 25)] * 2
    steps = [model(epsilon=9.0), model(perturbation="output")]
    found = PrivateSearchCV(pipeline, {"dplogisticregression": steps}, gamma=0.5, selection="exponential").fit(X, Y)
    assert found.best_params_["dplogisticregression"] in steps
    assert [step.epsilon for step in steps] == [9.0, 1.0]  # nothing of the caller's has changed
    assert found.best_estimator_[-1].epsilon == Fraction(1, 2)
    both = make_pipeline(Normalizer(), search(model(), {"C": [1.0]}))
    assert check_pipeline(both).is_private
    assert both.fit(X, Y).predict(X).shape == Y.shape


# ---------------------------------------------------------------- paying

@pytest.mark.parametrize("selection", SELECTIONS)
def test_one_fit_is_one_charge_of_the_total(selection):
    book = Book()
    face = search(epsilon=0.7, selection=selection, ledger=book)
    promised = face.privacy_
    face.fit(X, Y)
    assert [entry[0] for entry in book.paid] == [promised] == [face.privacy_]
    assert promised.epsilon == Fraction(7, 10)
    assert promised.neighbours is Neighbours.SUBSTITUTION
    assert book.paid[0][1:] == ("PrivateSearchCV", 400, 0)
    face.predict(X)
    assert len(book.paid) == 1
    face.score(X, Y)
    assert len(book.scores) == 1
    face.best_estimator_.fit(X, Y)  # the ledger is back: this is another release
    assert len(book.paid) == 2


@pytest.mark.parametrize("selection", SELECTIONS)
def test_steps_that_cost_nothing_and_have_no_budget_stand_before_the_model(selection):
    domain = Domain({"a": (-1, 1), "b": Categories(["no", "yes"], missing=True), "y": [False, True]})
    rows = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "yes", None)})
    steps = make_pipeline(DomainEncoder(domain), DPLogisticRegression(domain=domain))
    face = search(steps, {"dplogisticregression__C": [0.01, 1.0]}, epsilon=8.0, selection=selection)
    with Ledger(8.0) as ledger:
        face.fit(rows, pd.Series(Y, name="y"))
    assert ledger.spent().epsilon == face.privacy_.epsilon == 8
    assert face.best_estimator_.predict(rows).shape == Y.shape


def test_a_step_that_the_search_cannot_set_is_named():
    with pytest.raises(ValueError, match="must have a private step"):
        search(make_pipeline(LogisticRegression()), {}, trusted=["logisticregression"]).fit(X, Y)
    with pytest.raises(ValueError, match=r"in each private step.*'no_seed' has no random_state"):
        search(Pipeline([("no_seed", Unseeded())]), {}).fit(X, Y)


def test_whoever_pays_is_found():
    with Ledger(1.0) as around:
        inner = model()
        search(epsilon=0.3).fit(X, Y)
    search(inner, epsilon=0.2).fit(X, Y)  # bound to the block in which it was made
    own = Ledger(1.0)
    chosen = search(model(ledger=own), epsilon=0.6).fit(X, Y).best_estimator_
    assert chosen._find_ledger().path == own.path
    assert (around.spent().epsilon, own.spent().epsilon) == (Fraction(1, 2), Fraction(3, 5))
    refused = search(ledger=own, epsilon=0.5)
    with pytest.raises(BudgetExceededError):
        refused.fit(X, Y)
    assert not hasattr(refused, "best_estimator_")
    assert own.spent().epsilon == Fraction(3, 5)


def test_whoever_paid_for_the_search_pays_for_what_is_done_with_its_model():
    """Also for the clone that a ColumnTransformer fits, and the template that it keeps."""
    noisy = PMTransformer(1.0, bounds=([-0.5] * 3, [0.5] * 3), grid=16)
    pipeline = make_pipeline(ColumnTransformer([("noisy", noisy, [0, 1, 2])]), model(epsilon=3.0))
    space = {"dplogisticregression__C": [1.0, 2.0]}
    with Ledger(20.0) as block:
        bound = search(pipeline, space, selection="exponential")
    for face in (search(pipeline, space, ledger=Ledger(20.0)), bound):
        ledger = face.ledger or block
        with pytest.raises(ValueError, match="not declared"):
            face.fit(X, np.full(400, 7))  # the second private step reads y, after the first has paid nobody
        assert not len(ledger)
        found = face.fit(X, Y).best_estimator_
        assert (len(ledger), ledger.spent().epsilon) == (1, 1)
        assert b"Prepaid" not in pickle.dumps(face)
        found[0].transform(X)
        assert len(ledger) == 2
        found.fit(X, Y)
        assert len(ledger) == 4


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_delta_is_that_of_the_whole_search(selection):
    face = PrivateSearchCV(model(delta=1e-6), SPACE, selection=selection, random_state=0)
    ledger = Ledger(1.0, delta=1e-6)
    face.set_params(ledger=ledger).fit(X, Y)
    assert (face.privacy_.epsilon, face.privacy_.delta, ledger.spent().delta) == (1, Fraction(1, 10**6),
                                                                                  Fraction(1, 10**6))
    each = Fraction(Decimal(repr(face.best_estimator_.delta)))
    trainings = 3 if face.expected_runs_ is None else face.expected_runs_
    assert 0.99 < float(each * 10**6) * trainings <= 1
    assert face.best_estimator_.privacy_.delta <= each


def test_candidates_of_other_deltas_get_the_same_part():
    plan = plan_of(PrivateSearchCV(model(), {"delta": [None, 1e-5, 4e-6]}, selection="exponential"))
    assert plan.guarantee.delta == Fraction(1, 10**5)
    assert plan.deltas[0] == 0
    assert sum(plan.deltas) <= plan.guarantee.delta
    assert float(plan.deltas[1] / plan.deltas[2]) == pytest.approx(2.5, abs=1e-4)
    steps = make_pipeline(DomainEncoder({"a": (0, 1)}), model(delta=1e-5))
    assert plan_of(PrivateSearchCV(steps, {"dplogisticregression__C": [1, 2]})).guarantee.delta == Fraction(1, 10**5)
    assert plan_of(PrivateSearchCV(model(), SPACE)).guarantee.delta == 0


def best_law(run, gamma, eta, n=600):
    """The law of the best of a random number of runs (candidate, score); the first of equals, scores in order."""
    w, ladder = [1.0], np.cumsum(np.append(0.0, [sum(own) for own in zip(*run)]))
    for k in range(1, n):
        w.append(w[-1] * float((1 - gamma) * (k + eta) / (k + 1)))
    f = np.polynomial.Polynomial([0.0, *(np.array(w) / sum(w))])(ladder)
    scores = np.diff(f)
    return np.array([[scores[s] * own[s] / sum(other[s] for other in run) for s in range(len(own))] for own in run])


@pytest.mark.law
@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
def test_a_run_that_fails_costs_as_the_proof_says(eta):
    """Exact laws: runs that fail with probability d cost at most E[K] d, nearly all of it, and no run's d alone."""
    gamma, e1, d = 0.05, 0.3, 0.004
    # (candidate 0 has the lower score 0 or the highest, 2, where a failing run ends; the neighbour never ends there)
    low, high = (1 - d) / (1 + math.exp(e1)), (1 - d) * math.exp(e1) / (1 + math.exp(e1))
    mine, other = [[high, 0.0, d], [0.0, low, 0.0]], [[low, 0.0, 0.0], [0.0, high, d]]
    p, q = (best_law(run, gamma, eta).ravel() for run in (mine, other))
    assert (p.sum(), q.sum()) == (pytest.approx(1), pytest.approx(1))
    needed = max(np.maximum(a - math.exp((2 + eta) * e1) * b, 0).sum() for a, b in ((p, q), (q, p)))
    paid = expected_runs(gamma, eta) * d
    assert d * 2 < needed <= paid
    assert needed > 0.7 * paid


def test_an_estimator_that_charges_other_than_it_promises_is_caught():
    zeros = np.zeros(50, int)
    with pytest.raises(ValueError, match="charged more"):
        PrivateSearchCV(Constant(cost=2), {"answer": [0]}).fit(np.zeros((50, 1)), zeros)
    with pytest.raises(ValueError, match="charged nothing"):
        PrivateSearchCV(Constant(cost=0), {"answer": [0]}).fit(np.zeros((50, 1)), zeros)


def test_what_one_fit_charges_adds_up():
    class Often(DPLogisticRegression):
        def fit(self, X, y):
            return super().fit(X, y) and super().fit(X, y)

    with pytest.raises(ValueError, match="charged more"):
        search(Often(data_norm=1.0, classes=[False, True])).fit(X, Y)


def test_what_the_search_paid_for_ends_with_its_runs():
    kept = []

    def keep(fitted, X, y):
        kept.append(clone(fitted))
        return np.zeros(len(X))

    search(scoring=keep, score_bounds=(0, 1)).fit(X, Y)
    for one in kept:
        with pytest.raises(ValueError, match="ledger must be set again"):
            one.fit(X, Y)
    with pytest.raises(ValueError, match="not contain another search"):
        search(search(), {"eta": [0.5, 1.0]}).fit(X, Y)
    with pytest.raises(ValueError, match="not contain another search"):
        search(make_pipeline(model()), {"dplogisticregression": [search()]}).fit(X, Y)


def test_ledgers_of_candidates_pay():
    one, other, block = Ledger(3.0), Ledger(3.0), Ledger(3.0)
    step = "dplogisticregression"
    face = search(make_pipeline(model()), {step: [model(ledger=one), model(C=2.0)]}).fit(X, Y)
    assert one.spent().epsilon == 1
    face.best_estimator_.fit(X, Y)  # whichever was chosen
    assert one.spent().epsilon > 1
    several = search(make_pipeline(model()), {step: [model(ledger=one), model(ledger=other)]})
    with pytest.raises(ValueError, match="several"):
        several.fit(X, Y)
    with block:
        bound = model()
    search(make_pipeline(model()), {step: [model(), bound]}).fit(X, Y)
    assert block.spent().epsilon == 1
    assert other.spent().is_nothing


def test_private_steps_of_a_run_have_seeds_of_their_own():
    noisy = PMTransformer(1.0, bounds=([-0.5] * 3, [0.5] * 3), grid=16)
    found = search(make_pipeline(noisy, clone(noisy), model()), {"dplogisticregression__C": [1.0]}).fit(X, Y)
    assert len({step.random_state for step in found.best_estimator_.named_steps.values()}) == 3


def test_a_private_remainder_without_columns():
    columns = ColumnTransformer([("all", "passthrough", [0, 1, 2])],
                                remainder=PMTransformer(1.0, bounds=(-0.5, 0.5), grid=16))
    face = search(make_pipeline(columns, model()), {"dplogisticregression__C": [1.0]}, ledger=Ledger(3.0)).fit(X, Y)
    assert b"Prepaid" not in pickle.dumps(face)


# ---------------------------------------------------------------- refusing

def test_every_candidate_reads_all_rows_before_the_charge():
    strange = Y.astype(int)
    strange[-1] = 2
    for classes in ([[0, 1, 2], [0, 1]], [[0, 1], [0, 1, 2]]):
        face = search(param_distributions={"classes": classes}, ledger=Book())
        with pytest.raises(ValueError, match="not declared"):
            face.fit(X, strange)
        assert not face.ledger.paid


def test_fewer_runs_than_candidates_must_be_asked_for():
    face = search(eta=-0.999999, gamma=None)
    with pytest.raises(ValueError, match="eta must be larger"):
        face.fit(X, Y)
    assert plan_of(face.set_params(gamma=0.5)).gamma == Fraction(1, 2)
    assert plan_of(face.set_params(gamma=None, param_distributions={"C": [1.0]}, eta=-0.5)).gamma < 1


def test_steps_of_other_packages_show_no_values():
    """Neither before the charge, nor where strict mode promises that nothing depends on a value."""
    rows = np.array([["a"]] * 399 + [["s3cr3t"]], dtype=object)
    pipeline = make_pipeline(OneHotEncoder(categories=[["a", "b"]]), model())
    face = search(pipeline, {"dplogisticregression__C": [1.0]}, ledger=Book())
    with pytest.raises(ValueError, match="OneHotEncoder raised ValueError") as caught:
        face.fit(rows, Y)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__context__ is None
    with config_context(strict=True):
        strict = clone(face).set_params(ledger=Book())
        for data in (rows, rows[:-1]):
            with pytest.raises(ValueError, match=r"strict mode: all steps must be private.*onehotencoder"):
                strict.fit(data, Y[:len(data)])
        fine = search(make_pipeline("passthrough", model()), {"dplogisticregression__C": [1.0]})
        assert np.isfinite(fine.fit(X, Y).best_score_)
    assert not face.ledger.paid + strict.ledger.paid


def test_a_private_pipeline_brings_its_own_trust():
    own = FunctionTransformer(lambda rows: rows / 2)
    pipeline = PrivatePipeline([("own", own), ("m", model())], trusted=["own"])
    assert check_pipeline(pipeline).is_private
    assert check_pipeline(make_pipeline(pipeline)).is_private
    assert search(pipeline, {"m__C": [1.0]}).fit(X, Y).best_params_ == {"m__C": 1.0}



@pytest.mark.parametrize(("name", "value"), [
    ("epsilon", 0), ("epsilon", math.nan), ("epsilon", "1"), ("selection", "grid"), ("selection", None),
    ("scoring", "roc_auc"), ("scoring", None), ("score_bounds", (0, 1)), ("validation_fraction", 0),
    ("validation_fraction", 1.0), ("gamma", 0), ("gamma", 1e-5), ("gamma", 1.5), ("gamma", True), ("eta", -1),
    ("eta", 1.1), ("eta", math.inf), ("eta", "0"), ("random_state", -1), ("param_distributions", [1]),
    *(("param_distributions", bad) for bad in (
        {"C": []}, {"nothing": [1]}, {"epsilon": [1.0]}, {"ledger": [None]}, {"C": [-1.0]})),
    ("trusted", ["nobody"]),
])
def test_bad_parameters_are_named_before_anything_is_charged(name, value):
    face = search(ledger=Book()).set_params(**{name: value})
    with pytest.raises(ValueError, match="C must" if value == {"C": [-1.0]} else name):
        face.fit(X, Y)
    assert not face.ledger.paid
    assert not hasattr(face, "best_params_")


def test_bad_rows_cost_nothing():
    holes = X.copy()
    holes[-1, 1] = np.nan
    strange = Y.astype(object)
    strange[7] = "secret"
    cases = [(holes, Y), (X, strange), (X, Y[:-1]), (X, None), (X[:1], Y[:1]), (X[:, 0], Y), (iter(X), Y)]
    for rows, classes in cases:
        face = search(ledger=Book())
        with pytest.raises(ValueError) as caught:
            face.fit(rows, classes)
        assert "secret" not in str(caught.value)
        assert not face.ledger.paid


def test_rows_come_in_any_container():
    names = ["a", "b", "c"]
    frame, classes = pd.DataFrame(X, columns=names), pd.Series(Y)
    want = search(epsilon=4.0).fit(X, Y)
    odd_index = frame.set_index(np.arange(400)[::-1])  # rows are taken by position
    for rows, labels in ((X.tolist(), Y.tolist()), (frame, classes), (odd_index, classes), (np.asfortranarray(X), Y),
                         (pl.DataFrame(X, schema=names), pl.Series(Y))):
        face = search(epsilon=4.0).fit(rows, labels)
        assert np.array_equal(face.best_estimator_.coef_, want.best_estimator_.coef_)
        assert face.best_score_ == want.best_score_
        assert hasattr(face, "feature_names_in_") or not hasattr(rows, "iloc")


def test_what_leaks_is_refused_and_promises_nothing():
    for leaking in (make_pipeline(StandardScaler(), model()), DPLogisticRegression(data_norm=1.0)):
        face = PrivateSearchCV(leaking, {}, ledger=Book())
        assert not face.privacy_.is_finite
        with pytest.raises(ValueError, match="must not leak"):
            face.fit(X, Y)
        assert not face.ledger.paid
    with pytest.raises(ValueError, match="private step"):
        PrivateSearchCV(make_pipeline(Normalizer()), {}, scoring=lambda m, X, y: X, score_bounds=(0, 1)).fit(X, Y)


# ---------------------------------------------------------------- publishing

def test_nothing_but_the_choice_is_published():
    public = {"best_estimator_", "best_params_", "best_score_", "n_candidates_", "gamma_", "expected_runs_"}
    for selection in SELECTIONS:
        face = search(selection=selection).fit(X, Y)
        assert set(vars(face)) - set(face.get_params(deep=False)) == public | {"_fitted_guarantee"}
        assert (face.best_score_ is None) == (selection == "exponential")
        assert face.n_candidates_ == 3
        assert face.best_params_["C"] in SPACE["C"]


def test_it_predicts_as_the_chosen_model_does():
    face = search(epsilon=8.0)
    with pytest.raises(NotFittedError):
        face.predict(X)
    assert not hasattr(face, "classes_")
    face.fit(X, Y)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        assert np.array_equal(getattr(face, method)(X), getattr(face.best_estimator_, method)(X))
    assert list(face.classes_) == [False, True]
    assert face.score(X, Y) == face.best_estimator_.score(X, Y)
    copied = pickle.loads(pickle.dumps(face))
    assert np.array_equal(copied.predict(X), face.predict(X))
    assert copied.privacy_ == face.privacy_
    assert not hasattr(clone(face), "best_estimator_")
    assert clone(face).set_params(estimator__C=3.0).estimator.C == 3.0
    assert "PrivateSearchCV" in str(privacy_card(face))


def test_scores_of_rows_are_cut_to_their_bounds():
    def far(fitted, X, y):
        return np.where(y == fitted.answer, 1e9, -np.inf) + np.where(X[:, 0] > 38, np.nan, 0.0)

    rows, answers = np.arange(40.0)[:, None], np.repeat([0, 1], [30, 10])
    for selection in SELECTIONS:
        face = PrivateSearchCV(Constant(), {"answer": [0, 1]}, epsilon=40, selection=selection, gamma=0.01,
                               scoring=far, score_bounds=(2, 4), random_state=1).fit(rows, answers)
        assert face.best_params_ == {"answer": 0}
        assert face.best_score_ is None or 2 < face.best_score_ < 4.1


@pytest.mark.parametrize("scoring", [
    lambda m, X, y: 1.0, lambda m, X, y: np.array(["s3cr3t"] * len(X)), lambda m, X, y: 1 / 0 * len(X),
    lambda m, X, y: np.ones((len(X), 1)),
])
def test_what_is_no_score_is_the_lowest_and_shows_nothing(scoring):
    """The total is paid when a score is computed: no exception, and a warning without values."""
    face = search(scoring=scoring, score_bounds=(2, 4), ledger=Book(), epsilon=40)
    with pytest.warns(UserWarning, match="one number for each row") as told:
        face.fit(X, Y)
    assert "s3cr3t" not in str(told[0].message)
    assert len(told) == len(face.ledger.paid) == 1
    assert face.best_score_ < 2.2


def test_strict_mode_is_total():
    odd = X.copy()
    odd[::2] = np.nan
    with config_context(strict=True):
        for rows, classes in ((odd, Y), (X, np.zeros(400, bool)), (X[:1], Y[:1]), (X[:0], Y[:0])):
            for selection in SELECTIONS:
                face = search(selection=selection, gamma=0.5, ledger=Book()).fit(rows, classes)
                assert np.isfinite(face.best_estimator_.coef_).all()
                assert len(face.ledger.paid) == 1
                assert not face.ledger.scores
        with pytest.raises(ValueError, match="strict mode"):
            face.score(X, Y)
        with pytest.raises(ValueError, match="strict mode"):
            search(scoring=lambda m, X, y: X, score_bounds=(0, 1)).fit(X, Y)
    assert face.best_estimator_._is_strict()


def test_a_ledger_does_not_tell_how_many_runs_there_were():
    """Steps that have no ledger of their own enter what they map in strict mode, and the number of runs is secret."""
    ledger, domain = Ledger(100.0, durability="fast"), Domain({0: (-1, 1), 1: (-1, 1), "y": [False, True]})
    steps = make_pipeline(DomainEncoder(domain[[0, 1]]), DPLogisticRegression(data_norm=2.0, classes=[False, True]))
    rows = np.random.default_rng(0).uniform(-1, 1, size=(40, 2))
    with config_context(strict=True), ledger:
        for _ in range(3):
            found = PrivateSearchCV(steps, {"dplogisticregression__C": [0.1, 1.0]}).fit(rows, rows[:, 0] > 0)
        assert len(ledger) == 3
        found.predict(rows)
        before = len(ledger)
        assert before > 3  # (what is shown is entered)
        workers = make_pipeline(FeatureUnion([("all", steps[0])], n_jobs=2), steps[1])
        with pytest.raises(ValueError, match="featureunion must have n_jobs=None in a search"):
            PrivateSearchCV(workers, {"dplogisticregression__C": [0.1, 1.0]}).fit(rows, rows[:, 0] > 0)
        assert len(ledger) == before
