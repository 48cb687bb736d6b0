"""Rows of a classifier in parts while it is fitted by exact sums, which add up."""

from dpestim.linear_model.rows import Rows
from dpestim.passes import Blueprint, Request
from dpestim.records import record


@record
class SumRows(Request):
    """Asks rows in parts what `Rows` answer.

    Parameters
    ----------
    blueprint : Blueprint
    name : str
        The method that answers.
    arguments : tuple
    """

    blueprint: Blueprint
    name: str
    arguments: tuple = ()

    def of_rows(self, rows, place):
        """Return exact sums."""
        return getattr(self.blueprint.build()._read_part(rows), self.name)(*self.arguments)

    @staticmethod
    def add(one, other):
        """Return the sums of both; neither is changed."""
        return [a + b for a, b in zip(one, other)] if isinstance(one, list) else one + other


class PartRows(Rows):
    """Rows in parts, that answer as `Rows` do: they are asked by a function, and none of them is here.

    Parameters
    ----------
    ask : callable
        Returns the merged answer to a request.
    blueprint : Blueprint
    shape : tuple
        (how many rows, columns)
    intercept : bool
    """

    def __init__(self, ask, blueprint, shape, intercept):
        self._ask, self._blueprint, self.shape, self._intercept = ask, blueprint, shape, intercept

    def counts(self):
        """Return how many rows each class has."""
        return self._ask(SumRows(self._blueprint, "counts"))

    def products(self, problems):
        """Return the `Summary` of each problem."""
        return self._ask(SumRows(self._blueprint, "products", (problems,)))

    def gradients(self, link, bits, offset):
        """Return the function of coefficients that is the exact sum of gradients, asked for at each step."""
        return PartSums(lambda w: self._ask(SumRows(self._blueprint, "gradient", (link, bits, offset, w))), link,
                        self.shape[0], self.shape[1] + self._intercept)


class PartSums:
    """Exact sums of gradients of rows in parts."""

    def __init__(self, answer, link, n_rows, size):
        self._answer, self.link, self.n_rows, self.shape = answer, link, n_rows, (link.n_outputs, size)

    def __call__(self, w):
        """Return the sum at w, integers."""
        return self._answer(w)
