"""
======================================
Curves that may be published: boosting
======================================

An additive model adds up one curve for each column, so that all it knows can be looked at. Here it tells the sex of
12,579 teenagers from age, height and weight, with an epsilon of 1 for all curves together, and for less.
"""

# %%
# The curves
# ----------
# Ranges of the columns are public knowledge about teenagers. All that is drawn is made of noisy sums: it may be
# published, and the bands, which hold the noise alone, are part of what is known.
# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt

from dpestim.datasets import load_yrbss
from dpestim.ensemble import DPGradientBoostingClassifier
from dpestim.inspection import ShapeFunctionDisplay

frame = load_yrbss(as_frame=True).frame
X, y = frame[["age", "height", "weight"]].astype(float), frame["gender"].astype(str)
public = {"delta": 1e-6, "bounds": ([12, 1.2, 25], [18, 2.2, 200]), "classes": ["female", "male"]}
model = DPGradientBoostingClassifier(1.0, **public, random_state=0).fit(X, y)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.5), sharey=True)
for term, ax in enumerate(axes):
    ShapeFunctionDisplay.from_estimator(model, term, ax=ax)
figure.tight_layout()
print(model.privacy_)

# %%
# What less epsilon costs
# -----------------------
# With more noise a column goes into fewer bins, and its curve stays nearer to 0: little is claimed where little is
# seen. (How well the model tells these very people is not private; it is shown to see what noise does.)
figure, axes = plt.subplots(figsize=(7, 4))
for epsilon in (0.1, 0.5, 2.0):
    other = DPGradientBoostingClassifier(epsilon, **public, random_state=0).fit(X, y)
    name = f"epsilon {epsilon:g}: {other.score(X, y):.3f} right"
    ShapeFunctionDisplay.from_estimator(other, 1, ax=axes, label=name)
axes.legend()
figure.tight_layout()
