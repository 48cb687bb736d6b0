"""Parities of the bits of several columns: the coefficients from which all of their tables follow."""

import itertools
import math

import numpy as np

from dpestim.local.views import View


class Parity(View):
    """Whether an odd number of chosen bits of the codes of some columns are 1.

    Parameters
    ----------
    name, law, places : as `View`
        With a law of two values.
    sizes : tuple of int
        How many values each of these columns has.
    masks : tuple of int
        The chosen bits of each column, above 0.
    """

    def __init__(self, name, law, places, sizes, masks):
        super().__init__(name, law, places)
        self.masks = tuple(masks)
        self._odd = [np.array([(code & mask).bit_count() & 1 for code in range(size)], law.code_dtype)
                     for size, mask in zip(sizes, self.masks)]

    @property
    def function(self):
        """The chosen bits."""
        return self.masks

    def of(self, codes):
        """Return 0 or 1 for each row."""
        out = self._odd[0][codes[0]]
        for odd, own in zip(self._odd[1:], codes[1:]):
            out = out ^ odd[own]
        return out


def bits_of(size):
    """Return how many bits the codes of a column have."""
    return (size - 1).bit_length()


def coefficients(sizes, order):
    """Return all (places, masks) of parities of up to `order` columns."""
    return [(places, masks) for k in range(1, order + 1) for places in itertools.combinations(range(len(sizes)), k)
            for masks in itertools.product(*(range(1, 1 << bits_of(sizes[j])) for j in places))]


def n_coefficients(sizes, order):
    """Return how many there are."""
    each = [(1 << bits_of(size)) - 1 for size in sizes]
    return sum(math.prod(own) for k in range(1, order + 1) for own in itertools.combinations(each, k))


def signs_of(places, sizes, known):
    """Return (numbers of parities, their signs) for the table of some columns.

    Parameters
    ----------
    places, sizes : tuple of int
        The columns, ascending, and how many values these have.
    known : dict
        {(places, masks): number}.

    Returns
    -------
    numbers : list of int
    signs : ndarray of shape (cells, n_parities)
        1 or -1 over two to the power of the number of bits: the share of a cell is their sum times the coefficients,
        and the share that an even table would have.
    """
    width = [bits_of(size) for size in sizes]
    numbers, columns = [], []
    for masks in itertools.product(*(range(1 << bits) for bits in width)):
        held = [(j, mask) for j, mask in zip(places, masks) if mask]
        if held:
            numbers.append(known[tuple(j for j, _ in held), tuple(mask for _, mask in held)])
            sign = np.ones(())
            for size, mask in zip(sizes, masks):
                own = np.array([1 - 2 * ((code & mask).bit_count() & 1) for code in range(size)], float)
                sign = np.multiply.outer(sign, own)
            columns.append(sign.ravel())
    return numbers, np.array(columns).T / (1 << sum(width))
