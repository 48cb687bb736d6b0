"""The problems that are solved under each kind of trust: how a user's rows become an error, and what was predicted.

A `Cell` is one estimator for one problem, number of users and epsilon. Errors are in users (an error of a sum or of a
count of users), so that cells compare across n. Predicted errors come from the exact variances of the laws, given the
rows; `theory` is what the literature proves, with its constant.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import laplace, norm

from dpestim import central, local, naive_bayes, shuffle, statistics
from dpestim.shuffle.base import ShuffleProtocol

DELTA = 1e-6
#: Categories of the histogram, attributes of the selection, entries of a vector, features of the classifier.
CATEGORIES, ATTRIBUTES, ENTRIES, FEATURES = 100, 32, 16, 8
MODELS = ("local", "shuffle, one message", "shuffle, several messages", "central")


@dataclass
class Cell:
    """What one estimator does: `errors(seed)` is an array of errors, or of whether the choice was right."""

    estimator: str
    errors: object
    predicted: float | None
    messages: float
    bits: float | None
    theory: float | None = None


def _columns(estimator):
    return getattr(estimator, "estimator_", estimator)._columns


def _sent(estimator):
    """Return (messages, bits) of a user, on average, of a fitted estimator that users send reports to."""
    columns = _columns(estimator)
    laws, drawn = columns.laws, columns.n_sampled
    bits = float(sum(law.report_bits for law in laws))
    if drawn:  # (of so many columns, each with its number)
        bits = drawn * (bits / len(laws) + math.log2(len(laws)))
    if not isinstance(estimator, ShuffleProtocol):
        return 1, bits
    return sum(1 + law.n_fakes if hasattr(law, "n_fakes") else law.report_width for law in laws), bits


def _cell(name, make, rows, errors, predicted, theory=None):
    """Return a cell of an estimator with users: `make(seed)`, its rows, errors of a fitted one, predicted of one."""
    fitted = make(0).fit(rows)
    return Cell(name, lambda seed: errors(make(seed).fit(rows)), predicted(fitted), *_sent(fitted), theory)


def _release(name, make, truth, theory):
    """Return a cell of a curator's release; users send their value, which the curator sees."""
    return Cell(name, lambda seed: np.ravel(make(seed).value) - truth, float(np.max(make(0).standard_error)), 1, None,
                theory)


def _discrete_laplace(epsilon, step=1.0):
    """Return the standard deviation of the discrete Laplace law of scale 1 / epsilon, in steps."""
    alpha = math.exp(-epsilon)
    return step * math.sqrt(2 * alpha) / (1 - alpha)


# ---------------------------------------------------------------- counts and sums


