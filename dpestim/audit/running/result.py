"""What an audit found, as a result."""

import math

from dpestim.privacy import PrivacyGuarantee
from dpestim.tables import Table


class Audit(Table):
    """What an audit of running code found: `dpestim.audit.audit` makes it.

    Attributes
    ----------
    epsilon_lower : float
        At the claim's delta: with probability `confidence` no larger than the epsilon that the code really has.
    violated : bool
        Whether `epsilon_lower` is above the claim.
    claim : (float, float)
        Epsilon and delta.
    confidence : float
        Of all that was tried, together.
    pair : (data, neighbour)
        Of the event.
    event : str
        The set of outputs that tells the two apart, in words.
    direction : str
        With which of the two it is likelier.
    counts : ((int, int), (int, int))
        How often the event was seen in the test, of how many outputs: first with the data that it is likelier with.
    n_samples : int
        Outputs that were drawn in all.
    planned : int
        ``audit(..., n_samples=result.planned, random_state=result.seed)`` is the same audit, unless a remark says that
        the time was short.
    seconds : float
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.audit import audit
    >>> def half(x, rng):
    ...     return x + rng.laplace(scale=0.5)  # (as for epsilon 2)
    >>> found = audit(half, [(0, 1)], claim=1.0, n_samples=20_000, random_state=0)
    >>> found.violated, found.epsilon_lower > 1.5
    (True, True)
    """

    _plotted = ("epsilon", None, None)
    _n_labels = 1

    def __init__(self, *, epsilon_lower, claim, confidence, pair, event, direction, counts, n_samples, planned,
                 seconds, seed, reach=math.inf, remarks=()):
        self.epsilon_lower, self.claim, self.confidence = epsilon_lower, (claim[0], claim[1]), confidence
        self.pair, self.event, self.direction, self.counts = pair, event, direction, counts
        self.n_samples, self.planned, self.seconds, self.seed = n_samples, planned, seconds, seed
        self._reach, self._more = reach, tuple(remarks)

    @property
    def violated(self):
        """Whether the bound is above the claim."""
        return self.epsilon_lower > self.claim[0]

    def __repr__(self):
        return f"<Audit: {self.verdict}>"

    @property
    def verdict(self):
        """What was found, in a sentence."""
        claim = f"epsilon {self.claim[0]:g}" + (f" and delta {self.claim[1]:g}" if self.claim[1] else "")
        if self.violated:
            return f"the claim of {claim} is wrong: epsilon is at least {down(self.epsilon_lower)}"
        return f"no violation of {claim} was found: epsilon is at least {down(self.epsilon_lower)}"

    @property
    def privacy(self):
        """None: outputs of the code are compared, of data that were given."""
        return PrivacyGuarantee(math.inf, notes=("An audit runs the code many times on the same data.",))

    def _about(self):
        return f"{self.n_samples:,} outputs of running code: {self.verdict}."

    def _head(self):
        return "", "epsilon", "seen with", "of", "and with the neighbour", "of"

    def _rows(self):
        yield "claim", self.claim[0], None, None, None, None
        (a, n), (b, m) = self.counts
        yield "at least", down(self.epsilon_lower), a, n, b, m

    def _columns(self):
        return ("number", "epsilon", "delta", "confidence", "event", "direction", "seen", "outputs", "seen_neighbour",
                "outputs_neighbour")

    def _records(self):
        yield "claim", *self.claim, *[None] * 7
        (a, n), (b, m) = self.counts
        yield ("lower bound", self.epsilon_lower, self.claim[1], self.confidence, self.event, self.direction, a, n, b,
               m)

    def _remarks(self):
        verdict = self.verdict[0].upper() + self.verdict[1:]
        likelier, other = self.pair if self.direction == "data" else self.pair[::-1]
        event = () if self.event == "none" else (
            f"Event: {self.event}.", f"Likelier with {short(likelier)} than with {short(other)}.")
        return (f"{verdict} (with confidence {self.confidence:g}).", *event,
                f"{self.n_samples:,} outputs in {self.seconds:.1f} s, seed {self.seed}.", *self._more)


def down(value):
    """Return a bound with four digits, rounded down."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    digits = 3 - math.floor(math.log10(value))
    return f"{math.floor(value * 10.0**digits) / 10.0**digits:.{max(digits, 0)}f}"


def short(data):
    """Return data as text of at most a line."""
    text = " ".join(repr(data).split())
    return text if len(text) <= 80 else text[:60] + " ... " + text[-15:]
