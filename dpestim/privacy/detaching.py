"""Who pays no longer: estimators, and those within them, forget a ledger."""


def detached(estimator, ledger):
    """Return an estimator, of which no part is paid for by a ledger any more: by its parameter, or as it is bound."""
    seen, parts = set(), [estimator]
    while parts:
        part = parts.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, list | tuple):
            parts += part
        elif isinstance(part, dict):
            parts += part.values()
        elif hasattr(part, "get_params") and not isinstance(part, type):
            parts += [*part.get_params(deep=False).values(), *vars(part).values()]
            if getattr(part, "ledger", None) == ledger:
                part.set_params(ledger=None)
            if hasattr(part, "_unbind") and part._bound[0] == ledger:
                part._unbind()
    return estimator
