"""Measure 12,579 teenagers under local differential privacy: means and distributions of weight and height.

Every device adds its noise to two numbers before they leave it, by the piecewise mechanism (PM) or its
sensitivity-aware sibling (SDPM), for which the middle of the range is declared nobody's secret. The server recovers
means and distributions with intervals, here beside the truth, because the data are public. From the top level of the
repository, after examples/us_military.py, whose report gets a section more:

    python examples/teenagers.py --output demo-output
"""

import argparse
import html
import os
import sys
import time
from pathlib import Path

try:
    import matplotlib  # noqa: F401
    import pandas as pd
except ImportError as error:
    sys.exit(f'This demo needs pandas and matplotlib ({error}). Install them with: pip install "dpestim[examples]"')

import _report
import matplotlib.pyplot as plt
import numpy as np

from dpestim.datasets import load_yrbss
from dpestim.exceptions import NoIntervalError
from dpestim.local import DistributionEstimator, MeanEstimator, PMTransformer, SDPMTransformer

COLUMNS = {"weight": "kg", "height": "m"}
BOUNDS = {"weight": (30.0, 150.0), "height": (1.2, 2.2)}  # public, chosen without the data; the rest is clipped
LOW = {"weight": (50.0, 80.0), "height": (1.55, 1.85)}  # for SDPM: who lies in here has, by assumption, little to hide
EPSILONS = [1.0, 2.0, 4.0]
N_BARS = 10  # of the true histograms, and of the bands: the fewer, the narrower
MECHANISMS = {
    "PM": lambda epsilon: PMTransformer(epsilon, bounds=BOUNDS),
    "SDPM": lambda epsilon: SDPMTransformer(epsilon, bounds=BOUNDS, low_sensitivity=LOW, n_cells=8),
}
COLOURS = {"PM": "#0072B2", "SDPM": "#D55E00"}


def main():
    output = parse_arguments()
    start = time.perf_counter()
    people = load_yrbss(as_frame=True).frame[list(COLUMNS)]
    clipped = people.clip(*map(list, zip(*BOUNDS.values())), axis=1)
    outside = int((people != clipped).any(axis=1).sum())
    print(f"loaded {len(people):,} teenagers; {outside} lie beyond the bounds {_bounds_text()} and are clipped")

    # ---- One survey for each mechanism and epsilon; random_state stays None: fresh, secure noise at every run. Both
    # estimates are made from the same reports, so that each person is asked once.
    rows, curves, promises = [], {}, {}
    for epsilon in EPSILONS:
        for name, make in MECHANISMS.items():
            transformer = make(epsilon)
            reports = transformer.privatize(people)
            mean = MeanEstimator(transformer).aggregate(reports)
            distribution = DistributionEstimator(transformer).aggregate(reports)
            medians = distribution.quantile_interval(0.5)
            try:
                bands = distribution.confidence_interval(n_bins=N_BARS)
            except NoIntervalError:  # they would say nothing, or not hold: the picture goes without
                bands = [None] * len(COLUMNS)
            quartiles = distribution.quantile([0.25, 0.5, 0.75])
            for j, column in enumerate(COLUMNS):
                edges, truth = distribution.bin_edges_[j], clipped[column].to_numpy()
                low, high = mean.confidence_interval(0.95)[j]
                median_low, median_high = medians[j]
                rows.append({
                    "column": column, "epsilon": epsilon, "mechanism": name, "truth": truth.mean(),
                    "mean": mean.mean_[j], "half_width": (high - low) / 2, "holds": low <= truth.mean() <= high,
                    "quartiles": quartiles[:, j], "true_quartiles": np.quantile(truth, [0.25, 0.5, 0.75]),
                    "median_low": median_low, "median_high": median_high,
                    "median_holds": median_low <= np.median(truth) <= median_high,
                    "plain": transformer.decode(reports)[:, j].mean(),
                })
                curves[column, epsilon, name] = edges, distribution.distribution_[j], bands[j], truth
            promises[name, epsilon] = transformer.privacy_
        print(f"measured everybody with {' and '.join(MECHANISMS)} at epsilon {epsilon:g}")
    results = pd.DataFrame(rows)
    picture = draw(curves)
    print_results(results, promises)
    output.mkdir(parents=True, exist_ok=True)
    _report.write_whole(output / "numbers.png", picture)
    text = section(results, promises, picture, len(people), outside)
    page = _report.put_section(output / "report.html", "numbers", text)
    print("Written:")
    for path in (output / "numbers.png", page):
        print(f"  {os.path.relpath(path)}")
    print(f"{time.perf_counter() - start:.1f} s")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder to write to (%(default)s)")
    return parser.parse_args().output


