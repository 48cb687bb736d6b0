"""
What a search over epsilon reveals, and what it costs
=====================================================

The estimators work in scikit-learn's ``GridSearchCV``, and the obvious thing to search is ``epsilon``. The search draws
a curve; it does not choose, and its scores are not private. A ledger says what it spent.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from dpestim.accounting import BudgetExceededError, Ledger
from dpestim.datasets import load_us_military
from dpestim.local import OUEFrequencyEstimator

military = load_us_military()
column = military.feature_names.index("branch")
branch = military.data[:, [column]]
print(f"{len(branch):,} people, branches: {', '.join(military.categories['branch'])}")

# %%
# The rows of this table are sorted, so the folds are shuffled; else a fold would hold one branch only. The domain is
# declared. Inside ``with ledger:`` every fit is charged, in the workers of ``n_jobs=2`` too, because clones and pickles
# take the ledger along. ``error_score="raise"`` keeps an overdrawn budget from hiding as a missing score:
# scikit-learn's default turns any error of a fit into NaN and a warning. The seed makes this page reproducible; a
# survey has none.

ledger = Ledger(50.0)
search = GridSearchCV(
    OUEFrequencyEstimator(categories=[military.categories["branch"]], random_state=0),
    {"epsilon": [0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 6.0]},
    cv=KFold(3, shuffle=True, random_state=0),
    error_score="raise",
    refit=False,
    n_jobs=2,
)
with ledger:
    search.fit(branch)
print(ledger.report())

# %%
# By fold: each candidate is fitted once for each of the three splits, so the account has three entries at each epsilon.
# Every person is in two of the three training parts and so spent two thirds of the total. The ledger cannot know who is
# in which part, and states the safe number, the sum.

entries = ledger.to_frame()
releases = entries[entries["kind"] == "release"].copy()
releases["epsilon"] = releases["charged_epsilon"].astype(float)
releases["fold"] = releases.groupby("epsilon").cumcount()
print(releases.pivot(index="epsilon", columns="fold", values="epsilon").rename_axis(columns="spent by fold"))
print(f"sum: {float(ledger.spent().epsilon):g}; a person: {2 / 3 * float(ledger.spent().epsilon):g}")

# %%
# A smaller budget stops the search at the first fit that it cannot pay, before anything is drawn for it:

try:
    with Ledger(5.0) as small:
        clone(search).fit(branch)
except BudgetExceededError as error:
    print(f"BudgetExceededError: {error}")
print(f"spent: epsilon = {float(small.spent().epsilon):g}")

# %%
# ``score`` is minus the mean squared error against the plain frequencies of the held-out fold; its root is shown, in
# percentage points. The dashed line is what is left without privacy: the difference of the two parts' plain shares.

epsilons = np.array([setting["epsilon"] for setting in search.cv_results_["params"]])
folds = np.sqrt([-search.cv_results_[f"split{k}_test_score"] for k in range(3)])
mean = np.sqrt(-search.cv_results_["mean_test_score"])
splits = list(search.cv.split(branch))
shares = [[np.mean(branch[rows] == b) for b in military.categories["branch"]] for split in splits for rows in split]
floor = np.sqrt(np.mean([np.square(np.subtract(a, b)).mean() for a, b in zip(shares[::2], shares[1::2])]))

fig, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained", dpi=120)
ax.plot(epsilons, 100 * folds.T, "o", color="#8a8a8a", ms=4)
ax.plot(epsilons, 100 * mean, color="#0072b2", lw=2)
ax.annotate("mean of the folds", (epsilons[2], 100 * mean[2]), (8, 8), textcoords="offset points", color="#0072b2",
            weight="bold")
ax.axhline(100 * floor, color="black", lw=1, ls="--")
ax.annotate("without any privacy", (epsilons[0], 100 * floor), (0, 4), textcoords="offset points")
ax.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="error, percentage points")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.set_xticks([], minor=True)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

best = search.best_params_["epsilon"]
rank = "the largest" if best == epsilons.max() else "not the largest"
print(f"best_params_ says epsilon = {best:g}, {rank} on offer")

# %%
# What to learn:
#
# * More epsilon is less noise, so the largest epsilon nearly always wins (a smaller one wins by luck, where sampling
#   error hides the difference). How much privacy to give up is not a question that a score can answer.
# * The scores compare with raw data. They, ``cv_results_`` and ``best_params_`` are exact, unmetered releases and **not
#   private** (the ledger lists them, at epsilon 0 and flagged); here they may be shown because the data are public. On
#   private data draw the curve from theory, which needs no data: ``randomizers_[0].variance(n, f)``, as in
#   :doc:`plot_first_family`.
