"""
What malicious users can make of a survey
=========================================

A report of local privacy is noisy, and the estimate multiplies what reports say. Whoever sends a report that no honest
client would send so often has it multiplied, too. `dpestim.audit.poisoning` computes the worst gain from the laws.
"""

# %%
# Gains over the share of malicious users
# ---------------------------------------
# The goal is one value of 100 that nobody holds. Malicious users either lie and follow the law (input), which gains
# their share under each law, or send the report that serves them best (output).
import matplotlib.pyplot as plt
import numpy as np

from dpestim.audit import poisoning
from dpestim.local import (
    GRRFrequencyEstimator,
    HRFrequencyEstimator,
    OLHFrequencyEstimator,
    OUEFrequencyEstimator,
    SSFrequencyEstimator,
    SUEFrequencyEstimator,
)

makers = {"GRR": GRRFrequencyEstimator, "SUE": SUEFrequencyEstimator, "OLH": OLHFrequencyEstimator,
          "OUE": OUEFrequencyEstimator, "SS": SSFrequencyEstimator, "HR": HRFrequencyEstimator}
surveys = {name: make(1.0, categories=[range(100)]) for name, make in makers.items()}
shares = np.geomspace(0.001, 0.1, 9)
gains = poisoning(surveys, shares, goal=7)

fig, axis = plt.subplots(figsize=(9, 4.6), layout="constrained", dpi=120)
gains.plot(axis)
axis.set(xscale="log", yscale="log")
axis.legend(frameon=False, fontsize=8, ncols=2)
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Privacy and robustness pull apart
# ---------------------------------
# The smaller epsilon is, the more a malicious report counts. With ten goals, and an epsilon above 2, the mechanisms
# whose reports may support all ten (OUE, SUE, OLH) give malicious users more than randomised response does.

epsilons = np.geomspace(0.25, 4, 9)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", dpi=120, sharey=True)
for axis, goal in zip(axes, (7, list(range(10)))):
    for (name, make), marker in zip(makers.items(), "osv^Dx"):
        worst = [float(poisoning(make(e, categories=[range(100)]), 0.01, goal).worst()) for e in epsilons.tolist()]
        axis.plot(epsilons, worst, marker=marker, markersize=4, label=name)
    axis.axhline(0.01, color="#999999", linestyle=":", label="input poisoning")
    axis.set(xscale="log", yscale="log", xlabel="epsilon", title="ten goals" if isinstance(goal, list) else "one goal")
    axis.set_xticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
    axis.minorticks_off()
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("gain of 1 % malicious users")
axes[0].legend(frameon=False, fontsize=8)
plt.show()

# %%
# What a server can find
# ----------------------
# Under OUE the number of ones in a report has one distribution for every value. Here 1 % of 10,000 users set one bit
# alone; others add 26 bits at random, as many as an honest report has on average.

rng = np.random.default_rng(0)
server = OUEFrequencyEstimator(1.0, categories=[range(100)])
honest = np.array(server.privatize(rng.choice(100, (10_000, 1))))
alone, padded = honest.copy(), honest.copy()
alone[:100] = np.packbits(np.eye(100, dtype=np.uint8)[7], bitorder="little")
for report in padded[:100]:
    bits = np.zeros(100, np.uint8)
    bits[rng.choice(100, 26, replace=False)] = 1
    bits[7] = 1
    report[:] = np.packbits(bits, bitorder="little")
for name, reports in (("honest", honest), ("one bit alone", alone), ("26 bits more", padded)):
    found = server.detect_poisoning(reports)
    print(f"{name:14} p value {found.p_value:.2g}, alarm: {found.suspicious}")

# %%
# At an alpha of 0.001 honest users cause an alarm once in a thousand tests at most, for any values that they hold.
# Reports that have an honest number of ones are hard to find while they are few: ask for less from the data of
# strangers than the error bar promises, and compare with what is known.
