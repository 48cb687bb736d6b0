"""What a release promises, as an object that prints one honest sentence."""

import math
from dataclasses import replace
from fractions import Fraction

from dpestim.privacy.concentrated import ZCDP, checked_curve, known
from dpestim.privacy.curve import Curve
from dpestim.privacy.exact import canonical_amount, exp_upper
from dpestim.privacy.neighbours import Neighbours
from dpestim.privacy.rounding import amount
from dpestim.privacy.trust import Parties
from dpestim.records import record
from dpestim.tables import Table

#: the models, those that ask for less trust first
_TRUST = {
    "local": "no other party must be trusted if each user's device randomises the user's data",
    "shuffle": "the shuffler must be trusted",
    "central": "the curator, who holds the data, must be trusted",
}
_MODELS = tuple(_TRUST)
#: e^-1000 is less than any float above 0: a delta times e^epsilon is at least 1 beyond (and decimals do not overflow)
_FAR = 1000


@record
class PrivacyGuarantee(Table):
    """An (epsilon, delta) guarantee, which adds (``+``), compares (``<=``: at least as strong) and converts (`to`).

    One guarantee is at least as strong as another if all that the other promises follows from it: at most its epsilon
    and delta, under its relation or one from which that follows; its relaxation, if it names one (plain epsilon holds
    in every relaxation); nobody trusted whom it does not trust (local asks for less than shuffle, shuffle for less
    than central); and no seed, unless it has one. Where nothing was released, everything is promised.

    Parameters
    ----------
    epsilon : Fraction or float
        A Fraction (exact) or ``math.inf``, which means: no guarantee; `notes` say why. 0: nothing was released.
    delta : Fraction or float, default=0
    model : {"local", "shuffle", "central"}
    neighbours : Neighbours
    seeded : bool or None
        Whether the noise is reproducible from a seed, so that the release must not be published; None: made elsewhere.
    notes : tuple of str
        Each a full sentence.
    relaxation : str or None
        The name of a relaxed model that also holds, such as "SDLDP(column 0: low=[0.0, 0.5])".
    relaxed_epsilon : Fraction or None
        Epsilon under that relaxation; `epsilon` is always that of the model without it.
    curve : ZCDP, RenyiCurve, PrivacyLossDistribution or None
        What holds besides (epsilon, delta): where it came from, as far as that is known (the last two are of
        `dpestim.accounting`). None where epsilon is infinite, or where delta is 0 and a ZCDP says less than epsilon^2 /
        2. Sums know it by the tightest rule that both releases have, and `epsilon_at` uses it: many small releases cost
        about the square root of the sum that ``+`` puts in `epsilon`. A sum with losses holds for guarantees that were
        declared in advance, independently of earlier results; for adaptive releases take `dpestim.accounting.Ledger`.
    parties : tuple of Parties
        Where several parties make the release (`dpestim.parties`): how many of them may collude, in place of a curator
        who must be trusted. Sums with releases of a curator have none.

    References
    ----------
    Bun, Steinke (2016), "Concentrated differential privacy", TCC, lemma 1.7 and propositions 1.9 and 3.3, for the
    concentrated curve. The proof: ``guarantee.md``.

    Examples
    --------
    >>> from dpestim.privacy import PrivacyGuarantee
    >>> both = PrivacyGuarantee(1) + PrivacyGuarantee(2)
    >>> both.epsilon, both <= PrivacyGuarantee(4)
    (Fraction(3, 1), True)
    >>> PrivacyGuarantee(1, model="central") <= PrivacyGuarantee(4)
    False
    >>> many = sum(100 * [PrivacyGuarantee(0.1)])
    >>> many.epsilon, round(float(many.epsilon_at(1e-6)), 2)
    (Fraction(10, 1), 5.22)
    """

    epsilon: Fraction | float
    delta: Fraction | float = 0
    model: str = "local"
    neighbours: Neighbours = Neighbours.LOCAL
    seeded: bool | None = False
    notes: tuple = ()
    relaxation: str | None = None
    relaxed_epsilon: Fraction | None = None
    curve: Curve | None = None
    parties: tuple = ()

    def __post_init__(self):
        """Refuse what is no guarantee at all."""
        if self.model not in _TRUST:
            raise ValueError(f"model must be one of {sorted(_TRUST)}, got {self.model!r}")
        for name in ("epsilon", "delta", "relaxed_epsilon"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, canonical_amount(getattr(self, name), name))
        if self.delta > 1:
            raise ValueError("delta must be at most 1")
        if not isinstance(self.neighbours, Neighbours):
            raise ValueError("neighbours must be a member of dpestim.privacy.Neighbours")
        if not isinstance(self.parties, tuple) or not all(isinstance(one, Parties) for one in self.parties):
            raise ValueError("parties must be a tuple of dpestim.privacy.trust.Parties")
        if (self.relaxation is None) != (self.relaxed_epsilon is None):
            raise ValueError("relaxation and relaxed_epsilon must be given together")
        if self.curve is None:
            return
        if checked_curve(self.curve).is_sampled and self.neighbours is not Neighbours.ADD_REMOVE:
            raise ValueError("curve is that of a Poisson sample, which is about add_remove neighbours")
        # no guarantee: none by the curve either; pure: a curve that says less than epsilon does says nothing
        worse = not self.delta and isinstance(self.curve, ZCDP) and self.curve.rho > self.epsilon**2 / 2
        if self.epsilon == math.inf or worse:
            object.__setattr__(self, "curve", None)

    @property
    def is_finite(self):
        """Whether anything is promised: by epsilon and a delta below 1, or by the curve."""
        return self.curve is not None or (self.epsilon != math.inf and self.delta < 1)

    @property
    def is_nothing(self):
        """Whether nothing at all was released."""
        return not self.epsilon and not self.delta

    @property
    def concentrated(self):
        """The concentrated privacy (`ZCDP`) that also holds, at most epsilon^2 / 2 of a pure one; None: not known."""
        rhos = [] if self.curve is None or self.curve.rho is None else [self.curve.rho]
        if not self.delta and self.epsilon != math.inf:
            rhos.append(self.epsilon**2 / 2)
        return ZCDP(min(rhos)) if rhos else None

    def epsilon_at(self, delta):
        """Return the least epsilon known to hold with a delta from 0 to 1: `epsilon`, or less by the curve; or inf."""
        delta = amount(delta, "delta", 1)
        face = self.epsilon if self.delta <= delta else math.inf
        curve = self.curve or self.concentrated
        return face if curve is None or not delta else min(face, curve.epsilon_at(delta))

    def at(self, delta):
        """Return the guarantee with another delta as its face, and the least epsilon known to hold with it.

        Raises ValueError where none does.
        """
        epsilon, keeps = self.epsilon_at(delta), self.delta <= amount(delta, "delta", 1)
        if epsilon == math.inf:
            raise ValueError("no epsilon is known for this delta: ask for a delta of at least that of the guarantee, "
                             "or for a guarantee with a curve and a delta above 0")
        return replace(self, epsilon=epsilon, delta=delta, curve=self.curve or self.concentrated,
                       relaxation=self.relaxation if keeps else None,
                       relaxed_epsilon=self.relaxed_epsilon if keeps else None)

    def to(self, neighbours):
        """Return the guarantee under another neighbouring relation, or raise ValueError where none follows.

        * local to substitution: the same, because replacing a record replaces one user's input;
        * add_remove to substitution: a replacement is a removal and an addition, so epsilon doubles and delta becomes
          (1 + e^epsilon) delta, rho four times as large, and noise half as large, where the curve knows it;
        * list to edge: an edge is an entry of the lists of two users, so it costs as much as a replacement does;
        * node to edge: as much again, because a node is removed and added with one edge less;
        * user to event: the same, because an event is one of a user;
        * to local, to add_remove, to list, to node, to edge, to event, to user or to rating from anything else, and
          from these of graphs, streams and ratings to anything else: nothing follows (a mechanism may publish the
          number of records).
        """
        neighbours = Neighbours(neighbours)
        if neighbours is self.neighbours:
            return self
        if self.neighbours is Neighbours.USER and neighbours is Neighbours.EVENT:
            return replace(self, neighbours=neighbours)
        of_graphs = self.neighbours in (Neighbours.EDGE, Neighbours.LIST, Neighbours.NODE)
        of_two = of_graphs and self.neighbours is not Neighbours.EDGE and neighbours is Neighbours.EDGE
        apart = of_graphs or self.neighbours in (Neighbours.EVENT, Neighbours.USER, Neighbours.RATING)
        if not of_two and (neighbours is not Neighbours.SUBSTITUTION or apart):
            mend = 'set neighbours="add_remove" of the estimator, if it has that parameter, or ' if (
                neighbours is Neighbours.ADD_REMOVE) else ""
            of_whom = self.neighbours.value if apart else "substitution"
            raise ValueError(f"a guarantee for {self.neighbours.value} neighbours has no bound for {neighbours.value} "
                             f'neighbours: {mend}take a ledger with neighbours="{of_whom}"')
        if self.neighbours is Neighbours.LOCAL:
            return replace(self, neighbours=neighbours)
        exponent = self.epsilon if self.epsilon != math.inf else self.relaxed_epsilon
        factor = 1 + exp_upper(min(exponent, _FAR)) if self.delta and exponent is not None else 1
        delta = 1 if self.delta and exponent is not None and exponent > _FAR else min(1, self.delta * factor)
        relaxed = None if self.relaxed_epsilon is None else 2 * self.relaxed_epsilon
        return replace(self, neighbours=neighbours, epsilon=2 * self.epsilon, delta=delta,
                       relaxed_epsilon=relaxed, curve=None if self.curve is None else self.curve.of_groups(2))

    def __add__(self, other):
        """Return what both releases about the same people promise together.

        Epsilons and deltas add up (basic composition, always valid), and curves by the tightest rule that both have:
        losses with losses and with faces; else Renyi's divergences; else rhos; else none is known of the sum.
        """
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        if other.is_nothing:  # what says that nothing happened says nothing more
            return self
        if self.is_nothing:
            return other
        mine, theirs = _same_relation(self, other)
        relaxation, relaxed = _sum_relaxed(mine, theirs)
        return PrivacyGuarantee(
            _sum(mine.epsilon, theirs.epsilon),
            min(1, _sum(mine.delta, theirs.delta)),
            max(self.model, other.model, key=_MODELS.index),
            mine.neighbours,
            True if True in (self.seeded, other.seeded) else None if None in (self.seeded, other.seeded) else False,
            tuple(dict.fromkeys((*self.notes, *other.notes))),
            relaxation,
            relaxed,
            _sum_curves(mine, theirs),
            _sum_parties(mine, theirs),
        )

    def __radd__(self, other):
        """Let ``sum(guarantees)`` start at 0."""
        return self if other == 0 else NotImplemented

    def __le__(self, other):
        """Tell whether this promises all that `other` does."""
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        if self.is_nothing:
            return True
        try:
            mine = self.to(other.neighbours)
        except ValueError:
            return False
        if other.relaxation is not None:
            own = mine.relaxed_epsilon if mine.relaxation == other.relaxation else math.inf
            if min(mine.epsilon, own) > other.relaxed_epsilon:
                return False
        return (
            _MODELS.index(mine.model) <= _MODELS.index(other.model)
            and _trusts_no_other(mine, other)
            and (other.seeded is True or self.seeded is not True)
            and (
                (mine.epsilon <= other.epsilon and mine.delta <= other.delta)
                or (other.relaxation is None and mine.epsilon_at(other.delta) <= other.epsilon < math.inf)
            )
            and (other.curve is None or _follows(other.curve, mine))
        )

    def __ge__(self, other):
        """Tell whether `other` promises at least what this does."""
        return NotImplemented if not isinstance(other, PrivacyGuarantee) else other.__le__(self)

    @property
    def trust(self):
        """Who must be trusted, as the end of a sentence."""
        return "; ".join(one.sentence for one in self.parties) or _TRUST[self.model]

    def __str__(self):
        if not self.is_finite:
            why = "epsilon is infinite" if self.epsilon == math.inf else "delta is 1"
            return " ".join((f"No privacy guarantee ({why}).", *self.notes)) + self._relaxed()
        if self.is_nothing:
            return " ".join(self.notes or ("Nothing was released.",))
        if self.delta == 1:  # the face says nothing, the curve does
            gives = "give" if self.curve.rho is None else "gives"  # (losses, or privacy)
            text = (f"{self.curve.face} in the {self.model} model for "
                    f"{self.neighbours.sentence}, which {gives} an epsilon for every delta above 0; "
                    f"{self.trust}.")
        else:
            text = self._sentence()
        if self.seeded:
            text += (" The noise came from a seed. A reader who knows or guesses the seed can remove the noise: do not "
                     "publish this result.")
        if self.seeded is None:
            text += (" The reports were made elsewhere, so that dpestim does not know whether their noise came from a "
                     "seed.")
        return " ".join((text, *self.notes)) + self._relaxed()

    def _relaxed(self):
        """Return what holds under the relaxation, a sentence, where that is less."""
        if self.relaxation is None or not self.relaxed_epsilon < self.epsilon:
            return ""
        from dpestim.privacy.text import bound  # (only who reads the sentence needs numbers as text)

        return f" Under the relaxation {self.relaxation} epsilon is {bound(self.relaxed_epsilon)}."

    @property
    def privacy(self):
        """The guarantee itself, under the name that all results have."""
        return self

    def _about(self):
        return "What this guarantee is the promise of."

    def plot(self, ax=None, **kwargs):
        """Draw the least epsilon that is known to hold at each delta: one number of both says less.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None makes new ones.
        **kwargs
            For matplotlib's `plot` of the line.

        Returns
        -------
        dpestim.inspection.GuaranteeDisplay
        """
        from dpestim.plots import GuaranteeDisplay

        return GuaranteeDisplay.from_guarantee(self, ax=ax, **kwargs)

    def _head(self):
        return "epsilon", "delta", "model", "neighbours", "seeded", "relaxation", "relaxed epsilon"

    def _rows(self):
        yield (self.epsilon, self.delta, self.model, self.neighbours.value, self.seeded, self.relaxation,
               self.relaxed_epsilon)

    def _remarks(self):
        return (str(self),)

    def _sentence(self):
        """Return what the face says, and the curve."""
        from dpestim.privacy.text import bound, odds

        eps = bound(self.epsilon)
        what = f"({eps}, {bound(self.delta)})" if self.delta else eps
        also = f" and {self.curve.face}" if self.curve and self.delta else ""
        return (
            f"{what}-differential privacy{also} in the {self.model} model for {self.neighbours.sentence}: no event is "
            f"more than e^{eps}{odds(self.epsilon)} times likelier for one than for the other"
            f"{f', plus {bound(self.delta)}' if self.delta else ''}; {self.trust}."
        )


