"""A function that is run on blocks of rows, to which words deal the rows out: one row changes one result."""

import math
import warnings
from numbers import Integral

import numpy as np

from dpestim.central.stability.rehearsal import made_of, rehearse
from dpestim.central.stability.rows import RowMechanism
from dpestim.inputs import number_rows
from dpestim.inputs.frames import is_series, refuse_containers, to_array
from dpestim.inputs.safe_errors import attempt
from dpestim.rng import Stage


class BlockMechanism(RowMechanism):
    """Base of what runs a function on blocks: parameters function, attribute, n_blocks and neighbours."""

    _template = "neighbours"
    _is_symmetric = False
    _shared_parameters = """\
    attribute : str, default=None
        Which attribute of a fitted estimator.
    n_blocks : int, default=None
        How many blocks, at least 2, and at most the number of rows; public, so not chosen by the values. None: about
        the square root of the number of rows, where that is public (``neighbours="substitution"``); with "add_remove"
        it must be given. Noise shrinks with more blocks, and what the function makes of a block gets worse.
"""

    def _has_blocks(self):
        """Tell whether rows are dealt out."""
        return True

    def _notes(self):
        return ("The guarantee holds if the function reads only its block of rows.",) * (self.function is not None)

    def _check_function(self):
        """Raise ValueError unless there is a function that can be run on blocks, or None."""
        if self.n_blocks is None:
            if self._has_blocks() and not self._replaces:
                raise ValueError("n_blocks must be given with neighbours='add_remove', because the number of rows is "
                                 "private")
        elif not isinstance(self.n_blocks, Integral) or not 2 <= self.n_blocks < 2**24:  # (True is 1)
            raise ValueError("n_blocks must be None or an int of at least 2")
        if hasattr(self.function, "fit"):
            if not isinstance(self.attribute, str):
                raise ValueError("attribute must be the name of the attribute of the fitted estimator that is released")
        elif self.function is not None and not callable(self.function):
            raise ValueError("function must be None, a callable or an estimator")

    def _count(self, n_rows):
        """Return how many blocks there are; the number of rows has no part in it where it is private."""
        return min(max(2, math.isqrt(n_rows)), n_rows) if self.n_blocks is None else int(self.n_blocks)

    def _look(self, rows, plan):
        """Raise ValueError where a mistake in what is public would cost an answer; return the rows."""
        if self._has_blocks():
            if self._replaces and self._count(len(rows)) > len(rows):
                raise ValueError(f"n_blocks must be at most the number of rows (n_samples={len(rows)}): take fewer "
                                 "blocks")
            if self.function is not None:
                rehearse(self.function, self.attribute, plan["n_columns"], rows.shape[1] > plan["n_columns"],
                         plan["n_results"])
        return rows

    def _read_table(self, X, strict):
        private = not self._replaces  # the number of rows
        rows = number_rows(X, strict=strict, fewest=0 if strict and private else 1)
        return rows if strict else self._refuse_infinite(rows)

    def _with_y(self, rows, y, strict):
        """Return a table of floats, with y as one column more where a function takes it."""
        rows = rows.astype(np.float64)
        if y is None or self.function is None:
            return rows
        refuse_containers(y, "y")
        y = y.to_frame() if is_series(y) else to_array(y, "y").reshape(-1, 1)
        column, error = attempt(number_rows, y, strict=strict, fewest=0)
        if error or column.shape != (len(rows), 1):
            raise ValueError(f"y must have one number for each of the {len(rows)} rows (in strict mode, a numeric "
                             "dtype)")
        if not strict and not np.isfinite(column.astype(np.float64)).all():
            raise ValueError("y contains NaN or infinity: every value must be finite")
        return np.column_stack([rows, column])

    def _blocks(self, rows, source):
        """Return the block of each row, by words that know nothing of the rows."""
        n_blocks = self._count(len(rows))
        words = source.reader().dense(Stage.SUBSET, 0, 0, 0, len(rows))
        if not self._replaces:
            return ((words >> np.uint64(32)) * np.uint64(n_blocks) >> np.uint64(32)).astype(np.intp)
        blocks = np.empty(len(rows), np.intp)
        blocks[np.argsort(words, kind="stable")] = np.arange(len(rows)) % n_blocks
        return blocks

    def _run(self, rows, n_columns, source, read):
        """Return `read` of the result for each block, None where that failed, or there are no rows."""
        blocks, n_blocks = self._blocks(rows, source), self._count(len(rows))
        order = np.argsort(blocks, kind="stable")
        ends = np.searchsorted(blocks[order], np.arange(1, n_blocks))
        results, errors = [None] * n_blocks, []
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for k, part in enumerate(np.split(order, ends)):
                if len(part):
                    results[k], error = attempt(lambda part=part: read(self._result(rows[part], n_columns)),
                                                passes=KeyboardInterrupt)
                    errors += [error.__name__] if error else []
                else:
                    errors.append("no rows")
        if errors and not self._is_strict():
            warnings.warn(f"the function failed on {('all' if len(errors) == n_blocks else len(errors))} of {n_blocks} "
                          f"blocks, or returned an invalid result (first error: {errors[0]}). Each of these blocks "
                          "counts as the midpoint of the bounds, or votes for no candidate: try function on public "
                          "rows", stacklevel=5)
        return results

    def _result(self, block, n_columns):
        if self.function is None:
            return block.mean(axis=0)
        made = made_of(self.function, block[:, :n_columns], *block[:, n_columns:].T)  # (y is a column, or is not there)
        return getattr(made, self.attribute) if hasattr(self.function, "fit") else made
