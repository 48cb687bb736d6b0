"""Trees and forests that are broken: choices and leaves with too little noise."""

from fractions import Fraction

from dpestim.ensemble import DPRandomForestClassifier, DPRandomForestRegressor
from dpestim.tree import DPDecisionTreeClassifier, DPDecisionTreeRegressor


class ChoosesTheBest(DPDecisionTreeClassifier):
    """Splits without noise, nearly."""

    def _law(self, epsilon, depth, moved):
        return super()._law(1000 * epsilon, depth, moved)


class ForgetsSquares(DPDecisionTreeRegressor):
    """Sums of squares are taken to move by the range of a target, not by its square."""

    def _moved(self, grid, most):
        return grid.span


class HalfTheLeaves(DPDecisionTreeClassifier):
    """Noise for a row that is added, where one is replaced."""

    def _numbers(self, target):
        weights, _, _ = super()._numbers(target)
        return weights, 1, 1


class OneTreeEach(DPRandomForestClassifier):
    """Rows in all trees at the price of one."""

    def _trees_of_a_row(self, n_trees):
        return 1


class NoSums(DPRandomForestRegressor):
    """Noise for counts, and none for sums."""

    def _numbers(self, grid):
        weights, l1, l2_squared = super()._numbers(grid)
        return weights, l1 // 4, Fraction(l2_squared, 4)


class EdgesForFree(DPRandomForestClassifier):
    """Edges are found, and leaves have all of epsilon."""

    def _edges_to_find(self, numbers, n_rows, n_columns, epsilon):
        return super()._edges_to_find(numbers, n_rows, n_columns, epsilon)[0], epsilon


class ColumnsShareNothing(DPDecisionTreeRegressor):
    """Edges of each column have what is for those of all."""

    def _quantiles(self, epsilon, n_rows, n_columns, n_bins, bounds):
        return super()._quantiles(n_columns * epsilon, n_rows, n_columns, n_bins, bounds)


TREE, FOREST = DPDecisionTreeClassifier._test_params()[0], DPRandomForestClassifier._test_params()[2]
NUMBERS, MEANS = DPDecisionTreeRegressor._test_params()[0], DPRandomForestRegressor._test_params()[0]
FOUND = DPDecisionTreeRegressor._test_params()[2]
BROKEN = [
    (ChoosesTheBest, TREE, "check_tree_law"),
    (ForgetsSquares, NUMBERS, "check_tree_law"),
    (HalfTheLeaves, TREE, "check_tree_law"),
    (OneTreeEach, FOREST, "check_tree_law"),
    (NoSums, MEANS, "check_tree_law"),
    (EdgesForFree, {**DPRandomForestClassifier._test_params()[0], "edges_fraction": 0.5}, "check_tree_law"),
    (ColumnsShareNothing, FOUND, "check_tree_law"),
]
