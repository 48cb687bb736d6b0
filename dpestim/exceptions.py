"""Warnings and errors of dpestim; bad input is always a plain `ValueError`."""


class PrivacyLeakWarning(UserWarning):
    """Something that must be public was learned from private data, so that the result carries no guarantee."""


class LedgerError(ValueError):
    """A ledger cannot be trusted or found: its file is missing, damaged, foreign or of another budget."""


class BudgetExceededError(LedgerError):
    """A release would overdraw its ledger; nothing was charged and nothing was drawn."""


class NoIntervalError(ValueError):
    """Intervals that were asked for would not hold, or would say nothing, so that there are none."""


class DecodeError(ValueError):
    """A table of messages could not be taken apart to the end, so that none of its messages is returned."""


class CollectionError(ValueError):
    """The state file of a collector cannot be used: it is missing, damaged, foreign, read-only, or its disk is full."""


class PartiesError(ValueError):
    """A protocol of many parties cannot go on, so that there is no result; `phase` names where it ended."""

    def __init__(self, phase, what):
        super().__init__(f"phase {phase!r}: {what}")
        self.phase, self.what = phase, what

    def __reduce__(self):
        """Return the two arguments: by default, pickle would pass the text alone."""
        return type(self), (self.phase, self.what)
