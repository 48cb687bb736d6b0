"""PrivKV: each user is asked for one key, drawn without looking at it, and says whether and with which sign."""

from fractions import Fraction

import numpy as np

from dpestim._core import keyvalue
from dpestim.inputs import smallest_dtype
from dpestim.local import pivots
from dpestim.local.keyvalue.estimator import KeyValueEstimator
from dpestim.local.keyvalue.law import STEPS, Cell, KeyValueRandomizer
from dpestim.local.reports import CodeReports
from dpestim.privacy.exact import WORD, uses_enough
from dpestim.privacy.key_value_weights import privkv_weight
from dpestim.rng import Stage

CORRECTIONS = ("unbiased", "published")


class Asked(CodeReports, KeyValueRandomizer):
    """Base: a report is 3 key + (0 plus, 1 minus, 2 nothing); a sub-class sets `heavy` and `light`."""

    n_words = 3
    #: Values for those who lack the key, places from 0 to 2^32; empty: a sign of theirs is a fair coin.
    fake = ()

    def __init__(self, epsilon, n_keys):
        super().__init__(epsilon, n_keys)
        self.n_counts = 3 * n_keys
        self.report_dtype = smallest_dtype(self.n_counts)

    def privatize(self, codes, words, out):
        """Write one code for each row."""
        drawn = words.dense(Stage.RESPONSE, 3).reshape(-1, 3)
        keyvalue.ask(codes.start, codes.index, codes.places, drawn, self.n_keys, self.heavy, self.light,
                     np.array(self.fake, np.int64), out.reshape(-1))

    def tallies(self, counts, n):
        """Return (reports about each key, those that say plus, those that say minus)."""
        plus, minus, nothing = np.float64(counts.reshape(-1, 3)).T
        return plus + minus + nothing, plus, minus

    def asked(self, key):
        """Return how likely a key is asked for."""
        return self.slots(self.n_keys)[key]

    def known_counts(self, counts, n):
        """Return how often each key was asked for."""
        if self.n_keys == 1:
            return []
        chances = np.array([float(p) for p in self.slots(self.n_keys)])
        return [pivots.grouped("keys that were asked for", counts.reshape(-1, 3).sum(axis=1), chances, n)]

    def outcome_law(self, pairs):
        """Return the law of the report of a set, over all codes."""
        heavy, light, law = Fraction(self.heavy, WORD), Fraction(self.light, WORD), []
        for key, asked in enumerate(self.slots(self.n_keys)):
            place = pairs.get(key, self.fake[key] if self.fake else None)
            if place is None:
                signs = [light, light]
            else:
                plus = Fraction(place, STEPS)
                signs = [plus * heavy + (1 - plus) * light, plus * light + (1 - plus) * heavy]
            law += [asked * p for p in (*signs, 1 - sum(signs))]
        return law

    def worst_ratio(self):
        """Return the ratio of both signs of the key that is asked for."""
        return Fraction(self.heavy, self.light)

    def outcome_of(self, reports):
        """Return the codes."""
        return reports[:, 0].astype(np.int64)


class PrivKV(Asked):
    """Of 2^64 answers 2^64 - 3t have the true sign, t the other, 2t none; without the key t, t and 2^64 - 2t."""

    def __init__(self, epsilon, n_keys):
        super().__init__(epsilon, n_keys)
        self.light = privkv_weight(self.epsilon)
        self.heavy = WORD - 3 * self.light
        light = Fraction(self.light, WORD)
        self.cell = Cell(1 - 3 * light, light, light)
        if not uses_enough(self.heavy, self.light, self.epsilon):
            self.slack = "a sign's probability is a multiple of 2**-64, which is coarser than this epsilon needs"


class PrivKVEstimator(KeyValueEstimator):
    """Estimate frequencies and means of keys by asking each user for one of them (PrivKV).

    Each user draws a key uniformly, independently of the held pairs. A holder of the key reports this fact and the sign
    of the value with noise; other users draw a random sign. PrivKV needs no padding length, and users may hold any
    number of pairs, but each of d keys gets only n / d reports. For many keys, of which users hold few, prefer
    `PCKVEstimator`.

    **Privacy.** epsilon-local differential privacy for the whole set of a user, exact (integer thresholds, every ratio,
    proof in ``privkv.md``), neighbours: any two sets of one user; no other party is trusted. Of epsilon1 for the key
    and epsilon2 for the value the guarantee is max(epsilon2, epsilon1 + ln(2 / (1 + e^-epsilon2))), which is less
    than their sum; both are chosen such that it is epsilon and errors of means are least: epsilon2 = epsilon and
    e^epsilon1 = (e^epsilon + 1) / 2.

    **Utility.** Frequencies are unbiased, and means up to the bias of a ratio, which falls as 1 / n, and of clipping to
    the bounds: means at a bound are off by some half of a standard error. The published means are biased
    towards 0 (in the setting f = 0.3, m = 0.6, epsilon1 = 1 their mean is 0.323).

    **Complexity.** O(log s) a user with s pairs, O(1) a report; log2(3 d) bits sent.

    {parameters}
    References
    ----------
    Q. Ye, H. Hu, X. Meng, H. Zheng, "PrivKV: key-value data collection with local differential privacy", IEEE S&P 2019,
    algorithms 1 to 3. The guarantee, the correction and the standard errors are derived in ``privkv.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from dpestim.local import PrivKVEstimator
    >>> ratings = np.tile([[5.0, 1.0], [4.0, 0.0]], (20_000, 1))  # 0: no rating
    >>> est = PrivKVEstimator(2.0, bounds=(1, 5), random_state=0).fit(csr_array(ratings))
    >>> np.abs(est.frequencies_ - [1.0, 0.5]).max() < 0.05
    np.True_
    >>> np.abs(est.means_ - [4.5, 1.0]).max() < 0.3
    np.True_
    """

    _randomizer = PrivKV
    _no_law = KeyValueEstimator._no_law | {"correction"}
    _more_parameters = """
    correction : {"unbiased", "published"}, default="unbiased"
        How `means_` are made: without bias, or as published, where signs that were made up pull them towards 0.
        Standard errors and intervals are those of the unbiased means either way.
    """

    def __init__(self, epsilon=1.0, *, keys=None, bounds=(-1.0, 1.0), correction="unbiased", ledger=None,
                 random_state=None, n_jobs=None):
        super().__init__(epsilon, keys=keys, bounds=bounds, ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.correction = correction

    def _check_call_parameters(self):
        super()._check_call_parameters()
        self._check_correction()

    def _check_correction(self):
        if not isinstance(self.correction, str) or self.correction not in CORRECTIONS:
            raise ValueError(f"correction must be one of {list(CORRECTIONS)}")

    def _means(self):
        self._check_correction()
        if self.correction == "unbiased":
            return super()._means()
        return published_means(self._columns.laws[0], self._counts[0], self._n_users)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [
            {"epsilon": 1.0, "keys": ["a", "b"]},
            {"epsilon": 2.0, "keys": 3, "bounds": (1.0, 5.0)},
        ]


def published_means(law, counts, n):
    """Return means as published: numbers of both signs, made right for the noise and clipped, and nothing else."""
    _, plus, minus = law.tallies(counts, n)
    said, turned = plus + minus, law.cell.turned / (law.cell.right + law.cell.turned)
    keep = float(1 - 2 * turned)
    right = [np.clip((sign - float(turned) * said) / keep, 0.0, said) for sign in (plus, minus)]
    return (right[0] - right[1]) / np.maximum(said, 1.0)
