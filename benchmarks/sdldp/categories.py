"""Frequencies: variances (Figure 2), errors (5 and 6) and attacks (9)."""

import numpy as np

from benchmarks.sdldp import EPSILONS, SHARES
from dpestim.audit import BayesianAdversary
from dpestim.local import (
    GRRFrequencyEstimator,
    PersonalizedEstimator,
    SDGRRFrequencyEstimator,
    URRFrequencyEstimator,
)

#: Values of the paper's Figure 2, and users of each.
D_UNIFORM, USERS_EACH = 18, 2_000


def estimators(attribute, epsilon, seeds):
    """Return {name: estimator} for all but the personalised one, whose users differ; no two share their noise."""
    domain = [np.arange(attribute.d)]
    out = {"GRR": GRRFrequencyEstimator(epsilon, categories=domain, random_state=next(seeds))}
    for percent in SHARES:
        low = [attribute.low(percent)]
        out[f"URR-{percent}"] = URRFrequencyEstimator(epsilon, categories=domain, non_sensitive=low,
                                                      random_state=next(seeds))
        out[f"SDGRR-{percent}"] = SDGRRFrequencyEstimator(epsilon, categories=domain, low_sensitivity=low,
                                                          random_state=next(seeds))
    return out


def personalised(attribute, epsilon, seed, weights):
    """Return the estimator of users who choose their own high-sensitive values."""
    settings = {percent: {"low_sensitivity": [attribute.low(percent)]} for percent in SHARES}
    each = SDGRRFrequencyEstimator(epsilon, categories=[np.arange(attribute.d)], random_state=seed)
    return PersonalizedEstimator(each, settings, weights=weights)


def with_groups(x, rng):
    """Return x with a public first column: which share of high values each user takes, whatever the own value is."""
    groups = rng.choice(list(SHARES), size=len(x), p=list(SHARES.values()))
    return np.column_stack([groups.astype(x.dtype), x])


def errors(attribute, repetitions, seeds, epsilons=EPSILONS):
    """Yield a row for each mechanism and epsilon: mean squared errors with standard errors, measured and exact.

    Squared errors are averaged over the values: all, the mechanism's high-sensitive ones (at 25 % where it has no such
    share), and the others. The exact ones come from the law's own variance. Attacks are on the holders of
    high-sensitive values: measured on the same reports, and exact.
    """
    X, truth = attribute.codes, attribute.truth
    rng = np.random.default_rng(0)  # the groups, which are public
    for epsilon in epsilons:
        squares, hits, exact = {}, {}, {}
        for _ in range(repetitions):
            for name, estimator in estimators(attribute, epsilon, seeds).items():
                reports = estimator.privatize(X)
                estimator.aggregate(reports)
                squares.setdefault(name, []).append((estimator.frequencies_[0] - truth) ** 2)
                high = X[:, 0] < attribute.n_high(_percent(name))
                hits.setdefault(name, []).append(_success(estimator, X, reports, high))
                exact.setdefault(name, estimator)
            for name, weights in (("SDGRR-P", "inverse_variance"), ("SDGRR-P, stratified", "stratified")):
                estimator = personalised(attribute, epsilon, next(seeds), weights).fit(with_groups(X, rng))
                squares.setdefault(name, []).append((estimator.frequencies_[0] - truth) ** 2)
        for name, each in squares.items():
            each = np.array(each)
            h = attribute.n_high(_percent(name))
            row = {"attribute": attribute.name, "d": attribute.d, "n": len(X), "epsilon": epsilon, "mechanism": name,
                   **_mean("mse", each.mean(axis=1)), **_mean("mse_high", each[:, :h].mean(axis=1)),
                   **_mean("mse_low", each[:, h:].mean(axis=1))}
            if name in exact:
                variance = exact[name].randomizer().variance(len(X), truth)
                row |= {"exact": float(variance.mean()), **_mean("attack", hits[name]),
                        **_expected(exact[name], attribute, _percent(name))}
            yield row


def _percent(name):
    return int(name[-2:]) if name[-2:].isdigit() else 25


