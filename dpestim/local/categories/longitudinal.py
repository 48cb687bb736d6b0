"""Longitudinal mechanisms: a client keeps its randomised answer, and every report is a noisy copy of what is kept.

`Memoised` is the law's side (two steps, of which a one-shot report does both), `LongitudinalEstimator` the base of
estimators; what a client stores is in `dpestim.local.client_state`. What many reports promise: `longitudinal.md`.
"""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.longitudinal_client import ABOUT_ONE_REPORT, LongitudinalClient
from dpestim.privacy.exact import WORD, canonical_epsilon, exp_lower, log_above, uses_enough
from dpestim.records import record


@record
class Weights:
    """Integer weights of randomised response, of one step or of two: keep + (d - 1) other == 2**(64 n_words)."""

    n_words: int
    keep: int
    other: int

    @property
    def total(self):
        """The number of equally likely draws."""
        return WORD**self.n_words

    own = property(lambda self: Fraction(self.keep, self.total), doc="Probability of the own answer.")
    others = property(lambda self: Fraction(self.other, self.total), doc="Probability of each other answer.")
    ratio = property(lambda self: Fraction(self.keep, self.other), doc="The largest ratio of two probabilities.")


def instant_weights(epsilon, first, d):
    """Return the weights of the second step, so that both together keep epsilon exactly and use nearly all of it.

    Ratios R of the first step and r of the second compose to (R r + d - 1) / (R + r + d - 2), which grows with r;
    solved for e' <= e^epsilon this is r = (e' (R + d - 2) - (d - 1)) / (R - e').
    """
    e, ratio = exp_lower(epsilon), Fraction(first.keep, first.other)
    if ratio <= e:
        raise ValueError("epsilon_permanent must be above epsilon, because each report is a noisy copy of the "
                         "permanent answer")
    r = (e * (ratio + d - 2) - (d - 1)) / (ratio - e)
    for n_words in (1, 2):
        total = WORD**n_words
        other = math.ceil(total / (r + d - 1))
        second = Weights(n_words, total - (d - 1) * other, other)
        if second.keep >= other:
            both = composed(first, second, d)
            if both.other <= both.keep <= e * both.other and uses_enough(both.keep, both.other, epsilon):
                return second
    raise ValueError(f"epsilon is too small or too large for {d} values, because 64-bit random words cannot express "
                     "the law: change epsilon or epsilon_permanent")


def composed(first, second, d):
    """Return the weights of the two steps together: the product of two matrices, exactly."""
    keep = first.keep * second.keep + (d - 1) * first.other * second.other
    other = first.keep * second.other + first.other * second.keep + (d - 2) * first.other * second.other
    return Weights(first.n_words + second.n_words, keep, other)


class Memoised:
    """A law in two steps; a mixin, which stands left of the law's base.

    A sub-class calls `keep_permanent`, sets `answer_dtype`, `answer_width` and `n_cells` (the inputs for which a
    client may keep different answers) and brings `permanent`, `respond` and `instant_ratio`.
    """

    keeps_answers = True
    notes = (ABOUT_ONE_REPORT,)
    #: Leading fields of a kept answer that never change.
    n_fixed = 0
    #: How often `instant_ratio` counts: independent parts of a report that two kept answers may all differ in.
    n_instant = 1

    def keep_permanent(self, epsilon):
        """Note the epsilon of the kept answer: None is twice that of the first report."""
        kept = 2 * self.epsilon if epsilon is None else epsilon
        self.epsilon_permanent = canonical_epsilon(kept, "epsilon_permanent")
        if self.epsilon_permanent <= self.epsilon:
            raise ValueError("epsilon_permanent must be above epsilon, because each report is a noisy copy of the "
                             "permanent answer")

    @cached_property
    def epsilon_instant(self):
        """What a report promises where the kept answer is known: a Fraction, rounded up."""
        return self.n_instant * log_above(self.instant_ratio)

    def cells(self, codes, answers):
        """Return which cell each code is in, given what a client keeps."""
        return codes

    def again(self, cells, words, out):
        """Write a fresh kept answer for each cell, without its fixed fields."""
        self.permanent(cells, words, out)

    def privatize(self, codes, words, out):
        """Write a first report for each code."""
        answers = np.empty((len(codes), self.answer_width), self.answer_dtype)
        self.permanent(codes, words, answers)
        self.respond(answers, words, out)


class LongitudinalEstimator(LongitudinalClient, FrequencyEstimator):
    """Base of the estimators of longitudinal mechanisms: a second epsilon, and clients that keep what they said."""

    _more_parameters = """
    epsilon_permanent : float, default=None
        Above epsilon. What all reports of a value that never changes promise together, in place of epsilon for the
        first one. Shared among the columns as epsilon is. None: 2 epsilon.
    """
    _texts = {"longitudinal": """\
        **Privacy.** epsilon-local differential privacy for the first report of a row, and so for what a fit releases,
        which is one report each of clients that keep nothing: exact (integer weights of both steps, their product
        compared with e^epsilon as a rational number, proof in ``longitudinal.md``). All reports from one `ClientState`
        together promise epsilon_permanent between two values that never change. **Reports show whether a value
        changed**: for values that change each report adds more than epsilon (`privacy_of`), without a limit. **Count
        each round of the same users separately**: `privacy_` and the errors of an aggregate are those of one report a
        user, and permanent answers do not average out. Neighbours: any two rows of one user; no other party is trusted.
    """}
    _test_values = {"epsilon_permanent": [7.0]}
    _adds_same_users = False

    def __init__(self, epsilon=1.0, *, epsilon_permanent=None, categories="auto", postprocess=None, sparse_output=False,
                 ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, categories=categories, postprocess=postprocess, sparse_output=sparse_output,
                         ledger=ledger, random_state=random_state, n_jobs=n_jobs)
        self.epsilon_permanent = epsilon_permanent

    def _law_arguments(self, column, n_columns, encoder):
        if self.epsilon_permanent is None:
            return super()._law_arguments(column, n_columns, encoder)
        share = canonical_epsilon(self.epsilon_permanent, "epsilon_permanent") / n_columns
        return super()._law_arguments(column, n_columns, encoder) | {"epsilon_permanent": share}
