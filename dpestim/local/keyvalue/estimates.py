"""From counts to frequencies and means of keys, with the variances of both; values are from -1 to 1 here."""

import numpy as np


class Estimates:
    """Unbiased estimates for every key.

    Parameters
    ----------
    n : int
        Users.
    frequency, total : ndarray of shape (n_keys,)
        The share f of users that hold the key, and f times the mean of their values.
    share_variance, total_variance, covariance : ndarray of shape (n_keys,)
        Of the two, given the data.
    """

    def __init__(self, n, frequency, total, share_variance, total_variance, covariance):
        self.frequency, self.total = frequency, total
        self.share, self.mean = ratio(frequency, total, n)
        self.share_variance, self.total_variance, self.covariance = share_variance, total_variance, covariance

    @property
    def mean_variance(self):
        """Variance of the mean, by the delta method."""
        m = self.mean
        return np.maximum(self.total_variance - 2 * m * self.covariance + m**2 * self.share_variance, 0) / self.share**2

    def share_interval(self, z):
        """Return (low, high) of the frequencies."""
        reach = z * np.sqrt(self.share_variance)  # (NaN where nobody was asked)
        return self.frequency - reach, self.frequency + reach

    def mean_interval(self, z):
        """Return (low, high): all means m in [-1, 1] for which total - m frequency is within z standard errors of 0.

        (Fieller's interval.) Everything, where the frequency itself may be 0.
        """
        a = self.frequency**2 - z**2 * self.share_variance
        b = self.frequency * self.total - z**2 * self.covariance
        c = self.total**2 - z**2 * self.total_variance
        known = (a > 0) & (self.frequency > 0)
        safe = np.where(known, a, 1.0)
        root = np.sqrt(np.maximum(b**2 - safe * c, 0.0))
        low, high = np.clip((b - root) / safe, -1.0, 1.0), np.clip((b + root) / safe, -1.0, 1.0)
        return np.where(known, low, -1.0), np.where(known, high, 1.0)


def ratio(frequency, total, n):
    """Return (shares that can be divided by, means): a share is at least that of one user, a mean from -1 to 1."""
    share = np.clip(frequency, 1 / n, 1.0)
    return share, np.clip(total / share, -1.0, 1.0)


def estimate(law, counts, n):
    """Return the `Estimates` that the counts of n users' reports tell of.

    Reports of a user who holds the key with value v say plus or minus with probability A, and the difference of the two
    probabilities is v D; without the key they say either with probability B. Where not all n are asked for the key,
    these are drawn without looking at them, and a part (n - asked) / (n - 1) of what users differ by is in the
    variance (``pckv.md``, ``privkv.md``). The mean square of values is taken to be at its least: variances are a little
    too large, never too small. All is NaN for a key that nobody was asked for.
    """
    asked, plus, minus = law.tallies(counts, n)
    b, slope, gap = _line(law)
    asked = np.where(asked > 0, asked, np.nan)
    frequency, total = ((plus + minus) / asked - b) / slope, (plus - minus) / asked / gap
    return Estimates(n, frequency, total, *variances(law, *ratio(frequency, total, n), asked, n))


def _line(law):
    """Return the probability that a report says a sign without the key, what the key adds, and what a sign's value."""
    right, turned, other = map(float, law.cell)
    return 2 * other, (right + turned - 2 * other) / law.length, (right - turned) / law.length


def variances(law, f, m, asked, n):
    """Return the variances of frequency and total, and their covariance, of keys held by a share f with the mean m."""
    b, slope, gap = _line(law)
    a, drawn = b + slope, (n - asked) / max(n - 1, 1)
    d, said = m * gap, b + f * slope
    share = f * a * (1 - a) + (1 - f) * b * (1 - b) + drawn * f * (1 - f) * slope**2
    signs = said - (1 - drawn) * f * d**2 - drawn * (f * d) ** 2
    both = f * d * (1 - a) + drawn * f * d * (a - said)
    return share / slope**2 / asked, signs / gap**2 / asked, both / (slope * gap) / asked
