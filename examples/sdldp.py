"""Sensitivity levels: what declaring some values to be nobody's secret gains, and what it gives away.

The SDLDP paper's two mechanisms on data that dpestim ships. Ranks of 50,000 US service members, of which a few high
ones are declared sensitive: plain randomised response (GRR), sensitivity-aware (SDGRR), utility-optimised (URR), and
users who choose themselves how many ranks they mind (personalised). Weights of 12,579 teenagers, those from 50 to 80 kg
being declared nobody's secret: the piecewise mechanism (PM) and its sensitivity-aware form (SDPM). From the top level
of the repository, after examples/us_military.py, whose report gets a section more:

    python examples/sdldp.py --output demo-output

The paper's own experiments, all of them, on the data it names where they are at hand: ``python -m
benchmarks.reproduce_sdldp``.
"""

import argparse
import html
import math
import os
import sys
import time
from pathlib import Path

try:
    import matplotlib.pyplot as plt
    import pandas as pd
except ImportError as error:
    sys.exit(f'This demo needs pandas and matplotlib ({error}). Install them with: pip install "dpestim[examples]"')

import _report
import numpy as np

from dpestim.audit import BayesianAdversary
from dpestim.datasets import load_us_military, load_yrbss
from dpestim.local import (
    DistributionEstimator,
    GRRFrequencyEstimator,
    MeanEstimator,
    PersonalizedEstimator,
    PMTransformer,
    SDGRRFrequencyEstimator,
    SDPMTransformer,
    URRFrequencyEstimator,
)

EPSILONS = [0.1, 0.3, 1.0]
N_PEOPLE = 50_000
BY_SENSITIVITY = [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]  # ranks, an assumption: the higher, the fewer share them
N_HIGH = {"25 %": 3, "50 %": 6, "75 %": 8}  # how many of the 11 ranks somebody minds
CHOSEN = [0.4, 0.3, 0.3]  # which share of the users minds as many, whatever the own rank is
BOUNDS, LOW = {"weight": (30.0, 150.0)}, {"weight": (50.0, 80.0)}  # kg, public, chosen without the data
COLOURS = {"GRR": "#333333", "SDGRR": "#D55E00", "personalised SDGRR": "#CC79A7", "URR": "#009E73",
           "PM": "#333333", "SDPM": "#D55E00"}


def main():
    runs, output = parse_arguments()
    start = time.perf_counter()
    ranks = load_us_military(as_frame=True).frame[["rank"]].sample(N_PEOPLE, random_state=0)
    weights = load_yrbss(as_frame=True).frame[["weight"]]
    frequencies = pd.DataFrame(survey_ranks(ranks, runs))
    print(f"asked {len(ranks):,} people for their rank, {runs} times at each epsilon")
    means = pd.DataFrame(survey_weights(weights, runs))
    print(f"asked {len(weights):,} teenagers for their weight, {runs} times at each epsilon\n")
    tables = [table_of(frequencies, "root mean squared error of a frequency, percentage points", 100),
              table_of(means, "root mean squared error of the mean weight, kg", 1)]
    for table in tables:
        print(f"{table.to_string(float_format='{:.3g}'.format)}\n")
    facts = given_away(ranks, weights)
    for fact in facts:
        print(f"{_report.wrap(fact, 110)}\n")
    picture = draw(frequencies, means)
    output.mkdir(parents=True, exist_ok=True)
    _report.write_whole(output / "sdldp.png", picture)
    page = _report.put_section(output / "report.html", "sdldp", section(tables, facts, picture, len(weights), runs))
    print("Written:")
    for path in (output / "sdldp.png", page):
        print(f"  {os.path.relpath(path)}")
    print(f"{time.perf_counter() - start:.1f} s")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="surveys at each epsilon (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder to write to (%(default)s)")
    arguments = parser.parse_args()
    return arguments.runs, arguments.output


# ---------------------------------------------------------------- frequencies


def low(share):
    """Return the ranks that somebody who minds such a share of them does not mind."""
    return {"rank": BY_SENSITIVITY[N_HIGH[share]:]}


