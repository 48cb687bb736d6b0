"""Units of columns: what the domains that were given to an estimator say of them."""

from dpestim.inputs.domain import Domain

#: Types of parameters that hold no domain: most estimators have no others.
_PLAIN = (float, int, str, bool, type(None))


def units_of(estimator, names=None):
    """Return {name: unit} of the columns whose unit is declared, in any domain among the parameters, nested ones too.

    `names` are those of the columns that are there; None: not known.
    """
    if all(type(value) in _PLAIN for own in vars(estimator).values() for value in (
            own if type(own) is tuple else (own,))):
        return {}
    domains = [value for value in estimator.get_params(deep=True).values() if isinstance(value, Domain)]
    return {name: column.unit for domain in domains for name, column in domain.items()
            if getattr(column, "unit", None) is not None and (names is None or name in names)}
