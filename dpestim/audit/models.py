"""An audit of a model by one fit: canaries that coins include, guesses of the coins, and the bound that follows."""

import math
import time
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from dpestim.audit import canaries as made
from dpestim.audit.one_run import lower_bound
from dpestim.audit.running.plans import claim_of
from dpestim.audit.scores import score_of
from dpestim.base import PrivateEstimator
from dpestim.privacy import PrivacyGuarantee
from dpestim.privacy.neighbours import CENTRAL, Neighbours
from dpestim.privacy.rounding import whole
from dpestim.progress import Progress
from dpestim.rng import Stage, WordSource
from dpestim.tables import Table

#: The parts of a call's words that coins and canaries have; no estimator asks for parts of these numbers.
_COINS, _ROWS = 0x6175646974 + 1, 0x6175646974 + 2
#: Shares of the canaries that are guessed, one after another: all, the surest half, and the surest eighth.
_SHARES = (1, 2, 8)


class Guesses(NamedTuple):
    """Guesses of coins, the surest ones of all: one line of `ModelAudit`.

    Examples
    --------
    >>> from dpestim.audit import Guesses
    >>> Guesses(100, 88, 1.25).correct
    88
    """

    guesses: int
    correct: int
    epsilon_lower: float


class ModelAudit(Table):
    """A lower bound of epsilon from one fit, as `audit_model` finds it.

    Attributes
    ----------
    epsilon_lower : float
        With probability `confidence` at least, epsilon at the delta of the claim is not below this.
    violated : bool
        Whether that is more than was claimed.
    claim : (float, float)
        The (epsilon, delta) that was claimed.
    lines : tuple of Guesses
        (guesses, correct, epsilon_lower) for each number of guesses that was tried.
    confidence : float
        Of all lines together.
    n_canaries : int
        How many coins there were.
    neighbours : str
        What a turned coin does to the data: "substitution" replaces a row, "add_remove" adds or removes one.
    estimator_ : estimator or None
        The clone that was fitted. A pickle leaves it out, as an estimator may hold an exact summary of its rows.
    coins_, scores_ : ndarray of shape (n_canaries,)
        Whether the canary was there, and how much the model says so.
    seconds : float
    privacy : PrivacyGuarantee
        What the fit promises. Guesses are post-processing of the model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dpestim.audit import audit_model
    >>> X = np.random.default_rng(0).uniform(-1, 1, (40, 60))
    >>> found = audit_model(LogisticRegression(C=100), X, X[:, 0] > 0, n_canaries=60, claim=1.0, random_state=0)
    >>> found.violated
    True
    """

    _n_labels = 0
    _plotted = ("epsilon_lower", None, None)

    def __init__(self, lines, *, claim, confidence, n_canaries, neighbours, estimator, coins, scores, seconds):
        self.lines, self.claim, self.confidence = tuple(lines), claim, confidence
        self.n_canaries, self.neighbours, self.seconds = n_canaries, neighbours, seconds
        self.estimator_, self.coins_, self.scores_ = estimator, coins, scores
        promise = getattr(estimator, "privacy_", None)
        #: What the fit promises; guesses are post-processing of the model, of rows that were made up.
        self.privacy = promise if isinstance(promise, PrivacyGuarantee) else PrivacyGuarantee(
            math.inf, notes=("The model promises nothing that dpestim can read.",))

    def __getstate__(self):
        return {**self.__dict__, "estimator_": None}

    def __repr__(self):
        return f"<ModelAudit: {self._remarks()[1]} {self._remarks()[0]}>"

    @property
    def epsilon_lower(self):
        """The largest bound of all lines."""
        return max(line.epsilon_lower for line in self.lines)

    @property
    def violated(self):
        """Whether the bound is above the claim."""
        return self.epsilon_lower > self.claim[0]

    def _head(self):
        return "guesses", "correct", "epsilon is at least"

    def _columns(self):
        return Guesses._fields

    def _rows(self):
        return iter(self.lines)

    def _about(self):
        return f"Guesses of which of {self.n_canaries:,} canaries a model was fitted to."

    def _remarks(self):
        epsilon, delta = self.claim
        verdict = ("The claim is violated" if self.violated else
                   "The claim is not refuted; one fit cannot confirm it")
        return (f"Epsilon is at least {self.epsilon_lower:.4g} at delta {delta:.3g}, with confidence "
                f"{self.confidence:g}, by one fit with {self.n_canaries:,} canaries.",
                f"{verdict}: epsilon {epsilon:.4g}.",
                "Each coin decided which of two rows was there." if self.neighbours == "substitution" else
                "Each coin decided whether a row was there.")


