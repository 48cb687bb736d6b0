"""Linear models of rows that a `DomainEncoder` made: the norm, the classes and the range of targets that follow."""

from dataclasses import dataclass

import numpy as np

from dpestim.inputs import Domain, pair_of
from dpestim.inputs.encoded import norm_for, norm_of
from dpestim.models import PrivateModel


class OfDomain(PrivateModel):
    """Base of models with a parameter `domain`."""

    #: After a fit with bounds: coefficients and intercepts of scaled rows, and the `Scale`.
    _scaled = None
    #: What a domain gives, where it is None.
    _given = ("classes", "data_norm", "target_bounds")

    @property
    def _of_domain(self):
        """The domain, or None (some sub-classes have no such parameter)."""
        return getattr(self, "domain", None)

    def _check_domain(self):
        """Raise ValueError for what is no domain."""
        domain = self._of_domain
        if domain is not None and not (isinstance(domain, Domain | dict) and len(domain)):
            raise ValueError("domain must be None, a dpestim.Domain, or a dict of its columns")

    def _inferred(self):
        found = [name for name in super()._inferred() if self._of_domain is None or name not in self._given]
        # (bounds say how long rows can be)
        return [name for name in found if name != "data_norm" or getattr(self, "bounds", None) is None]

    def _names_columns(self):
        return self._of_domain is not None or super()._names_columns()

    def _scale(self, n_columns):
        """Return the `Scale` of the columns of X, or None where no bounds were declared."""
        bounds = getattr(self, "bounds", None)
        if bounds is None:
            return None
        ends = pair_of(bounds, n_columns, most=1e140, apart=1e-140, same=True)
        return Scale(*ends, centred=bool(self.fit_intercept))

    def _settle(self, names, n_columns, target):
        """... What is None follows from the domain."""
        if self._of_domain is not None:
            for name in ("classes", "target_bounds"):
                if getattr(self, name, 0) is None:
                    setattr(self, name, Domain(self.domain))
        super()._settle(names, n_columns, target)
        if self._of_domain is not None and self.data_norm is None and getattr(self, "bounds", None) is None:
            self.data_norm = norm_for(self.domain, n_columns, target)

    def _refuse_ahead(self, y, n_rows):
        if self._of_domain is not None and y is not None:
            twin = type(self)(**self.get_params(deep=False))
            twin.domain, twin.data_norm = None, self.data_norm or 1.0
            for name in ("classes", "target_bounds"):
                if getattr(twin, name, 0) is None:
                    setattr(twin, name, Domain(self.domain))
            twin._bound = self._bound
            return twin._refuse_ahead(y, n_rows)
        return super()._refuse_ahead(y, n_rows)


@dataclass(frozen=True)
class Scale:
    """Public bounds of columns: rows are scaled to [-1, 1] by them, and coefficients of these to units of X.

    Not centred: 0 stays 0, as for a model without an intercept, which is 0 at the origin of X.
    """

    low: np.ndarray
    high: np.ndarray
    centred: bool = True

    @property
    def _half(self):
        return (self.high - self.low) / 2 if self.centred else np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def norm(self):
        """The largest norm of a scaled row."""
        return norm_of(max(1, int((self._half > 0).sum())))

    def rows(self, X):
        """Return rows, each column scaled and clipped; a column whose scale is 0 is 0."""
        half = self._half
        with np.errstate(all="ignore"):
            by = np.where(half > 0, half, 1.0)
            scaled = (X - self.low) / by - 1.0 if self.centred else np.clip(X, self.low, self.high) / by
            scaled = np.clip(scaled, -1.0, 1.0)
        return np.ascontiguousarray(np.where(half > 0, scaled, 0.0 * scaled))

    def in_units(self, coef, intercept):
        """Return coefficients and intercepts of scaled rows in units of X."""
        half = self._half
        slopes = np.where(half > 0, coef / np.where(half > 0, half, 1.0), 0.0)
        return slopes, intercept - slopes @ (self.low + half) if self.centred else intercept
