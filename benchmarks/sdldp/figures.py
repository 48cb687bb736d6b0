"""Pictures of what the experiments yielded: one for each of the paper's figures with results, and two more."""

from functools import wraps

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.sdldp import SHARES

# Okabe and Ito's colours, which colour-blind readers can tell apart too, and a marker of its own for black and white
BLACK, ORANGE, SKY, GREEN, BLUE, RED, PINK, GREY = (
    "#000000", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7", "#8a8a8a")
STYLES = {
    "GRR": (BLACK, "o"), "PM": (BLACK, "o"), "PM, EM": (GREY, "P"),
    "URR-25": (GREEN, "v"), "URR-50": (SKY, "<"), "URR-75": (PINK, ">"),
    "SDGRR-25": (RED, "s"), "SDGRR-50": (ORANGE, "D"), "SDGRR-75": (BLUE, "^"), "SDGRR-P": (PINK, "P"),
    "SDGRR-P, stratified": (SKY, "X"),
    "SDPM-25": (RED, "s"), "SDPM-50": (ORANGE, "D"), "SDPM-75": (BLUE, "^"), "SDPM-P": (PINK, "X"),
    "continuous": (RED, "s"), "32 cells": (BLUE, "D"), "2 cells": (GREEN, "o"),
}
RC = {
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#ebebeb", "font.size": 9,
    "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left", "legend.frameon": False,
    "figure.constrained_layout.use": True, "figure.dpi": 120, "axes.axisbelow": True,
}


def styled(draw):
    """Draw with the look of these pictures, whatever the caller's is."""

    @wraps(draw)
    def wrapper(*args):
        with plt.rc_context(RC):
            return draw(*args)

    return wrapper


def _axes(n, width=5.0, height=4.0):
    figure, axes = plt.subplots(1, n, figsize=(width * n, height), squeeze=False)
    return figure, axes[0]


def _pick(rows, **wanted):
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def _of(rows, key):
    return np.array([row[key] for row in rows], float)


def _points(ax, rows, y, name, label=None, dodge=1.0, lines=True):
    """Draw means with bars of 1.96 standard errors against epsilon; on a logarithmic axis a bar ends above 0."""
    colour, marker = STYLES[name]
    x, mean, bar = _of(rows, "epsilon") * dodge, _of(rows, y), 1.96 * np.nan_to_num(_of(rows, f"{y}_se"))
    ax.errorbar(x, mean, yerr=[np.minimum(bar, 0.9 * np.abs(mean)), bar], fmt=marker, color=colour, ms=4.5, mec="white",
                mew=0.5, elinewidth=1, ls="-" if lines else "none", lw=1, label=name if label is None else label)


def _finish(ax, title, ylabel="", log=True):
    ax.set_title(title)
    ax.set(xlabel="epsilon", ylabel=ylabel)
    ax.set_xticks(np.arange(0.1, 1.01, 0.1))
    if log:
        ax.set_yscale("log")


def _legend(figure, axes, ncols):
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=ncols)
    return figure


def _dodges(names):
    return dict(zip(names, np.linspace(0.975, 1.025, len(names))))


# ---------------------------------------------------------------- frequencies


@styled
def figure_2(rows):
    """n times the variance of a low value's frequency: the paper's formula, the exact one, and measurements."""
    figure, axes = _axes(1, 7.5, 4.6)
    ax, grr = axes[0], _pick(rows, **{"low percent": 25})
    ax.plot(_of(grr, "epsilon"), _of(grr, "GRR"), color=BLACK, label="GRR and SDGRR_H, equation (2)")
    for percent, colour, marker in zip(SHARES, (BLUE, ORANGE, RED), "^Ds"):
        here = _pick(rows, **{"low percent": percent})
        x, mean, bar = _of(here, "epsilon"), _of(here, "measured"), 1.96 * np.nan_to_num(_of(here, "measured_se"))
        name = f"SDGRR_L, {percent} % of the values low"
        paper = f"{name}: the paper's equation (12)"
        ax.plot(x, _of(here, "paper"), color=colour, ls=":", marker="x", ms=4, label=paper)
        ax.plot(x, _of(here, "exact"), color=colour, label=f"{name}: exact")
        ax.errorbar(x, mean, yerr=[np.minimum(bar, 0.9 * mean), bar], fmt=marker, color=colour, ms=5, mec="white",
                    label=f"{name}: measured")
    _finish(ax, f"Figure 2: variance, {rows[0]['d']} values held equally often", "n × variance")
    figure.legend(loc="outside right upper", fontsize=8)
    figure.set_size_inches(10, 4.6)
    return figure


