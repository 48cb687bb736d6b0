"""Sample and aggregate: any function, run on random blocks of rows, and a private mean or median of its results."""

import math
from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import law_of_rate
from dpestim.central.stability.blocks import BlockMechanism
from dpestim.central.stability.grid import grids
from dpestim.central.stability.heavy import NOISES, heavy_noise
from dpestim.central.stability.smooth_sensitivity import scaled
from dpestim.central.stability.statistics import Stretch, total
from dpestim.exact_reals import BitStream
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import WordSource

_HALF = Fraction(1, 2)
_PURE = sorted(set(NOISES) - {"laplace"})


class SampleAndAggregate(BlockMechanism):
    """Release any function of rows by sample-and-aggregate, such as a fitted attribute of an estimator.

    Rows are dealt out to blocks at random, the function is run on each, and a mean or a median of the results is
    released with noise. The function may be arbitrary. Take this mechanism where a few hundred rows give nearly the
    answer of all rows, and where no special mechanism exists.

    **Privacy.** Pure epsilon in the central model, for the declared neighbours. Blocks are made by random words, never
    by the order or the values of rows, so one row changes one block, and by that one result. With p results each
    coordinate gets epsilon / p. The function must read only its block and must not store anything; dpestim cannot
    verify this. The running time and the output to the console are not protected. The curator, who holds the data, must
    be trusted.

    **Utility.** The mean of k results within bounds of width w has discrete Laplace noise of scale p w / (k epsilon).
    The median has noise by smooth sensitivity, which is far less where most blocks agree and k is some hundreds. Small
    blocks may be biased, and that does not average out. Blocks that fail (an exception, NaN, a wrong number of results)
    count as the midpoint of the bounds; outside of strict mode a warning tells this before the charge. Before the
    charge the function is called on artificial rows, and mistakes that appear there (a wrong attribute, a missing y, a
    wrong number of results) are errors.

    **Complexity.** k calls of the function on blocks of about n / k rows, which are copied; O(n log n) besides.

    {parameters}
    References
    ----------
    Nissim, Raskhodnikova, Smith (2007), "Smooth sensitivity and sampling in private data analysis", STOC, section 4.
    Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates", STOC, for means of blocks.
    The proof: ``sample_and_aggregate.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from dpestim.central import SampleAndAggregate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = X @ [1.0, -2.0] + rng.normal(size=20_000)
    >>> slopes = SampleAndAggregate(1.0, function=LinearRegression(), attribute="coef_", n_blocks=400,
    ...                             bounds=([-5.0, -5.0], [5.0, 5.0]), aggregate="median", random_state=0).fit(X, y)
    >>> bool(np.abs(slopes.value_ - [1.0, -2.0]).max() < 0.1)
    True
    """

    _more_parameters = """
    function : None, callable or estimator, default=None
        A callable of a block of rows, a float array of shape (n, n_columns), and of y for these rows if y is given; it
        returns a number, or as many as the bounds have. An estimator is cloned and fitted to each block, and its
        `attribute` is the result. None: the mean of each column.
""" + BlockMechanism._shared_parameters + """\
    bounds : (low, high), dict or Domain, default=None
        Public range of the results, two numbers or two arrays with one number for each result: it must be declared. Two
        numbers mean one result, and without a function one for each column.
    aggregate : {"mean", "median"}, default="mean"
    noise : {"cauchy", "quartic", "student"}, default="cauchy"
        The law of the noise of a median; see `SmoothSensitivity`.
    """
    _more_attributes = """
    value_ : ndarray of shape (n_results,)
        What was released, after `fit`.
    {columns seen}
    """

    def __init__(self, epsilon=1.0, *, function=None, attribute=None, n_blocks=None, bounds=None, aggregate="mean",
                 noise="cauchy", neighbours=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.function = function
        self.attribute = attribute
        self.n_blocks = n_blocks
        self.bounds = bounds
        self.aggregate = aggregate
        self.noise = noise
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    def _plan(self, n_columns):
        epsilon, *_ = self._budget()
        self._check_function()
        if not isinstance(self.aggregate, str) or self.aggregate not in ("mean", "median"):
            raise ValueError("aggregate must be 'mean' or 'median'")
        if not isinstance(self.noise, str) or self.noise not in _PURE:
            raise ValueError(f"noise must be one of {_PURE}")
        sizes = {len(end) for end in self.bounds if np.ndim(end)} if isinstance(self.bounds, list | tuple) else ()
        n_results = n_columns if self.function is None else max(sizes, default=1)
        known, epsilon = grids(self.bounds, n_results), epsilon / n_results
        # (what words cannot express is refused here, before anything is charged)
        laws = [law_of_rate(epsilon / grid.width) if self.aggregate == "mean" else None for grid in known]
        return {"grids": known, "epsilon": epsilon, "n_columns": n_columns, "n_results": n_results, "laws": laws}

    def _budget(self):
        self._relation()
        return canonical_epsilon(self.epsilon), Fraction(0), None

    def _kind(self, plan):
        return tuple(plan["grids"])

    def _kept(self, rows, y, plan, strict):
        return self._kind(plan), self._with_y(rows, y, strict)

    def _answer(self, seen, plan, source):
        reader = source.reader()
        return np.array([self._one(*of_column, grid, BitStream(reader, j, 0), plan, law)
                         for j, (of_column, grid, law) in enumerate(zip(seen, plan["grids"], plan["laws"]))])

    def _one(self, value, scale, grid, stream, plan, law):
        """Return the private mean or median of the results of all blocks, one coordinate."""
        if self.aggregate == "median":
            return grid.number(self._law(plan).nearest(value, scale, grid, stream))
        noisy = value + law.one(stream)
        return grid.number(min(max(Fraction(noisy, scale), Fraction(grid.low)), Fraction(grid.high)))

    def _law(self, plan):
        return heavy_noise(self.noise, plan["epsilon"], Fraction(0), _HALF)

    def _reduced(self, column, grid, plan):
        """Return the sum and how many there are, or the median and the scale of its noise."""
        if self.aggregate == "mean":
            return total(column), len(column)
        middle = (len(column) + 1) // 2
        return scaled(Stretch(middle, middle), column, grid, self._law(plan))

    def _sampled(self, seen, plan, source):
        """Return a mean or median, without noise, of what the function makes of each block, for each coordinate."""
        n_results = len(plan["grids"])

        def read(result):
            numbers = np.asarray(result, np.float64).reshape(-1)
            if len(numbers) != n_results or np.isnan(numbers).any():
                raise ValueError
            return numbers

        nothing = np.full(n_results, np.nan)  # which a grid reads as its middle
        results = [nothing if x is None else x for x in self._run(seen, plan["n_columns"], source, read)]
        columns = np.transpose(results)
        return [self._reduced(grid.read(column), grid, plan) for column, grid in zip(columns, plan["grids"])]

    def _outcomes(self, summary, places):
        plan, (grid,) = self._plan(1), self._plan(1)["grids"]
        ((value, scale),) = self._sampled(summary.totals, plan, WordSource(self.random_state))
        if self.aggregate == "median":
            step = grid.number(scale)
            return self._law(plan).log_density((places - grid.number(value)) / step) - math.log(step), {}
        rate = float(plan["epsilon"]) * scale / grid.number(grid.width)
        return math.log(rate / 2) - rate * np.abs(places - grid.number(Fraction(value, scale))), {}

    def _test_column(self):
        """Return a column whose release is neither certain nor all noise."""
        low, high = (float(np.ravel(end)[0]) for end in self.bounds)
        return np.linspace(low, high, 41)

    def _test_data(self, n_rows, seed=0):
        """Return a table of numbers."""
        return np.random.default_rng(seed).normal(0.0, 2.0, (n_rows, 2)), None

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "bounds": (-4.0, 4.0), "n_blocks": 3},
            {"epsilon": 2.0, "bounds": (0.0, 3.0), "n_blocks": 2, "aggregate": "median", "noise": "student"},
            {"epsilon": 1.0, "bounds": (-4.0, 4.0), "n_blocks": 3, "function": np.median, "neighbours": "add_remove"},
        ]
