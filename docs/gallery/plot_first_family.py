"""
Which mechanism, and what it costs
==================================

A survey is a domain, an estimator and a picture. Here 1.4 million people are asked for their race at an epsilon of 0.1;
the lines are 95 % intervals.
"""

# sphinx_gallery_thumbnail_number = 5
import matplotlib.pyplot as plt

from dpestim.datasets import load_us_military
from dpestim.inspection import FrequencyDisplay
from dpestim.local import GRRFrequencyEstimator, HRFrequencyEstimator, OUEFrequencyEstimator

military = load_us_military(as_frame=True)
domain = {"race": military.categories["race"]}
estimator = OUEFrequencyEstimator(0.1, categories=domain).fit(military.frame[["race"]])
FrequencyDisplay.from_estimator(estimator)
plt.show()

# %%
# Several on the same axes: 20,000 of these people are asked for their rank by three mechanisms, at an epsilon of 3. The
# promise is the same, and the intervals are not.

people = military.frame[["rank"]].sample(20_000, random_state=0)
fig, ax = plt.subplots(layout="constrained")
for offset, mechanism in zip((-0.25, 0, 0.25), (GRRFrequencyEstimator, OUEFrequencyEstimator, HRFrequencyEstimator)):
    estimator = mechanism(3.0, categories={"rank": military.categories["rank"]}).fit(people)
    FrequencyDisplay.from_estimator(estimator, offset=offset, ax=ax)
plt.show()

# %%
# The whole family
# ----------------
# Every mechanism of frequencies answers the same question, how frequent each of ``d`` values is, under the same
# promise, ``epsilon``. They differ in the error, in the bits that a user sends, and in the time that both sides spend.
# The rest of this page draws all three for every mechanism that has no parameter of its own. **Lines are theory**, each
# mechanism's exact variance, which needs no data; **points are measured** in simulated surveys whose truth is known.
# Where two lines cross, the better choice changes.
#
# The error here is ``n`` times the mean squared error of a frequency. Divided by the number of users it is the squared
# error of a survey; its square root is a standard error.

import itertools
import time
from functools import cache

import numpy as np

from dpestim.base import all_estimators

MECHANISMS = {
    name.split(".")[-1].removesuffix("FrequencyEstimator"): cls
    for name, cls in all_estimators()
    if name.endswith("FrequencyEstimator") and set(cls().get_params()) == set(GRRFrequencyEstimator().get_params())
}
# Okabe and Ito's colours, which colour-blind readers can tell apart too (their yellow is too pale for lines: grey)
PALETTE = ["#8a8a8a", "#000000", "#e69f00", "#009e73", "#0072b2", "#d55e00", "#cc79a7", "#56b4e9"]
# later lines are thinner, so that lines which coincide all remain visible
STYLES = {
    name: {"color": PALETTE[i % 8], "marker": "oDsvP^<>"[i % 8], "lw": 3 - 0.28 * (i % 8)}
    for i, name in enumerate(sorted(MECHANISMS))
}
SEEDS = itertools.count()  # reproducible, and no two surveys share their noise

plt.rcParams.update({
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#ebebeb",
    "axes.titlesize": "medium", "axes.titleweight": "bold", "figure.constrained_layout.use": True, "figure.dpi": 120,
})


@cache
def law(name, epsilon, d):
    """Return a mechanism's randomizer, or None where it refuses the parameters."""
    try:
        return MECHANISMS[name](epsilon, categories=[np.arange(d)]).randomizer()
    except ValueError:
        return None


def theory(name, epsilon, d):
    """Return n times the variance, in the mean over the d values (which does not depend on how they are spread)."""
    return np.nan if law(name, epsilon, d) is None else np.mean(law(name, epsilon, d).variance(1, np.full(d, 1 / d)))


