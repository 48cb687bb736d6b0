"""Noise in shares: each party adds one, and the shares of enough honest parties protect every record (`noise.md`).

    PolyaShares              sums are discrete Laplace noise: pure epsilon
    DiscreteGaussianShares   sums are discrete Gaussian noise up to a stated distance
    SkellamShares            sums are Skellam noise: Poisson minus Poisson
    BinomialShares           sums are binomial noise: fair coins minus half of their number

All are integers, drawn exactly. What a sum of shares promises follows from its law (`laws_of_sums`).
"""

import math
from dataclasses import fields
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from dpestim.accounting import PrivacyLossDistribution
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.distributed.exact_poisson import ExactPoisson
from dpestim.distributed.gaussian_share import gaussian_law_of
from dpestim.distributed.shared_noise import SharedNoise
from dpestim.exact_reals import BitStream
from dpestim.parties.laws_of_sums import (
    binomial_law,
    error_of,
    gaussian_distance,
    gaussian_law,
    polya_law,
    shifted_pair,
    skellam_law,
)
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.rounding import amount, positive, whole
from dpestim.privacy.trust import Parties
from dpestim.records import record
from dpestim.rng import Stage
from dpestim.statistics.calibrated_noise import Noise

#: The least delta: errors of laws in floats are added to it, some 1e-11 for each integer that moves.
_LEAST_DELTA = Fraction(1, 10**9)
#: The largest standard deviation of a sum of shares, whose law is worked out integer by integer.
_LARGEST = 20_000
#: Relative distance at which the search for the least noise stops.
_CLOSE = 0.005
#: The least variance of a share of discrete Gaussian noise: their sums are as good as discrete Gaussian from here on.
_LEAST_SHARE = 3
#: A Poisson number of a larger mean is a sum of several.
_PIECE = 1024
#: How many bits are 1, of each number of 16 bits.
_ONES = np.array([number.bit_count() for number in range(1 << 16)], np.uint8)


