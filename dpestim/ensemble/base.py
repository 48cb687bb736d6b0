"""What boosting of classes and of numbers share: parameters, bins, the fit and scores."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpestim import accounting
from dpestim.central.base import declared_delta
from dpestim.central.model import CentralModel
from dpestim.ensemble.cost import Cost
from dpestim.ensemble.rounds import Histograms, boost, unsure_of
from dpestim.models import NO_TARGETS
from dpestim.parallel import check_n_jobs
from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.progress import Progress, check_verbose
from dpestim.rng import WordSource, check_random_state
from dpestim.statistics.calibrated_noise import Answers
from dpestim.tree.columns import COLUMNS, BinnedColumns

#: Bins of a column once they were counted, and codes of a side of a pair, at most; that for what is missing included.
_MERGED, _SIDE = 64, 16
#: Which part of itself the curvature of a class may be off by, for noise in its share, where bands are stated.
_HIDDEN = 0.1
_MOST_ROUNDS, _MOST_PAIRS = 1000, 100

_PARAMETERS = """\
Parameters
----------
{epsilon of a fit}
delta : float, default=None
    The delta of (epsilon, delta)-differential privacy, below 1. None or 0: Laplace noise, which is much larger; declare
    a delta, such as 1e-5, if you can.
{columns}
{own}
interactions : int or list of pairs of int or str, default=None
    Pairs of columns, by number or name, that get a term of their own, of up to 16 times 16 bins: 15 of each column, and
    one for missing or unknown values. More than 15 categories are merged with their neighbours in the order of
    `categories`, so declare a meaningful order. A number: this number of pairs is chosen privately, by the residuals of
    the model of single columns. None: no pairs.
interactions_fraction : float, default=0.1
    The part of epsilon that chooses pairs where `interactions` is a number, in (0, 1).
max_iter : int, default=None
    Rounds over all terms, from 1 to 1000. None: 8 with a delta, with which further rounds cost almost nothing. Without
    a delta 1, because Laplace noise grows with the number of rounds; 2 for a regression with substitution and enough
    rows.
neighbours : {"substitution", "add_remove"}, default=None
    The neighbouring relation: one record is replaced (the number of records is then public), or one record is added or
    removed, with half of the noise. None: the relation of the block (`dpestim.config_context`), else of the ledger,
    else "substitution".
{ledger of a fit}
{random_state}
n_jobs : int, default=None
    Threads, as in scikit-learn; the result does not depend on it.
{verbose}

Attributes
----------
intercept_ : ndarray of shape (n_outputs,)
scores_ : ndarray of shape (n_bins of all terms, n_outputs)
    What bins add to a score, term after term; `term_scores_` has them by term. A column of numbers has more bins
    here than sums of residuals are asked of: scores run between these.
standard_errors_ : ndarray of shape (n_bins of all terms, n_outputs)
    Of `scores_`, from the noise alone, for other terms that are given: not from the drawing of the rows,
    nor from what smoothing leaves out. Columns that are nearly copies have errors that are too small, with a delta
    above all (bands of four such columns covered .51 to .97, in place of .95), and no value marks those columns:
    nothing that is released tells which columns go together. NaN for a class that noise hides: where noise alone
    moves its share of the rows by a tenth.
feature_importances_ : ndarray of shape (n_features,)
    Importances of columns, from noisy scores, and biased by their noise; they add up to 1.
term_features_ : list of tuple of int
    The column or columns of each term.
bins_ : tuple
    What each column's codes are, as declared; those of numbers are then merged, to fewer where there is more noise.
term_edges_ : list of list of ndarray
    For each term, the ends of the bins of each of its columns; of categories, around their places.
pools_ : dict of int to ndarray of int
    For each column of more than 15 categories, which bin of a pair each category is in; the last is for unknown
    ones.
term_bins_ : list of ndarray of int
    For each term, the place in `term_scores_` of each code (of each pair of them). The last code of a column of
    numbers is for missing ones.
privacy_ : PrivacyGuarantee
{columns seen}

Raises
------
ValueError
    For an invalid parameter or value, before anything is charged. The message names the parameter or column, never the
    value. Infinity is refused, but in strict mode. Missing numbers (NaN, or null in a data frame) have a separate bin,
    and a separate score if there are enough of them.

