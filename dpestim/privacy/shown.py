"""How a ledger is shown: as a frame of its entries, as a page in text or HTML, and as a picture."""

import math

from dpestim.plots import as_float
from dpestim.tables import frame_of


class ShownLedger:
    """What a reader sees of a ledger; a mixin."""

    def to_frame(self):
        """Return a pandas frame with one row an entry; amounts are exact Fractions (dtype object).

        ``frame.attrs["composition"]`` says how they add up; what was charged stands in the columns ``charged_...``.
        """
        layout = self._read().layout
        frame = frame_of(self.entries(), ["number", *layout.entry, "hash"])
        frame.attrs["composition"] = layout.way.name
        return frame.astype({"time": "datetime64[us, UTC]", "n_rows": "Int64"})

    def report(self, format="text"):
        """Return the account as a page, in the `format` "text" or "html": budget, spent, left, spent by estimator."""
        if format not in ("text", "html"):
            raise ValueError("format must be 'text' or 'html'")
        account = self._account()
        return str(account) if format == "text" else account._repr_html_()

    def plot(self, ax=None, **kwargs):
        """Draw what each estimator was charged in all, and the budget as a line.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None makes new ones.
        **kwargs
            For matplotlib's `plot` of the points.

        Returns
        -------
        dpestim.inspection.ResultDisplay
        """
        display = self._account().plot(ax, **kwargs)
        state = self._read()
        budget = as_float(state.budget[state.layout.way.shown(state.spent, state.budget)[0]])
        if math.isfinite(budget):
            display.ax_.axvline(budget, color="0.6", linestyle=":", linewidth=1)
        return display

    def _account(self):
        from dpestim.privacy.report import Account  # only here: most processes never print one

        head, state = self.verify(), self._read()
        return Account({"path": self.path, "terms": state.terms, "state": state, "way": state.layout.way,
                        "length": state.length, "head": head, "spent": self.spent(), "entries": self.entries()})

    def __str__(self):
        return self.report()

    def _repr_html_(self):
        return self.report("html")
