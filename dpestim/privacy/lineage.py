"""What something exact was made of: no copy, and nothing that shares a part with it, may be added to it."""

from os import urandom

from dpestim.records import record


@record
class Lineage:
    """Random names of the parts of a summary or an aggregate; copies and pickles keep them.

    Parameters
    ----------
    names : frozenset of str, default=frozenset()
        Empty: nothing was seen yet.
    """

    names: frozenset = frozenset()

    @classmethod
    def new(cls):
        """Return that of rows that nobody has seen before."""
        return cls(frozenset({urandom(8).hex()}))

    def meets(self, other):
        """Tell whether both hold some of the same rows, which would count twice."""
        return not self.names.isdisjoint(other.names)

    def __or__(self, other):
        return Lineage(self.names | other.names)
