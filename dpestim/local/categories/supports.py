"""Guessing from a set of values: how often the likeliest one is right, where reports are bits, or subsets.

A value scores more if its bit is 1 (`high`) than if it is 0 (`low`). One that scores s wins where no other has more:
the N others whose high score is above s must have 0, and nobody's low score may be above. It shares the win with t
others whose low score is s, and with those of the m others whose high score is s that have 1. So all is a function of
(N, m, t).
"""

import numpy as np
from scipy import stats

from dpestim.local.guessing import TIE, levels_of

#: Nodes of a Gauss rule, exact for up to twice as many ties of values of different priors.
_MOST_NODES = 256


class Bits:
    """Others have 1 independently of each other, with probability `one`."""

    def __init__(self, one):
        self.one = one

    def share(self, n_zero, m, t, member):
        """Return E[1[n_zero others have 0] / (1 + t + how many of m others have 1)]."""
        log_zero = np.log1p(-self.one)
        ties = np.where(t == 0, -np.expm1((m + 1) * log_zero) / ((m + 1) * self.one), 1 / (1 + t))
        for k in np.flatnonzero((t > 0) & (m > 0)):
            ones = np.arange(m[k] + 1)
            ties[k] = np.sum(stats.binom.pmf(ones, m[k], self.one) / (1 + t[k] + ones))
        return np.exp(n_zero * log_zero) * ties


class Subset:
    """A uniform subset of `size` of `n` values; of the others one less has 1 where the user's value is a member."""

    def __init__(self, n, size):
        self.n, self.size = n, size

    def share(self, n_zero, m, t, member):
        """Return E[1[n_zero others have 0] / (1 + t + how many of m others have 1)]."""
        n, k = self.n - 1, self.size - member
        left = n - np.arange(n)
        with np.errstate(divide="ignore"):
            logs = np.log1p(-np.minimum(1.0, k / left.astype(np.longdouble)))  # -inf: no subset is left
        zero = np.exp(np.append(np.longdouble(0), np.cumsum(logs)))  # Pr[that many others have 0]
        rest = n - n_zero
        both = (zero[n_zero] * (rest + 1) - zero[n_zero + m] * (rest - m - k)) / ((k + 1) * (m + 1))
        out = np.where(t == 0, both, zero[n_zero] / (1 + t)).astype(np.float64)
        for j in np.flatnonzero((t > 0) & (m > 0)):
            ones = np.arange(m[j] + 1)
            chances = stats.hypergeom.pmf(ones, rest[j], m[j], k)
            out[j] = float(zero[n_zero[j]]) * np.sum(chances / (1 + t[j] + ones)) if rest[j] >= k else 0.0
        return out


def success_of_sets(high, low, own, chance):
    """Return the probability of a right guess for each value.

    Parameters
    ----------
    high, low : ndarray of shape (d,)
        The score of a value whose bit is 1, or 0; where they are equal, the value has no bit that others see.
    own : ndarray of shape (d,)
        The probability that the holder's own bit is 1; of a value without a bit, that it is told outright.
    chance : Bits or Subset
    """
    has_bit = high > low
    highs, lows = np.sort(high[has_bit]), np.sort(low)

    def wins(score, is_one):
        above, at = score * (1 + TIE), score * (1 - TIE)
        below = np.searchsorted(highs, above, side="right")
        n_zero = len(highs) - below - (has_bit & ~is_one)
        m = below - np.searchsorted(highs, at, side="left") - (has_bit & is_one)
        ends = np.searchsorted(lows, above, side="right")
        t = ends - np.searchsorted(lows, at, side="left") - ~is_one
        triples, where = np.unique(np.stack([n_zero, m, t]), axis=1, return_inverse=True)
        share = chance.share(*triples, int(is_one.all()))[where.ravel()]
        return np.where(ends == len(lows), share, 0.0)  # else some value scores more whatever is reported

    d = len(high)
    told = np.where(has_bit, wins(high, np.ones(d, bool)), 1.0)
    return own * told + (1 - own) * wins(low, np.zeros(d, bool))


def success_of_cells(prior, odds, own, other):
    """Return the probability of a right guess for each value, where every cell has a code, independent of all others.

    A value whose code is c scores its prior times ``odds[c]``, and the largest score wins, ties at random: where each
    of m others ties with probability e, and scores less with probability b, that is the integral of (b + e x)^m over x
    from 0 to 1. Values of one prior are alike, so all is done for each level of the prior: O(levels^2 codes).

    Parameters
    ----------
    prior : ndarray of shape (d,)
    odds : ndarray of shape (n_codes,)
        How much likelier each code is for the value that is held; ascending.
    own, other : ndarray of shape (n_codes,)
        The laws of the code of the value that is held, and of another one.
    """
    level, values = levels_of(prior)
    size = np.bincount(level)
    up_to = np.append(0.0, np.cumsum(other))
    out = np.zeros(len(values))
    for mine in np.flatnonzero(values):
        others = size - (np.arange(len(values)) == mine)
        for code, chance in enumerate(own):
            with np.errstate(divide="ignore"):
                score = values[mine] * odds[code] / values
            below = up_to[np.searchsorted(odds, score * (1 - TIE), side="left")]
            tied = up_to[np.searchsorted(odds, score * (1 + TIE), side="right")] - below
            ties = (tied > 0) & (others > 0)
            free = np.prod(below[~ties] ** others[~ties])
            if free:
                out[mine] += chance * free * _mean_power(below[ties], tied[ties], others[ties])
    return out[level]


def _mean_power(low, rise, power):
    """Return the integral over x from 0 to 1 of the product of (low + rise x)^power."""
    if len(low) <= 1:
        return np.sum(((low + rise) ** (power + 1) - low ** (power + 1)) / ((power + 1) * rise)) if len(low) else 1.0
    nodes, weights = np.polynomial.legendre.leggauss(int(min(power.sum() // 2 + 1, _MOST_NODES)))
    return np.prod((low + rise * (nodes[:, None] + 1) / 2) ** power, axis=1) @ weights / 2
