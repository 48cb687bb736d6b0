"""What synthesizers share: declared columns, the loop that chooses and measures, and what can be asked afterwards."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from dpestim.central.base import LEAST_EPSILON
from dpestim.central.model import CentralModel
from dpestim.central.selection.exponential import ExponentialLaw
from dpestim.inputs import category_rows, columns_of, lists_of, pair_of
from dpestim.inputs.declared import has_numbers
from dpestim.inputs.frames import refuse_parts
from dpestim.passes import Blueprint, CountRows
from dpestim.postprocessing.entropy import Model
from dpestim.privacy.exact import canonical_epsilon
from dpestim.progress import Progress, check_verbose
from dpestim.records import record
from dpestim.results import Part, named
from dpestim.rng import check_random_state
from dpestim.summaries import read_schema, refuse_too_many
from dpestim.synthesis.columns import Schema, checked_bins, declared_columns, is_per_column
from dpestim.synthesis.scores import (
    SCALE,
    answer_of,
    cells_in,
    counted,
    is_noise,
    nothing_score,
    penalties,
    places_of,
    scores_of,
    wanted_sets,
)
from dpestim.synthesis.tables import CountTables, few_at_a_time

COLUMNS = """\
    categories : list of array-like, dict or Domain, default=None
        The public categories of columns, None among them where rows may lack a value: a list with an entry for each
        column, None for a column of numbers, or a dict by names of columns (by places, where they have no names).
    bounds : (low, high), dict or Domain, default=None
        The public range of numbers; values outside are clipped. One pair is for all columns without categories, and
        arrays have a number for each of these. A `dpestim.Domain` stands for `categories`, too. Where it
        says ``missing=True`` a number may be missing: missing numbers have a bin after all others. What has neither
        categories, bounds nor edges is an error: nothing is learned without budget.
    bins : int, array-like, list or dict of these, default=16
        Bins of equal width of a column of numbers, or public increasing edges in place of bounds. A value that many
        rows share, such as 0, should have a separate bin. (A list of integers has one for each column; edges for all
        columns are an array or a tuple.)
    degree : int, default=2
        The largest number of columns of the tables that are compared and measured, at least 1.
    workload : list of tuple of str or int, default=None
        Sets of columns whose tables matter, by names (by places, where they have no names): only these and their
        subsets are compared and measured, up to `degree` columns of them. None: all sets.
    max_cells : int, default=65536
        The most cells of all tables of the model, 8 bytes each: what would exceed it is not measured.
    {verbose}
