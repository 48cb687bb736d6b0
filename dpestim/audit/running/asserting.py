"""`assert_private`: an audit as an assertion of a test suite."""

from dpestim.audit.running.audit import audit
from dpestim.audit.running.result import short


def assert_private(mechanism, *, epsilon, delta=0.0, pairs=None, confidence=0.999, time_limit=10, random_state=0,
                   **more):
    """Raise AssertionError where outputs of code show that it is less private than claimed.

    For test suites: `audit` runs, and the error says with which data, and by which event in words. With pytest the
    fixture ``assert_private`` is the same function; the option ``--dpestim-time-limit`` sets its time limit.

    A test that passes is no proof: a violation may need other data, or more outputs.

    Parameters
    ----------
    mechanism : callable or estimator
        As `audit` takes it, such as ``f(data)``.
    epsilon : float
        The claim.
    delta : float, default=0.0
        The claim's delta.
    pairs : list of (data, neighbour), Numbers, Categories, list of these, Domain or None, default=None
        Neighbouring data, as `audit` takes them. An estimator needs none.
    confidence : float, default=0.999
        With which an error is right: correct code raises in at most one of 1,000 runs with different seeds.
    time_limit : float, default=10
        Seconds. A longer audit finds smaller violations.
    random_state : int or None, default=0
        Seed of the audit.
    **more : dict
        More parameters of `audit`: `n_samples` (the same outputs on every machine), `side_channels`, `events`, `batch`.

    Returns
    -------
    Audit
        What was found, where the claim was not seen to be wrong.

    Raises
    ------
    AssertionError
        Where the claim is wrong.
    ValueError
        For parameters that do not fit, and where too few outputs were tested to refute the claim: such a test
        cannot fail. A large epsilon needs more than 7 e^epsilon outputs.

    Examples
    --------
    >>> from dpestim.audit import assert_private
    >>> def noisy_count(n_people, rng):
    ...     return n_people + rng.geometric(0.8) - rng.geometric(0.8)  # (epsilon is ln 5)
    >>> assert_private(noisy_count, epsilon=1.7, pairs=[(10, 11)], n_samples=4_000).violated
    False
    >>> assert_private(noisy_count, epsilon=1.0, pairs=[(10, 11)], n_samples=4_000)
    Traceback (most recent call last):
    AssertionError: noisy_count: the claim of epsilon 1 is wrong: epsilon is at least 1.376 (with confidence 0.999).
    Event: output <= 10.
    It was seen 866 times of 1,000 with 10, and 175 times of 1,000 with its neighbour 11.
    """
    __tracebackhide__ = True  # (pytest shows the line of the test)
    found = audit(mechanism, pairs, claim=(epsilon, delta), confidence=confidence, time_limit=time_limit,
                  random_state=random_state, **more)
    refuse_empty(found)
    if found.violated:
        raise AssertionError(explained(mechanism, found))
    return found


def refuse_empty(found):
    """Raise ValueError where no outputs could have refuted the claim, as a test that cannot fail tests nothing."""
    if found.violated or found._reach > found.claim[0]:
        return
    if not found.counts[0][1]:
        raise ValueError("time_limit must be larger, because it came before anything was tested: raise it, or make the "
                         "data smaller")
    raise ValueError(f"time_limit or n_samples must be larger, because a test of {found.counts[0][1]:,} outputs for "
                     f"each data set cannot refute epsilon {found.claim[0]:g}")


def explained(mechanism, found):
    """Return what an audit has found, in sentences: the claim, the event, and with which data it is likelier."""
    name = getattr(mechanism, "__name__", type(mechanism).__name__)
    likelier, other = found.pair if found.direction == "data" else found.pair[::-1]
    (a, n), (b, m) = found.counts
    return (f"{name}: {found.verdict} (with confidence {found.confidence:g}).\nEvent: {found.event}.\nIt was seen "
            f"{a:,} times of {n:,} with {short(likelier)}, and {b:,} times of {m:,} with its neighbour {short(other)}.")
