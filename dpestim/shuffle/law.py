"""What one user sends under the shuffle model, and a proven bound on what all messages together tell."""

import math
from fractions import Fraction

from dpestim.local.law import ALL, Promise, Randomizer
from dpestim.privacy.exact import log_above, within
from dpestim.privacy.rounding import LARGEST, crossing, float_down

#: Fixed points of a number between its bounds: 0 is the lower one, this the upper one.
ONE = 1 << 48
#: Of 2^64 words, up to how many are few: where an answer other than the usual one has no more, its words are drawn as
#: `dpestim.rng.Words.below` draws them, an eighth of a word a place and a whole one for few of them.
RARELY = 1 << 60


class ShuffleLaw(Randomizer):
    """Base of the laws of messages, ``__init__(self, epsilon, delta, n_users, colluding, ...)``.

    A report is all messages of one user. A sub-class brings what any `Randomizer` does (`n_words`, `report_dtype`,
    `report_width`, `report_bits`, `n_counts`, `privatize`, `check_reports`, `count`), and

    delta_at(epsilon, n_honest)
        A proven upper bound, a float, of the delta that holds with this epsilon for the multiset of all messages, where
        so many users besides the analyser's own follow the protocol; it falls in both.
    local_ratio
        The largest ratio of the probabilities of one user's messages for two values, or ``math.inf``.
    message_law(code)
        {messages: Fraction}, the exact law of one user's messages as a sorted tuple, where it can be enumerated.

    Parameters
    ----------
    epsilon, delta : Fraction
        What holds where at least `n_users` take part and at most `colluding` of them help the analyser.
    n_users, colluding : int
    """

    heavy = True
    #: Why `message_law` is not enumerated, in a sentence; empty where it is.
    not_enumerated = ""

    def __init__(self, epsilon, delta, n_users, colluding):
        super().__init__(epsilon)
        self.delta, self.n_users, self.colluding = delta, n_users, colluding

    def check(self):
        """Refuse a law whose bound does not keep what it promises."""
        ratio = self.local_ratio
        if ratio != math.inf and within(ratio.numerator, ratio.denominator, self.epsilon):
            return  # a user's own messages keep epsilon, whatever the others do
        if self.delta_at(float_down(self.epsilon), self.n_honest) > float_down(self.delta):
            raise ValueError(f"epsilon and delta are too small for {self.n_honest} honest users: take larger ones, or "
                             "more users")

    @property
    def n_honest(self):
        """Users whose messages hide each other."""
        return self.n_users - self.colluding

    @property
    def promises(self):
        """What holds whoever sees the messages of one user before they are shuffled."""
        return (Promise(ALL, ALL, ALL, self.local_epsilon),)

    @property
    def local_epsilon(self):
        """Epsilon of one user's messages without any shuffler, a Fraction or infinite."""
        ratio = self.local_ratio
        return log_above(ratio) if isinstance(ratio, Fraction) else ratio

    def delta_at(self, epsilon, n_honest):
        """Return a proven upper bound of delta."""
        raise TypeError(f"{type(self).__name__} does not bound its delta: implement `delta_at`")

    def message_law(self, code):
        """Return the exact law of one user's messages."""
        raise TypeError(f"{type(self).__name__} does not enumerate its law: implement `message_law`")

    def epsilon_left(self, colluding):
        """Return the least epsilon known to hold with `delta` where so many of `n_users` help the analyser."""
        if colluding <= self.colluding:
            return self.epsilon
        n_honest = self.n_users - colluding
        if n_honest < 1:
            return self.local_epsilon
        return min(self.local_epsilon, least_epsilon(lambda e: self.delta_at(e, n_honest), self.delta))


def least_epsilon(delta_of, delta):
    """Return a float at which ``delta_of(epsilon)``, which falls, is at most delta, near the least; or infinity."""
    delta = float_down(delta)
    high = 1.0
    while delta_of(high) > delta:
        high *= 2
        if high > LARGEST:
            return float("inf")
    return Fraction(crossing(lambda e: delta_of(e) - delta, 0.0, high, 1e-9))


def largest(fits, low, high):
    """Return the largest integer from low to high for which ``fits`` holds, which it does up to some point, low too."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def smallest(fits, low, high):
    """Return the smallest integer from low to high for which ``fits`` holds, where it holds from some point on."""
    return -largest(lambda k: fits(-k), -high, -low)


def first_below(value, low, high, above=None, below=None):
    """Return the smallest integer from low to high at which a falling function is at most 0, which it is at high.

    As `smallest`, with fewer calls: lines through the latest two points, and halves where these do not get near.
    `above` and `below` are the values at the ends, nearly, where they are known.
    """
    last, at = (low, value(low) if above is None else above), (high, value(high) if below is None else below)
    if last[1] <= 0:
        return low
    widths = []
    while high - low > 1:
        widths.append(high - low)
        slow = len(widths) > 2 and 2 * widths[-1] > widths[-3]
        rise = at[1] - last[1]
        root = (low + high) / 2
        if slow:
            widths.clear()
        elif rise and math.isfinite(rise):
            root = at[0] - at[1] / rise * (at[0] - last[0])
        k = min(max(math.ceil(root), low + 1), high - 1)
        last, at = at, (k, value(k))
        low, high = (k, high) if at[1] > 0 else (low, k)
    return high
