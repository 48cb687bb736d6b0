"""Units of columns: what the domains that were given to an estimator say of them."""

from dpestim.inputs.domain import Domain


def units_of(estimator, names=None):
    """Return {name: unit} of the columns whose unit is declared, in any domain among the parameters, nested ones too.

    `names` are those of the columns that are there; None: not known.
    """
    domains = [value for value in estimator.get_params(deep=True).values() if isinstance(value, Domain)]
    return {name: column.unit for domain in domains for name, column in domain.items()
            if getattr(column, "unit", None) is not None and (names is None or name in names)}
