"""A search for a counterexample: two neighbours, and an event, that refute a claimed epsilon."""

import inspect
import math
import secrets
import time
from fractions import Fraction

import numpy as np

from dpestim.audit.certificates import exceeds, of_densities, of_laws
from dpestim.audit.density import Density, density_excess, density_loss
from dpestim.audit.running.audit import audit
from dpestim.audit.running.plans import claim_of
from dpestim.audit.running.result import down, short
from dpestim.audit.spaces import NEIGHBOURS, Box, Choices
from dpestim.privacy import PrivacyGuarantee
from dpestim.privacy.exact import canonical_amount
from dpestim.privacy.rounding import positive, whole
from dpestim.progress import Progress
from dpestim.tables import Table

#: Moves of a pair in a row without a better one; pairs that are moved; the least reach of a move, and what better is.
_IDLE, _BEST, _LEAST, _BETTER = 8, 3, 0.01, 1.001
#: Of a sampler: shares of the outputs for the starts and for pairs near the best one, and pairs of the last audit.
_PILOTS, _LAST = (0.15, 0.15), 4
#: Outputs of a pilot for each pair, at least.
_ENOUGH = 200
_MOST = 200_000


class Counterexample(Table):
    """What a search for a counterexample found: `search_counterexample` makes it.

    Attributes
    ----------
    found : bool
        Whether the claim is refuted.
    epsilon_lower : float
        What the pair and the event prove of epsilon, at the delta of the claim.
    claim : (float, float)
        Epsilon and delta.
    pair : (data, neighbour)
        The event is likelier with the first one.
    event : str
        The set of outputs, in words.
    probabilities : (number, number)
        Of the event, with both: Fractions; `Estimate`; or shares of outputs.
    certificate : str
        "exact", by Fractions; "quadrature", with a known error; or "samples", with a stated confidence.
    audit : Audit or None
        The audit of the pair, of a sampler.
    n_pairs : int
        Pairs that were tried.
    seconds : float
    seed : int

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpestim.audit import search_counterexample
    >>> def mostly(answer):
    ...     return {answer: Fraction(9, 10), "?": Fraction(1, 10)}
    >>> search_counterexample(mostly, claim=3.0, categories=[["yes", "no"]]).epsilon_lower
    inf
    """

    _n_labels = 1
    _plotted = ("epsilon", None, None)

    def __init__(self, *, epsilon_lower, found, claim, pair, event, probabilities, certificate, n_pairs, seconds, seed,
                 audit=None):
        self.epsilon_lower, self.found, self.claim = epsilon_lower, found, (float(claim[0]), float(claim[1]))
        self.pair, self.event, self.probabilities = pair, event, probabilities
        self.certificate, self.audit = certificate, audit
        self.n_pairs, self.seconds, self.seed = n_pairs, seconds, seed

    def __repr__(self):
        return f"<Counterexample: {self.verdict}>"

    @property
    def verdict(self):
        """What was found, in a sentence."""
        claim = f"epsilon {self.claim[0]:g}" + (f" and delta {self.claim[1]:g}" if self.claim[1] else "")
        if self.found:
            return f"the claim of {claim} is wrong: epsilon is at least {down(self.epsilon_lower)}"
        return f"no counterexample to {claim} was found: epsilon is at least {down(self.epsilon_lower)}"

    @property
    def privacy(self):
        """Nothing is released: data are made up from the declared domain."""
        return PrivacyGuarantee(0, notes=("The search makes up its data, and reads none.",))

    def _about(self):
        return f"A search among {self.n_pairs:,} pairs of neighbours: {self.verdict}."

    def _head(self):
        return "", "epsilon", "event with the first", "with the second"

    def _rows(self):
        yield "claim", self.claim[0], None, None
        yield "at least", down(self.epsilon_lower), *(f"{float(part):.4g}" for part in self.probabilities)

    def _columns(self):
        return "number", "epsilon", "delta", "event", "first", "second", "certificate"

    def _records(self):
        yield "claim", *self.claim, None, None, None, None
        yield ("lower bound", self.epsilon_lower, self.claim[1], self.event, *map(float, self.probabilities),
               self.certificate)

    def _remarks(self):
        sure = f", with confidence {self.audit.confidence:g}" if self.audit is not None else ""
        return (f"{self.verdict[0].upper()}{self.verdict[1:]} ({self.certificate}{sure}).",
                f"Event: {self.event}.", f"Likelier with {short(self.pair[0])} than with {short(self.pair[1])}.",
                f"{self.n_pairs:,} pairs in {self.seconds:.1f} s, seed {self.seed}.")


