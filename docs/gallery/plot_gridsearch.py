"""
What a search over epsilon reveals, and what it costs
=====================================================

The estimators work in scikit-learn's displays and searches, and the obvious thing to vary is ``epsilon``. That draws a
curve; it does not choose, and its scores are not private. A ledger says what it spent.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV, ValidationCurveDisplay

from dpestim.accounting import BudgetExceededError, Ledger
from dpestim.datasets import load_us_military
from dpestim.local import OUEFrequencyEstimator

EPSILONS = [0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 6.0]
military = load_us_military(as_frame=True)
people = military.frame[["branch"]].sample(100_000, random_state=0)
survey = OUEFrequencyEstimator(categories={"branch": military.categories["branch"]})
with Ledger(50.0) as ledger:
    ValidationCurveDisplay.from_estimator(
        survey, people, None, param_name="epsilon", param_range=EPSILONS, cv=3, error_score="raise", negate_score=True,
        score_name="mean squared error",
    ).ax_.set_yscale("log")
plt.show()

# %%
# The score is the mean squared error against the plain frequencies of the part that it is given: that which the survey
# was taken in ("Train"), where only the noise counts, and the fold that was held out ("Test"), where the difference of
# the two parts is added, which no epsilon takes away. The band is a standard deviation over the three folds.
#
# The rows of this table are sorted, and taking a sample has shuffled them; else a fold would hold one branch only. The
# domain is declared.
#
# Inside ``with ledger:`` every fit is charged, because clones take the ledger along, into worker processes too.
# ``error_score="raise"`` keeps an overdrawn budget from hiding as a missing score: scikit-learn's default turns any
# error of a fit into NaN and a warning.

print(ledger.report())

# %%
# By fold: at each epsilon one fit for each of the three splits, so the account has three entries. Every person is in
# two of the three training parts and so spent two thirds of the total. The ledger cannot know who is in which part, and
# states the safe number, the sum.

entries = ledger.to_frame()
releases = entries[entries["kind"] == "release"].copy()
releases["epsilon"] = releases["charged_epsilon"].astype(float)
releases["fold"] = releases.groupby("epsilon").cumcount()
print(releases.pivot(index="epsilon", columns="fold", values="epsilon").rename_axis(columns="spent by fold"))
print(f"sum: {float(ledger.spent().epsilon):g}; a person: {2 / 3 * float(ledger.spent().epsilon):g}")

# %%
# ``GridSearchCV`` does the same, and names a winner. A smaller budget stops it at the first fit that it cannot pay,
# before anything is drawn for it:

search = GridSearchCV(survey, {"epsilon": EPSILONS}, cv=3, error_score="raise", refit=False)
for budget in (5.0, 50.0):
    try:
        with Ledger(budget) as ledger:
            search.fit(people)
    except BudgetExceededError as error:
        print(f"BudgetExceededError: {error}")
    print(f"spent of {budget:g}: {float(ledger.spent().epsilon):g}")

best = search.best_params_["epsilon"]
rank = "the largest" if best == max(EPSILONS) else "not the largest"
print(f"best_params_ says epsilon = {best:g}, {rank} on offer")

# %%
# What to learn:
#
# * More epsilon is less noise, so the largest epsilon nearly always wins (a smaller one wins by luck, where sampling
#   error hides the difference). How much privacy to give up is not a question that a score can answer.
# * The scores compare with raw data. They, ``cv_results_`` and ``best_params_`` are exact, unmetered releases and **not
#   private** (the ledger lists them, at epsilon 0 and flagged); here they may be shown because the data are public. On
#   private data draw the curve from theory, which needs no data: ``randomizer().variance(n, f)``, as in
#   :doc:`plot_first_family`.
# * Other parameters than epsilon can be chosen privately, by :class:`dpestim.model_selection.PrivateSearchCV`.
