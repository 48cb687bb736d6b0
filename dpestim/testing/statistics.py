"""Statistics: the exact law on all small neighbouring tables, what else a release may depend on, errors, intervals.

For estimators with `summarize`, `merge`, `release` and `_plan`, which says by which laws a release is drawn, and what
is made of that (`dpestim.statistics.plan`).
"""

import itertools
import math
import pickle
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import stats
from sklearn.base import clone

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_amount, canonical_epsilon, exp_lower, exp_upper, log_ratio
from dpestim.rng import WordSource
from dpestim.testing.plans import plan_loss
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.sample import WRONG_FACTORS
from dpestim.testing.tools import refuses, require, same_state

#: Releases a setting whose noise, and whose choices, are looked at; the same test must reject other laws.
N, CHOSEN, ALPHA = 1_600, 300, 1e-6
#: Tables have up to so many rows besides the one that changes, each one of so many; a user has up to so many rows.
ROWS, KINDS, MOST = 3, 4, 2
#: Releases whose spread is compared with the standard error that is stated, and by which part they may differ.
SPREAD, SLACK = 400, 0.2
#: Releases whose intervals of this level are looked at, a shape of the data. An interval of half the width holds normal
#: noise with probability .48 where .8 is said: 150 releases reach the 1e-6 quantile of that law once in 500 times.
COVERED, LEVEL = 150, 0.8
#: The lower of two bounds, 1 apart, between which the squares of the points of a grid pass 2^63.
FAR = 2896.0
#: From this number on kinds of rows are odd ones.
ODD = 100
#: Enclosures of powers of e are narrower; floats that stand for probabilities are off by less.
_TINY, _FLOAT = Fraction(1, 10**25), 1e-9


