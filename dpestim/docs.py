"""What documentation reads of classes: text that many of them share, and the signature of what makes one."""

import inspect

_PAYS = """\
    ledger : dpestim.accounting.Ledger, default=None
        Pays for every release of rows before anything is drawn, or refuses. None: the ledger of the ``with ledger:``
        block around, if there is one. (Any object with ``charge(guarantee, *, estimator, n_rows, columns)`` will do.)
    random_state : None, int, numpy.random.Generator or RandomState, default=None
        None draws secure randomness. Anything else is reproducible, for tests and papers; `privacy_` then says that
        the result must not be published. A clone of an estimator with a generator repeats its noise.
    n_jobs : int or None, default=None
        Threads, as in scikit-learn. The result does not depend on it.
"""

_RAISES = """\
    Raises
    ------
    ValueError
        For a parameter, a value or a report that does not fit; it names the parameter or column and what was
        expected, never the value, and changes nothing.
"""

_FREQUENCY_PARAMETERS = """
    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one row, in (0, 80]; a mechanism may refuse part of it. With w columns each column gets
        exactly epsilon / w.
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
{pays}
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

{raises}"""


def _common(template):
    """Return a template with the parts that all of them share."""
    return template.lstrip("\n").replace("{pays}", _PAYS).replace("{releases}", _RELEASES).replace(
        "{raises}", _RAISES)


_NUMERIC_PARAMETERS = """
    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one row, in (0, 80]; `strategy` says what several columns have of it.
    bounds : (low, high), dict or Domain, default=None
        The public range of the values: a pair of numbers, or of arrays of shape (n_features,), as in
        ``([1.2, 30], [2.2, 130])``: all lower bounds, then all upper ones. A dict goes from names or places of columns
        to pairs of numbers, and a `dpestim.Domain` says it of a whole table: reports have the columns in its order, and
        so must data frames; names that X does not have are left out. Values outside are clipped. None
        learns the range from the data that `fit` sees, which leaks (`PrivacyLeakWarning`) and makes
        ``privacy_.epsilon`` infinite.
    strategy : {strategies}, default="split"
        "split" reports every one of d columns with exactly epsilon / d. "sample" has each user draw k of them, all sets
        equally likely and whatever the values are, report those with epsilon / k and say nothing of the others, with
        the k that makes the variance of the means least at worst (`n_sampled_`). A report of any strategy but "split"
        does not tell d: for a server that was never fitted, declare `bounds` with one number for each column.
{pays}
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
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where `fit` saw a data frame with string column names.

{raises}"""


_BALL_PARAMETERS = """
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
{pays}
    Attributes
    ----------
    center_, radius_ : ndarray of shape (n_features,) and float
        The ball, after `fit`; `bounds_` is the box around it.
    randomizers_ : list of one randomizer
        The frozen law of a row; a later ``set_params(epsilon=...)`` changes nothing until the next `fit`.
    privacy_ : PrivacyGuarantee
        What one row's report promises.
    guarantee_by_input_ : list of dict
        Epsilon, by kinds of inputs.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where `fit` saw a data frame with string column names.

{raises}"""

_PAIR_PARAMETERS = """
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
{pays}
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
    randomizers_ : list of one randomizer
        The frozen law of a row; a later ``set_params(epsilon=...)`` changes nothing until the next `fit`.
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

{raises}"""

_COLLECTOR_PARAMETERS = """
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
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where `fit` saw a data frame with string column names.

{raises}"""


_RELEASES = """\
    neighbours : {"substitution", "add_remove"}, default=None
        Who is protected: one record replaced, or one record more or less. None: that of the block
        (`dpestim.config_context`), else that of the ledger that pays, else "substitution".
    ledger : dpestim.accounting.Ledger, default=None
        Pays for each `release` before anything is drawn, or refuses. None: the ledger of the ``with ledger:`` block
        around, if there is one.
    random_state : None, int, numpy.random.Generator or RandomState, default=None
        None draws secure randomness. Anything else is reproducible; `privacy_` then says that the result must not be
        published.
"""

_NOISE_PARAMETERS = """
    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one `release`, from 1e-100 to 80.
{own}    sensitivity : float, default=None
        How far apart the answers of two neighbouring data sets can be, all answers of a release together, above 0: it
        must be declared. `privacy_` says how the distance is measured. It must hold for answers as they are read:
        within `bounds`; and in strict mode, where NaN is no error, with the middle of the bounds for NaN (0 without).
    bounds : (low, high), default=None
        Public range of every answer, below 2^53 in absolute value; answers are clipped to it before noise is added, and
        results after. None: no range, but that of the integers behind, ``law(size).reach``: 2^61 for integers, and for
        real answers at least 2^48 sensitivities, a number that many answers share. An answer beyond is an error, and so
        is an integer beyond 2^53 where it is, or may have been, a float; strict mode cuts both, as it does results.
{releases}
    Attributes
    ----------
    privacy_ : PrivacyGuarantee
        What one release promises.
    n_features_in_ : int
        After `fit`, which nothing needs.
    feature_names_in_ : ndarray of str
        Where `fit` saw a data frame with string column names.

    Raises
    ------
    ValueError
        For a parameter or an answer that does not fit (NaN, infinity); it names the parameter, never the answer, and
        comes before anything is charged. In strict mode NaN counts as the middle of the bounds, or as 0.
"""