def _same_relation(a, b):
    """Return both under one relation."""
    if a.neighbours is b.neighbours:
        return a, b
    shared = Neighbours.EDGE if Neighbours.EDGE in (a.neighbours, b.neighbours) else Neighbours.SUBSTITUTION
    return a.to(shared), b.to(shared)


def _sum(a, b):
    """Return an exact sum, or infinity."""
    return math.inf if math.inf in (a, b) else Fraction(a) + Fraction(b)


def _sum_curves(a, b):
    """Return the curve of both, where both have one."""
    a, b = (known(x.epsilon, x.delta, x.curve) for x in (a, b))
    return None if a is None or b is None else a + b


def _sum_parties(a, b):
    """Return the parties of whom something is asked in both; none where a curator or a shuffler must be trusted."""
    asks = [x.parties for x in (a, b) if x.parties or x.model != "local"]
    return tuple(dict.fromkeys(sum(asks, ()))) if all(asks) else ()


def _trusts_no_other(mine, other):
    """Tell whether who must be trusted for one guarantee must be trusted for the other: a curator is asked for more."""
    return not other.parties or mine.model == "local" or (
        bool(mine.parties) and set(mine.parties) <= set(other.parties))


def _follows(curve, guarantee):
    """Tell whether a curve follows from a guarantee, by what it knows or by its face alone (False: not known)."""
    ways = (guarantee.curve, known(guarantee.epsilon, guarantee.delta, None))
    return any(way is not None and curve.follows_from(way) for way in ways)


def _sum_relaxed(a, b):
    """Return the relaxation that both keep and its epsilon; whoever names none keeps every relaxation."""
    names = {x.relaxation for x in (a, b)} - {None}
    if len(names) != 1:
        return None, None
    parts = [x.epsilon if x.relaxation is None else x.relaxed_epsilon for x in (a, b)]
    return (None, None) if math.inf in parts else (names.pop(), sum(map(Fraction, parts)))
