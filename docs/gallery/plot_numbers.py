"""
Numbers: a distribution, bias, and a value that gives itself away
=================================================================

The weights of 12,579 teenagers in kilograms, as they left their devices: each a noisy number. The distribution is
estimated from the reports alone; the band is a 95 % interval.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt

from dpestim.datasets import load_yrbss
from dpestim.inspection import DistributionDisplay
from dpestim.local import DistributionEstimator, MeanEstimator, PMTransformer, SDPMTransformer

weights = load_yrbss(as_frame=True).frame[["weight"]].dropna()
noisy = PMTransformer(4.0, bounds={"weight": (25.0, 200.0)})
DistributionDisplay.from_estimator(DistributionEstimator(noisy).fit(weights))
plt.show()

# %%
# Two budgets on the same axes, beside what the people really weigh, which no survey knows. How smooth an estimate is
# the reports choose.

import numpy as np

shares, edges = np.histogram(weights["weight"], 35, range=(25, 200))
truth = DistributionDisplay(distribution=shares / len(weights), bin_edges=edges, label="truth").plot(color="black")
for epsilon in (1.0, 4.0):
    estimator = DistributionEstimator(PMTransformer(epsilon, bounds=(25.0, 200.0))).fit(weights)
    DistributionDisplay.from_estimator(estimator, label=f"epsilon = {epsilon:g}", ax=truth.ax_)
plt.show()

# %%
# Bias and variance of a report
# -----------------------------
# What reports of one number look like, for every input from -1 to 1, beside theory: the piecewise mechanism
# (`PMTransformer`) and its sensitivity-aware sibling (`SDPMTransformer`), for which the values from -0.4 to 0.4 are
# declared low. Two things that the paper of the latter passes over become visible: the mean of its reports is biased,
# and its continuous form reveals low values.

EPSILON, LOW, USERS = 2.0, (-0.4, 0.4), 20_000
x = np.linspace(-1, 1, 81)
BLUE, RED = "#0072b2", "#d55e00"

pm = PMTransformer(EPSILON, bounds=(-1.0, 1.0), random_state=0)
sdpm = SDPMTransformer(EPSILON, bounds=(-1.0, 1.0), low_sensitivity=LOW, n_cells=16, random_state=0)
inputs = np.repeat(x, USERS).reshape(-1, 1)
reports = {name: t.fit(inputs).transform(inputs).reshape(len(x), USERS) for name, t in (("PM", pm), ("SDPM", sdpm))}

# %%
# Theory, for continuous outputs: PM is unbiased, and with s = e^(epsilon / 2) its variance is
# x^2 / (s - 1) + (s + 3) / (3 (s - 1)^2). An SDPM report of a low value is that value with probability p', else
# anything high: its mean is p' x. Points are means and variances of 20,000 reports each; nothing was fitted.

s = np.exp(EPSILON / 2)
C, E = (s + 1) / (s - 1), np.exp(EPSILON)
p = (E - s) / (2 * s + 2)
width = LOW[1] - LOW[0]
own = 1 - (2 * C - width) * p / E
is_low = np.abs(x) <= LOW[1]
pm_variance = x**2 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
low_variance = own * x**2 + p / E * (2 * C**3 - 2 * LOW[1] ** 3) / 3 - (own * x) ** 2

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained", dpi=120)
for axis in (left, right):
    axis.axvspan(*LOW, color="#f2f2f2")
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_xlabel("value x")
left.plot(x, 0 * x, color=BLUE)
left.plot(x[is_low], (own - 1) * x[is_low], color=RED)
right.plot(x, pm_variance, color=BLUE)
right.plot(x[is_low], low_variance[is_low], color=RED)
for (name, seen), colour, marker in zip(reports.items(), (BLUE, RED), "os"):
    left.plot(x, seen.mean(axis=1) - x, marker, color=colour, ms=3, label=name)
    right.plot(x, seen.var(axis=1), marker, color=colour, ms=3, label=name)
left.set(title="mean of reports minus x", ylim=(-0.35, 0.35))
right.set(title="variance of reports", ylim=(0, None))
left.annotate("low values", (0, 0.32), ha="center", color="#666666")
left.legend(frameon=False, loc="lower right")
plt.show()

worst = np.abs(reports["PM"].mean(axis=1) - x) / np.sqrt(pm_variance / USERS)
print(f"PM: {np.mean(worst < 1.96):.0%} of {len(x)} means lie within 1.96 standard errors of x")

# %%
# So the plain mean of SDPM reports is wrong, towards zero, for whoever is low. (Outside, it is a little off as well:
# cells stand for all outputs that they take in.) `MeanEstimator` gives each code another number, found from the law,
# whose mean *is* the input:

people = np.random.default_rng(1).normal(0.3, 0.15, (200_000, 1))
estimator = MeanEstimator(sdpm).fit(people)
(low, high), plain = estimator.confidence_interval(0.95)[0], sdpm.fit(people).transform(people).mean()
print(f"truth {people.clip(-1, 1).mean():.4f}, plain mean of reports {plain:.4f}, estimate {estimator.mean_[0]:.4f} "
      f"({low:.4f} to {high:.4f})")

# %%
# The paper's continuous form reports a low value as it is. Here 20,000 people whose value is 0.2, and 20,000 whose
# value is 0.7, report. What high values send into the same bar lies near 0.2, but never is the value itself (it has a
# code of its own here; on real numbers nobody's noise hits it): who sends it has said it. In the discretised form high
# values land in the same cells, so that a report leaves room for doubt: how much is stated.

fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.6), sharey=True, layout="constrained", dpi=120)
for axis, form in zip(axes, ("continuous", "discretised")):
    t = SDPMTransformer(EPSILON, bounds=(-1.0, 1.0), low_sensitivity=LOW, n_cells=5, form=form, random_state=0)
    edges = np.linspace(-2.225, 2.225, 90)
    for value, colour in ((0.2, RED), (0.7, BLUE)):
        same = np.full((USERS, 1), value)
        axis.hist(t.fit(same).transform(same)[:, 0], edges, histtype="step", color=colour, lw=1.4, label=f"x = {value}")
    promised = t.guarantee_by_input_[0]
    axis.set(title=f"{form}: that a value is low, epsilon {float(promised['low-high']):.3g}", xlabel="report")
    axis.set_yscale("log")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("people")
axes[0].legend(frameon=False)
plt.show()
print(t.privacy_)

# %%
# What to learn:
#
# * The reports of PM may be averaged as they are. Those of SDPM may not.
# * With more than one cell SDPM is no local differential privacy, in either form: which cell a low value lies in is not
#   protected. ``privacy_.epsilon`` is therefore infinite, and its notes say what is protected.
# * A value that is sent exactly is recognised, however rarely it is sent.
