"""Exact audits: the epsilon and the delta that a law really has, from the law itself."""

import math
from itertools import product
from numbers import Integral

import numpy as np

from dpestim.audit.density import Density, density_excess, density_loss
from dpestim.audit.finite_laws import read_laws, read_pair
from dpestim.privacy.divergence import delta_of_move, worst_ratio
from dpestim.privacy.exact import canonical_amount, log_above
from dpestim.privacy.rounding import float_up

#: Inputs whose matrix is looked at whole; of more, a law must say what its worst ratio is.
_MOST_INPUTS = 300


def hockey_stick(p, q, epsilon):
    """Return the hockey-stick divergence, the sum of (p - e^epsilon q)_+: the least delta of p against q.

    A mechanism is (epsilon, delta)-differentially private where this is at most delta for the laws p and q of its
    outputs on any two neighbours, in both orders.

    Parameters
    ----------
    p, q : two dicts, two sequences or two `Density`
        Dicts from outcome to probability (0 where an outcome is missing), or probabilities of the same outcomes, or
        densities. Fractions and ints, or floats. A function is one as ``Density(f)``, and a choice of
        `dpestim.central` gives its law for given scores, ``m.probabilities(scores)``.
    epsilon : float, int or Fraction
        At least 0; infinite: what p has where q has nothing.

    Returns
    -------
    Fraction, float or Estimate
        A Fraction for laws of Fractions: at least the exact value and at most a relative 1e-74 of P[p > e^epsilon q]
        above it (e^epsilon is irrational), exact for epsilon 0. A float for laws with floats: the smallest that is as
        large as that for the fractions that the floats are. For densities the integral, an `Estimate`: a float with
        an `error`.

    Raises
    ------
    ValueError
        For what is no probability, laws that do not sum (or integrate) to 1, an epsilon that is no number of at least
        0, and an integral that does not reach its tolerance.

    Notes
    -----
    O(outcomes) operations on integers.

    References
    ----------
    G. Barthe, F. Olmedo, "Beyond differential privacy: composition theorems and relational logic for f-divergences",
    ICALP 2013: the alpha-distance, for alpha = e^epsilon. C. Dwork, A. Roth, "The algorithmic foundations of
    differential privacy", 2014, definition 2.4, is what it decides.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpestim.audit import hockey_stick
    >>> hockey_stick([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)], 0)
    Fraction(1, 2)
    >>> print(f"{hockey_stick({'a': 0.5, 'b': 0.5}, {'a': 0.25, 'c': 0.75}, 0.5):.4f}")
    0.5878
    """
    epsilon = canonical_amount(epsilon, "epsilon")
    if isinstance(p, Density) and isinstance(q, Density):
        return density_excess(p, q, epsilon)
    laws = read_pair(p, q)
    found = laws.largest_excess([(0, 1)], epsilon)
    return found if laws.exact else float_up(found)


def max_loss(p, q):
    """Return the largest ln(p / q): the least epsilon of pure differential privacy of p against q, in this order.

    Parameters
    ----------
    p, q : two dicts, two sequences or two `Density`
        As in `hockey_stick`.

    Returns
    -------
    float
        Rounded up, and infinite where p has an outcome that q has not. For two densities it is *numerical*: the
        largest found on a grid between the breakpoints, refined; it may be too small where a ratio has a narrow peak
        away from the breakpoints. It is infinite where a ratio still grows when floats underflow.

    Raises
    ------
    ValueError
        As `hockey_stick`.

    Notes
    -----
    O(outcomes); some 1,000 values of each density for each breakpoint.

    References
    ----------
    C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, section 3.5.1 (max divergence).

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpestim.audit import max_loss
    >>> max_loss([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)])
    1.0986122886681098
    >>> max_loss({"a": 0.5, "b": 0.5}, {"a": 1.0})
    inf
    """
    if isinstance(p, Density) and isinstance(q, Density):
        return density_loss(p, q)
    whole = read_pair(p, q).whole
    return _log(worst_ratio(whole, [True, False], [False, True], np.ones(whole.shape[1], bool)))


