"""Reports of numbers of neighbours, with noise, or of bits: what `EdgeCountEstimator` and `DegreeEstimator` share."""


import numpy as np

from dpestim.graph.lists.base import BitReports, ListEstimator
from dpestim.graph.lists.reading import checked_nodes, checked_users
from dpestim.graph.lists.two_sided import TwoSidedLaw
from dpestim.privacy.exact import canonical_epsilon, log_upper
from dpestim.records import record

METHODS = ("laplace", "rnl")


@record(eq=False)
class Degrees:
    """Reported numbers of neighbours: that of ``users[r]`` is ``values[r]``."""

    users: np.ndarray
    values: np.ndarray
    n_nodes: int


class EitherReports(BitReports, ListEstimator):
    """Base: users report how many neighbours they have, with noise ("laplace"), or all bits ("rnl")."""

    @property
    def bit_law_(self):
        """Of method="rnl": the law of a reported bit, with `p`, `q` and `variance`."""
        if self.method != "rnl":
            raise AttributeError('method="laplace" reports no bits: take method="rnl" for a law of bits')
        return super().bit_law_

    def _law(self):
        return TwoSidedLaw(canonical_epsilon(self.epsilon))

    def _check(self):
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ValueError(f"method must be one of {sorted(METHODS)}")
        if self.method == "rnl":
            super()._check()
        else:
            super(BitReports, self)._check()
            _ = self._law().ratio

    def _randomised(self, found, source):
        if self.method == "rnl":
            return super()._randomised(found, source)
        counted = (found.after() if self._half else found).lengths
        return counted + self._law().draw(source, found.users)

    def _read_reports(self, reports, users, n_nodes):
        if self.method == "rnl":
            return super()._read_reports(reports, users, n_nodes)
        if not isinstance(reports, np.ndarray) or reports.ndim != 1 or reports.dtype != np.int64 or (
                np.ma.isMA(reports) or not len(reports)):
            raise ValueError("reports must be an array of int64 of one dimension, as privatize returns it")
        if n_nodes is None and users is not None:
            raise ValueError("n_nodes must be given for reports of some users: the public number of nodes")
        n_nodes = checked_nodes(len(reports) if n_nodes is None else n_nodes)
        return Degrees(checked_users(users, n_nodes, len(reports)), reports.copy(), n_nodes)

    def _joined(self, mine, theirs):
        if self.method == "rnl":
            return super()._joined(mine, theirs)
        users = np.concatenate([mine.users, theirs.users])
        order = np.argsort(users, kind="stable")
        return Degrees(users[order], np.concatenate([mine.values, theirs.values])[order], mine.n_nodes)

    # ---------------------------------------------------------------- for the checks

    def _loss(self):
        return super()._loss() if self.method == "rnl" else log_upper(1 / self._law().ratio)

    def _numbers(self, reports):
        return super()._numbers(reports) if self.method == "rnl" else reports[:, None]

    def _noise_of(self, X, reports):
        if self.method == "rnl":
            return super()._noise_of(X, reports)
        return reports - (np.triu(X, 1) if self._half else X).sum(axis=1, dtype=np.int64)

    def _noise_chances(self, values):
        return super()._noise_chances(values) if self.method == "rnl" else self._law().chances(values)
