"""Synthesizers that are broken: rows that cost, wander or repeat; answers that are none."""

import numpy as np

from dpestim.synthesis import MarginalSynthesizer, MultiplicativeWeights

ONE, TWO = MarginalSynthesizer._test_params()
PURE = MultiplicativeWeights._test_params()[0]


class Charges(MarginalSynthesizer):
    """Charges for rows."""

    def sample(self, n_rows=None, random_state=None):
        self._charge(self.privacy_, n_rows)
        return super().sample(n_rows, random_state)


class Wanders(MultiplicativeWeights):
    """Rows leave the declared range."""

    def sample(self, n_rows=None, random_state=None):
        return 2 * super().sample(n_rows, random_state)


class Invents(MarginalSynthesizer):
    """Categories that nobody declared."""

    def sample(self, n_rows=None, random_state=None):
        return super().sample(n_rows, random_state) + 0.5


class Repeats(MarginalSynthesizer):
    """The same rows whatever the seed."""

    def sample(self, n_rows=None, random_state=None):
        return super().sample(n_rows, 0)


class Independent(MarginalSynthesizer):
    """Rows are not those of the model."""

    def sample(self, n_rows=None, random_state=None):
        rows = super().sample(n_rows, random_state)
        return np.repeat(rows[:1], len(rows), axis=0)


class Unordered(MarginalSynthesizer):
    """Axes are in the order of the table, whatever was asked."""

    def marginal(self, columns):
        return super().marginal(sorted(columns))


BROKEN = [
    (Charges, ONE, "check_synthetic_rows"),
    (Wanders, PURE, "check_synthetic_rows"),
    (Invents, {**TWO, "categories": [[0, 1, 2]] * 3}, "check_synthetic_rows"),
    (Repeats, ONE, "check_synthetic_rows"),
    (Independent, ONE, "check_synthetic_answers"),
    (Unordered, {**ONE, "bins": [2, 3, 4]}, "check_synthetic_answers"),
]
