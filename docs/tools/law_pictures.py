"""Pictures for the pages of classes, drawn from the laws that the registry states; statistics are run once.

A picture compares a class with the siblings that a reader knows. It is drawn in some hundredths of a second.
"""

import io

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from series_check import refuse_alike

from dpestim.base import all_estimators
from dpestim.datasets import load_yrbss

EPSILONS = np.geomspace(0.25, 8, 11)
OWN = {"color": "#0072b2", "lw": 2.2}
FIRST, SECOND = {"color": "#8a8a8a", "ls": "--"}, {"color": "#d55e00", "ls": ":"}
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "dpestim", "font.size": 9, "axes.spines.top": False,
         "axes.spines.right": False, "axes.grid": True, "grid.color": "#ebebeb", "legend.frameon": False}
REGISTRY = dict(all_estimators())


def drawn():
    """Return {file: text}: NAME.svg and its caption, NAME.txt, for every class that has a picture."""
    files, cache = {}, {}
    with plt.rc_context(STYLE):
        for name, cls in REGISTRY.items():
            painter = painter_of(name, cls)
            if painter is None:
                continue
            figure, ax = plt.subplots(figsize=(4.8, 2.7))
            figure.subplots_adjust(0.13, 0.17, 0.98, 0.96)
            caption = painter(ax, name, cls, cache)
            if len(ax.get_legend_handles_labels()[0]) > 1:
                ax.legend(fontsize=8)
            refuse_alike(figure, name)
            stream = io.StringIO()
            figure.savefig(stream, format="svg", metadata={"Date": None})
            files |= {f"dpestim.{name}.svg": stream.getvalue(), f"dpestim.{name}.txt": caption}
            plt.close(figure)
    return files


def painter_of(name, cls):
    """Return which picture suits a class, or None."""
    if name in STATISTICS:
        return statistic
    if name.startswith("local.") and name.endswith("FrequencyEstimator"):
        relaxed = getattr(cls._randomizer, "relaxation", None) is not None if hasattr(cls, "_randomizer") else False
        return matrix if relaxed and name in MATRICES else None if relaxed else frequencies
    if name.startswith("local.") and name.endswith("Transformer") and hasattr(cls._randomizer, "table"):
        return numbers
    if name.startswith("central.") and hasattr(cls, "tail"):
        return noise
    return choice if hasattr(cls, "probabilities") and name != "central.TopK" else None


# ---------------------------------------------------------------- the local model

def frequencies(ax, name, cls, cache):
    """Draw the standard error of a rare value over epsilon, beside GRR and OUE."""
    lines = {"GRR": FIRST, "OUE": SECOND}
    for short, style in lines.items():
        other = f"local.{short}FrequencyEstimator"
        if other != name:
            ax.plot(EPSILONS, rare_error(REGISTRY[other], cache), label=short, **style)
    own = name.split(".")[1].removesuffix("FrequencyEstimator")
    ax.plot(EPSILONS, rare_error(cls, cache), label=own, **OWN)
    ax.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="standard error (points)",
           xticks=[0.25, 0.5, 1, 2, 4, 8], xticklabels=["0.25", "0.5", "1", "2", "4", "8"])
    ax.minorticks_off()
    return ("Standard error of the share of a rare value, in percentage points, for 10,000 users and 16 values, "
            "computed from the exact law.")


def rare_error(cls, cache):
    """Return the standard errors of a value that nobody holds, in points; NaN where a law refuses an epsilon."""
    if cls not in cache:
        cache[cls] = []
        for epsilon in EPSILONS:
            try:
                law = cls(float(epsilon), categories=[range(16)]).randomizer()
                cache[cls].append(100 * float(np.ravel(law.variance(10_000, 0.0))[0]) ** 0.5)
            except ValueError:
                cache[cls].append(np.nan)
    return cache[cls]


#: Relaxed laws that send a value; others send bits, which have no picture as small as this.
MATRICES = {
    "local.SDGRRFrequencyEstimator": ({"low_sensitivity": [range(4, 8)]}, "the values 4 to 7 have low sensitivity"),
    "local.URRFrequencyEstimator": ({"non_sensitive": [range(4, 8)]}, "the values 4 to 7 need no protection"),
    "local.MetricFrequencyEstimator": ({"distance": lambda x, y: abs(x - y) / 2}, "near values hide among each other"),
}


def matrix(ax, name, cls, cache):
    """Draw how likely each report is for each value."""
    more, what = MATRICES[name]
    law = cls(2.0, categories=[range(8)], **more).randomizer()
    rows = np.array([[float(p) for p in row] for row in law.transition_matrix()])
    image = ax.imshow(rows[:, :8], cmap="Blues", vmin=0, vmax=1)
    ax.grid(False)
    ax.set(xlabel="reported value", ylabel="user's value", xticks=range(8), yticks=range(8))
    ax.figure.colorbar(image, ax=ax, label="probability")
    return f"How likely each report is for each value, at an epsilon of 2; {what}."


