"""
What privacy will cost owners who learn together, before they begin
===================================================================

Three owners want one model, and none shows its rows: each answers with noisy gradients, for an epsilon of its own.
Noise costs the fit something. How much follows from sizes and budgets, which are public, and from how sharply the loss
bends, of which public rows tell. So it can be predicted, and owners can decide whether it is worth their while.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpestim.linear_model import DPFederatedLinearModel


def draw(n_rows, seed):
    """Return rows, targets and owners."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 4))
    return X, X[:, 0] + 0.5 * X[:, 1] > 0.5 * rng.standard_normal(n_rows), np.arange(n_rows) % 3


EPSILONS = np.array([0.1, 0.3, 1.0, 3.0])
public = draw(2_000, 1)[:2]
figure, ax = plt.subplots()
for n_rows, color in ((3_000, "C0"), (12_000, "C1")):
    X, y, owners = draw(n_rows, 0)
    predicted, measured = [], []
    for epsilon in EPSILONS:
        model = DPFederatedLinearModel([epsilon, epsilon, 2 * epsilon], delta=1e-6, data_norm=2.0, classes=[False,
                                                                                                            True])
        curvatures = model.pilot_curvatures(*public)
        predicted.append(model.predict_fitness_cost([n_rows // 3] * 3, n_features=4, curvatures=curvatures))
        losses = [model.set_params(random_state=seed).fit(X, y, owners).mean_loss(X, y) for seed in range(6)]
        quiet = DPFederatedLinearModel(80.0, delta=0.5, data_norm=2.0, classes=[False, True], n_steps=model.n_steps_)
        measured.append(np.mean(losses) - quiet.fit(X, y).mean_loss(X, y))
    ax.plot(EPSILONS, predicted, color=color, label=f"{n_rows:,} rows, predicted")
    ax.plot(EPSILONS, measured, "o", color=color, label=f"{n_rows:,} rows, measured")
ax.set(xscale="log", yscale="log", xlabel="epsilon of the first owner", ylabel="rise of the mean loss by noise")
ax.legend()
plt.show()

# %%
# Predictions are made before any training. Dots are means over six seeds; where a dot is missing noise has not raised
# the loss: a fit that has stopped early, because its noise is large, is not at the minimum, and noise may even help it.
# The rule for the number of steps sees the same public numbers, so that curves bend where it stops earlier.
