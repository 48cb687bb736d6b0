"""How notebooks show a fitted estimator: set by the package itself, so that what stands below need not know how."""

#: takes an estimator and returns HTML
show = None