def search_counterexample(program, *, claim, bounds=None, categories=None, n_values=None, neighbours="any", step=None,
                          n_pairs=400, time_limit=10, confidence=0.999, n_samples=None, batch=False,
                          random_state=None):
    """Search two neighbours and an event that refute a claimed epsilon, and certify what is found.

    The search begins with pairs at the extremes of the domain, in the directions in which published mistakes lose most
    (all values up, one up, some up and others down), and moves the best of them at random. For a law the best event is
    known: the outputs whose ratio is largest. A program that returns outputs is audited instead. That nothing is found
    proves nothing.

    **Privacy.** No data are read.

    Parameters
    ----------
    program : callable or matrix
        One of four, told by what it returns:

        * ``f(data)`` that returns a dict from outputs to probabilities: the law. The certificate is exact where these
          are Fractions or ints; floats are taken for the fractions that they are.
        * ``f(data)`` that returns a `Density`. The certificate is by quadrature, its errors counted against it.
        * ``f(data)`` that returns an output, or ``f(data, rng)``, or with `batch` ``f(data, n)``, as in `audit`. The
          certificate holds with `confidence`. A program whose outputs are dicts must take ``rng``.
        * a matrix: a row of probabilities for each input, any two of which are neighbours.
    claim : float, (float, float) or PrivacyGuarantee
        Epsilon, or (epsilon, delta).
    bounds : (low, high), default=None
        Data are a number between these; or, where these are arrays or `n_values` is given, a list of numbers.
    categories : list of lists, default=None
        Data are a category; of several columns, a tuple.
    n_values : int, default=None
        Values of a list of numbers.
    neighbours : {"any", "one", "each", "total"}, default="any"
        Which data are neighbours: any two; those that differ in one value or column; those in which each value differs
        by `step` at most, as answers of queries do; or all values together by `step` at most.
    step : float, default=None
        How far; for "each" and "total".
    n_pairs : int, default=400
        Pairs that are tried at most, of a law.
    time_limit : float, default=10
        Seconds.
    confidence : float, default=0.999
    n_samples : int, default=None
        Outputs in all, of a sampler. None: 200,000 at most.
    batch : bool, default=False
        Whether a sampler is ``f(data, n)``, which returns n outputs.
    random_state : int, default=None
        Seed of the moves and of the audit. None: a new one, which the result tells.

    Returns
    -------
    Counterexample
        Also where nothing was found: what comes nearest.

    Raises
    ------
    ValueError
        For a parameter that does not fit, and for what is no law.

    Notes
    -----
    O(n_pairs) laws. Proof: ``search.md``.

    References
    ----------
    B. Bichsel, T. Gehr, D. Drachsler-Cohen, P. Tsankov, M. Vechev, "DP-Finder: finding differential privacy violations
    by sampling and optimization", CCS 2018.

    Examples
    --------
    >>> import math
    >>> from dpestim.audit import Density, search_counterexample
    >>> noise = Density(lambda x: math.exp(-abs(x)) / 2, (0,))
    >>> def noisy_sum(values):  # (a value in [50, 60], or none: 0)
    ...     return noise.moved(sum(values), 10)
    >>> found = search_counterexample(noisy_sum, claim=1.0, bounds=(0, 60), n_values=2, neighbours="one", n_pairs=20)
    >>> found.found, round(found.epsilon_lower, 4), found.certificate
    (True, 6.0, 'quadrature')
    """
    started = time.perf_counter()
    claimed = claim_of(claim)
    exact = tuple(canonical_amount(part, "claim") for part in claimed[:2])
    most, limit = whole(n_pairs, "n_pairs"), float(positive(time_limit, "time_limit"))
    if random_state is not None and (isinstance(random_state, bool) or not isinstance(random_state, int | np.integer)
                                     or random_state < 0):
        raise ValueError("random_state must be None or an integer of at least 0")
    seed = secrets.randbits(32) if random_state is None else int(random_state)
    rng, shared, is_matrix = np.random.default_rng([seed, 0]), {"claim": claimed, "seed": seed}, not callable(program)
    program, space = _space(program, bounds, categories, n_values, neighbours, step)
    until = started + limit
    if not is_matrix and _draws(program, space, batch):
        return _search_sampler(program, space, claimed, confidence, n_samples, batch, rng, shared, started, until)
    climb = _Climb(program, space, exact, most, until)
    best, pair = climb.certified(climb.run(rng))
    pair = tuple(map(space.data, pair))
    return Counterexample(epsilon_lower=best.epsilon, found=exceeds(best, exact[0]), pair=pair, event=best.event,
                          probabilities=(best.likelier, best.other), certificate=best.how, n_pairs=climb.n_tried,
                          seconds=time.perf_counter() - started, **shared)


def _space(program, bounds, categories, n_values, neighbours, step):
    """Return (program, the space of its inputs), or raise ValueError."""
    if neighbours not in NEIGHBOURS:
        raise ValueError(f"neighbours must be one of {list(NEIGHBOURS)}")
    if not callable(program):
        if bounds is not None or categories is not None:
            raise ValueError("bounds and categories must be None for a matrix, whose rows are the inputs")
        if not isinstance(program, list | tuple | np.ndarray) or len(program) < 2:
            raise ValueError("program must be a function of data, or a matrix with a row of probabilities for each of "
                             "at least two inputs")
        rows = [list(row) for row in program]
        return rows.__getitem__, Choices([range(len(rows))], "any")
    if (bounds is None) == (categories is None):
        raise ValueError("bounds or categories must be given, and not both: what data are")
    if bounds is not None:
        return program, Box(bounds, n_values, neighbours, step)
    if n_values is not None or step is not None or neighbours not in ("any", "one"):
        raise ValueError('n_values and step must be None for categories, and neighbours "any" or "one"')
    return program, Choices(categories, neighbours)


