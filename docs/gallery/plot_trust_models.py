"""
Three models of trust: the same mean, the same histogram
========================================================

Who must be trusted, and what does it cost? In the **local** model nobody: users' own devices randomise. In the
**shuffle** model a shuffler, which forgets who sent which message. In the **central** model whoever holds the data.
These are errors over the number n of users, measured, at one epsilon, beside the powers of n that theory has: the root
of n for local reports, its sixth root for one shuffled message a user, none for several, none for a central release.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpestim.datasets import load_us_military, load_yrbss
from dpestim.local import DuchiTransformer, GRRFrequencyEstimator, MeanEstimator
from dpestim.shuffle import RealSum, ShuffledEstimator, ShuffledHistogram
from dpestim.statistics import Histogram, Sum

EPSILON, DELTA, REPEATS = 1.0, 1e-6, 20
SIZES = [1000, 10_000, 100_000, 1_000_000]
COLORS = {"local": "#d55e00", "shuffle": "#0072b2", "central": "#009e73"}
rng = np.random.default_rng(0)


def show(axis, measured, what):
    """Draw errors over n, and theory's powers of n through the first point of each."""
    for ((name, model, power), errors), mark in zip(measured.items(), "osDv^"):
        axis.loglog(SIZES, errors, mark + "-", color=COLORS[model], ms=5, lw=1, label=name)
        if power is not None:
            axis.loglog(SIZES, errors[0] * (np.array(SIZES) / SIZES[0]) ** power, ":", color="black", lw=1)
    axis.set(xlabel="users", ylabel=what)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=7)


def root_mean_square(run, truth):
    return float(np.sqrt(np.mean([(run(seed) - truth) ** 2 for seed in range(REPEATS)])))


# %%
# A sum of numbers
# ----------------
# How much all teenagers weigh together, in units of the public range of 175 kg: the sum of n numbers between 0 and 1.
# (There are 12,579 of them; more users are drawn from these again.)

BOUNDS = (25, 200)
weights = load_yrbss(as_frame=True).frame["weight"].to_numpy().clip(*BOUNDS)
local = MeanEstimator(DuchiTransformer(EPSILON, bounds=BOUNDS))
protocols = {name: RealSum(EPSILON, delta=DELTA, bounds=BOUNDS, protocol=name) for name in
             ("balle", "recursive", "ikos")}
central = Sum(EPSILON, bounds=BOUNDS)

measured = {("local (Duchi)", "local", 0.5): [], ("shuffle, one message", "shuffle", 1 / 6): [],
            ("shuffle, a few messages", "shuffle", None): [], ("shuffle, split and mix", "shuffle", 0): [],
            ("central", "central", 0): []}
for n in SIZES:
    X = rng.choice(weights, (n, 1))
    truth, unit = X.sum(), BOUNDS[1] - BOUNDS[0]
    runs = [lambda seed, X=X, n=n: n * local.set_params(transformer__random_state=seed).fit(X).mean_[0]]
    runs += [lambda seed, X=X, p=p: p.set_params(random_state=seed).fit(X).sum_[0] for p in protocols.values()]
    runs += [lambda seed, X=X: central.set_params(random_state=seed).fit(X).value_]
    for errors, run in zip(measured.values(), runs):
        errors.append(root_mean_square(run, truth) / unit)

fig, axis = plt.subplots(figsize=(6, 4), layout="constrained", dpi=120)
show(axis, measured, "error of the sum, in ranges")
plt.show()
for (name, *_), errors in measured.items():
    print(f"{name:26}", "".join(f"{error:10.1f}" for error in errors))

# %%
# A histogram
# -----------
# How many of n people serve in each branch and grade: the error of a count, on average over twelve cells.

frame = load_us_military(as_frame=True).frame
codes = frame["branch"].cat.codes.to_numpy(int) * 3 + frame["grade"].cat.codes.to_numpy(int)
cells = list(range(12))
counters = {
    ("local (GRR)", "local", 0.5): GRRFrequencyEstimator(EPSILON, categories=[cells]),
    ("shuffle, one message", "shuffle", None): ShuffledEstimator(
        GRRFrequencyEstimator(categories=[cells]), epsilon=EPSILON, delta=DELTA),
    ("shuffle, fake messages", "shuffle", 0): ShuffledHistogram(EPSILON, delta=DELTA, categories=[cells]),
}
measured = {key: [] for key in (*counters, ("central", "central", 0))}
for n in SIZES:
    drawn = rng.choice(codes, n)
    X, truth = drawn.reshape(-1, 1), np.bincount(drawn, minlength=len(cells))
    for key, counter in counters.items():
        seed_of = "estimator__random_state" if isinstance(counter, ShuffledEstimator) else "random_state"
        found = [n * counter.set_params(**{seed_of: seed}).fit(X).frequencies_[0] for seed in range(REPEATS // 4)]
        measured[key].append(float(np.sqrt(np.mean((np.array(found) - truth) ** 2))))
    table = Histogram(EPSILON, bins=np.arange(len(cells) + 1) - 0.5)
    found = [table.set_params(random_state=seed).fit(drawn).value_ for seed in range(REPEATS)]
    measured["central", "central", 0].append(float(np.sqrt(np.mean((np.array(found) - truth) ** 2))))

fig, axis = plt.subplots(figsize=(6, 4), layout="constrained", dpi=120)
show(axis, measured, "error of a count, in people")
plt.show()
for (name, *_), errors in measured.items():
    print(f"{name:26}", "".join(f"{error:10.1f}" for error in errors))

# %%
# What to learn:
#
# * The lines are theory's: only where they start was measured. Published tables that put an error of n^(1/3) for one
#   shuffled message beside the root of n for local reports set a *mean squared* error beside a root: it is n^(1/6).
# * Several messages a user buy an error that does not grow, close to the central one, from users who trust nobody with
#   their values; but they protect nobody from a shuffler that lies (`privacy_` says what is left then).
# * Delta is one in a million in the shuffle model and 0 in the two others.
