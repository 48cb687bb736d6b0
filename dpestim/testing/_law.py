"""The law of a mechanism: exact rational checks, then samples against the exact law."""

from fractions import Fraction

import numpy as np
from scipy import stats

from dpestim.privacy.exact import canonical_epsilon, log_ratio, uses_enough, within
from dpestim.testing._tools import fresh, randomizers, raw_rows, reports_of, require

#: Sample size and significance of the statistical checks. A correct mechanism fails one with probability ALPHA (once
#: and for all, because samples are seeded); the same test must reject the laws of 0.7 and 1.3 times epsilon.
N = 400_000
ALPHA = 1e-6
WRONG = (0.7, 1.3)
#: Repetitions and users of the variance check: the ratio of the variances has a standard error of sqrt(2 / 4000) = 2 %.
REPEATS, USERS = 4000, 100


def check_rows_sum_to_one(estimator):
    """Every row of the transition matrix is a probability distribution, exactly."""
    for randomizer in randomizers(estimator):
        for row in randomizer.transition_matrix():
            require(all(isinstance(p, Fraction | int) for p in row), "transition_matrix must hold Fractions")
            require(min(row) >= 0 and sum(row) == 1, "a row of transition_matrix is no distribution")


def check_worst_ratio(estimator):
    """No output is more than e^epsilon times likelier for one input than for another, in either direction, exactly."""
    laws = randomizers(estimator)
    total = sum(r.epsilon for r in laws)
    require(total <= canonical_epsilon(estimator.epsilon), "the columns' epsilons add up to more than epsilon")
    for randomizer in laws:
        high, low = _worst_ratio(randomizer.transition_matrix())
        stated = float(randomizer.epsilon)
        require(
            low > 0 and within(high, low, randomizer.epsilon),
            f"the worst ratio is e^{log_ratio(high, low) if low else float('inf')}, above e^{stated}",
        )


def check_budget_is_used(estimator):
    """At least 0.99 of epsilon is used, unless the randomizer says why not."""
    share = _share(estimator)
    for randomizer in randomizers(estimator):
        high, low = _worst_ratio(randomizer.transition_matrix())
        require(
            randomizer.slack or uses_enough(high, low, share),
            f"only {log_ratio(high, low)} of epsilon = {float(share)} is used and no slack is declared",
        )


def check_kernel_follows_law(estimator):
    """Reports follow the transition matrix (chi-square, n = 400,000, alpha = 1e-6), not those of 0.7 or 1.3 epsilon."""
    for column, randomizer in enumerate(randomizers(estimator)):
        codes = _codes(randomizer, N, seed=1)
        rows, columns = randomizer.law_indices(codes, reports_of(randomizer, codes, seed=2, column=column))
        law = np.array([[float(p) for p in row] for row in randomizer.transition_matrix()])
        require(
            rows.min() >= 0 and rows.max() < law.shape[0] and columns.min() >= 0 and columns.max() < law.shape[1],
            "law_indices points outside the transition matrix",
        )
        seen = np.bincount(rows * law.shape[1] + columns, minlength=law.size).reshape(law.shape)
        require(chi_square(seen, law) > ALPHA, "the kernel does not follow the transition matrix")
        for factor in WRONG:
            wrong = law**factor
            wrong /= wrong.sum(axis=1, keepdims=True)
            require(chi_square(seen, wrong) < ALPHA, f"the check cannot tell epsilon from {factor} epsilon")


def check_no_byte_betrays(estimator):
    """No byte of a report, nor any bit, is more than e^epsilon times likelier for one input than another.

    The transition matrix speaks about the response *given what is public* (a hash); this looks at all that is sent.
    Each event is tested by 6-sigma intervals, n = 400,000, so that a correct mechanism is not rejected at alpha = 1e-6.
    What `public_part` names must not depend on the input at all.
    """
    for column, randomizer in enumerate(randomizers(estimator)):
        codes = _codes(randomizer, N, seed=6)
        reports = reports_of(randomizer, codes, seed=7, column=column)
        n = np.bincount(codes, minlength=randomizer.n_categories)[:, None]
        budget = np.exp(float(randomizer.epsilon))
        for byte in reports.view(np.uint8).T:
            cells = np.bincount(codes.astype(np.int64) * 256 + byte, minlength=256 * len(n)).reshape(len(n), 256)
            bits = cells @ ((np.arange(256)[:, None] >> np.arange(8)) & 1)
            for seen in (cells, bits):
                share = seen / n
                width = 6 * np.sqrt((share * (1 - share) + 1 / n) / n)
                low, high = (share - width).max(axis=0), (share + width).min(axis=0)
                require((low <= budget * high).all(), "a byte of the report tells inputs apart by more than e^epsilon")
        public = randomizer.public_part(reports)
        for byte in [] if public is None else np.ascontiguousarray(public).view(np.uint8).T:
            cells = np.bincount(codes.astype(np.int64) * 256 + byte, minlength=256 * len(n)).reshape(len(n), 256)
            uniform = np.tile(cells.sum(axis=0) / cells.sum(), (len(n), 1))
            require(chi_square(cells, uniform) > ALPHA / 100, "the public part of a report depends on the input")