def draw(curves):
    """Return a PNG: densities with 95 % bands over the true histogram; a row a column, a panel an epsilon."""
    figure, grid = plt.subplots(len(COLUMNS), len(EPSILONS), figsize=(10, 5.6), sharex="row", sharey="row",
                                layout="constrained")
    for row, (column, unit) in zip(grid, COLUMNS.items()):
        for ax, epsilon in zip(row, EPSILONS):
            edges, _, _, truth = curves[column, epsilon, "PM"]
            bars = np.linspace(edges[0], edges[-1], N_BARS + 1)
            ax.hist(truth, bars, density=True, color=_report.TRUTH)
            for name, colour in COLOURS.items():
                edges, f, band, _ = curves[column, epsilon, name]
                width, middle = np.diff(edges), (edges[1:] + edges[:-1]) / 2
                if band is not None:
                    lowest, highest = band.T / np.diff(bars)
                    ax.stairs(highest, bars, baseline=lowest, fill=True, color=colour, alpha=0.2, lw=0)
                ax.plot(middle, f / width, color=colour, linewidth=1.5, linestyle="-" if name == "PM" else "--")
            ax.set_yticks([])
            ax.spines["left"].set_visible(False)
            ax.set_xlabel(f"{column} ({unit})")
    for ax, epsilon in zip(grid[0], EPSILONS):
        ax.set_title(f"epsilon {epsilon:g}  (each column {epsilon / len(COLUMNS):g})", loc="left")
    handles = [plt.Rectangle((0, 0), 1, 1, color=_report.TRUTH)]
    handles += [plt.Line2D([], [], color=c, linestyle="-" if n == "PM" else "--") for n, c in COLOURS.items()]
    figure.legend(handles, ["truth", *(f"{name}, with 95 % band" for name in COLOURS)], loc="outside upper left",
                  ncols=3, frameon=False)
    return _report._png(figure)


def print_results(results, promises):
    """Print the table and what is promised."""
    print()
    print("Means with 95 % intervals; quartiles of the estimated distribution; whether the")
    print("interval of the median holds the truth. `plain` is the mean of the reports as they are: biased under SDPM.")
    print()
    head = f"{'column':<8}{'epsilon':>8}  {'':<6}{'truth':>8}{'mean':>9}{'± 95 %':>9}{'holds':>7}{'plain':>9}"
    print(f"{head}  {'quartiles':^23}  {'95 % of the median':>20}{'holds':>7}")
    for column in COLUMNS:
        print("-" * 112)
        truth = results[results.column == column].iloc[0]
        print(f"{column:<8}{'':>8}  {'truth':<6}{truth.truth:>8.3f}{'':>34}  {_numbers(truth.true_quartiles)}")
        for row in results[results.column == column].itertuples():
            print(f"{'':<8}{row.epsilon:>8g}  {row.mechanism:<6}{'':>8}{row.mean:>9.3f}{row.half_width:>9.3f}"
                  f"{_yes(row.holds):>7}{row.plain:>9.3f}  {_numbers(row.quartiles)}  "
                  f"{f'{row.median_low:.2f} to {row.median_high:.2f}':>20}{_yes(row.median_holds):>7}")
    for name in MECHANISMS:
        print()
        print(_report.wrap(f"{name} at epsilon {EPSILONS[1]:g}: {promises[name, EPSILONS[1]]}", 110))
    print()


def section(results, promises, picture, n, outside):
    """Return the section of the report."""
    body = []
    for row in results.itertuples():
        body.append(
            f'<tr><td class="name">{row.column}</td><td>{row.epsilon:g}</td><td>{row.mechanism}</td>'
            f"<td>{row.truth:.3f}</td><td>{row.mean:.3f}</td><td>{row.half_width:.3f}</td>"
            f"<td>{_yes(row.holds)}</td><td>{row.plain:.3f}</td><td>{row.quartiles[1]:.2f}</td>"
            f"<td>{row.median_low:.2f} to {row.median_high:.2f}</td><td>{_yes(row.median_holds)}</td></tr>"
        )
    head = "".join(f"<th>{h}</th>" for h in (
        "column", "epsilon", "mechanism", "true mean", "mean", "± 95 %", "holds", "plain mean of reports", "median",
        "its 95 % interval", "holds"))
    promised = "".join(f"<blockquote><p>{name}: {html.escape(str(promises[name, EPSILONS[1]]))}</p></blockquote>"
                       for name in MECHANISMS)
    return f"""<h2>Numbers: weights and heights of {n:,} teenagers</h2>
<p>Two numbers a person, bounds {_bounds_text()} declared beforehand ({outside} people lie beyond and are clipped). The
piecewise mechanism (PM) sends a number from a wider range, without bias. SDPM does so for people outside
{_bounds_text(LOW)} and mostly tells, of those inside, in which eighth of that range they lie: an assumption about what
nobody minds.</p>
<pre>transformer = PMTransformer({EPSILONS[1]:g}, bounds={BOUNDS})
reports = transformer.privatize(people)           # all that leaves the devices
MeanEstimator(transformer).aggregate(reports).confidence_interval(0.95)
DistributionEstimator(transformer).aggregate(reports).distribution_</pre>
<div class="scroll"><table><tr>{head}</tr>{"".join(body)}</table></div>
<p>The plain mean of what SDPM's reports stand for is biased, because a low value that does not report itself reports
anything; <code>MeanEstimator</code> undoes it. Bands are intervals for the shares of {N_BARS} bins, which allow for
other shapes than the estimated one: so they are wide where reports are noisy, and there is none where it would say
nothing, or where many values lie on edges of bins.</p>
{_report._picture(picture, "Estimated densities of weight and height with bands, over the true histograms")}
<p>What is promised, in the transformers' own words:</p>
{promised}
<p>Source: Centers for Disease Control and Prevention, Youth Risk Behavior Surveillance System, through the openintro
collection (data set <code>yrbss</code>). Made by <code>examples/teenagers.py</code>.</p>

"""


def _bounds_text(bounds=BOUNDS):
    return " and ".join(f"{low:g} to {high:g} {COLUMNS[column]}" for column, (low, high) in bounds.items())


def _yes(true):
    return "yes" if true else "no"


def _numbers(values):
    return " ".join(f"{v:>7.2f}" for v in values)


if __name__ == "__main__":
    main()
