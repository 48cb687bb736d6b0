"""The bits of a report: what its numbers are called, how many bits each needs, and how they lie in memory."""

from typing import NamedTuple


class Field(NamedTuple):
    """A part of a report: `count` numbers of `bits` bits each, in this order."""

    #: What it is called.
    name: str
    #: Bits of each number, 1 to 64.
    bits: int
    #: What each number is below; None: anything that the bits can say.
    below: int | None = None
    #: How many such numbers there are.
    count: int = 1
    #: Whether its bits lie eight to a byte in memory, too, lowest first, in whole bytes.
    packed: bool = False
    #: Bytes in memory where there are more than the bits need.
    n_bytes: int | None = None

    def widths(self):
        """Return the bits that each number in memory holds of it; 0 for a byte that has none."""
        if not self.packed:
            return [self.bits] * self.count
        bits = self.bits * self.count
        return [max(0, min(8, bits - 8 * byte)) for byte in range(self.n_bytes or -(-bits // 8))]


def bits_for(n):
    """Return how many bits a number below n needs, at least 1."""
    return max(1, (n - 1).bit_length())
