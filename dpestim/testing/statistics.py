"""Statistics: the exact law on all small neighbouring tables, what else a release may depend on, errors, intervals.

For estimators with `summarize`, `merge`, `release` and `_plan`, which says by which laws a release is drawn, and what
is made of that (`dpestim.statistics.plan`).
"""

import itertools
import math
import pickle
from fractions import Fraction
from functools import cached_property

import numpy as np
from sklearn.base import clone

from dpestim.privacy.config import config_context
from dpestim.privacy.exact import canonical_amount, canonical_epsilon, exp_lower, exp_upper, log_ratio
from dpestim.rng import WordSource
from dpestim.testing.plans import plan_loss
from dpestim.testing.releases import RELEASE_CHECKS, Releases
from dpestim.testing.statistic_samples import SAMPLE_CHECKS, drawn_numbers, shown
from dpestim.testing.tools import refuses, require, same_state

#: Tables have up to so many rows besides the one that changes, each one of so many; a user has up to so many rows.
ROWS, KINDS, MOST = 3, 4, 2
#: The lower of two bounds, 1 apart, between which the squares of the points of a grid pass 2^63.
FAR = 2896.0
#: From this number on kinds of rows are odd ones.
ODD = 100
#: Enclosures of powers of e are narrower; floats that stand for probabilities are off by less.
_TINY, _FLOAT = Fraction(1, 10**25), 1e-9


class Statistics(Releases):
    """A statistic, and how it is used."""

    wrong = {
        "delta": (1, 1.5, -1e-9, math.nan, "0", True),
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
        return [self.release(est, data) for _ in range(10)]

    def ways(self):
        """Return `entropy`, and the same by `fit`, which draws by itself."""
        data = np.concatenate([self.data] * 20)
        return self.entropy, lambda est: [shown(clone(est).fit(data).result_) for _ in range(10)]

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
                require(same_state(drawn_numbers(one.finish(outcomes)), drawn_numbers(two.finish(outcomes))),
                        "what is released must follow from what was drawn, and from nothing else of the rows")


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
    *SAMPLE_CHECKS,
    check_statistics_merge,
    check_statistics_stay_secret,
)
