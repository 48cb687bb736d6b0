"""
The SDLDP paper, done again
===========================

Some values are nobody's secret. A mechanism that is told which ones adds less noise, and the paper behind
`SDGRRFrequencyEstimator` and `SDPMTransformer` makes claims about how much that gains, and what it costs. This page
does its experiments again through dpestim, figure by figure, and ends with a table of what became of each claim.

.. epigraph::

   Y. Chen, Y. Ye, M. Zhang, B. Shu, "SDLDP: A Local Differential Private Framework for Multi-level Sensitive Data",
   DOI 10.19363/J.cnki.cn10-1380/tn.2025.07.10

Five surveys stand behind every point (the paper has ten); bars are 95 % intervals of their mean. More of them, and
all rows as JSON, come from ``python -m benchmarks.reproduce_sdldp`` at the top level of the repository, where this
page must be built, too. Data that dpestim may not ship are taken from beside the repository where they are (UCI
Adult; heights and weights of SOCR), else shipped ones stand in for them: what is printed first says which.
"""

import itertools

import matplotlib.pyplot as plt

from benchmarks import sdldp
from benchmarks.reproduce_sdldp import run
from benchmarks.sdldp import data, figures
from benchmarks.sdldp.claims import judge

results = run(data.load(), 5, itertools.count(), say=lambda text: print(text.split(" rows")[0]))

# %%
# What is the paper's, and what was chosen where it leaves something open:

print(sdldp.__doc__.split("Files:")[0])

# %%
# Frequencies: the variance (Figure 2)
# ------------------------------------
# A low value reports itself, or a high one as often as anybody would. Its frequency is estimated by subtracting what
# high values added to its count. How much that is is itself an estimate, and equation (12) of the paper leaves out its
# variance. Solid lines are the exact variance, which measurements follow; dotted ones are the paper's.

figures.figure_2(results["variances of frequencies"])
plt.show()

# %%
# Frequencies: the errors (Figures 5 and 6)
# -----------------------------------------
# Lines are exact, from each law's own variance, where they do not just join points. Over all values each step, from GRR
# to SDGRR and from SDGRR to URR, gains a factor near that of the number of values over that of the high ones.
# Personalised users choose 25, 50 or 75 % of the values as high, whatever their own is; how groups are weighted decides
# what that costs. (The table at the end says what becomes of both weights where users choose by their own value.)

figures.figure_5(results["frequencies"])
plt.show()

# %%

figures.figure_6(results["frequencies"])
plt.show()

# %%
# Numbers: variance and bias of a report (Figure 4)
# -------------------------------------------------
# The variance of a low value's report is a little below that of the piecewise mechanism (PM), as the paper says. But
# its mean is not the value, so that plain means of such reports estimate nothing, at any number of users.

figures.figure_4(results["variances of reports"])
plt.show()

# %%
# Numbers: the errors of means (Figures 7 and 8)
# ----------------------------------------------
# The paper estimates the mean under PM by that of the reports, and under SDPM by expectation maximisation (EM). Two
# lines need no mechanism at all: the centre of the bounds, as the answer to everything, and a plain mean over as many
# low users as reveal themselves under SDPM.

figures.figure_7(results["means"])
plt.show()

# %%

figures.figure_8(results["means"])
plt.show()

# %%
# Whose gain is it, the mechanism's, that of EM, or that of data which lie where EM starts? The same reports, read by
# several estimators, on the same data in three places: in the centre of the bounds, and at one side of them, where the
# low interval stays in the middle or moves along. The last of the estimators is `DistributionEstimator` as it comes,
# without the paper's early stop, for both mechanisms: where it keeps a gain far from the centre, that gain is neither
# the stop's nor the centre's. The table at the end says how large it is in this run.

figures.whose_gain(results["whose gain"])
plt.show()

# %%
# Attacks (Figure 9)
# ------------------
# How often an adversary without other knowledge guesses the value of somebody right who holds a high one
# (`BayesianAdversary`). SDGRR is as good as GRR here, and all its lines are the same. The dashed line is an adversary
# who knows that the value is a high one, as a URR report of a sensitive value says by itself.

figures.figure_9(results["frequencies"])
plt.show()

# %%
# Who can be told from whom
# -------------------------
# High values are protected from each other. Between a low value and a high one nothing is promised, and the left
# picture shows what that means: given one of each, a single report tells them apart more often than plain local privacy
# of this epsilon allows (the black line). With numbers that is hardly so. But the continuous form of SDPM, which is the
# paper's, reports low values as they are, so that whoever reads one is right every time (the right picture). Cells that
# high values report too leave room for doubt, the more the fewer they are.

figures.told_apart(results["low or high"], results["low or high numbers"])
plt.show()

# %%
# What became of the claims
# -------------------------
# Every number in this table is one of the run above. A claim of so many orders of magnitude holds where all factors
# reach three quarters of them (on a logarithmic scale), and in part where some reach half of them.

judge(results)
