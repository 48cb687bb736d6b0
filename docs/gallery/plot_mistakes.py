"""
Broken mechanisms, and what they really lose
============================================

A mechanism that adds noise looks the same whether it protects anybody or not. These were published, or are what one
writes first, and each was claimed to be private. `dpestim.audit.mistakes` compares every one of them with itself on
two neighbouring inputs, exactly or by quadrature, and finds a loss that is larger than the claim.

How to read an epsilon: whoever sees the output can shift their bets on which of two neighbours it came from by a
factor of e^epsilon at most. At 1 that is a factor of 2.7, at 6 one of 400. Infinite means that some output settles it.
"""

# sphinx_gallery_thumbnail_number = 4
import matplotlib.pyplot as plt
import numpy as np

from dpestim.audit import mistakes

gallery = mistakes()
BLUE, RED, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#666666"
END = 60  # where arrows to infinity begin

fig, axis = plt.subplots(figsize=(9.5, 7.2), layout="constrained", dpi=120)
for y, mistake in enumerate(gallery):
    claimed, found = mistake.claimed.epsilon, min(mistake.found.epsilon, END)
    axis.plot([claimed, found], [y, y], color=RED, lw=1)
    for name, x, marker, colour, size in (
        ("claimed", claimed, "o", BLUE, 5),
        ("found", found, "s" if found < END else ">", RED, 5),
        ("repaired", mistake.repaired.epsilon, "|", GREEN, 13),
    ):
        axis.plot(x, y, marker, color=colour, ms=size, mew=2 if marker == "|" else 1, label=name if y == 0 else None)
axis.set_xscale("symlog", linthresh=0.25, linscale=0.5)
axis.set_xlim(-0.03, 90)
axis.set_xticks([0, 0.5, 1, 2, 5, 10, 20, END], ["0", "0.5", "1", "2", "5", "10", "20", "infinite"])
axis.set_yticks(range(len(gallery)), [mistake.name for mistake in gallery])
axis.invert_yaxis()
axis.set_xlabel("epsilon, at the claimed delta")
axis.spines[["top", "right"]].set_visible(False)
axis.grid(axis="x", color="#eeeeee")
axis.set_axisbelow(True)
axis.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
plt.show()

# %%
# "Repaired" is the mechanism as it should be, which passes the same audit. Three of the entries claim a small delta
# besides epsilon. Of each pair of numbers here, the first is the least epsilon at the claimed delta, and the second the
# least delta at the claimed epsilon.

print(gallery)

# %%
# And why, and what to use instead:

import textwrap

for mistake in gallery:
    print(mistake.name)
    for name in ("source", "why", "instead"):
        print(textwrap.fill(getattr(mistake, name), 110, initial_indent=f"    {name:9}", subsequent_indent=" " * 13))

# %%
# The low bits of a float
# -----------------------
# Laplace noise is -log(u) with a random sign, for a uniform random number u. A computer has finitely many of them, and
# their logarithms are few among the numbers that it can represent. Here are 96 of these, all next to each other, near
# 0.3 and near 3: a mark where 0 plus noise can be that number, and where 1 plus noise can. Between 0.25 and 0.5 the
# second is always a multiple of 2^-53, while the first has one bit more. A single output that only one of them can be
# has told which it is.

from dpestim.audit.gallery.floats import lowest_bits, reaches, textbook_laplace

fig, axes = plt.subplots(2, 1, figsize=(9.5, 3.2), layout="constrained", dpi=120)
for axis, start in zip(axes, (0.3, 3.0)):
    numbers = start + np.spacing(start) * np.arange(96)
    for row, (answer, colour) in enumerate(((0.0, BLUE), (1.0, RED))):
        axis.plot(np.flatnonzero(reaches(answer, numbers)), np.full(reaches(answer, numbers).sum(), row), "|",
                  color=colour, ms=12, mew=2)
    axis.set(ylim=(1.6, -0.6), xlabel=f"{start:g} + this many steps of 2^{int(np.log2(np.spacing(start)))}")
    axis.set_yticks([0, 1], ["0 + noise", "1 + noise"])
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(left=False)
plt.show()

# %%
# How often does that happen? Of 20,000 outputs each:

rng = np.random.default_rng(0)
outputs = {answer: textbook_laplace(answer, 20_000, rng) for answer in (0.0, 1.0)}
for answer, values in outputs.items():
    print(f"{np.mean(~reaches(1 - answer, values)):.0%} of what {answer:g} became can only have been {answer:g}")

