"""Sections of parameters and attributes that mechanisms of the central model and of the shuffle model share."""

#: By kind of class (`_template`).
CENTRAL = {
    "sensitivity": """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of one `release`, from 1e-100 to 80.
{own}
sensitivity : float, default=None
    The largest distance between the answers of two neighbouring data sets, all answers of a release together, above 0.
    It must be declared. `privacy_` states how the distance is measured. The sensitivity must hold after clipping to
    `bounds`; in strict mode also with NaN replaced by the midpoint of the bounds (0 without bounds).
bounds : (low, high), default=None
    Public range of every answer, below 2^53 in absolute value; answers are clipped to it before noise is added, and
    results after. None: the range of the underlying integers, ``law(size).reach``: 2^61 for integers, and at least 2^48
    sensitivities for real answers, divided by the number of answers. A larger answer is an error, and so is an integer
    beyond 2^53 that is, or may have been, a float; strict mode clips both, and results too.
{neighbours}
{ledger of releases}
{random_state}

Attributes
----------
privacy_ : PrivacyGuarantee
    The guarantee of one release.
n_features_in_ : int
    After `fit`, which nothing needs.
feature_names_in_ : ndarray of str
    Where `fit` saw a data frame with string column names.

Raises
------
ValueError
    For a parameter or an answer that does not fit (NaN, infinity); it names the parameter, never the answer, and
    comes before anything is charged. In strict mode NaN counts as the middle of the bounds, or as 0.

""",
    "neighbours": """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of one release, from 1e-100 to 80.
{own}
{neighbours}
{ledger of releases}
{random_state}

Attributes
----------
privacy_ : PrivacyGuarantee
    The guarantee of one release.
{attributes}

Raises
------
ValueError
    For an invalid parameter or invalid data, before anything is charged. The message names the parameter, never a value
    of the data.

""",
    "stream": """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of all releases of a stream together, from 1e-100 to 80.
{own}
ledger : dpestim.accounting.Ledger, default=None
    The ledger that is charged once for each stream, at its first step, before noise is drawn. Where a copy of a stream
    goes on, the ledger keeps an entry of epsilon 0, so that a second copy is refused. None: the ledger of the enclosing
    ``with ledger:`` block, if any.
{random_state}

Attributes
----------
privacy_ : PrivacyGuarantee
    The guarantee of all releases of a stream.
{attributes}

Raises
------
ValueError
    For an invalid parameter or invalid data, before anything is charged. The message names the parameter, never a value
    of the data.

""",
    "shuffle": """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of one row, in (0, 80]. With w columns each column gets exactly epsilon / w.
delta : float, default=None
    The delta of (epsilon, delta)-differential privacy, above 0 and below 1: it must be declared. Each of w columns gets
    exactly delta / w.
{own}
n_users : int, default=None
    The public least number of users that take part; fewer are refused. None: the number of rows that `fit` sees.
    Declare it where users encode separately.
colluding : int, default=0
    The largest number of users that may disclose their messages to the analyser; the guarantee relies on the other
    users.
{payment of reports}

Attributes
----------
{attributes}
n_users_ : int
    Users whose messages were counted.
privacy_ : PrivacyGuarantee
    The guarantee of all messages together for each user; `privacy_against` states the guarantee if more users collude.
randomizers_ : list of ShuffleLaw
    The frozen law of each column; a later ``set_params(epsilon=...)`` changes nothing until the next `fit`.
{columns seen}

{refused reports}

""",
}
#: (of what takes rows whose number is public)
CENTRAL["rows"] = CENTRAL["neighbours"].replace("{neighbours}\n", "")
