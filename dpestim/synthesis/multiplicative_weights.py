"""Synthetic rows of few columns with pure epsilon: multiplicative weights (`multiplicative_weights.md`)."""

import math
from fractions import Fraction
from numbers import Integral

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.privacy import PrivacyGuarantee
from dpestim.privacy.exact import canonical_epsilon
from dpestim.synthesis.base import ATTRIBUTES, COLUMNS, Share, Synthesizer

#: The part of the budget for single columns, and that of a round which chooses.
_SINGLES, _CHOOSING = Fraction(1, 5), Fraction(1, 4)


class FixedPlan:
    """As many rounds as were declared, each with an equal share of a pure budget.

    Parameters
    ----------
    epsilon : Fraction
        All that may be spent.
    moved : int
        By how many cells tables of neighbours differ.
    n_columns, rounds : int
    """

    steps, last_steps = 50, 300
    # (rounds end when as many as were declared are over)
    is_done, is_spent, may_stop, off = False, True, False, 0.0

    def __init__(self, epsilon, moved, n_columns, rounds):
        self._moved, self._n_columns, self.most_rounds = moved, n_columns, rounds
        singles = _SINGLES * epsilon if rounds else epsilon
        self._singles, self._share = singles, (epsilon - singles) / max(rounds, 1)
        self._noise = None

    def first(self):
        """Return (noise of all single columns together, the precision of a count)."""
        noise = DiscreteLaplaceLaw(self._singles, Fraction(0), Fraction(self._moved * self._n_columns), 0)
        return noise, 1 / noise.variance_steps

    def fits(self, model, columns, max_cells):
        """Tell whether a model may know these columns: it has all cells there are."""
        return True

    def next(self):
        """Return the `Share` of a round."""
        self._noise = DiscreteLaplaceLaw(self._share * (1 - _CHOOSING), Fraction(0), Fraction(self._moved), 0)
        return Share(self._share * _CHOOSING, math.sqrt(self._noise.variance_steps / 2))

    def measure(self):
        """Return (noise of the table that was chosen, the precision of a count)."""
        return self._noise, 1 / self._noise.variance_steps

    def heard(self, change, cells, is_known):
        """Learn nothing: rounds were declared."""

    def heard_nothing(self):
        """Learn nothing: rounds were declared."""


class MultiplicativeWeights(Synthesizer):
    """Sample synthetic rows of few columns with pure epsilon by multiplicative weights (MWEM).

    The model is one table of all columns together. Tables of single columns are measured first; then, in each of
    `rounds`, the exponential mechanism chooses a table of up to `degree` columns on which the model has a large error.
    This table is measured with discrete Laplace noise, and the weights of cells are multiplied until the model is close
    to all noisy tables. `MarginalSynthesizer` takes more columns, and has less noise for a delta.

    **Privacy.** Pure epsilon-differential privacy in the central model, for the declared neighbours, exactly: scores
    and counts are integers. What is kept, rows from `sample` and answers of `marginal` may be published. The caller of
    `fit` holds the rows and must be trusted; `workload_error` is **not private**. Names and dtypes of columns count as
    public; of categorical ones only declared categories are kept.

    **Utility.** With r rounds a measured count has noise of a standard deviation of about 1.67 sqrt(2) m r / epsilon
    rows, m being 2 where rows are replaced and 1 else.

    **Complexity.** O(n) time for each table of up to `degree` columns; some 50 passes over the cells of all columns
    together, at most `max_cells`, in each round.

    {parameters}
    References
    ----------
    Hardt, Ligett, McSherry (2012), "A simple and practical algorithm for differentially private data release", NIPS,
    figure 1; section 2.3 for going over all measurements again. The proof:
    ``multiplicative_weights.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.synthesis import MultiplicativeWeights
    >>> rng = np.random.default_rng(0)
    >>> tea = rng.random(20_000) < 0.7
    >>> X = np.column_stack([tea, tea ^ (rng.random(20_000) < 0.1), rng.random(20_000) < 0.5]).astype(int)
    >>> model = MultiplicativeWeights(1.0, categories=[[0, 1]] * 3, random_state=0).fit(X)
    >>> model.marginal([0, 1]).round(2)
    array([[0.27, 0.03],
           [0.07, 0.63]])
    """

    _more_parameters = """\
    rounds : int, default=None
        How many tables are chosen and measured, at least 1. None: as many as there are columns.
""" + COLUMNS
    _more_attributes = ATTRIBUTES
    _joined = True

    def __init__(self, epsilon=1.0, *, rounds=None, categories=None, bounds=None, bins=16, degree=2, workload=None,
                 max_cells=65_536, neighbours=None, ledger=None, random_state=None, verbose=0):
        super().__init__(epsilon, categories=categories, bounds=bounds, bins=bins, degree=degree, workload=workload,
                         max_cells=max_cells, neighbours=neighbours, ledger=ledger, random_state=random_state,
                         verbose=verbose)
        self.rounds = rounds

    # ---------------------------------------------------------------- inside

    def _check(self):
        super()._check()
        if self.rounds is not None and (isinstance(self.rounds, bool) or not isinstance(self.rounds, Integral)
                                        or not 1 <= self.rounds <= 10_000):
            raise ValueError("rounds must be None or an int from 1 to 10,000")

    def _promise(self):
        return PrivacyGuarantee(canonical_epsilon(self.epsilon), 0, "central", self._neighbours,
                                self.random_state is not None)

    def _plan(self, sizes, degree):
        rounds = 0 if degree == 1 else self.rounds or len(sizes)
        plan = FixedPlan(canonical_epsilon(self.epsilon), self._moved(), len(sizes), rounds)
        plan.first()  # (a budget too small for words is refused here, before anything is charged)
        if rounds:
            plan.next()
        return plan

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "bounds": (-2.0, 2.0), "bins": 4},
                {"epsilon": 3.0, "categories": [[0, 1, 2], [0, 1, 2], [2, 1, 0, None]], "degree": 3, "rounds": 2,
                 "neighbours": "add_remove"}]
