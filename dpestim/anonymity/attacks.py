"""What anonymous tables tell all the same: attacks that need nothing but the tables and a stranger's knowledge."""

import math
from numbers import Integral, Real

import numpy as np

from dpestim.anonymity.measures import Counts
from dpestim.anonymity.table import Table, looked_up
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.records import record
from dpestim.tables import Table as Printed


@record(eq=False)
class Attack(Printed):
    """What an attack tells.

    Attributes
    ----------
    n_people : int
        People who were looked for.
    n_learned : int
        Of how many the sensitive value was read, and rightly.
    share : float
        The same, as a share.
    learned : ndarray of shape (n_people,)
        Who they are.
    """

    n_people: int
    n_learned: int
    share: float
    learned: np.ndarray

    _n_labels = 0
    _plotted = ("share", None, None)

    @property
    def privacy(self):
        """None: an attack compares with the exact sensitive values."""
        return PrivacyGuarantee(math.inf, model="central", neighbours=Neighbours.SUBSTITUTION, notes=(
            "k-anonymous tables are exact releases, and so is a share of people whose value is known.",))

    def _about(self):
        return f"Released tables of {self.n_people:,} people who were looked for."

    def __str__(self):
        return f"the sensitive value of {self.n_learned:,} of {self.n_people:,} people is known ({self.share:.1%})"

    def _head(self):
        return "people", "learned", "share"

    def _rows(self):
        yield self.n_people, self.n_learned, self.share

    def _remarks(self):
        return (str(self),)


def _attack(learned):
    return Attack(len(learned), int(learned.sum()), float(learned.mean()) if len(learned) else 0.0, learned)


def homogeneity_attack(X, quasi_identifiers, sensitive, *, confidence=1.0):
    """Look up people in one released table: in whose class is there (almost) one sensitive value only?

    An attacker who knows a person's quasi-identifiers, and that the person is in the table, finds the class and reads
    its most common value. k-anonymity says nothing about values; l-diversity asks for several, and `confidence` below 1
    guesses where one is nearly alone all the same: those who have it are counted, as for the others it is wrong.

    Classes are told apart by what is written in the table, and must not overlap (as those of
    ``Mondrian(cuts="relaxed")`` do): otherwise the class of a person who fits into two classes is unknown.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
        The released table, one row a person.
    quasi_identifiers : list of str or int
    sensitive : str or int
    confidence : float, default=1.0
        Share of a class that has its commonest value, from which on it is read.

    Returns
    -------
    Attack

    References
    ----------
    A. Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", ACM TKDD 1(1), 2007, section 2.

    Examples
    --------
    >>> from dpestim.anonymity import homogeneity_attack
    >>> released = [["[20, 30]", "flu"], ["[20, 30]", "flu"], ["[30, 40]", "flu"], ["[30, 40]", "cold"]]
    >>> print(homogeneity_attack(released, [0], 1))
    the sensitive value of 2 of 4 people is known (50.0%)
    """
    if not isinstance(confidence, Real) or isinstance(confidence, bool) or not 0 < confidence <= 1:
        raise ValueError(f"confidence must be a number above 0 and at most 1, got {confidence!r}")
    classes, secret = looked_up(X, quasi_identifiers, sensitive)
    value, share = Counts.of(classes, secret.codes).commonest()
    return _attack((share >= confidence)[classes] & (secret.codes == value[classes]))


def intersection_attack(tables, quasi_identifiers, sensitive, *, people=None):
    """Look up people in several released tables: which sensitive value stands in all their classes?

    Each table may be k-anonymous and l-diverse by itself. A person who is in all of them has a value that is in each of
    the person's classes, and what they have in common is often one value only. No table knows of the others, and no
    property of one of them can prevent it: that takes a guarantee that composes. As in `homogeneity_attack`, classes
    must not overlap.

    Parameters
    ----------
    tables : list of array-likes or data frames
        Released tables, one row a person, with the sensitive column as it is.
    quasi_identifiers : list of str or int, or one such list for each table
    sensitive : str or int
    people : list of array-likes, default=None
        For each table, who its rows are about (any hashable names). None: the same people in the same order.

    Returns
    -------
    Attack
        `learned` in the order of the people of the first table who are in all of them.

    Raises
    ------
    ValueError
        Also where a person's classes have no value in common: the tables contradict each other, as where a code is a
        number in one and a text in the other, or where rows are about other people than was said.

    References
    ----------
    S. R. Ganta, S. P. Kasiviswanathan and A. Smith, "Composition attacks and auxiliary information in data privacy",
    KDD 2008, section 2.

    Examples
    --------
    >>> from dpestim.anonymity import intersection_attack
    >>> first = [["young", "flu"], ["young", "cold"], ["old", "ulcer"], ["old", "cold"]]
    >>> second = [["west", "flu"], ["east", "cold"], ["west", "ulcer"], ["east", "cold"]]
    >>> print(intersection_attack([first, second], [0], 1))
    the sensitive value of 4 of 4 people is known (100.0%)
    """
    tables = list(tables)
    if len(tables) < 2:
        raise ValueError("tables must be at least two released tables")
    sizes = [Table(X).n_rows for X in tables]
    if people is None:
        if len(set(sizes)) > 1:
            raise ValueError("people must name the person of each row, because the tables have different numbers of "
                             "rows")
        people = [range(sizes[0])] * len(tables)
    people = [list(who) for who in people]
    if len(people) != len(tables):
        raise ValueError("people must be one list for each table")
    places = []
    for who, size in zip(people, sizes):
        place = {name: row for row, name in enumerate(who)}
        if len(place) != size or len(who) != size:
            raise ValueError("people must name one person for each row of each table, and each once")
        places.append(place)
    known = [quasi_identifiers] if isinstance(quasi_identifiers, str | Integral) else list(quasi_identifiers)
    each = known if known and all(isinstance(names, list | tuple) for names in known) else [known] * len(tables)
    if len(each) != len(tables):
        raise ValueError("quasi_identifiers must be one list, or one for each table")
    shared = [name for name in places[0] if all(name in place for place in places[1:])]
    candidates = [None] * len(shared)
    for X, place, names in zip(tables, places, each):
        classes, secret = looked_up(X, names, sensitive)
        counts, keys = Counts.of(classes, secret.codes), secret.keys()
        values = [frozenset(keys[code] for code in codes) for codes in np.split(counts.codes, counts.starts[1:])]
        for j, name in enumerate(shared):
            here = values[classes[place[name]]]
            candidates[j] = here if candidates[j] is None else candidates[j] & here
    contradicted = sum(not left for left in candidates)
    if contradicted:
        raise ValueError(f"tables must not contradict each other: {contradicted} of {len(shared)} people have no "
                         "sensitive value that all of them allow")
    return _attack(np.array([len(left) == 1 for left in candidates], dtype=bool))