_SHUFFLE_PARAMETERS = """
    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one row, in (0, 80]. With w columns each column gets exactly epsilon / w.
    delta : float, default=None
        What may be added to the probability of any event, above 0 and below 1: it must be declared. Each of w columns
        gets exactly delta / w.
{own}    n_users : int, default=None
        How many users take part at least, which is public: they hide each other, and fewer are refused. None: the rows
        that `fit` sees; whoever encodes alone must know it.
    colluding : int, default=0
        How many of them may tell the analyser what they sent: the promise is kept by the others.
{pays}
    Attributes
    ----------
{attributes}
    n_users_ : int
        Users whose messages were counted.
    privacy_ : PrivacyGuarantee
        What all messages together promise to each user; `privacy_against` says what is left if more users collude.
    randomizers_ : list of ShuffleLaw
        The frozen law of each column; a later ``set_params(epsilon=...)`` changes nothing until the next `fit`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where `fit` saw a data frame with string column names.

{raises}"""


_CENTRAL_PARAMETERS = """
    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one release, from 1e-100 to 80.
{own}{releases}
    Attributes
    ----------
    privacy_ : PrivacyGuarantee
        What one release promises.
{attributes}

    Raises
    ------
    ValueError
        For a parameter or data that do not fit; it names the parameter, never a value of the data, and comes before
        anything is charged.
"""


#: Of what takes rows whose number is public, no neighbours are to be declared.
_ROW_PARAMETERS = _CENTRAL_PARAMETERS.replace("{releases}", _RELEASES[_RELEASES.index("    ledger : "):])

_TEMPLATES = {
    "sensitivity": _NOISE_PARAMETERS,
    "neighbours": _CENTRAL_PARAMETERS,
    "rows": _ROW_PARAMETERS,
    "shuffle": _SHUFFLE_PARAMETERS,
    "categories": _FREQUENCY_PARAMETERS,
    "keys": _PAIR_PARAMETERS,
    "bounds": _NUMERIC_PARAMETERS,
    "radius": _BALL_PARAMETERS,
    "transformer": _COLLECTOR_PARAMETERS,
}
#: Before which shared parameter a class's own ones stand.
_BEFORE = {"sensitivity": "{own}", "neighbours": "{own}", "rows": "{own}", "shuffle": "{own}", "transformer": "{own}",
           "categories": "    categories : ", "keys": "    ledger : ", "bounds": "    ledger : ",
           "radius": "    ledger : "}


def fill_docstring(cls):
    """Fill ``{parameters}`` in the docstring of a class from what all of its kind share.

    `_more_parameters` and `_more_attributes` of the class are put where they belong; `__init_subclass__` of the bases
    calls this. (Docstrings are absent under -OO.)
    """
    if not cls.__doc__ or "    {parameters}\n" not in cls.__doc__:
        return
    parameters = inspect.signature(cls.__init__).parameters
    kind = getattr(cls, "_template", None) or next(kind for kind in _TEMPLATES if kind in parameters)
    more = getattr(cls, "_more_parameters", "").strip("\n").rstrip()
    more += "\n" * bool(more)
    attributes = getattr(cls, "_more_attributes", "").strip("\n").rstrip(" ")
    text = _common(_TEMPLATES[kind]).replace("{attributes}\n", attributes and attributes.rstrip("\n") + "\n")
    text = text.replace(_BEFORE[kind], more + _BEFORE[kind], 1).replace("{own}", "")
    strategies = ", ".join(f'"{name}"' for name in getattr(cls, "_strategies", ()))
    text = text.replace("{strategies}", f"{{{strategies}}}")
    cls.__doc__ = cls.__doc__.replace("    {parameters}\n", text + "\n")


class SignatureOfInit:
    """The signature of `__init__`, for classes with a general `__new__`, which some readers of signatures ask first.

    It is found anew for each sub-class, where it is asked for.
    """

    def __get__(self, instance, owner):
        if instance is not None:
            raise AttributeError("__signature__")  # calling an instance is another thing
        init = inspect.signature(owner.__init__)
        return init.replace(parameters=list(init.parameters.values())[1:])
