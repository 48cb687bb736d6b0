"""What a fit of several parties keeps where fewer of them are honest: by all of its releases (`federated.md`)."""

import math
from collections import Counter
from fractions import Fraction

from dpestim.accounting import RenyiCurve
from dpestim.distributed.shared_noise import SharedNoise, share_of
from dpestim.parties.laws_of_sums import gaussian_distance
from dpestim.privacy import PrivacyGuarantee
from dpestim.privacy.rounding import whole
from dpestim.privacy.trust import Parties
from dpestim.shuffle.sums.polya import epsilon_of_share
from dpestim.statistics.calibrated_noise import Noise


class SharesOfFit:
    """How the noise of a fit was made: in shares of `n_parties`, of which those of `honest` suffice.

    Attributes
    ----------
    n_parties, honest : int
    guarantee : PrivacyGuarantee
        Of the fit, with `honest` honest parties.
    """

    def __init__(self, sums, honest, guarantee, releases):
        self.n_parties, self.honest, self.guarantee = sums.n_parties, honest, guarantee
        self._corrupt, self._active = _masks_of(sums)
        #: {(law, number of integers): how often}
        self._releases = Counter(releases)

    def __repr__(self):
        return f"<shares of {self.n_parties} parties, of which those of {self.honest} suffice>"

    @property
    def distance(self):
        """How far sums of Gaussian shares are from discrete Gaussian noise, in total variation; it costs no epsilon."""
        return sum(n * size * gaussian_distance(share_of(law, self.honest).scale, self.n_parties)
                   for (law, size), n in self._releases.items() if law.delta)

    def privacy_against(self, k):
        """Return what holds where k of the parties collude, drop out or lie about their shares.

        Parameters
        ----------
        k : int
            How many parties do not add shares that are secret.

        Returns
        -------
        PrivacyGuarantee
            For the rows of the other parties, with the delta of the fit. Its epsilon is infinite where no party is
            left, or nothing is proved.
        """
        k = whole(k, "k", 0)
        if k > self.n_parties:
            raise ValueError(f"k must be at most n_parties, {self.n_parties}, got {k}")
        left, told = self.n_parties - k, self.guarantee
        if left >= self.honest:
            return told
        curve, epsilon = self._kept(left) if left else (None, math.inf)
        parties = (_parties(self.n_parties, k, self._corrupt, self._active),)
        return PrivacyGuarantee(epsilon, told.delta, told.model, told.neighbours, told.seeded, (
            f"Noise came in shares, of which those of {self.honest} parties were to suffice, and {left} are left.",),
            curve=curve, parties=parties if epsilon < math.inf else ())

    # ---------------------------------------------------------------- inside

    def _kept(self, left):
        """Return (the curve or None, epsilon) with so many honest parties."""
        normal = [law for law, _ in self._releases if law.delta]
        pure = self._pure(left)
        if not normal:
            return None, pure
        told = self.guarantee.curve
        rho = None if told is None else told.rho
        if rho is None:
            rho = sum(law.rho * n for (law, _), n in self._releases.items() if law.delta)
        if any(share_of(law, self.honest).left(law.rho, left) == math.inf for law in normal):
            return None, math.inf
        curve = RenyiCurve.concentrated(Fraction(rho) * self.honest / left)
        if pure:
            curve = curve + RenyiCurve.pure(pure)
        return curve, curve.epsilon_at(self.guarantee.delta)

    def _pure(self, left):
        """Return the epsilon of all releases with discrete Laplace noise, together."""
        laws = [(law, size, n) for (law, size), n in self._releases.items() if not law.delta]
        if not laws:
            return Fraction(0)
        noises = [(SharedNoise(Noise(law, 1), self.n_parties, self.honest), size, n) for law, size, n in laws]
        one_by_one = sum(Fraction(noise.epsilon_left(size, left)) * n for noise, size, n in noises)
        # what one machine's proof needs of the moves: rates times moves add up to epsilon at most
        # (the epsilon of a guarantee with a delta can be less than that of its releases: it says nothing of moves)
        spent, together = sum(law.epsilon * n for law, _, n in laws), Fraction(0)
        if not self.guarantee.delta:
            spent = min(self.guarantee.epsilon, spent)
        integers = Counter()
        for law, size, n in laws:
            integers[law.rate_of_decay] += size * n
        for rate, size in integers.items():
            moved = min(size, max(1, math.floor(spent / rate)))
            steps = math.ceil(spent / (rate * moved))
            together += moved * Fraction(epsilon_of_share(rate, steps, left / self.honest))
        return min(one_by_one, together)


def parties_of(sums, honest):
    """Return who may collude, by what adds up for the parties."""
    corrupt, active = _masks_of(sums)
    # (with one honest party each share is all of the noise: masks are not needed)
    return _parties(sums.n_parties, sums.n_parties - honest, None if honest == 1 else corrupt, active)


def _masks_of(sums):
    """Return how many may collude with the server (None: any number), and whether the server may cheat."""
    return getattr(sums, "n_corrupt", None), getattr(sums, "active", False)


def _parties(n_parties, colluding, corrupt, active):
    with_server = None if corrupt is None or corrupt >= colluding else corrupt
    return Parties(n_parties, colluding, with_server, follows=not active)
