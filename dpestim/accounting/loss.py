"""Privacy-loss distributions: what a declared series of releases gives away, added up without waste."""

import math
from collections import Counter
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim.accounting.composed import Series
from dpestim.accounting.loss_pairs import (
    Approximate,
    Gaussian,
    Laplace,
    Sampled,
    discrete_gaussian,
    discrete_laplace,
    discrete_pair,
)
from dpestim.privacy.concentrated import Face
from dpestim.privacy.rounding import (
    LARGEST,
    amount,
    float_down,
    float_up,
    positive,
    ratio,
    several,
    share,
    whole,
)


class PrivacyLossDistribution(Series):
    """The privacy loss distribution of a declared series of releases; its deltas are upper bounds.

    The loss of an output is the logarithm of how much likelier it is with a record than without; losses of independent
    releases add up, and delta is read from the distribution of the sum. `compose` and ``+`` say what is released;
    the sums are computed when `delta`, `epsilon` or `interval` asks, on a grid that suits all of them. Where budgets
    depend on earlier *results*, take a filter (`ConcentratedFilter`).

    It is made by one of the class methods, never directly:

    ===========================  =====================================================================
    `pure`, `approximate`        any mechanism that is epsilon- or (epsilon, delta)-private
    `laplace`, `gaussian`        their noise; with a `sampling_rate`, on a Poisson sample of the records
    `discrete_laplace`           noise on one integer
    `discrete_gaussian`          noise on one integer
    `from_pair`                  the laws of an output for two neighbours, as probabilities
    ===========================  =====================================================================

    **Privacy.** Arithmetic about declared numbers; it touches no data. What it states holds for the neighbours that the
    sensitivities were declared for; a sampled one only for neighbours of which one has one record more.

    **Complexity.** O(N log N) for a grid of N losses, some 300,000; 10,000 different Laplace mechanisms have some
    1,500,000 masses in all. Thousands of different *sampled* ones take seconds and a coarser grid, which shows in
    `interval`; Gaussians are added up in closed form. Rows of the grid have 1,000,000 places at most. Of samples at a
    rate below 0.0001 that makes small epsilons larger (by less than 0.001 at deltas from 1e-5 on), and deltas below
    1e-7 of thousands of them take seconds and are loose.

    {attributes of a series}

    Notes
    -----
    Losses are put on a grid by splitting each between its neighbours so that the mean of e^-loss is kept, which only
    ever increases delta, by a term of second order in the step; sums are convolved by FFT on masses that are tilted to
    where delta is decided, so that rounding is relative to delta; every error has a bound, and is added. The proof, the
    floor below which delta cannot be certified, and which pair of laws stands for which mechanism: ``loss.md``.

    References
    ----------
    Sommer, Meiser, Mohammadi (2019), "Privacy loss classes", PoPETs (the idea). Doroshenko, Ghazi, Kamath, Kumar,
    Manurangsi (2022), "Connect the dots", PoPETs (splitting). Zhu, Dong, Wang (2022), "Optimal accounting of
    differential privacy via characteristic function", AISTATS (dominating pairs).

    Examples
    --------
    >>> from dpestim.accounting import PrivacyLossDistribution
    >>> series = PrivacyLossDistribution.laplace(20.0).compose(500) + PrivacyLossDistribution.gaussian(4.0)
    >>> round(series.epsilon(1e-6), 3)
    5.634
    >>> low, high = series.interval(4.0)
    >>> low < series.delta(4.0) <= high
    True
    """

    rank = 3

    def __init__(self, pieces, is_sampled=False):
        super().__init__(pieces, is_sampled)

    @cached_property
    def _sum(self):
        from dpestim.accounting.sums import Composition  # (a fit keeps what it may cost, and adds nothing up)

        return Composition(self._pieces)

    def __repr__(self):
        return f"<PrivacyLossDistribution of {self.n_releases} releases, {len(self._pieces)} of them different>"

    # ---------------------------------------------------------------- how it is made

    @classmethod
    def pure(cls, epsilon):
        """Return that of any epsilon-private mechanism (randomised response is the worst).

        Parameters
        ----------
        epsilon : float
            Above 0, at most 500.
        """
        return cls({Approximate(_small(positive(epsilon, "epsilon"))): 1})

    @classmethod
    def approximate(cls, epsilon, delta):
        """Return that of any (epsilon, delta)-private mechanism.

        Parameters
        ----------
        epsilon : float
            From 0 to 500.
        delta : float
            From 0 to 1.
        """
        return cls({Approximate(_small(amount(epsilon, "epsilon")), amount(delta, "delta", 1)): 1})

    @classmethod
    def laplace(cls, scale, *, sensitivity=1.0, sampling_rate=1.0):
        """Return that of Laplace noise on one answer.

        Parameters
        ----------
        scale : float
            b of the density e^(-abs(x) / b) / (2 b).
        sensitivity : float, default=1.0
            How far apart the answers of neighbours can be.
        sampling_rate : float, default=1.0
            Below 1: each record takes part with this probability, on its own and in secret.
        """
        rate = share(sampling_rate, "sampling_rate")
        return cls({Sampled(Laplace(_loss(ratio(sensitivity, scale))), float_up(rate)): 1}, rate < 1)

    @classmethod
    def gaussian(cls, sigma, *, sensitivity=1.0, sampling_rate=1.0):
        """Return that of Gaussian noise on any number of answers.

        Parameters
        ----------
        sigma : float
            Standard deviation, at least 1/20 of the sensitivity.
        sensitivity : float, default=1.0
            Largest Euclidean distance of the answers of neighbours.
        sampling_rate : float, default=1.0
            Below 1: each record takes part with this probability, on its own and in secret.
        """
        shift, rate = ratio(sensitivity, sigma), share(sampling_rate, "sampling_rate")
        if shift > 20:
            raise ValueError("sigma must be at least a twentieth of the sensitivity: add more noise")
        return cls({Sampled(Gaussian(shift), float_up(rate)): 1}, rate < 1)

    @classmethod
    def discrete_laplace(cls, scale, *, sensitivity=1):
        """Return that of discrete Laplace noise on one integer.

        Parameters
        ----------
        scale : float
            b of the probabilities, proportional to e^(-abs(z) / b).
        sensitivity : int, default=1
            How far apart the integers of neighbours can be, at most 65,536.
        """
        shift = _shift(sensitivity)
        return cls({discrete_laplace(_loss(ratio(shift, scale)), shift): 1})

    @classmethod
    def discrete_gaussian(cls, sigma, *, sensitivity=1):
        """Return that of discrete Gaussian noise on one integer.

        Parameters
        ----------
        sigma : float
            Of the probabilities, proportional to e^(-z^2 / (2 sigma^2)); at most 20,000.
        sensitivity : int, default=1
            How far apart the integers of neighbours can be.
        """
        shift, exact = _shift(sensitivity), positive(sigma, "sigma")
        if exact > 20_000:
            raise ValueError("sigma must be at most 20000: for a larger one take gaussian")
        _loss(shift * (2 * 15 * exact + 4 + shift) / (2 * exact**2))
        return cls({discrete_gaussian(float(exact), shift): 1})

    @classmethod
    def from_pair(cls, p, q):
        """Return that of a mechanism whose outputs have these probabilities for two neighbours, in either order.

        It speaks of these two neighbours only, or of all where the pair dominates every other (``loss.md``).

        Parameters
        ----------
        p, q : array-like of shape (n_outputs,)
            Probabilities (floats or Fractions) that sum to 1 within 1e-9; what is missing counts as an output that
            betrays. At most 1,000,000. A Fraction so small that no float is close to it (below 2.3e-308) is refused.
        """
        p, q = _law(p, "p"), _law(q, "q")
        if p.size != q.size:
            raise ValueError(f"q must hold as many probabilities as p, {p.size}, got {q.size}")
        return cls({discrete_pair(p, q): 1})

    # ---------------------------------------------------------------- composition

    @classmethod
    def total(cls, series):
        """Return that of many together; one pass over them, where ``sum`` would copy each time.

        Parameters
        ----------
        series : iterable of PrivacyLossDistribution
            At least one.
        """
        pieces, sampled = Counter(), False
        for other in several(series, "series"):
            if not isinstance(other, PrivacyLossDistribution):
                raise ValueError("series must hold PrivacyLossDistribution objects only")
            pieces.update(other._pieces)
            sampled |= other.is_sampled
        if not pieces:
            raise ValueError("series must hold at least one PrivacyLossDistribution")
        return cls(dict(pieces), sampled)

    def lift(self, other):
        """Return what a pure or approximate face says as losses; None of other curves, whose laws nobody knows."""
        if isinstance(other, Face) and other.epsilon <= LARGEST:
            return PrivacyLossDistribution({Approximate(other.epsilon, other.delta): 1})
        return other if isinstance(other, PrivacyLossDistribution) else None

    def weaker(self):
        """Return the `RenyiCurve` that follows from it, or None where a loss may be infinite."""
        from dpestim.accounting.renyi import RenyiCurve, law_of

        laws = Counter()
        for pair, count in self._pieces.items():
            law = law_of(pair)
            if law is None:
                return None
            laws[law] += count
        return RenyiCurve(dict(laws), self.is_sampled)

    def on_sample(self, rate):
        """Return that of one release of noise on a Poisson sample of a rate below 1; None of what is none.

        Several releases about one sample, which have a record in common or not, are more than each on its own.
        """
        (pair, count), *more = self._pieces.items()
        if more or count > 1 or not isinstance(pair, Sampled) or pair.rate < 1:
            return None
        return PrivacyLossDistribution({Sampled(pair.base, float_up(rate)): 1}, True)

    def cgf(self, t):
        """Return an upper bound of ln E[e^(t loss)]; inf where a loss may be infinite."""
        curve = self.weaker()
        return np.full(np.shape(t), math.inf) if curve is None else curve.cgf(t)

    def epsilon_at(self, delta):
        """Return `epsilon` as a Fraction, or inf."""
        epsilon = self.epsilon(delta)
        return Fraction(epsilon) if epsilon < math.inf else math.inf

    # ---------------------------------------------------------------- answers

    @property
    def step(self):
        """The step of the grid of losses, a power of two."""
        return self._sum.step

    def delta(self, epsilon):
        """Return delta at an epsilon, an upper bound.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            In [0, 1].
        """
        exact = amount(epsilon, "epsilon")
        e = float_down(exact)
        return min(self._basic_delta(exact), max(self._sum.delta(e, reverse) for reverse in self._sum.directions))

    @cached_property
    def _basic(self):
        """The sums of epsilons and of deltas, where these are all that is known of every release; else (inf, 1)."""
        if not all(isinstance(pair, Approximate) for pair in self._pieces):
            return math.inf, 1
        return tuple(sum(n * part for part, n in zip(parts, self._pieces.values())) for parts in
                     zip(*((pair.epsilon, pair.delta) for pair in self._pieces)))

    def _basic_delta(self, epsilon):
        """Return the delta that basic composition promises at an epsilon: no error of a grid is in it."""
        return min(1.0, float_up(self._basic[1])) if epsilon >= self._basic[0] else 1.0

    def interval(self, epsilon):
        """Return (low, high) around the exact delta of the pairs of laws; `delta` is `high`.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        tuple of two floats
        """
        exact = amount(epsilon, "epsilon")
        e = float_down(exact)
        bounds = [self._sum.bounds(e, reverse) for reverse in self._sum.directions]
        high = min(self._basic_delta(exact), max(high for _, high in bounds))
        return min(high, max(low for low, _ in bounds)), high

    def epsilon(self, delta):
        """Return the least epsilon that is certified for a delta: an upper bound, inf where there is none.

        Parameters
        ----------
        delta : float
            From 0 to 1.

        Returns
        -------
        float
        """
        exact = amount(delta, "delta", 1)
        wanted = float_down(exact)
        least = max(self._sum.solve(wanted, reverse) for reverse in self._sum.directions)
        return min(least, float_up(self._basic[0])) if self._basic[1] <= exact < 1 else least