def audit_model(estimator, X, y=None, *, n_canaries=200, claim=None, confidence=0.999, neighbours=None, domain=None,
                canaries=None, score=None, n_guesses=None, random_state=None):
    """Return a lower bound of the epsilon of a model, from one fit.

    Canaries are rows that a model remembers well. An independent fair coin decides for each whether it is among the
    rows of the fit. The coins are then guessed from the model, and more right guesses than (epsilon, delta) allows
    refute it. Any estimator of scikit-learn's kind is audited, with or without privacy. A bound below the claim
    confirms nothing: one fit finds gross faults (noise that is forgotten, a scale that is too small), and
    `dpestim.audit.exact_epsilon` or many fits find small ones.

    **Privacy.** The audit fits a clone once, and a ledger is charged once. The guesses are post-processing of the
    model. The canaries are made from `domain`, or from what the estimator declares; where neither says what a column
    holds, they are made from the exact values of X.

    Parameters
    ----------
    estimator : estimator
        With `fit`, and what `score` looks at.
    X : array-like or data frame of shape (n_rows, n_columns)
        Rows of the fit besides the canaries. A claim is about all data, so public or made-up rows will do. Few rows
        that are all alike, with as many columns as canaries, are the strongest test.
    y : array-like of shape (n_rows,), default=None
        Labels or targets.
    n_canaries : int, default=200
        Coins. With m of them the bound is at most about ln(m / 8) for a confidence of 0.999. Fewer canaries are
        remembered better each.
    claim : float, (float, float) or PrivacyGuarantee, default=None
        Epsilon; or epsilon and delta. None: the `privacy_` of the fitted model.
    confidence : float, default=0.999
        The bound is false with probability 1 - confidence at most, over coins and noise.
    neighbours : {"substitution", "add_remove"}, default=None
        The relation that was claimed. "substitution": a coin decides which of two rows is there, a canary or its
        twin. "add_remove": whether the canary is there. None: as the estimator says, else "substitution".
    domain : Domain, default=None
        The bounds or the categories of the columns of X.
    canaries : (rows, labels) or ((rows, labels), (rows, labels)), default=None
        Rows of your own, in the form of X, and labels (None without y): canaries, and for "substitution" also twins.
        None: numbers at their bounds, rare categories, labels at random. A twin has another label, or without labels
        opposite numbers.
    score : callable, default=None
        Called as score(model, rows, labels), returns a number for each row: larger where the row is likelier to have
        been there. None: the probability of the label, the prediction, density, synthetic rows, centers, or other
        fitted numbers.
    n_guesses : int or sequence of int, default=None
        How many of the canaries are guessed, the surest ones. None: all, half, and an eighth; all bounds hold together.
    random_state : None, int, or NumPy generator, default=None
        Of coins and canaries; the noise is drawn by the estimator.

    Returns
    -------
    ModelAudit

    Raises
    ------
    ValueError
        For a parameter that does not fit, before anything is fitted.

    Notes
    -----
    One fit, and one call of `score` for the canaries and one for the twins.

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023. S. Mahloujifar,
    L. Melis, K. Chaudhuri, "Auditing f-differential privacy in one run", ICML 2025. The bound is proven, and for
    delta above 0 larger than theorem 5.2 of the first: ``one_run.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.audit import audit_model
    >>> from dpestim.linear_model import DPLogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 5))
    >>> model = DPLogisticRegression(2.0, bounds=(-1, 1), classes=[0, 1])
    >>> found = audit_model(model, X, X[:, 0] > 0, random_state=0)
    >>> found.violated, found.claim
    (False, (2.0, 0.0))
    """
    started = time.perf_counter()
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise ValueError("estimator must be an object with fit and get_params, such as LogisticRegression()")
    m = whole(n_canaries, "n_canaries")
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ValueError("confidence must be a number between 0 and 1")
    claimed = None if claim is None else claim_of(claim)[:2]
    relation = _relation_of(estimator, neighbours, claim)
    source = WordSource(random_state)
    coins = source.part(_COINS).reader().dense(Stage.COINS, 0, 0, 0, m) % np.uint64(2) == 1
    rng = np.random.default_rng(int.from_bytes(source.part(_ROWS).key_for_workers(), "big"))
    X = made.table_of(X)
    if len(X.shape) != 2 or (y is not None and len(y) != len(X)):
        raise ValueError("X must have rows and columns, and y must have a label for each row")
    (rows, own), (twins, other) = _rows_of(estimator, X, y, m, relation, domain, canaries, rng)
    counts = _guesses_of(n_guesses, m)

    if relation == "substitution":
        there = [row if coin else twin for coin, row, twin in zip(coins.tolist(), rows, twins)]
        labels = None if y is None else np.where(coins, own, other)
    else:
        there = [row for coin, row in zip(coins.tolist(), rows) if coin]
        labels = None if y is None else own[coins]
    target = None if y is None else _below(np.asarray(y), labels)
    progress = Progress("audit_model", len(counts), "number of guesses")
    model = clone(estimator).fit(made.join(X, there) if there else X, *(() if target is None else (target,)))

    progress.tell("the model is fitted")
    look = score_of if score is None else score
    scores = _scores(look, model, made.as_rows(X, rows), own)
    if relation == "substitution":
        scores = _centred(scores - _scores(look, model, made.as_rows(X, twins), other), own)
    epsilon, delta = claimed or _promise_of(model)
    error = (1 - confidence) / len(counts)
    lines = []
    progress.tell("the canaries are scored")
    for r in progress.of(counts):
        at, said = _surest(scores, r, relation)
        correct = int(np.count_nonzero(coins[at] == said))
        lines.append(Guesses(r, correct, lower_bound(correct, r, m, delta, error)))
    return ModelAudit(lines, claim=(epsilon, delta), confidence=float(confidence), n_canaries=m, neighbours=relation,
                      estimator=model, coins=coins, scores=scores, seconds=time.perf_counter() - started)