References
----------
Nori, Caruana, Bu, Shen, Kulkarni (2021), "Accuracy, interpretability, and differential privacy via explainable
boosting", ICML, algorithm 2, whose sums of residuals these are; their splits are random, and each round forgets
the one before. Dong, Roth, Su (2022), "Gaussian differential privacy", JRSS B 84, corollary 3.3, for adaptive
rounds. The proof: ``boosting.md``.

"""


def _whole(name, value, low, high):
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
        raise ValueError(f"{name} must be an int from {low} to {high}")
    return int(value)


class Boosting(BinnedColumns, CentralModel):
    """Base of both; a sub-class reads its targets (`_targets`) and says what their loss is."""

    _checked_as = "boosting"
    _learned = ("intercept_", "scores_", "standard_errors_")
    _adds_up = True
    #: Who holds the rows and answers.
    _histograms = Histograms
    _texts = {"parameters": _PARAMETERS, "columns": COLUMNS.replace("{n_bins}", "255").replace(
        "{missing}", "A missing number is a\n        separate value under any declaration.")}
    _takes_missing = True

    def __init__(self, epsilon=1.0, *, delta=None, bounds=None, categories=None, n_bins=255, edges=None,
                 edges_fraction=0, interactions=None, interactions_fraction=0.1, max_iter=None, neighbours=None,
                 ledger=None, random_state=None, n_jobs=None, verbose=0):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.n_bins = n_bins
        self.edges = edges
        self.edges_fraction = edges_fraction
        self.interactions = interactions
        self.interactions_fraction = interactions_fraction
        self.max_iter = max_iter
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y=None):
        """Fit the model to rows X and targets y; one release of epsilon.

        {fit of rows and targets}
        """
        epsilon, _ = self._check_parameters()
        strict, trial = self._is_strict(), self._declared_trial(X, y)
        (numbers, columns), n_rows = trial._rows(X, True)
        targets, kind, learned = trial._targets(y, n_rows, strict)
        trial._declare(trial._bins(trial.n_features_in_, numbers))
        edges = trial._edges_to_find(numbers, n_rows, trial.n_features_in_, epsilon)

        def make(sizes, *more):
            codes = trial._term_codes(numbers, columns)
            return self._histograms(codes, sizes, targets, kind, *more, self.n_jobs)

        return self._fit_to(make, lambda first: trial._term_codes(numbers, columns, first), trial, kind, learned,
                            n_rows, edges)

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`), asked for each term in each round; charges before the first noise.

        {fit of parts}
        """
        from dpestim.ensemble.parts import PartHistograms, forget  # (only who reads rows in parts asks for them)
        from dpestim.passes import Blueprint, CountRows, InProcesses
        from dpestim.summaries import refuse_too_many

        epsilon, _ = self._check_parameters()
        if self._inferred() or self._fraction_of_edges():
            raise ValueError(f"{type(self).__name__} needs all rows at once to find bounds, classes or edges: declare "
                             "them, with edges_fraction=0")
        X, *y = example
        trial = self._trial(X, *y)
        trial._rows(X, True)
        kind, learned = trial._of_targets()
        trial._declare(trial._bins(trial.n_features_in_))
        names = "n_features_in_", "feature_names_in_", "bins_", "_reach", "_terms", "_sides", "_candidates", "pools_", \
            "_may_be_missing"
        known = {name: vars(trial)[name] for name in names if name in vars(trial)}
        known = {**known, "_terms": list(trial._terms), "_sides": list(trial._sides)}
        blueprint = replace(Blueprint.of(trial), state=known)
        n_rows = refuse_too_many(ask(CountRows(blueprint)))
        n_rows = n_rows if self._replaces else None
        try:
            self._fit_to(lambda sizes, *more: PartHistograms(ask, blueprint, sizes, kind, *more),
                         lambda first: trial._terms[first:], trial, kind, learned, n_rows, (None, epsilon))
        finally:
            ask(InProcesses(forget))

    def _read_part(self, rows):
        """Return ((numbers, columns of categories), targets) of a part, with the columns of the others."""
        if len(rows) < 2:
            raise ValueError(NO_TARGETS)
        data, n_rows = self._rows(rows[0], False)
        return data, self._targets(rows[1], n_rows, self._is_strict())[0]

    def _fit_to(self, make, more_terms, trial, kind, learned, n_rows, edges):
        """Plan, pay, draw, and keep what was drawn; returns self.

        Parameters
        ----------
        make : callable
            From (bins of terms, cost, law, what adds noise) to `Histograms`.
        more_terms : callable
            What `Histograms.extend` takes of each term from some number on.
        trial : Boosting
            Has read the columns, and becomes what was learned.
        kind, learned
            As `_targets` returns them.
        n_rows : int or None
        edges : tuple
            (what finds edges, or None; epsilon for all else).
        """
        epsilon, delta = self._check_parameters()
        find, rest = edges
        for_pairs = trial._share_of_pairs() * epsilon if trial._candidates else Fraction(0)
        rest -= for_pairs
        replaces = self._replaces
        cost = trial._cost(kind).leading(rest, delta, n_rows if replaces else None)
        if self.max_iter is None and replaces and cost.is_clear(rest, delta, n_rows):
            cost = replace(cost, n_rounds=2).leading(rest, delta, n_rows)
        law = cost.law(rest, delta)  # what could fail, fails before the charge
        pairs = None
        if for_pairs:
            from dpestim.ensemble.pairs import Pairs, grouped

            pairs = Pairs.of(trial._candidates, int(self.interactions), for_pairs, cost)
        guarantee = self._guarantee(epsilon, delta)
        if delta and guarantee.is_finite:
            curve = law.curve if rest == epsilon else law.curve + accounting.RenyiCurve.pure(epsilon - rest)
            guarantee = replace(guarantee, curve=curve)
        self._charge(guarantee, n_rows if replaces else None, getattr(trial, "feature_names_in_", ()))
        self._warn_if_inferred()

        source, progress = WordSource(self.random_state), Progress(self, cost.n_rounds * (2 if pairs else 1))
        if find is not None:
            trial._declare((find(source.part(1)), trial._reach))
            source = source.part(0)
        rows = make([trial._size(sides) for sides in trial._sides], cost, law, Answers(source))
        ordered = [sides[0][1] if len(sides) == 1 else tuple(sides) for sides in trial._sides]

        def later(rows, curves, spread):
            first = len(trial._terms)
            groups = [trial.pools_.get(j, grouped(curve.counts, order))
                      for j, (curve, order) in enumerate(zip(curves, ordered[1:]))]
            for pair in pairs.choose(rows, curves, groups, spread):
                trial._add_pair(pair)
            return list(zip(more_terms(first), [*map(trial._size, trial._sides[first:])],
                            [*map(tuple, trial._sides[first:])]))

        curves, groups, errors = boost(rows, ordered, _MERGED, cost.n_rounds, kind, law.variance_steps * cost.unit**2,
                                       law.variance_steps / cost.weight**2, n_rows if replaces else None,
                                       math.sqrt(law.variance_steps) / cost.square if cost.squares else 0.0,
                                       cost.lead, pure=cost.pure, later=later if pairs else None, done=progress.done)
        unsure = unsure_of(curves[0], float(curves[0].counts[0]), law.variance_steps * cost.unit**2 * 9 / 8
                           / cost.n_rounds, kind)
        # terms have mean 0 over noisy counts; what that takes away is the intercept
        means = [curve.mean(curve.scores)[0] for curve in curves]
        trial.intercept_ = np.sum(means, axis=0) * self._half(learned) + self._middle(learned)
        trial.scores_ = np.concatenate([c.scores - m for c, m in zip(curves, means)][1:]) * self._half(learned)
        # (what terms add to a score, on average over rows, by noisy counts)
        trial._term_sizes = np.array([float(c.mean(np.abs(c.scores - m)).sum()) for c, m in zip(curves, means)][1:])
        trial.standard_errors_ = np.concatenate(errors) * self._half(learned)
        trial.standard_errors_[:, np.broadcast_to(unsure, trial.standard_errors_.shape[1]) >= _HIDDEN] = np.nan
        trial.term_features_, trial.term_bins_, trial.privacy_ = trial._terms[1:], groups[1:], guarantee
        vars(trial).update(learned)
        held = *self.get_params(deep=False), "_bound", "_stays_bound", "_bound_relation", "_reservations"
        return self._become({name: value for name, value in vars(trial).items() if name not in held})

    @property
    def feature_importances_(self):
        """Importance of each column, an array of shape (n_features,) that adds up to 1; 0 for all where scores are 0.

        What the terms of a column add to the score, without its sign, on average over the rows (and over the outputs);
        a pair's counts half for each of its columns. Scores and rows are noisy ones, so that it costs nothing more.
        **It is biased by the noise:** the score of a column that tells nothing is rarely 0, so that its importance is
        above 0, the more so the smaller epsilon is.
        """
        from dpestim.tree.importances import shares  # (no fit asks for them)

        check_is_fitted(self)
        sizes = np.zeros(self.n_features_in_)
        for term, size in zip(self.term_features_, self._term_sizes):
            sizes[list(term)] += size / len(term)
        return shares(sizes)

    @property
    def term_scores_(self):
        """What the bins of each term add to a score: a list of arrays of shape (n_bins, n_outputs)."""
        check_is_fitted(self)
        return np.split(self.scores_, self._starts()[1:])

    @property
    def term_standard_errors_(self):
        """The standard errors of `term_scores_`, from noise alone."""
        check_is_fitted(self)
        return np.split(self.standard_errors_, self._starts()[1:])

    @property
    def term_edges_(self):
        """The ends of the bins of each column of each term, in units of X: a list of lists of arrays.

        The bin for missing numbers has none.
        """
        check_is_fitted(self)
        return [[self._edges(j, n - self.bins_[j].ordered) for j, (n, _) in zip(term, sides)]
                for term, sides in zip(self._terms[1:], self._sides[1:])]

    # ---------------------------------------------------------------- inside

    def _cost(self, kind):
        """Return what is released of a row, where there are so many outputs (`Histograms`)."""
        replaces = self._replaces
        chosen = int(self.interactions) if self._candidates else 0
        return Cost(len(self._sides) + chosen, self._n_rounds(), max(kind, 1), replaces, not self.delta, kind == 0)

    def _share_of_pairs(self):
        """Return the part of epsilon that chooses pairs, exactly, or raise ValueError."""
        share = self.interactions_fraction
        if isinstance(share, bool) or not isinstance(share, Real) or not 0 < share < 1:
            raise ValueError("interactions_fraction must be a number above 0 and below 1")
        if isinstance(self.interactions, Integral) and share + self._fraction_of_edges() >= 1:
            raise ValueError("interactions_fraction and edges_fraction must add up to less than 1")
        return canonical_amount(share, "interactions_fraction")

    def _n_rounds(self):
        return int(self.max_iter or (8 if self.delta else 1))

    def _edges(self, j, n):
        """Return the ends of n bins of a column: as declared, or of neighbouring ones together; or around places."""
        bins = self.bins_[j]
        if not bins.ordered:
            return np.arange(n + 1) - 0.5
        low, high = self._reach[j]
        ends = np.array([min(low, *bins.edges), *bins.edges, max(high, *bins.edges)])
        # (a side of a pair has the bins s of which s n // size is one)
        return ends[-(-np.arange(n + 1) * bins.size // n)]

    def _starts(self):
        return np.cumsum([0, *(int(group.max()) + 1 for group in self.term_bins_)])[:-1]

    def _scores(self, X):
        """Return the scores of rows, of shape (n_rows, n_outputs); strict mode enters them in the ledger."""
        check_is_fitted(self)
        (numbers, columns), n_rows = self._rows(X, False)
        if self._is_strict():
            self._note_predictions(n_rows)
        total = np.zeros((n_rows, len(self.intercept_))) + self.intercept_
        for codes, group, scores in zip(self._term_codes(numbers, columns)[1:], self.term_bins_, self.term_scores_):
            total += scores[group[codes]]
        return total

    @staticmethod
    def _size(sides):
        return int(np.prod([n for n, _ in sides]))

    def _codes(self, numbers, columns, bins):
        """Return codes as they were declared; one more than these is for a number that is missing."""
        return super()._codes(numbers, columns, bins, gone=True, n_jobs=self.n_jobs)

    def _declare(self, bins):
        """Set what is public of columns and terms; ValueError where it does not fit the columns there are."""
        d = self.n_features_in_
        self.bins_, self._reach = bins
        sizes, ordered = [own.size + own.ordered for own in self.bins_], [own.ordered for own in self.bins_]
        # the first term is the intercept: one bin for all
        self._terms = [(), *((j,) for j in range(d))]
        self._sides = [((1, False),), *(((sizes[j], ordered[j]),) for j in range(d))]
        names = {name: j for j, name in enumerate(getattr(self, "feature_names_in_", ()))}
        self._candidates = ()
        # sides of pairs of too many categories: neighbours together, in the order in which they were declared
        self.pools_ = {j: np.append(np.arange(n - 1) * (_SIDE - 1) // (n - 1), _SIDE - 1)
                       for j, n in enumerate(sizes) if n > _SIDE and not ordered[j]}
        if isinstance(self.interactions, Integral):
            self._candidates = tuple(combinations(range(d), 2))
            if len(self._candidates) < self.interactions:
                raise ValueError(f"interactions must be at most {len(self._candidates)}, the number of pairs of "
                                 "columns")
            return
        for pair in () if self.interactions is None else self.interactions:
            pair = [names.get(j, j) if isinstance(j, str) else j for j in pair]
            if any(isinstance(j, str) or not 0 <= j < d for j in pair) or pair[0] == pair[1]:
                raise ValueError(f"interactions must be pairs of two of the {d} columns, by number or name")
            if any(set(pair) == set(term) for term in self._terms):
                raise ValueError("interactions must name each pair of columns once")
            self._add_pair(pair)

    def _add_pair(self, pair):
        self._terms.append(tuple(int(j) for j in pair))
        self._sides.append(tuple(
            (min(self.bins_[j].size + self.bins_[j].ordered, _SIDE), self.bins_[j].ordered) for j in pair))

    def _term_codes(self, numbers, columns, first=0):
        """Return the bin of each row, for each term from `first` on: a function of the row and of what is public."""
        singles, out = self._codes(numbers, columns, self.bins_), []
        for term, sides in zip(self._terms[first:], self._sides[first:]):
            if len(term) < 2:
                out.append(singles[term[0]] if term else np.zeros(singles.shape[1], np.uint8))
                continue
            first, second = (self._side(singles[j], j, n) for j, (n, _) in zip(term, sides))
            out.append((first * sides[1][0] + second).astype(np.uint8))
        return out

    def _side(self, codes, j, n):
        """Return codes of a side of a pair, n of them: neighbouring bins together, and missing ones by themselves."""
        bins = self.bins_[j]
        if j in self.pools_:
            return self.pools_[j][codes]
        n -= bins.ordered
        return np.where(codes == bins.size, n, codes.astype(np.int32) * n // bins.size)

    def _check_parameters(self):
        """Return (epsilon, delta) as exact numbers; raise ValueError for a parameter that does not fit."""
        epsilon, delta = canonical_epsilon(self.epsilon), declared_delta(self.delta)
        self._relation()
        if self.max_iter is not None:
            _whole("max_iter", self.max_iter, 1, _MOST_ROUNDS)
        self._check_bins()
        self._share_of_pairs()
        if isinstance(self.interactions, Integral):
            _whole("interactions", self.interactions, 1, _MOST_PAIRS)
        elif self.interactions is not None and (not isinstance(self.interactions, tuple | list | np.ndarray) or any(
                not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2
                or any(isinstance(j, bool) or not isinstance(j, Integral | str) for j in pair)
                for pair in self.interactions)):
            raise ValueError("interactions must be None, the number of pairs to choose, or a list of pairs of columns, "
                             "by number or name")
        check_random_state(self.random_state)
        check_n_jobs(self.n_jobs)
        check_verbose(self.verbose)
        return epsilon, delta

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = self._takes_strings()
        tags.input_tags.allow_nan = True
        return tags

    def _promise(self):
        """Return what a fit will promise, at most."""
        return self._guarantee(*self._check_parameters())