def numbers(ax, name, cls, cache):
    """Draw how likely a user's report lies at each place, for three values."""
    more = {"grid": 16} if "grid" in cls().get_params() else {}
    more |= {"low_sensitivity": (0.25, 0.5), "n_cells": 1} if "SDPM" in name else {}
    law = cls(1.0, bounds=(0.0, 1.0), **more).randomizer()
    places, rows = np.asarray(law.positions), law.transition_matrix()
    order = np.argsort(places)
    few = len(places) <= 4
    for style, value, marker in ((OWN, 0.0, "o"), (FIRST, 0.5, "s"), (SECOND, 1.0, "^")):
        index = round(value * (len(rows) - 1))
        if few and value == 0.5:
            continue
        chances = np.array([float(p) for p in rows[index]])[order]
        line = {**style, "marker": marker, "label": f"a user at {value:g}", **({"ls": "none"} if few else {"ms": 3})}
        ax.plot(places[order], chances, **line)
    ax.set(xlabel="what the report stands for (bounds 0 and 1)", ylabel="probability", ylim=(0, None))
    return "How likely each report is, for a user at either bound or in the middle; epsilon 1, a coarse grid."


# ---------------------------------------------------------------- the central model

def noise(ax, name, cls, cache):
    """Draw how likely noise is to exceed a size."""
    sizes = np.arange(1, 13)
    for other, style in (("central.LaplaceMechanism", FIRST), ("central.GaussianMechanism", SECOND), (name, OWN)):
        if other != name or style is OWN:
            mechanism = made(REGISTRY[other])
            label = other.split(".")[1].removesuffix("Mechanism")
            ax.plot(sizes, [float(mechanism.tail(float(size))) for size in sizes], label=label, **style)
    ax.set(yscale="log", xlabel="size of the noise", ylabel="probability of more", ylim=(1e-6, 1.5))
    return ("How likely the noise of one answer exceeds a size, for a sensitivity and an epsilon of 1 "
            "(Gaussian noise: delta 1e-6).")


def made(cls):
    """Return an additive mechanism with a sensitivity and an epsilon of 1."""
    parameters = {"sensitivity": 1, "epsilon": 1.0}
    if "delta" in cls().get_params():
        parameters["delta"] = 1e-6
    if cls.__name__ == "SnappingMechanism":
        parameters["bounds"] = (-100, 100)
    return cls(**parameters)


def choice(ax, name, cls, cache):
    """Draw how likely each of ten candidates is chosen."""
    scores = np.arange(10)
    for other, style, shift in (("central.ExponentialMechanism", FIRST, -0.2), (name, OWN, 0.2)):
        if other != name or style is OWN:
            chances = REGISTRY[other](1.0, sensitivity=1).probabilities(scores)
            ax.bar(scores + shift, np.asarray(chances, float), 0.4, color=style["color"], label=other.split(".")[1])
    ax.set(xlabel="score of the candidate", ylabel="probability", xticks=scores)
    return "How likely each of ten candidates with scores from 0 to 9 is chosen, for a sensitivity and an epsilon of 1."


#: A column of the 12,579 teenagers, parameters, and the unit of the answer.
STATISTICS = {
    "statistics.Mean": ("weight", {"bounds": (25, 200)}, "kg"),
    "statistics.Sum": ("weight", {"bounds": (25, 200)}, "kg"),
    "statistics.Variance": ("weight", {"bounds": (25, 200)}, "kg²"),
    "statistics.StandardDeviation": ("weight", {"bounds": (25, 200)}, "kg"),
    "statistics.Histogram": ("weight", {"bins": 8, "bounds": (25, 200)}, "people"),
    "statistics.RangeCounts": ("weight", {"bins": 64, "bounds": (25, 200)}, "people"),
    "statistics.Quantile": ("weight", {"q": 0.5, "bounds": (25, 200), "level": 0.95}, "kg"),
}


def statistic(ax, name, cls, cache):
    """Draw the width of intervals over epsilon, seen once at each."""
    column, parameters, unit = STATISTICS[name]
    if "rows" not in cache:
        cache["rows"] = load_yrbss(as_frame=True).frame
    rows, widths = cache["rows"][column].dropna().to_numpy(), []
    epsilons = [0.1, 0.2, 0.5, 1.0, 2.0, 4.0]
    for epsilon in epsilons:
        result = cls(epsilon, random_state=0, **parameters).fit(rows[:, None]).result_
        low, high = result.interval(0.95)
        widths.append(float(np.mean(np.asarray(high) - np.asarray(low))) / 2)
    ax.plot(epsilons, widths, "o-", ms=3, **OWN)
    ax.set(xscale="log", yscale="log", xlabel="epsilon", ylabel=f"half width ({unit})", xticks=epsilons,
           xticklabels=[f"{e:g}" for e in epsilons])
    ax.minorticks_off()
    return f"Half width of the 95 % interval, for the {column} of {len(rows):,} teenagers (one run at each epsilon)."
