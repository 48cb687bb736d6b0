"""A private model in a pipeline, its curve over epsilon, and the account of everything that was spent.

Who of 12,579 teenagers is male, from age, height and weight: scaling to public bounds and logistic regression in one
scikit-learn pipeline, fitted under a budget. Run it from anywhere::

    python examples/yrbss_model.py --output demo-output

It prints the account, writes a picture, and puts a section into the report of examples/us_military.py. Needs pandas
and matplotlib: dpestim[examples].
"""

import argparse
import html
import math
import os
import textwrap
from pathlib import Path

import _report
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from dpestim.accounting import Ledger
from dpestim.datasets import load_yrbss
from dpestim.exceptions import BudgetExceededError
from dpestim.linear_model import DPLogisticRegression
from dpestim.preprocessing import DomainEncoder

COLUMNS = ["age", "height", "weight"]
DOMAIN = load_yrbss().domain[COLUMNS]  # public: years, metres, kilograms of teenagers
EPSILONS = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
RUNS = 20


def say(text):
    print(textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False, replace_whitespace=False))


def pipeline(model):
    return make_pipeline(DomainEncoder(DOMAIN), model)  # each column to [-1, 1]: it costs nothing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder to write to (%(default)s)")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)

    frame = load_yrbss(as_frame=True).frame
    X, T, y, truth = train_test_split(
        frame[COLUMNS], frame["gender"] == "male", test_size=0.3, random_state=0, stratify=frame["gender"]
    )
    private = DPLogisticRegression(1.0, domain=DOMAIN, classes=[False, True])
    print(f"{len(X):,} teenagers to learn from, {len(T):,} to try it on; columns {', '.join(COLUMNS)}")

    # ---- One release under a budget of 1: the first fit takes all of it, a second one is refused and costs nothing.
    with Ledger(1.0) as ledger:
        model = pipeline(private).fit(X, y)
        say(f"\nOne fit: {model[-1].privacy_}")
        try:
            pipeline(private).fit(X, y)
        except BudgetExceededError as error:
            say(f"A second fit: {error}")
        accuracy = model.score(T, truth)  # compares with raw data: entered at epsilon 0, flagged
    print(f"It is right about {100 * accuracy:.1f} % of the others. coef_ {model[-1].coef_.round(2).tolist()}\n")
    print(ledger.report())

    # ---- The curve. Every point is RUNS fits, each of which spends its epsilon: a study, not a release. Such a ledger
    # refuses nothing and keeps accounts.
    study, curves = Ledger(math.inf, delta=0.5, durability="fast"), {}
    with study:
        for name, params in {"objective perturbation": {}, "output perturbation": {"perturbation": "output"}}.items():
            curves[name] = np.array([
                [roc_auc_score(truth, pipeline(private).set_params(
                    dplogisticregression__epsilon=epsilon,
                    **{f"dplogisticregression__{key}": value for key, value in params.items()},
                ).fit(X, y).decision_function(T)) for _ in range(RUNS)]
                for epsilon in EPSILONS
            ])
    plain = roc_auc_score(truth, pipeline(LogisticRegression(C=1e4)).fit(X, y).decision_function(T))
    print(f"\nArea under the ROC curve, mean of {RUNS} fits (without privacy {plain:.3f}):")
    print(f"{'epsilon':>24}" + "".join(f"{e:>8g}" for e in EPSILONS))
    for name, aucs in curves.items():
        print(f"{name:>24}" + "".join(f"{a:>8.3f}" for a in aucs.mean(axis=1)))
    spent = study.spent()
    print(f"\nThe curve took {len(study)} fits. Had they all been published, they would have cost an epsilon of "
          f"{float(spent.epsilon):g}:\na curve over epsilon is for data that are public, or for deciding in advance.")

    picture = draw(curves, plain)
    _report.write_whole(output / "model.png", picture)
    text = section(model[-1], accuracy, ledger, study, picture, len(X), len(T))
    page = _report.put_section(output / "report.html", "model", text)
    print("\nWritten:")
    for path in (output / "model.png", page):
        print(f"  {os.path.relpath(path)}")


def section(model, accuracy, ledger, study, picture, n, n_others):
    """Return the section of the report."""
    return f"""<h2>A model: who is male, of {n:,} teenagers</h2>
<p>Logistic regression by objective perturbation, in a scikit-learn pipeline: age, height and weight are mapped from
public bounds into the unit ball, the classes are declared. At epsilon {float(model.privacy_.epsilon):g} it is right
about {100 * accuracy:.1f}&nbsp;% of {n_others:,} others. In its own words:</p>
<blockquote><p>{html.escape(str(model.privacy_))}</p></blockquote>
{_report._picture(picture, "Area under the ROC curve against epsilon, with the model without privacy")}
<p>The curve took {len(study)} fits, which would have cost an epsilon of {float(study.spent().epsilon):g} had they all
been published. The one fit above was paid by a ledger opened with a budget of 1, which refused a second:</p>
{ledger.report("html")}
<p>Source: Centers for Disease Control and Prevention, Youth Risk Behavior Surveillance System, through the openintro
collection (data set <code>yrbss</code>). Made by <code>examples/yrbss_model.py</code>.</p>

"""


def draw(curves, plain):
    """Return a PNG: AUC against epsilon, the middle eight tenths of the fits shaded."""
    import io

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    ax.axhline(plain, color="0.45", linestyle=":", linewidth=1.2)
    ax.text(EPSILONS[0], plain, "without privacy ", va="bottom", ha="left", color="0.35", fontsize=9)
    for (name, aucs), colour in zip(curves.items(), ("#0b6e99", "#c2571a")):
        low, high = np.quantile(aucs, [0.1, 0.9], axis=1)
        ax.fill_between(EPSILONS, low, high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(EPSILONS, aucs.mean(axis=1), "o-", color=colour, markersize=4, linewidth=1.5, label=name)
    ax.set(xscale="log", xlabel="epsilon of the fit", ylabel="area under the ROC curve, rows not seen",
           title="Sex from age, height and weight under differential privacy")
    ax.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    ax.minorticks_off()
    ax.grid(axis="y", color="#eeeeee")
    ax.legend(frameon=False, loc="lower right")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=140)
    return buffer.getvalue()


if __name__ == "__main__":
    main()