def count(model, n, epsilon):
    """How many users answer yes? 30 % do."""
    bits = (np.arange(n) < 3 * n // 10).astype(np.uint8)[:, None]
    truth, odds = float(bits.sum()), math.exp(epsilon)
    if model == "local":
        return _cell(
            "BinaryFrequencyEstimator", lambda seed: local.BinaryFrequencyEstimator(
                epsilon, categories=[[0, 1]], random_state=seed), bits,
            lambda est: est.frequencies_[0][1:] * n - truth,
            lambda est: n * math.sqrt(_columns(est).laws[0].variance(n, truth / n)),
            theory=math.sqrt(n * odds) / (odds - 1))
    if model == "shuffle, one message":
        return _cell("BooleanSum", lambda seed: shuffle.BooleanSum(epsilon, delta=DELTA, random_state=seed), bits,
                     lambda est: est.sum_ - truth, lambda est: est.standard_error_[0],
                     theory=_noisy_bits(n, epsilon))
    if model == "shuffle, several messages":
        return _cell("RealSum", lambda seed: shuffle.RealSum(
            epsilon, delta=DELTA, bounds=(0, 1), grid=1, random_state=seed), bits, lambda est: est.sum_ - truth,
            lambda est: _of_shares(_columns(est).laws[0], bits[:, 0]),
                     theory=_discrete_laplace(epsilon))
    return _release("statistics.count", lambda seed: statistics.count(bits[:, 0] == 1, epsilon=epsilon,
                                                                      random_state=seed),
                    truth, math.sqrt(2) / epsilon)


def _noisy_bits(n, epsilon):
    """Return the error of the boolean sum of Cheu et al. 2019 with the noise of the paper; epsilon < 1."""
    log = math.log(4 / DELTA)
    few = epsilon < math.sqrt(192 * log / n)
    coins = n - epsilon * n**1.5 / math.sqrt(432 * log) if few else 64 * log / epsilon**2
    half = min(coins, n) / (2 * n)
    return math.sqrt(n * half * (1 - half)) / (1 - 2 * half) if epsilon < 1 and coins < n else None


def total(model, n, epsilon):
    """What is the sum of the users' numbers in [0, 1]? They are spread evenly."""
    values = ((np.arange(n) + 0.5) / n)[:, None]
    truth, odds = float(values.sum()), math.exp(epsilon)
    if model == "local":
        return _cell(
            "MeanEstimator(HMTransformer)", lambda seed: local.MeanEstimator(local.HMTransformer(
                epsilon, bounds=(0, 1), random_state=seed)), values, lambda est: est.mean_ * n - truth,
            lambda est: _given(_columns(est).laws[0], values[:, 0]),
            theory=math.sqrt(n) * (odds + 1) / (2 * (odds - 1)))
    if model == "shuffle, one message":
        return _cell('RealSum(protocol="balle")', lambda seed: shuffle.RealSum(
            epsilon, delta=DELTA, bounds=(0, 1), protocol="balle", random_state=seed), values,
            lambda est: est.sum_ - truth, lambda est: _of_one_level(_columns(est).laws[0], values[:, 0]),
            theory=_blanket(n, epsilon))
    if model == "shuffle, several messages":
        return _cell("RealSum", lambda seed: shuffle.RealSum(epsilon, delta=DELTA, bounds=(0, 1), random_state=seed),
                     values, lambda est: est.sum_ - truth, lambda est: _of_shares(_columns(est).laws[0], values[:, 0]),
                     theory=math.sqrt(2) / epsilon)
    return _release("statistics.sum", lambda seed: statistics.sum(values[:, 0], epsilon=epsilon, bounds=(0, 1),
                                                                  random_state=seed),
                    truth, math.sqrt(2) / epsilon)


def _given(law, x):
    """Return the exact standard deviation of the sum of reports of these numbers in [0, 1]."""
    return math.sqrt(float(np.interp(x, law.input_positions, law.variance()).sum()))


def _of_one_level(law, x):
    """Return the same of the sum of `RealSum(protocol="balle")`: levels, and a blanket of random ones."""
    k, blanket = law.sizes[0], law.n_counts * law.weights[0][1] / 2**64
    low, share = np.divmod(x * k, 1.0)
    first = (1 - blanket) * x + blanket / 2
    second = ((1 - share) * low**2 + share * (low + 1) ** 2) / k**2
    second = (1 - blanket) * second + blanket * (2 * k + 1) / (6 * k)
    return math.sqrt(float((second - first**2).sum())) / (1 - blanket)


def _of_shares(law, x):
    """Return the same of the sum of `RealSum`: noise of the discrete Laplace law, and rounding to the grid."""
    share = x * law.steps % 1.0
    noise = 1 / (2 * math.sinh(float(law.noise.rate) / 2) ** 2)  # (all users of these runs are honest)
    return math.sqrt(noise + float((share * (1 - share)).sum())) / law.steps


def _blanket(n, epsilon):
    """Return the error of Balle et al. 2019 for the worst numbers: noise of the paper, best levels; epsilon <= 1."""
    found = []
    for k in range(1, 100):
        blanket = (k + 1) * max(14 * math.log(2 / DELTA) / ((n - 1) * epsilon**2), 27 / ((n - 1) * epsilon))
        if epsilon > 1 or blanket >= 1:
            break
        low = np.arange(k) / k
        worst = np.clip((low + 1 / (2 * k) - blanket / 2) / (1 - blanket), low, low + 1 / k)  # (between two levels)
        second = (1 - blanket) * ((2 * low + 1 / k) * worst - low * (low + 1 / k)) + blanket * (2 * k + 1) / (6 * k)
        variance = second - ((1 - blanket) * worst + blanket / 2) ** 2
        found.append(math.sqrt(n * variance.max()) / (1 - blanket))
    return min(found, default=None)


# ---------------------------------------------------------------- histograms


def histogram(model, n, epsilon):
    """How many users hold each of 100 categories? As many as Zipf's law says; the error of one cell."""
    share = 1 / np.arange(1, CATEGORIES + 1)
    codes = np.searchsorted(np.cumsum(share / share.sum()), (np.arange(n) + 0.5) / n)[:, None]
    truth, odds = np.bincount(codes[:, 0], minlength=CATEGORIES).astype(float), math.exp(epsilon)
    domain = {"categories": [np.arange(CATEGORIES)]}

    def errors(est):
        return est.frequencies_[0] * n - truth

    def predicted(est):
        return n * math.sqrt(np.mean(_columns(est).laws[0].variance(n, truth / n)))

    if model == "local":
        return _cell("SSFrequencyEstimator", lambda seed: local.SSFrequencyEstimator(
            epsilon, **domain, random_state=seed), codes, errors, predicted,
            theory=2 * math.sqrt(n * odds) / (odds - 1))
    if model == "shuffle, one message":
        return _cell("ShuffledEstimator(GRRFrequencyEstimator)", lambda seed: shuffle.ShuffledEstimator(
            local.GRRFrequencyEstimator(**domain, random_state=seed), epsilon, delta=DELTA), codes, errors, predicted,
            theory=_hidden(n, epsilon, CATEGORIES))
    if model == "shuffle, several messages":
        return _cell("ShuffledHistogram", lambda seed: shuffle.ShuffledHistogram(
            epsilon, delta=DELTA, **domain, random_state=seed), codes, errors, predicted)
    return _release("statistics.histogram", lambda seed: statistics.histogram(
        codes[:, 0], epsilon=epsilon, bins=np.arange(CATEGORIES + 1) - 0.5, random_state=seed),
        truth, 2 * math.sqrt(2) / epsilon)


def _hidden(n, epsilon, d):
    """Return the error of a rare category with the blanket of Balle et al. 2019 (k-ary response); epsilon <= 1."""
    blanket = max(14 * d * math.log(2 / DELTA) / ((n - 1) * epsilon**2), 27 * d / ((n - 1) * epsilon))
    if epsilon > 1 or blanket >= 1:
        return None
    return math.sqrt(n * blanket / d * (1 - blanket / d)) / (1 - blanket)


# ---------------------------------------------------------------- selection


def selection(model, n, epsilon):
    """Which of 32 attributes do most users have? One has 60 %, all others have 50 %; the share of right choices."""
    rng = np.random.default_rng(0)
    have = np.zeros((n, ATTRIBUTES), np.uint8)
    for j in range(ATTRIBUTES):
        have[rng.permutation(n)[: (6 if j == 0 else 5) * n // 10], j] = 1
    counts = have.sum(axis=0).astype(float)
    columns = [[0, 1]] * ATTRIBUTES
    if model == "local":
        return _cell("MultiAttributeFrequencyEstimator", lambda seed: local.MultiAttributeFrequencyEstimator(
            epsilon, categories=columns, random_state=seed), have,
            lambda est: _right([f[1] for f in est.frequencies_]),
            lambda est: _best_of(n / 10, n * float(np.mean([e[1] for e in est.standard_errors_]))))
    if model == "shuffle, one message":
        return _drawn_attribute(n, epsilon, have, counts)
    if model == "shuffle, several messages":
        return _cell("RealSum", lambda seed: shuffle.RealSum(epsilon, delta=DELTA, bounds=(0, 1), random_state=seed),
                     have, lambda est: _right(est.sum_), lambda est: _best_of(n / 10, est.standard_error_[0], laplace))
    chooser = central.PermuteAndFlip(epsilon, sensitivity=1.0)
    return Cell("PermuteAndFlip", lambda seed: np.array([float(central.PermuteAndFlip(
        epsilon, sensitivity=1.0, random_state=seed).release(counts) == 0)]),
        float(chooser.probabilities(counts)[0]), 1, None)


def _right(scores):
    return np.array([float(np.argmax(scores) == 0)])


def _best_of(gap, sd, law=norm):
    """Return how likely the best of the attributes looks best, where errors are independent and have this law."""
    at = law.ppf((np.arange(20_000) + 0.5) / 20_000)
    return float(np.mean(law.cdf(at + gap / sd * law.std()) ** (ATTRIBUTES - 1)))


def _drawn_attribute(n, epsilon, have, counts):
    """Every user draws an attribute, whatever the user has, and reports (attribute, bit): one of 64 categories."""
    def rows(seed):
        drawn = np.random.default_rng(seed).integers(0, ATTRIBUTES, n)
        return (2 * drawn + have[np.arange(n), drawn])[:, None]

    def make(seed):
        return shuffle.ShuffledEstimator(local.GRRFrequencyEstimator(
            categories=[np.arange(2 * ATTRIBUTES)], random_state=seed), epsilon, delta=DELTA)

    def scores(est):
        return est.frequencies_[0][1::2] - est.frequencies_[0][::2]

    fitted = make(0).fit(rows(0))
    law, share = _columns(fitted).laws[0], 1 / (2 * ATTRIBUTES)
    noise = 2 * n * float(law.variance(n, share))
    # (of a difference of two counts, each a share of one in 64: what the draw adds is the share of users who drew it)
    sd = math.sqrt(n * noise + n / ATTRIBUTES)
    messages, bits = _sent(fitted)
    return Cell("ShuffledEstimator(GRRFrequencyEstimator)", lambda seed: _right(scores(make(seed).fit(rows(seed)))),
                _best_of(2 * (counts[0] - counts[1]) / ATTRIBUTES, sd), messages, bits)


# ---------------------------------------------------------------- vectors


def vectors(model, n, epsilon):
    """What is the sum of the users' vectors, of 16 entries and length 1? The length of its error."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, ENTRIES)) + 0.5
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-12)
    truth, odds, d = X.sum(axis=0), math.exp(epsilon), ENTRIES

    def length(difference):
        return np.array([np.linalg.norm(difference)])

    if model in ("local", "shuffle, one message"):
        def make(seed, epsilon=epsilon):
            means = local.MeanEstimator(local.PrivUnitTransformer(epsilon, center=np.zeros(d), random_state=seed))
            return means if model == "local" else shuffle.ShuffledEstimator(means, epsilon, delta=DELTA)

        half = math.sqrt(math.pi) / 2 * d * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2 + 1))
        name = "MeanEstimator(PrivUnitTransformer)"
        return _cell(name if model == "local" else f"ShuffledEstimator({name})", make, X,
                     lambda est: length(est.mean_ * n - truth),
                     # (all reports are equally long, and unbiased)
                     lambda est: math.sqrt(n * d * _columns(est).laws[0].even_variance() - float(np.square(X).sum())),
                     theory=math.sqrt(n) * half * (odds + 1) / (odds - 1) if model == "local" else None)
    if model == "shuffle, several messages":
        return _cell("RealSum", lambda seed: shuffle.RealSum(epsilon, delta=DELTA, bounds=(-1, 1), random_state=seed),
                     X, lambda est: length(est.sum_ - truth), lambda est: float(np.linalg.norm(est.standard_error_)),
                     theory=math.sqrt(d) * _discrete_laplace(epsilon / d / 2**20, 2 / 2**20))
    noise = central.GaussianMechanism(epsilon, delta=DELTA, sensitivity=2.0)
    return Cell("GaussianMechanism", lambda seed: length(central.GaussianMechanism(
        epsilon, delta=DELTA, sensitivity=2.0, random_state=seed).release(truth) - truth),
        math.sqrt(d * float(noise.variance())), 1, None,
        math.sqrt(d) * 2 * math.sqrt(2 * math.log(1.25 / DELTA)) / epsilon if epsilon < 1 else None)


# ---------------------------------------------------------------- learning


def learning(model, n, epsilon):
    """Which of two classes? Naive Bayes of eight bits, each right for 65 % of users; accuracy lost to no privacy."""
    rng = np.random.default_rng(0)

    def drawn(rng, n):
        y = rng.integers(0, 2, n)
        return (y[:, None] ^ (rng.random((n, FEATURES)) < 0.35)).astype(np.int64), y

    (X, y), (T, target) = drawn(rng, n), drawn(rng, 20_000)
    table = np.array([[np.bincount(X[y == c, j], minlength=2) for j in range(FEATURES)] for c in (0, 1)])
    best = _accuracy(table, T, target)
    public = {"categories": [[0, 1]] * FEATURES, "classes": [0, 1]}

    def lost(predicted):
        return np.array([best - np.mean(predicted == target)])

    if model == "local":
        return _cell("LDPNaiveBayes", lambda seed: _OfClasses(local.LDPNaiveBayes(
            epsilon, **public, random_state=seed), y), X, lambda est: lost(est.model.predict(T)), lambda est: None)
    if model == "shuffle, one message":
        def rows(seed):
            j = np.random.default_rng(seed).integers(0, FEATURES, n)
            return (4 * j + 2 * y + X[np.arange(n), j])[:, None]

        def make(seed):
            return shuffle.ShuffledEstimator(local.GRRFrequencyEstimator(
                categories=[np.arange(4 * FEATURES)], random_state=seed), epsilon, delta=DELTA)

        def answers(seed):
            cells = make(seed).fit(rows(seed)).frequencies_[0].reshape(FEATURES, 2, 2).transpose(1, 0, 2)
            return np.array([best - _accuracy(cells * n, T, target)])

        messages, bits = _sent(make(0).fit(rows(0)))
        return Cell("ShuffledEstimator(GRRFrequencyEstimator)", answers, None, messages, bits)
    if model == "shuffle, several messages":
        return _cell("ShuffledHistogram", lambda seed: shuffle.ShuffledHistogram(
            epsilon, delta=DELTA, categories=[range(4)] * FEATURES, random_state=seed), 2 * y[:, None] + X,
            lambda est: np.array([best - _accuracy(np.array(est.frequencies_).reshape(
                FEATURES, 2, 2).transpose(1, 0, 2) * n, T, target)]), lambda est: None)
    return Cell("DPCategoricalNB", lambda seed: lost(naive_bayes.DPCategoricalNB(
        epsilon, **public, random_state=seed).fit(X, y).predict(T)), None, 1, None)


class _OfClasses:
    """A classifier whose targets are at hand: it is fitted to rows alone."""

    def __init__(self, model, y):
        self.model, self.y = model, y

    def fit(self, X):
        self.model.fit(X, self.y)
        self._columns = self.model._columns
        return self


def _accuracy(table, T, target):
    """Return the accuracy of naive Bayes from counts (class, feature, value), smoothed by one; no count is below 0."""
    table = np.maximum(table, 0.0) + 1.0
    prior = table.sum(axis=(1, 2))
    logs = np.log(table / table.sum(axis=2, keepdims=True))
    scores = [np.log(prior[c]) + logs[c][np.arange(FEATURES), T].sum(axis=1) for c in (0, 1)]
    return np.mean((scores[1] > scores[0]) == target)


PROBLEMS = {"count": count, "sum": total, "histogram": histogram, "selection": selection, "mean of vectors": vectors,
            "learning": learning}
