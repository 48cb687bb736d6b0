"""Synthetic rows from noisy tables of few columns, chosen where the model is wrong (`marginals.md`)."""

import math
from fractions import Fraction

from dpestim.accounting import largest_rho
from dpestim.central.base import checked_delta
from dpestim.postprocessing.junction import cells_of, cliques_of
from dpestim.privacy import ZCDP, PrivacyGuarantee
from dpestim.privacy.exact import canonical_epsilon
from dpestim.synthesis.base import ATTRIBUTES, COLUMNS, Share, Synthesizer
from dpestim.synthesis.noise import WidthLaw, width_for

#: The part of the budget for single columns.
_SINGLES = Fraction(1, 5)
#: Rounds a column that the first noise would allow; fewer are taken where noise drowns what a round learns.
_ROUNDS = 4
#: The part of a round that chooses; the rest measures.
_CHOOSING = 0.1


class AdaptivePlan:
    """Rounds under one concentrated budget: what each spends follows from what earlier ones released (`marginals.md`).

    Parameters
    ----------
    rho : Fraction
        All that may be spent.
    moved : int
        By how many cells tables of neighbours differ.
    sizes : tuple of int
    degree : int
    """

    steps, last_steps, may_stop = 30, 300, True

    def __init__(self, rho, moved, sizes, degree):
        self.left, self._moved, self._sizes = rho, moved, sizes
        self._pairs = degree > 1 and len(sizes) > 1
        # (rounds that learn nothing are three at most: they widen the share fourfold, up to that of a tree of pairs)
        self.most_rounds = _ROUNDS * len(sizes) + 4
        self._share = float(rho * (1 - _SINGLES)) / (_ROUNDS * len(sizes))
        self._largest = float(rho * (1 - _SINGLES)) / max(len(sizes) - 1, 1)
        self._cells, self.is_done = (None, {}), False

    def _spend(self, share):
        """Take a Fraction from what is left, or raise."""
        if not 0 < share <= self.left:
            raise AssertionError("a plan must not spend more than there is")
        self.left -= share
        return share

    @property
    def is_spent(self):
        """Tell whether nothing is left."""
        return not self.left

    def first(self):
        """Return (noise of all single columns together, the precision of a count)."""
        rho = self._spend(self.left * _SINGLES if self._pairs else self.left)
        noise = WidthLaw.of(width_for(rho, self._moved * len(self._sizes)), self._moved * len(self._sizes))
        self.is_done = self.is_spent
        self.off = math.sqrt(2 / math.pi) * noise.width
        return noise, 1 / noise.width**2

    def fits(self, model, columns, max_cells):
        """Tell whether a model that knows these columns too has few enough cells: a function of what is public."""
        cliques = model.tree.cliques
        if any(set(columns) <= set(clique) for clique in cliques):
            return True
        if self._cells[0] is not cliques:
            self._cells = cliques, {}
        if columns not in self._cells[1]:
            self._cells[1][columns] = cells_of(self._sizes, cliques_of(self._sizes, [*model.known, columns]))
        return self._cells[1][columns] <= max_cells

    def next(self):
        """Return the `Share` of the next round, of which choosing is spent."""
        last = self.left < 2 * self._share
        share = self.left if last else Fraction(self._share)
        # (an exponential mechanism of epsilon costs epsilon^2 / 8; a float below its root is rounded down)
        epsilon = Fraction(math.sqrt(8 * _CHOOSING * float(share)) * (1 - 2**-40))
        self._spend(epsilon**2 / 8)
        self.measuring = share - epsilon**2 / 8
        self._width = width_for(self.measuring, self._moved)
        return Share(epsilon, math.sqrt(2 / math.pi) * self._width)

    def measure(self):
        """Return (noise of the table that was chosen, the precision of a count)."""
        self._spend(self.measuring)
        self.is_done = self.is_spent
        return WidthLaw.of(self._width, self._moved), 1 / self._width**2

    def rest(self, n_tables):
        """Return (noise of so many tables together, the precision of a count), for all that is left."""
        moved = self._moved * n_tables
        noise = WidthLaw.of(width_for(self._spend(self.left), moved), moved)
        return noise, 1 / noise.width**2

    def heard(self, change, cells, is_known):
        """Learn by how many rows a model's table changed: where noise alone would have, widths are halved.

        Where that table had been measured before, rounds end: the next ones would spend all on one table or two, and
        what is left is worth more to all of them.
        """
        if change <= math.sqrt(2 / math.pi) * self._width * cells:
            self._share *= 4
            self.is_done = self.is_done or is_known

    def heard_nothing(self):
        """Learn that no table was worth its noise: widths are halved, or rounds end where a tree could not be paid."""
        self.is_done = self.is_spent or self._share >= self._largest
        self._share = min(4 * self._share, self._largest)


