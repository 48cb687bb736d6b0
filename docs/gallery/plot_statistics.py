"""
Statistics: a table under one budget, and what epsilon buys
===========================================================

How tall, how heavy and how old 12,579 teenagers are, published under one budget of 1. Every line is one release, a
ledger adds them up, and each has an interval; the truth beside it is what a real curator would not print.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpestim.accounting import Ledger
from dpestim.datasets import load_yrbss
from dpestim.statistics import Histogram, Mean, Quantile, StandardDeviation, histogram, mean, quantile, std

frame = load_yrbss(as_frame=True).frame
HEIGHT, WEIGHT, AGES = (1.2, 2.2), (25, 200), np.arange(11.5, 19)  # public: metres, kilograms, years
height, weight = (frame[name].to_numpy().clip(*ends) for name, ends in (("height", HEIGHT), ("weight", WEIGHT)))
ages = np.histogram(frame["age"], AGES)[0]

with Ledger(1.0) as ledger:
    released = {
        "mean height, m": (mean(height, epsilon=0.2, bounds=HEIGHT), height.mean()),
        "its standard deviation, m": (std(height, epsilon=0.3, bounds=HEIGHT), height.std()),
        "median weight, kg": (quantile(weight, 0.5, epsilon=0.3, bounds=WEIGHT, level=0.95), np.median(weight)),
    }
    by_age = histogram(frame["age"], epsilon=0.2, bins=AGES)
print(ledger.report())
released |= {f"aged {age}": (by_age, ages[age - 12]) for age in range(14, 18)}

fig, axis = plt.subplots(figsize=(7.5, 3.2), layout="constrained", dpi=120)
for line, (name, (result, truth)) in enumerate(released.items()):
    at = np.s_[int(name[-2:]) - 12] if name.startswith("aged") else np.s_[...]
    value, low, high = (np.asarray(part)[at] for part in (result.value, *result.interval(0.95)))
    scale = (high - low) / 2
    axis.plot([(low - truth) / scale, (high - truth) / scale], [line, line], color="#0072b2", lw=3, alpha=0.5)
    axis.plot((value - truth) / scale, line, "o", color="#0072b2")
    print(f"{name:28}{value:10.4g}  95 % interval {low:8.4g} to {high:8.4g}  truth {truth:8.4g}")
axis.axvline(0, color="black", lw=1)
axis.set_yticks(range(len(released)), released)
axis.invert_yaxis()
axis.set_xlabel("distance from the truth, in half widths of the interval")
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What epsilon buys
# -----------------
# The root of the mean square error of 40 releases, beside theory's line, which nobody fitted. A summary is made once
# and released many times, each release with its own epsilon. (Here a loop; a ledger would add them up.)
#
# For n people, one of whom is replaced, theory says: the noise of a mean has standard deviation
# sqrt(2) (high - low) / (n epsilon), that of a variance sqrt(2) (high - low)^2 / (n epsilon), which is divided by twice
# the standard deviation to be its error; that of a cell of a histogram sqrt(8) / epsilon. A median is a point of a
# grid, chosen in proportion to e^(-epsilon / 2) for each rank that lies between it and the middle: its line is made
# from these weights, as it depends on the people around the middle.

n, EPSILONS, RELEASES = len(frame), np.array([0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0]), 40
width, points, ordered = HEIGHT[1] - HEIGHT[0], np.linspace(*WEIGHT, 44_801), np.sort(weight)
below, upto = (np.searchsorted(ordered, points, side) for side in ("left", "right"))
away = np.maximum(0, np.maximum(below - n / 2, n / 2 - upto))
chances = [np.exp(-epsilon / 2 * away) for epsilon in EPSILONS]
squares = (points - np.median(weight)) ** 2
theory = {
    "mean height, m": np.sqrt(2) * width / n / EPSILONS,
    "standard deviation of height, m": np.sqrt(2) * width**2 / n / EPSILONS / (2 * height.std()),
    "median weight, kg": np.sqrt([squares @ chance / chance.sum() for chance in chances]),
    "teenagers aged 15": np.sqrt(8) / EPSILONS,
}
estimators = [
    (Mean(bounds=HEIGHT), height, height.mean()),
    (StandardDeviation(bounds=HEIGHT), height, height.std()),
    (Quantile(bounds=WEIGHT), weight, np.median(weight)),
    (Histogram(bins=AGES), frame["age"], ages[3]),
]
fig, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained", dpi=120)
for axis, (name, line), (estimator, rows, truth) in zip(axes, theory.items(), estimators):
    estimator.summarize(rows)
    seen = []
    for epsilon in EPSILONS:
        values = [estimator.set_params(epsilon=epsilon).release().value for _ in range(RELEASES)]
        values = [value[3] if np.ndim(value) else value for value in values]
        seen.append(np.sqrt(np.mean((np.array(values) - truth) ** 2)))
    axis.loglog(EPSILONS, line, color="black", lw=1, label="theory")
    axis.loglog(EPSILONS, seen, "o", color="#d55e00", ms=4, label="seen")
    axis.set(title=name, xlabel="epsilon")
    axis.title.set_fontsize(9)
    axis.spines[["top", "right"]].set_visible(False)
    print(f"{name:34}", " ".join(f"{a / b:6.2f}" for a, b in zip(seen, line)), " seen over theory")
axes[0].set_ylabel("error")
axes[0].legend(frameon=False)
plt.show()

# %%
# What to learn:
#
# * Error falls as 1 / (n epsilon): twice the people are as good as twice the epsilon.
# * The median needs no narrow bounds, but people near the middle. Between two weights that many people have nobody is,
#   and all points there are nearly as good: so more epsilon stops to help.
# * A standard deviation pays for a square: the noise is that of (high - low)^2, so public bounds that are twice as wide
#   cost four times as much.
