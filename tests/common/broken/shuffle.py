"""Protocols of the shuffle model that are broken: too little noise, wrong totals, promises about others."""

from dataclasses import replace

import numpy as np

from dpestim.shuffle import BooleanSum
from dpestim.shuffle.base import ShuffledColumns
from dpestim.shuffle.sums.boolean import NoisyBit

SETTING = {"epsilon": 1.0, "delta": 0.01, "n_users": 40}


def protocol(law):
    """Return a face of a broken law."""
    cls = type(law.__name__ + "Sum", (BooleanSum,), {"_randomizer": law, "__module__": __name__})
    return globals().setdefault(cls.__name__, cls)


class Honest(NoisyBit):
    """Sends the value, and states noise."""

    def privatize(self, codes, words, out):
        super().privatize(codes, words, out)
        out[:, 0] = codes


class Louder(NoisyBit):
    """States a local epsilon that is half of what it is."""

    @property
    def local_ratio(self):
        return super().local_ratio / 2


class Hopeful(NoisyBit):
    """Bounds delta as if ten times as many users took part."""

    def delta_at(self, epsilon, n_honest):
        return super().delta_at(epsilon, 10 * n_honest)


class Shifted(NoisyBit):
    """Forgets the coins when it adds up."""

    def total(self, counts, n):
        return float(counts[0])


class Anonymous(NoisyBit):
    """Counts by the place of a message, which no shuffled message keeps."""

    def count(self, reports, counts):
        counts[0] += int(reports[: len(reports) // 2].sum()) * 2


class LocalColumns(ShuffledColumns):
    """Says that nobody needs to be trusted."""

    def guarantee(self, *args, **kwargs):
        return replace(super().guarantee(*args, **kwargs), model="local")


class Trustless(BooleanSum):
    """Makes these columns."""

    def _made(self, *args, **kwargs):
        made = super()._made(*args, **kwargs)
        return LocalColumns(made.columns, made.inferred, made.keys)


class LonelyColumns(ShuffledColumns):
    """Lets fewer users take part than were to hide each other."""

    n_users = 1


class Lonely(BooleanSum):
    """Makes these columns."""

    def _made(self, *args, **kwargs):
        made = super()._made(*args, **kwargs)
        return LonelyColumns(made.columns, made.inferred, made.keys)


class Sure(BooleanSum):
    """Standard errors of half the size."""

    @property
    def standard_error_(self):
        return super().standard_error_ / 2


class Forgetful(BooleanSum):
    """Adds others' users and forgets their number."""

    def _merge(self, other, users):
        n = self._n_users
        super()._merge(other, users)
        self._n_users = n
        return self


class Curious(BooleanSum):
    """Refuses a value in strict mode."""

    def _read(self, X, restart=False, check=None):
        read = super()._read(X, restart, check)
        if not np.isfinite(read[0][0].astype(float)).all():
            raise ValueError("X contains NaN")
        return read


BROKEN = [
    (protocol(Honest), SETTING, "check_messages_follow_their_law"),
    (protocol(Louder), SETTING, "check_local_guarantee"),
    (protocol(Hopeful), SETTING, "check_bound_lies_above_the_truth"),
    (protocol(Shifted), SETTING, "check_totals"),
    (protocol(Anonymous), SETTING, "check_shuffling_changes_nothing"),
    (Sure, SETTING, "check_shuffle_answers"),
    (Trustless, SETTING, "check_shuffle_promise"),
    (Lonely, SETTING, "check_shuffle_refuses"),
    (Forgetful, SETTING, "check_shuffle_state"),
    (Curious, SETTING, "check_shuffle_in_strict_mode"),
]
