"""A row of a stream is released anew only where it is far from the latest release: the sparse vector technique."""

from fractions import Fraction

import numpy as np

from dpestim.central.selection.sparse_vector import SparseVectorLaw
from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_amount, canonical_epsilon
from dpestim.records import record
from dpestim.stream.reading import Steps, checked_count
from dpestim.stream.rows import RepeatedRows, check_rate
from dpestim.stream.widths import RepeatedWidths

#: Columns of noise: of the threshold, of queries and of numbers.
_THRESHOLD, _QUERY, _NUMBER = range(3)


@record
class SparseOf:
    """How rows are compared with the latest release, in integers."""

    steps: Steps
    law: SparseVectorLaw
    limit: int

    #: Users differ at every step; few runs of few steps reach the worst case.
    every, n_short, tight = True, 4, 0.1

    def read(self, X, strict):
        """Return integers of the steps, and whether it was one step."""
        return self.steps.read(X, strict)

    def begin(self):
        """Return the state: the secret noise of the threshold, the latest release, and how many there were."""
        return {"noise": None, "latest": None, "released": 0}

    def take(self, state, steps, noise):
        """Return what is known of the next steps."""
        values, laws = np.empty(steps.shape), []
        if state["noise"] is None:
            state["noise"] = int(noise.take(self.law.threshold, _THRESHOLD, 1)[0])
        for t, row in enumerate(steps):
            if state["latest"] is None or (state["released"] < self.law.max_positives and self._is_far(
                    row, state, noise)):
                state["latest"] = row + noise.take(self.law.number, _NUMBER, len(row))
                state["released"] += 1
                laws.append(self.law.number)
            else:
                laws.append(None if state["released"] < self.law.max_positives else ())
            values[t] = state["latest"]
        # (where it was compared, it is less than limit - 1 + noise of the threshold - noise of the query from the row)
        far = [np.inf if law == () else self.limit - 1 for law in laws]
        widths = RepeatedWidths(self.steps, values, [law or None for law in laws], far,
                                (self.law.threshold, self.law.query))
        more = {"renewed_": np.array([bool(law) for law in laws]), "n_releases_": state["released"]}
        return {"values": values * float(self.steps.unit), "widths": widths, "more": more}

    def _is_far(self, row, state, noise):
        far = int(np.abs(row - state["latest"]).sum())
        return far + int(noise.take(self.law.query, _QUERY, 1)[0]) >= self.limit + state["noise"]

    def loss(self, one, two, noise):
        """Return how much epsilon two streams cost at most, given the releases of one of them."""
        law, state = self.law, self.begin()
        rates = [each.rate_of_decay for each in (law.threshold, law.query, law.number)]
        latest, shift, total, compared = None, 0, Fraction(0), []
        for a, b in zip(one, two):
            found = self.take(state, a[None], noise)["more"]["renewed_"][0]
            if latest is not None and (found or state["released"] < self.law.max_positives):
                moved = abs(int(np.abs(a - latest).sum() - np.abs(b - latest).sum()))
                shift = max(shift, moved)
                compared += [moved] * bool(found)
            if found:
                total += rates[_NUMBER] * int(np.abs(a - b).sum())
            latest = state["latest"]
        return total + rates[_THRESHOLD] * shift + rates[_QUERY] * sum(shift + moved for moved in compared)


class SVTRelease(RepeatedRows):
    """Release a row of numbers at every step, and look for a new one only where the stream has moved far.

    Until the noisy L1 distance of a row and the latest release reaches a threshold, the latest release is repeated,
    which costs nothing more. After `max_releases` it is repeated for ever.

    **Privacy.** Pure epsilon in the central model, for all releases of the stream together, however long it is, and for
    users who may change *every* step, by `change` in the L1 norm of each row. The state holds secret noise: keep it,
    and its pickles, where the data are. The curator, who holds the data, must be trusted.

    **Utility.** A release has noise of scale 2 max_releases change / epsilon in each cell. How far a repeated one is
    from the truth is at most about the threshold, in the L1 norm, but for the noise of comparisons: intervals are for
    that, and after the last release they are as wide as the bounds. Take it for streams that change seldom, and
    `StreamCounter` for events that add up.

    **Complexity.** O(cells) time and memory a step.

    {parameters}
    References
    ----------
    Lyu, Su, Li (2017), "Understanding the sparse vector technique for differential privacy", PVLDB 10(6). The proof:
    ``sparse.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.stream import SVTRelease
    >>> people = np.repeat([[500, 20], [100, 420]], 50, axis=0)  # in two rooms
    >>> rooms = SVTRelease(2.0, n_cells=2, bounds=(0, 1000), change=2, threshold=200, max_releases=3, random_state=0)
    >>> _ = rooms.fit(people)
    >>> np.flatnonzero(rooms.renewed_)
    array([ 0, 50])
    """

    _more_parameters = """
    {rows}
    {row values}
    threshold : float, default=1.0
        The L1 distance from the latest release at which a new one is made; public.
    max_releases : int, default=10
        Releases at most, the first one included.
    """
    _more_attributes = """
    {latest releases}
    {renewed}
    n_releases_ : int
        New releases so far.
    """
    _quantity = "latest release"
    _test_wrong = {"n_cells": (0, None, True), "threshold": (-1, "a", None), "max_releases": (0, None, 1.5)}

    def __init__(self, epsilon=1.0, *, n_cells=2, bounds=(0, 1), change=None, resolution=1, threshold=1.0,
                 max_releases=10, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.n_cells = n_cells
        self.bounds = bounds
        self.change = change
        self.resolution = resolution
        self.threshold = threshold
        self.max_releases = max_releases
        self.ledger = ledger
        self.random_state = random_state

    # ---------------------------------------------------------------- inside

    def _relation(self):
        return Neighbours.USER

    def _spec(self):
        steps = self._rows()
        limit = canonical_amount(self.threshold, "threshold") / steps.unit
        if not limit < 1 << 50:
            raise ValueError("threshold must be a number of at least 0 and below 2^50 units of resolution")
        count = checked_count("max_releases", self.max_releases, 1 << 16, none=False)
        law = SparseVectorLaw(canonical_epsilon(self.epsilon), steps.change, 0, count, False, Fraction(1, 2))
        check_rate(lambda: min(each.rate_of_decay for each in (law.threshold, law.query, law.number)))
        return SparseOf(steps, law, int(limit))

    def _notes(self):
        return (f"User level: a user may change every row, by at most {float(self._spec().steps.change):g} units of "
                "resolution in the L1 norm. The steps at which something is released are public.",)

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 1.0, "n_cells": 2, "max_releases": 3},
            {"epsilon": 4.0, "n_cells": 3, "bounds": (0, 2), "change": 1, "threshold": 2.0, "resolution": 0.5},
        ]
