"""What noise bits hide: a proven bound on delta for protocols whose messages are bits. The proof: ``coins.md``."""

import math

import numpy as np
from scipy.special import betaincc, gammaln, xlog1py, xlogy

#: Sums of floats are moved outward by this part of what they are sums of.
_ROUNDING = 1e-11
#: Where logarithms of factorials are part of it.
_OF_PMF = 1e-9
#: Parts of a number of coins within which a sum is not told from an integer: far above its rounding, and that of e.
_NEAR = 1e-12
#: Numbers of coins that are looked at one by one, or in so many steps; in fewer where a user has several bits.
_STEPS, _FEW_STEPS = 2048, 64
#: Probabilities of a user's own bits that are not looked at, together: they count as if nothing hid them.
_NEGLIGIBLE = 1e-30
#: Sums that are all looked at, around the maximum.
_APART = 16
#: Standard deviations around the usual number of noise bits that are looked at.
_REACH = 16


def delta_of_bits(epsilon, flip, n_others, n_bits=1):
    """Return an upper bound of delta for one user's bits among those of others, each flipped with probability `flip`.

    Parameters
    ----------
    epsilon : float
    flip : float
        From 0 to 1/2.
    n_others : int
        Users besides this one who follow the protocol.
    n_bits : int, default=1
        Bits a user, all of which may differ.

    Returns
    -------
    float
        It falls in the first three.
    """
    return delta_among(epsilon, flip, n_others * n_bits, 2 * flip, n_bits)


