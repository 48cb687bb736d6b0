"""What every law over sets of pairs has: three outcomes for each key, and what follows from their probabilities."""

from fractions import Fraction
from itertools import pairwise, product
from typing import NamedTuple

from dpestim.local.law import Randomizer
from dpestim.privacy.exact import WORD

#: Codes of keys with signs are 32-bit, and a record's random words must stay far below the memory of a client.
LARGEST_KEYS = 1 << 24
#: Steps between the bounds, to which values are rounded once before anything else.
STEPS = 1 << 32


class Cell(NamedTuple):
    """What is said of one key, exactly: probabilities of the true sign, of the turned one, and of each without it."""

    right: Fraction
    turned: Fraction
    other: Fraction


class KeyValueRandomizer(Randomizer):
    """Base of the laws of sets of pairs, ``__init__(self, epsilon, n_keys, ...)``; codes are rows of `PairRows`.

    A sub-class sets what `Randomizer` says, and

    cell : Cell
        What a report says of the key that was sampled, or asked for.
    length : int
        A key that is held is looked at with probability 1 / length, where a row has at most so many pairs.

    and brings `tallies` and `outcome_law`.
    """

    length = 1

    def __init__(self, epsilon, n_keys):
        super().__init__(epsilon)
        if not 1 <= n_keys <= LARGEST_KEYS:
            raise ValueError("keys must name at least one key (and at most 2**24)")
        self.n_keys = n_keys

    def tallies(self, counts, n):
        """Return (reports that tell of each key, those that say plus, those that say minus), arrays of floats."""
        raise TypeError(f"{type(self).__name__} does not say what its counts tell: implement `tallies`")

    def outcome_law(self, pairs):
        """Return the law of the report of a set, exactly: a list of Fractions over all reports, for few keys.

        pairs : dict from key numbers to places, integers from 0 to 2^32.
        """
        raise TypeError(f"{type(self).__name__} does not state its law: implement `outcome_law`")

    def outcome_of(self, reports):
        """Return which entry of `outcome_law` each report is."""
        raise TypeError(f"{type(self).__name__} does not relate reports to its law: implement `outcome_of`")

    def told(self):
        """Return (share, total) of a key that a report adds to n times the estimates, exactly: plus, minus, nothing.

        Of the reports that tell of the key; n is their number.
        """
        right, turned, other = self.cell
        slope, gap = (right + turned - 2 * other) / self.length, (right - turned) / self.length
        if not slope:
            raise ValueError("the reports of a later round do not tell how often a key is held: audit the first round")
        said, none = (1 - 2 * other) / slope, -2 * other / slope
        return (said, 1 / gap), (said, -1 / gap), (none, Fraction(0))

    def asked(self, key):
        """Return how likely a report tells of a key, whatever the user holds."""
        return Fraction(1)

    @property
    def input_codes(self):
        """Numbers of the sets whose values are at the bounds: a digit (none, low, high) for each key, the first last.

        Every other set's report is a mixture of theirs.
        """
        return range(3 ** min(self.n_keys, 39))  # (of more it is only told that they are too many)

    def transition_matrix(self):
        """Return the law of the report of each of these sets, for few keys."""
        if self.n_keys > 5:
            raise ValueError("the law of more than 5 keys is not enumerated")
        sets = product((None, 0, STEPS), repeat=self.n_keys)
        return [self.outcome_law({k: v for k, v in enumerate(held[::-1]) if v is not None}) for held in sets]

    def slots(self, n):
        """Return how likely each of n slots is, exactly, where a word w names slot floor(w n / 2^64)."""
        edges = [-(-k * WORD // n) for k in range(n + 1)]
        return [Fraction(b - a, WORD) for a, b in pairwise(edges)]
