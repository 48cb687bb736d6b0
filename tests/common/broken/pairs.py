"""Key-value data, broken: laws beyond epsilon, kernels that do not follow them, wrong estimates, forgotten rules."""

from fractions import Fraction

import numpy as np

from dpestim.local import PCKVEstimator, PrivKVEstimator, PrivKVMEstimator
from dpestim.local.keyvalue.law import Cell
from dpestim.local.keyvalue.pckv import PCKVCodes, PCKVUnary
from dpestim.local.keyvalue.privkv import PrivKV
from dpestim.privacy import PrivacyGuarantee
from dpestim.privacy.key_value_weights import pckv_code_weights

SETTING = {"epsilon": 1.0, "keys": ["a", "b"]}
SAMPLED = {**SETTING, "variant": "ue", "padding_length": 1}  # (a law that is named is not chosen)


class Doubled(PCKVCodes):
    """Counts on a padding that is twice as long as the one that it samples with."""

    def __init__(self, epsilon, n_keys, padding_length=1):
        super().__init__(epsilon, n_keys, padding_length)
        self.weights = pckv_code_weights(self.epsilon, self.n_counts, 2 * self.length)
        right, other = (Fraction(w, self.weights.total) for w in (self.weights.keep, self.weights.other))
        self.cell = Cell(right, other, other)


class Overconfident(PCKVEstimator):
    _randomizer = Doubled


class Flat(PrivKV):
    """Answers as if no value were ever below the middle."""

    def privatize(self, codes, words, out):
        codes.places = np.full_like(codes.places, 1 << 32)
        super().privatize(codes, words, out)


class Optimist(PrivKVEstimator):
    _randomizer = Flat


class Deaf(PCKVUnary):
    """Forgets at the server that other cells are on at times."""

    def tallies(self, counts, n):
        asked, plus, minus = super().tallies(counts, n)
        return asked, 1.1 * plus, minus


class Louder(PCKVEstimator):
    _randomizer = Deaf


class Unsorted(PCKVEstimator):
    """Reads every second user of a frame only."""

    def _parts(self, X, columns, strict):
        return [X[::2] if hasattr(X, "columns") else X]


class Repeating(PrivKVMEstimator):
    """Draws the same words in every round."""

    def _pay(self, columns, n_rows):
        return super(PrivKVMEstimator, self)._pay(columns, n_rows).part(0)


class Eager(PrivKVEstimator):
    """Charges before it has looked at what it is given."""

    def _read(self, X, restart=False, check=None):
        self._charge(PrivacyGuarantee(1), 1)
        return super()._read(X, restart, check)


class Cheap(PrivKVEstimator):
    """Lets users report twice for the price of one."""

    def merge(self, other, *, users="disjoint"):
        return super().merge(other)


class Talkative(PCKVEstimator):
    """Does not know of strict mode."""

    def _is_strict(self):
        return False


BROKEN = [
    (Overconfident, {**SAMPLED, "padding_length": 2}, "check_pair_law"),
    (Optimist, SETTING, "check_pair_reports"),
    (Louder, SAMPLED, "check_pair_estimates"),
    (Unsorted, SAMPLED, "check_pair_verbs"),
    (Repeating, {**SETTING, "n_rounds": 2}, "check_pair_rounds"),
    (Eager, SETTING, "check_pair_refusals"),
    (Cheap, SETTING, "check_pair_state"),
    (Talkative, SAMPLED, "check_pair_strict_mode"),
]
