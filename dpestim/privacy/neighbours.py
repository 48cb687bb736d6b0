"""Neighbouring relations: which pairs of data sets a guarantee speaks about."""

from enum import Enum


class Neighbours(Enum):
    """A neighbouring relation; `value` is its name, `sentence` says what two neighbours are."""

    #: any two inputs of one user
    LOCAL = "local"
    #: one record replaced; the number of records is public
    SUBSTITUTION = "substitution"
    #: one record more or less; the number of records is private
    ADD_REMOVE = "add_remove"
    #: one edge of a graph more or less; the nodes are public
    EDGE = "edge"
    #: one entry of the neighbour list of one user; the nodes are public
    LIST = "list"
    #: one node of a graph more or less, with all its edges; the number of nodes is private
    NODE = "node"
    #: one event of a stream; the steps are public
    EVENT = "event"
    #: all events of one user of a stream; the steps are public
    USER = "user"
    #: one rating of one user more or less; the users and items are public
    RATING = "rating"

    @property
    def sentence(self):
        """What two neighbours are, in a few words."""
        return {
            Neighbours.LOCAL: "any two inputs of one user",
            Neighbours.SUBSTITUTION: "data sets of equal size that differ in one record",
            Neighbours.ADD_REMOVE: "data sets of which one has one record more",
            Neighbours.EDGE: "graphs on the same nodes of which one has one edge more",
            Neighbours.LIST: "neighbour lists of one user that differ in one entry",
            Neighbours.NODE: "graphs of which one has one node more, with all its edges",
            Neighbours.EVENT: "streams of the same steps that differ in one event",
            Neighbours.USER: "streams of the same steps that differ in the events of one user",
            Neighbours.RATING: "ratings of the same users of which one has one rating more",
        }[self]


#: Relations of the central model, by name.
CENTRAL = {n.value: n for n in (Neighbours.SUBSTITUTION, Neighbours.ADD_REMOVE)}
