"""Releases, each so often: what a `RenyiCurve` and a `PrivacyLossDistribution` have in common."""

from collections import Counter
from functools import cached_property

from dpestim.docstrings import Documented
from dpestim.privacy.concentrated import ZCDP
from dpestim.privacy.curve import Curve
from dpestim.privacy.rounding import whole

#: More releases are not compared one by one.
_MOST = 100_000


class Series(Documented, Curve):
    """A curve that is made of pieces, each so often; pieces are immutable.

    A piece answers `rho`; `of_groups`, the piece for groups, or None; and `order`, (family, size): of one family the
    larger says less. Of some families, whose `order` ends with True, many are as one that has the sum of their rhos.
    """

    _texts = {"attributes of a series": """\
        Attributes
        ----------
        n_releases : int
            How many releases it is composed of.
        rho : Fraction or None
            An upper bound of the rho of concentrated privacy; None: not known.
        is_sampled : bool
            Whether it holds for add/remove neighbours only, because of Poisson sampling.
    """}

    def __init__(self, pieces, is_sampled=False):
        self._pieces = pieces  # {piece: how often}
        self.is_sampled = is_sampled

    def __reduce__(self):
        """Pickle what it is made of, and none of what has been worked out."""
        return type(self), (self._pieces, self.is_sampled)

    @property
    def n_releases(self):
        """How many releases it is composed of."""
        return sum(self._pieces.values())

    def compose(self, n):
        """Return that of n independent runs of all of it.

        Parameters
        ----------
        n : int
            At least 1.
        """
        n = whole(n, "n")
        return type(self)({piece: n * count for piece, count in self._pieces.items()}, self.is_sampled)

    def joined(self, other):
        """Return that of both together."""
        more, fewer = (self, other) if len(self._pieces) >= len(other._pieces) else (other, self)
        pieces = dict(more._pieces)
        for piece, count in fewer._pieces.items():
            pieces[piece] = pieces.get(piece, 0) + count
        return type(self)(pieces, self.is_sampled or other.is_sampled)

    @cached_property
    def rho(self):
        """The rho of concentrated privacy, an upper bound; None where a release has none."""
        rhos = [piece.rho for piece in self._pieces]
        return None if None in rhos else sum(n * rho for n, rho in zip(self._pieces.values(), rhos))

    def weaker(self):
        """Return what follows from it: concentrated privacy; None where a release has none."""
        return None if self.rho is None else ZCDP(self.rho)

    def of_groups(self, size):
        """Return that for groups of so many neighbours; None where nothing is known."""
        pieces = Counter()
        for piece, count in self._pieces.items():
            group = None if self.is_sampled else piece.of_groups(size)
            if group is None:
                weaker = self.weaker()
                return None if weaker is None or self.is_sampled else weaker.of_groups(size)
            pieces[group] += count
        return type(self)(dict(pieces))

    def covers(self, other):
        """Tell whether each release of another one has one here that says no more (False: not known)."""
        mine, theirs = Counter(self._pieces), Counter(other._pieces)
        mine, theirs = mine - theirs, theirs - mine
        return all(_is_within(family, theirs, mine) for family in {piece.order[0] for piece in theirs})

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return (self._pieces, self.is_sampled) == (other._pieces, other.is_sampled)

    @cached_property
    def _hash(self):
        return hash((type(self), frozenset(self._pieces.items()), self.is_sampled))

    def __hash__(self):
        return self._hash


def _is_within(family, some, others):
    """Tell whether the pieces of a family among `some` say no less than those among `others`."""
    some, others = ({piece: n for piece, n in pieces.items() if piece.order[0] == family} for pieces in (some, others))
    if family[-1] is True:
        return sum(n * piece.rho for piece, n in some.items()) <= sum(n * piece.rho for piece, n in others.items())
    if sum(some.values()) > min(_MOST, sum(others.values())):
        return False
    sizes = (sorted(((piece.order[1], n) for piece, n in pieces.items()), reverse=True) for pieces in (some, others))
    some, others = (Counter(dict(pairs)).elements() for pairs in sizes)
    return all(a <= b for a, b in zip(some, others))