# ---------------------------------------------------------------- inside


def _surest(scores, r, relation):
    """Return (the places of the r surest guesses, what is guessed): functions of the scores alone."""
    if relation == "substitution":  # which of two rows: the sign
        at = np.argsort(-np.abs(scores), kind="stable")[:r]
        return at, scores[at] > 0
    order = np.argsort(-scores, kind="stable")
    above = (r + 1) // 2
    at = np.concatenate([order[:above], order[len(order) - (r - above):]])
    return at, np.arange(r) < above


def _below(y, labels):
    """Return y and more labels; whole numbers stay what they are."""
    return np.concatenate([y, labels.astype(y.dtype) if y.dtype.kind in "biu" else labels])


def _centred(scores, labels):
    """Return the scores less the mean of those with the same label: what the model says of a label anyway."""
    groups = np.zeros(len(scores), int) if labels is None else np.unique(labels, return_inverse=True)[1]
    return scores - np.array([scores[groups == k].mean() for k in range(groups.max() + 1)])[groups]


def _promise_of(model):
    promise = getattr(model, "privacy_", None)
    if not isinstance(promise, PrivacyGuarantee):
        return math.inf, 0.0
    return float(promise.epsilon), float(promise.delta)


def _relation_of(estimator, neighbours, claim):
    """Return the name of the relation that was claimed, or raise ValueError."""
    if neighbours is not None and neighbours not in CENTRAL:
        raise ValueError(f"neighbours must be None or one of {sorted(CENTRAL)}")
    said = None
    if isinstance(claim, PrivacyGuarantee):
        said = claim.neighbours.value
    elif isinstance(estimator, PrivateEstimator):
        said = estimator._relation().value
    if said in (Neighbours.EDGE.value, Neighbours.LIST.value, Neighbours.NODE.value):
        of_what = "nodes" if said == Neighbours.NODE.value else "edges"
        raise ValueError(f"claim must be about rows, not about {of_what} of a graph, because a coin decides about a "
                         f"row: pass pairs of graphs of which one has one {of_what[:-1]} more to dpestim.audit.audit")
    if claim is None and said is None:
        raise ValueError("claim must be given for an estimator that is not one of dpestim: an epsilon, or a pair "
                         "(epsilon, delta)")
    said = Neighbours.SUBSTITUTION.value if said == Neighbours.LOCAL.value else said  # (one user's row is another one)
    if neighbours is None:
        neighbours = said or Neighbours.SUBSTITUTION.value
    elif said not in (None, neighbours) and (claim is None or isinstance(claim, PrivacyGuarantee)):
        whose = "the estimator promises its epsilon" if claim is None else "the guarantee is claimed"
        raise ValueError(f'neighbours must be "{said}", for which {whose}: pass claim= for another relation')
    return neighbours