def own_choices(attribute, repetitions, seeds, epsilon):
    """Yield a row for each way to weight groups, where users mind as many values as hide their own (D6).

    Who holds a value that is low in all settings chooses as others do. The largest error, over the values, of the mean
    of all estimates is a bias once it is many standard errors.
    """
    codes, truth, rng = attribute.codes[:, 0], attribute.truth, np.random.default_rng(0)
    for weights in ("inverse_variance", "stratified"):
        off = []
        for _ in range(repetitions):
            X = with_groups(attribute.codes, rng)
            for percent in sorted(SHARES, reverse=True):
                X[codes < attribute.n_high(percent), 0] = percent
            estimate = personalised(attribute, epsilon, next(seeds), weights).fit(X).frequencies_[0]
            off.append(estimate - truth)
        mean, error = np.mean(off, axis=0), np.std(off, axis=0, ddof=1) / np.sqrt(repetitions)
        worst = int(np.abs(mean).argmax())
        yield {"attribute": attribute.name, "epsilon": epsilon, "weights": weights, "value": attribute.values[worst],
               "truth": float(truth[worst]), "bias": float(mean[worst]), "bias_se": float(error[worst])}


def choices(attribute, epsilon):
    """Return exact ratios of mean squared errors, GRR / SDGRR-25 and SDGRR-25 / URR-25, for other high values.

    The rarest values, and the most frequent ones: what the paper leaves open.
    """
    out, order, h = {}, np.argsort(attribute.truth, kind="stable"), attribute.n_high(25)
    for name, low in (("rarest", order[h:]), ("most frequent", order[:-h])):
        common = {"categories": [np.arange(attribute.d)]}
        laws = (GRRFrequencyEstimator(epsilon, **common),
                SDGRRFrequencyEstimator(epsilon, low_sensitivity=[np.sort(low)], **common),
                URRFrequencyEstimator(epsilon, non_sensitive=[np.sort(low)], **common))
        grr, sdgrr, urr = (e.randomizer().variance(1, attribute.truth).mean() for e in laws)
        out[name] = {"GRR / SDGRR-25": float(grr / sdgrr), "SDGRR-25 / URR-25": float(sdgrr / urr)}
    return out


def variances(repetitions, seeds, epsilons=EPSILONS, d=D_UNIFORM):
    """Yield a row for each share of *low* values (the suffix of Figure 2) and epsilon; the truth is uniform.

    n times the variance of a low value's frequency: by the paper's equation (12), exact, and measured; beside that of
    GRR, equation (2), which is also that of a high value.
    """
    X, f = np.repeat(np.arange(d), USERS_EACH)[:, None], np.full(d, 1 / d)
    for epsilon in epsilons:
        e = np.exp(epsilon)
        for percent in SHARES:
            n_low = int(percent * d / 100 + 0.5)
            n_high, share = d - n_low, (d - n_low) / d
            squares = []
            for _ in range(repetitions):
                estimator = SDGRRFrequencyEstimator(epsilon, categories=[np.arange(d)], random_state=next(seeds),
                                                    low_sensitivity=[np.arange(n_high, d)]).fit(X)
                squares.append(np.square(estimator.frequencies_[0][n_high:] - 1 / d).mean())
            yield {"epsilon": epsilon, "low percent": percent, "d": d, "n": len(X),
                   "GRR": float((d - 2 + e) / (e - 1) ** 2),
                   "paper": float((d + e - 1 - share) * share / (n_low + e - 1) ** 2),
                   "exact": float(estimator.randomizer().variance(1, f)[-1]),
                   **_mean("measured", len(X) * np.array(squares))}


# ---------------------------------------------------------------- the adversary


def _success(estimator, X, reports, high):
    """Return the share of holders of high-sensitive values whom the adversary guesses right."""
    return BayesianAdversary(estimator).measured_success(X[high], reports[high]).value


def _expected(estimator, attribute, percent):
    """Return exact successes: of an adversary without and with knowledge of how frequent values are, and on whom."""
    h, d, truth = attribute.n_high(percent), attribute.d, attribute.truth
    among_high = np.where(np.arange(d) < h, 1 / h, 0.0)
    plain = BayesianAdversary(estimator)
    return {
        "attack_exact": _among(plain, estimator),
        "attack_all": float(plain.expected_success()),
        "attack_with_prior": float(BayesianAdversary(estimator, prior=truth).expected_success()),
        "blind_with_prior": float(truth.max()),
        "attack_known_high": float(BayesianAdversary(estimator, prior=among_high).expected_success()),
        "n_high": h,
    }


def _among(adversary, estimator):
    """Return the success on holders of high-sensitive values; a law without kinds treats all alike."""
    relaxed = not isinstance(estimator, GRRFrequencyEstimator)
    return float(adversary.expected_success(group="high" if relaxed else None))


def _mean(name, values):
    """Return {name: mean, name_se: standard error} over the repetitions."""
    values = np.asarray(values, float)
    spread = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return {name: float(values.mean()), f"{name}_se": float(spread)}