def measure(name, epsilon, counts, n_errors=400):
    """Return n times the mean squared error of each value, over enough surveys to see `n_errors` errors."""
    d, n = len(counts), sum(counts)
    if law(name, epsilon, d) is None:
        return np.full(d, np.nan)
    people, squares = np.repeat(np.arange(d), counts)[:, None], np.zeros(d)
    n_runs = -(-n_errors // (d - 1))
    for seed in itertools.islice(SEEDS, n_runs):
        survey = MECHANISMS[name](epsilon, categories=[np.arange(d)], random_state=seed, n_jobs=1 if d < 1000 else 2)
        survey.fit(people)
        squares += (survey.frequencies_[0] - counts / n) ** 2
    return n * squares / n_runs


def zipf(d, n=5_000):
    """Return how many of n people hold each of d values, the second half as many as the first, and so on."""
    shares = np.cumsum(1 / np.arange(1, d + 1))
    return np.diff(np.round(n * shares / shares[-1]).astype(int), prepend=0)


def draw(ax, xs, ys, points_x, points_y, *, name):
    """Draw a mechanism's line and points, and remember the line for `label_ends`."""
    if np.isfinite(ys).any():
        style = STYLES[name]
        ax.plot(xs, ys, color=style["color"], lw=style["lw"])
        ax.plot(points_x, points_y, style["marker"], color=style["color"], ms=6, mec="white", mew=0.7)
        vars(ax).setdefault("ends", []).append((xs, ys, name))


def label_ends(ax, gap=0.055):
    """Write each mechanism's name beside the end of its line, none upon another."""
    ends = []
    for xs, ys, name in ax.ends:
        last = np.flatnonzero(np.isfinite(ys))[-1]
        x, y = ax.transAxes.inverted().transform(ax.transData.transform((xs[last], ys[last])))
        ends.append((y, x, name))
    ends.sort()
    heights = np.array([y for y, _, _ in ends])
    for _ in range(500):  # push neighbours apart by equal parts until they fit
        short = np.maximum(gap - np.diff(heights), 0)
        heights[:-1] -= short / 2
        heights[1:] += short / 2
    for (y, x, name), height in zip(ends, heights):
        colour = STYLES[name]["color"]
        ax.annotate(
            name, (x, y), (1.07, height), "axes fraction", "axes fraction", color=colour, va="center", weight="bold",
            size="small", annotation_clip=False, arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6},
        )


def log_axes(ax, title, xlabel, ylabel="", *, base=10):
    """Set both axes logarithmic and write what they are."""
    ax.set_xscale("log", base=base)
    ax.set_yscale("log")
    ax.set_title(title, loc="left")
    ax.set(xlabel=xlabel, ylabel=ylabel)


def plain_ticks(axis, places):
    """Write these numbers on a logarithmic axis, as numbers."""
    axis.set_ticks(places, [f"{place:g}" for place in places])
    axis.set_ticks([], minor=True)


# %%
# Error against the number of values
# ----------------------------------
# The error of GRR grows with ``d``, because a user's noise is spread over the whole domain. All others become flat: a
# larger domain costs them no accuracy. Subset selection (SS) is GRR at the left, joins OUE and OLH at the right, and is
# never above any line. (HR's line is jagged because its blocks come in powers of two.)

domains = [2, 3, 4, 5, 6, 8, 11, *(2**k for k in range(4, 17))]
fig, axes = plt.subplots(1, 2, figsize=(10, 4.6))
deviations = []
for ax, epsilon in zip(axes, (1.0, 4.0)):
    for name in MECHANISMS:
        lines = np.array([theory(name, epsilon, d) for d in domains])
        places = [4, 64, 1024]
        points = np.array([measure(name, epsilon, zipf(d)).mean() for d in places])
        deviations += [p / theory(name, epsilon, d) for p, d in zip(points, places) if np.isfinite(p)]
        draw(ax, domains, lines, places, points, name=name)
    log_axes(ax, f"epsilon = {epsilon:g}", "number of values d", "n × mean squared error", base=2)
    label_ends(ax)
axes[1].set_ylabel("")
plt.show()
print(f"measured / theory, over {len(deviations)} points: {min(deviations):.2f} to {max(deviations):.2f}")

# %%
# Error against epsilon
# ---------------------
# The same, divided by the error of OUE, so that every crossing with OUE is a crossing of the line at 1. For a small
# epsilon all but GRR and SS are the same. BLH *is* OLH as long as two buckets are OLH's best choice, and then falls
# behind quickly, since one bit of response cannot carry more. SUE falls behind slowly on large domains; on small ones,
# where values are frequent, it wins at a large epsilon. Hadamard response (HR) sends hardly more than log2(d) bits and
# pays for that with a larger error, except at a large epsilon in a small domain, where it comes close to GRR, which is
# better still.

epsilons = np.geomspace(0.1, 6, 60)
fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharey=True)
for ax, d in zip(axes, (8, 1024)):
    reference = np.array([theory("OUE", epsilon, d) for epsilon in epsilons])
    for name in MECHANISMS:
        lines = np.array([theory(name, epsilon, d) for epsilon in epsilons]) / reference
        places = epsilons[4::14]
        points = [measure(name, epsilon, zipf(d)).mean() / theory("OUE", epsilon, d) for epsilon in places]
        draw(ax, epsilons, lines, places, points, name=name)
    log_axes(ax, f"d = {d:,}", "epsilon", "error / error of OUE")
    ax.set_ylim(0.02, 400)
    plain_ticks(ax.xaxis, [0.1, 0.3, 1, 3, 6])
    plain_ticks(ax.yaxis, [0.1, 1, 10, 100])
    label_ends(ax)
axes[1].set_ylabel("")
plt.show()

