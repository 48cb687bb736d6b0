"""Bases of what declares columns, for who asks whether something does: without one its module is not loaded."""


class PublicColumns:
    """Base of `dpestim.Domain`."""


class PublicColumn:
    """Base of `Numbers`, `Categories`, `Text` and `Keys`."""

    #: Which of them it is.
    kind = None


def is_column(declared, kind):
    """Tell whether this is one column of a kind: "numbers", "categories", "text" or "keys"."""
    return isinstance(declared, PublicColumn) and declared.kind == kind