def _frequency_errors(rows, names, title):
    attributes = list(dict.fromkeys(row["attribute"] for row in rows))
    figure, axes = _axes(len(attributes))
    dodges = _dodges(names)
    for ax, attribute in zip(axes, attributes):
        for name in names:
            here = _pick(rows, attribute=attribute, mechanism=name)
            if "exact" in here[0]:
                ax.plot(_of(here, "epsilon"), _of(here, "exact"), color=STYLES[name][0], lw=1)
            _points(ax, here, "mse", name, dodge=dodges[name], lines="exact" not in here[0])
        _finish(ax, f"{title}: {attribute}, {here[0]['d']} values", "mean squared error of a frequency")
    axes[-1].set_ylabel("")
    return _legend(figure, axes, len(names))


@styled
def figure_5(rows):
    """Errors of frequencies with 25 % of the values high-sensitive."""
    return _frequency_errors(rows, ["GRR", "SDGRR-25", "SDGRR-P", "SDGRR-P, stratified", "URR-25"], "Figure 5")


@styled
def figure_6(rows):
    """Errors of frequencies by the share of high-sensitive values."""
    return _frequency_errors(rows, ["GRR", "SDGRR-75", "SDGRR-50", "SDGRR-25", "URR-25"], "Figure 6")


@styled
def figure_9(rows):
    """How often the adversary guesses the holder of a high-sensitive value right."""
    names = ["URR-25", "URR-50", "URR-75", "GRR", "SDGRR-25", "SDGRR-50", "SDGRR-75"]
    attributes, dodges = list(dict.fromkeys(row["attribute"] for row in rows)), _dodges(names)
    figure, axes = _axes(len(attributes))
    for ax, attribute in zip(axes, attributes):
        for name in names:
            here = _pick(rows, attribute=attribute, mechanism=name)
            ax.plot(_of(here, "epsilon"), _of(here, "attack_exact"), color=STYLES[name][0], lw=1)
            _points(ax, here, "attack", name, dodge=dodges[name], lines=False)
        known = _pick(rows, attribute=attribute, mechanism="SDGRR-25")
        ax.plot(_of(known, "epsilon"), _of(known, "attack_known_high"), color=RED, ls="--", lw=1,
                label="SDGRR-25, known to be high")
        _finish(ax, f"Figure 9: {attribute}, {here[0]['d']} values", "guessed right", log=False)
        ax.set_ylim(0, None)
    axes[-1].set_ylabel("")
    return _legend(figure, axes, 4)


# ---------------------------------------------------------------- numbers


@styled
def figure_4(rows):
    """The variance of a report, and its bias, which the paper takes for 0."""
    figure, (left, middle, right) = _axes(3, 3.9, 4.0)
    here = _pick(rows, **{"high percent": 25})
    left.plot(_of(here, "epsilon"), _of(here, "PM"), color=BLACK, label="PM (and SDPM_H), at ±1")
    middle.axhline(1, color=BLACK)
    right.axhline(0, color=BLACK)
    for percent in SHARES:
        name, here = f"SDPM-{percent}", _pick(rows, **{"high percent": percent})
        colour, x, whole = STYLES[name][0], _of(here, "epsilon"), _of(here, "PM")
        for ax, unit in ((left, 1), (middle, whole)):
            ax.plot(x, _of(here, "exact") / unit, color=colour)
            ax.plot(x, _of(here, "paper") / unit, color=colour, ls=":", lw=1.6)
        _points(left, here, "measured", name, f"SDPM_L, low up to ±{here[0]['end']:g}", lines=False)
        right.plot(x, _of(here, "bias"), color=colour)
        _points(right, here, "measured bias", name, lines=False)
    left.plot([], [], color=GREY, ls=":", label="dotted: the paper's equation (15)")
    _finish(left, "Figure 4: largest variance", "variance of a report")
    _finish(middle, "the same, as a share of PM's", "variance / variance of PM", log=False)
    _finish(right, "D3: bias of that report", "mean of reports minus value", log=False)
    for ax in (left, middle, right):
        ax.set_xticks(np.arange(0.2, 1.01, 0.2))
    return _legend(figure, [left], 3)


def _mean_errors(rows, names, title, more=()):
    columns, dodges = list(dict.fromkeys(row["column"] for row in rows)), _dodges(names)
    figure, axes = _axes(len(columns))
    for ax, column in zip(axes, columns):
        for name in names:
            _points(ax, _pick(rows, column=column, mechanism=name), "mse", name, dodge=dodges[name],
                    label="PM, plain mean" if name == "PM" else name)
        for name, colour, style in more:
            here = _pick(rows, column=column, mechanism=name)
            ax.plot(_of(here, "epsilon"), _of(here, "mse"), color=colour, ls=style, lw=1.2,
                    label=name.replace("asked openly-50", "as many low users asked openly (50)"))
        _finish(ax, f"{title}: {column}", "squared error of the mean, scale −1 to 1")
    axes[-1].set_ylabel("")
    return _legend(figure, axes, 4)