grid = [(epsilon, d) for epsilon in epsilons[::3] for d in domains]
ratio = {(a, b): np.array([theory(a, *place) / theory(b, *place) for place in grid])
         for a, b in [("SS", name) for name in MECHANISMS] + [("HR", "OUE"), ("GRR", "HR"), ("BLH", "OLH")]}
print(f"SS / the best of all others: at most {max(np.nanmax(ratio['SS', name]) for name in MECHANISMS):.6f}")
low, high = ratio["HR", "OUE"].min(), ratio["HR", "OUE"].max()
wins = ratio["HR", "OUE"] < 1 - 1e-9
first, widest = np.array(grid)[wins].min(axis=0)[0], np.array(grid)[wins].max(axis=0)[1]
print(f"HR / OUE: {low:.2f} to {high:.2f}; HR wins at {wins.sum()} of {len(grid)} places,\n"
      f"    from epsilon {first:.1f} on and up to d = {widest:.0f}; there GRR / HR is at most "
      f"{ratio['GRR', 'HR'][wins].max():.2f}")
same = [epsilon for (epsilon, _), r in zip(grid, ratio["BLH", "OLH"]) if abs(r - 1) < 1e-6]
print(f"BLH is OLH up to an epsilon of at least {max(same):.2f} (e^epsilon = {np.exp(max(same)):.2f})")

# %%
# Where GRR and OUE cross
# -----------------------
# The rule of the literature, GRR where ``d < 3 e^epsilon + 2``, is about *rare* values, of frequency 0. GRR's error
# grows faster with a value's own frequency than OUE's, so in the mean over all values the crossing comes earlier, near
# ``(1 + sqrt 2) e^epsilon`` for a large epsilon. Both are measured here on a population in which half of the values are
# held by nobody: for each epsilon the ratio of the two errors is measured around the crossing, and the root of a
# straight line through it (in logarithms) is the point.


def crossing(ratios, ds):
    """Return where a straight line through log(ratio) against log(d) is 0."""
    slope, height = np.polyfit(np.log(ds), np.log(ratios), 1)
    return np.exp(-height / slope)


