"""The glossary of parameters and attributes: what means the same in many classes is written once, here."""

GLOSSARY = {
    "ledger of reports": """\
ledger : dpestim.accounting.Ledger, default=None
    The ledger that is charged for every release of rows, before noise is drawn. None: the ledger of the enclosing
    ``with ledger:`` block, if any. (Any object with ``charge(guarantee, *, estimator, n_rows, columns)`` will do.)
""",
    "random_state of reports": """\
random_state : None, int, numpy.random.Generator or RandomState, default=None
    None draws secure randomness. A seed makes the result reproducible, for tests and papers; `privacy_` then states
    that the result must not be published. A clone of an estimator with a generator repeats its noise.
""",
    "n_jobs": """\
n_jobs : int or None, default=None
    Threads, as in scikit-learn. The result does not depend on it.
""",
    "neighbours": """\
neighbours : {"substitution", "add_remove"}, default=None
    The neighbouring relation: one record is replaced, or one record is added or removed. None: the relation of the
    block (`dpestim.config_context`), else of the ledger, else "substitution".
""",
    "ledger of releases": """\
ledger : dpestim.accounting.Ledger, default=None
    The ledger that is charged for each `release`, before noise is drawn. None: the ledger of the enclosing
    ``with ledger:`` block, if any.
""",
    "verbose": """\
verbose : int, default=0
    1 prints about ten lines on the rounds that are over and the seconds since the start, 2 a line for each round.
""",
    "random_state": """\
random_state : None, int, numpy.random.Generator or RandomState, default=None
    None draws secure randomness. A seed makes the result reproducible; `privacy_` then states that the result must not
    be published.
""",
    "refused reports": """\
Raises
------
ValueError
    For an invalid parameter, value or report; nothing is changed. The message names the parameter or column and the
    requirement, never the value.
""",
    "columns seen": """\
n_features_in_ : int
feature_names_in_ : ndarray of str
    Where `fit` saw a data frame with string column names.
""",
    "law of a row": """\
randomizers_ : list of one randomizer
    The frozen law of a row; a later ``set_params(epsilon=...)`` changes nothing until the next `fit`.
""",
    "ledger of a fit": """\
ledger : dpestim.accounting.Ledger, default=None
    The ledger that is charged for each `fit`, before noise is drawn. None: the ledger of the enclosing ``with ledger:``
    block, if any.
""",
    "delta of noise": """\
delta : float, default=None
    The delta of (epsilon, delta)-differential privacy, below 1. None or 0: none. Above 0 noise is Gaussian if that is
    less.
""",
    "delta of a fit": """\
delta : float, default=None
    The delta of (epsilon, delta)-differential privacy, below 1; None or 0 is pure differential privacy. Where that
    needs less noise (few columns), it is what you get, and ``privacy_.delta`` is 0.
""",
    "delta that must be declared": """\
delta : float, default=None
    The delta of (epsilon, delta)-differential privacy, from 1e-300 to below 1: it must be declared.
""",
    "epsilon of a fit": """\
epsilon : float, default=1.0
    Privacy budget of one `fit`, in (0, 80].
""",
    "refused rows": """\
Raises
------
ValueError
    For an invalid parameter, a missing value or an undeclared class, before anything is charged. The message names the
    parameter or column, never the value. In strict mode rows with such values count as zero rows instead.
""",
    "bounds found": """\
bounds_ : (ndarray, ndarray) of shape (n_features,)
    The declared bounds, or the private ones.
""",
    "norm_bound": """\
norm_bound : float
    The largest Euclidean norm of a transformed row: from parameters alone.
""",
    "grid of reports": """\
grid : int, default=32768
    Steps between the bounds, a power of two from 2 to 32768; inputs are rounded to it without bias.
""",
    "fit of rows and targets": """\
Parameters
----------
X : dense array-like or data frame of shape (n_rows, n_features)
y : array-like of shape (n_rows,)

Returns
-------
self
""",
    "fit of rows": """\
Parameters
----------
X : array-like or data frame of shape (n_rows, n_columns)
y : ignored

Returns
-------
self
""",
    "classes": """\
classes : array-like, dict or Domain, default=None
    Public list of at least two classes. None takes the classes in y, which leaks in the same way.
""",
    "fit of rows with targets": """\
Parameters
----------
X : array-like or data frame of shape (n_rows, n_features)
y : array-like of shape (n_rows,)

Returns
-------
self
""",
    "payment of a fit": """\
{ledger of a fit}
{random_state}
{n_jobs}
""",
    "payment of reports": """\
{ledger of reports}
{random_state of reports}
{n_jobs}
""",
    "payment of rows": """\
ledger : dpestim.accounting.Ledger, default=None
    The ledger that is charged for every release of rows, before noise is drawn. None: the ledger of the enclosing
    ``with ledger:`` block, if any.
{random_state}
{n_jobs}
""",
    "rows to reports": """\
Parameters
----------
X : array-like or data frame of shape (n_rows, n_columns)

Returns
-------
ndarray of shape (n_rows, width)
""",
    "fit of parts": """\
Parameters
----------
ask : callable
    Takes a request, and returns the merged answer of all parts.
example : tuple of what `fit` takes
    One made-up row with the columns and types of the data: no value of it matters.
""",
}
