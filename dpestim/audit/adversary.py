"""The Bayesian adversary: it knows the law and a prior, sees one report, and guesses the most probable value."""

import math
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpestim.local.client import Client
from dpestim.local.guessing import TIE, BestGuess, guess_likeliest
from dpestim.local.reports import CodeReports
from dpestim.local.server import Server
from dpestim.privacy import PrivacyGuarantee
from dpestim.rng import check_random_state
from dpestim.tables import NumberTable

#: Scores of reports and inputs that are compared at a time.
_CELLS = 1 << 20


class _Success(NamedTuple):
    value: float
    standard_error: float
    n: int


class Success(NumberTable, _Success):
    """A share of right guesses, measured: a tuple (value, standard_error, n) that is shown as a table.

    Attributes
    ----------
    value : float
        The share of guesses that were right.
    standard_error : float
        Of `value`, as a share of `n` independent guesses; 0 where all were right, or none.
    n : int
        Guesses that were made: users, or those of the group.

    Examples
    --------
    >>> from dpestim.audit import Success
    >>> Success(0.5, 0.05, 100).n
    100
    >>> low, high = Success(0.5, 0.05, 100).interval(0.95)
    >>> round(low, 3), round(high, 3)
    (0.404, 0.596)
    """

    __slots__ = ()
    level = 0.95

    def interval(self, level=0.95):
        """Return (low, high): the score interval (Wilson 1927) of the probability of a right guess.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1); a normal approximation of `n` independent guesses.
        """
        if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
            raise ValueError("level must be a number between 0 and 1")
        square = float(ndtri(0.5 + level / 2)) ** 2
        center = (self.value + square / (2 * self.n)) / (1 + square / self.n)
        reach = math.sqrt(square * (self.value * (1 - self.value) / self.n + square / (4 * self.n**2)))
        return center - reach / (1 + square / self.n), center + reach / (1 + square / self.n)

    @property
    def privacy(self):
        """None: guesses were compared with raw values."""
        return PrivacyGuarantee(math.inf, notes=("The share of right guesses was measured on raw values.",))

    def _about(self):
        return f"{self.n:,} guesses of an adversary, compared with raw values."

    def _names(self):
        return ()

    def _cells(self):
        yield self.value, self.standard_error, *self.interval(self.level)

    def _remarks(self):
        return (f"The share of {self.n:,} guesses that were right.",)


