"""Frequent values of a domain that nobody can list, from one report of each user about a part of the user's value."""

import math
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from dpestim.inputs import category_rows, columns_of
from dpestim.inputs.columns import object_array
from dpestim.local.categories.open import Estimates
from dpestim.local.client import Client
from dpestim.local.columns import column_names
from dpestim.local.domains.codes import IntegerCodes, TextCodes
from dpestim.local.domains.depths import METHODS, depths_of, error_of, views_of
from dpestim.local.domains.growing import grow, join
from dpestim.local.domains.prefixes import hashed
from dpestim.local.interval_ends import ends
from dpestim.local.server import Server
from dpestim.local.views import ViewColumns
from dpestim.privacy.exact import canonical_epsilon
from dpestim.results import Part

#: Users that are expected where nobody says how many.
MANY = 1_000_000
#: Fragments of each place that are tried with a hash.
_PER_HASH = {"bitstogram": 1, "sfp": 2}


class HeavyHitters(NamedTuple):
    """Frequent values, their frequencies and standard errors, and which of them are confirmed; arrays."""

    values: np.ndarray
    frequencies: np.ndarray
    standard_errors: np.ndarray
    confirmed: np.ndarray


class HeavyHitterEstimator(Server, Client):
    """Find the most frequent values of a domain that nobody can list, and estimate their frequencies.

    Each user draws a part of the user's value, such as its first 22 bits, without looking at the value, and reports
    that part. The server finds frequent values part by part. A share of the users reports the whole value; these users
    have no part in finding, so that frequencies and intervals of what was found are those of values that were chosen
    before. Take this estimator for words, addresses or identifiers; where the values are listed, take
    `AdaptiveFrequencyEstimator`.

    **Privacy.** epsilon-local differential privacy for a row, exact; neighbours: any two rows of one user; nobody but
    the user's device is trusted (proof in ``hitters.md``).

    **Utility.** Frequencies are unbiased for every value, also for those that were found, up to collisions of public
    hashes, which standard errors count. A value is found with a probability of about 0.9 from a frequency of
    `detectable_` on. The probability that any of the confirmed values has at most the frequency `threshold` is at most
    `alpha`, by an exact binomial tail, and a normal approximation of collisions.

    **Complexity.** O(n) reports of a few bytes, and at most 2^14 candidates times the number of hashes for a level.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one row, in (0, 80].
    n_bits : int, default=None
        Values are integers from 0 to 2^n_bits - 1; at most 64.
    max_length : int, default=None
        Values are texts of at most `max_length` characters of `alphabet`. Exactly one of `n_bits` and `max_length` must
        be declared. All characters together must have at most 64 bits: twelve letters, or eight bytes.
    alphabet : str, default=None
        The public characters of a text, each once. None: texts are bytes of UTF-8, and `max_length` counts bytes.
    method : {"pem", "treehist", "bitstogram", "sfp"}, default="pem"
        What users report, and how values are found. "pem": prefixes, by local hashing. "treehist": prefixes, by one
        bit. "bitstogram": a fragment beside a hash of 10 bits; of each hash one value is found. "sfp": a fragment
        beside a hash of 8 bits; of each hash a few values are found. "pem" finds the rarest values.
    n_top : int, default=20
        How many values are looked for, from 1 to 1000.
    threshold : float, default=0.0
        The frequency that a confirmed value exceeds, in [0, 1).
    alpha : float, default=0.05
        The probability that any confirmed value has no larger frequency, at most; in (0, 1).
    n_users : int, default=None
        How many users are expected, which is public, for the choice of levels. None: 1,000,000.
    hash_seed : int, default=0
        Public seed of the hashes.
    {payment of rows}

    Attributes
    ----------
    heavy_hitters_ : HeavyHitters
        A named tuple of arrays: values, frequencies, standard_errors, confirmed; the largest frequency first.
    n_sampled_ : int
        Parts that a user reports: one.
    levels_ : tuple of int
        The bits after which a part ends.
    detectable_ : float
        The frequency from which a value is found with a probability of about 0.9, among as many users as expected.
    n_users_ : int
        Reports counted so far.
    randomizers_ : list of Randomizer
        The frozen law of each part, and of the whole value.
    privacy_ : PrivacyGuarantee
        The guarantee of one user's report.
    {columns seen}

    {refused reports}

    References
    ----------
    T. Wang, N. Li, S. Jha, "Locally differentially private heavy hitter identification", TDSC 2021 (PEM); R. Bassily,
    K. Nissim, U. Stemmer, A. Thakurta, "Practical locally private heavy hitters", NeurIPS 2017 (TreeHist, Bitstogram);
    Differential Privacy Team, Apple, "Learning with privacy at scale", 2017 (SFP); G. Cormode, S. Maddock, C. Maple,
    "Frequency estimation under local differential privacy", VLDB 2021 (local hashing with few hashes). How each method
    differs from its paper is in ``hitters.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import HeavyHitterEstimator
    >>> X = np.repeat(["anna", "bert", "carl"], [50_000, 30_000, 20_000])[:, None]
    >>> est = HeavyHitterEstimator(3.0, max_length=6, alphabet="abcdefghijklmnopqrstuvwxyz", n_top=3,
    ...                            n_users=100_000, random_state=0).fit(X)
    >>> est.heavy_hitters_.values.tolist()
    ['anna', 'bert', 'carl']
    """

    _checked_as = "heavy hitters"
    _domain, _same_domain = "n_bits or max_length", "the same values, levels and hashes"
    _no_law = Client._no_law | {"threshold", "alpha"}
    _found = None

    def __init__(self, epsilon=1.0, *, n_bits=None, max_length=None, alphabet=None, method="pem", n_top=20,
                 threshold=0.0, alpha=0.05, n_users=None, hash_seed=0, ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.n_bits = n_bits
        self.max_length = max_length
        self.alphabet = alphabet
        self.method = method
        self.n_top = n_top
        self.threshold = threshold
        self.alpha = alpha
        self.n_users = n_users
        self.hash_seed = hash_seed
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---------------------------------------------------------------- answers

    @property
    def heavy_hitters_(self):
        """The values that were found, with frequencies, standard errors and which of them are confirmed."""
        self._check_fitted()
        self._check_answers()
        codes = self._candidates()[: self.n_top]
        f, errors = self._estimates(codes)
        order = np.argsort(-f, kind="stable")
        codes, f, errors = codes[order], f[order], errors[order]
        return HeavyHitters(self._columns.row[0].values(codes), f, errors, self._confirmed(f, codes))

    def confidence_interval(self, level=0.95):
        """Return an array of shape (n_found, 2): intervals for the frequencies of `heavy_hitters_`, each by itself.

        Who reported for them had no part in finding the values. They are about the population from which the users are
        drawn, and are score intervals by a normal approximation.
        """
        if not 0 < level < 1:
            raise ValueError("level must lie strictly between 0 and 1")
        found = self.heavy_hitters_
        return ends(found.frequencies, ndtri(0.5 + level / 2), self._error_at).T

    def estimate(self, values):
        """Return the estimated frequencies of any values of the domain, and their standard errors.

        Parameters
        ----------
        values : array-like of shape (n_values,)

        Returns
        -------
        (frequencies, standard_errors) : named tuple of two ndarray of shape (n_values,)
        """
        self._check_fitted()
        values = values if isinstance(values, np.ndarray) else object_array(list(values))
        codes, why = self._columns.row[0].read(values, self.n_jobs)
        if why:
            raise ValueError(f"values {why}")
        return Estimates(*self._estimates(codes))

    def release(self):
        """Return `heavy_hitters_`."""
        return self.heavy_hitters_

    def to_frame(self, level=0.95):
        """Return a tidy pandas frame: value, frequency, standard_error, ci_low, ci_high, confirmed."""
        self._check_fitted()
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'dpestim[pandas]'") from error

        found, both = self.heavy_hitters_, self.confidence_interval(level)
        return pd.DataFrame({"value": found.values, "frequency": found.frequencies,
                             "standard_error": found.standard_errors, "ci_low": both[:, 0], "ci_high": both[:, 1],
                             "confirmed": found.confirmed})

    @property
    def levels_(self):
        """The bits after which a part ends."""
        self._check_fitted()
        return self._columns.depths.bits

    @property
    def detectable_(self):
        """The frequency from which a value is found with a probability of about 0.9."""
        return self._columns_now().depths.detectable

    def _result_parts(self, level):
        found = self.heavy_hitters_
        axes = (("hitter", found.values.tolist()),)
        return [Part("frequency", axes, found.frequencies, found.standard_errors, self.confidence_interval(level))]

    def _result_notes(self):
        sure = self.heavy_hitters_.confirmed
        return (f"{sure.sum()} of {len(sure)} values are confirmed (threshold = {self.threshold:g}, "
                f"alpha = {self.alpha:g}). The others can be values that nobody holds.",)

    # ---------------------------------------------------------------- inside: what is found

    def _candidates(self):
        """Return the codes that were found, the most frequent first, as they were when counts changed."""
        known = self._found
        if known is None or known[0] is not self._counts:
            known = self._found = self._counts, self._find()
        return known[1]

    def _find(self):
        columns, counts = self._columns, self._counts
        row, (bits, n_keep, n_views, _) = columns.row[0], columns.depths
        views = columns.columns[:-1:n_views]
        # (the views of a level are one: their counts add up)
        sums = [sum(counts[k * n_views : (k + 1) * n_views]) for k in range(len(bits))]
        told = [(own[:-1], int(own[-1])) for own in sums]
        if columns.method in _PER_HASH:
            hash_bits = views[0].hash_bits
            tables = [(view.law.estimate(own, m) if m else np.zeros(view.law.n_categories)).reshape(1 << hash_bits, -1)
                      for view, (own, m) in zip(views, told)]
            check = lambda codes: hashed(codes, views[0].columns)  # noqa: E731
            found, _ = join(tables, [view.n_bits for view in views], n_keep, _PER_HASH[columns.method], check)
            found = found[row.possible(found, row.n_bits)]
        else:
            levels = [(view.n_bits, *_asked(view.law, own, m)) for view, (own, m) in zip(views, told)]
            found, _ = grow(levels, n_keep, row.possible)
        if not isinstance(row, IntegerCodes):
            found = found[[value is not None for value in row.values(found)]]
        return found

    def _estimates(self, codes):
        """Return (frequencies, standard errors) of codes, by those users who reported whole values."""
        (counts, m), law = self._whole(), self._columns.laws[-1]
        if not m or not len(codes):
            return np.full((2, len(codes)), np.nan)
        f = law.estimate_of(codes.astype(law.code_dtype), counts, m)
        return f, self._error_at(np.clip(f, 0.0, 1.0))

    def _whole(self):
        return self._columns.told(len(self._columns.columns) - 1, self._counts, self._n_users)

    def _error_at(self, f):
        """Return the standard error at a frequency, with that of the draw of the users."""
        counts, m = self._whole()
        at_zero, slope = self._line(counts, m)
        return np.sqrt(np.maximum(at_zero + slope * f + f * (1 - f), 0.0) / m)

    def _line(self, counts, m):
        known = vars(self).get("_noise")
        if known is None or known[0] is not self._counts:
            known = self._noise = self._counts, self._columns.laws[-1].variance_line(counts, m)
        return known[1]

    def _confirmed(self, f, codes):
        """Return a mask: whose frequency exceeds the threshold, by Holm's procedure for as many as are looked for."""
        if not len(codes) or not self._whole()[1]:
            return np.zeros(len(codes), bool)
        t, n, (_, m), law = float(self.threshold), max(self.n_top, len(codes)), self._whole(), self._columns.laws[-1]
        # reports that support a value of frequency t are binomial; collisions, which are not in that, make the error of
        # their number larger, so that it is moved nearer to its mean in the same proportion
        p, q = float(law.p_star), float(law.q_star)
        s, error = q + t * (p - q), self._error_at(np.array([t]))
        moved = np.minimum(1.0, math.sqrt(s * (1 - s) / m) / (p - q) / error)
        chance = binom.sf(np.floor((s + (f - t) * (p - q) * moved) * m + 1e-6) - 1, m, s)
        chance = np.maximum(chance, ndtr(-(f - t) / error))  # (the largest frequency first)
        return np.logical_and.accumulate(chance <= float(self.alpha) / (n - np.arange(len(codes))))

    # ---------------------------------------------------------------- inside: the domain

    @property
    def _is_declared(self):
        return self.n_bits is not None or self.max_length is not None

    def _feature(self, name):
        """Return what makes codes of values, or raise ValueError."""
        if (self.n_bits is None) == (self.max_length is None):
            raise ValueError("n_bits (for integers) or max_length (for text) must be declared, and not both")
        if self.n_bits is not None:
            if self.alphabet is not None:
                raise ValueError("alphabet must be None for integers: declare max_length for text")
            return IntegerCodes(name, _whole(self.n_bits, "n_bits", 1, 64))
        alphabet = self.alphabet
        if alphabet is not None and (not isinstance(alphabet, str) or not alphabet or "\0" in alphabet
                                     or len(set(alphabet)) < len(alphabet)):
            raise ValueError("alphabet must be a string of different characters, without the character of code 0")
        length = _whole(self.max_length, "max_length", 1, 64)
        feature = TextCodes(name, length, alphabet)
        if feature.n_bits > 64:
            raise ValueError(f"max_length must be at most {64 // feature.width}, because a character of this alphabet "
                             f"takes {feature.width} bits, and all of them 64 at most")
        return feature

    def _declare(self, n_columns, names=None):
        if n_columns not in (None, 1):
            raise ValueError(f"X must have one column, the value of each user, got {n_columns}")
        return self._made(self._feature(column_names(1, None)[0]))

    def _columns_like(self, example):
        self._check_call_parameters()
        return super()._columns_like(example)

    def _infer(self, X, names):
        raise ValueError("n_bits (for integers) or max_length (for text) must be declared, because which values occur "
                         "is private")

    def _made(self, feature):
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ValueError(f"method must be one of {list(METHODS)}, got {self.method!r}")
        n_users = MANY if self.n_users is None else _whole(self.n_users, "n_users", 1, 1 << 53)
        n_top, seed = _whole(self.n_top, "n_top", 1, 1000), _whole(self.hash_seed, "hash_seed", 0, (1 << 64) - 1)
        epsilon = canonical_epsilon(self.epsilon)
        depths = depths_of(self.method, epsilon, feature.n_bits, n_top, n_users)
        views = views_of(self.method, epsilon, feature.n_bits, depths, n_users, seed)
        return PartColumns(views, n_sampled=1, features=[feature], depths=depths, method=self.method)

    def _like(self, columns):
        return self._made(columns.row[0])

    def _client(self, restart=False):
        return self

    def _container(self, X, strict):
        return category_rows(X, strict=strict)

    def _parts(self, X, columns, strict):
        return columns_of(X)

    def _check_call_parameters(self):
        super()._check_call_parameters()
        self._check_answers()

    def _check_answers(self):
        """Raise ValueError for what has no answer."""
        _whole(self.n_top, "n_top", 1, 1000)
        for name, least in (("threshold", True), ("alpha", False)):
            value = getattr(self, name)
            number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
            if not number or not (0 <= value < 1 if least else 0 < value < 1):
                raise ValueError(f"{name} must be a number in {'[' if least else '('}0, 1)")

    def _freeze(self, columns, names):
        super()._freeze(columns, names)
        self.n_sampled_ = columns.n_sampled

    def _forget(self):
        super()._forget()
        self._thaw()
        for name in ("_found", "_noise", "n_sampled_"):
            vars(self).pop(name, None)

    def __getstate__(self):
        state = super().__getstate__()
        for name in ("_found", "_noise"):
            state.pop(name, None)
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.two_d_array = False  # one column, of a domain that has to be declared
        return tags

    @staticmethod
    def _typical_parameters():
        return {"n_bits": 48}

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 2.0, "n_bits": 8, "n_top": 3, "n_users": 10_000},
                {"epsilon": 4.0, "max_length": 3, "alphabet": "abc", "n_top": 2, "method": "treehist",
                 "n_users": 10_000}]

    def _test_data(self, n_rows, seed=0):
        """Return rows of which half have one of three values."""
        rng = np.random.default_rng(seed)
        if self.max_length is None:
            values = rng.integers(0, 1 << min(self.n_bits, 60), n_rows)
            often = np.array([1, 2, 3]) % (1 << self.n_bits)
        else:
            values = np.array(["".join(row) for row in rng.choice(list(self.alphabet), (n_rows, self.max_length))])
            often = np.array([c * self.max_length for c in self.alphabet[:3]])
        own = rng.random(n_rows) < 0.5
        values[own] = often[rng.integers(0, len(often), own.sum())]
        return values[:, None], None


