"""How data come in: one package through which every estimator takes X, y and lists of categories.

::

    X --category_rows--> frame or array --columns_of--> columns --CategoryEncoder--> codes
    X --number_rows----> array of numbers --refuse_infinite-->
    y --label_codes----> codes of classes

* `frames.py`      containers: what X may be, its shape, its columns; masked and lazy ones are refused by name
* `columns.py`     one column of any library, read by its dtype alone: values, nulls, what compares with what
* `categories.py`  `CategoryEncoder`: a column to codes, by kernels, with a fallback for what is no category;
                   `together.py`: those of an array of integers, all columns at once;
                   `integer_ranges.py`: declared integers in steps of 1, which need no table
* `domains.py`     lists of categories as they are declared, and what can be learned from a column
* `domain.py`      `Domain`: what is public of a table; its columns are in `kinds.py`, bases in `public.py`, files in
                   `domain_files.py`
* `declared.py`    what was declared about columns, in every form, by name or place: the one reader of all estimators
* `numbers.py`     tables of numbers; dates and durations are none
* `sparse.py`      tables of which only entries are kept, for those estimators that take them
* `matrices.py`    entries of a sparse matrix, or an error that shows none
* `clipped.py`     rows of norm at most 1, as linear models take them
* `key_value.py`       tables whose rows are sets of (key, value) pairs, sparse or long
* `labels.py`      y to codes of classes, by the same encoder
* `safe_errors.py`       the one place where the exceptions of other libraries are caught

Two rules hold for all of it. **A row is decoded from its own value and the dtype of its column**, never with the help
of another row, so that data sets which differ in one row differ in one code. **No message shows a value**: what NumPy,
pandas, polars and scikit-learn say about data is caught here and said again without them, outside of the handler, so
that a chain of exceptions has nothing to show either. Strict mode (`dpestim.config_context`) looks at dtypes and shapes
only, and is total: whatever a cell holds, it gets a code. It does not promise constant time.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.inputs.categories import CategoryEncoder, first_equals, smallest_dtype
    from dpestim.inputs.clipped import clipped_rows, longest, row_shape
    from dpestim.inputs.columns import is_missing
    from dpestim.inputs.declared import (
        check_target,
        classes_of,
        in_order,
        is_by_column,
        keys_of,
        lists_of,
        name_of_target,
        names_of_columns,
        pair_of,
        pairs_of,
        settle,
        target_pair,
    )
    from dpestim.inputs.domain import Domain
    from dpestim.inputs.domains import at_least_two, learn_categories
    from dpestim.inputs.fingerprints import FingerprintEncoder
    from dpestim.inputs.frames import as_array, category_rows, columns_of
    from dpestim.inputs.integer_ranges import integer_range, ranges_read_once
    from dpestim.inputs.key_value import check_pairs, read_pairs
    from dpestim.inputs.kinds import Categories, Keys, Numbers, Text
    from dpestim.inputs.labels import checked_classes, class_array, label_codes, target_numbers
    from dpestim.inputs.numbers import all_finite, bound_array, number_column, number_rows, refuse_infinite
    from dpestim.inputs.public import PublicColumns
    from dpestim.inputs.sparse import SparseRows, is_sparse, sparse_rows

__getattr__, __dir__ = lazy.attach(__name__, {
    "categories": "CategoryEncoder first_equals smallest_dtype",
    "clipped": "clipped_rows longest row_shape",
    "columns": "is_missing",
    "declared": "check_target classes_of in_order is_by_column keys_of lists_of name_of_target names_of_columns "
                "pair_of pairs_of settle target_pair",
    "domain": "Domain",
    "domains": "at_least_two learn_categories",
    "fingerprints": "FingerprintEncoder",
    "frames": "as_array category_rows columns_of",
    "integer_ranges": "integer_range ranges_read_once",
    "key_value": "check_pairs read_pairs",
    "kinds": "Categories Keys Numbers Text",
    "labels": "checked_classes class_array label_codes target_numbers",
    "numbers": "all_finite bound_array number_column number_rows refuse_infinite",
    "public": "PublicColumns",
    "sparse": "SparseRows is_sparse sparse_rows",
})

__all__ = [
    "Categories", "CategoryEncoder", "Domain", "FingerprintEncoder", "Keys", "Numbers", "PublicColumns",
    "SparseRows", "Text",
    "all_finite", "as_array", "at_least_two", "bound_array", "category_rows", "check_pairs", "check_target",
    "checked_classes", "class_array", "classes_of", "clipped_rows", "columns_of", "first_equals", "in_order",
    "integer_range", "is_by_column", "is_missing", "is_sparse", "keys_of", "label_codes", "learn_categories",
    "lists_of", "longest", "name_of_target", "names_of_columns", "number_column", "number_rows", "pair_of", "pairs_of",
    "ranges_read_once", "read_pairs", "refuse_infinite", "row_shape", "settle", "smallest_dtype", "sparse_rows",
    "target_numbers", "target_pair",
]
