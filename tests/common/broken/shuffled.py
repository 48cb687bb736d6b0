"""What puts local estimators behind a shuffler, broken: promises for more users than there are, and to others."""

import numpy as np

from dpestim.local import GRRFrequencyEstimator
from dpestim.privacy import PrivacyGuarantee
from dpestim.shuffle.shuffled import ShuffledEstimator

GRR = GRRFrequencyEstimator(categories=[["a", "b", "c"]])
SETTING = {"estimator": GRR, "epsilon": 0.5, "delta": 0.02, "n_users": 6}


class Crowded(ShuffledEstimator):
    """Takes the users for twenty times as many."""

    def _server_for(self, n, width=None):
        return super()._server_for(20 * n, width)

    def _guarantee(self, columns, n, seeded=None):
        return super()._guarantee(columns, 20 * n, seeded)


class Local(ShuffledEstimator):
    """Charges, besides, what the wrapped one would."""

    def _pay(self, read, guarantee, n):
        read[0]._pay(read[2], n)
        return super()._pay(read, guarantee, n)


class Forgetful(ShuffledEstimator):
    """Mixes the fields of messages, and loses one."""

    def shuffle(self, messages, shuffler=None):
        return np.zeros_like(messages)


class Late(ShuffledEstimator):
    """Charges before it has looked at what it is given."""

    def _read(self, X, restart):
        self._charge(PrivacyGuarantee(1), 1)
        return super()._read(X, restart)


class Cheap(ShuffledEstimator):
    """Lets users be in two shuffles for the price of one."""

    def merge(self, other, *, users="disjoint"):
        return super().merge(other)


class Talkative(ShuffledEstimator):
    """Does not know of strict mode."""

    def _is_strict(self):
        return False


BROKEN = [
    (Crowded, SETTING, "check_shuffled_law"),
    (Local, SETTING, "check_shuffled_promise"),
    (Forgetful, SETTING, "check_shuffled_verbs"),
    (Late, SETTING, "check_shuffled_refuses"),
    (Cheap, SETTING, "check_state_stays"),
    (Talkative, SETTING, "check_shuffled_in_strict_mode"),
]
