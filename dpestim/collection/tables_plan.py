"""Planning how many columns, or their joint tables, are estimated: in the local, the shuffle and the central model."""

import itertools
import math
from dataclasses import field
from typing import NamedTuple

import numpy as np

from dpestim.central.base import checked_delta
from dpestim.collection.compared_models import ComparedModels
from dpestim.local import MarginalEstimator, MultiAttributeFrequencyEstimator
from dpestim.local.attributes.designs import design_for, error_of
from dpestim.privacy.exact import canonical_epsilon
from dpestim.privacy.rounding import whole
from dpestim.records import record
from dpestim.shuffle.amplification import largest_local
from dpestim.shuffle.transport.uniform import FOR_MESSAGES
from dpestim.statistics.calibrated_noise import noise_for

#: More users than this are nobody's; more tables or columns than this are not planned.
_MOST_USERS, _MOST_TABLES = 1 << 53, 5000
#: Cells of the table of all columns that a curator may hold.
_MOST_CELLS = 1 << 24


class TableRow(NamedTuple):
    """One way to estimate frequencies of columns, or tables of several."""

    mechanism: str
    model: str
    parameters: str
    column_error: float
    table_error: float
    local_epsilon: float
    bits: float


@record
class TablePlan(ComparedModels):
    """What `plan_tables` answers; ``str(plan)`` is a table.

    Attributes
    ----------
    n_users : int
    sizes : tuple of int
    order, colluding : int
    epsilon, delta : float
    rows : tuple of TableRow
        One for each way, the least `table_error` first, and those without tables last: `mechanism` (the name of its
        class), `model`, `parameters`, `column_error` and `table_error` (root mean square errors of a share: of a
        category of one column, and of a cell of a table of `order` columns; NaN where it has no tables),
        `local_epsilon` (what a report keeps by itself) and `bits` (of a report).
    left_out : dict of str
        Ways that do not fit this setting, and why.
    """

    _plotted, _least = ("table_error", None, None), "table_error"
    _n_labels = 3
    n_users: int
    sizes: tuple
    epsilon: float
    delta: float
    order: int
    colluding: int
    rows: tuple
    left_out: dict = field(repr=False)

    def best_of(self, model, columns=None):
        """Return the row of a model ("local", "shuffle" or "central") with the least error.

        Parameters
        ----------
        model : str
        columns : int, default=None
            1: of single columns; None: of tables.
        """
        if columns not in (None, 1):
            raise ValueError("columns must be None, for tables, or 1, for single columns")
        return self._best(model, "column_error" if columns == 1 else self._least)

    @property
    def recommendation(self):
        """Which way to take in each model, in a sentence, and which for single columns."""
        single = self.best_of("local", 1)
        return (f"{super().recommendation} For single columns in the local model "
                f"{self._takes_for(single, single.column_error)}.")

    def _asks(self):
        return f"For tables of {self.order} columns and {self.n_users:,} users"

    def _about(self):
        return f"Nothing yet: a plan reads no data. It is about {len(self.sizes)} columns of {self.n_users:,} users."


def plan_tables(*, n_users, epsilon, sizes, order=2, delta=1e-6, colluding=0):
    """Compare, before a survey is taken, the errors of single columns and of joint tables in three models.

    The local model is `MultiAttributeFrequencyEstimator` with each strategy and `MarginalEstimator` with each method.
    The shuffle model is `ShuffledEstimator` of these. The central model is `dpestim.statistics.ContingencyTable` for a
    replaced row: of all columns, or of each table of `order` columns with an equal part of epsilon.
    `MarginalSynthesizer` is left out, because its errors depend on the data: which tables it measures follows from
    them.

    Errors are about the users who take part, where all categories and cells are held equally often. Those of
    `MarginalEstimator` are errors of consistent tables. Noise that is cut off at 0 makes the error of skewed tables
    less.

    **Privacy.** A plan reads no data: it costs nothing.

    **Complexity.** About a second for 20 columns, and tenths of a second for a few.

    Parameters
    ----------
    n_users : int
        From 1 to 2^53.
    epsilon : float
        Of one report of a whole row, of all shuffled reports together, or of all counts together; in (0, 80].
    sizes : list of int
        How many categories each column has: at least 2 columns of at least 2.
    order : int, default=2
        Columns of the tables that matter, from 1 to the number of columns.
    delta : float, default=1e-6
        Of the shuffle model, above 0 and below 1.
    colluding : int, default=0
        Users who may tell the analyser what they sent, in the shuffle model; below `n_users`.

    Returns
    -------
    TablePlan
        With `rows`, `best`, `best_of`, `recommendation` and `to_frame`.

    Raises
    ------
    ValueError
        For a parameter that does not fit.

    Examples
    --------
    >>> from dpestim.collection import plan_tables
    >>> found = plan_tables(n_users=100_000, epsilon=1.0, sizes=[4, 4, 4, 3, 2])
    >>> [found.best_of(model).parameters for model in ("local", "shuffle", "central")]
    ['method="pairs"', 'method="full"', 'all columns']
    >>> found.best_of("local", 1).parameters
    'strategy="smp"'
    """
    n, colluding, order = whole(n_users, "n_users"), whole(colluding, "colluding", 0), whole(order, "order")
    if n > _MOST_USERS:
        raise ValueError("n_users must be at most 2^53")
    if colluding >= n:
        raise ValueError("colluding must be less than n_users")
    if isinstance(sizes, str | bytes | dict) or not hasattr(sizes, "__len__") or len(sizes) < 2:
        raise ValueError("sizes must be a list with the number of categories of each of at least two columns")
    sizes = tuple(whole(size, "each of sizes", 2) for size in sizes)
    if not order <= len(sizes) or order > 8:
        raise ValueError("order must be at most 8, and at most the number of columns")
    if math.comb(len(sizes), order) > _MOST_TABLES:
        raise ValueError(f"order must be smaller: more than {_MOST_TABLES:,} tables are not planned")
    epsilon, exact_delta = canonical_epsilon(epsilon), checked_delta(delta)
    local = max(epsilon, largest_local(None, n - colluding, epsilon, exact_delta * FOR_MESSAGES))
    rows, left_out = [], {}
    for model, own in (("local", epsilon), ("shuffle", local)):
        rows += [_of_strategy(model, own, sizes, n, strategy) for strategy in ("smp", "spl", "rsfd")
                 if model == "local" or strategy != "rsfd"]  # (a shuffler does not take reports of fakes)
        for method in ("full", "pairs", "fourier", "calm"):
            try:
                rows.append(_of_method(model, own, sizes, order, n, method))
            except ValueError as error:
                left_out[f'MarginalEstimator (method="{method}")'] = str(error)
    rows += _of_curator(epsilon, sizes, order, n, left_out)
    rows.sort(key=lambda row: (math.isnan(row.table_error), 0.0 if math.isnan(row.table_error) else row.table_error,
                               row.column_error))
    return TablePlan(n, sizes, float(epsilon), float(exact_delta), order, colluding, tuple(rows), left_out)


