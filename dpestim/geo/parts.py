"""Counts of places from users who trust nobody: a quadtree that is cut where earlier users are many."""

import math
from fractions import Fraction
from itertools import pairwise
from numbers import Integral

import numpy as np

from dpestim.geo.density import CellCounts
from dpestim.geo.partitions import box_of, interleaved
from dpestim.geo.projection import scale_of
from dpestim.geo.trees import consistent
from dpestim.inputs import number_rows
from dpestim.local.coded import NumberFeature
from dpestim.local.domains.asking import Shares
from dpestim.local.domains.levels import short_law
from dpestim.local.feature_client import FeatureClient
from dpestim.local.server import Server
from dpestim.local.views import View, ViewColumns
from dpestim.privacy.exact import canonical_epsilon
from dpestim.results import Part

#: Depth of the first question, the largest depth, and users that are expected where nobody says how many.
FIRST_DEPTH, MOST_DEPTH, MANY = 2, 10, 100_000
#: With less, floats could not tell the probabilities of a report apart, for as many cells as there may be.
_LEAST_EPSILON = Fraction(1, 10**6)
#: A cell is cut if its estimated share is above so many standard errors, and is never cut into more cells than these.
_ENOUGH, MOST_CELLS = 3.0, 1 << 16


class CellOf(View):
    """The number of the asked cell in which a place lies; the last number is that of all other places.

    Parameters
    ----------
    name, law : as `View`
    depth : int
        Of the cells: sides are cut in 2^depth parts.
    nodes : tuple of int
        The cells, ascending numbers of their places in the quadtree.
    """

    def __init__(self, name, law, depth, nodes):
        super().__init__(name, law, (0, 1))
        self.depth, self.nodes = depth, nodes
        self._sorted = np.array(nodes, np.int64)

    @property
    def function(self):
        """The cells."""
        return self.depth, self.nodes

    def of(self, codes):
        """Return the number of the cell of each row."""
        node = interleaved(*(own.astype(np.int64) for own in codes)) >> 2 * (MOST_DEPTH - self.depth)
        place = np.minimum(np.searchsorted(self._sorted, node), len(self._sorted) - 1)
        place[self._sorted[place] != node] = len(self._sorted)
        return place.astype(self.law.code_dtype)