@record
class NoiseShares:
    """Integers that each of `n_parties` draws and adds to its own integers before they are masked and sent.

    Parameters
    ----------
    n_parties : int
        How many parties add a share.
    honest : int
        How many of them follow the protocol, stay until the end and tell nobody their share, at least.
    epsilon : float
        Of the sum, with the shares of `honest` parties.
    delta : float, default=0
        0 for `PolyaShares`, at least 1e-9 for the others.
    change : int, default=1
        By how much a record can change one integer of the sum, at most.
    n_changed : int, default=1
        How many integers of the sum a record can change, at most.
    neighbours : Neighbours or str, default="add_remove"
        For which neighbours `change` and `n_changed` hold.

    Raises
    ------
    ValueError
        For a parameter out of range, or noise too large: take a coarser unit of the integers.
    """

    n_parties: int
    honest: int
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    change: int = 1
    n_changed: int = 1
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    #: whether the law needs a delta
    needs_delta: ClassVar[bool] = True

    def __post_init__(self):
        """Keep exact numbers, or raise ValueError."""
        for name, value in (
            ("n_parties", whole(self.n_parties, "n_parties")), ("honest", whole(self.honest, "honest")),
            ("epsilon", positive(self.epsilon, "epsilon")), ("delta", amount(self.delta, "delta", 1)),
            ("change", whole(self.change, "change")), ("n_changed", whole(self.n_changed, "n_changed")),
        ):
            object.__setattr__(self, name, value)
        try:
            object.__setattr__(self, "neighbours", Neighbours(self.neighbours))
        except ValueError:
            raise ValueError('neighbours must be a member of dpestim.privacy.Neighbours or its name, such as '
                             f'"add_remove", got {self.neighbours!r}') from None
        if self.honest > self.n_parties:
            raise ValueError(f"honest must be at most n_parties, {self.n_parties}, got {self.honest}")
        if self.needs_delta and not _LEAST_DELTA <= self.delta < 1:
            raise ValueError(f"delta must be from 1e-9 to below 1 for {type(self).__name__}: declare one, or take "
                             "PolyaShares, which need none")
        if not self.needs_delta and self.delta:
            raise ValueError("delta must be 0 for PolyaShares, which do not use it: leave it out")
        _ = self.variance_of_share  # ValueError, where no noise suffices

    # ---------------------------------------------------------------- what a sub-class brings

    @property
    def variance_of_share(self):
        """The variance of the share of one party, a float."""
        raise TypeError(f"{type(self).__name__} does not state its variance: implement `variance_of_share`")

    def draw(self, source, size):
        """Return the share of one party: so many integers, an array of int64.

        Parameters
        ----------
        source : dpestim.rng.WordSource
            Of this party, from which nobody else draws.
        size : int
        """
        raise TypeError(f"{type(self).__name__} does not say how it is drawn: implement `draw`")

    def law(self, n_shares):
        """Return the probabilities of 0, 1, 2, ... of a sum of so many shares, which is symmetric, up to the tails."""
        raise TypeError(f"{type(self).__name__} does not state its law: implement `law`")

    # ---------------------------------------------------------------- what all have

    @property
    def distance(self):
        """How far the law of the sum is from the law in the name, in total variation; 0: it is that law."""
        return 0.0

    @property
    def variance(self):
        """The variance of a number of the sum, with the shares of all parties."""
        return self.n_parties * self.variance_of_share

    def half_width(self, confidence, n_shares=None):
        """Return the least integer that the noise of so many shares (None: all) exceeds with 1 - confidence at most."""
        law = self.law(self.n_parties if n_shares is None else whole(n_shares, "n_shares"))
        wanted = amount(confidence, "confidence", 1)
        if not 0 < wanted <= 1 - Fraction(1, 10**9):
            raise ValueError(f"confidence must be above 0 and at most 1 - 1e-9, got {confidence!r}")
        inside = 2 * np.cumsum(law) - law[0]
        return int(np.searchsorted(inside, float(wanted) + 2 * error_of(law)))

    def privacy_against(self, k):
        """Return what holds where k of the parties collude, drop out or lie about their share.

        Parameters
        ----------
        k : int
            How many parties do not add a share that is secret: they tell it to others, send nothing, or add none. Two
            parties that differ count twice, one that does both once.

        Returns
        -------
        PrivacyGuarantee
            For the records of the other parties, against the server and these k parties together. Its epsilon is
            infinite where no party is left.
        """
        k = whole(k, "k", 0)
        if k > self.n_parties:
            raise ValueError(f"k must be at most n_parties, {self.n_parties}, got {k}")
        left = self.n_parties - k
        if not left:
            return self._promised(k, math.inf, None, (
                f"All {self.n_parties} parties collude, drop out or lie: no noise is left.",))
        return self._promised(k, *self._kept(left), (
            f"Each of {self.n_parties} parties adds a share of the noise. The guarantee is for the records of honest "
            f"parties, where up to {k} of the parties collude with the server, drop out or lie about their share.",
            "Who trusts no server needs a secure sum besides: shares protect the sum, and no message.",))

    @property
    def guarantee(self):
        """What holds with `honest` honest parties: `privacy_against` of all others."""
        return self.privacy_against(self.n_parties - self.honest)

    def _promised(self, k, epsilon, curve, notes):
        # (where nothing holds with this delta, delta 1 says so)
        parties = () if k == self.n_parties else (Parties(self.n_parties, k, sums=True),)
        return PrivacyGuarantee(epsilon, self.delta, "central", self.neighbours, None, notes, curve=curve,
                                parties=parties)

    def _kept(self, left):
        """Return (epsilon, the curve or None) of the shares of so many honest parties."""
        curve = self._losses(left)
        epsilon = self.epsilon if left >= self.honest else curve.epsilon_at(self.delta)
        return epsilon, curve

    def _losses(self, left):
        return _losses(tuple(self.law(left).tolist()), self.change, self.n_changed)


@lru_cache(maxsize=64)
def _losses(law, change, n_changed):
    """Return the losses of a symmetric log-concave law on integers, of which so many move by so much."""
    return PrivacyLossDistribution.from_pair(*shifted_pair(np.array(law), change)).compose(n_changed)


