"""What boosting of classes and of numbers share: parameters, bins, the fit and scores."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpestim.accounting import RenyiCurve
from dpestim.central.model import CentralModel
from dpestim.ensemble.pairs import Pairs, grouped
from dpestim.ensemble.rounds import Cost, Histograms, boost, unsure_of
from dpestim.models import checked_number, exact_number
from dpestim.parallel import check_n_jobs, one_thread
from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.rng import WordSource, check_random_state
from dpestim.statistics.calibrated_noise import Answers
from dpestim.tree.columns import COLUMNS, BinnedColumns

#: Bins of a column once they were counted, and codes of a side of a pair, at most; that for what is missing included.
_MERGED, _SIDE = 64, 16
#: Which part of itself the curvature of a class may be off by, for noise in its share, where bands are stated.
_HIDDEN = 0.1
_MOST_ROUNDS, _MOST_PAIRS = 1000, 100

_SHARED = """\
    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one `fit`, in (0, 80].
    delta : float, default=0.0
        What may be added to the probability of any event, in [0, 1). 0: Laplace noise, which is much larger; declare
        one, such as 1e-5, if you can.
{columns}{own}    interactions : int or list of pairs of int or str, default=None
        Pairs of columns, by number or name, that get a term of their own, of up to 16 times 16 bins: 15 of each
        column, and one for what is missing or unknown. Of more than 15 categories neighbours are taken together, in
        the order of `categories`, so declare an order that means something. A number: so many pairs are chosen
        privately, by what single columns leave of the targets. None: no pairs.
    interactions_fraction : float, default=0.1
        The part of epsilon that chooses pairs where `interactions` is a number, in (0, 1).
    max_iter : int, default=None
        Rounds over all terms, from 1 to 1000. None: 8 where a delta is declared, as they cost next to nothing then, and
        1 where there is none, as Laplace noise grows with them; 2 for numbers, where records are replaced and rows are
        so many that noise is small.
    neighbours : {"substitution", "add_remove"}, default=None
        Whom the guarantee protects: one record replaced (then the number of records is public), or one more or less,
        with half of the noise. None: that of the block
        (`dpestim.config_context`), else that of the ledger that pays, else "substitution".
    ledger : dpestim.accounting.Ledger, default=None
        Pays for each `fit` before anything is drawn, or refuses. None: the ledger of the ``with ledger:`` block
        around, if there is one.
    random_state : None, int, numpy.random.Generator or RandomState, default=None
        None draws secure randomness. Anything else is reproducible; `privacy_` then says that the result must not be
        published.
    n_jobs : int, default=None
        Threads, as in scikit-learn; the result does not depend on it.

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
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X was a data frame with string column names.

    Raises
    ------
    ValueError
        For a parameter or a value that does not fit; it names the parameter or column, never the value, and comes
        before anything is charged. Infinity is refused, but in strict mode. A number that is missing (NaN, or null in
        a data frame) has a bin of its own, and so a score of its own where there are enough of them.

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
    #: Who holds the rows and answers.
    _histograms = Histograms
    _own = ""
    _takes_missing = True

    def __init_subclass__(cls, **kwargs):
        """Fill in the parameters that both share in the docstring."""
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = cls.__doc__.replace("    {parameters}\n", _SHARED).replace(
                "{columns}", COLUMNS.replace("{n_bins}", "255")).replace("{own}", cls._own)

    def fit(self, X, y=None):
        """Fit the model to rows X and targets y; one release of epsilon.

        Parameters
        ----------
        X : dense array-like or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        self
        """
        epsilon, delta = self._check_parameters()
        strict, trial = self._is_strict(), self._declared_trial(X, y)
        (numbers, columns), n_rows = trial._rows(X, True)
        targets, kind, learned = trial._targets(y, n_rows, strict)
        trial._declare(trial._bins(trial.n_features_in_, numbers))
        find, rest = trial._edges_to_find(numbers, n_rows, trial.n_features_in_, epsilon)
        for_pairs = trial._share_of_pairs() * epsilon if trial._candidates else Fraction(0)
        rest -= for_pairs
        replaces = self._replaces
        cost = trial._cost(kind).leading(rest, delta, n_rows if replaces else None)
        if self.max_iter is None and replaces and cost.is_clear(rest, delta, n_rows):
            cost = replace(cost, n_rounds=2).leading(rest, delta, n_rows)
        law = cost.law(rest, delta)  # what could fail, fails before the charge
        pairs = Pairs.of(trial._candidates, int(self.interactions), for_pairs, cost) if for_pairs else None
        guarantee = self._guarantee(epsilon, delta)
        if delta and guarantee.is_finite:
            curve = law.curve if rest == epsilon else law.curve + RenyiCurve.pure(epsilon - rest)
            guarantee = replace(guarantee, curve=curve)
        self._charge(guarantee, n_rows if replaces else None, getattr(trial, "feature_names_in_", ()))
        self._warn_if_inferred()

        source = WordSource(self.random_state)
        if find is not None:
            trial._declare((find(source.part(1)), trial._reach))
            source = source.part(0)
        codes, sizes = trial._term_codes(numbers, columns), [trial._size(sides) for sides in trial._sides]
        rows = self._histograms(codes, sizes, targets, kind, cost, law, Answers(source), self.n_jobs)
        ordered = [sides[0][1] if len(sides) == 1 else tuple(sides) for sides in trial._sides]

        def later(rows, curves, spread):
            first = len(trial._terms)
            groups = [trial.pools_.get(j, grouped(curve.counts, order))
                      for j, (curve, order) in enumerate(zip(curves, ordered[1:]))]
            for pair in pairs.choose(rows, curves, groups, spread):
                trial._add_pair(pair)
            return list(zip(trial._term_codes(numbers, columns, first), [*map(trial._size, trial._sides[first:])],
                            [*map(tuple, trial._sides[first:])]))

        with one_thread(_MERGED):  # (several threads would only wait for each other)
            curves, groups = boost(rows, ordered, _MERGED, cost.n_rounds, kind, law.variance_steps * cost.unit**2,
                                   law.variance_steps / cost.weight**2, n_rows if replaces else None,
                                   math.sqrt(law.variance_steps) / cost.square if cost.squares else 0.0,
                                   cost.lead, pure=cost.pure, later=later if pairs else None)
        # terms have mean 0 over noisy counts; what that takes away is the intercept
        means = [curve.mean(curve.scores)[0] for curve in curves]
        trial.intercept_ = np.sum(means, axis=0) * self._half(learned) + self._middle(learned)
        trial.scores_ = np.concatenate([c.scores - m for c, m in zip(curves, means)][1:]) * self._half(learned)
        unsure = unsure_of(curves[0], float(curves[0].counts[0]), law.variance_steps * cost.unit**2 * 9 / 8
                           / cost.n_rounds, kind)
        trial.standard_errors_ = np.concatenate([c.deviations(unsure) for c in curves[1:]]) * self._half(learned)
        trial.standard_errors_[:, np.broadcast_to(unsure, trial.standard_errors_.shape[1]) >= _HIDDEN] = np.nan
        trial.term_features_, trial.term_bins_, trial.privacy_ = trial._terms[1:], groups[1:], guarantee
        vars(trial).update(learned)
        held = *self.get_params(deep=False), "_bound", "_stays_bound", "_bound_relation", "_reservations"
        return self._become({name: value for name, value in vars(trial).items() if name not in held})

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
        codes = super()._codes(numbers, columns, bins)
        for k, j in enumerate(j for j, own in enumerate(bins) if own.ordered):
            codes[j][np.isnan(numbers[:, k])] = bins[j].size
        return codes

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
                raise ValueError(f"interactions must be at most {len(self._candidates)}: there are so many pairs of "
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
        epsilon, delta = canonical_epsilon(self.epsilon), Fraction(0)
        if checked_number("delta", self.delta, "in [0, 1)", lambda v: 0 <= v < 1):
            delta = exact_number(self.delta)
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
            raise ValueError("interactions must be None, how many pairs are to be chosen, or a list of pairs of "
                             "columns, by number or name")
        check_random_state(self.random_state)
        check_n_jobs(self.n_jobs)
        return epsilon, delta

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = self._takes_strings()
        tags.input_tags.allow_nan = True
        return tags

    def _promise(self):
        """Return what a fit will promise, at most."""
        return self._guarantee(*self._check_parameters())
