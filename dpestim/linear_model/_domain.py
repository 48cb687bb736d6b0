"""Linear models of rows that a `DomainEncoder` made: the norm, the classes and the range of targets that follow."""

from dpestim.inputs import Domain
from dpestim.inputs.encoded import norm_for
from dpestim.models import PrivateModel


class OfDomain(PrivateModel):
    """Base of models with a parameter `domain`."""

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
        return [name for name in super()._inferred() if self._of_domain is None or name not in self._given]

    def _names_columns(self):
        return self._of_domain is not None or super()._names_columns()

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
