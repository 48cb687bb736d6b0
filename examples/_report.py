"""Pictures and the HTML page of `us_military.py`; nothing here knows about privacy."""

import base64
import html
import io
import math
import os
import textwrap

import matplotlib
import numpy as np

matplotlib.use("Agg")  # files only: works without a screen
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter

# Okabe and Ito's palette, told apart by colour-blind readers too; a marker of its own for black and white.
COLOURS = {"GRR": "#0072B2", "OUE": "#D55E00", "OLH": "#009E73"}
MARKERS = {"GRR": "o", "OUE": "s", "OLH": "D"}
LINES = {"GRR": "-", "OUE": "-", "OLH": "--"}  # the last two coincide: dashes let the one below show
TRUTH, INK, FAINT = "#dcdcdc", "#333333", "#999999"
SPELLED_OUT = {"ami/aln": "Native American", "multi": "multiracial", "p/i": "Pacific Islander", "unk": "unknown"}
NOTE = {"va": "top", "color": "#666666", "fontsize": 8}
DPI = 150
_MARK = "<h2>What is not private here</h2>"  # sections that are put in later go before this heading

plt.rcParams.update({
    "font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9, "text.color": INK, "axes.labelcolor": INK,
    "axes.edgecolor": FAINT, "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False,
    "axes.spines.right": False, "axes.linewidth": 0.8, "xtick.major.width": 0.8, "ytick.major.width": 0.8,
})


# -------------------------------------------------------------------------------------------------------- pictures


def draw_surveys(surveys, columns, epsilons, mechanisms, *, zoom=False):
    """Return a PNG of points with error bars: a row a column, a panel an epsilon.

    The truth stands behind them as bars; with `zoom` it is the zero line, and what is drawn is estimate minus truth.
    """
    order = {name: _ordered(surveys, name) for name in columns}
    figure, grid = plt.subplots(
        len(columns), len(epsilons), figsize=(10, 0.36 * sum(map(len, order.values())) + 2.6), sharey="row",
        sharex="all" if zoom else "row", layout="constrained", squeeze=False,
        height_ratios=[len(order[name]) + 1 for name in columns],
    )
    dodge = np.linspace(-0.26, 0.26, len(mechanisms))
    for row, name in zip(grid, columns):
        for ax, epsilon in zip(row, epsilons):
            here = surveys[(surveys.feature == name) & (surveys.epsilon == epsilon)].set_index("category")
            truth = here[here.mechanism == mechanisms[0]].truth[order[name]]
            y = np.arange(len(truth))
            if zoom:
                ax.barh(y[::2], 1, left=-0.5, height=1, color="#f6f6f6")  # stripes lead the eye along a category
            else:
                ax.barh(y, truth, height=0.84, color=TRUTH)
            ax.axvline(0, color=INK if zoom else FAINT, linewidth=0.8)
            for mechanism, shift in zip(mechanisms, dodge):
                one = here[here.mechanism == mechanism].loc[order[name]]
                ax.errorbar(
                    one.error if zoom else one.frequency, y + shift, xerr=one.half_width, fmt=MARKERS[mechanism],
                    color=COLOURS[mechanism], markersize=3 if zoom else 2.6, elinewidth=1.3, linestyle="none",
                )
            ax.set_yticks(y, [f"{SPELLED_OUT.get(c, c)}  {_share(truth[c]):>6}" for c in order[name]])
            ax.set_ylim(len(truth) - 0.4, -0.6)  # the first category on top
            ax.tick_params(axis="y", length=0)
            ax.spines["left"].set_visible(False)
            ax.xaxis.set_major_formatter(_signed if zoom else PercentFormatter(1, decimals=0, symbol=" %"))
        row[0].set_ylabel(name, fontsize=11, fontweight="bold", labelpad=8)
    if zoom:
        reach = 1.04 * (surveys.error.abs() + surveys.half_width).max()
        grid[0, 0].set_xlim(-reach, reach)
        figure.supxlabel("estimate minus truth, in percentage points", fontsize=9)
    figure.align_ylabels(grid[:, 0])
    for ax, epsilon in zip(grid[0], epsilons):
        ax.set_title(f"epsilon {epsilon:g}  (each column {epsilon / len(columns):.2g})", loc="left")
    truth_mark = plt.Line2D([], [], color=INK, linewidth=0.8) if zoom else plt.Rectangle((0, 0), 1, 1, color=TRUTH)
    handles = [truth_mark] + [
        plt.Line2D([], [], marker=MARKERS[m], color=COLOURS[m], markersize=5, linewidth=1.3) for m in mechanisms
    ]
    labels = ["truth", f"{mechanisms[0]}, with 95 % interval", *mechanisms[1:]]
    figure.legend(
        handles, labels, loc="outside upper left", ncols=len(handles), frameon=False, borderaxespad=0.2,
    )
    return _png(figure)