class BayesianAdversary:
    """Guess a user's value from one report by Bayes' rule with a known law and a prior.

    Given the report y it guesses an x of the largest score prior(x) P[y | x], at random where several tie. No other way
    of guessing is right more often, so this is what a report gives away to somebody who must name one value. It is a
    summary, not a guarantee: `privacy_` is. How ties are broken does not change the overall success, but that of a
    group; at random means that every one of those that tie is guessed equally often. Scores within a factor
    1 - 2^-40 of the largest count as tied.

    The secret is what the law takes in: a category, or, of numbers, the input of the grid (and level) that a value is
    rounded to. The other columns of a row are taken to tell nothing about this one. Where columns are drawn
    (``strategy="sample"``), the guess is by the prior alone when this one was not. A joint law (``strategy="joint"``)
    takes in the whole row, so the secret is the signs of *all* its d columns, one of 2^d inputs, whichever `column`
    names: compare with the 2^-d of a guess by the uniform prior, not with 1/2.

    **Privacy.** `expected_success` reads the public law and touches no data, so it costs nothing. `measured_success`
    compares with raw data and is **not private**.

    Parameters
    ----------
    estimator : client or server of `dpestim.local`
        A frequency estimator, a transformer of numbers, or what collects for one, with its domain declared (or fitted).
    prior : None or array-like of shape (n_inputs,), default=None
        What the adversary takes the value to be before the report: probabilities that sum to 1, in the order of
        `categories`; of numbers in the order of the law's inputs (``estimator.randomizer(column).inputs()``: the
        grid from bound to bound; of `SDPMTransformer` first the high grid points, then the low levels). None: uniform.
    column : int or str, default=0
        Number or name of the column that is attacked. Of a joint law it is any of its columns: the figure is that of
        the whole row.

    Raises
    ------
    ValueError
        For a parameter that does not fit, and for laws that cannot be enumerated and do not say how they are guessed
        from; it names the parameter and what was expected. For `PersonalizedEstimator`, which has a law for each
        group: audit each of its `estimators_`, or the one that it wraps.

    References
    ----------
    T. Murakami, Y. Kawamoto, "Utility-optimized local differential privacy mechanisms for distribution estimation",
    USENIX Security 2019 (the relaxed laws that groups are about). The success of every law is derived in
    ``adversary.md``.

    Examples
    --------
    >>> from dpestim.audit import BayesianAdversary
    >>> from dpestim.local import SDGRRFrequencyEstimator
    >>> est = SDGRRFrequencyEstimator(1.0, categories=[["HIV", "flu", "cold", "none"]],
    ...                               low_sensitivity=[["cold", "none"]], random_state=0)
    >>> spy = BayesianAdversary(est)
    >>> [round(spy.expected_success(group), 4) for group in (None, "high", "low")]
    [0.5628, 0.4754, 0.6502]
    >>> X = [["HIV"], ["flu"], ["cold"], ["none"]] * 10_000
    >>> measured = spy.measured_success(X, est.privatize(X), random_state=0)
    >>> bool(abs(measured.value - spy.expected_success()) < 4 * measured.standard_error)
    True
    """

    def __init__(self, estimator, prior=None, column=0):
        if not isinstance(estimator, Client | Server):
            raise ValueError("estimator must be one of dpestim.local: a frequency estimator, a transformer of numbers, "
                             "MeanEstimator or DistributionEstimator")
        self.estimator = estimator
        self.prior = prior
        self.column = column
        self._law()  # names a wrong column, or a domain that is not declared, at once

    def __repr__(self):
        prior = "None" if self.prior is None else "..."
        return f"BayesianAdversary({self.estimator!r}, prior={prior}, column={self.column!r})"

    def expected_success(self, group=None):
        """Return the probability that the guess is right, for a value that follows the prior.

        Of a joint law that is the probability that the signs of the whole row are guessed, all d of them: compare with
        the prior's, which is 2^-d where it is uniform.

        Parameters
        ----------
        group : None or str, default=None
            None: overall. A kind of inputs of the law (`kind_of`: "sensitive" and "non-sensitive", say), or "high" for
            those that keep full protection and "low" for those that do not: the success for values of that kind.

        Returns
        -------
        float
            Exact up to rounding (1e-12, relative), for all laws but two: subset selection (SS) is taken to draw uniform
            subsets (a factor of 1e-7), and local hashing (BLH, OLH) to use words of infinitely many bits. For more than
            111 values and a prior that is not uniform it is then an average over sampled multipliers (a few parts in a
            thousand, ``adversary.md``).

        Notes
        -----
        Where d is the size of the domain: O(d log d) for laws with structure, the size of the matrix for others,
        O(d^3) for local hashing of few values.

        Raises ValueError for a group that the law does not have, or to which the prior gives probability 0.
        """
        law, _, drawn = self._law()
        prior = self._prior_of(law)
        member = _members(law, group)
        mass = prior[member].sum()
        if not mass > 0:
            raise ValueError("group must have a value to which the prior gives a positive probability")
        each = drawn * law.guessing(prior)
        if drawn < 1:  # nothing is said of the column: the prior alone is left to guess from
            best = prior >= prior.max() * (1 - TIE)
            each += (1 - drawn) * best / best.sum()
        return float(prior[member] @ each[member] / mass)

    def measured_success(self, X, reports, group=None, *, random_state=None):
        """Guess each row's value from its report, and return the share of right guesses: not private.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)
            Raw rows. A number between two inputs of the grid counts as the nearer one, though the client may have
            rounded it to the other.
        reports : ndarray of shape (n_rows, width)
            What `privatize` returned for these rows.
        group : None or str, default=None
            As in `expected_success`: only rows whose value is of this kind are counted.
        random_state : None, int, numpy.random.Generator or RandomState, default=None
            Breaks ties.

        Returns
        -------
        Success
            The named tuple (value, standard_error, n). It agrees with `expected_success` where the values follow the
            prior; the adversary relies on it either way.

        Notes
        -----
        It compares with raw data. It is **not private**: an exact, unmetered release of X, which a ledger records as an
        entry of epsilon 0 and strict mode refuses. O(n) for most laws whose report is a code, else O(n d).

        Raises ValueError for rows or reports that do not fit, before the ledger is told, and for a group without rows.
        """
        check_random_state(random_state)
        rng = _generator(random_state)
        law, number, _ = self._law()
        prior, member = self._prior_of(law), _members(law, group)
        client = self.estimator if isinstance(self.estimator, Client) else self.estimator._client()
        client._refuse_in_strict("measured_success is refused, because it compares with raw data: call it outside of "
                                 "strict mode")
        data, columns, _ = client._read(X)
        reports = columns.check_reports(reports)
        if len(reports) != len(data[0]):
            raise ValueError("reports must have one row for each row of X")
        if columns.laws[number] != law:
            raise ValueError("X must have as many columns as the estimator was declared, or fitted, with")
        self.estimator._note_score(len(reports))
        right, n = 0, 0
        guess, size = _guesser(law, prior, rng)
        codes_of = columns.columns[number].coder()
        rows, parts = columns.reports_of(number, reports)
        speaks = np.ones(len(reports), bool) if rows is None else np.isin(np.arange(len(reports)), rows)
        before = np.concatenate([[0], np.cumsum(speaks)])
        for at in range(0, len(reports), size):
            truth = law.input_of(codes_of(data[number][at : at + size]))
            here, counted = speaks[at : at + size], member[truth]
            part = parts[before[at] : before[at + len(here)]]
            guessed = _likeliest(prior, rng, len(here))
            if len(part):
                guessed[here] = guess(np.ascontiguousarray(part, law.report_dtype))
            right += int(np.count_nonzero((guessed == truth) & counted))
            n += int(np.count_nonzero(counted))
        if not n:
            raise ValueError("group must have rows in X")
        share = right / n
        return Success(share, math.sqrt(share * (1 - share) / n), n)

    # ---------------------------------------------------------------- inside

    def _law(self):
        """Return the law of the column, the column's number, and how often a report is about it at all."""
        client = self.estimator if isinstance(self.estimator, Client) else self.estimator._client()
        columns = self.estimator._columns or client._columns_now()
        number = columns.number_of(self.column)
        if hasattr(columns, "fakes"):
            raise ValueError("estimator must not report fakes, among which this attacker is not enumerated: take "
                             "dpestim.audit.column_inference, or strategy='smp'")
        if not hasattr(columns.laws[number], "input_codes"):
            raise ValueError("estimator must have a law with `input_codes`, because the law reads whole rows")
        return columns.laws[number], number, (columns.n_sampled or len(columns)) / len(columns)

    def _prior_of(self, law):
        n = len(law.input_codes)
        if self.prior is None:
            return np.full(n, 1 / n)
        try:
            prior = np.array(self.prior, np.float64)
        except (TypeError, ValueError):
            prior = np.empty(0)
        if prior.shape != (n,) or not (prior >= 0).all() or not abs(prior.sum() - 1) <= 1e-9:
            raise ValueError(f"prior must be None or {n} probabilities that sum to 1, one for each input of the law")
        return prior / prior.sum()