"""
ATTRIBUTES = """
    n_rows_ : float
        How many rows there were; with `neighbours="add_remove"` a noisy number.
    measured_ : list of tuple of int
        Which tables the model learnt from, by places of columns: single ones first, then as they were chosen. With few
        rows there may be no other tables, because tables that the noise explains are dropped.
    counts_ : ndarray
        The noisy counts of these tables, one table after the other; of what was measured twice, the weighted mean.
    cliques_ : list of tuple of int
        The columns of the tables that make up the model.
    {columns seen}
    """
#: About so many sets of more than two columns are compared in a round.
LARGER = 500
#: The most columns of one table.
_MOST_COLUMNS = 50


@record
class Share:
    """What choosing may spend in one round; and how far the noise that follows moves a cell, on average."""

    epsilon: Fraction
    penalty: float


class Synthesizer(CentralModel):
    """Base of what makes synthetic rows: a sub-class brings `_promise`, `_plan` and `_joined`.

    A plan has `first`, `fits`, `next`, `measure`, `heard`, `heard_nothing`, `rest`, `off`, `is_done`, `is_spent`,
    `may_stop`, `most_rounds`, `steps` and `last_steps`.
    """

    _checked_as = "synthesizer"
    _template = "neighbours"
    _learned = ("counts_",)
    #: Whether the model is one table of all columns.
    _joined = False

    def __init__(self, epsilon=1.0, *, categories=None, bounds=None, bins=16, degree=2, workload=None,
                 max_cells=65_536, neighbours=None, ledger=None, random_state=None, verbose=0):
        self.epsilon = epsilon
        self.categories = categories
        self.bounds = bounds
        self.bins = bins
        self.degree = degree
        self.workload = workload
        self.max_cells = max_cells
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None):
        """Learn a model of rows; one release of epsilon and delta.

        Parameters
        ----------
        X : dense array-like or data frame of shape (n_rows, n_features)
        y : None
            A column like any other, so a class belongs in X.

        Returns
        -------
        self
        """
        self._check()
        trial = self._trial()
        table, columns, schema = trial._seen(X)

        def read(sizes):
            codes = [column.codes(values, self._is_strict()) for column, values in zip(columns, columns_of(table))]
            return len(table), lambda sets: (counted(codes, own, sizes) for own in sets)

        return self._fit_to(read, columns, schema, read_schema(trial))

    def fit_parts(self, ask, example):
        """Fit to rows in parts (`dpestim.passes`), asked for tables of few columns; charges before the first noise.

        {fit of parts}
        """
        self._check()
        trial = self._trial()
        _, columns, schema = trial._seen(example[0])
        request = CountTables(replace(Blueprint.of(self), state=read_schema(trial)), columns)

        def read(sizes):
            def count(sets):
                for some in few_at_a_time(sets, sizes):
                    yield from ask(replace(request, sets=some))

            return refuse_too_many(ask(CountRows(request.blueprint, (columns,)))), count

        self._fit_to(read, columns, schema, read_schema(trial))

    def _read_part(self, rows, columns):
        """Return the codes of rows of a part as `fit` reads them: with the columns of the others."""
        values, _ = self._checked_columns(rows[0], reset=False)
        return [column.codes(own, self._is_strict()) for column, own in zip(columns, values)]

    def sample(self, n_rows=None, random_state=None):
        """Return synthetic rows, which cost nothing, as many and as often as you like.

        Rows are spread as evenly as whole rows allow: tables of columns that were measured together are those of the
        model but for rounding. Numbers are uniform within their bins.

        Parameters
        ----------
        n_rows : int, default=None
            At least 1; None: about as many as the data had.
        random_state : None, int, numpy.random.Generator or RandomState, default=None
            No privacy depends on it.

        Returns
        -------
        ndarray or data frame of shape (n_rows, n_features)
            Of the library, names and dtypes that `fit` saw.
        """
        check_is_fitted(self)
        n = max(1, round(self._model.total)) if n_rows is None else n_rows
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise ValueError("n_rows must be None or an int of at least 1")
        check_random_state(random_state)
        if isinstance(random_state, np.random.RandomState):
            random_state = random_state.randint(0, 2**32, 8, dtype=np.uint32)
        rng = np.random.default_rng(random_state)
        codes = self._model.tree.draw(int(n), rng)
        codes = codes[rng.permutation(len(codes))]
        schema = self._schema
        return schema.table([column.values(codes[:, j], True, rng) if hasattr(column, "encoder") else schema.within(
            j, column.values(codes[:, j], schema.is_whole(j), rng)) for j, column in enumerate(self._columns)])

    def marginal(self, columns):
        """Return the model's probability of each combination of categories or bins of some columns; free.

        Parameters
        ----------
        columns : list of str or int
            Distinct names of columns, or places where they have no names.

        Returns
        -------
        ndarray
            One axis for each column, in the order given; it adds up to 1. `levels` says what is along an axis.
        """
        check_is_fitted(self)
        places = self._places(columns)
        if len(places) > _MOST_COLUMNS:
            raise ValueError(f"columns must be at most {_MOST_COLUMNS}")
        table = np.maximum(self._model.tree.marginal(places), 0.0)
        return table / table.sum()

    def levels(self, column):
        """Return the categories of a column, or the edges of its bins: what is along an axis of `marginal`.

        Where numbers may be missing, the last place of the axis is for missing numbers, and has no edge.
        """
        check_is_fitted(self)
        known = self._columns[self._places([column])[0]]
        return (known.encoder.categories if hasattr(known, "encoder") else known.edges).copy()

    def _result_parts(self, level):
        """Return what `result_` shows: how many rows there are, and the shares of the values of each column."""
        out = [Part("rows", (), self.n_rows_)]
        places = self._schema.labels or range(len(self._columns))
        for name, column in zip(places, self._columns):
            known, shares = self.levels(name), self.marginal([name])
            labels = named(known) if hasattr(column, "encoder") else [
                *(f"{a:g} to {b:g}" for a, b in itertools.pairwise(known)), "missing"][: len(shares)]
            out.append(Part("share", (("feature", [name]), ("category or bin", labels)), shares[None]))
        return out

    def workload_error(self, X, degree=None):
        """Return the mean distance of tables of the model from those of rows X, which is **not private**.

        Half the sum of absolute differences of probabilities, from 0 to 1, on average over all sets of columns.
        The ledger notes it as a score that is not private; strict mode refuses it.

        Parameters
        ----------
        X : as for `fit`
        degree : int, default=None
            Columns of a table, from 1 to all. None: the tables of `workload`, or, without one, of two columns.
        """
        check_is_fitted(self)
        self._refuse_in_strict("workload_error is refused, because it compares with raw data: call it outside of "
                               "strict mode")
        declared = self._workload if degree is None else None
        degree = min(2, len(self._columns)) if degree is None else degree
        if isinstance(degree, bool) or not isinstance(degree, Integral) or not 1 <= degree <= len(self._columns):
            raise ValueError(f"degree must be an int from 1 to {len(self._columns)}")
        rows, n_rows = self._checked_columns(X, reset=False)
        codes = [column.codes(values, False) for column, values in zip(self._columns, rows)]
        self._note_score(n_rows)
        sets = declared or list(itertools.combinations(range(len(codes)), degree))
        away = [np.abs(counted(codes, own, self._model.sizes) / n_rows - self._model.tree.marginal(own)).sum()
                for own in sets]
        return float(np.mean(away)) / 2

    # ---------------------------------------------------------------- inside

    def _seen(self, X):
        """Return (rows as a table, what was declared of their columns, what they looked like), having read names."""
        strict = self._is_strict()
        refuse_parts(X, "X")
        table = category_rows(X, strict=strict) if np.shape(X)[:1] != (0,) or not strict else X
        validate_data(self, X if hasattr(X, "columns") else table, reset=True, skip_check_array=True)
        schema = Schema(X if hasattr(X, "columns") else table, getattr(self, "feature_names_in_", None))
        if schema.kind is None and not hasattr(X, "dtype"):
            schema.dtypes = [None] * len(schema.dtypes)
        columns = declared_columns(self.categories, self.bounds, self.bins, len(schema.dtypes), schema.labels)
        schema.settle(columns)
        return table, columns, schema

    def _fit_to(self, read, columns, schema, names):
        """Plan, read, pay and draw; `read` returns (how many rows, what yields exact tables of sets of columns)."""
        sizes = tuple(column.size for column in columns)
        self._check_size(sizes)
        workload = None if self.workload is None else [
            places_of(own, "sets of workload", schema.labels, len(sizes)) for own in self.workload]
        wanted = wanted_sets(workload, len(sizes), self.degree)
        plan = self._plan(sizes, max(map(len, wanted), default=1))
        n_rows, count = read(sizes)
        replaces = self._replaces

        def draw(source):
            model = self._released(count, sizes, n_rows if replaces else None, plan, wanted, source)
            return {"n_rows_": float(n_rows) if replaces else model.total, "measured_": list(model.known),
                    "cliques_": model.tree.cliques,
                    "counts_": np.concatenate([table.ravel() for table, _ in model.known.values()]),
                    "_model": model, "_columns": columns, "_schema": schema, "_workload": workload}

        return self._keep(self._promise(), n_rows, names, draw)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        tags.input_tags.two_d_array = False  # columns are declared one by one
        return tags

    def _test_data(self, n_rows, seed=0):
        """Return rows of three columns of small integers; of those the third may be missing where that is declared."""
        return np.random.default_rng(seed).integers(0, 3, size=(n_rows, 3)).astype(float), None

    def _moved(self):
        """Return by how many cells of a table a neighbour's table differs, each by one row."""
        return 2 if self._replaces else 1

    def _check(self):
        """Raise ValueError for a parameter that does not fit."""
        if canonical_epsilon(self.epsilon) < LEAST_EPSILON:
            raise ValueError("epsilon is too small: it must be at least 1e-100")
        self._relation()
        check_random_state(self.random_state)
        check_verbose(self.verbose)
        for name, most in (("degree", 8), ("max_cells", 1 << 26)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= value <= most:
                raise ValueError(f"{name} must be an int from 1 to {most:,}")
        if self.workload is not None and (not isinstance(self.workload, list | tuple) or not self.workload):
            raise ValueError("workload must be None or a list of sets of columns")
        if self.categories is not None:
            lists_of(self.categories, some=True)
        if self.bounds is not None and has_numbers(self.bounds):
            pair_of(self.bounds)
        if not is_per_column(self.bins):
            checked_bins(self.bins)

    def _check_size(self, sizes):
        if self._joined and len(sizes) > _MOST_COLUMNS:
            raise ValueError(f"X must have at most {_MOST_COLUMNS} columns, because the model is one table of all "
                             "columns: take MarginalSynthesizer")
        cells = math.prod(sizes) if self._joined else sum(sizes)
        if cells > self.max_cells:
            what = "all columns together" if self._joined else "the tables of single columns"
            raise ValueError(f"max_cells must be at least {cells:,}, the number of cells of {what}: raise max_cells, "
                             "or declare fewer categories, bins or columns")

    def _places(self, columns):
        return places_of(columns, "columns", self._schema.labels, len(self._columns))

    def _released(self, count, sizes, n_rows, plan, wanted, source):
        """Return the model: single columns are measured, then what it is furthest from, until the plan ends."""
        singles = [(j,) for j in range(len(sizes))]
        progress = Progress(self, max(plan.most_rounds, 1), most=plan.may_stop)

        def measured(tables, noise, words):
            exact = [table.ravel() for table in count(tables)]
            return np.split(noise.add(np.concatenate(exact), words), np.cumsum([len(own) for own in exact])[:-1])

        noise, precision = plan.first()
        parts = measured(singles, noise, source.part(0))
        if n_rows is None:  # the mean of noisy sums, each as good as it has few cells
            n_rows = float(np.average([part.sum() for part in parts], weights=1 / np.array(sizes)))
        model = Model(sizes, min(max(float(n_rows), 1.0), 2.0**40), self._joined)
        for own, part in zip(singles, parts):
            model.learn(own, part, precision)
        model.fit(100)
        # (a plan that may stop measures single columns when it does)
        candidates = {own: None for own in ([] if plan.may_stop else singles) + wanted
                      if cells_in(own, sizes) <= self.max_cells}
        progress.tell("single columns are measured")
        for number in range(plan.most_rounds):
            if number:  # (when rounds end follows from what was released)
                progress.done(number)
            if plan.is_done:
                break
            # (pairs in every round; of larger sets so many in turn, by their places, which are public)
            turns = -(-len(candidates) // LARGER)
            pool = [own for k, own in enumerate(candidates) if len(own) < 3 or k % turns == number % turns]
            for own in [own for own in pool if not plan.fits(model, own, self.max_cells)]:
                del candidates[own]
            pool = [own for own in pool if own in candidates]
            if not pool:
                break
            share = plan.next()
            noises = penalties(pool, sizes, share.penalty, plan.off)
            # (noise of more than twice all rows is more than any table can be off: "no table" is a better choice)
            live = [own for own in pool if noises[own] < 2 * model.total or not plan.may_stop]
            if not live:
                plan.heard_nothing()
                continue
            tables = {own: answer for own in live if (answer := answer_of(model, own)) is not None}
            live = list(tables)
            if not live:
                plan.heard_nothing()
                continue
            new = [own for own in live if candidates[own] is None]
            tables_told = progress.part(len(new), "table")
            for k, (own, table) in enumerate(zip(new, count(new)), 1):
                candidates[own] = table
                tables_told.done(k)
            law = ExponentialLaw(share.epsilon, self._moved() * SCALE * max(map(len, wanted)), 0, False)
            scores = scores_of({own: candidates[own] for own in live}, tables, noises)
            if plan.may_stop:
                scores = np.append(scores, nothing_score(len(live), law))
            place = law.draw(scores, source.part(2 * number + 1))
            if place == len(live):
                plan.heard_nothing()
                continue
            chosen = live[place]
            noise, precision = plan.measure()
            # (a copy: noise is added in place, and what is kept are the exact counts)
            noisy = noise.add(candidates[chosen].flatten(), source.part(2 * number + 2)).reshape(tables[chosen].shape)
            if chosen not in model.known and is_noise(tables[chosen], noisy, precision):
                plan.heard_nothing()
                continue
            is_known = chosen in model.known
            model.learn(chosen, noisy, precision)
            model.fit(plan.steps)
            change = np.abs(model.total * model.tree.marginal(chosen) - tables[chosen]).sum()
            plan.heard(change, tables[chosen].size, is_known)
        if not plan.is_spent:  # what no further table was worth
            rest = [own for own in model.known if not any(set(own) < set(other) for other in model.known)]
            noise, precision = plan.rest(len(rest))
            for own, part in zip(rest, measured(rest, noise, source.part(2 * plan.most_rounds + 1))):
                model.learn(own, part, precision)
        model.fit(plan.last_steps)
        progress.tell("the model is made")
        return model
