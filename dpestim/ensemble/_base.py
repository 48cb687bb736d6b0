"""What boosting of classes and of numbers share: parameters, bins, the fit and scores."""

from dataclasses import replace
from fractions import Fraction
from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpestim.central.model import CentralModel
from dpestim.ensemble._rounds import Cost, Histograms, boost
from dpestim.inputs import bound_array
from dpestim.models import checked_number, exact_number
from dpestim.parallel import one_thread
from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource, check_random_state

_RELATIONS = {n.value: n for n in (Neighbours.SUBSTITUTION, Neighbours.ADD_REMOVE)}
#: Bins of a column once they were counted, and of a side of a pair, at most.
_MERGED, _SIDE = 64, 16
_MOST_ROUNDS, _MOST_BINS = 1000, 256

_SHARED = """\
    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one `fit`, in (0, 80].
    delta : float, default=0.0
        What may be added to the probability of any event, in [0, 1). 0: Laplace noise, which is much larger; declare
        one, such as 1e-5, if you can.
    bounds : (low, high), default=None
        Public range of the columns of X, numbers or one for each column; values outside are clipped. None takes the
        smallest and largest values, which leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon`` infinite.
{own}    categorical_features : array-like of int, default=None
        Columns whose values are codes of categories, whole numbers within `bounds`, of which there are 256 at most.
        Other values are taken as the nearest code.
    interactions : list of (int, int), default=None
        Pairs of columns that get a term of their own, of up to 16 times 16 bins; a side of categories has 16 at most.
    max_iter : int, default=8
        Rounds over all terms, from 1 to 1000.
    max_bins : int or array-like of int, default=255
        Bins of equal width of a column of numbers, or one number for each column, from 2 to 256. For a column of k
        whole numbers k is best. They are merged, by noisy counts, to 64 at most.
    neighbours : {"substitution", "add_remove"}, default="substitution"
        Whom the guarantee protects: one record replaced (then the number of records is public), or one more or less,
        with half of the noise.
    ledger : dpestim.accounting.Ledger, default=None
        Pays for each `fit` before anything is drawn, or refuses. None: the ledger of the ``with ledger:`` block
        around, if there is one.
    random_state : None, int, numpy.random.Generator or RandomState, default=None
        None draws secure randomness. Anything else is reproducible; `privacy_` then says that the result must not be
        published.

    Attributes
    ----------
    intercept_ : ndarray of shape (n_outputs,)
    scores_ : ndarray of shape (n_bins of all terms, n_outputs)
        What bins add to a score, term after term; `term_scores_` has them by term.
    standard_errors_ : ndarray of shape (n_bins of all terms, n_outputs)
        Of `scores_`, from the noise alone, to first order.
    term_features_ : list of tuple of int
        The column or columns of each term.
    term_edges_ : list of list of ndarray
        For each term, the ends of the bins of each of its columns.
    term_bins_ : list of ndarray of int
        For each term, the place in `term_scores_` of each bin of equal width or code (of each pair of them).
    privacy_ : PrivacyGuarantee
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X was a data frame with string column names.

    Raises
    ------
    ValueError
        For a parameter or a value that does not fit; it names the parameter or column, never the value, and comes
        before anything is charged. In strict mode a value that is missing counts as the lowest one.

    References
    ----------
    Nori, Caruana, Bu, Shen, Kulkarni (2021), "Accuracy, interpretability, and differential privacy via explainable
    boosting", ICML, algorithm 2, whose sums of residuals these are; their splits are random, and each round forgets
    the one before. Dong, Roth, Su (2022), "Gaussian differential privacy", JRSS B 84, corollary 3.3, for adaptive
    rounds. The proof: ``_boosting.md``.
"""


def _whole(name, value, low, high):
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
        raise ValueError(f"{name} must be an int from {low} to {high}")
    return int(value)