class PolyaShares(NoiseShares):
    """Shares of discrete Laplace noise: differences of two Polya numbers. Pure epsilon; the shares of `honest` suffice.

    Examples
    --------
    >>> from dpestim.parties import PolyaShares
    >>> shares = PolyaShares(n_parties=5, honest=4, epsilon=1.0)
    >>> [round(float(shares.privacy_against(k).epsilon), 2) for k in (0, 1, 2, 3)]
    [1.0, 1.0, 1.27, 1.68]
    """

    needs_delta = False

    @cached_property
    def _shared(self):
        law = DiscreteLaplaceLaw(self.epsilon, Fraction(0), Fraction(self.change * self.n_changed), 0)
        return SharedNoise(Noise(law, 1), self.n_parties, self.honest)

    @property
    def variance_of_share(self):
        """The variance of the share of one party, a float."""
        return self._shared.single.variance / self.honest

    def draw(self, source, size):
        """Return the share of one party."""
        return self._shared.share.draw(source, size).view(np.int64)

    def law(self, n_shares):
        """Return the probabilities of 0, 1, 2, ..., of a sum of so many shares, up to the tails."""
        return polya_law(float(self._shared.law.rate_of_decay), n_shares / self.honest)

    def half_width(self, confidence, n_shares=None):
        """Return the least integer that the noise of so many shares (None: all) exceeds with 1 - confidence at most."""
        n_shares = self.n_parties if n_shares is None else whole(n_shares, "n_shares")
        return int(SharedNoise(self._shared.single, n_shares, self.honest).half_width(float(confidence)))

    def _kept(self, left):
        epsilon = self._shared.epsilon_left(self.n_changed, left)
        return (self.epsilon if left >= self.honest else Fraction(epsilon)), None


class _Calibrated(NoiseShares):
    """Shares whose size is the least, on a grid, with which `honest` of them keep (epsilon, delta)."""

    @cached_property
    def scale(self):
        """The parameter of one share, which `_rounded` of its variance is: about the least that keeps delta."""
        return _least(type(self), *(getattr(self, field.name) for field in fields(self)))

    @classmethod
    def _rounded(cls, variance):
        """Return the parameter of the least share that has at least this variance."""
        raise TypeError(f"{cls.__name__} has no grid of sizes: implement `_rounded`")

    @classmethod
    def _law(cls, scale, n_shares):
        """Return the law of a sum of so many shares of a parameter."""
        raise TypeError(f"{cls.__name__} does not state its law: implement `_law`")

    @classmethod
    def _variance(cls, scale):
        """Return the variance of a share of a parameter."""
        raise TypeError(f"{cls.__name__} does not state its variance: implement `_variance`")

    @property
    def variance_of_share(self):
        """The variance of the share of one party, a float."""
        return self._variance(self.scale)

    def law(self, n_shares):
        """Return the probabilities of 0, 1, 2, ..., of a sum of so many shares, up to the tails."""
        return self._law(self.scale, n_shares)


@lru_cache(maxsize=64)
def _least(cls, n_parties, honest, epsilon, delta, change, n_changed, neighbours):
    """Return about the least parameter of a share with which the sum of `honest` of them keeps (epsilon, delta)."""

    def keeps(sigma):
        scale = cls._rounded(sigma**2 / honest)
        if max(cls._variance(scale) * honest, cls._variance(scale) * n_parties) > 1.1 * _LARGEST**2:
            raise ValueError(f"epsilon is too small for a change of {change} in {n_changed} integers, because the "
                             f"standard deviation of the noise would exceed {_LARGEST}: round the integers to "
                             "multiples of a coarser unit, and declare the change in that unit; or raise delta")
        law = cls._law(scale, honest)
        curve = PrivacyLossDistribution.from_pair(*shifted_pair(law, change)).compose(n_changed)
        return curve.delta(epsilon) <= delta

    high = change * math.sqrt(n_changed * -math.log(delta)) / float(epsilon) + 1e-3
    while not keeps(high):
        high *= 1.5
    low = high / 1.5
    while keeps(low):
        low, high = low / 1.5, low
        if cls._rounded(low**2 / honest) == cls._rounded(high**2 / honest):  # (no smaller share is there)
            return cls._rounded(high**2 / honest)
    while high > low * (1 + _CLOSE) and cls._rounded(low**2 / honest) != cls._rounded(high**2 / honest):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return cls._rounded(high**2 / honest)