fig, axis = plt.subplots(figsize=(9.5, 3), layout="constrained", dpi=120)
for (answer, values), colour, shift in zip(outputs.items(), (BLUE, RED), (-0.2, 0.2)):
    bits, counts = np.unique(lowest_bits(values[(values > 0) & (values < 0.5)]), return_counts=True)
    axis.bar(bits + shift, counts / counts.sum(), 0.4, color=colour, label=f"{answer:g} + noise")
axis.set(xlabel="lowest bit of an output between 0 and 0.5", ylabel="share of outputs", xlim=(-62, -44))
axis.set_xticks(range(-61, -44, 2), [f"2^{k}" for k in range(-61, -44, 2)])
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()

# %%
# `LaplaceMechanism` adds an integer number of steps of a public grid. Every step is possible for every answer, so what
# it returns tells only how likely the answers are, and that is what epsilon bounds:

from dpestim.audit import exact_epsilon
from dpestim.central import LaplaceMechanism

ours = LaplaceMechanism(1.0, sensitivity=1.0)
values = np.array([ours.release(answer) for answer in [0.0, 1.0] * 500])
print(f"lowest bits of 1,000 outputs, 2^{lowest_bits(values[values != 0]).min()} or more; the step of the grid is "
      f"2^{int(np.log2(ours.law().step))}; epsilon {exact_epsilon(ours):g}, exactly")

# %%
# A formula beyond its condition
# ------------------------------
# The textbook's Gaussian noise has a standard deviation of sqrt(2 ln(1.25 / delta)) / epsilon, for an epsilon below 1.
# Nothing warns above it. To the left the delta that the noise for (10, 1e-5) really has, at every epsilon: at 10 it is
# more than twice what was asked for. To the right its real delta for every epsilon that one may ask for: it wastes most
# of the budget where epsilon is small, and breaks the promise above 8.4.

from dpestim.audit import hockey_stick
from dpestim.audit.gallery.central import analytic_sigma, classic_sigma, gaussians

EPSILON, DELTA = 10.0, 1e-5
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained", dpi=120)
asked = np.linspace(1, 12, 12)
for name, sigma, colour in (("textbook", classic_sigma, RED), ("analytic (GaussianMechanism)", analytic_sigma, GREEN)):
    laws = gaussians(sigma(EPSILON, DELTA))
    at = np.linspace(8, 12, 9)
    left.plot(at, [hockey_stick(*laws, epsilon) for epsilon in at], color=colour, label=name)
    right.plot(asked, [hockey_stick(*gaussians(sigma(epsilon, DELTA)), epsilon) for epsilon in asked], color=colour)
left.plot(EPSILON, DELTA, "o", color=BLUE, label="claimed")
right.axhline(DELTA, color=BLUE, lw=1)
left.set(yscale="log", xlabel="epsilon", ylabel="delta", title="noise for (10, 1e-5)")
right.set(yscale="log", xlabel="epsilon that is asked for", title="real delta where 1e-5 is asked for")
left.legend(frameon=False)
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Queries that were thought to be free
# ------------------------------------
# The sparse vector technique says which of many queries are above a threshold, and only those cost budget: as many
# "below" as one likes are free. The proof is short and easy to get wrong. Each of these claims an epsilon of 1.

from dpestim.audit import max_loss
from dpestim.audit.gallery.sparse import neighbours, noisy_value

numbers = np.arange(1, 21)
fig, axis = plt.subplots(figsize=(9.5, 3.6), layout="constrained", dpi=120)
for name, pairs, colour in (
    ("the compared value is released, after so many queries", [noisy_value(n) for n in numbers], RED),
    ("noise ignores that so many answers may be \"above\"", [neighbours(4, 4 / 3, 100, n) for n in numbers], BLUE),
    ("no cut-off, and so many answers are \"above\"", [neighbours(2, 2, 100, n) for n in numbers], GREY),
    ("as it should be, for so many answers \"above\"", [neighbours(2, 4 * n, 100, n) for n in numbers], GREEN),
):
    axis.plot(numbers, [max_loss(*pair) for pair in pairs], color=colour, label=name)
axis.set(yscale="log", xlabel="queries", ylabel="epsilon that is lost", xticks=[1, 5, 10, 15, 20], ylim=(0.4, 60))
axis.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="upper left", fontsize=9)
plt.show()

# %%
# What to learn:
#
# * Ask an auditor, not the noise. `exact_epsilon`, `exact_delta`, `hockey_stick` and `max_loss` answer for any law that
#   you can write down as probabilities or as a density.
# * Look for outputs that are impossible for one of two neighbours. They are where most of these break, and no amount of
#   noise repairs them.
# * A theorem has conditions. They are part of the mechanism.
