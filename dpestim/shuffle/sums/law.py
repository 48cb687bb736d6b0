"""What laws of sums share: numbers become fixed points between their bounds, and messages a total."""

import numpy as np

from dpestim._core import pm
from dpestim.shuffle.law import ONE, ShuffleLaw


class SumLaw(ShuffleLaw):
    """Base of the laws of one number a user, which is a position: 0 at its lower bound, 1 at its upper one.

    Codes are int64 fixed points, 0 to `ONE`. A sub-class brings, besides what `ShuffleLaw` says,

    total(counts, n)
        An unbiased estimate of the sum of the positions of n users.
    variance(n, counts=None)
        That of `total`, at worst over their positions; or over those that the counts leave open.
    """

    code_dtype = np.dtype(np.int64)

    def encode(self, x, low, high, out):
        """Write the fixed points of values in the user's units; those beyond the bounds are clipped, NaN is `low`."""
        pm.encode(x, low, high, float(ONE) / (high - low), ONE, 1.0, 0.0, 0.0, 0, out)

    def fits(self, low, high):
        """Tell whether there are floats enough between two bounds."""
        return True

    def total(self, counts, n):
        """Return the estimated sum of positions."""
        raise TypeError(f"{type(self).__name__} does not say what its messages add up to: implement `total`")

    def variance(self, n, counts=None):
        """Return the variance of `total`."""
        raise TypeError(f"{type(self).__name__} does not say how far off it may be: implement `variance`")


class BitMessages:
    """Messages are bits, of which the ones are counted; a mixin, which stands left of the law's base."""

    report_dtype = np.dtype(np.uint8)
    n_counts = 1

    def check_reports(self, reports):
        """Refuse what is no bit."""
        if int(reports.max()) > 1:
            raise ValueError("a message must be 0 or 1")

    def count(self, reports, counts):
        """Add the number of ones."""
        counts[0] += np.count_nonzero(reports)
