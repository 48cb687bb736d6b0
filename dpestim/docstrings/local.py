"""Sections of parameters and attributes that clients, and what collects for them, share in their docstrings."""

#: By the parameter that tells for which classes each is. (``{own}`` and ``{attributes}`` are what a class adds.)
LOCAL = {
    "categories": """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of one row, in (0, 80]; some mechanisms refuse a part of this range. With w columns each column gets
    exactly epsilon / w.
{own}
categories : "auto", list of array-like, dict or Domain, default="auto"
    The public domain, at least two distinct values for each column. A list has one array for each column, in
    order; a dict goes from column names to arrays, and data frames must then have these columns in this order.
    "auto" learns the domain from the data that `fit` sees, which leaks (`PrivacyLeakWarning`) and makes
    ``privacy_.epsilon`` infinite.
postprocess : None, str or callable, default=None
    None keeps estimates unbiased. Otherwise the name of a function of `dpestim.postprocessing`, which gets its further
    arguments from the law, or a callable of (estimates, standard_errors) that returns an array like estimates.
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
    The guarantee of one row's report.
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
    The public keys: their number (for the keys 0, 1, ...), or a list of distinct keys, none missing. None takes the
    number of columns of a sparse X; declare the keys for data frames. A `Keys` column, or a `dpestim.Domain` with one,
    declares the bounds, too.
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
    The guarantee of all reports of one user.
{law of a row}
n_features_in_ : int
    The number of keys.

Notes
-----
X is a SciPy sparse matrix (users x keys), whose *stored* entries are the pairs: an explicit 0 is a pair of value 0, and
a row without entries is a user who holds nothing, and reports all the same. Or a pandas or polars frame of three
columns in this order: user, key, value. Users are numbered in the order of their first rows. A row with a missing key
adds its user without a pair: users who hold nothing need such a row. The set of users is public. A user has each key at
most once. In strict mode a pair of an undeclared key is left out, the first of several of one key counts (of a sparse
matrix their sum), and a value that is no number is the middle of the bounds.

{refused reports}

""",
    "bounds": """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of one row, in (0, 80]; `strategy` determines the share of each column.
bounds : (low, high), dict or Domain, default=None
    The public range of the values: a pair of numbers, or of arrays of shape (n_features,), as in
    ``([1.2, 30], [2.2, 130])``: all lower bounds, then all upper ones. A dict goes from names or places of columns to
    pairs of numbers, and a `dpestim.Domain` declares a whole table. Reports and data frames have the columns in this
    order; names that X does not have are left out. Values outside are clipped. Where a domain says ``missing=True``, a
    missing number is reported as such, for a quarter of the column's epsilon (neither by `SDPMTransformer` nor with
    ``strategy="joint"``). None learns the range from the data that `fit` sees, which leaks (`PrivacyLeakWarning`) and
    makes ``privacy_.epsilon`` infinite.
strategy : {strategies}, default="split"
    "split" reports each of d columns with exactly epsilon / d. With "sample" each user draws k columns uniformly,
    independently of the values, and reports only these, with epsilon / k each. k minimises the worst-case variance of
    the means (`n_sampled_`). Reports of strategies other than "split" do not contain d: for a server that was never
    fitted, declare `bounds` with one number for each column.
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
    The guarantee of one row's report.
{columns seen}

{refused reports}

""",
    "radius": """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of one row, in (0, 80], all of its columns together.
radius : None or float, default=1.0
    The public largest distance of a row from the center; longer rows are shortened. None learns it from the data that
    `fit` sees, which leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon`` infinite.
center : None or array-like of shape (n_features,), default=None
    The public center of the ball; None: all zeros. Declare it for a server that was never fitted, because a report does
    not contain the number of columns.
candidates : int, default=2048
    The number of candidate directions, a power of two from 4 to 65,536. From 64 columns on there are at least twice as
    many candidates as columns. With 128 candidates the variance is at most 0.8 % larger up to epsilon = 2 and 16
    columns, and the time is shorter.
{own}
{payment of reports}

Attributes
----------
center_, radius_ : ndarray of shape (n_features,) and float
    The ball, after `fit`; `bounds_` is the box around it.
{law of a row}
privacy_ : PrivacyGuarantee
    The guarantee of one row's report.
guarantee_by_input_ : list of dict
    Epsilon, by kinds of inputs.
{columns seen}

{refused reports}

""",
    "places": """\
Parameters
----------
epsilon : float, default=0.01
    Privacy budget of a report for each metre of distance, in (0, 80]: epsilon = ln(4) / 200 makes places that are 200
    metres apart at most 4 times as likely as each other.
bounds : (low, high), dict or Domain, default=None
    The public region, as in ``([48.80, 2.22], [48.92, 2.42])``: the lower bounds of both columns, then the upper ones.
    A dict goes from names of columns to pairs of numbers. Places outside are moved to its border. None learns the
    region from the data that `fit` sees, which leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon`` infinite.
units : {"degrees", "metres"}, default="degrees"
    "degrees": the columns of X are latitude and longitude, and distances are those of a local projection. "metres": the
    columns are any coordinates in metres.
{own}
{payment of reports}

Attributes
----------
bounds_ : (ndarray, ndarray) of shape (2,)
    The region, after `fit`.
{law of a row}
privacy_ : PrivacyGuarantee
    The guarantee of one report: `relaxed_epsilon` is for a metre, and `epsilon` for the diameter of the region.
{columns seen}

{refused reports}

""",
    "transformer": """\
Parameters
----------
transformer : client, default=None
    A transformer of numbers, or a frequency estimator that sends one code of a small alphabet, such as GRR. The
    transformer randomises, and its ledger is charged. It is cloned and never changed; its ledger and a generator as
    `random_state` are shared. The first data fix the law; ledger, seed and threads may change later. None:
    ``PMTransformer()``, which learns its bounds from the data and so protects nothing (`PrivacyLeakWarning`): declare
    bounds.
{own}

Attributes
----------
{attributes}
n_users_ : int
    Reports counted so far.
privacy_ : PrivacyGuarantee
    The guarantee of one user's report.
transformer_ : transformer
    The clone in use, with its law frozen by the first data.
{columns seen}

{refused reports}

""",
}
