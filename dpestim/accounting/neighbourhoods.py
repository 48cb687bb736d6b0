"""What guarantees become for parts of the data, for groups of records, and for random samples."""

import math
from dataclasses import replace
from fractions import Fraction

from dpestim.accounting.loss import PrivacyLossDistribution
from dpestim.accounting.renyi import RenyiCurve, as_renyi
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.concentrated import Face, known
from dpestim.privacy.exact import exp_lower, exp_upper, log_upper
from dpestim.privacy.rounding import amount, several, share, whole

_SAMPLING = {"poisson": Neighbours.ADD_REMOVE, "without_replacement": Neighbours.SUBSTITUTION}


def parallel(guarantees, *, neighbours="add_remove", public_parts=False):
    """Return the guarantee of releases each of which looks at its own part of the records only.

    Two rules say how records come into parts, and they ask for different guarantees:

    * A rule that looks at each record alone, which may be private ("the region it names"): a record that is replaced
      may leave one part and enter another, or change the size of both. Only add_remove guarantees say what that costs.
    * Parts fixed in advance, without looking at any record (``public_parts=True``: hospitals, a roster, a table by
      year): a record stays in its part whatever it says, and guarantees of any relation will do.

    Parts by position, or of equal sizes, are neither: one record more moves all that follow.

    Parameters
    ----------
    guarantees : iterable of PrivacyGuarantee
        At least one, all for the same neighbours; what each release promises about the records of its part.
    neighbours : {"add_remove", "substitution"}, default="add_remove"
        The relation of the result for add_remove guarantees: "substitution" doubles the largest, as a record that is
        replaced is one that leaves and one that comes.
    public_parts : bool, default=False
        Whether the parts were fixed in advance.

    Returns
    -------
    PrivacyGuarantee
        The largest epsilon and the largest delta, converted.

    Raises
    ------
    ValueError
        For none, for guarantees about different neighbours, and for substitution and local guarantees of parts that a
        record may leave.

    Notes
    -----
    O(number of guarantees). What is relaxed keeps its plain epsilon only. The curve is the one that follows from each
    of the others, if there is one; else the largest of their Renyi divergences, order by order. The proof:
    ``composition.md``.

    References
    ----------
    McSherry (2009), "Privacy integrated queries", SIGMOD, theorem 4 (for neighbours of which one has one record more).

    Examples
    --------
    >>> from dpestim.accounting import parallel
    >>> from dpestim.privacy import Neighbours, PrivacyGuarantee
    >>> one = PrivacyGuarantee(1, model="central", neighbours=Neighbours.ADD_REMOVE)
    >>> int(parallel([one] * 10).epsilon), int(parallel([one] * 10, neighbours="substitution").epsilon)
    (1, 2)
    >>> two = PrivacyGuarantee(1, model="central", neighbours=Neighbours.SUBSTITUTION)
    >>> int(parallel([two] * 10, public_parts=True).epsilon)
    1
    """
    guarantees = several(guarantees, "guarantees")
    if not guarantees or not all(isinstance(g, PrivacyGuarantee) for g in guarantees):
        raise ValueError("guarantees must hold at least one PrivacyGuarantee, and nothing else")
    if not isinstance(public_parts, bool):
        raise ValueError("public_parts must be True or False")
    if neighbours not in ("add_remove", "substitution"):
        raise ValueError('neighbours must be "add_remove" or "substitution"')
    relations = {g.neighbours for g in guarantees if not g.is_nothing}
    if len(relations) > 1:
        raise ValueError("guarantees must all be for the same neighbours, got "
                         f"{sorted(relation.value for relation in relations)}")
    relation = next(iter(relations), Neighbours.ADD_REMOVE)
    if relation is not Neighbours.ADD_REMOVE and not public_parts:
        raise ValueError(f"guarantees must be for add_remove neighbours, got {relation.value}: a replaced record may "
                         "move to another part, which guarantees for parts of a fixed size do not cover. Release with "
                         'neighbours="add_remove", or set public_parts=True if the parts do not depend on the records')
    epsilon, delta = (max(getattr(g, name) for g in guarantees) for name in ("epsilon", "delta"))
    total = replace(sum(replace(g, curve=None) for g in guarantees), curve=None)
    total = replace(total, epsilon=epsilon, delta=delta, relaxation=None, relaxed_epsilon=None,
                    curve=_largest_curve([g for g in guarantees if not g.is_nothing]))
    return total if relation.value != "add_remove" or neighbours == "add_remove" else total.to("substitution")


def _largest_curve(guarantees):
    """Return a curve that follows from each of the guarantees, whichever; None where there is none."""
    curves = [known(g.epsilon, g.delta, g.curve) for g in guarantees]
    if None in curves or all(g.curve is None for g in guarantees):
        return None
    curves = list(dict.fromkeys(curves))
    most = max(curves, key=lambda curve: math.inf if curve.rho is None else curve.rho)
    if isinstance(most, Face) or not all(most.follows_from(curve) for curve in curves):
        curves = [as_renyi(curve) for curve in curves]
        most = None if None in curves else RenyiCurve.largest(curves)
    return most


