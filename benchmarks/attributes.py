"""``python -m benchmarks.attributes {tables,fresh,third,rare,time}``: many attributes, local model.

* ``tables``: the mean squared distance of consistent tables of two columns from the true ones, for each design, over a
  grid of sizes and epsilons; skewed columns, each depends on the last. "calm" was changed while it was measured here.
* ``fresh``: the same on a grid that was declared later, and measured once: other sizes, skews, dependence and numbers
  of users.
* ``third``: a grid that was declared after the two, with twenty seeds a setting: the first two have three, and their
  ratios have standard errors of about a tenth. Columns are even, skewed, or far more skewed.
* ``rare``: columns of which 98 % of the users or more hold the same value, where the expected errors mislead.
* ``time``: frequencies of 20 columns beside those of one, and all pairs of 12 columns, for 1,000,000 users.
"""

import argparse
import itertools
import time

import numpy as np

from dpestim.local import MarginalEstimator, MultiAttributeFrequencyEstimator

GRID = ((2,) * 8, (4,) * 5, (2, 3, 4, 5, 6), (10, 10, 10))
EPSILONS, METHODS, USERS = (0.5, 2.0, 5.0), ("full", "pairs", "fourier", "calm", "auto"), 20_000

FRESH = tuple(zip(
    itertools.product(((2,) * 6, (3,) * 7, (2, 2, 5, 7, 3), (6, 6, 6, 6), (15, 8, 4)), (0.7, 1.5, 3.5)),
    itertools.cycle(((0.4, 8000), (1.8, 60_000), (0.9, 8000), (0.4, 60_000), (1.8, 8000), (0.9, 60_000)))))

THIRD = tuple(zip(
    itertools.product(((2,) * 10, (3,) * 5, (2, 4, 8), (5,) * 6, (12, 2, 2, 2, 2, 2), (2, 2, 9, 9)),
                      (0.4, 1.0, 2.5, 4.5)),
    itertools.cycle(((0.0, 3000), (1.0, 50_000), (2.0, 3000), (0.0, 50_000), (1.0, 3000), (2.0, 50_000),
                     (1.0, 10_000)))))


def rows(sizes, seed, n=USERS):
    """Return skewed columns, of which each holds the value of the one before it in two of five rows."""
    rng, columns = np.random.default_rng(seed), []
    for k in sizes:
        shares = np.arange(1, k + 1) ** -1.2
        own = rng.choice(k, n, p=shares / shares.sum())
        columns.append(np.where(rng.random(n) < 0.4, columns[-1] % k, own) if columns else own)
    return np.column_stack(columns)


def fresh_rows(sizes, seed, n, skew):
    """Return skewed columns, of which each follows a hidden number in half of the rows."""
    rng, columns = np.random.default_rng(7000 + seed), []
    hidden = rng.random(n)
    for k in sizes:
        shares = np.arange(1, k + 1.0) ** -skew
        place = np.where(rng.random(n) < 0.5, hidden, rng.random(n))
        columns.append(np.minimum(np.searchsorted(np.cumsum(shares / shares.sum()), place), k - 1))
    return np.column_stack(columns)


def distance(X, sizes, est):
    """Return the mean over pairs of columns of the squared distance of the table from the true one."""
    out = []
    for i, j in itertools.combinations(range(len(sizes)), 2):
        true = np.zeros((sizes[i], sizes[j]))
        np.add.at(true, (X[:, i], X[:, j]), 1 / len(X))
        out.append(np.square(est.table([i, j]) - true).sum())
    return float(np.mean(out))


def tables(n_seeds=3):
    """Print a line for each setting: errors times 10^4, and that of "calm" over the least of the first three."""
    for sizes, epsilon in itertools.product(GRID, EPSILONS):
        compare(sizes, epsilon, [rows(sizes, seed) for seed in range(n_seeds)], 100)


def fresh(n_seeds=3):
    """Print the same for the second grid."""
    for (sizes, epsilon), (skew, n) in FRESH:
        compare(sizes, epsilon, [fresh_rows(sizes, seed, n, skew) for seed in range(n_seeds)], 900)


def third(n_seeds=20):
    """Print the same for the third grid."""
    for (sizes, epsilon), (skew, n) in THIRD:
        print(skew, end=" ")
        compare(sizes, epsilon, [fresh_rows(sizes, 100 + seed, n, skew) for seed in range(n_seeds)], 2900)


def rare(n_seeds=8):
    """Print the same for columns of which nearly all users hold the same value, and large epsilons."""
    for (sizes, epsilon), skew in itertools.product((((3,) * 6, 5.0), ((2,) * 6, 5.0), ((2, 2, 2, 9, 9), 6.0)), (6, 9)):
        print(skew, end=" ")
        compare(sizes, epsilon, [fresh_rows(sizes, seed, 10_000, skew) for seed in range(n_seeds)], 50)


def compare(sizes, epsilon, samples, first_seed):
    """Print the line of a setting; the ratio with its standard error."""
    found, each = {}, {}
    for method in METHODS:
        if method == "full" and np.prod(sizes) > 4096:
            continue
        errors = []
        for seed, X in enumerate(samples, first_seed):
            est = MarginalEstimator(epsilon, method=method, categories=[range(k) for k in sizes], random_state=seed)
            errors.append(distance(X, sizes, est.fit(X)))
        found[method], each[method] = 1e4 * float(np.mean(errors)), np.array(errors)
    least = min({"full", "pairs", "fourier"} & set(found), key=found.get)
    best, ratio = found[least], found["calm"] / found[least]
    error = 1e4 * np.std(each["calm"] - ratio * each[least]) / len(samples) ** 0.5 / best
    print(sizes, epsilon, len(samples[0]), {name: round(value, 2) for name, value in found.items()},
          f"calm / {least} {ratio:.2f} +- {error:.2f}", flush=True)


def best_time(function, times=3):
    """Return the least of several times of the processor, in seconds."""
    found = []
    for _ in range(times):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return min(found)


def times(n=1_000_000):
    """Print the times."""
    rng = np.random.default_rng(0)
    rows, one, many = rng.integers(0, 16, (n, 20)), *(
        MultiAttributeFrequencyEstimator(1.0, categories=[range(16)] * d) for d in (1, 20))
    X, found = np.asfortranarray(rows), {"one column": [], "20 columns": [], "20 columns, rows in one piece": []}
    for _ in range(15):  # (in turns: what else the machine does is in all of them)
        for name, est, data in zip(found, (one, many, many), (X[:, :1], X, rows)):
            found[name].append(best_time(lambda est=est, data=data: est.fit(data), 1))
    base = found["one column"]
    for name, own in found.items():
        print(f"{name} {min(own):.4f} s, {np.median(np.divide(own, base)):.2f} times")
    pairs = best_time(lambda: MarginalEstimator(1.0, method="pairs", categories=[range(16)] * 12).fit(X[:, :12]), 1)
    print(f"all pairs of 12 columns {pairs:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attributes", description=__doc__)
    tasks = {"tables": tables, "fresh": fresh, "third": third, "rare": rare, "time": times}
    parser.add_argument("what", choices=tuple(tasks))
    tasks[parser.parse_args().what]()
