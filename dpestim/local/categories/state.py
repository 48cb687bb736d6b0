"""What a client keeps between its reports: answers that were randomised once and for all."""

from dataclasses import dataclass

import numpy as np

from dpestim.local.columns import Column, Columns


@dataclass(frozen=True, eq=False, repr=False)
class ClientState:
    """Permanent answers of some rows, which never leave the client; made by `client_state`, used by `privatize`.

    **Secret.** Whoever sees it learns more than any number of reports tell. It can be pickled, to be kept.

    Parameters
    ----------
    answers : tuple of ndarray
        For each column an array of a permanent answer for each row.
    laws : tuple of Randomizer
        The laws that they were made by.
    """

    answers: tuple[np.ndarray, ...]
    laws: tuple

    @property
    def n_rows(self):
        """Rows whose answers it holds."""
        return len(self.answers[0])

    def __repr__(self):
        return f"ClientState(n_rows={self.n_rows}, secret: it stays with the client)"

    def check(self, laws, n_rows):
        """Raise ValueError unless these are the answers of so many rows, by these laws."""
        if self.laws != tuple(laws):
            raise ValueError("state must have been made by an estimator of the same parameters and categories")
        if self.n_rows != n_rows:
            raise ValueError(f"state must have one answer for each row of X: it has {self.n_rows}, X has {n_rows}")


def step_of(columns, step):
    """Return columns whose laws do one of their two steps, a method like `privatize`, to reports of the same shape."""
    return Columns([Column(c.name, _Step(c.law, getattr(c.law, step))) for c in columns])


class _Step:
    """One of the two randomisations, as the walk over the rows sees a law: its blocks and words are the same."""

    def __init__(self, law, privatize):
        self.privatize = privatize
        self.report_dtype, self.report_width, self.block_rows = law.report_dtype, law.report_width, law.block_rows