@styled
def figure_7(rows):
    """Errors of means: PM, SDPM-50 and personalised SDPM, beside answers that need no mechanism."""
    more = [("centre of the bounds", GREY, "--"), ("asked openly-50", ORANGE, ":")]
    return _mean_errors(rows, ["PM", "PM, EM", "SDPM-50", "SDPM-P"], "Figure 7", more)


@styled
def figure_8(rows):
    """Errors of means by the share of the range that is high-sensitive."""
    return _mean_errors(rows, ["PM", "SDPM-75", "SDPM-50", "SDPM-25"], "Figure 8")


@styled
def whose_gain(rows):
    """Errors of the mean for each mechanism, estimator and data, at one epsilon."""
    colours = {"PM": BLACK, "SDPM": RED, "none": GREY}
    order = list(dict.fromkeys((row["estimator"], row["mechanism"]) for row in rows))
    order.sort(key=lambda pair: [row["estimator"] for row in rows].index(pair[0]))  # an estimator's two side by side
    data = list(dict.fromkeys(row["data"] for row in rows))
    figure, axes = plt.subplots(1, len(data), figsize=(11, 4.6), sharey=True, sharex=True)
    for ax, what in zip(axes, data):
        for at, (estimator, mechanism) in enumerate(order):
            row = _pick(rows, data=what, mechanism=mechanism, estimator=estimator)[0]
            bar = 1.96 * np.nan_to_num(row["mse_se"])
            ax.errorbar(row["mse"], at, xerr=[[min(bar, 0.9 * row["mse"])], [bar]], fmt="o", color=colours[mechanism],
                        ms=5, elinewidth=1.2)
            ax.text(row["mse"], at - 0.2, f"{row['mse']:.2g}", color=colours[mechanism], ha="center", fontsize=7.5)
        ax.set_xscale("log")
        ax.set_xlabel("squared error of the mean")
        ax.set_title(what.replace(", low", ",\nlow"))
        ax.margins(x=0.12)
        ax.grid(axis="y", visible=False)
    names = [f"no mechanism: {e}" if m == "none" else f"{m}: {e}" for e, m in order]
    axes[0].set_yticks(range(len(order)), names)
    for label, (_, mechanism) in zip(axes[0].get_yticklabels(), order):
        label.set_color(colours[mechanism])
    axes[0].invert_yaxis()
    figure.suptitle(f"{rows[0]['column']}, epsilon {rows[0]['epsilon']:g}", x=0.01, ha="left", fontweight="bold",
                    fontsize=10)
    return figure


# ---------------------------------------------------------------- who can be told from whom


@styled
def told_apart(categories, numbers):
    """How often one report tells a low value from a high one, over what plain local privacy would allow."""
    attribute = categories[0]["attribute"]
    categories = _pick(categories, attribute=attribute)
    figure, (left, middle, right) = _axes(3, 4.2, 3.9)
    x = _of(_pick(categories, percent=25), "epsilon")
    for ax in (left, middle):
        ax.plot(x, 1 / (1 + np.exp(-x)), color=BLACK, lw=1.4, label="most that plain epsilon allows")
    for percent in SHARES:
        name, here = f"SDGRR-{percent}", _pick(categories, percent=percent)
        left.plot(x, _of(here, "exact"), color=STYLES[name][0], lw=1)
        _points(left, here, "measured", name, f"{name}: {here[0]['n_low']} low values", lines=False)
    for form in dict.fromkeys(row["form"] for row in numbers):
        here, colour = _pick(numbers, form=form), STYLES[form][0]
        for ax, measured, exact in ((middle, "measured", _of(here, "exact")),
                                    (right, "certain", _of(here, "own") / (_of(here, "own") + _of(here, "other")))):
            ax.plot(x, exact, color=colour, lw=1)
            _points(ax, here, measured, form, f"SDPM-50, {form}", lines=False)
    _finish(left, f"D5, {attribute}: low or high?", "guessed right (a coin: 0.5)", log=False)
    _finish(middle, "D4, SDPM-50: low or high?", "guessed right", log=False)
    _finish(right, "D4: who reads a low level is right", "share of such reports from low users", log=False)
    for ax in (left, middle):
        ax.set_ylim(0.48, 1)
    right.set_ylim(0.48, 1.02)
    for ax, where in ((left, "upper left"), (middle, "upper left"), (right, "lower right")):
        ax.legend(loc=where, fontsize=7.5)
        ax.tick_params(axis="x", labelsize=7.5)
    return figure