def draw_errors(repeats, columns, mechanisms):
    """Return a PNG: root mean squared error over runs and categories against epsilon, over the theory."""
    figure, axes = plt.subplots(1, len(columns), figsize=(10, 4.3), sharey=True, layout="constrained")
    for ax, name in zip(axes, columns):
        here = repeats[repeats.feature == name]
        d, ends = here.category.nunique(), {}
        for mechanism, shift in zip(mechanisms, (0.94, 1.0, 1.064)):
            one = here[here.mechanism == mechanism]
            theory = one.groupby("epsilon").standard_error.apply(_rms)
            ax.plot(theory.index, theory, LINES[mechanism], color=COLOURS[mechanism], linewidth=1.4, zorder=1)
            runs = one.groupby(["epsilon", "run"]).error.apply(_rms).unstack()
            x = runs.index * shift
            ax.vlines(x, runs.min(axis=1), runs.max(axis=1), color=COLOURS[mechanism], linewidth=1.1, alpha=0.55)
            measured = one.groupby("epsilon").error.apply(_rms)
            ax.plot(x, measured, MARKERS[mechanism], color=COLOURS[mechanism], markersize=4.6)
            ends[mechanism] = theory.iloc[-1]
        epsilons = sorted(here.epsilon.unique())
        _label_ends(ax, ends, epsilons[-1] * 1.17)
        ax.set(xscale="log", yscale="log", xlabel="epsilon of the whole row", xlim=(epsilons[0] / 1.25, None))
        ax.set_xlim(right=epsilons[-1] * 2.1)
        ax.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.xaxis.minorticks_off()
        ax.yaxis.set_major_formatter(_points)
        ax.grid(axis="y", color="#eeeeee", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.set_title(f"{name}, {d} categories", loc="left", fontweight="bold")
        # rule of thumb: GRR is the most accurate where d < 3 e^(epsilon of the column) + 2 (Wang et al. 2017)
        turn = len(columns) * math.log((d - 2) / 3) if d > 5 else None
        if turn:
            ax.axvline(turn, color=FAINT, linewidth=0.9, linestyle=":")
            ax.text(turn * 1.07, 0.99, f"GRR best\nfrom {turn:.1f} on", transform=ax.get_xaxis_transform(), **NOTE)
        else:
            ax.text(0.7, 0.99, "GRR best\nthroughout", transform=ax.transAxes, **NOTE)
    axes[0].set_ylabel("typical error of a frequency (root mean square)")
    n_runs = repeats.run.nunique()
    figure.legend(
        [plt.Line2D([], [], marker="o", color=INK, linestyle="none", markersize=4.6),
         plt.Line2D([], [], marker="|", color=INK, linestyle="none", markersize=10),
         plt.Line2D([], [], color=INK, linewidth=1.4),
         plt.Line2D([], [], color=FAINT, linewidth=0.9, linestyle=":")],
        [f"measured, {n_runs} surveys together", "best to worst single survey", "theory: standard_errors_",
         "rule of thumb: GRR best to the right"],
        loc="outside upper left", ncols=4, handlelength=1.6, columnspacing=1.6, frameon=False, borderaxespad=0.2,
    )
    return _png(figure)


def draw_search(search):
    """Return a PNG: the curve of the grid search, folds as dots, and the point that best_params_ names."""
    results, colour = search.cv_results_, COLOURS["OUE"]
    x = np.array([p["epsilon"] for p in results["params"]], dtype=float)
    folds = np.sqrt(-np.stack([results[f"split{k}_test_score"] for k in range(search.n_splits_)]))
    mean = np.sqrt(-np.asarray(results["mean_test_score"]))
    figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
    ax.plot(x, mean, color=colour, linewidth=1.6)
    for fold in folds:
        ax.plot(x, fold, "o", color=colour, markersize=5, alpha=0.45, markeredgewidth=0)
    best = int(search.best_index_)
    ax.plot(x[best], mean[best], "o", markersize=14, markerfacecolor="none", markeredgecolor=INK, markeredgewidth=1.2)
    ax.annotate(f"best_params_: epsilon {x[best]:g}", (x[best], mean[best]), (-10, -13), textcoords="offset points",
                ha="right", va="top", fontweight="bold")
    ax.annotate(f"dots: the {search.n_splits_} folds\nline: their mean_test_score", (x[1], mean[1]), (16, 8),
                textcoords="offset points", va="bottom", color=colour)
    ax.set(xscale="log", yscale="log", xlabel="epsilon of the whole row", ylim=(folds.min() / 1.7, folds.max() * 1.2),
           ylabel="error on the held-out fold, square root of −score")
    ax.set_title("GridSearchCV over epsilon (OUE): a curve, not a choice, and not private", loc="left", weight="bold")
    ax.set_xticks(x, [f"{e:g}" for e in x])
    ax.xaxis.minorticks_off()
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(_points)
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(axis="y", color="#eeeeee", linewidth=0.8)
    ax.set_axisbelow(True)
    return _png(figure)


@FuncFormatter
def _points(value, _):
    """Write a difference of frequencies in percentage points."""
    return f"{100 * value:.4g} pp".replace("-", "−")


@FuncFormatter
def _signed(value, _):
    """Write an error in percentage points, with its sign."""
    return f"{100 * value:+.4g}".replace("-", "−") if abs(value) > 1e-9 else "0"


def _share(frequency):
    return "< 0.1 %" if 0 < frequency < 0.0005 else f"{100 * frequency:.1f} %"


def _ordered(surveys, name):
    """Return the categories of a column: numbers in their order, names from the most to the least frequent."""
    one = surveys[surveys.feature == name].drop_duplicates("category")
    numeric = all(isinstance(c, int | np.integer) for c in one.category)
    return list(one.sort_values("category" if numeric else "truth", ascending=numeric).category)


def _rms(values):
    return math.sqrt((values**2).mean())


def _label_ends(ax, ends, x):
    """Write the name of each line at its right end; where lines lie together, spread the names."""
    names = sorted(ends, key=ends.get)
    places = []
    for name in names:
        places.append(max(math.log(ends[name]), places[-1] + 0.22 if places else -math.inf))
    shift = sum(places) / len(places) - sum(math.log(v) for v in ends.values()) / len(places)
    for name, place in zip(names, places):
        ax.text(x, math.exp(place - shift), name, color=COLOURS[name], va="center", fontweight="bold", fontsize=9)


def _png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white")
    plt.close(figure)
    return buffer.getvalue()


# ------------------------------------------------------------------------------------------------------------ page

STYLE = """
:root { color-scheme: light }
body { margin: 0; background: #fff; color: #222; font: 17px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif }
main { max-width: 62rem; margin: 0 auto; padding: 1.2rem 1.1rem 4rem }
h1 { font-size: 1.75rem; line-height: 1.2; margin: .8rem 0 .4rem }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .4rem }
p, li { max-width: 44rem }
.scroll { overflow-x: auto; margin: 1rem 0 }
figure { margin: 1rem 0 }
figure img { width: 100%; min-width: 46rem; height: auto; display: block }
figure.small img { max-width: 46rem; min-width: 34rem }
figcaption { font-size: .9rem; color: #555; max-width: 44rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .88rem }
th, td { padding: .22rem .65rem; text-align: right; white-space: nowrap }
th { font-weight: 600; border-bottom: 1px solid #999 }
th[colspan] { text-align: center; border-bottom: 0 }
tr.first td { border-top: 1px solid #ddd }
td.name, th.name { text-align: left }
td.lead { border-left: 1px solid #ddd }
.warn { border-left: 4px solid #D55E00; background: #fdf4ee; padding: .5rem 1rem; margin: 1rem 0 }
.warn p { margin: .4rem 0 }
pre { background: #f6f6f6; padding: .7rem 1rem; overflow-x: auto; font-size: .85rem; line-height: 1.45 }
blockquote { margin: .5rem 0; padding-left: 1rem; border-left: 4px solid #ddd; color: #444 }
code { background: #f3f3f3; padding: 0 .2em; border-radius: 3px; font-size: .92em }
"""

HOW = {
    "GRR": "Generalised randomised response: the device answers truthfully with the largest probability, and with any "
           "other category, all equally likely, otherwise. Best for few categories.",
    "OUE": "Optimised unary encoding: the device writes one yes or no for every category and flips each of them at "
           "random. Its error does not grow with the number of categories.",
    "OLH": "Optimised local hashing: the device hashes the categories into a handful of buckets and plays randomised "
           "response on the bucket. About as accurate as OUE, with a message that stays short.",
}


def make_page(*, people, surveys, summary, repeats, promises, lesson, pictures, columns, mechanisms):
    """Return the report as one HTML page that needs nothing from outside itself."""
    text = html.escape
    names, epsilons, w = list(mechanisms), sorted(promises), len(columns)
    middle = epsilons[len(epsilons) // 2]
    at_middle = surveys[surveys.epsilon == middle]
    odds = "".join(
        f"<tr><td>{e:g}</td><td>{math.exp(e):.2f} : 1</td><td>{100 / (1 + math.exp(-e)):.0f} %</td>"
        f"<td class='lead'>{e / w:.3f}</td><td>{math.exp(e / w):.2f} : 1</td>"
        f"<td>{100 / (1 + math.exp(-e / w)):.0f} %</td></tr>"
        for e in epsilons
    )
    how = "".join(
        f"<li><b>{text(name)}</b> (<code>{mechanisms[name].__name__}</code>): {text(HOW[name])}</li>" for name in names
    )
    negative = (surveys.frequency < 0).sum()
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Local differential privacy on {len(people):,} service members</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>Counting {len(people):,} people without trusting anyone</h1>
<p>A survey of all US service members under <b>local differential privacy</b>: every person's device randomises the
answers before they leave it, and the server sees nothing but randomised reports. At epsilon&nbsp;{middle:g}, the worst
of the {len(at_middle)} estimates ({text(_listed(names))} together) is off by {100 * at_middle.error.abs().max():.2f}
percentage points; half of them are off by less than {100 * at_middle.error.abs().median():.2f}.</p>

<h2>What was done</h2>
<p>Each of {len(people):,} people answers {w} questions, {text(_listed(columns))}, through one of three mechanisms:</p>
<ul>{how}</ul>
<pre>estimator = OUEFrequencyEstimator(epsilon={middle:g}, categories=domain).fit(people)
estimator.to_frame(level=0.95)  # frequencies, standard errors, 95 % intervals
print(estimator.privacy_)</pre>
<p>The possible answers are public and declared beforehand. <b>Epsilon covers the whole row of a person</b>: with {w}
columns each column gets epsilon&nbsp;/&nbsp;{w}. From the counts of noisy reports the server computes unbiased
estimates and their standard errors. The noise is drawn from a cipher under a fresh key each time, so no two runs of
this program agree in their figures.</p>

<h2>Whom one needs to trust</h2>
<p>Nobody but one's own device: not the server, not the network, not whoever gets the published estimates. In this demo
one program plays all {len(people):,} devices and the server on one machine, which therefore does hold the raw rows;
they are public data of the Department of Defense. The promise of the estimators for epsilon&nbsp;{middle:g}, in their
own words (<code>privacy_</code>):</p>
<blockquote><p>{text(str(promises[middle]))}</p></blockquote>

<h2>What epsilon means</h2>
<p>Odds. Take anybody who wonders which of two possible rows is yours. Whatever your device sends, it multiplies their
odds by at most e<sup>epsilon</sup>. If it was even money before, this is how sure they can be at most afterwards, from
your whole report, and from the answer to one question alone:</p>
<div class="scroll"><table>
<tr><th colspan="3">whole report</th><th colspan="3">one answer of the {w}</th></tr>
<tr>{"<th>epsilon</th><th>odds up to</th><th>even money becomes</th>" * 2}</tr>
{odds}</table></div>
<p>Epsilons add up: who answers two such surveys has spent the sum. And the bound is about what your report reveals, not
about what the frequencies of the population let anyone guess about you; those are what the survey is for.</p>

<h2>The estimates beside the truth</h2>
{_picture(pictures["frequencies.png"], "Estimated frequencies with 95 % intervals beside the true frequencies")}
<p>The bars, and the figures beside the names, are the truth. Estimates are unbiased, so a rare category may come out
below zero ({negative} of {len(surveys)} did); <code>postprocess="norm_sub"</code> and its siblings repair that, and
cost no privacy. The same again, close up, the truth now being the line at zero:</p>
{_picture(pictures["deviations.png"], "Estimate minus truth with 95 % intervals, which shrink as epsilon grows")}
<p>An interval is made to hold the truth in 95 of 100 surveys, so among so many a few must miss.</p>

<h2>How large the error is</h2>
<p>Largest error of a category and mean half-width of the 95&nbsp;% intervals, in percentage points, and how many
intervals hold the truth. The shortest intervals are in bold.</p>
{_table(summary, columns, epsilons, names)}
<p>Of the {len(surveys)} intervals above, {percent(surveys.covered.mean())} hold the truth; of the {len(repeats):,}
intervals of the repeated surveys below, {percent(repeats.covered.mean())}. They are made for 95&nbsp;%.</p>

<h2>Error against epsilon</h2>
{_picture(pictures["errors.png"], "Measured error against epsilon for three mechanisms, over the predicted error")}
<p>The lines are what a single survey says about itself (<code>standard_errors_</code>), the points are errors that were
measured against the truth. Each point is {repeats.run.nunique()} surveys, every one of which would cost each person its
epsilon again. GRR is the most accurate where a column has fewer than
3&nbsp;e<sup>epsilon&nbsp;/&nbsp;{w}</sup>&nbsp;+&nbsp;2 categories (a rule of thumb, the dotted lines); OUE and OLH are
equally good.</p>

<h2>A search over epsilon</h2>
{_picture(pictures["search.png"], "Held-out error of a grid search against epsilon, falling all the way", "small")}
<div class="warn"><p>{text(lesson[0])}</p><p>{text(lesson[1])}</p></div>

<h2>What is not private here</h2>
<ul>
<li>Everything that needs the truth: the grey bars, the errors, the counts of intervals that hold, the measured points,
and the curve of the search. They come from the raw rows, exactly, and stand here only because these are public.</li>
<li>The repetitions. One survey of one mechanism is what its epsilon is about; all surveys of this page together have
spent the sum of their epsilons.</li>
<li>The number of people, {len(people):,}: the local model counts reports openly.</li>
</ul>
<p>A real survey would publish the estimates, their intervals and epsilon, and nothing else on this page. The guarantee
holds against computationally bounded adversaries, because the noise comes from a cipher.</p>

<h2>Source</h2>
<p>US Department of Defense, active duty demographic profile, through data.gov and the openintro collection (data set
<code>military</code>), shipped with dpestim. Made by <code>examples/us_military.py</code>.</p>
</main>
</body>
</html>
"""


def _listed(words):
    return ", ".join(words[:-1]) + " and " + words[-1]


def _picture(png, alt, kind=""):
    source = base64.b64encode(png).decode("ascii")
    return (
        f'<div class="scroll"><figure class="{kind}">'
        f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{source}"></figure></div>'
    )


def _table(summary, columns, epsilons, names):
    head = "".join(f'<th colspan="3">{html.escape(name)}</th>' for name in names)
    rows = [f'<tr><th colspan="2"></th>{head}</tr>',
            '<tr><th class="name">column</th><th>epsilon</th>'
            + "<th>worst</th><th>± 95 %</th><th>hold</th>" * len(names) + "</tr>"]
    for column in columns:
        for epsilon in epsilons:
            cells = [summary.loc[column, epsilon, name] for name in names]
            halves = [f"{100 * cell.half_width:.2f}" for cell in cells]
            row = ""
            for cell, half in zip(cells, halves):
                row += (
                    f'<td class="lead">{100 * cell.worst:.2f}</td>'
                    f"<td>{f'<b>{half}</b>' if float(half) == min(map(float, halves)) else half}</td>"
                    f"<td>{cell.covered:.0f} of {cell.intervals:.0f}</td>"
                )
            first = ' class="first"' if epsilon == epsilons[0] else ""
            rows.append(f'<tr{first}><td class="name">{html.escape(column)}</td><td>{epsilon:g}</td>{row}</tr>')
    return f'<div class="scroll"><table>{"".join(rows)}</table></div>'


# --------------------------------------------------------------------------------------------------- text and files


def percent(share):
    """Return a share as text."""
    return f"{100 * share:.1f} %"


def wrap(text, width):
    """Return the text in lines of at most `width` characters."""
    return "\n".join(textwrap.wrap(text, width))


def write_whole(path, content):
    """Write bytes under another name first, so that an aborted run leaves an old file or none, never half of one."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def put_section(path, name, text):
    """Put a section into the report, in place of an earlier one of that name; alone in a page where there is none."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    if path.exists() and _MARK in (page := path.read_text(encoding="utf-8")):
        if begin in page:
            page = page.split(begin)[0] + page.split(end)[1]
        before, after = page.split(_MARK)
        page = before + begin + text + end + _MARK + after
    else:
        path = path.with_name(f"{name}.html")
        page = (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
                f"<style>{STYLE}</style></head><body><main>{text}</main></body></html>\n")
    write_whole(path, page.encode())
    return path