def _draws(program, space, batch):
    """Tell whether a program returns outputs, and not a law."""
    if batch:
        return True
    try:
        if "rng" in inspect.signature(program).parameters:
            return True
    except (TypeError, ValueError):
        pass
    return not isinstance(program(space.data(space.starts()[0][0])), dict | Density)


class _Climb:
    """A search of laws: the best of many starts, and moves of it as long as they help."""

    def __init__(self, program, space, claim, most, until):
        self.program, self.space, self.claim, self.most, self.until = program, space, claim, most, until
        self.n_tried, self.laws, self.progress = 0, {}, Progress("search_counterexample", most, "pair", most=True)

    def run(self, rng):
        """Return the pair of the largest loss."""
        tried = []
        for pair in self.space.starts():
            tried.append((self.loss(pair), pair))
            if self._is_over() or tried[-1][0] == math.inf:
                break
        tried.sort(key=lambda one: -one[0])
        for at, (best, pair) in enumerate(tried[:_BEST]):
            scale, idle = 0.5, 0
            while scale > _LEAST and best < math.inf and not self._is_over():
                near = self.space.near(pair, scale, rng)
                found = self.loss(near)
                if found > best * _BETTER:
                    best, pair, idle = found, near, 0
                    continue
                idle += 1
                if idle == _IDLE:
                    scale, idle = scale / 2, 0
            tried[at] = best, pair
        return max(tried, key=lambda one: one[0])[1]

    def loss(self, pair):
        """Return what is searched for: the epsilon of finite laws; of densities the loss, or the delta."""
        self.n_tried += 1
        self.progress.done(self.n_tried)
        p, q = map(self._law, pair)
        if not isinstance(p, Density):
            return max(of_laws(*both, self.claim[1]).epsilon for both in ((p, q), (q, p)))
        if self.claim[1]:
            return max(float(density_excess(*both, self.claim[0])) for both in ((p, q), (q, p)))
        return max(density_loss(p, q), density_loss(q, p))

    def certified(self, pair):
        """Return (the better certificate of both orders, the pair in this order)."""
        found = []
        for both in (pair, pair[::-1]):
            p, q = map(self._law, both)
            epsilon, delta = self.claim
            found.append((of_densities(p, q, float(delta), float(epsilon)) if isinstance(p, Density) else
                          of_laws(p, q, delta), both))
        return max(found, key=lambda one: one[0].epsilon)

    def _law(self, part):
        if part not in self.laws:
            self.laws[part] = self.program(self.space.data(part))
        return self.laws[part]

    def _is_over(self):
        return self.n_tried >= self.most or time.perf_counter() > self.until


def _search_sampler(program, space, claim, confidence, n_samples, batch, rng, shared, started, until):
    """Return what audits find: pilots choose among starts, and among pairs near the best; one audit counts."""
    total = _MOST if n_samples is None else whole(n_samples, "n_samples")
    given = {"claim": claim[:2], "confidence": confidence, "batch": batch}
    pairs, n_tried = space.starts()[: max(_LAST, int(_PILOTS[0] * total) // _ENOUGH)], 0
    for number, share in enumerate(_PILOTS):
        found = _audited(program, space, pairs, int(share * total), until - time.perf_counter(),
                         shared["seed"] + number + 1, given)
        n_tried += len(pairs)
        best = pairs[_place(space, pairs, found.pair)]
        near = [space.near(best, 0.5 ** (1 + k), rng) for k in range(_LAST - 1)] if number + 1 < len(_PILOTS) else []
        pairs = list(dict.fromkeys([best, *near]))
    last = _audited(program, space, pairs, int((1 - sum(_PILOTS)) * total), until - time.perf_counter(),
                    shared["seed"], given)
    counts = [Fraction(a, n) if n else Fraction(0) for a, n in last.counts]
    pair = last.pair if last.direction == "data" else last.pair[::-1]
    return Counterexample(epsilon_lower=last.epsilon_lower, found=last.violated, pair=pair, event=last.event,
                          probabilities=tuple(counts), certificate="samples", n_pairs=n_tried, audit=last,
                          seconds=time.perf_counter() - started, **shared)


def _audited(program, space, pairs, n, seconds, seed, given):
    data = [tuple(space.data(part) for part in pair) for pair in pairs]
    return audit(program, data, n_samples=max(8, n), time_limit=max(seconds, 0.1), random_state=seed, **given)


def _place(space, pairs, pair):
    return next(k for k, one in enumerate(pairs) if tuple(space.data(part) for part in one) == tuple(pair))