class PartColumns(ViewColumns):
    """Parts of a code, of which each user reports one, or the whole code."""

    def __init__(self, views, inferred="", keys=None, *, n_sampled, features, depths, method):
        super().__init__(views, inferred, keys, n_sampled=n_sampled, features=features)
        self.depths, self.method = depths, method

    def planned_error(self, f, n_users):
        """Return the standard error of a frequency among so many users, of whom those with whole values tell it."""
        return error_of(self.laws[-1], f, n_users / len(self))

    def with_columns(self, columns):
        """Return the same draw of other views."""
        return type(self)(columns, self.inferred, self.keys, n_sampled=self.n_sampled, features=self.row,
                          depths=self.depths, method=self.method)

    def named(self, names):
        """Return the same views of a feature with another name."""
        if list(names) == self.names:
            return self
        return type(self)(self.columns, self.inferred, self.keys, n_sampled=self.n_sampled,
                          features=[self.row[0].named(names[0])], depths=self.depths, method=self.method)


def _asked(law, counts, m):
    """Return (a function from prefixes to the estimates of all continuations by so many bits, the variance of one)."""
    if not m:
        return (lambda prefixes, n_more: np.zeros((len(prefixes), 1 << n_more))), 1.0
    return (lambda prefixes, n_more: law.continued(prefixes, n_more, counts, m)), law.variance_line(counts, m)[0] / m


def _whole(value, name, least, most):
    """Return an integer in a range, or raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
        raise ValueError(f"{name} must be an integer from {least} to {most}, got {value!r}")
    return int(value)