class DiscreteGaussianShares(_Calibrated):
    """Shares of discrete Gaussian noise. The variance of a share is at least 3, so that sums are discrete Gaussian.

    Attributes
    ----------
    scale : float
        The parameter sigma of a share.

    Examples
    --------
    >>> from dpestim.parties import DiscreteGaussianShares
    >>> shares = DiscreteGaussianShares(n_parties=5, honest=4, epsilon=1.0, delta=1e-5)
    >>> [round(float(shares.privacy_against(k).epsilon), 2) for k in (1, 2, 3)]
    [1.0, 1.17, 1.47]
    """

    @classmethod
    def _rounded(cls, variance):
        return math.sqrt(max(variance, _LEAST_SHARE))

    @classmethod
    def _variance(cls, scale):
        return scale**2

    @classmethod
    def _law(cls, scale, n_shares):
        return gaussian_law(scale, n_shares)

    @property
    def distance(self):
        """How far the sum of all shares is from discrete Gaussian noise, in total variation, at most."""
        return gaussian_distance(self.scale, self.n_parties)

    def draw(self, source, size):
        """Return the share of one party."""
        return gaussian_law_of(self.scale).draw(source, size)


class SkellamShares(_Calibrated):
    """Shares of Skellam noise: the difference of two Poisson numbers. Sums of any number of shares are exact.

    Attributes
    ----------
    scale : Fraction
        The mean of each of the two Poisson numbers of a share.

    Examples
    --------
    >>> from dpestim.parties import SkellamShares
    >>> shares = SkellamShares(n_parties=5, honest=4, epsilon=1.0, delta=1e-5)
    >>> [round(float(shares.privacy_against(k).epsilon), 2) for k in (1, 2, 3)]
    [1.0, 1.14, 1.34]
    """

    @classmethod
    def _rounded(cls, variance):
        return Fraction(math.ceil(variance / 2 * 1024), 1024)

    @classmethod
    def _variance(cls, scale):
        return float(2 * scale)

    @classmethod
    def _law(cls, scale, n_shares):
        return skellam_law(2 * scale * n_shares)

    def draw(self, source, size):
        """Return the share of one party."""
        n_pieces = -(-self.scale // _PIECE)
        poisson = ExactPoisson(self.scale / n_pieces)
        reader, ties = source.reader(), BitStream(source.reader(), 2 * n_pieces, 0)
        out = np.zeros(size, np.int64)
        for column in range(2 * n_pieces):
            counts = poisson.counts(reader.dense(Stage.NOISE, column, 0, 0, size), ties)
            out += counts if column % 2 else -counts
        return out


class BinomialShares(_Calibrated):
    """Shares of binomial noise: how many of an even number of fair coins show, minus half. Sums are exact.

    No sum exceeds half of the number of coins; outputs that a neighbour cannot have are counted in delta.

    Attributes
    ----------
    scale : int
        How many coins a share has.

    Examples
    --------
    >>> from dpestim.parties import BinomialShares
    >>> shares = BinomialShares(n_parties=5, honest=4, epsilon=1.0, delta=1e-5)
    >>> [round(float(shares.privacy_against(k).epsilon), 2) for k in (1, 2, 3)]
    [1.0, 1.19, 1.57]
    """

    @classmethod
    def _rounded(cls, variance):
        return 2 * max(1, math.ceil(2 * variance))

    @classmethod
    def _variance(cls, scale):
        return scale / 4

    @classmethod
    def _law(cls, scale, n_shares):
        return binomial_law(scale * n_shares)

    def draw(self, source, size):
        """Return the share of one party."""
        n_words, reader = -(-self.scale // 64), source.reader()
        spare = np.uint64(64 * n_words - self.scale)
        out = np.full(size, -(self.scale // 2), np.int64)
        for column in range(n_words):
            words = reader.dense(Stage.NOISE, column, 0, 0, size)
            words = words >> spare if column == 0 else words
            out += _ONES[words.view(np.uint16).reshape(-1, 4)].sum(1, dtype=np.int64)
        return out
