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
    How far apart the answers of two neighbouring data sets can be, all answers of a release together, above 0: it
    must be declared. `privacy_` says how the distance is measured. It must hold for answers as they are read:
    within `bounds`; and in strict mode, where NaN is no error, with the middle of the bounds for NaN (0 without).
bounds : (low, high), default=None
    Public range of every answer, below 2^53 in absolute value; answers are clipped to it before noise is added, and
    results after. None: no range, but that of the integers behind, ``law(size).reach``: 2^61 for integers, and for
    real answers at least 2^48 sensitivities, a number that many answers share. An answer beyond is an error, and so
    is an integer beyond 2^53 where it is, or may have been, a float; strict mode cuts both, as it does results.
{neighbours}
{ledger of releases}
{random_state}

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
    What one release promises.
{attributes}

Raises
------
ValueError
    For a parameter or data that do not fit; it names the parameter, never a value of the data, and comes before
    anything is charged.

""",
    "shuffle": """\
Parameters
----------
epsilon : float, default=1.0
    Privacy budget of one row, in (0, 80]. With w columns each column gets exactly epsilon / w.
delta : float, default=None
    What may be added to the probability of any event, above 0 and below 1: it must be declared. Each of w columns
    gets exactly delta / w.
{own}
n_users : int, default=None
    How many users take part at least, which is public: they hide each other, and fewer are refused. None: the rows
    that `fit` sees; whoever encodes alone must know it.
colluding : int, default=0
    How many of them may tell the analyser what they sent: the promise is kept by the others.
{payment of reports}

Attributes
----------
{attributes}
n_users_ : int
    Users whose messages were counted.
privacy_ : PrivacyGuarantee
    What all messages together promise to each user; `privacy_against` says what is left if more users collude.
randomizers_ : list of ShuffleLaw
    The frozen law of each column; a later ``set_params(epsilon=...)`` changes nothing until the next `fit`.
{columns seen}

{refused reports}

""",
}
#: (of what takes rows whose number is public)
CENTRAL["rows"] = CENTRAL["neighbours"].replace("{neighbours}\n", "")