def rank_estimators(epsilon):
    """Return {name: estimator}; random_state stays None: fresh, secure noise at every run."""
    domain = {"rank": sorted(BY_SENSITIVITY)}
    sdgrr = SDGRRFrequencyEstimator(epsilon, categories=domain, low_sensitivity=low("25 %"))
    return {
        "GRR": GRRFrequencyEstimator(epsilon, categories=domain),
        "SDGRR": sdgrr,
        "personalised SDGRR": PersonalizedEstimator(
            sdgrr, {share: {"low_sensitivity": low(share)} for share in N_HIGH}, group_column="minds"),
        "URR": URRFrequencyEstimator(epsilon, categories=domain, non_sensitive=low("25 %")),
    }


def survey_ranks(ranks, runs):
    """Yield a row for each survey: the mean squared error of its frequencies, and what the law says of it."""
    truth = ranks["rank"].value_counts(normalize=True).reindex(sorted(BY_SENSITIVITY)).to_numpy()
    choices = np.random.default_rng(0).choice(list(N_HIGH), len(ranks), p=CHOSEN)  # public, and independent of the rank
    with_choice = ranks.assign(minds=choices)
    for epsilon in EPSILONS:
        for name, estimator in rank_estimators(epsilon).items():
            people, theory = with_choice, math.nan
            if "personalised" not in name:
                people, theory = ranks, estimator.randomizer().variance(len(ranks), truth).mean()
            for _ in range(runs):
                error = estimator.fit(people).frequencies_[0] - truth
                yield {"what": name, "epsilon": epsilon, "square": np.square(error).mean(), "theory": theory}


# ---------------------------------------------------------------- numbers


def weight_transformers(epsilon):
    return {"PM": PMTransformer(epsilon, bounds=BOUNDS),
            "SDPM": SDPMTransformer(epsilon, bounds=BOUNDS, low_sensitivity=LOW)}


def survey_weights(weights, runs):
    """Yield a row for each survey and estimator: the squared error of the mean. Estimators read the same reports."""
    truth = weights["weight"].clip(*BOUNDS["weight"]).mean()
    for epsilon in EPSILONS:
        for name, transformer in weight_transformers(epsilon).items():
            for _ in range(runs):
                reports = transformer.privatize(weights)
                found = {
                    "plain mean of reports": transformer.decode(reports).mean(),
                    "unbiased (MeanEstimator)": MeanEstimator(transformer).aggregate(reports).mean_[0],
                    "EM (DistributionEstimator)": DistributionEstimator(
                        transformer, smoothing=False, tol=1e-3 * math.exp(epsilon)).aggregate(reports).mean_[0],
                }
                for how, mean in found.items():
                    yield {"what": f"{name}: {how}", "epsilon": epsilon, "square": (mean - truth) ** 2}


# ---------------------------------------------------------------- what it costs


def given_away(ranks, weights, epsilon=1.0):
    """Return sentences on what an adversary learns; exact, from the laws."""
    facts, n_high = [], N_HIGH["25 %"]
    order = sorted(BY_SENSITIVITY)
    estimators = rank_estimators(epsilon)
    success = {"GRR": BayesianAdversary(estimators["GRR"]).expected_success()}
    success |= {name: BayesianAdversary(estimators[name]).expected_success("high") for name in ("SDGRR", "URR")}
    text = ", ".join(f"{100 * value:.0f} % under {name}" for name, value in success.items())
    facts.append(f"At epsilon {epsilon:g}, the adversary guesses the rank of somebody who holds one of the {n_high} "
                 f"sensitive ones right with probability {text}.")
    pair = np.isin(order, [BY_SENSITIVITY[0], BY_SENSITIVITY[-1]]) / 2
    told = BayesianAdversary(estimators["SDGRR"], prior=pair).expected_success()
    facts.append(
        f"Asked whether somebody's rank is {BY_SENSITIVITY[0]}, a sensitive one, or {BY_SENSITIVITY[-1]}, one that "
        f"nobody is said to mind, the adversary is right {100 * told:.0f} % of the time under SDGRR. Plain local "
        f"privacy allows {100 / (1 + math.exp(-epsilon)):.0f} %: the relaxed promise is none between low and high.")
    values = weights["weight"].clip(*BOUNDS["weight"])
    share = values.between(*LOW["weight"]).mean()
    for form in ("continuous", "discretised"):
        transformer = weight_transformers(epsilon)["SDPM"].set_params(form=form)
        low_high = float(transformer.guarantee_by_input_[0]["low-high"])
        by = f"protected by epsilon {low_high:.3g}" if math.isfinite(low_high) else "not protected"
        facts.append(f"SDPM, {form}: that a weight is one of the {100 * share:.0f} % low ones is {by}.")
    facts.append(str(weight_transformers(epsilon)["SDPM"].privacy_))
    return facts