def exact_epsilon(law, *, pairs=None):
    """Return the epsilon of pure differential privacy that a law really has: the worst ln(ratio).

    Parameters
    ----------
    law : matrix, law or mechanism
        * A matrix, a row for each input and a column for each output: rows of Fractions, or an array of floats, that
          sum to 1.
        * A law of `dpestim.local` (a `Randomizer`), or an estimator or transformer of one column. With a public part,
          the worst over it; of a relaxed law, between any two inputs (its plain epsilon).
        * A law of noise of `dpestim.central`, or a mechanism that adds it: of one answer that moves by up to its
          sensitivity, in whole steps of the grid. Its probabilities, tails and decay are taken for what they say, as
          `check_mechanism` tests them: symmetric, and never rising away from 0.
        * Not a choice, a sparse vector, a release by stability or by snapping: what they release depends on whole data
          sets, so give a matrix, a row for each of those that are compared.
    pairs : None or sequence of (int, int), default=None
        Which rows of the matrix are neighbours, in both orders. None: any two are.

    Returns
    -------
    float
        The smallest float that is certain to be enough, so that it may be a last digit above the declared epsilon;
        infinite where an output has probability 0 for one of two neighbours alone. Of noise whose ratio has no bound,
        and of noise that does not say how it falls (`decay`), infinite.

    Raises
    ------
    ValueError
        For what is none of these; it says what was expected.

    Notes
    -----
    O(size of the matrix), and with `pairs` O(pairs x outputs). A law of more than 300 inputs, or one that cannot be
    enumerated, says what its worst ratio is.

    References
    ----------
    C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, definition 2.4. The worst move of
    noise is derived in ``exact.md``.

    Examples
    --------
    >>> from dpestim.audit import exact_epsilon
    >>> from dpestim.central import DiscreteLaplaceMechanism, GaussianMechanism
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> exact_epsilon([[0.75, 0.25], [0.25, 0.75]])
    1.0986122886681098
    >>> exact_epsilon(GRRFrequencyEstimator(1.0, categories=[range(5)]))
    1.0
    >>> exact_epsilon(DiscreteLaplaceMechanism(0.5, sensitivity=3))
    0.5
    >>> exact_epsilon(GaussianMechanism(1.0, delta=1e-5, sensitivity=1.0))
    inf
    """
    law = _law_of(law)
    if _is_noise(law):
        _refuse_pairs(pairs)
        loss = _noise_loss(law)
        return loss if loss == math.inf else float_up(loss)
    laws = _laws(law)
    if laws is None and pairs is None:
        return _log(law.worst_ratio())
    whole = _enumerated(laws).whole
    if pairs is None:
        every = np.ones(len(whole), bool)
        return _log(worst_ratio(whole, every, every, np.ones(whole.shape[1], bool)))
    every, worst = np.ones(whole.shape[1], bool), 0
    for i, j in _checked(pairs, len(whole)):
        two = np.isin(np.arange(len(whole)), [i, j])
        worst = max(worst, worst_ratio(whole, two, two, every))
    return _log(worst)