class Boosting(CentralModel):
    """Base of both; a sub-class reads its targets (`_targets`) and says what their loss is."""

    _learned = ("intercept_", "scores_", "standard_errors_")
    _own = ""

    def __init_subclass__(cls, **kwargs):
        """Fill in the parameters that both share in the docstring."""
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = cls.__doc__.replace("    {parameters}\n", _SHARED.replace("{own}", cls._own))

    @property
    def _neighbours(self):
        if not isinstance(self.neighbours, str) or self.neighbours not in _RELATIONS:
            raise ValueError(f"neighbours must be one of {sorted(_RELATIONS)}")
        return _RELATIONS[self.neighbours]

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
        strict, inferred = self._is_strict(), self._inferred()
        if strict and inferred:
            raise ValueError(f"strict mode: {' and '.join(inferred)} would be learned from the data: declare what is "
                             "public")
        trial = self._trial()
        X = trial._checked_X(X, reset=True, total=strict)
        targets, kind, learned = self._targets(y, len(X), strict)
        trial._columns(X)
        replaces = self._neighbours is Neighbours.SUBSTITUTION
        cost = Cost(len(trial._sides), self.max_iter, max(kind, 1), replaces, not delta)
        law = cost.law(epsilon, delta)  # what could fail, fails before the charge
        guarantee = self._guarantee(epsilon, delta)
        if delta and guarantee.is_finite:
            guarantee = replace(guarantee, curve=law.curve)
        self._charge(guarantee, len(X) if replaces else None, getattr(trial, "feature_names_in_", ()))
        self._warn_if_inferred()

        codes = trial._codes(X)
        rows = Histograms(codes, [trial._size(sides) for sides in trial._sides], targets, kind, cost, law,
                          WordSource(self.random_state))
        ordered = [sides[0][1] if len(sides) == 1 else tuple(sides) for sides in trial._sides]
        with one_thread(_MERGED):  # (several threads would only wait for each other)
            curves, groups = boost(rows, ordered, _MERGED, self.max_iter, kind, law.variance_steps * cost.unit**2)
        # terms have mean 0 over noisy counts; what that takes away is the intercept
        means = [(c.counts + 1e-9) @ c.scores / (c.counts + 1e-9).sum() for c in curves]
        trial.intercept_ = np.sum(means, axis=0) * self._half(learned) + self._middle(learned)
        trial.scores_ = np.concatenate([c.scores - m for c, m in zip(curves, means)][1:]) * self._half(learned)
        trial.standard_errors_ = np.concatenate([c.deviations for c in curves[1:]]) * self._half(learned)
        trial.term_features_, trial.term_bins_, trial.privacy_ = trial._terms[1:], groups[1:], guarantee
        vars(trial).update(learned)
        bound = self._bound
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).update({k: v for k, v in vars(trial).items() if k not in self.get_params(deep=False)})
        self._bound = bound
        return self

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
        """The ends of the bins of each column of each term, in units of X: a list of lists of arrays."""
        check_is_fitted(self)
        return [[self._edges(j, n) for j, (n, _) in zip(term, sides)]
                for term, sides in zip(self._terms[1:], self._sides[1:])]

    # ---------------------------------------------------------------- inside

    def _edges(self, j, n):
        """Return the ends of n bins of a column: of equal width, around codes, or of neighbouring ones together."""
        size = self._sizes[j]
        if self._is_code[j]:
            ends = self._low[j] - 0.5 + np.arange(size + 1)
        else:
            ends = np.linspace(self._low[j], self._high[j], size + 1)
        return ends[-(-np.arange(n + 1) * size // n)]  # (a side of a pair has the bins s of which s n // size is one)

    def _starts(self):
        return np.cumsum([0, *(int(group.max()) + 1 for group in self.term_bins_)])[:-1]

    def _scores(self, X):
        """Return the scores of rows, of shape (n_rows, n_outputs); strict mode enters them in the ledger."""
        check_is_fitted(self)
        strict = self._is_strict()
        X = self._checked_X(X, reset=False, total=strict)
        if strict:
            self._note_predictions(len(X))
        total = np.zeros((len(X), len(self.intercept_))) + self.intercept_
        for codes, group, scores in zip(self._codes(X)[1:], self.term_bins_, self.term_scores_):
            total += scores[group[codes]]
        return total

    @staticmethod
    def _size(sides):
        return int(np.prod([n for n, _ in sides]))

    def _columns(self, X):
        """Set what is public of columns and terms; ValueError where it does not fit the number of columns."""
        d = X.shape[1]
        low, high = self._box(d) if self.bounds is not None else (
            np.where(np.isfinite(end), end, 0.0) for end in (X.min(axis=0, initial=np.inf),
                                                             X.max(axis=0, initial=-np.inf)))
        if self.bounds is None and self.categorical_features is not None:  # (codes are whole)
            low, high = np.floor(low), np.ceil(high)
        chosen = self._places("categorical_features", self.categorical_features, d)
        bins = np.asarray(self.max_bins, dtype=object).reshape(-1)
        if len(bins) not in (1, d):
            raise ValueError(f"max_bins must be one int, or one for each of the {d} columns")
        sizes = [int(n) for n in np.broadcast_to(bins, d)]
        for j in chosen:
            if low[j] != np.rint(low[j]) or high[j] != np.rint(high[j]) or not 0 <= high[j] - low[j] < _MOST_BINS:
                raise ValueError(f"bounds of column {j}, of categories, must be whole numbers at most "
                                 f"{_MOST_BINS - 1} apart")
            sizes[j] = int(high[j] - low[j]) + 1
        self._low, self._high, self._sizes = np.array(low, float), np.array(high, float), sizes
        self._is_code = np.isin(np.arange(d), chosen)
        # the first term is the intercept: one bin for all
        self._terms = [(), *((j,) for j in range(d))]
        self._sides = [((1, False),), *(((sizes[j], not self._is_code[j]),) for j in range(d))]
        for pair in self.interactions or ():
            pair = self._places("interactions", pair, d)
            if len(pair) != 2 or pair[0] == pair[1]:
                raise ValueError("interactions must be pairs of two columns")
            if any(self._is_code[j] and sizes[j] > _SIDE for j in pair):
                raise ValueError(f"interactions must be of columns with at most {_SIDE} categories")
            self._terms.append(tuple(pair))
            self._sides.append(tuple((min(sizes[j], _SIDE), not self._is_code[j]) for j in pair))

    def _box(self, d=None):
        wrong = "bounds must be a pair (low, high) of finite numbers, or of arrays with one number for each column"
        if not isinstance(self.bounds, tuple | list | np.ndarray) or len(self.bounds) != 2:
            raise ValueError(wrong)
        low, high = (np.atleast_1d(bound_array(end, "bounds")) for end in self.bounds)
        d = d or max(len(low), len(high))
        if any(len(end) not in (1, d) or not (np.abs(end) <= 1e140).all() for end in (low, high)):
            raise ValueError(f"{wrong}, of at most 1e140; there are {d} columns")
        low, high = np.broadcast_to(low, d), np.broadcast_to(high, d)
        if not ((low == high) | (high - low > 1e-140)).all():
            raise ValueError("bounds must have low at most high, equal or 1e-140 apart")
        return low, high

    @staticmethod
    def _places(name, values, d):
        values = [] if values is None else values
        if not isinstance(values, tuple | list | np.ndarray) or any(
                isinstance(j, bool) or not isinstance(j, Integral) or not 0 <= j < d for j in values):
            raise ValueError(f"{name} must hold numbers of columns, from 0 to {d - 1}")
        return [int(j) for j in values]

    def _codes(self, X):
        """Return the bin of each row, for each term: a function of the row and of what is public."""
        singles = []
        with np.errstate(all="ignore"):
            for j, size in enumerate(self._sizes):
                # (clipped before anything is subtracted, so that nothing overflows; what is no number is the lowest)
                column = np.clip(np.where(np.isnan(X[:, j]), self._low[j], X[:, j]), self._low[j], self._high[j])
                column -= self._low[j]
                if self._is_code[j]:
                    column = np.rint(column)
                else:
                    column *= size / (self._high[j] - self._low[j]) if self._high[j] > self._low[j] else 0.0
                singles.append(np.clip(np.nan_to_num(column), 0, size - 1).astype(np.uint8))
        out = []
        for term, sides in zip(self._terms, self._sides):
            if len(term) < 2:
                out.append(singles[term[0]] if term else np.zeros(len(X), np.uint8))
                continue
            first, second = (singles[j].astype(np.int32) * n // self._sizes[j] for j, (n, _) in zip(term, sides))
            out.append((first * sides[1][0] + second).astype(np.uint8))
        return out

    def _check_parameters(self):
        """Return (epsilon, delta) as exact numbers; raise ValueError for a parameter that does not fit."""
        epsilon, delta = canonical_epsilon(self.epsilon), Fraction(0)
        if checked_number("delta", self.delta, "in [0, 1)", lambda v: 0 <= v < 1):
            delta = exact_number(self.delta)
        self._neighbours  # noqa: B018 (refuses what is none)
        _whole("max_iter", self.max_iter, 1, _MOST_ROUNDS)
        for n in np.asarray(self.max_bins, dtype=object).reshape(-1):
            _whole("max_bins", n, 2, _MOST_BINS)
        if self.interactions is not None and not isinstance(self.interactions, tuple | list | np.ndarray):
            raise ValueError("interactions must be None or a list of pairs of columns")
        if self.bounds is not None:
            self._box()
        check_random_state(self.random_state)
        return epsilon, delta

    def _promise(self):
        """Return what a fit will promise, at most."""
        return self._guarantee(*self._check_parameters())