def group_privacy(guarantee, size):
    """Return (epsilon, delta) for data sets that differ by `size` changes of one record.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        For one change; with a finite epsilon.
    size : int
        Records of a group, such as a household, at least 1.

    Returns
    -------
    tuple of two Fractions
        size epsilon, and delta (e^(size epsilon) - 1) / (e^epsilon - 1), rounded up, at most 1.

    Examples
    --------
    >>> from dpestim.accounting import group_privacy
    >>> from dpestim.privacy import PrivacyGuarantee
    >>> epsilon, delta = group_privacy(PrivacyGuarantee(0.5, 1e-6), 3)
    >>> float(epsilon), round(float(delta), 8)
    (1.5, 5.37e-06)
    """
    size = whole(size, "size")
    if not isinstance(guarantee, PrivacyGuarantee) or not guarantee.is_finite or guarantee.delta == 1:
        raise ValueError("guarantee must be a PrivacyGuarantee with a finite epsilon and a delta below 1")
    epsilon, delta = Fraction(guarantee.epsilon), Fraction(guarantee.delta)
    if not delta:
        return size * epsilon, delta
    if size * epsilon > 700:
        return size * epsilon, Fraction(1)  # (e^700 times any delta that is a float)
    factor = size * exp_upper((size - 1) * epsilon) if epsilon else Fraction(size)  # (the largest of its terms)
    below = exp_lower(epsilon) - 1
    if below > 0:  # (of a tiny epsilon nothing is left)
        factor = min(factor, (exp_upper(size * epsilon) - 1) / below)
    return size * epsilon, min(Fraction(1), delta * factor)


def subsampled(guarantee, rate, *, sampling):
    """Return the guarantee of a release that sees a random sample of the records, which is kept secret.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        What the release promises about the sample; with a finite epsilon.
    rate : float
        How likely a record is in the sample, above 0, at most 1.
    sampling : {"poisson", "without_replacement"}
        "poisson": each record takes part with that probability, on its own (add_remove neighbours).
        "without_replacement": a sample of fixed size, rate times the number of records (substitution).

    Returns
    -------
    PrivacyGuarantee
        ln(1 + rate (e^epsilon - 1)), rounded up to a multiple of 1e-15, and rate delta. Its curve is that of the
        sampled noise, much tighter when composed, where the release is one of Laplace or Gaussian noise and its sample
        is "poisson".

    Notes
    -----
    Raises ValueError where the way of sampling does not belong to the neighbours: nothing follows then. No other curve
    is kept: of several releases about one sample, the losses do not add up, and samples of a fixed size, like rhos, are
    without a curve that is known here.

    References
    ----------
    Balle, Barthe, Gaboardi (2018), "Privacy amplification by subsampling", NeurIPS, theorems 8 and 9. The proof:
    ``composition.md``.

    Examples
    --------
    >>> from dpestim.accounting import subsampled
    >>> from dpestim.privacy import Neighbours, PrivacyGuarantee
    >>> whole = PrivacyGuarantee(1, model="central", neighbours=Neighbours.ADD_REMOVE)
    >>> round(float(subsampled(whole, 0.01, sampling="poisson").epsilon), 4)
    0.017
    """
    if not isinstance(sampling, str) or sampling not in _SAMPLING:
        raise ValueError(f"sampling must be one of {sorted(_SAMPLING)}")
    if not isinstance(guarantee, PrivacyGuarantee) or not guarantee.is_finite or guarantee.delta == 1:
        raise ValueError("guarantee must be a PrivacyGuarantee with a finite epsilon and a delta below 1")
    if guarantee.neighbours is not _SAMPLING[sampling]:
        raise ValueError(f"sampling={sampling!r} needs a guarantee for {_SAMPLING[sampling].value} neighbours, got one "
                         f"for {guarantee.neighbours.value}: take the other sampling, or release with the other "
                         "neighbours")
    rate = share(rate, "rate")
    if rate == 1:
        return guarantee
    epsilon = amount(guarantee.epsilon, "epsilon")
    if epsilon <= 1000:  # beyond, a sample saves ln(1 / rate) only, and decimals overflow
        epsilon = log_upper(1 + rate * (exp_upper(epsilon) - 1))
    noise = guarantee.curve if isinstance(guarantee.curve, PrivacyLossDistribution) and sampling == "poisson" else None
    return replace(guarantee, epsilon=epsilon, delta=rate * guarantee.delta, relaxation=None, relaxed_epsilon=None,
                   curve=None if noise is None else noise.on_sample(rate))
