"""Servers that mistreat the transformer that they were given."""

import numpy as np

from broken._make import MEAN
from dpestim.local import MeanEstimator


class ForgetsTheOthers(MeanEstimator):
    """The mean of SDPM's reports as they are: biased towards the middle."""

    def _means(self):
        _, errors, biases = super()._means()
        plain = [c.to_units(c.law.positions @ counts / counts.sum()) for c, counts in zip(self._columns, self._counts)]
        return np.array(plain), errors, 0 * biases


class TouchesWhatItWasGiven(MeanEstimator):
    """Works on the transformer itself instead of a clone."""

    def _add(self, client, columns, names, counts, n):
        super()._add(client, columns, names, counts, n)
        self.transformer.fitted_ = True


class ForgetsTheBlock(MeanEstimator):
    def _to_bind(self):
        """Be strict, and bound to a ledger, only where the transformer is."""
        return None, False


#: (class, its parameters, the check that must fail)
BROKEN = [
    (TouchesWhatItWasGiven, MEAN, "check_transformer_is_given"),
    (ForgetsTheBlock, MEAN, "check_block_is_kept"),
    (ForgetsTheOthers, MEAN, "check_means_cover"),
]
