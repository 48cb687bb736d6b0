"""Sections of parameters and attributes that clients, and what collects for them, share in their docstrings."""

#: By the parameter that tells for which classes each is. (``{own}`` and ``{attributes}`` are what a class adds.)
LOCAL = {
    "categories": """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of one row, in (0, 80]; a mechanism may refuse part of it. With w columns each column gets
    exactly epsilon / w.
{own}
categories : "auto", list of array-like, dict or Domain, default="auto"
    The public domain, at least two distinct values for each column. A list has one array for each column, in
    order; a dict goes from column names to arrays, and data frames must then have these columns in this order.
    "auto" learns the domain from the data that `fit` sees, which leaks (`PrivacyLeakWarning`) and makes
    ``privacy_.epsilon`` infinite.
postprocess : None, str or callable, default=None
    None keeps estimates unbiased. A name in `dpestim.postprocessing`, whose function is told what it needs of the
    law, or a callable of (estimates, standard_errors) that returns an array like estimates.
sparse_output : bool, default=False
    Whether `transform` returns a SciPy CSR array.
{payment of reports}

Attributes
----------
categories_ : list of ndarray
    The domain of each column, in the order of all other outputs.
frequencies_ : list of ndarray of shape (n_categories,)
    Estimated share of each category, in column order.
standard_errors_ : list of ndarray of shape (n_categories,)
    Standard error of the unbiased estimate, given the data: only the mechanism is random.
n_users_ : int
    Reports counted so far.
privacy_ : PrivacyGuarantee
    What one row's report promises.
randomizers_ : list of Randomizer
    The frozen law of each column; a later ``set_params(epsilon=...)`` changes nothing until the next `fit`.
n_features_in_ : int
feature_names_in_ : ndarray of str
    Where `fit` saw a data frame with string column names, or `categories` is a dict.

{refused reports}

""",
    "keys": """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of one user, in (0, 80], for all pairs together.
keys : None, int, array-like, Keys or Domain, default=None
    The public keys: how many (then they are 0, 1, ...), or a list of distinct ones, none missing. None takes the
    number of columns of a sparse X; it must be declared for data frames. A `Keys` column, or a `dpestim.Domain`
    with one, says the bounds, too.
bounds : (low, high), default=(-1.0, 1.0)
    The public range of the values; values outside are clipped, and values within rounded to a 2^32th of it.
{own}
{payment of reports}

Attributes
----------
keys_ : ndarray of shape (n_keys,)
    The keys, in the order of all other outputs.
frequencies_, means_ : ndarray of shape (n_keys,)
    Estimated share of users that hold each key (not clipped), and mean of their values (within the bounds). NaN
    where nobody was asked for a key.
frequency_standard_errors_, mean_standard_errors_ : ndarray of shape (n_keys,)
    Standard errors given the data: only the mechanism is random, the sampling of keys included.
n_users_ : int
    Reports counted so far.
privacy_ : PrivacyGuarantee
    What one user's reports promise.
{law of a row}
n_features_in_ : int
    The number of keys.

Notes
-----
X is a SciPy sparse matrix (users x keys), whose *stored* entries are the pairs: an explicit 0 is a pair of value 0,
and a row without entries is a user who holds nothing, and reports all the same. Or a pandas or polars frame of
three columns in this order: user, key, value. Users count in the order in which they are first named; a row whose
key is missing says that its user takes part, and adds no pair: users who hold nothing need one. Who takes part is
public. A user has each key at most once. In strict mode a pair of an undeclared key is left out, the first of
several of one key counts (of a sparse matrix their sum), and a value that is no number is the middle of the bounds.

{refused reports}

""",
    "bounds": """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of one row, in (0, 80]; `strategy` says what several columns have of it.
bounds : (low, high), dict or Domain, default=None
    The public range of the values: a pair of numbers, or of arrays of shape (n_features,), as in
    ``([1.2, 30], [2.2, 130])``: all lower bounds, then all upper ones. A dict goes from names or places of columns
    to pairs of numbers, and a `dpestim.Domain` says it of a whole table: reports have the columns in its order, and
    so must data frames; names that X does not have are left out. Values outside are clipped. Where a domain says
    ``missing=True``, a missing number is reported as such, for a quarter of the column's epsilon (neither by
    `SDPMTransformer` nor with ``strategy="joint"``). None
    learns the range from the data that `fit` sees, which leaks (`PrivacyLeakWarning`) and makes
    ``privacy_.epsilon`` infinite.
strategy : {strategies}, default="split"
    "split" reports every one of d columns with exactly epsilon / d. "sample" has each user draw k of them, all sets
    equally likely and whatever the values are, report those with epsilon / k and say nothing of the others, with
    the k that makes the variance of the means least at worst (`n_sampled_`). A report of any strategy but "split"
    does not tell d: for a server that was never fitted, declare `bounds` with one number for each column.
{own}
{payment of reports}

Attributes
----------
bounds_ : (ndarray, ndarray) of shape (n_features,)
    Lower and upper bounds of the columns, after `fit`.
n_sampled_ : int or None
    The number k of columns that a row reports with ``strategy="sample"``.
randomizers_ : list of randomizers
    The frozen law of each column; a later ``set_params(epsilon=...)`` changes nothing until the next `fit`.
privacy_ : PrivacyGuarantee
    What one row's report promises.
{columns seen}

{refused reports}

""",
    "radius": """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of one row, in (0, 80], all of its columns together.
radius : None or float, default=1.0
    The public length that no row is to exceed, measured from the center; longer rows are shortened. None learns it
    from the data that `fit` sees, which leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon`` infinite.
center : None or array-like of shape (n_features,), default=None
    The public center of the ball; None: all zeros. A report does not tell d: declare it for a server that was never
    fitted.
candidates : int, default=2048
    Directions that a seed makes, a power of two from 4 to 65,536; there are at least twice as many as columns from
    64 columns on. With 128 the variance is at most 0.8 % larger up to epsilon = 2 and 16 columns, for less time.
{own}
{payment of reports}

Attributes
----------
center_, radius_ : ndarray of shape (n_features,) and float
    The ball, after `fit`; `bounds_` is the box around it.
{law of a row}
privacy_ : PrivacyGuarantee
    What one row's report promises.
guarantee_by_input_ : list of dict
    Epsilon, by kinds of inputs.
{columns seen}

{refused reports}

""",
    "transformer": """\
Parameters
----------
transformer : client, default=None
    A transformer of numbers, or a frequency estimator that sends one code of a small alphabet (GRR, say). It
    randomises and pays; cloned, never changed, but for its ledger and a generator as `random_state`, which are
    shared. The first data freeze the law; ledger, seed and threads are always those it has now. None:
    ``PMTransformer()``, which learns its bounds from the data and so protects nothing (`PrivacyLeakWarning`):
    declare bounds.
{own}

Attributes
----------
{attributes}
n_users_ : int
    Reports counted so far.
privacy_ : PrivacyGuarantee
    What one user's report promises.
transformer_ : transformer
    The clone in use, with its law frozen by the first data.
{columns seen}

{refused reports}

""",
}