class LDPartEstimator(CellCounts, Server, FeatureClient):
    """Estimate counts of places by an adaptive quadtree from reports of users, who trust nobody (LDPart).

    Each user belongs to one group and reports once: in which of the asked cells the user is, or in none of them. The
    first group is asked about coarse cells. Cells in which many users are, by what was reported, are cut into four for
    the next group; others stay as they are.

    **Privacy.** epsilon-local differential privacy for a place, exact; neighbours: any two places of one user; nobody
    but the user's device is trusted (proof in ``parts.md``). Groups do not depend on places, and what a group is asked
    follows from reports of others.

    **Utility.** Counts are consistent and not negative, and add up to the number of users: estimates of all groups are
    combined, cells below 0 are set to 0, and siblings are scaled. That, and the choice of cells, is a bias. Intervals
    are those of the estimates before that, and hold as measured (``parts.md``).

    **Complexity.** O(n) time: about a second for a million users. A user sends one code.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one place, in (0, 80].
    bounds : (low, high), dict or Domain
        The public region, as in ``([48.80, 2.22], [48.92, 2.42])``: the lower bounds of both columns, then the upper
        ones. Places outside are moved to its border. None learns the region from the data that `fit` sees, which leaks
        (`PrivacyLeakWarning`).
    units : {"degrees", "metres"}, default="degrees"
        "degrees": columns are latitude and longitude. Pictures use it; reports do not.
    depth : "auto" or int, default="auto"
        How often the region may be cut in four, from 2 to 10. "auto" follows from epsilon and `n_users`.
    n_users : int, default=None
        How many users are expected, for "auto". None: 100,000.
    {payment of rows}

    Attributes
    ----------
    cells_ : ndarray of shape (n_cells, 4)
        The cells: low and high of the first column, low and high of the second.
    counts_ : ndarray of shape (n_cells,)
        Estimated numbers of users.
    standard_errors_ : ndarray of shape (n_cells,)
        Of the estimates before they were made consistent.
    question_ : (int, tuple)
        What the open round asks: the depth of its cells, and which they are. Public.
    bounds_ : (ndarray, ndarray) of shape (2,)
    n_users_ : int
        Reports counted so far, in all rounds.
    n_sampled_ : int
        Questions that a user answers: 1.
    randomizers_ : list of Randomizer
        The frozen law of the open round.
    privacy_ : PrivacyGuarantee
        The guarantee of one user's report.
    {columns seen}

    {refused reports}

    References
    ----------
    X. Zhao, Y. Li, Y. Yuan, X. Bi, G. Wang, "LDPart: effective location-record data publication via local differential
    privacy", IEEE Access 2019. How this differs is in ``parts.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.geo import LDPartEstimator
    >>> X = np.random.default_rng(0).normal([48.86, 2.34], [0.01, 0.02], (100_000, 2))
    >>> est = LDPartEstimator(2.0, bounds=([48.8, 2.2], [48.92, 2.46]), random_state=0).fit(X)
    >>> count, error = est.range([48.83, 2.28], [48.875, 2.395])
    >>> bool(abs(count - 92_000) < 4_000)
    True
    """

    _checked_as = "parts"
    _domain, _same_domain = "bounds", "the same bounds, and the same question of the same round"
    _fewest_columns = 2
    #: Closed rounds: (depth, nodes, estimates, variance, users); the question of the open one, None for the first
    _levels, _open = (), None
    _STATE = (*Server._STATE, "_levels", "_open")

    def __init__(self, epsilon=1.0, *, bounds=None, units="degrees", depth="auto", n_users=None, ledger=None,
                 random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.units = units
        self.depth = depth
        self.n_users = n_users
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- rounds

    @property
    def categories(self):
        """None: both columns are numbers."""
        return None

    @property
    def n_bins(self):
        """Units of each coordinate, of which all cells are made."""
        return 1 << MOST_DEPTH

    def fit_parts(self, ask, example):
        """Refuse: groups of users are asked one after another."""
        raise ValueError("LDPartEstimator needs all rows at once, because each group of users is asked what follows "
                         "from reports of others: privatize the rows of parts by client() in each round, and aggregate")

    def next_round(self):
        """Close the open round, and ask about finer cells where many users are; returns self.

        Raises ValueError after the last round.
        """
        with self._alone():
            super()._check_fitted()  # (the open round has reports)
            if self._open_depth() >= self._last_depth():
                raise ValueError("this is the last round: read counts_, or make a new estimator")
            self._advance()
        return self

    def client(self):
        """Return an estimator that knows the question of the open round, and no counts, to `privatize` with."""
        twin = type(self)(**self.get_params(deep=False))
        if self._to_bind() != (None, False):
            twin._bound = self._to_bind()
        twin._open = self._open
        return twin

    @property
    def question_(self):
        """The depth of the cells that the open round asks about, and their numbers."""
        return self._open or (FIRST_DEPTH, tuple(range(4**FIRST_DEPTH)))

    @property
    def n_users_(self):
        """Reports counted so far, in all rounds."""
        self._check_fitted()
        return self._n_users + sum(level[-1] for level in self._levels)

    # ---------------------------------------------------------------- answers

    @property
    def bounds_(self):
        """The region."""
        self._check_fitted()
        lows, highs = zip(*((feature.low, feature.high) for feature in self._columns.row))
        return np.array(lows), np.array(highs)

    @property
    def boxes_(self):
        """The cells in units of the region."""
        return np.array([box_of(*leaf) for leaf in self._tree()[0]], np.int64)

    @property
    def counts_(self):
        """Consistent counts of the cells."""
        return self._tree()[1]

    @property
    def standard_errors_(self):
        """Standard errors of the cells, before counts were made consistent."""
        return np.sqrt(self._tree()[2])

    def release(self):
        """Return `counts_`."""
        return self.counts_

    def _tree(self):
        """Return (leaves, their counts, variances), made anew where counts changed."""
        self._check_fitted()
        known = vars(self).get("_known")
        if known is None or known[0] is not self._counts:
            known = self._known = self._counts, consistent(self._all_levels(), self.n_users_)
        return known[1]

    def _all_levels(self):
        return [*self._levels, *([self._closed()] if self._n_users else [])]

    def _variance(self, weights):
        # of the noise, and of who is in the group that was asked: at most that of as many independent users
        leaves, counts, noise = self._tree()
        per = {level[0]: self.n_users_ / max(level[-1], 1) for level in self._all_levels()}
        drawn = counts * np.array([per[depth] - 1 for depth, _ in leaves])
        return float(np.square(weights) @ (noise + drawn)), 0.0

    # ---------------------------------------------------------------- inside

    def __sklearn_is_fitted__(self):
        return bool(self._n_users or self._levels)

    def _check_fitted(self):
        if not self._levels:
            super()._check_fitted()

    def _closed(self):
        """Return (depth, nodes, estimated shares, variance of a share, users) of the open round."""
        view, counts, n = self._columns.columns[0], *self._columns.told(0, self._counts, self._n_users)
        shares = (view.law.estimate(counts, n) if n else np.zeros(len(counts)))[: len(view.nodes)]  # (no user)
        variance = np.max(view.law.variance(max(n, 1), 1 / view.law.n_categories))
        return view.depth, view.nodes, shares, float(variance), n

    def _advance(self):
        closed = self._closed()
        depth, nodes, shares, variance, _ = closed
        best = np.argsort(-shares, kind="stable")[: MOST_CELLS // 4]
        chosen = sorted(nodes[k] for k in best.tolist() if shares[k] > _ENOUGH * math.sqrt(variance))
        chosen = chosen or [nodes[int(best[0])]]
        levels, columns = (*self._levels, closed), self._columns
        question = depth + 1, tuple(4 * node + k for node in chosen for k in range(4))
        made = self._asking(question, columns.row, columns.names, columns.inferred, columns.keys)
        seeds, seeded, lineage = self._seeds, self._seeded, self._lineage
        self._forget()
        self._levels, self._open, self._seeds, self._seeded, self._lineage = levels, question, seeds, seeded, lineage
        self._freeze(made, None)

    def _open_depth(self):
        return self.question_[0]

    def _last_depth(self):
        if not isinstance(self.depth, str):
            return int(self.depth)
        # cells of a depth are worth a round if one with eight times the share of even users would be seen
        epsilon, users, depth = float(self.epsilon), self.n_users or MANY, FIRST_DEPTH
        variance = 4 * math.exp(-epsilon) / max(math.expm1(-epsilon) ** 2, 1e-300) / users
        while depth < MOST_DEPTH and _ENOUGH * math.sqrt(variance * depth) < 8.0 / 4**depth:
            depth += 1
        return min(max(depth + 1, 4), MOST_DEPTH)

    def _shares(self):
        """Return what part of the users each round asks, by rows."""
        n = self._last_depth() - FIRST_DEPTH + 1
        cuts = [100 * k // n for k in range(n + 1)]
        return Shares(tuple(b - a for a, b in pairwise(cuts)))

    def _fit(self, X, *, restart, keep_reports=False):
        with self._alone():
            if restart:
                return self._fit_rounds(X)
            # (rows of `partial_fit` answer the open round)
            return self._fit_alone(X, not (self._n_users or self._levels), keep_reports)

    def _fit_rounds(self, X):
        """Ask all groups one after the other; each row is in one of them, and is paid for once."""
        kept = vars(self).pop("_open", None)  # (the first question, whatever is open)
        try:
            client, (seen,), columns, names = self._read_for(X, True)
            n, groups = len(seen), self._shares()
            # (what words cannot express is refused now: later questions have at most so many answers)
            short_law(canonical_epsilon(self.epsilon), min(4 ** self._last_depth(), MOST_CELLS) + 1)
            if n < len(groups):
                raise ValueError(f"X must have at least {len(groups)} rows, one for each round: take a smaller depth")
            source = client._pay(columns, n)
        except BaseException:
            if kept is not None:
                self._open = kept
            raise
        self._bind_as(client)
        members = groups.of_rows(source, n)
        self._levels, self._open = (), None
        for k, rows in enumerate(members):
            if k:
                self._advance()
                columns = self._columns
            self._take((client, [seen.rows(columns.columns[0], rows)], columns, names), source.part(k), not k, first=0)

    def _of_features(self, features, names, **more):
        self._check_parameters()
        if len(features) != 2:
            raise ValueError(f"bounds must be those of two columns, (latitude, longitude) or (x, y), got "
                             f"{len(features)}: select the two columns of places")
        if not all(isinstance(f, NumberFeature) for f in features):
            raise ValueError("bounds must declare two columns of numbers: select the two columns of places")
        scale_of(self.units, [f.low for f in features], [f.high for f in features])
        features = [NumberFeature(f.name, f.low, f.high, 1 << MOST_DEPTH) for f in features]
        return self._asking(self.question_, features, names, **more)

    def _asking(self, question, features, names, inferred="", keys=None):
        depth, nodes = question
        whole, epsilon = len(nodes) == 4**depth, canonical_epsilon(self.epsilon)
        if epsilon < _LEAST_EPSILON:
            raise ValueError("epsilon is too small for a report to tell anything: take at least 1e-6")
        law = short_law(epsilon, len(nodes) + (not whole))
        views = [CellOf(f"cells at depth {depth}", law, depth, nodes)]
        return ViewColumns(views, inferred, keys, n_sampled=1, features=features)

    def _declare(self, n_columns, names=None):
        if n_columns is None and self._same_bounds():
            n_columns = self._fewest_columns
        return super()._declare(n_columns, names)

    def _columns_of_width(self, width):
        return self._columns_now()

    def _like(self, columns):
        return self._of_features(columns.row, columns.names, inferred=columns.inferred, keys=columns.keys)

    def _container(self, X, strict):
        return number_rows(X, strict=strict)

    def _parts(self, X, columns, strict):
        return list(X.T)

    def _client(self, restart=False):
        return self

    def _check_call_parameters(self):
        super()._check_call_parameters()
        self._check_parameters()

    def _check_parameters(self):
        canonical_epsilon(self.epsilon)
        scale_of(self.units, [0.0, 0.0], [1e-3, 1e-3])
        if not (isinstance(self.depth, str) and self.depth == "auto"):
            _whole(self.depth, "depth", FIRST_DEPTH, MOST_DEPTH)
        if self.n_users is not None:
            _whole(self.n_users, "n_users", 1, 1 << 53)

    def _freeze(self, columns, names):
        super()._freeze(columns, names)
        self.n_sampled_ = columns.n_sampled

    def _forget(self):
        super()._forget()
        self._thaw()
        for name in ("n_sampled_", "_known"):
            vars(self).pop(name, None)

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_known", None)
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # (two columns, and no other number of them)
        return tags

    def _result_parts(self, level):
        order = np.argsort(-self.counts_, kind="stable")[:16]
        labels = [", ".join(f"{end:.6g}" for end in cell) for cell in self.cells_[order].tolist()]
        return [Part("number of users", (("cell", labels),), self.counts_[order], self.standard_errors_[order])]

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 2.0, "bounds": ([-3.0, 0.0], [3.0, 1.0]), "units": "metres", "depth": 3},
                {"epsilon": 1.0, "bounds": ([48.8, 2.2], [48.9, 2.4]), "units": "degrees", "n_users": 1000}]

    def _test_data(self, n_rows, seed=0):
        """Return rows within and a little beyond the region."""
        lows, highs = (np.array(end, float) for end in self.bounds)
        return lows + (highs - lows) * np.random.default_rng(seed).normal(0.4, 0.3, (n_rows, 2)), None


def _whole(value, name, least, most):
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
        raise ValueError(f"{name} must be an int from {least} to {most:,}")
    return int(value)