def check_support_probabilities(estimator):
    """A report supports its own value with probability p*, any other with q* (binomial test, alpha = 1e-6)."""
    for column, randomizer in enumerate(randomizers(estimator)):
        codes = _codes(randomizer, N, seed=3)
        support = randomizer.support(reports_of(randomizer, codes, seed=4, column=column))
        require(
            support.shape == (N, randomizer.n_categories) and support.dtype == np.uint8 and support.max() <= 1,
            "support must return a 0/1 matrix of dtype uint8",
        )
        law = np.array([[float(p) for p in row] for row in randomizer.support_law()])
        limit = stats.norm.isf(ALPHA / (2 * randomizer.n_categories**2))
        for x in range(randomizer.n_categories):
            mine = support[codes == x]
            expected = law[x]
            require((mine[:, expected == 0] == 0).all() and (mine[:, expected == 1] == 1).all(), "impossible supports")
            expected = np.clip(expected, 1e-12, 1 - 1e-12)
            z = (mine.mean(axis=0) - expected) / np.sqrt(expected * (1 - expected) / len(mine))
            require(np.abs(z).max() < limit, "supports do not have the probabilities of support_law")
        # all values together: far more sensitive to an error that they share
        own = support[np.arange(N), codes]
        others = support.sum(axis=1, dtype=np.int64) - own
        for name, seen, expected in (
            ("the own value", own, np.diag(law)[codes]),
            ("other values", others, (law.sum(axis=1) - np.diag(law))[codes]),
        ):
            spread = (seen - expected).std()
            z = (seen - expected).mean() / spread * np.sqrt(N) if spread else 0.0
            require(abs(z) < stats.norm.isf(ALPHA / 2), f"support_law is wrong on average for {name}")
        if randomizer.n_counts == randomizer.n_categories:
            counts = np.zeros(randomizer.n_counts, np.int64)
            randomizer.count(reports_of(randomizer, codes, seed=4, column=column), counts)
            require((counts == support.sum(axis=0)).all(), "count must be the column sums of support")


def check_estimates_are_unbiased(estimator):
    """The mean estimate of 4,000 x 100 users is the truth (z-test, alpha = 1e-6)."""
    for column, randomizer in enumerate(randomizers(estimator)):
        truth, estimates = _estimates(randomizer, column)
        error = np.sqrt(randomizer.variance(USERS, truth) / REPEATS)
        z = (estimates.mean(axis=0) - truth) / error
        limit = stats.norm.isf(ALPHA / (2 * truth.size))
        require(np.abs(z).max() < limit, f"estimate is biased: |z| = {np.abs(z).max():.1f}, above {limit:.1f}")


def check_variance(estimator):
    """`variance` is the variance of the estimates (chi-square, alpha = 1e-6); 0.7 and 1.3 times it are rejected."""
    for column, randomizer in enumerate(randomizers(estimator)):
        truth, estimates = _estimates(randomizer, column)
        ratio = np.square(estimates - estimates.mean(axis=0)).sum(axis=0) / randomizer.variance(USERS, truth)
        # 2 % more room than chi-square: a mean of 100 reports is not quite normal
        low = stats.chi2.ppf(ALPHA / truth.size, REPEATS - 1) * 0.98
        high = stats.chi2.isf(ALPHA / truth.size, REPEATS - 1) * 1.02
        require(((ratio > low) & (ratio < high)).all(), "variance is not the variance of the estimates")
        for factor in WRONG:
            require(
                ((ratio / factor < low) | (ratio / factor > high)).all(),
                f"the check cannot tell the variance from {factor} times it",
            )