def _small(x):
    """Return a loss, or raise ValueError."""
    if x > LARGEST:
        raise ValueError(f"the privacy loss of one release must be at most {LARGEST}: add more noise")
    return x


def _loss(x):
    """Return a loss as a float, rounded up."""
    return float_up(_small(x))


def _shift(sensitivity):
    shift = whole(sensitivity, "sensitivity")
    if shift > 1 << 16:
        raise ValueError("sensitivity must be at most 65536: for a larger one take the law of continuous noise, "
                         "laplace or gaussian")
    return shift


def _law(values, name):
    """Return probabilities as an array of floats."""
    values = several(values, name)
    array = np.asarray([float(v) if isinstance(v, Fraction) else v for v in values])
    if array.ndim != 1 or not 1 <= array.size <= 1_000_000 or array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be a sequence of 1 to 1,000,000 probabilities")
    array = array.astype(np.float64)
    if not (array >= 0).all() or abs(math.fsum(array) - 1) > 1e-9:
        raise ValueError(f"{name} must hold probabilities that sum to 1, within 1e-9")
    if any(values[i] != array[i] for i in np.flatnonzero(array < np.finfo(np.float64).tiny).tolist()):
        # its ratio to the other law would be another one, as large as it may be
        raise ValueError(f"{name} must hold probabilities of 0, or of at least 2.3e-308, the smallest normal float")
    return array