fine = np.linspace(0.3, 5.1, 100)
e = np.exp(fine)
rules = {
    "rare values": (3 * e + 2, "#0072b2", "o"),
    "all values, mean": (((2 * e + 3) + np.sqrt((2 * e + 3) ** 2 + 4 * (e**2 - 1))) / 2, "#d55e00", "s"),
}
found = {kind: [] for kind in rules}
measured_epsilons = np.array([0.5, 1, 2, 3, 4])
for epsilon in measured_epsilons:
    around = np.unique(2 * np.round(0.5 * (3 * np.exp(epsilon) + 2) * np.geomspace(0.55, 1.5, 5)).astype(int))
    errors = {kind: [] for kind in rules}
    for d in around:
        counts = np.where(np.arange(d) < d // 2, 2 * (20_000 // d), 0)
        grr, oue = (measure(name, float(epsilon), counts, 1500) for name in ("GRR", "OUE"))
        errors["rare values"].append(grr[d // 2 :].mean() / oue[d // 2 :].mean())
        errors["all values, mean"].append(grr.mean() / oue.mean())
    for kind in rules:
        found[kind].append(crossing(errors[kind], around))

fig, ax = plt.subplots(figsize=(7.5, 4.6))
for kind, (line, colour, marker) in rules.items():
    ax.plot(fine, line, color=colour, lw=1.6)
    ax.plot(measured_epsilons, found[kind], marker, color=colour, ms=6, mec="white")
    ax.annotate(kind, (fine[-1], line[-1]), (6, 0), textcoords="offset points", color=colour, weight="bold",
                size="small", va="center", annotation_clip=False)
ax.set_yscale("log", base=2)
plain_ticks(ax.yaxis, [4, 8, 16, 32, 64, 128, 256, 512])
ax.set(xlabel="epsilon", ylabel="number of values d")
ax.set_title("GRR is more accurate below the line, OUE above it", loc="left")
plt.show()
for kind, (line, _, _) in rules.items():
    off = np.array(found[kind]) / np.interp(measured_epsilons, fine, line) - 1
    print(f"{kind}: measured crossings lie within {100 * np.abs(off).max():.0f} % of theory")

# %%
# Where SUE and OUE cross
# -----------------------
# OUE is made for rare values: it spends its noise so that values of frequency 0 are best, and a value's own frequency
# adds to its error. SUE treats all alike. So SUE is better for a value held by more than a share
# ``h / (h + 1)^2``, ``h = e^(epsilon / 2)``, of the users, which is never above a quarter. Where all values are that
# frequent the domain is small, though, and GRR is mostly better than both.

counts = np.array([0, 50, 100, 150, 200, 300, 400, 800])  # of 2,000 people
shares, line = counts / counts.sum(), np.linspace(0, 0.42, 50)
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2))
cross = []
for epsilon in (2.0, 3.0, 4.0):
    points = {name: measure(name, epsilon, counts, 7 * 1500) for name in ("OUE", "SUE")}
    slope, height = np.polyfit(shares, points["OUE"] - points["SUE"], 1)
    cross.append((epsilon, -height / slope))
    if epsilon == 3:
        for name in points:
            variances = law(name, epsilon, len(counts)).variance(1, line)
            axes[0].plot(line, variances, color=STYLES[name]["color"])
            axes[0].plot(shares, points[name], STYLES[name]["marker"], color=STYLES[name]["color"], ms=6, mec="white")
            axes[0].annotate(name, (line[-1], variances[-1]), (5, 0), textcoords="offset points", va="center",
                             color=STYLES[name]["color"], weight="bold", size="small", annotation_clip=False)
axes[0].set(xlabel="frequency of the value", ylabel="n × mean squared error", ylim=(0, None))
axes[0].set_title("epsilon = 3", loc="left")
h = np.exp(fine / 2)
axes[1].plot(fine, h / (h + 1) ** 2, color="black")
axes[1].plot(*zip(*cross), "o", color="black", ms=6, mec="white")
axes[1].set(xlabel="epsilon", ylabel="frequency of the value", ylim=(0, 0.3))
axes[1].set_title("where they cross", loc="left")
axes[1].text(2.6, 0.24, "SUE better", color=STYLES["SUE"]["color"], weight="bold")
axes[1].text(0.6, 0.08, "OUE better", color=STYLES["OUE"]["color"], weight="bold")
plt.show()

# %%
# Bits and time
# -------------
# At epsilon = 1, on the machine that built this page, the faster of two calls, two threads at most. Bits are those
# of a packed report. The server's time includes making estimates. GRR and HR send little and cost both sides little at
# every ``d``; OLH and BLH shift the work to the server, which must try every value for every user; the others draw and
# send ``d`` bits. At a small ``d`` what is measured is mostly the price of a call.


def clock(call):
    """Return the lesser time of two calls, and what the last one returned."""
    times = []
    for _ in range(2):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return min(times), result


domains = [2**k for k in range(1, 17)]
timed = [2**k for k in range(1, 17, 3)]
fig, axes = plt.subplots(1, 3, figsize=(12, 4.4))
fig.get_layout_engine().set(wspace=0.06)
for name in MECHANISMS:
    bits = np.array([getattr(law(name, 1.0, d), "report_bits", np.nan) for d in domains])
    client, server = np.full((2, len(timed)), np.nan)
    for i, d in enumerate(timed):
        if law(name, 1.0, d) is None:
            continue
        n = min(50_000, 2**26 // d)
        survey = MECHANISMS[name](1.0, categories=[np.arange(d)], random_state=0, n_jobs=2)
        people = np.random.default_rng(0).integers(d, size=(n, 1))
        seconds, reports = clock(lambda survey=survey, people=people: survey.privatize(people))
        client[i] = 1e6 * seconds / n
        seconds, _ = clock(lambda survey=survey, reports=reports: survey.aggregate(reports).release())
        server[i] = 1e6 * seconds / n
    draw(axes[0], domains, bits, [], [], name=name)
    draw(axes[1], timed, client, timed, client, name=name)
    draw(axes[2], timed, server, timed, server, name=name)
for ax, title, unit in zip(axes, ("sent by a user", "spent by a user", "spent by the server, a user"),
                           ("bits", "microseconds", "microseconds")):
    log_axes(ax, title, "number of values d", unit, base=2)
    label_ends(ax)
plt.show()

# %%
# What to take
# ------------
# The mechanism with the least error, subset selection apart, for each domain and epsilon, and how much larger its error
# is than that of subset selection. If the user can send ``d`` bits and draw ``d / (e^epsilon + 1)`` values, take SS.
# Otherwise GRR is right for small domains and, for the rest, OUE or OLH (listed as OUE where they tie); HR where both
# sides must be quick at a large ``d``, if its error will do.

shown = (0.5, 1.0, 2.0, 4.0, 6.0)
print("      d " + "".join(f"{f'epsilon {epsilon:g}':>15}" for epsilon in shown))
for d in (2, 4, 8, 16, 64, 256, 1024, 2**16):
    row = f"{d:>7} "
    for epsilon in shown:
        error = {name: theory(name, epsilon, d) for name in MECHANISMS if name != "SS" and law(name, epsilon, d)}
        least = min(error.values())
        best = next(name for name in ("GRR", "OUE", *error) if error[name] < 1.01 * least)
        row += f"{best:>9} x{least / theory('SS', epsilon, d):.2f}"
    print(row)
