"""A table of real data summarised under one budget, beside the truth.

12,579 teenagers: how tall, how heavy, how old, how many by age, and by sex. Every line of the table is one release, a
ledger adds them up, and each has an interval; the picture shows how the truth, which a real curator would not publish,
lies in them. Run it from anywhere::

    python examples/summary.py --output demo-output

It prints the table and the account and writes a picture. Needs pandas and matplotlib: dpestim[examples].
"""

import argparse
import io
import os
from pathlib import Path

import _report
import numpy as np

from dpestim.accounting import Ledger
from dpestim.datasets import load_yrbss
from dpestim.statistics import Mean, contingency_table, correlation, group_by, histogram, mean, quantile, std

HEIGHT, WEIGHT = (1.2, 2.2), (25, 200)  # public: metres and kilograms of teenagers
BUDGET, LEVEL = 1.0, 0.95
QUARTILES = [0.25, 0.5, 0.75]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder to write to (%(default)s)")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    frame = load_yrbss(as_frame=True).frame
    height, weight = (frame[name].to_numpy().clip(*ends) for name, ends in (("height", HEIGHT), ("weight", WEIGHT)))

    # ---- All releases are about one more or less teenager; the ledger refuses what would exceed the budget.
    which = {"neighbours": "add_remove"}
    with Ledger(BUDGET, neighbours="add_remove") as ledger:
        lines = [
            ("mean height (m)", mean(height, epsilon=0.1, bounds=HEIGHT, **which), height.mean()),
            ("its standard deviation (m)", std(height, epsilon=0.2, bounds=HEIGHT, **which), height.std()),
            ("quartiles of weight (kg)",
             quantile(weight, QUARTILES, epsilon=0.2, bounds=WEIGHT, level=LEVEL, **which),
             np.quantile(weight, QUARTILES)),
        ]
        both = correlation(np.c_[height, weight], epsilon=0.2, bounds=tuple(zip(HEIGHT, WEIGHT)), **which)
        ages = histogram(frame["age"], epsilon=0.1, bins=np.arange(11.5, 19), **which)
        sexes = contingency_table(frame[["gender"]], epsilon=0.1, categories=[["female", "male"]], **which)
        means = group_by(Mean(0.1, bounds=HEIGHT, **which), height, frame["gender"], ["female", "male"])
    lines += [(f"mean height, {sex} (m)", result, height[frame["gender"] == sex].mean())
              for sex, result in means.items()]
    years = np.arange(12, 19)
    lines += [
        ("teenagers by age, 12 to 18", ages, np.array([(frame["age"] == age).sum() for age in years])),
        ("teenagers by sex", sexes, np.array([(frame["gender"] == sex).sum() for sex in ("female", "male")])),
    ]
    truth = np.corrcoef(height, weight)[0, 1]
    low, high = both.interval(LEVEL)

    print(f"{'':28}{'released':>12}   {'95 % interval':^22}{'truth':>12}")
    rows = [("correlation", both.value[0, 1], low[0, 1], high[0, 1], truth)]
    for name, result, exact in lines:
        ends = result.interval(LEVEL)
        rows += [(name if k == 0 else "", *entry) for k, entry in enumerate(
            zip(np.ravel(result.value), np.ravel(ends[0]), np.ravel(ends[1]), np.ravel(exact)))]
    for name, value, least, most, exact in rows:
        print(f"{name:28}{value:>12,.4g}   {least:>10,.4g} {most:>10,.4g} {exact:>12,.4g}")
    print(f"\n{sum(least <= exact <= most for *_, least, most, exact in rows)} of {len(rows)} intervals hold the truth "
          f"(made for {LEVEL:.0%} each).\n")
    print(ledger.report())

    path = output / "statistics.png"
    _report.write_whole(path, draw(rows))
    print(f"\nWritten:\n  {os.path.relpath(path)}")


def draw(rows):
    """Return a PNG: each interval and value, in half widths from the truth."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.2, 0.3 * len(rows) + 1.2), layout="constrained")
    at = -np.arange(len(rows))
    value, low, high, exact = (np.array(column, float) for column in list(zip(*rows))[1:])
    scale = (high - low) / 2
    ax.hlines(at, (low - exact) / scale, (high - exact) / scale, color="#0b6e99", linewidth=3, alpha=0.5,
              label="95 % interval")
    ax.plot((value - exact) / scale, at, "o", color="#0b6e99", markersize=4, label="released")
    ax.axvline(0, color="0.2", linewidth=1, label="truth")
    ax.set_yticks(at, [name or "." for name, *_ in rows], fontsize=8)
    ax.set(xlabel="distance from the truth, in half widths of the interval", title="One budget of 1, many statistics")
    ax.legend(frameon=False, fontsize=8, loc="upper right")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=140)
    return buffer.getvalue()


if __name__ == "__main__":
    main()
