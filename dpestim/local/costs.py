"""What a law costs, before anybody has reported: error, bits, time and memory, from the law's own numbers.

Bits are exact. The rest are estimates, of one thread of the machine that the constants were measured on. Of the
mechanisms of categories, with 16, 1,024 and 16,384 of them at epsilon = 1, times of clients were within a factor of
three of what was measured there; those of the server within a factor of four, but for a few below 5 milliseconds, which
were up to seven times longer. They are to compare mechanisms by, not to promise anything:

    client_us    3 ns a report and `Randomizer.word_ns` for each of its `n_words` random words
    server_s     `Randomizer.count_ns` for each report; then 20 us, and 3 ns for each count, to make estimates
    memory_mb    of the server: 8 bytes for each count, 32 for each estimate (itself, its error and its interval), and
                 a block of reports; whoever keeps all reports needs room for these, too
"""

from typing import NamedTuple

import numpy as np


class Spread(NamedTuple):
    """Variances, at n users ``floor + unit / n``: on average over what is estimated, and of the worst of it."""

    floor: float
    unit: float
    worst_floor: float
    worst_unit: float

    def rmse(self, n):
        """Return the root of the mean square error for n users."""
        return float(np.sqrt(self.floor + self.unit / n))

    def worst(self, n):
        """Return the standard error of the worst estimate for n users."""
        return float(np.sqrt(self.worst_floor + self.worst_unit / n))


class Cost(NamedTuple):
    """What one column of reports costs: estimates, but for the bits."""

    bits: float
    client_us: float
    server_s: float
    memory_mb: float


def cost_of(law, n_users, n_estimates):
    """Return the `Cost` of so many reports of a law, and of so many estimates."""
    block = min(n_users, law.counted_rows) * law.report_width * np.dtype(law.report_dtype).itemsize
    return Cost(
        bits=float(law.report_bits),
        client_us=(3 + law.word_ns * law.n_words) / 1e3,
        server_s=(law.count_ns * n_users + 3 * law.n_counts) / 1e9 + 2e-5,
        memory_mb=(8 * law.n_counts + 32 * n_estimates + block) / 1e6,
    )
