"""A column of strings to codes, against pandas."""

import numpy as np

from benchmarks._harness import Row, interleave, limit, share
from dpestim.inputs import CategoryEncoder

N_CATEGORIES = 1024


def rows(settings):
    """Yield one row for each container of strings."""
    try:
        import pandas as pd
    except ImportError:
        yield Row("encode strings", note="not measured: pandas is absent")
        return
    categories = [f"value{i:04d}" for i in range(N_CATEGORIES)]
    codes = np.random.default_rng(0).integers(0, N_CATEGORIES, settings.n)
    fixed = np.array(categories)[codes]
    # every row has a string object of its own, as a file reader leaves them; shared ones would flatter object arrays
    objects = np.array(fixed.tolist(), dtype=object)
    encoder = CategoryEncoder(categories, "column 0")
    known = pd.Index(categories)

    def by_pandas(column):
        found, uniques = pd.factorize(column)
        places = known.get_indexer(uniques)
        if (places < 0).any():
            raise ValueError("an unknown category")
        return places[found]

    columns = {
        "object array": (objects, None, "bound by Python objects and their cache misses"),
        f"{fixed.dtype.str} array": (fixed, "memory", ""),
        "pandas str Series": (pd.Series(objects, dtype="str"), None, "ours asks the series to factorize itself"),
    }
    for name, (column, bound, note) in columns.items():
        contestants = {"ours": lambda c=column: encoder.encode(c), "peer": lambda c=column: by_pandas(c)}
        if bound:
            contestants["limit"] = limit(bound)
        times, results, repeats = interleave(contestants)
        if not all(np.array_equal(results[k], codes) for k in ("ours", "peer")):
            raise RuntimeError(f"wrong codes of {name}")
        row = Row(
            f"encode {settings.n:,} strings, {name}",
            ours=times["ours"],
            peer="pandas.factorize + index",
            baseline=times["peer"],
            ratio=times["peer"] / times["ours"],
            repeats=repeats,
            note=note,
        )
        if bound:
            row.limit, row.share = bound, share(bound, times["limit"], column.nbytes, times["ours"])
        yield row
