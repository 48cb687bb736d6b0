"""Units of columns: what the domains that were given to an estimator say of them."""

from dpestim.inputs.public import PublicColumns

#: Types of parameters that hold no domain: most estimators have no others.
_PLAIN = (float, int, str, bool, type(None))


def units_of(estimator, names=None):
    """Return {name: unit} of the columns whose unit is declared, in any domain among the parameters, nested ones too.

    `names` are those of the columns that are there; None: not known.
    """
    if all(type(own) in _PLAIN or name[0] == "_" or (type(own) is tuple and all(type(value) in _PLAIN for value in own))
           for name, own in vars(estimator).items()):  # (what begins with _ is no parameter)
        return {}
    domains = [value for value in estimator.get_params(deep=True).values() if isinstance(value, PublicColumns)]
    return {name: column.unit for domain in domains for name, column in domain.items()
            if getattr(column, "unit", None) is not None and (names is None or name in names)}