def _members(law, group):
    """Return a mask of the inputs that belong to a group."""
    kinds = law.kind_of(law.input_codes)
    if group is None:
        return np.ones(len(kinds), bool)
    relaxed = kinds == law.relaxed_kind if law.relaxation is not None else np.zeros(len(kinds), bool)
    masks = {"high": ~relaxed, "low": relaxed, **{str(kind): kinds == kind for kind in np.unique(kinds)}}
    if not isinstance(group, str) or group not in masks:
        raise ValueError(f"group must be None or one of {sorted(masks)}, got {group!r}")
    return masks[group]


def _guesser(law, prior, rng):
    """Return a function from reports to the numbers of the inputs that are guessed, and how many it takes at a time."""
    if not isinstance(law, CodeReports) or getattr(law, "support_odds", None) is not None:
        size = max(1, min(law.block_rows, _CELLS // len(prior)))
        return lambda reports: guess_likeliest(law.likelihoods(reports), prior, rng), size
    best, some = BestGuess(law.runs(), prior), law.input_codes[:1]
    return lambda reports: best.guess(law.law_indices(np.repeat(some, len(reports)), reports)[1], rng), law.block_rows


def _likeliest(prior, rng, size):
    """Return guesses by the prior alone, at random where values tie."""
    return rng.choice(np.flatnonzero(prior >= prior.max() * (1 - TIE)), size)


def _generator(random_state):
    """Return a generator for ties, which are nobody's secret."""
    if isinstance(random_state, np.random.RandomState):
        random_state = np.frombuffer(random_state.bytes(32), np.uint32)
    return np.random.default_rng(random_state)