def _guesses_of(n_guesses, m):
    """Return the numbers of guesses, or raise ValueError."""
    if n_guesses is None:
        return sorted({max(1, m // share) for share in _SHARES}, reverse=True)
    counts = list(n_guesses) if isinstance(n_guesses, list | tuple | np.ndarray) else [n_guesses]
    counts = [whole(r, "n_guesses") for r in counts]
    if not counts or max(counts) > m:
        raise ValueError("n_guesses must be numbers from 1 to n_canaries")
    return counts


def _rows_of(estimator, X, y, m, relation, domain, canaries, rng):
    """Return ((canaries, labels), (twins, labels)), rows as tuples, or raise ValueError."""
    if canaries is None:
        rows, twins = made.draw(made.declared_columns(estimator, X, domain), X, m, rng)
        if y is None:
            return (rows, None), (twins, None)
        own, other = made.labels(estimator, y, m, rng)
        return (rows, own), (rows, other)  # (of the same numbers: what differs is the label)
    both = canaries if relation == "substitution" else (canaries, canaries)
    try:
        (rows, own), (twins, other) = both
    except (TypeError, ValueError):
        raise ValueError("canaries must be (rows, labels), and for neighbours=\"substitution\" a pair of these: "
                         "canaries and twins") from None
    rows, twins = (_tuples(part) for part in (rows, twins))
    if not len(rows) == len(twins) == m:
        raise ValueError(f"canaries must have n_canaries rows, {m}, and as many twins")
    if y is None:
        return (rows, None), (twins, None)
    own, other = np.asarray(own), np.asarray(other)
    if not own.shape == other.shape == (m,):
        raise ValueError(f"canaries must have a label for each of {m} rows")
    return (rows, own), (twins, other)


def _tuples(rows):
    if hasattr(rows, "itertuples"):
        return list(rows.itertuples(index=False, name=None))
    return list(rows.rows()) if hasattr(rows, "rows") else list(map(tuple, np.asarray(rows).tolist()))


def _scores(look, model, rows, labels):
    found = np.asarray(look(model, rows, labels), dtype=float)
    if found.shape != (len(rows),):
        raise ValueError(f"score must return a number for each of {len(rows)} rows")
    return np.where(np.isnan(found), 0.0, found)
