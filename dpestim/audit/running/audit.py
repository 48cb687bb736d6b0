"""`audit`: a lower bound on the epsilon of running code."""

import math
import secrets
import time
from numbers import Integral, Real

import numpy as np

from dpestim.audit.running.channels import checked_channels, tasks_of
from dpestim.audit.running.outputs import Columns, Raised, is_unreadable
from dpestim.audit.running.pairs import WANTED, pairs_of
from dpestim.audit.running.plans import claim_of, rounds_of
from dpestim.audit.running.result import Audit
from dpestim.audit.running.sampling import OutOfTimeError, copier, draw_both, joined, seeded
from dpestim.audit.running.search import Search
from dpestim.audit.running.subjects import OfEstimator, caller_of
from dpestim.privacy import ambient
from dpestim.progress import Progress, silent

#: Outputs of an audit whose number is not given: at most, of calls that return one, or many.
_MOST = {False: 1_000_000, True: 8_000_000}
#: The part of the time that is planned for, and that shows how fast calls are.
_PLANNED, _PROBED = 0.7, 0.02
#: Outputs that show it, at first (then four times as many), and how often.
_PROBE, _PROBES = {False: 4, True: 500}, 5


def audit(mechanism, pairs=None, *, claim, confidence=0.999, n_samples=None, time_limit=60, events="auto",
          side_channels=("bits",), batch=False, random_state=None):
    """Return a lower bound on the epsilon of running code, which holds with a stated confidence.

    The code is called many times with data and with a neighbour. One half of the outputs chooses the pair, the order
    and the set of outputs that tell the two apart best; the other half tests this event once, by an exact test. A claim
    below the bound is wrong. A bound below the claim proves nothing: `exact_epsilon` and proofs do.

    Parameters
    ----------
    mechanism : callable or estimator
        ``f(data)``, which returns an output: a number, text, a list, tuple, dict or array of these. A parameter called
        ``rng`` gets a generator of NumPy, so that the audit is reproducible; NumPy's and Python's global generators are
        seeded, too. An exception is an output. Of an estimator of the local model the report of one row is the output,
        of mechanisms of `dpestim.central` what `release` returns, and of others the public attributes after ``fit``; a
        copy is audited, without its ledger. A callable that charges a ledger is refused before anything is charged,
        unless the callable makes the ledger.
    pairs : list of (data, neighbour), Numbers, Categories, list of these, Domain or None, default=None
        Neighbouring data, as the claim means it; data of a fit with targets is a tuple (X, y). Or what the value of a
        person is, of which extremes are tried, or a table, of which the claim says whether a row is replaced or added.
        None: data that suit the estimator, or graphs that differ in one edge.
    claim : float, (float, float) or PrivacyGuarantee
        Epsilon, or (epsilon, delta).
    confidence : float, default=0.999
        With which the bound holds, over all that is tried.
    n_samples : int or None, default=None
        Outputs in all. None: as many as the time allows, and at most a million (eight million if `batch`).
    time_limit : float, default=60
        Seconds that the audit plans for. Where calls become slower, the test draws fewer outputs, unless `n_samples` is
        given. A test that does not end within twice the limit counts for nothing.
    events : "auto" or dict, default="auto"
        Sets of outputs that are tried: learned ones, or functions ``f(output) -> bool`` by words.
    side_channels : tuple of str, default=("bits",)
        What else is looked at. "bits": the low bits and the sign bits of floats. "time": the seconds of a call, for a
        claim that covers time; other work of the machine disturbs it. "repeats", "pickles", "forks": whether two
        calls, two copies by pickle or two forks of the process have the same noise.
    batch : bool, default=False
        Whether `mechanism` is ``f(data, n)``, which returns n independent outputs at once.
    random_state : int or None, default=None
        Seed of all that the audit draws. None: a new one, which the result tells.

    Returns
    -------
    Audit

    Raises
    ------
    ValueError
        Before anything runs, for parameters that do not fit; and where each of the first calls fails.

    Notes
    -----
    Independent outputs are assumed: code that keeps a state from call to call breaks this. Proof: ``audit.md``.

    References
    ----------
    Z. Ding et al., "Detecting violations of differential privacy", CCS 2018. B. Bichsel et al., "DP-Sniper: black-box
    discovery of differential privacy violations using classifiers", S&P 2021. R. Berger, D. Boos, "P values maximized
    over a confidence set for the nuisance parameter", JASA 1994.

    Examples
    --------
    >>> from dpestim.audit import audit
    >>> def noisy_count(n_people, rng):
    ...     return n_people + rng.geometric(0.8) - rng.geometric(0.8)  # (epsilon is ln 5)
    >>> found = audit(noisy_count, [(10, 11)], claim=1.0, n_samples=20_000, random_state=0)
    >>> found.violated, found.event
    (True, 'output >= 11')
    """
    claim = claim_of(claim)
    confidence = _number("confidence", confidence, "in (0, 1 - 1e-9]", lambda v: 0 < v <= 1 - 1e-9)
    time_limit = _number("time_limit", time_limit, "above 0, in seconds", lambda v: 0 < v < math.inf)
    if n_samples is not None and (isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 8):
        raise ValueError("n_samples must be None or an integer of at least 8")
    if not isinstance(batch, bool):
        raise ValueError("batch must be True or False")
    side_channels = checked_channels(side_channels, batch)
    if events != "auto" and not (isinstance(events, dict) and events and all(map(callable, events.values()))):
        raise ValueError('events must be "auto" or a dict of functions by words, such as {"output >= 3": lambda y: '
                         "y >= 3}")
    if random_state is not None and (isinstance(random_state, bool) or not isinstance(random_state, Integral)
                                     or random_state < 0):
        raise ValueError("random_state must be None or an integer of at least 0")
    caller = caller_of(mechanism, batch)
    if pairs is None and not isinstance(caller, OfEstimator):
        raise ValueError(WANTED)
    pairs = caller.pairs(claim) if pairs is None else pairs_of(pairs, claim)
    if not isinstance(caller, OfEstimator):
        _refuse_what_cannot_be_copied(pairs)
    tasks = tasks_of(caller, pairs, side_channels)
    seed = secrets.randbits(32) if random_state is None else int(random_state)
    start = time.perf_counter()
    progress = Progress("audit", 1)
    with seeded(seed % 2**32), ambient.audited(), silent():
        each = _probe(caller, pairs[0], seed, _PROBED * time_limit if n_samples is None else 0.0, start + time_limit)
        planned = int(n_samples) if n_samples is not None else _affordable(
            each, time_limit - (time.perf_counter() - start), caller.batch)
    with seeded(seed % 2**32), ambient.audited(), silent():
        search = Search(tasks, claim, 1 - confidence, "bits" in side_channels, None if events == "auto" else events,
                        seed, n_samples is not None)
        return _run(search, rounds_of(planned, len(tasks), caller.batch), confidence, planned, start, time_limit,
                    progress)


