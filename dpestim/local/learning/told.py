"""What a model in rounds tells everybody: all that a device needs to answer, and another server to go on."""

import numpy as np

from dpestim.local.estimates.mean import MeanEstimator
from dpestim.local.learning.gradients import Round


class Told:
    """Mixin of models in rounds: the public state of the open round as numbers, and a model with that state.

    All of it follows from reports, and so costs no privacy; a malicious server learns no more, whichever it sends.
    """

    def public_state(self):
        """Return the state of the open round, a dict of integers, floats, lists of floats, and None."""
        if self._round is None:
            raise ValueError("client must have an open round, because a survey is about one: call "
                             "next_round(n_features=...) first")
        if self._inferred():
            raise ValueError(f"client must declare {' and '.join(self._inferred())}, because a survey is public")
        centre = self._round.centre
        return {"number": int(self._round.number), "features": int(self.n_features_in_), "steps": int(self._n_steps),
                "centre": None if centre is None else np.asarray(centre, np.float64).tolist(),
                "weights": np.asarray(self._round.weights, np.float64).tolist(), "average": self._average.tolist()}

    def resume_at(self, state):
        """Open the round of a public state in this model, which has seen nothing; returns self.

        Raises ValueError for what is no state of this model.
        """
        if not isinstance(state, dict) or set(state) != {"number", "features", "steps", "centre", "weights", "average"}:
            raise ValueError("round must have number, features, steps, centre, weights and average")
        for name in ("number", "steps"):
            if isinstance(state[name], bool) or not isinstance(state[name], int) or not 0 <= state[name] < 1 << 32:
                raise ValueError(f"{name} of a round must be an integer from 0 to 2^32 - 1")
        self.next_round(n_features=state["features"])
        shape, wrong = self._average.shape, False
        try:
            weights, average = (np.asarray(state[name], np.float64) for name in ("weights", "average"))
            centre = None if state["centre"] is None else np.asarray(state["centre"], np.float64)
        except (ValueError, TypeError):
            wrong = True
        if wrong or weights.shape != shape or average.shape != shape or not (
                np.isfinite(weights).all() and np.isfinite(average).all()):
            raise ValueError(f"weights and average of a round must be numbers of shape {shape}")
        if centre is not None and (centre.shape not in ((), (self.n_features_in_,)) or not np.isfinite(centre).all()):
            raise ValueError(f"centre of a round must be {self.n_features_in_} numbers, one number or null")
        centre = centre if centre is None or centre.ndim else float(centre)
        self._round, self._average, self._n_steps = Round(state["number"], weights, centre), average, state["steps"]
        return self

    def _take_counts(self, counts, n, n_batches, names):
        """Be as if the open round had n reports, which were checked and counted elsewhere; returns self."""
        self._group = MeanEstimator(self.transformer_)._take_counts(counts, n, n_batches, names)
        self._made = self._promised(elsewhere=True)
        return self