def exact_delta(law, epsilon, *, pairs=None):
    """Return the delta that a law really has at an epsilon: the largest hockey-stick divergence between neighbours.

    Parameters
    ----------
    law : matrix, law or mechanism
        As in `exact_epsilon`.
    epsilon : float, int or Fraction
        At least 0.
    pairs : None or sequence of (int, int), default=None
        Which rows of the matrix are neighbours, in both orders. None: any two are.

    Returns
    -------
    float
        The exact delta rounded up. Of noise it is the difference of two tails, both known to a relative 1e-29, or for
        discrete Gaussian noise 1e-12 (wider than 4096 steps, (x^2 + x + 2) / (20 sigma^2) at x standard deviations):
        above the truth by that part of the tails, which are larger than delta.

    Raises
    ------
    ValueError
        For what is none of these, or a law that cannot be enumerated; it says what was expected.

    Notes
    -----
    O(pairs x outputs) operations on integers for a matrix; of noise O(log(width)) probabilities.

    References
    ----------
    B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, theorem 5; C. Canonne,
    G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, theorem 7. The worst move of
    noise is derived in ``exact.md``.

    Examples
    --------
    >>> from dpestim.audit import exact_delta
    >>> from dpestim.central import GaussianMechanism
    >>> print(f"{exact_delta([[0.75, 0.25], [0.25, 0.75]], 0.5):.4f}")
    0.3378
    >>> print(f"{exact_delta(GaussianMechanism(1.0, delta=1e-5, sensitivity=1.0), 1.0):.1e}")
    1.0e-05
    """
    epsilon, law = canonical_amount(epsilon, "epsilon"), _law_of(law)
    if _is_noise(law):
        _refuse_pairs(pairs)
        if epsilon >= _noise_loss(law):
            return 0.0
        return min(1.0, float_up(delta_of_move(law, math.floor(law.sensitivity), epsilon)))
    laws = _enumerated(_laws(law))
    n = len(laws.whole)
    if pairs is None:
        pairs = product(range(n), repeat=2)
    else:
        pairs = [both for i, j in _checked(pairs, n) for both in ((i, j), (j, i))]
    return min(1.0, float_up(laws.largest_excess(pairs, epsilon)))


# ---------------------------------------------------------------- inside


def _log(ratio):
    return math.inf if ratio == math.inf else float_up(log_above(ratio))


def _law_of(law):
    """Return the law of an estimator, and anything else as it is."""
    if hasattr(law, "randomizer"):
        n = len(law._columns or (law if hasattr(law, "_columns_now") else law._client())._columns_now())
        if n != 1:
            raise ValueError(f"law must be of one column: of these {n} columns pass one, estimator.randomizer(column)")
        return law.randomizer(0)
    return law.law() if callable(getattr(law, "law", None)) else law


def _is_noise(law):
    return hasattr(law, "probability") and hasattr(law, "beyond")


def _laws(law):
    """Return the `Laws` of a matrix, or of the inputs of a law; None where a law is too large to have one."""
    if hasattr(law, "transition_matrix"):
        try:
            if len(getattr(law, "input_codes", ())) > _MOST_INPUTS:
                return None
            law = law.transition_matrix()
        except ValueError:  # it says that it is not enumerated
            return None
    elif not isinstance(law, list | tuple | np.ndarray):
        raise ValueError("law must be a matrix of probabilities, a law of dpestim.local or of additive noise, or an "
                         "estimator or mechanism with such a law. For other mechanisms pass the matrix of "
                         "probabilities, with a row for each data set; for mechanisms that choose, call "
                         "hockey_stick(m.probabilities(a), m.probabilities(b), epsilon)")
    return read_laws(law, "law")


def _enumerated(laws):
    if laws is None:
        raise ValueError(f"law must have at most {_MOST_INPUTS} inputs and be enumerable: take fewer categories, or a "
                         "coarser grid")
    return laws


def _noise_loss(law):
    """Return the largest loss for one answer, a Fraction or inf: see exact.md."""
    move, decay = math.floor(law.sensitivity), getattr(law, "decay", None)
    if not move:
        return 0
    if decay is None:
        return math.inf
    period, fall = decay
    return math.ceil(move / period) * fall


def _refuse_pairs(pairs):
    if pairs is not None:
        raise ValueError("pairs must be None for a law of noise, whose neighbours are answers up to the sensitivity "
                         "apart")


def _checked(pairs, n):
    try:
        pairs = [(i, j) for i, j in pairs]
    except (TypeError, ValueError):
        pairs = []
    if not pairs or not all(isinstance(i, Integral) and 0 <= i < n for pair in pairs for i in pair):
        raise ValueError(f"pairs must be None or pairs of row numbers from 0 to {n - 1}")
    return pairs
