"""Tasks for private models: rows that are packaged, bundled with scikit-learn, or read from a file.

Bounds, categories, classes and norms are public; rows are split once, seven to three, the same for everybody.
"""

from dataclasses import dataclass

import numpy as np

#: Rounded up by hand from what is known about such measurements in general, column by column.
CANCER_BOUNDS = [30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.25, 0.35, 0.1, 3, 5, 25, 550, 0.03, 0.15, 0.4, 0.06, 0.08, 0.03,
                 40, 50, 260, 4500, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25]
ADULT_CATEGORIES = ["workclass", "marital_status", "occupation", "relationship", "race", "sex", "native_country"]
ADULT_BOUNDS = {"age": (17, 90), "education_num": (1, 16), "capital_gain": (0, 99_999), "capital_loss": (0, 4356),
                "hours_per_week": (1, 99)}
#: Columns of the census of 1994 and 1995 (no header; UCI's "Census-Income (KDD)") that are numbers, with the ranges of
#: its code book; that of weights, which is not a person's; and that of incomes, the last.
CENSUS_BOUNDS = {0: (0, 90), 5: (0, 9999), 16: (0, 99_999), 17: (0, 4608), 18: (0, 99_999), 30: (0, 6), 39: (0, 52)}
CENSUS_WEIGHT, CENSUS_INCOME = 24, 41


#: Bins of a number, where a model wants categories.
BINS = 10


@dataclass
class Task:
    """Rows of norm at most 1 in a box, targets, rows set aside and their targets.

    `bins` has one column for each of a person's attributes, as codes below `n_bins`; `raw` has the same columns before
    that (codes of categories, numbers as they are), for peers that like them so, with `kinds` and `ranges`.
    """

    kind: str
    X: np.ndarray
    y: np.ndarray
    T: np.ndarray
    truth: np.ndarray
    box: tuple
    bounds: tuple | None
    views: dict
    n_bins: list
    kinds: list
    ranges: np.ndarray

    @classmethod
    def of(cls, kind, X, y, bounds=None, *, box=None, raw=None, kinds=None, ranges=None):
        """Split rows: 70 and 30 per cent, the same for everybody."""
        X, y = np.ascontiguousarray(X, float), np.asarray(y)
        d = X.shape[1]
        box = box or (np.full(d, -1 / np.sqrt(d)), np.full(d, 1 / np.sqrt(d)))
        if raw is None:
            raw, kinds, ranges = X, ["continuous"] * d, np.stack(box, 1)
        n_bins = [int(top) + 1 if kind == "nominal" else BINS for kind, (_, top) in zip(kinds, ranges)]
        share = (raw - ranges[:, 0]) / (ranges[:, 1] - ranges[:, 0])
        numbers = np.clip((share * BINS).astype(int), 0, BINS - 1)
        bins = np.where([kind == "nominal" for kind in kinds], raw, numbers).astype(int)
        order, cut = np.random.default_rng(0).permutation(len(y)), int(0.7 * len(y))
        views = {name: (table[order[:cut]], table[order[cut:]])
                 for name, table in (("rows", X), ("bins", bins), ("raw", raw))}
        return cls(kind, views["rows"][0], y[order[:cut]], views["rows"][1], y[order[cut:]], box, bounds, views, n_bins,
                   kinds, np.asarray(ranges, float))


def scaled(columns, low, high):
    """Map columns from public bounds to [-1, 1], clipped, and rows to norm at most 1."""
    table = 2 * (np.clip(columns, low, high) - low) / (np.asarray(high, float) - low) - 1
    return table / np.sqrt(table.shape[1])


def _teenagers(*names):
    from dpestim.datasets import load_yrbss

    bunch = load_yrbss()
    return [bunch.data[:, bunch.feature_names.index(name)] for name in names]


def yrbss():
    """Sex from age, height and weight: 12,579 teenagers."""
    *columns, gender = _teenagers("age", "height", "weight", "gender")
    X = scaled(np.stack(columns, 1).astype(float), np.array([12, 1.2, 25]), [18, 2.2, 200])
    return Task.of("classes", X, (gender == "male").astype(int))


