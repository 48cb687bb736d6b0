"""Warnings and errors of dpestim; bad input is always a plain `ValueError`."""


class PrivacyLeakWarning(UserWarning):
    """Something that must be public was learned from private data, so that the result carries no guarantee."""
