"""Sparse matrices as they come in: their entries, or an error that shows none."""

from dpestim.inputs.safe_errors import attempt


def entries_of(matrix):
    """Return a sparse matrix as a coo_array, or raise ValueError for one that is damaged.

    SciPy checks where entries are when it gives a matrix another form, and not when a matrix is made. Its error shows
    the place of an entry, and starts of rows that do not ascend would have it write beyond its arrays.
    """
    starts = getattr(matrix, "indptr", None)
    valid = starts is None or (starts[:-1] <= starts[1:]).all()
    entries, error = attempt(matrix.tocoo) if valid else (None, ValueError)
    if error:
        raise ValueError("the sparse matrix is damaged: an entry is not in its rows and columns. Call "
                         "check_format() where the matrix is made")
    return entries