# ---------------------------------------------------------------- what comes out


def table_of(results, title, unit):
    """Return root mean squared errors: a row a mechanism, a column an epsilon."""
    squares = results.pivot_table(index="what", columns="epsilon", values="square", sort=False)
    return (unit * np.sqrt(squares)).rename_axis(index=title, columns="epsilon")


def draw(frequencies, means):
    """Return a PNG: errors against epsilon, with bars of two standard errors; lines without points are theory."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    for name, rows in frequencies.groupby("what", sort=False):
        has_theory = rows.theory.notna().all()
        points(left, rows, COLOURS[name], "o", "none" if has_theory else "-", name, 1e4)
        left.plot(EPSILONS, 1e4 * rows.groupby("epsilon").theory.first(), color=COLOURS[name], linewidth=1.2)
    styles = {"plain": ("x", ":"), "unbiased": ("s", "-"), "EM": ("D", "--")}
    shift = {("PM", "unbiased"): 0.97, ("SDPM", "EM"): 1.03}  # so that bars stand beside each other
    for what, rows in means.groupby("what", sort=False):
        name, how = what.split(": ")
        if how.startswith("plain") and name == "PM":
            continue  # it is the unbiased estimate
        kind = how.split()[0]
        points(right, rows, COLOURS[name], *styles[kind], what, 1, shift.get((name, kind), 1.0))
    for ax, title, label in ((left, f"frequencies of {len(BY_SENSITIVITY)} ranks", "percentage points, squared"),
                             (right, "mean weight", "kg, squared")):
        ax.set(xscale="log", yscale="log", xlabel="epsilon", ylabel=f"mean squared error ({label})")
        ax.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
        ax.xaxis.minorticks_off()
        ax.grid(axis="y", color="#eeeeee", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.set_title(title, loc="left", fontweight="bold")
        ax.legend(frameon=False, fontsize=8, loc="lower left")
        ax.set_ylim(bottom=ax.get_ylim()[0] / 2)
    return _report._png(figure)


def points(ax, rows, colour, marker, line, label, unit, shift=1.0):
    """Draw the mean of each epsilon's squared errors; a bar on a logarithmic axis ends above 0."""
    groups = rows.groupby("epsilon").square
    mean, bar = unit * groups.mean(), 2 * unit * groups.sem().fillna(0)
    ax.errorbar(shift * mean.index, mean, yerr=[np.minimum(bar, 0.9 * mean), bar], fmt=marker, color=colour,
                linestyle=line, markersize=4.5, linewidth=1.2, elinewidth=1, label=label)


def section(tables, facts, picture, n, runs):
    """Return the section of the report."""
    body = "".join(f'<div class="scroll">{table.to_html(float_format="{:.3g}".format, border=0)}</div>'
                   for table in tables)
    learned = "".join(f"<blockquote><p>{html.escape(fact)}</p></blockquote>" for fact in facts)
    return f"""<h2>Sensitivity levels: {N_PEOPLE:,} ranks and {n:,} weights</h2>
<p>Some values are nobody's secret. Mechanisms that are told which (SDGRR, SDPM, URR) add less noise. Here the
{N_HIGH["25 %"]} highest ranks and the weights outside of {LOW["weight"][0]:g} to {LOW["weight"][1]:g} kg keep full
protection; {runs} surveys at each epsilon. Frequencies of ranks that are not sensitive get far better, those of the
others do not. For means SDPM is of use where epsilon is small, through expectation maximisation (EM); the plain mean of
its reports is wrong.</p>
{body}
{_report._picture(picture, "Mean squared errors against epsilon, of frequencies and of means")}
<p>What it gives away:</p>
{learned}
<p>Made by <code>examples/sdldp.py</code>; the paper's own experiments by
<code>benchmarks/reproduce_sdldp.py</code>.</p>

"""


if __name__ == "__main__":
    main()
