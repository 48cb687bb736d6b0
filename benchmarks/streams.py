"""Error of rows of a stream by method and kind of stream: python -m benchmarks.streams."""

import numpy as np

from dpestim.stream import WEventRelease

#: Steps, cells and the highest count of streams.
STEPS, CELLS, TOP = 600, 50, 1000


def streams():
    """Return rows by the name of what they do."""
    rng = np.random.default_rng(0)
    rows, t = rng.uniform(50, 900, CELLS), np.arange(STEPS)[:, None]
    found = {
        "constant": np.tile(rows, (STEPS, 1)),
        "jumps, each 60 steps": np.repeat(rng.uniform(50, 900, (STEPS // 60, CELLS)), 60, axis=0),
        "period of 96 steps": 500 + 300 * np.sin(2 * np.pi * t / 96 + rng.uniform(0, 2 * np.pi, CELLS)),
        "period of 400 steps": 500 + 300 * np.sin(2 * np.pi * t / 400 + rng.uniform(0, 2 * np.pi, CELLS)),
        "random walk": 500 + rng.normal(0, 10, (STEPS, CELLS)).cumsum(0),
        "independent Poisson": rng.poisson(rows, (STEPS, CELLS)),
    }
    return {name: np.clip(np.floor(values), 0, TOP).astype(int) for name, values in found.items()}


def main(epsilon=1.0, runs=3):
    """Print the table of the guide."""
    print('| stream | window | `"bd"` | `"ba"` | `"adaptive"` |', "|---|---|---|---|---|", sep="\n")
    for name, rows in streams().items():
        for window in (10, 40):
            errors = []
            for method in ("bd", "ba", "adaptive"):
                est = WEventRelease(epsilon, n_cells=CELLS, window=window, method=method, bounds=(0, TOP), change=2)
                errors.append(np.mean([np.abs(est.set_params(random_state=seed).release(rows) - rows).mean()
                                       for seed in range(runs)]))
            print(f"| {name} | {window} |", " | ".join(f"{error:.1f}" for error in errors), "|")


if __name__ == "__main__":
    main()