def delta_among(epsilon, flip, n, p, n_bits=1):
    """Return the same where fair coins hide the bits: n of them are tossed, or not, each with probability p."""
    middle, reach = n * p, _REACH * math.sqrt(n * p) + 2 * _REACH
    low, high = max(0, math.floor(middle - reach)), min(n, math.ceil(middle + reach))
    numbers = high - low + 1
    step = -(-numbers // (_STEPS if n_bits == 1 or numbers <= 4 * _FEW_STEPS else _FEW_STEPS))
    at = np.unique(np.concatenate([[0], np.arange(low, high + 1, step)]))
    if n_bits == 1:
        at = _that_matter(at, epsilon, flip, n, p)
    # each number of fair coins stands for all up to the next one: fewer hide less
    upto = np.append(_cdf(at[1:] - 1, n, p), 1.0)
    shares = np.diff(upto, prepend=0.0) + _ROUNDING * upto
    if n_bits == 1:
        return min(1.0, float(shares @ _one_among(epsilon, flip, at)))
    return _mixture(shares, at, _Bits(epsilon, flip, n_bits).among)


def _that_matter(at, epsilon, flip, n, p):
    """Return the numbers of coins, less those on both sides that matter less than rounding even if they hid nothing."""
    if len(at) < 4 * _APART:
        return at
    middle, deviation = n * p, math.sqrt(n * p)
    most = int(np.searchsorted(at, middle + _REACH / 2 * (deviation + 1)))  # (the last one stands for all above)
    usual = min(int(np.searchsorted(at, middle)), len(at) - 2)
    ends = usual - np.unique(np.linspace(0, usual, _APART).astype(int))  # falling: how many are left out
    below = _cdf(np.append(at[ends], at[usual + 1]) - 1, n, p)
    total = (below[-1] - below[0]) * float(_one_among(epsilon, flip, at[usual : usual + 1])[0])
    first = max((int(k) for k, share in zip(ends, below) if share <= _ROUNDING * total), default=0)
    return np.append(0, at[max(first, 1) : most + 1])


def _mixture(shares, at, delta_of):
    """Return an upper bound of the sum of shares times delta among so many coins, which falls with their number.

    Numbers far from the usual ones are not looked at where they matter less than rounding: fewer coins hide nothing,
    more of them hide what fewer do.
    """
    middle = int(shares.argmax())
    below, above = np.cumsum(shares), np.cumsum(shares[::-1])[::-1]
    first = last = delta_of(at[middle])
    total = shares[middle] * first
    for k in range(middle - 1, -1, -1):
        if below[k] <= _OF_PMF * total:
            total += below[k]
            break
        total += shares[k] * min(1.0, delta_of(at[k]))
    for k in range(middle + 1, len(at)):
        if above[k] * last <= _OF_PMF * total:
            total += above[k] * last
            break
        last = min(last, delta_of(at[k]))
        total += shares[k] * last
    return min(1.0, float(total))


def _one_among(epsilon, flip, n_coins):
    """Return an upper bound of delta for one bit among so many fair coins (an array), all of which are added up."""
    e = math.exp(epsilon)
    more, less = (1 - flip) - e * flip + 2.0**-51 * (1 + e), e * (1 - flip) - flip  # (not below the truth)
    if more <= 0:  # the bit keeps epsilon by itself
        return np.zeros(len(n_coins))
    end = more / (more + less) * (n_coins + 1)
    at = np.ceil(end) - 1  # the largest sum that is likelier by e^epsilon
    found = _gap(at, n_coins, more, less)
    # (rounding may be off by one, but only near an integer)
    doubtful = np.flatnonzero(np.abs(end - np.round(end)) <= _NEAR / max(1 - 2 * flip, _NEAR) * (n_coins + 1))
    for k in (-1, 1) if len(doubtful) else ():
        found[doubtful] = np.maximum(found[doubtful], _gap(at[doubtful] + k, n_coins[doubtful], more, less))
    return np.maximum(found, 0.0)


def _gap(t, n_coins, more, less):
    """Return an upper bound of the probability of a sum of at most t, less what e^epsilon times the other allows."""
    upto, below = more * _cdf(t, n_coins, 0.5), less * _cdf(t - 1, n_coins, 0.5)
    return upto - below + _ROUNDING * (upto + below)


class _Bits:
    """Several bits of a user, all zeros or all ones before they are flipped: what fair coins hide of them."""

    def __init__(self, epsilon, flip, n_bits):
        self.epsilon, self.e, self.r, self.flip = epsilon, math.exp(epsilon), n_bits, flip
        self.logs = _log_pmf(np.arange(n_bits + 1), n_bits, flip)  # of how many are ones if all were zeros
        kept = np.flatnonzero(self.logs > math.log(_NEGLIGIBLE / (n_bits + 1)))
        self.first, self.kept = int(kept[0]), np.exp(self.logs[kept[0] : kept[-1] + 1])
        self.off = 0  # of the last guess

    def among(self, n_coins):
        """Return an upper bound of delta among so many fair coins, whose sum is added to that of the bits."""
        n_coins = int(n_coins)
        low, high = self._maximum(n_coins)
        a, b = low - 1, high + 1  # (rounding may be off by one)
        ends = self.first, self.first + len(self.kept) - 1
        # how much likelier a sum of at most t is, beyond e^epsilon, for each t from a to b
        more = np.convolve(_cdf(np.arange(a - ends[1], b - ends[0] + 1), n_coins, 0.5), self.kept, "valid")
        less = _cdf(np.arange(a - self.r + ends[0], b - self.r + ends[1] + 1), n_coins, 0.5)
        less = self.e * np.correlate(less, self.kept, "valid")
        return max(0.0, float((more - less + _OF_PMF * (more + less)).max())) + _NEGLIGIBLE

    def _maximum(self, n_coins):
        """Return (low, high), near each other, between which the gap is largest: it rises up to there, then falls."""
        low, high = -1, n_coins + self.r
        at, step = self._guess(n_coins) + self.off, _APART
        rose = fell = False
        while high - low > _APART and not (rose and fell):
            at = min(max(at, low + 1), high - 1)
            if self._rises(n_coins, at):
                low, at, rose = at, at + step, True
            else:
                high, at, fell = at, at - step, True
            step *= 2
        while high - low > _APART:
            middle = (low + high) // 2
            low, high = (middle, high) if self._rises(n_coins, middle) else (low, middle)
        self.off = (low + high) // 2 - self._guess(n_coins)
        return low, high

    def _guess(self, n_coins):
        """Return where the maximum is if sums are normal; the search goes on from there."""
        spread = n_coins / 4 + self.r * self.flip * (1 - self.flip)
        apart = max(self.r * (1 - 2 * self.flip), 1e-9)
        return int(max(-1.0, (n_coins + self.r) / 2 - self.epsilon * spread / apart))

    def _rises(self, n_coins, t):
        """Tell whether a sum of t is likelier by e^epsilon or more."""
        first, last = max(0, t - n_coins), min(self.r, t)  # bits of the user's own that leave a sum of the coins
        i = np.arange(first, last)
        coins = np.append(0.0, np.cumsum(np.log((t - i) / (n_coins - t + i + 1))))
        # (in logarithms: where both were 0 the search would take the wrong side)
        mine, other = _log_sum(self.logs[first : last + 1] + coins), _log_sum(self.logs[::-1][first : last + 1] + coins)
        return mine > self.epsilon + other


def _log_pmf(k, n, p):
    """Return the logarithm of the probability of each of k successes (integers from 0 to n) of n trials, to 1e-9."""
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p)


def _log_sum(logs):
    """Return the logarithm of the sum of what these are logarithms of."""
    most = logs.max()
    return most + math.log(np.exp(logs - most).sum()) if most > -math.inf else most


def _cdf(k, n, p):
    """Return the probability of at most k successes of n trials (arrays), each with probability p."""
    k, n = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(n, np.float64))
    inside = (k >= 0) & (k < n)
    out = np.where(k < 0, 0.0, 1.0)
    out[inside] = betaincc(k[inside] + 1, n[inside] - k[inside], p)
    return out
