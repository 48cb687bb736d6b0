"""Pictures and tables of how time and memory of fits grow, drawn from what `benchmarks.scale` has kept."""

import io
import json
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from law_pictures import FIRST, OWN, SECOND, STYLE
from series_check import refuse_alike

KEPT = json.loads((Path(__file__).parents[1] / "_static" / "scale.json").read_text(encoding="utf-8"))
AXES = ("rows", "columns", "categories")
#: What is drawn of a point: (unit, how many of the kept unit make one).
UNITS = {"time": ("seconds", 1.0), "memory": ("MB", 1e6)}


def drawn():
    """Return {file: text} of the pictures, one for each estimator."""
    files = {}
    with plt.rc_context(STYLE):
        for name, own in KEPT["estimators"].items():
            axes = [axis for axis in AXES if axis in own["axes"]]
            figure, panels = plt.subplots(2, len(axes), figsize=(2.9 * len(axes) + 0.4, 4.4), sharey="row",
                                          sharex="col", squeeze=False, layout="constrained")
            for column, axis in zip(panels.T, axes):
                for panel, kind in zip(column, UNITS):
                    draw(panel, own["axes"][axis], kind)
                column[1].set(xlabel=called(name, axis))
            for row, (kind, (unit, _)) in zip(panels, UNITS.items()):
                row[0].set(ylabel=f"{kind} ({unit})")
            lines = {label: line for panel in panels.flat for line, label in zip(*panel.get_legend_handles_labels())}
            figure.legend(lines.values(), lines.keys(), loc="outside upper center", ncols=len(lines), fontsize=8)
            refuse_alike(figure, name)
            stream = io.StringIO()
            figure.savefig(stream, format="svg", metadata={"Date": None})
            plt.close(figure)
            files[f"scale.{name}.svg"] = stream.getvalue()
    return files


def draw(panel, own, kind):
    """Draw the points of a curve, the fitted line, and how the docstring lets it grow."""
    sizes = np.array([point["size"] for point in own["points"]], float)
    values = np.array([point[kind] for point in own["points"]], float) / UNITS[kind][1]
    panel.plot(sizes, np.maximum(values, 1e-2) if kind == "memory" else values, "o", ms=3.5, color=OWN["color"],
               label="measured")
    line = own[kind]
    if line["slope"] is not None:
        used = np.array(line["sizes"], float)
        middle, height = np.exp(np.log(used).mean()), np.exp(np.log(values[np.isin(sizes, used)]).mean())
        for slope, style, label in ((line["claimed"], SECOND, "slope of the docstring"),
                                    (line["slope"], FIRST, "fitted slope")):
            panel.plot(used, height * (used / middle) ** slope, lw=1.5, label=label, **style)
    panel.set(xscale="log", yscale="log")
    panel.minorticks_off()


def shown(line):
    """Return the cells of a slope with its standard error, and of what the docstring allows."""
    if line["slope"] is None:
        return "too small to fit | "
    return f"{line['slope']:z.2f} ({line['error']:.2f}) | {line['claimed']:.2f}"


def called(name, axis):
    """Return what an axis is called: that of categories may have bins, classes or different values."""
    return KEPT["estimators"][name]["third"] if axis == "categories" else axis


def caption(name):
    """Return what a picture shows, in words: it is the picture's alternative text, too."""
    told = []
    for kind in UNITS:
        lines = {called(name, axis): own[kind] for axis, own in KEPT["estimators"][name]["axes"].items()}
        slopes = [f"{line['slope']:z.2f} over {axis} (docstring {line['claimed']:.2f})"
                  for axis, line in lines.items() if line["slope"] is not None]
        told.append(f"{kind}: {', '.join(slopes) or 'too small to fit'}")
    return f"How a fit of {name.rpartition('.')[2]} grows, by fitted slopes. {'; '.join(told)}."


def page():
    """Return the part of the page that is made of what was measured: a picture and a table for each estimator."""
    lines = []
    for name, own in KEPT["estimators"].items():
        lines += [f"## {name.rpartition('.')[2]}", "", f"{{py:class}}`dpestim.{name}`", "",
                  f"```{{figure}} /generated/pictures/scale.{name}.svg", f":alt: {caption(name)}", "```", "",
                  "| over | sizes | beside | slope of time | docstring | slope of memory | docstring |",
                  "|---|---|---|---|---|---|---|"]
        for axis, each in own["axes"].items():
            sizes = [point["size"] for point in each["points"]]
            beside = ", ".join(f"{called(name, other)}: {size:,}" for other, size in each["fixed"].items()
                               if size and other in own["axes"])
            lines.append(f"| {called(name, axis)} | {sizes[0]:,} to {sizes[-1]:,} | {beside} | {shown(each['time'])} | "
                         f"{shown(each['memory'])} |")
        ends = [each["ends"].replace(f" {axis} ", f" {called(name, axis)} ", 1) for axis, each in own["axes"].items()
                if each["ends"]]
        lines += ["", *(f"* Left out: {end}." for end in ends), *([""] if ends else []),
                  f"Measured on {own['date']}, load average {own['load']:g}.", ""]
    facts = KEPT["header"]
    return "\n".join([*lines, "## The machine", "", *(f"* {key}: {facts[key]}" for key in facts), ""])


def lines_of(name):
    """Return the lines (reStructuredText) of the picture on the page of a class, if it has one."""
    if name not in KEPT["estimators"]:
        return []
    return [f".. figure:: /generated/pictures/scale.{name}.svg", f"   :alt: {caption(name)}", "",
            "   How a fit grows: :doc:`/project/scale`.", ""]
