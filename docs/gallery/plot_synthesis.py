"""
===================================
Rows of nobody that say much of all
===================================

Synthetic rows are sampled from a model that was learnt with differential privacy: they may be published, and belong to
nobody. Here they stand for 12,579 pupils of a survey of the US (age, gender, grade, height, weight), and are held
against them twice: by tables of two columns, and by a classifier that has seen nothing but synthetic rows.
"""

# %%
# A model for each epsilon
# ------------------------
# Every column is declared: its categories, or its range and bins. A fourth of the pupils is held back.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from dpestim.datasets import load_yrbss
from dpestim.synthesis import MarginalSynthesizer

people = load_yrbss(as_frame=True).frame.astype({"gender": object, "grade": object})
order = np.random.default_rng(0).permutation(len(people))
test, train = people.iloc[order[:3000]], people.iloc[order[3000:]]
declared = {"categories": {"gender": ["female", "male"], "grade": ["9", "10", "11", "12", "other", None]},
            "bounds": {"height": (1.25, 2.15), "weight": (25.0, 185.0)},
            "bins": {"age": np.arange(12, 20), "height": 18, "weight": 16}}


def worth(rows):
    """Return how well gender is told from the rest, among those held back."""
    known = ["age", "height", "weight"]
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(rows[known], rows["gender"] == "male")
    return roc_auc_score(test["gender"] == "male", model.predict_proba(test[known])[:, 1])


epsilons, off, auc, models = [0.1, 0.3, 1.0, 3.0], {1: [], 2: []}, {1: [], 2: []}, {}
for epsilon in epsilons:
    for degree in (1, 2):
        model = MarginalSynthesizer(epsilon, delta=1e-6, degree=degree, random_state=0, **declared).fit(train)
        off[degree].append(model.workload_error(train, degree=2))
        auc[degree].append(worth(model.sample(random_state=0)))
        models[epsilon, degree] = model
    print(f"epsilon = {epsilon}: tables of two columns are {off[2][-1]:.3f} off, AUC {auc[2][-1]:.3f}")
real = worth(train)
print(f"trained on the pupils themselves: AUC {real:.3f}")

# %%
# Height by gender, real and synthetic
# ------------------------------------
# The model knows how tall girls and boys are because that table was measured; `degree=1` measures single columns only,
# and gives both the same heights.
made = models[1.0, 2].sample(random_state=0)
figure, panels = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True)
edges = models[1.0, 2].levels("height")
for panel, rows, name in zip(panels, (train, made), ("pupils", "synthetic rows, epsilon = 1")):
    for gender in ("female", "male"):
        panel.hist(rows.loc[rows["gender"] == gender, "height"], bins=edges, alpha=0.6, label=gender)
    panel.set(xlabel="height (m)", title=name)
panels[0].set_ylabel("rows")
panels[0].legend()
figure.tight_layout()

# %%
# What they are good for
# ----------------------
# Pairs cost budget. At the smallest epsilon there is little to choose between the two models; with more, only the one
# that measured pairs can teach a classifier anything.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
for degree, style, name in ((1, "s--", "independent columns"), (2, "o-", "pairs, where they are worth it")):
    left.plot(epsilons, off[degree], style, label=name)
    right.plot(epsilons, auc[degree], style, label=name)
right.axhline(real, color="grey", lw=1, label="the pupils themselves")
left.set(xscale="log", xlabel="epsilon", ylabel="total variation", ylim=(0, None), title="Tables of two columns")
right.set(xscale="log", xlabel="epsilon", ylabel="AUC", title="Trained on synthetic, tested on real")
right.legend()
figure.tight_layout()
