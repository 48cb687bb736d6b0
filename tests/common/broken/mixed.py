"""Rows of several kinds that cost more than they say, look at values, share words, or count the wrong users."""

import numpy as np

from dpestim.local import GRRFrequencyEstimator, MixedEstimator, PMTransformer
from dpestim.local.columns import Columns
from dpestim.local.estimates import rows
from dpestim.local.estimates.sharing import shared_row
from dpestim.privacy.exact import canonical_epsilon

_CLIENTS = [("kind", GRRFrequencyEstimator(categories=[[0, 1, 2]]), [1]),
            ("size", PMTransformer(bounds=([0.0, -5.0], [1.0, 5.0]), grid=16), [0, 3])]
DRAWN = {"transformers": _CLIENTS, "epsilon": 2.0}
SPLIT = {"transformers": [_CLIENTS[0], ("size", PMTransformer(bounds=(0.0, 1.0), grid=16), [0])], "epsilon": 2.0,
         "strategy": "split"}


class AllToEach(MixedEstimator):
    """Every column has all of epsilon, as if reports of one user did not add up."""

    def _made(self, choices):
        return shared_row(choices, len(choices) * canonical_epsilon(self.epsilon), "split", None, None)


class Amplified(MixedEstimator):
    """Takes the draw for an amplification: epsilon grows with the number of columns."""

    def _made(self, choices):
        return shared_row(choices, 3 * canonical_epsilon(self.epsilon), "sample", 1, None)


class _ByValue(rows.DrawnRow):
    def randomize(self, data, source, first, n_jobs):
        out = super().randomize(data, source, first, n_jobs).reshape(len(data[0]), self.n_sampled, -1)
        out[np.asarray(data[0]) > 1, 0, 0] = 0
        return out.reshape(len(out), -1)


class DrawnByValue(MixedEstimator):
    """Who has a rare category reports it."""

    def _made(self, choices):
        row = super()._made(choices)
        if row.n_sampled:
            row.__class__ = _ByValue
        return row


class _OneColumn(rows.Row):
    def randomize(self, data, source, first, n_jobs):
        out = super().randomize(data, source, first, n_jobs)
        out[:, self.slices[1]] = Columns(self.columns[1:]).randomize(data[1:], source, first, n_jobs)
        return out


class SharesWords(MixedEstimator):
    """Two kinds of columns are numbered apart, and so have the same words."""

    def _made(self, choices):
        row = super()._made(choices)
        if not row.n_sampled:
            row.__class__ = _OneColumn
        return row


class PaysTwice(MixedEstimator):
    """The ledger pays for each client."""

    def _pay(self, columns, n_rows):
        for _ in columns.members[1:]:
            super()._pay(columns, n_rows)
        return super()._pay(columns, n_rows)


class FillsIn(MixedEstimator):
    """Takes a missing value for 0."""

    def _read(self, X, restart=False, check=None):
        return super()._read(np.nan_to_num(X), restart, check)


class OverAllUsers(MixedEstimator):
    """Divides counts of drawn columns by all users."""

    def _draws(self):
        return [self._n_users] * len(self._columns)


class GivenUsers(MixedEstimator):
    """Has intervals half as wide, as if noise were all that is left."""

    def confidence_interval(self, level=0.95):
        return {j: ci.mean(axis=-1, keepdims=True) + (ci - ci.mean(axis=-1, keepdims=True)) / 2
                for j, ci in super().confidence_interval(level).items()}


#: (class, its parameters, the check that must fail)
BROKEN = [
    (AllToEach, SPLIT, "check_row_promises"),
    (AllToEach, SPLIT, "check_row_by_enumeration"),
    (Amplified, DRAWN, "check_row_promises"),
    (DrawnByValue, DRAWN, "check_row_as_stated"),
    (SharesWords, SPLIT, "check_row_as_stated"),
    (PaysTwice, DRAWN, "check_one_ledger"),
    (FillsIn, DRAWN, "check_mixed_input"),
    (OverAllUsers, DRAWN, "check_mixed_estimates"),
    (GivenUsers, DRAWN, "check_mixed_estimates"),
]