class MarginalSynthesizer(Synthesizer):
    """Sample synthetic rows of many columns from a model of adaptively chosen noisy tables (AIM).

    Tables of single columns are measured first. In each round the exponential mechanism chooses a table on which the
    model has a large error, or none if the noise would exceed all errors. The chosen table is measured with discrete
    Gaussian noise, and the model becomes the maximum entropy distribution closest to all noisy tables. When no table is
    worth its noise, the remaining budget is spent on all tables of the model together; with few rows this is the model
    of independent columns. Rows are sampled from the model.

    **Privacy.** (epsilon, delta)-differential privacy in the central model, for the declared neighbours, by one
    concentrated budget of all rounds, which `privacy_` keeps as its curve. What is kept, rows from `sample` and answers
    of `marginal` are functions of what was released and may be published. The caller of `fit` holds the rows and must
    be trusted. All decisions depend on released numbers only; `workload_error` is **not private**. Names and dtypes of
    columns count as public; of categorical ones only declared categories are kept.

    **Utility.** Noise of a table has a standard deviation of at least about sqrt(m / (2 rho)) rows in each cell for a
    budget rho, m being 2 where rows are replaced and 1 else; rounds share the budget. Of UCI Adult (48,842 rows, 14
    columns, 184 codes, delta 1e-9, add_remove) tables of two columns of sampled rows were 0.065 to 0.071, 0.020 to
    0.024 and 0.015 off (mean total variation, two seeds) at epsilon 0.1, 1 and 4. Of 11 small tables (150 to 2,000
    rows) they were at most about a sixth further off than those of independent columns at epsilon 0.5 and 1; where no
    pair is worth its noise, that is the model. What `max_cells` excludes is known by chains of other tables only.

    **Complexity.** O(n) time for each table of up to `degree` columns that is compared: d^2 / 2 pairs, and of larger
    sets some 500 in each of at most 4 d rounds; and some 30 passes over at most `max_cells` cells in each round. Every
    pair is asked of the model, and tried in its structure, in each round, so that time grows with the cube of d at
    least: 30 columns of 8 values took 8 s, and 60 of 2 values a minute (20,000 rows, epsilon 1).

    {parameters}
    References
    ----------
    McKenna, Mullins, Sheldon, Miklau (2022), "AIM: an adaptive and iterative mechanism for differentially private
    synthetic data", PVLDB 15(11), algorithm 2 and what it calls (rounds, scores, annealing; stopping is ours).
    McKenna, Miklau, Sheldon (2021), "Winning the NIST contest", JPC 11(3). McKenna, Sheldon, Miklau (2019),
    "Graphical-model based estimation and inference for differential privacy", ICML, algorithm 1. The proof:
    ``marginals.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.synthesis import MarginalSynthesizer
    >>> rng = np.random.default_rng(0)
    >>> tea = rng.random(20_000) < 0.7
    >>> X = np.column_stack([tea, tea ^ (rng.random(20_000) < 0.1), rng.random(20_000) < 0.5]).astype(int)
    >>> model = MarginalSynthesizer(1.0, delta=1e-6, categories=[[0, 1]] * 3, random_state=0).fit(X)
    >>> model.marginal([0, 1]).round(2)
    array([[0.27, 0.03],
           [0.07, 0.63]])
    >>> model.sample(2, random_state=0).shape
    (2, 3)
    """

    _more_parameters = """\
    delta : float, default=None
        The delta of (epsilon, delta)-differential privacy, in (0, 1): it must be declared, much less than one over the
        number of rows.
""" + COLUMNS
    _more_attributes = ATTRIBUTES

    def __init__(self, epsilon=1.0, *, delta=None, categories=None, bounds=None, bins=16, degree=2, workload=None,
                 max_cells=65_536, neighbours=None, ledger=None, random_state=None, verbose=0):
        super().__init__(epsilon, categories=categories, bounds=bounds, bins=bins, degree=degree, workload=workload,
                         max_cells=max_cells, neighbours=neighbours, ledger=ledger, random_state=random_state,
                         verbose=verbose)
        self.delta = delta

    # ---------------------------------------------------------------- inside

    def _check(self):
        super()._check()
        self._rho()

    def _rho(self):
        return largest_rho(canonical_epsilon(self.epsilon), checked_delta(self.delta))

    def _promise(self):
        return PrivacyGuarantee(canonical_epsilon(self.epsilon), checked_delta(self.delta), "central",
                                self._neighbours, self.random_state is not None, curve=ZCDP(self._rho()))

    def _plan(self, sizes, degree):
        probe, plan = (AdaptivePlan(self._rho(), self._moved(), sizes, degree) for _ in range(2))
        probe.first()  # (no later round has wider noise: what words cannot express is refused before the charge)
        if not probe.is_spent:
            probe.next()
            probe.left = probe.measuring  # (at least so much is left for all tables together, if anything)
            probe.rest(len(sizes) + probe.most_rounds)
        return plan

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "delta": 1e-5, "bounds": (-2.0, 2.0), "bins": 4},
                {"epsilon": 3.0, "delta": 1e-5, "categories": [[0, 1, 2], [0, 1, 2], [2, 1, 0, None]], "degree": 3,
                 "neighbours": "add_remove"}]