def _run(search, rounds, confidence, planned, start, time_limit, progress):
    best, claim = None, search.claim
    for number, stage in enumerate(rounds, 1):
        pilots = progress.part(search.n_pilots, f"round {number} of at most {len(rounds)}: pilot")
        found = search.run(stage, start + time_limit, start + 2 * time_limit, pilots)
        progress.tell(f"round {number} of at most {len(rounds)} is over")
        if found is not None and (best is None or found.epsilon >= best.epsilon):
            best = found
        if best is not None and best.epsilon > claim.epsilon:
            break
    seconds = time.perf_counter() - start
    shared = {"claim": claim, "confidence": confidence, "n_samples": search.n_drawn, "planned": planned,
              "seconds": seconds, "seed": search.seed,
              "reach": search.reach if best is not None or search.was_late else math.inf}
    remarks = []
    if search.is_cut:
        remarks.append("An output is large: not all of its numbers were read.")
    if search.was_short:
        remarks.append("The time was short: a test drew fewer outputs than planned.")
    if best is None:
        return Audit(epsilon_lower=0.0, pair=search.tasks[0][2], event="none", direction="data",
                     counts=((0, 0), (0, 0)), **shared,
                     remarks=(*remarks, "The time limit came before a test ended: raise time_limit." if search.was_late
                              else "All outputs of the pilot were the same."))
    if search.reach <= claim.epsilon and best.epsilon <= claim.epsilon:
        remarks.append("The test had too few outputs to refute the claim: raise time_limit or n_samples.")
    choice = best.choice
    return Audit(epsilon_lower=best.epsilon, pair=search.tasks[choice.task][2], event=choice.event.words,
                 direction="neighbour" if choice.backward else "data", counts=best.counts, remarks=remarks, **shared)


def _probe(caller, pair, seed, most, until):
    """Return the seconds that an output takes, once the first ones are there; raise where all calls fail."""
    n, each = _PROBE[caller.batch], None
    begin = time.perf_counter()
    for number in range(_PROBES):
        start = time.perf_counter()
        rngs = [np.random.default_rng([seed, 0, number, side]) for side in (0, 1)]
        try:
            sides = draw_both(caller, pair, n, rngs, until)
        except OutOfTimeError:
            if each is None:
                raise ValueError("time_limit must be larger: a few calls take longer") from None
            break
        outputs = joined(sides)
        Columns(outputs).read(outputs)
        if number == 0 and all(isinstance(output, Raised) for output in outputs):
            raise ValueError("mechanism must return outputs for the data of the pairs, and all of the first calls "
                             f"raised {outputs[0].name} ({outputs[0].told}): check mechanism and pairs")
        for output in outputs if number == 0 else ():
            if is_unreadable(output):
                raise ValueError("mechanism must return numbers, text, lists, dicts, arrays or frames, and returned a "
                                 f"{type(output).__name__}, which an audit cannot read: return what it holds")
        now = time.perf_counter()
        each = (now - start) / (2 * n)
        if now - begin > most:
            break
        n *= 4
    return each


def _refuse_what_cannot_be_copied(pairs):
    for data in (part for pair in pairs for part in pair):
        try:
            copier(data)()
        except Exception as error:
            raise ValueError(f"pairs must hold data that can be copied, and not a {type(data).__name__} "
                             f"({type(error).__name__}): each call gets a copy") from None


def _affordable(each, left, batch):
    """Return how many outputs the time allows, with two digits, so that the plan seldom depends on the clock."""
    n = min(_MOST[batch], max(8, int(_PLANNED * left / max(each, 1e-9))))
    digits = 10 ** max(0, len(str(n)) - 2)
    return n // digits * digits


def _number(name, value, what, holds):
    if isinstance(value, bool) or not isinstance(value, Real) or not holds(value):
        raise ValueError(f"{name} must be a number {what}")
    return float(value)
