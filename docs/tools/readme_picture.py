"""Draw the picture of the README, ``docs/_static/overview.png``: one result for each of its three examples.

Run by hand (``make picture``) where an example changes. It is seeded, so that the file does not change with each run.
"""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from series_check import refuse_alike

from dpestim.datasets import load_us_military, load_yrbss
from dpestim.ensemble import DPGradientBoostingClassifier
from dpestim.inspection import ShapeFunctionDisplay
from dpestim.local import GRRFrequencyEstimator
from dpestim.statistics import histogram

EXACT, PRIVATE = "0.75", "tab:blue"


def collected(ax):
    """Draw reports of 20,000 people at epsilon 1, beside the answers that they kept to themselves."""
    people = load_us_military(as_frame=True)
    rows = people.frame[["branch"]].sample(20_000, random_state=0)
    survey = GRRFrequencyEstimator(epsilon=1.0, categories={"branch": people.categories["branch"]}, random_state=0)
    survey.fit(rows)
    low, high = survey.confidence_interval(0.95)[0].T
    estimate, place = survey.frequencies_[0], np.arange(4)
    ax.bar(place, rows["branch"].value_counts(normalize=True)[survey.categories_[0]], color=EXACT, label="exact")
    ax.errorbar(place, estimate, [estimate - low, high - estimate], fmt="o", color=PRIVATE, capsize=4,
                label="estimated, 95 % interval")
    ax.set_xticks(place, [name.replace(" ", "\n") for name in survey.categories_[0]])
    ax.set(title="collect: 20,000 users, epsilon 1", ylabel="share", ylim=(0, 0.53))
    ax.legend(frameon=False, fontsize=8)


def published(ax):
    """Draw a noisy histogram over the exact one, which nobody would publish."""
    weights = load_yrbss(as_frame=True).frame["weight"]
    edges = np.arange(30, 131, 5)
    result = histogram(weights, epsilon=0.1, bins=edges, random_state=0)
    low, high = result.interval(0.95)
    middle = (edges[1:] + edges[:-1]) / 2
    ax.bar(middle, np.histogram(weights, edges)[0], width=4.6, color=EXACT, label="exact")
    ax.errorbar(middle, result.value, [result.value - low, high - result.value], fmt=".", color=PRIVATE, capsize=2,
                label="published, 95 % interval")
    ax.set(title="publish: a histogram, epsilon 0.1", xlabel="weight (kg)", ylabel="people")
    ax.legend(frameon=False, fontsize=8)


def trained(ax):
    """Draw what a private model learned of one column."""
    teenagers = load_yrbss(as_frame=True).frame
    X, y = teenagers[["age", "height", "weight"]], teenagers["gender"]
    model = DPGradientBoostingClassifier(1.0, delta=1e-6, bounds=([12, 1, 25], [18, 2.3, 200]),
                                         classes=["female", "male"], random_state=0).fit(X, y)
    ShapeFunctionDisplay.from_estimator(model, "height", ax=ax)
    ax.set(title="train: boosting, epsilon 1", xlim=(1.3, 2.1))
    ax.set(xlabel="height (m)", ylabel="evidence for male (log odds)")


def main():
    """Draw the three side by side."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    for draw, ax in zip((collected, published, trained), axes):
        draw(ax)
        ax.spines[["top", "right"]].set_visible(False)
    target = Path(__file__).parents[1] / "_static" / "overview.png"
    refuse_alike(figure, target.name)
    figure.savefig(target, dpi=110, metadata={"Software": None})
    print(f"{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
