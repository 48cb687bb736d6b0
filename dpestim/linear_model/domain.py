"""Linear models of a declared table: bounds of raw numbers, or the norm of rows that a `DomainEncoder` made."""

from dpestim import inputs
from dpestim.inputs import PublicColumns, pair_of
from dpestim.inputs.declared import shown
from dpestim.inputs.encoded import norm_for
from dpestim.inputs.public import is_column
from dpestim.inputs.scaled import Scale
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
        if domain is not None and not (isinstance(domain, PublicColumns | dict) and len(domain)):
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
        ends = pair_of(bounds, n_columns, same=True)
        return Scale(*ends, centred=bool(self.fit_intercept))

    def _settle(self, names, n_columns, target):
        """... What is None follows from the domain."""
        if self._of_domain is not None:
            for name in ("classes", "target_bounds"):
                if name in self._declared and getattr(self, name) is None:
                    setattr(self, name, inputs.Domain(self.domain))
            if getattr(self, "bounds", 0) is None and getattr(self, "data_norm", None) is None:
                self.bounds = self._of_numbers(names)
        super()._settle(names, n_columns, target)
        if self._of_domain is not None and getattr(self, "data_norm", 0) is None and self.bounds is None:
            self.data_norm = norm_for(self.domain, n_columns, target)

    def _of_numbers(self, names):
        """Return the domain of columns that are all numbers of it, else None: encoded columns have other names."""
        domain = inputs.Domain(self.domain)
        if names is None or not all(name in domain for name in names):
            return None
        others = [name for name in names if not is_column(domain[name], "numbers")]
        if others:
            raise ValueError(f"columns of X must be numbers, and {shown(others)} are categories of domain: put "
                             "dpestim.preprocessing.DomainEncoder(domain) before the model, such as\n"
                             "    model = sklearn.pipeline.make_pipeline(DomainEncoder(domain), model)")
        return domain

    def _refuse_ahead(self, y, n_rows):
        if self._of_domain is not None and y is not None:
            twin = type(self)(**self.get_params(deep=False))
            twin.domain, twin.data_norm = None, self.data_norm or 1.0
            for name in ("classes", "target_bounds"):
                if name in twin._declared and getattr(twin, name) is None:
                    setattr(twin, name, inputs.Domain(self.domain))
            twin._bound = self._bound
            return twin._refuse_ahead(y, n_rows)
        return super()._refuse_ahead(y, n_rows)
