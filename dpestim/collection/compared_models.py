"""What plans that compare models of trust share: rows of ways, the best of each model, and a sentence that says it."""

from dpestim.privacy import PrivacyGuarantee
from dpestim.tables import Table, short

#: Where each model is taken.
TRUST = {"local": "where users trust nobody", "shuffle": "where they trust a shuffler",
         "central": "where a curator holds the rows"}
#: The largest error of a share that is guessed as one half.
GUESSED = 0.5


class ComparedModels(Table):
    """Base of plans with `epsilon`, `delta` and `rows`, named tuples with a `model`, the best first.

    A sub-class has `_least`, the field of a row that is least in the best one, `_asks` and `_takes`.
    """

    _most_lines = 1000
    _least = ""

    @property
    def privacy(self):
        """What a report of the local model would promise; the plan itself costs nothing."""
        return PrivacyGuarantee(self.epsilon)

    def best_of(self, model):
        """Return the best row of a model ("local", "shuffle" or "central")."""
        return self._best(model, self._least)

    def _best(self, model, least):
        found = [row for row in self.rows if row.model == model and getattr(row, least) == getattr(row, least)]  # (NaN)
        if not found:
            raise ValueError("model must be 'local', 'shuffle' or 'central'")
        return min(found, key=lambda row: getattr(row, least))

    @property
    def best(self):
        """The best row of all."""
        return self.rows[0]

    @property
    def recommendation(self):
        """Which way to take in each model, in a sentence."""
        told = "; ".join(f"{trust}, {self._takes(self.best_of(model))}" for model, trust in TRUST.items())
        return f"{self._asks()}, with epsilon = {self.epsilon:g}: {told}."

    def _asks(self):
        """Return the question, as the beginning of a sentence."""
        raise TypeError(f"{type(self).__name__} does not say what it asks: implement `_asks`")

    def _takes(self, row):
        """Return what a way is and achieves, as a clause."""
        return self._takes_for(row, getattr(row, self._least))

    @staticmethod
    def _takes_for(row, error):
        if error >= GUESSED:
            return f"no way is better than the guess 0.5 (the least error is {error:.2g})"
        return f"take {row.mechanism} ({row.parameters}) with an error of {error:.2g}"

    def _columns(self):
        return type(self.rows[0])._fields

    def _records(self):
        return self.rows

    def _head(self):
        return type(self.rows[0])._fields

    def _rows(self):
        return (map(short, row) for row in self.rows)

    def _remarks(self):
        return (self.recommendation,)
