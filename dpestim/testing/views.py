"""What estimates from views of rows (`dpestim.local.views`), of which each user reports some.

Promises are those of the laws; what is sent is looked at with many equal rows, `learning.N` of them: an estimated share
further than `learning.Z` standard deviations from the truth fails (alpha = 1e-6 for a few hundred cells).
"""

import numpy as np

from dpestim.testing.learning import (
    Learners,
    N,
    Z,
    check_learner_promise,
    check_learner_refusals,
    check_learner_verbs,
)
from dpestim.testing.tools import require


class Viewed(Learners):
    """What estimates from views, to check."""

    wrong = {**Learners.wrong, "method": ("other", None, 1), "branching": (1, 2.5, "other", True, None)}

    def checks(self):
        """Return the checks."""
        return CHECKS


def check_views_are_reported(viewed):
    """Of equal rows, every view has the share 1 at its value, and 0 elsewhere."""
    rows = np.repeat(viewed.rows(1)[0], N, axis=0)
    est = viewed.fresh().fit(rows)
    columns = est._columns
    for number, (seen, law) in enumerate(zip(columns.read(est._parts(rows[:1], columns, False), None, False),
                                             columns.laws)):
        counts, m = columns.told(number, est._counts, N)
        truth = np.zeros(law.n_categories)
        truth[seen[np.arange(1)]] = 1.0
        truth = law.truth(truth)
        require(abs(m - N * columns.n_sampled / len(columns)) < Z * np.sqrt(N), "views must be drawn equally often")
        room = Z * np.sqrt(max(float(np.max(law.variance(m, f))) for f in (0.0, 1.0)) + 1 / m**2)
        require(np.abs(law.estimate(counts, m) - truth).max() < room, "what is reported is not the view of the row")
    for k, (feature, values) in enumerate(zip(columns.row, est._parts(rows[:1], columns, False))):
        if hasattr(est, "_tree"):
            _check_ranges(est._tree(k), int(feature.read(values, None)[0][0]), feature.n_values)


def _check_ranges(tree, place, n):
    """Of equal rows, a range has the share 1 where the value lies in it, else 0, but for the stated error."""
    for low, high in ((place, place + 1), (0, n), (0, place), (place + 1, n), (0, n // 2), (1, n)):
        if low < high:
            share, error = tree.range(low, high)
            truth = float(low <= place < high)
            require(abs(share - truth) < Z * float(error(truth)) + 1e-6, "ranges must be the truth, but for noise")


CHECKS = (check_learner_promise, check_learner_verbs, check_views_are_reported, check_learner_refusals)