class Statistics(Releases):
    """A statistic, and how it is used."""

    wrong = {
        "delta": (0, 1, 1.5, -1e-9, math.nan, "0", True),
        "bounds": (3, (1,), (1, 1), (2, 1), (math.nan, 1), (0, math.inf), "ab", ("0", "1"), (1.0, 1.0 + 1e-15)),
        "max_rows_per_user": (0, -1, 1.5, "2", True),
        "row_choice": (None, "last"),
        "bins": (0, -1, [1.0], [2.0, 1.0], "ten"),
        "q": (-0.1, 1.5, "half", [], [math.nan], None),
        "level": (0, 1, "0.5", True),
        "rank": (math.nan, "1", math.inf),
        "categories": (None, "ab", []),
        "bounds_fraction": (),
    }

    def checks(self):
        """Return the checks of statistics."""
        return *CHECKS, *RELEASE_CHECKS

    def release(self, est, data):
        """Summarise and release, with all that a result shows."""
        return shown(clone(est).summarize(data).release())

    def charged(self):
        """Return functions of an estimator, each of which is one release: it knows what it promised."""
        return lambda est: est.fit(self.data), lambda est: est.summarize(self.data).release()

    def entropy(self, est):
        """Return several releases of many rows: some statistics have few answers."""
        data = np.concatenate([self.data] * 20)
        return [self.release(est, data) for _ in range(16)]

    def ways(self):
        """Return `entropy`, and the same by `fit`, which draws by itself."""
        data = np.concatenate([self.data] * 20)
        return self.entropy, lambda est: [shown(clone(est).fit(data).result_) for _ in range(16)]

    def odd(self):
        """Return rows of the same shape, with values that are odd."""
        data = self.data
        yield data
        values = (None, "never declared", 10**30, b"x") if data.dtype == object else (np.nan, np.inf, 0.0)
        yield from (np.full(data.shape, value, data.dtype) for value in values)

    def shown(self, released):
        """Return what must not depend on a value."""
        return type(released[0]), np.ndim(released[0])

    @cached_property
    def kinds(self):
        """A few different rows, the extreme ones among them."""
        rows = self.estimator._test_data(60)[0]
        bounds = getattr(self.estimator, "bounds", None)
        if bounds is None or rows.dtype == object:
            return np.array(sorted({row if np.ndim(row) == 0 else tuple(row) for row in rows}, key=str)[:KINDS],
                            rows.dtype)
        low, high = np.broadcast_to(bounds[0], rows.shape[1:]), np.broadcast_to(bounds[1], rows.shape[1:])
        mixed = np.where(np.arange(rows.shape[1] if rows.ndim == 2 else 1) % 2, low, high).reshape(low.shape)
        return np.array([low, high, 0.3 * low + 0.7 * high, *[mixed] * (rows.ndim == 2)])

    @cached_property
    def far(self):
        """The same with bounds that are far from 0, or None where it has no pair of bounds."""
        est = self.fresh()
        if not isinstance(getattr(est, "bounds", None), tuple):
            return None
        return type(self)(est.set_params(bounds=(FAR, FAR + 1.0)))

    @cached_property
    def odd_kinds(self):
        """Rows that a newcomer forgets: far outside the bounds, 0; in strict mode also those without a value."""
        like = self.kinds
        if like.dtype == object:
            values = ["never declared", None]
            return np.array(values if like.ndim == 1 else [[v] * like.shape[1] for v in values], object), len(values)
        size = 1 + float(np.abs(like).max())
        values = [0.0, 40 * size, -40 * size, math.nan, math.inf]
        if not self.estimator._bounded:  # (booleans)
            values = [0.0, 1.0, math.nan, math.inf]
        rows = np.multiply.outer(np.array(values), np.ones(like.shape[1:]))
        if like.ndim == 2 and like.shape[1] > 1:  # (one of the columns)
            rows[-1, 1:] = like[0, 1:]
        return rows, 2

    def table(self, chosen):
        """Return the rows of these kinds; those from `ODD` on are odd ones."""
        chosen = np.array(chosen, int)
        if not (chosen >= ODD).any():
            return self.kinds[chosen]
        both = np.concatenate([self.kinds, self.odd_kinds[0]])
        return both[np.where(chosen >= ODD, len(self.kinds) + chosen - ODD, chosen)]

    def plan(self, est, chosen, users=None):
        """Return (the plan that finds private bounds, or None; a function of its outcome that returns the next one)."""
        known = self._plans.get((id(est), chosen, users))
        if known is None:
            try:
                rows, one = est._read(self.table(chosen), None if users is None else list(users))
                if isinstance(getattr(est, "bounds", None), str):
                    known = est._plan_of_bounds(rows), lambda found: est._plan_within(rows, one, found)
                else:
                    plan = est._plan(est._summary_of(rows, one), est._shares()[1])
                    known = None, lambda found: plan
            except (ValueError, ArithmeticError, LookupError) as error:
                require(False, f"rows that are valid must not raise {type(error).__name__}")
            self._plans[id(est), chosen, users] = known
        return known

    @cached_property
    def _plans(self):
        return {}

    @cached_property
    def worlds(self):
        """Return [(estimator, neighbouring tables)]: as it is, with private bounds, with several rows a user."""
        est, add = self.fresh(), self.estimator.neighbours == "add_remove"
        many = [base for n in range(ROWS + 1)
                for base in itertools.combinations_with_replacement(range(len(self.kinds)), n)]
        few = many[:: 1 + len(many) // 6]
        worlds = [(est, list(pairs_of(many, len(self.kinds), add)))]
        if "bounds_fraction" in est.get_params():
            worlds.append((self.fresh(bounds="private"), list(pairs_of(few, len(self.kinds), add))))
        odd, n_strict = self.odd_kinds
        places = [ODD + k for k in range(len(odd) - n_strict)]
        some = [base for base in few if len(base) in (0, ROWS)][:2] + few[-1:]
        worlds.append((self.fresh(), list(odd_pairs(some, places, len(self.kinds), add))))
        with config_context(strict=True):
            worlds.append((self.fresh(), list(odd_pairs(some, range(ODD, ODD + len(odd)), len(self.kinds), add))))
        if add:
            own = [rows for n in range(1, MOST + 2)
                   for rows in itertools.combinations_with_replacement(range(len(self.kinds)), n)]
            worlds.append((self.fresh(max_rows_per_user=MOST), [
                ((base, tuple(range(len(base)))), (base + rows, (*range(len(base)), *["new"] * len(rows))))
                for base in few for rows in own[:: 1 + len(own) // 8] + own[-1:]]))
        return worlds


def pairs_of(bases, n_kinds, add):
    """Yield pairs of neighbours, each (rows, their users): one row more, or one replaced."""
    for base in bases:
        if add:
            yield from (((base, None), ((*base, kind), None)) for kind in range(n_kinds))
        else:
            yield from ((((*base, a), None), ((*base, b), None)) for a, b in itertools.combinations(range(n_kinds), 2))


def odd_pairs(bases, odd, n_kinds, add):
    """Yield pairs of neighbours of which one, or both, have an odd row: one row more, or one replaced."""
    for base in bases:
        for place in odd:
            yield ((*base, place), None), ((base if add else (*base, n_kinds - 1)), None)
            yield ((*base, odd[0], place), None), (((*base, odd[0]) if add else (*base, odd[0], 0)), None)


def shown(result):
    """Return all that a result shows."""
    try:
        ends = result.interval(0.5)
    except ValueError:
        ends = ()
    keys = [np.asarray(own, object).tolist() for own in result.keys]
    return result.value, result.standard_error, ends, keys, result.about


def _drawn(drawn):
    """Return all that is made of the outcomes of a plan, as `shown`."""
    value, error, ends, *keys = drawn
    keys = [np.asarray(own, object).tolist() for own in keys[0]] if keys else []
    return value, error, () if ends is None else ends(0.5), keys


def _stages(statistic, est, pair):
    """Yield pairs of plans that are released together, one after the other: [(one, two), ...] for several outcomes."""
    (find, then), (find_2, then_2) = (statistic.plan(est, *own) for own in pair)
    if find is None:
        yield [(then(None), then_2(None))]
        return
    (part,) = find.parts
    exact = part.exact()
    spread = int(part.noise.half_width(0.99))
    for more in (0, 2 * spread, 2 * spread * (exact > 0)):  # nothing, everything, or what there is, was found
        found = find.finish([exact + more])
        require(same_state(found, find_2.finish([exact + more])), "bounds must follow from noisy counts alone")
        yield [(find, find_2), (then(found), then_2(found))]


def check_statistic_keeps_epsilon(statistic):
    """Over all small neighbouring tables no outcome is more than e^epsilon times likelier, exactly; or its delta is.

    As the estimator is, with private bounds, and with several rows a user. The outcomes are what is drawn: integers
    with noise, choices, what passes a threshold. Noise on integers must use most of epsilon, or of delta. In bounds
    that are far from 0 squares exceed 64 bits.
    """
    for est, pairs in statistic.worlds:
        worst, lost, epsilon, allowed = _most_lost(statistic, est, pairs)
        used = worst >= exp_lower(Fraction(97, 100) * epsilon) or lost >= 0.1 * allowed > 0
        chosen = hasattr(est, "q")  # what is scored moves less on small tables than it may
        require(used or chosen or est is not statistic.worlds[0][0],
                "much less than epsilon, or delta, is used: lower the changes of `_numbers`, or, where they are right, "
                "take bounds for which two of the rows low, high and 0.3 low + 0.7 high make that change")


    far = statistic.far
    if far is not None:
        some = pairs_of([(), (0,), (0, 1)], len(far.kinds), far.estimator.neighbours == "add_remove")
        _most_lost(far, far.fresh(), some)


def _most_lost(statistic, est, pairs):
    """Return (the worst ratio, the largest delta) of neighbouring tables, (epsilon, delta): what must not be less."""
    epsilon = canonical_epsilon(est.epsilon)
    allowed = float(canonical_amount(getattr(est, "delta", None) or 0, "delta"))
    worst, lost = Fraction(1), 0.0
    for pair in pairs:
        for stages in _stages(statistic, est, pair):
            ratio, deltas = Fraction(1), []
            for one, two in stages:
                pure, more = plan_loss(one, two)
                ratio, deltas = ratio * pure, deltas + more
            require(ratio <= exp_upper(epsilon) * (1 + _TINY), "an outcome is likelier by more than e^epsilon")
            require(len(deltas) <= 1, "at most one part of a release may have a delta")
            worst = max(worst, ratio)
            for delta in deltas:
                lost = max(lost, delta(float(epsilon) - log_ratio(ratio.numerator, ratio.denominator)))
            require(lost <= allowed * (1 + _FLOAT), f"the delta is {lost:.3g} or more, above what is declared")
    return worst, lost, epsilon, allowed


def check_statistic_shows_what_was_drawn(statistic):
    """What is made of the outcomes is the same for neighbours: value, error, ends and keys know public facts alone."""
    for est, pairs in statistic.worlds:
        for k, pair in enumerate(pairs[:: 1 + len(pairs) // 24]):
            for stages in _stages(statistic, est, pair):
                one, two = stages[-1]
                outcomes = [part.draw(WordSource(k).part(at)) for at, part in enumerate(one.parts)]
                require(same_state(_drawn(one.finish(outcomes)), _drawn(two.finish(outcomes))),
                        "what is released must follow from what was drawn, and from nothing else of the rows")


# ---------------------------------------------------------------------------------------------- samples


def _losses(law, part, n):
    """Return how far n choices by a law are from the best."""
    codes = part.codes()
    return codes.max() - np.random.default_rng(2).choice(codes, n, p=replace(part, law=law).probabilities())


def check_statistic_follows_its_law(statistic):
    """Releases are drawn by the laws that were looked at: two samples, Kolmogorov and Smirnov's test, alpha = 1e-6.

    Noise of 0.7 and 1.3 times the size is rejected, and choices by a half and by twice the epsilon.
    """
    rows = statistic.estimator._test_data(2_000)[0]
    est = statistic.fresh().summarize(rows)
    plan = est._plan(est.summary_, est._shares()[1])
    drawn = clone(est).fit(rows).result_
    require(same_state(_drawn(plan(WordSource(0))), shown(drawn)[:-1]), "a release must be drawn as it was planned")
    part, source = plan.parts[0], WordSource(1)
    chosen = hasattr(part, "target")
    n = CHOSEN if chosen else N
    if chosen:
        codes = part.codes()
        seen = np.array([codes.max() - part.code(part.draw(source.part(k))) for k in range(n)])
        known = _losses(part.law, part, 100 * n)
        wrong = [_losses(replace(part.law, epsilon=part.law.epsilon * factor), part, n)
                 for factor in (Fraction(1, 2), 2)]
    else:
        counts = getattr(part, "counts", None)
        # (one number many times: what noise is added to; what is frequent is far above the threshold)
        many = {k: 10**6 for k in range(n)} if counts is not None else [0] * n
        one = type(part)(part.noise, many, *((part.least,) if counts is not None else ()))
        drawn = one.draw(source)
        seen = np.array(list(drawn.values())) - 10**6 if counts is not None else drawn / part.noise.unit
        seen, known = np.abs(seen), np.abs(part.noise.law.draw(WordSource(2), 8 * n))
        wrong = [np.rint(factor * seen) for factor in WRONG_FACTORS]
    require(_same(seen, known), "what is drawn does not follow the law")
    require(not any(_same(other, known) for other in wrong), "the test cannot tell another law from this one")


def _same(a, b):
    return stats.ks_2samp(a, b, method="asymp").pvalue > ALPHA


def check_standard_errors_are_those_seen(statistic):
    """The root of the mean square of the errors of 400 releases is the standard error, to a part of 0.2."""
    rows = statistic.estimator._test_data(400)[0]
    est = statistic.fresh().summarize(rows)
    plan = est._plan(est.summary_, est._shares()[1])
    exact, stated, *_ = plan.finish([part.exact() for part in plan.parts])
    if stated is None:
        return
    require(np.shape(stated) == np.shape(exact), "there must be a standard error for each number")
    drawn = [plan.finish([part.draw(WordSource(5).part(k)) for part in plan.parts]) for k in range(SPREAD)]
    drawn = [own for own in drawn if np.shape(own[0]) == np.shape(exact)]
    require(len(drawn) > SPREAD // 2, "of many rows nearly all releases must look alike")
    errors = np.array([np.subtract(own[0], exact) / own[1] for own in drawn])
    ratio = math.sqrt(np.mean(errors**2)) if np.size(errors) else 1.0
    require(1 - SLACK < ratio < 1 + SLACK, f"errors are {ratio:.2f} times what is stated")


def check_intervals_hold(statistic):
    """Of 40 releases a shape at least the 1e-6 quantile of the binomial law have intervals that hold what is exact."""
    for shape, rows in _shapes(statistic):
        est = statistic.fresh().summarize(rows)
        plan = est._plan(est.summary_, est._shares()[1])
        exact = plan.finish([part.exact() for part in plan.parts])[0]
        hits = 0
        for k in range(COVERED):
            drawn = plan.finish([part.draw(WordSource(7).part(4 * k + at)) for at, part in enumerate(plan.parts)])
            if drawn[2] is None:
                return
            if np.shape(drawn[0]) != np.shape(exact):
                break
            low, high = drawn[2](min(LEVEL, getattr(est, "level", None) or LEVEL))
            require(np.all(np.asarray(low) <= high), "the ends of an interval must be in order")
            slack = 1e-9 * np.abs(exact)
            # (what is NaN without noise, too, is not defined, and nothing could hold it)
            hits = hits + (np.isnan(exact) | ((low <= exact + slack) & (exact - slack <= high)))
        else:
            require(np.min(hits) >= stats.binom.ppf(ALPHA, COVERED, LEVEL) if np.size(hits) else True,
                    f"intervals of rows that are {shape} are too short")


def check_intervals_count_numbers(statistic):
    """No interval depends on more noisy numbers than `_involved` says: its width is for that many at once."""
    est = statistic.estimator
    if not hasattr(type(est), "_involved") or getattr(est, "bounds", None) == "private":
        return
    est = statistic.fresh().summarize(est._test_data(300)[0])
    numbers, changes = est._numbers(est.summary_)
    noisy, widths = np.array(numbers, float), np.array(changes, float) / 64
    n = est.summary_.n_rows if est._replaces else None
    ends = np.array(est._range(noisy, widths, est.summary_.domain, n))
    depends = sum(np.any(np.array(est._range(noisy, np.where(np.arange(len(widths)) == k, width * 2, widths),
                                             est.summary_.domain, n)) != ends, axis=0).astype(int)
                  for k, width in enumerate(widths))
    require(np.max(depends) <= est._involved[n is not None],
            f"_involved must be {np.max(depends)}: an interval depends on as many noisy numbers")


def _shapes(statistic):
    """Yield (what they are, rows): as the estimator's own, few, and all the same."""
    rows = statistic.estimator._test_data(300)[0]
    yield "many", rows
    yield "few", rows[:4]
    yield "equal", rows[np.zeros(200, int)]


# ---------------------------------------------------------------------------------------------- summaries


def check_statistics_merge(statistic):
    """Summaries of parts add up to that of all rows, in any order; copies and those of other parameters are refused."""
    rows = statistic.estimator._test_data(90)[0]
    a, b, whole = (statistic.fresh() for _ in range(3))
    a.summarize(rows[:20]).summarize(rows[20:50])
    b.summarize(rows[50:])
    whole.summarize(rows[::-1])
    twin, value = pickle.loads(pickle.dumps(a)), shown(whole.release())
    for merged in (twin.merge(b), statistic.fresh().merge(b).merge(a)):
        require(same_state(shown(merged.release()), value), "merged summaries must release what all rows do")
        refuses(lambda merged=merged: merged.merge(pickle.loads(pickle.dumps(b))), "merging a part again")
    refuses(lambda: a.merge(a), "merging with itself")
    other = statistic.fresh(neighbours="substitution" if a.neighbours == "add_remove" else "add_remove")
    refuses(lambda: a.merge(other.summarize(rows)), "merging with another relation")
    refuses(lambda: other.set_params(neighbours=a.neighbours).release(), "releasing under another relation")


def check_statistics_stay_secret(statistic):
    """A summary shows nothing of the rows, and after a fit an estimator keeps what was released and nothing else."""
    rows, est = statistic.estimator._test_data(50)[0], statistic.fresh()
    few, many = (repr(clone(est).summarize(own).summary_) for own in (rows[:1], rows))
    require(few == many, "a summary must show nothing")
    before = est.__getstate__()
    require(est.fit(rows) is est, "fit must return the estimator")
    more = {name for name in est.__getstate__() if name not in before}
    kept = {"result_", "value_", "n_features_in_", "feature_names_in_", "_promised", "_kept_promise", "_last_relation"}
    require(more <= kept and est.privacy_ == est.result_.privacy, "fit must keep its result, and what that promised")
    require(same_state(shown(est.result_), shown(statistic.fresh().fit(rows).result_)), "a seed must reproduce fit")
    again = pickle.loads(pickle.dumps(est))
    require(same_state(shown(again.result_), shown(est.result_)), "results must pickle")


CHECKS = (
    check_statistic_keeps_epsilon,
    check_statistic_shows_what_was_drawn,
    check_statistic_follows_its_law,
    check_standard_errors_are_those_seen,
    check_intervals_hold,
    check_intervals_count_numbers,
    check_statistics_merge,
    check_statistics_stay_secret,
)