def check_words_are_never_repeated(estimator):
    """The noise of different rows, blocks, columns and calls is independent (correlation, alpha = 1e-6)."""
    for randomizer in randomizers(estimator):
        size = randomizer.block_rows
        codes = np.zeros(max(2 * size, 20_000), randomizer.code_dtype)

        def own(seed, column=0, codes=codes, randomizer=randomizer):
            reports = reports_of(randomizer, codes, seed, column)
            signal = randomizer.support(reports) if hasattr(randomizer, "support") else reports
            return signal[:, 0].astype(float)

        first = own(0)
        pairs = {
            "neighbouring rows": (first[:-1], first[1:]),
            "rows two apart": (first[:-2], first[2:]),
            "two blocks": (first[:size], first[size : 2 * size]),
            "two columns": (first, own(0, column=1)),
            "two seeds": (first, own(1)),
            "two secure calls": (own(None), own(None)),
        }
        for name, (a, b) in pairs.items():
            if len(a) < 30 or a.std() == 0 or b.std() == 0:
                require(len(a) < 30, f"the noise of {name} does not vary")
                continue
            z = abs(np.corrcoef(a, b)[0, 1]) * np.sqrt(len(a))
            require(z < stats.norm.isf(ALPHA / 2), f"the noise of {name} is correlated: words are repeated")


def check_intervals_cover(estimator):
    """95 % intervals of the fitted estimator cover the truth, up to a binomial test at alpha = 1e-6."""
    covered, total, n, repeats = 0, 0, 1000, 150
    for seed in range(repeats):
        X = raw_rows(estimator, n, seed)
        est = fresh(estimator, random_state=seed, postprocess=None).fit(X)
        for j, (categories, interval) in enumerate(zip(est.categories_, est.confidence_interval(0.95))):
            truth = np.array([(X[:, j] == c).mean() for c in categories.tolist()])
            covered += int(((interval[:, 0] <= truth) & (truth <= interval[:, 1])).sum())
            total += truth.size
    # cells of one fit are dependent, so every fit counts as one observation of its least favourable cell
    room = stats.norm.isf(ALPHA) * np.sqrt(0.95 * 0.05 / repeats)
    require(abs(covered / total - 0.95) < room, f"95 % intervals cover {covered / total:.3f} of the truths")


def _share(estimator):
    """Return the budget of one column: all columns of a row have to share epsilon."""
    return canonical_epsilon(estimator.epsilon) / len(estimator.categories)


def _worst_ratio(rows):
    """Return the largest ratio of two entries of one column, as (numerator, denominator); (1, 0) where infinite."""
    worst = (Fraction(1), Fraction(1))
    for column in zip(*rows):
        high, low = Fraction(max(column)), Fraction(min(column))
        if high and not low:
            return Fraction(1), Fraction(0)
        if high * worst[1] > worst[0] * low:
            worst = (high, low)
    return worst


def _codes(randomizer, n, seed):
    if hasattr(randomizer, "input_codes"):
        return np.random.default_rng(seed).choice(randomizer.input_codes, n)
    return np.random.default_rng(seed).integers(0, randomizer.n_categories, n).astype(randomizer.code_dtype)


def chi_square(seen, law):
    """Return the p-value of counts against a law, row by row, cells of fewer than 5 expected taken together."""
    expected = law * seen.sum(axis=1, keepdims=True)
    statistic, freedom = 0.0, 0
    for observed, wanted in zip(seen, expected):
        small = wanted < 5
        observed = np.append(observed[~small], observed[small].sum())
        wanted = np.append(wanted[~small], wanted[small].sum())
        keep = wanted > 0
        if observed[~keep].any():
            return 0.0
        statistic += float((np.square(observed - wanted)[keep] / wanted[keep]).sum())
        freedom += max(int(keep.sum()) - 1, 0)
    return stats.chi2.sf(statistic, freedom)


def _estimates(randomizer, column):
    """Return (true frequencies, REPEATS estimates of them from USERS users each)."""
    d = randomizer.n_categories
    codes = np.sort(np.arange(USERS) % (d + 1) % d).astype(randomizer.code_dtype)
    truth = np.bincount(codes, minlength=d) / USERS
    reports = reports_of(randomizer, np.tile(codes, REPEATS), seed=5, column=column)
    estimates = np.empty((REPEATS, d))
    for k, part in enumerate(reports.reshape(REPEATS, USERS, -1)):
        counts = np.zeros(randomizer.n_counts, np.int64)
        randomizer.count(part, counts)
        estimates[k] = randomizer.estimate(counts, USERS)
    return truth, estimates


LAW_CHECKS = (
    check_rows_sum_to_one,
    check_worst_ratio,
    check_budget_is_used,
    check_kernel_follows_law,
    check_no_byte_betrays,
    check_support_probabilities,
    check_estimates_are_unbiased,
    check_variance,
    check_words_are_never_repeated,
    check_intervals_cover,
)