def breast_cancer():
    """Benign or malignant from 30 measurements: 569 women."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return Task.of("classes", scaled(X, 0.0, CANCER_BOUNDS), y)


def digits():
    """Ten digits from 64 pixels: 1,797 pictures."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Task.of("classes", scaled(X, 0, np.full(64, 16)), y)


def weight():
    """Weight from height alone: 12,579 teenagers."""
    height, weight = _teenagers("height", "weight")
    return Task.of("regression", scaled(height.astype(float)[:, None], 1.2, [2.2]), weight.astype(float), (25.0, 200.0))


def height():
    """Height from age, weight and sex: 12,579 teenagers."""
    age, weight, gender, height = _teenagers("age", "weight", "gender", "height")
    X = np.stack([age.astype(float), weight.astype(float), gender == "male"], 1)
    return Task.of("regression", scaled(X, np.array([12, 25, 0]), [18, 200, 1]), height.astype(float), (1.2, 2.2))


def diabetes():
    """Progression from ten measurements: 442 patients."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    return Task.of("regression", scaled(X, -0.2, np.full(10, 0.2)), y, (0.0, 400.0))


def _adult(path, numbers):
    """Return (table, one-hot and scaled columns, what else `Task.of` takes)."""
    import pandas as pd

    table, n = pd.read_csv(path), len(ADULT_CATEGORIES) + len(numbers)
    known = {name: sorted(set(table[name]) - {"?"}) for name in ADULT_CATEGORIES}
    ranges = np.array([numbers[name] for name in numbers], float)
    # one part in n of the squared norm for each attribute; who did not answer has nothing there
    hot = np.stack([(table[name] == value) for name in known for value in known[name]], 1) / np.sqrt(n)
    columns = scaled(table[list(numbers)].to_numpy(float), *ranges.T) * np.sqrt(len(numbers) / n)
    codes = [1 + pd.Index(known[name]).get_indexer(table[name]) for name in known]
    sides = np.repeat([[0, -1], [1, 1]], [hot.shape[1], len(numbers)], axis=1) / np.sqrt(n)
    return table, np.hstack([hot, columns]), {
        "box": tuple(sides),
        "raw": np.hstack([np.stack(codes, 1), table[list(numbers)].to_numpy(float)]),
        "kinds": ["nominal"] * len(known) + ["continuous"] * len(numbers),
        "ranges": np.vstack([[(0, len(known[name])) for name in known], ranges]),
    }


def adult(path):
    """Income above 50,000 from 88 columns: one-hot categories and five numbers."""
    table, X, more = _adult(path, ADULT_BOUNDS)
    return Task.of("classes", X, (table["income"] == ">50K").to_numpy(int), **more)


def census(paths):
    """Income above 50,000 from 40 columns, 33 of them codes or words: 6 % of people."""
    import pandas as pd

    table = pd.concat([pd.read_csv(path, header=None, skipinitialspace=True) for path in paths], ignore_index=True)
    rich = table.pop(CENSUS_INCOME).astype(str).str.contains("+", regex=False).to_numpy(int)
    table = table.drop(columns=CENSUS_WEIGHT)
    kinds = ["continuous" if name in CENSUS_BOUNDS else "nominal" for name in table]
    raw = np.stack([table[name].to_numpy(float) if name in CENSUS_BOUNDS else pd.factorize(table[name], sort=True)[0]
                    for name in table], 1)
    tops = np.stack([np.zeros(raw.shape[1]), raw.max(axis=0)], 1)  # (of codes: the code book's)
    ranges = np.array([CENSUS_BOUNDS.get(name, top) for name, top in zip(table, tops)], float)
    hot = np.hstack([raw[:, [j]] == np.arange(ranges[j, 1] + 1) if kind == "nominal" else raw[:, [j]] / ranges[j, 1]
                     for j, kind in enumerate(kinds)]) / np.sqrt(len(kinds))
    return Task.of("classes", hot, rich, box=(np.zeros(hot.shape[1]), np.full(hot.shape[1], hot.max())), raw=raw,
                   kinds=kinds, ranges=ranges)


def hours(path):
    """Hours a week from 87 columns of Adult."""
    numbers = {name: ADULT_BOUNDS[name] for name in ADULT_BOUNDS if name != "hours_per_week"}
    table, X, more = _adult(path, numbers)
    return Task.of("regression", X, table["hours_per_week"].to_numpy(float), (1.0, 99.0), **more)