def _named(model, cls):
    return cls.__name__ if model == "local" else "ShuffledEstimator"


def _of_strategy(model, epsilon, sizes, n, strategy):
    """Return the row of users who report columns by themselves."""
    lists = [range(k) for k in sizes]
    columns = MultiAttributeFrequencyEstimator(epsilon, categories=lists, strategy=strategy)._columns_now()
    laws = [columns.of_all(j) for j in range(len(columns))] if strategy == "rsfd" else columns.laws
    squares = []
    for law, size in zip(laws, sizes):
        if strategy == "rsfd":
            at_zero, slope = law.variance_line(None, n)
            squares.append(float(np.mean(at_zero + slope / size)) / n)
            continue
        drawn = len(sizes) if strategy == "smp" else 1
        own = float(np.mean(law.variance(1, 1 / size if law.varies_by_own_share else np.full(size, 1 / size))))
        squares.append((drawn * own + (drawn - 1) * (1 - 1 / size) / size) / n)
    bits = [float(law.report_bits) for law in columns.laws]
    sent = math.log2(len(sizes)) + max(bits) if strategy == "smp" else sum(bits)
    return TableRow(_named(model, MultiAttributeFrequencyEstimator), model, f'strategy="{strategy}"',
                    math.sqrt(sum(squares) / len(squares)), math.nan, float(epsilon), sent)


def _of_method(model, epsilon, sizes, order, n, method):
    """Return the row of users who report tables."""
    design = design_for(method, epsilon, sizes, order, MarginalEstimator().max_cells)
    client = MarginalEstimator(epsilon, order=order, method=method, categories=[range(k) for k in sizes])
    views = client._columns_now()
    return TableRow(_named(model, MarginalEstimator), model, f'method="{method}"',
                    math.sqrt(error_of(design, epsilon, sizes, order, 1) / n), math.sqrt(design.error / n),
                    float(epsilon), math.log2(len(views)) + max(float(law.report_bits) for law in views.laws))


def _of_curator(epsilon, sizes, order, n, left_out):
    """Yield the rows of a curator, who counts and adds noise."""
    cells, tables = math.prod(sizes), list(itertools.combinations(sizes, order))
    bits, each = math.log2(cells), math.comb(len(sizes), order)
    if cells > _MOST_CELLS:
        left_out["ContingencyTable (all columns)"] = "the table has more than 2^24 cells"
    else:
        noise = noise_for(epsilon, None, 2, 2, 1).variance / n**2
        one, many = (sum(cells / math.prod(own) for own in groups) / len(groups)
                     for groups in ([(k,) for k in sizes], tables))
        yield TableRow("ContingencyTable", "central", "all columns", math.sqrt(noise * one), math.sqrt(noise * many),
                       math.inf, bits)
    noise = noise_for(epsilon / each, None, 2, 2, 1).variance / n**2
    # (a column is in several tables, of which the sum over the others has the noise of as many cells)
    blocks = [[math.prod(rest) for rest in itertools.combinations(sizes[:j] + sizes[j + 1 :], order - 1)]
              for j in range(len(sizes))]
    singles = [noise / sum(1 / block for block in own) for own in blocks]
    yield TableRow("ContingencyTable", "central", "each table", math.sqrt(sum(singles) / len(singles)),
                   math.sqrt(noise), math.inf, bits)
