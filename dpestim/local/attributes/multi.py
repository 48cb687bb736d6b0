"""Frequencies of many columns: one report a user, of one column, of all, or of one that hides among fakes."""

from fractions import Fraction

import numpy as np

from dpestim.inputs.together import read_together
from dpestim.local.attributes.hidden import HiddenColumns, even_weights, weights_of
from dpestim.local.attributes.oracles import hidden_laws, names_for, plain_law
from dpestim.local.categories.column import CategoryColumn, list_of
from dpestim.local.categories.estimator import CategoryClient
from dpestim.local.categories.frequencies import Frequencies
from dpestim.local.client import Client
from dpestim.local.columns import Columns
from dpestim.local.sampling import CountedDraws
from dpestim.local.server import Server
from dpestim.privacy.exact import canonical_epsilon
from dpestim.results import Part, named

#: Rows that stay in the cache while they are turned into columns.
_TURNED_ROWS = 4096
STRATEGIES, FAKES, NEIGHBOURS = ("smp", "spl", "rsfd", "rsrfd"), ("uniform", "random", "zero", "prior"), (
    "tuple", "attribute")


class MultiAttributeFrequencyEstimator(Frequencies, Server, CategoryClient):
    """Estimate the frequencies of many columns of categories by one report a user with one epsilon.

    Users report one column that they draw (``"smp"``), all columns with a part of epsilon each (``"spl"``), or the
    value of a drawn column and fakes of all others (``"rsfd"``, with fakes of a public prior ``"rsrfd"``).

    **Privacy.** epsilon-local differential privacy for a row, all of its columns together, exact (proof in
    ``multi.md``). Neighbours: any two rows of one user; no other party is trusted. With ``neighbours="attribute"``
    epsilon holds for rows that differ in one column only, by the exact worst case over columns; then
    `privacy_` names this relaxation, and states the larger epsilon that any two rows have. "smp" reveals which column a
    user drew, and needs nothing hidden for its guarantee. "rsfd" hides the column: `dpestim.audit.column_inference`
    says how well it is guessed.

    **Utility.** Unbiased, with exact variances. For rows that may differ everywhere take "smp": of d columns "spl" has
    about d times its variance at a small epsilon, and fakes add to the variance and give nothing back. With
    ``neighbours="attribute"`` fakes allow a larger epsilon of the laws.

    **Complexity.** O(n) reports for "smp", O(n d) for all others; reading the rows takes O(n d) for all.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one row, in (0, 80].
    estimator : str, list or dict, default="auto"
        The law of all columns, or of each, in their order or by name: "grr", "oue", "sue", "ss", "pgr", "hr" or "olh".
        "auto" takes that of the least error for the column's size. Fakes suit "grr", "oue" and "sue".
    strategy : {"smp", "spl", "rsfd", "rsrfd"}, default="smp"
        What a user reports.
    neighbours : {"tuple", "attribute"}, default="tuple"
        Whether epsilon is for any two rows, or for rows that differ in one column; the second needs fakes.
    fake : {"uniform", "random", "zero", "prior"}, default=None
        What a fake is a report of: a uniform value ("uniform", also called "random"), no value ("zero", for unary
        encodings), or a value that is drawn from `prior`. None: "prior" for "rsrfd", else "uniform".
    prior : list of array-like or dict, default=None
        For fakes "prior": public weights of the values of each column, in the order of `categories`. They must not be
        learned from the users who report.
    categories : list of array-like, dict or Domain, default="auto"
        The public domain of each column. "auto" learns it from the data, which leaks (`PrivacyLeakWarning`).
    postprocess : str, callable or None, default=None
        As every frequency estimator has it.
    {payment of rows}

    Attributes
    ----------
    categories_, frequencies_, standard_errors_ : list of ndarray of shape (n_categories,)
        One array for each column; NaN where nobody drew it. Standard errors cover who drew a column.
    reports_by_column_ : ndarray of shape (n_features,)
        How many users reported each column; with fakes all users did.
    law_epsilon_ : Fraction
        The epsilon of the law of the first column: with ``neighbours="attribute"`` larger than epsilon.
    n_users_ : int
        Reports counted so far.
    randomizers_ : list of Randomizer
        The frozen law of each column.
    privacy_ : PrivacyGuarantee
        The guarantee of one user's report.
    {columns seen}

    {refused reports}

    References
    ----------
    H. Arcolezi, J.-F. Couchot, B. Al Bouna, X. Xiao, "Random sampling plus fake data: multidimensional frequency
    estimates with local differential privacy", CIKM 2021, and "Improving the utility of locally differentially private
    protocols for longitudinal and multidimensional frequency estimates", 2022 (fakes of a prior). What they state of
    privacy is for rows that differ in one column, and holds there for equal sizes only: ``multi.md`` has the exact
    worst case.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import MultiAttributeFrequencyEstimator
    >>> X = np.random.default_rng(0).integers(0, 3, (20_000, 4))
    >>> est = MultiAttributeFrequencyEstimator(1.0, categories=[range(3)] * 4, random_state=0).fit(X)
    >>> bool(max(abs(f - 1 / 3).max() for f in est.frequencies_) < 0.1)
    True
    >>> hidden = MultiAttributeFrequencyEstimator(1.0, categories=[range(3)] * 4, strategy="rsfd",
    ...                                           neighbours="attribute")
    >>> float(hidden.privacy_.epsilon) > 1, hidden.privacy_.relaxed_epsilon
    (True, Fraction(1, 1))
    """

    _checked_as = "attributes"
    _no_law, _alone_reads = Client._no_law | {"postprocess"}, True
    _test_values = {"strategy": ["spl", "rsfd"], "estimator": ["grr", "oue"], "neighbours": ["attribute"],
                    "fake": ["zero"], "prior": [None]}

    def __init__(self, epsilon=1.0, *, estimator="auto", strategy="smp", neighbours="tuple", fake=None, prior=None,
                 categories="auto", postprocess=None, ledger=None, random_state=None, n_jobs=None):
        self.epsilon = epsilon
        self.estimator = estimator
        self.strategy = strategy
        self.neighbours = neighbours
        self.fake = fake
        self.prior = prior
        self.categories = categories
        self.postprocess = postprocess
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def reports_by_column_(self):
        """How many users reported each column."""
        self._check_fitted()
        return np.array(self._sizes())

    @property
    def law_epsilon_(self):
        """The epsilon of the law of the first column; known before any data where the domain is declared."""
        return self._columns_now().laws[0].epsilon

    # ---------------------------------------------------------------- inside: the row

    def _parts(self, X, columns, strict):
        encoders = [column.encoder for column in columns]
        found = read_together(X, encoders, self.n_jobs)
        if found is None and type(X) is np.ndarray and X.dtype.kind in "iubf" and X.shape[1] >= 4 and (
                X.flags.c_contiguous):
            # (column by column each line of the cache would be read again for every column)
            turned = np.empty(X.shape, X.dtype, order="F")
            for at in range(0, len(X), _TURNED_ROWS):
                turned[at : at + _TURNED_ROWS] = X[at : at + _TURNED_ROWS]
            X, found = turned, read_together(turned, encoders, self.n_jobs)
        return super()._parts(X, columns, strict) if found is None else found

    def _made(self, lists, names, **more):
        return self._columns_of(list(map(self._encoder, lists, names)), **more)

    def _like(self, columns):
        return self._columns_of([c.encoder for c in columns], inferred=columns.inferred, keys=columns.keys)

    def _columns_of(self, encoders, **more):
        """Return the `Columns` of a strategy."""
        d, sizes = len(encoders), [encoder.n_categories for encoder in encoders]
        self._check_choice()
        names, epsilon = names_for(self.estimator, d, [e.name for e in encoders]), canonical_epsilon(self.epsilon)
        if self.strategy in ("smp", "spl"):
            share = epsilon if self.strategy == "smp" else epsilon / d
            columns = [CategoryColumn(e, plain_law(share, size, own)) for e, size, own in zip(encoders, sizes, names)]
            return Columns(columns, **more) if self.strategy == "spl" else CountedDraws(columns, n_sampled=1, **more)
        fakes = tuple(self._fakes(j, encoder, d) for j, encoder in enumerate(encoders))
        laws = hidden_laws(epsilon, tuple(sizes), tuple(names), fakes, self.neighbours)
        return HiddenColumns([CategoryColumn(e, law) for e, law in zip(encoders, laws)], fakes=fakes,
                             neighbours=self.neighbours, promised=epsilon, **more)

    def _check_choice(self):
        """Raise ValueError for a strategy, or what belongs to it, that there is not."""
        for name, allowed in (("strategy", STRATEGIES), ("neighbours", NEIGHBOURS), ("fake", (None, *FAKES))):
            value = getattr(self, name)
            if not (value is None or isinstance(value, str)) or value not in allowed:
                raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")
        plain = self.strategy in ("smp", "spl")
        if plain and self.neighbours != "tuple":
            raise ValueError(f"neighbours must be 'tuple' with strategy {self.strategy!r}, whose reports tell which "
                             "columns they are of: take strategy='rsfd'")
        if plain and self.fake is not None:
            raise ValueError(f"fake must be None with strategy {self.strategy!r}, which has no fakes")
        if (self._fake == "prior") != (self.prior is not None):
            raise ValueError("prior must be given where fakes are drawn from it, and nowhere else: take "
                             "strategy='rsrfd'")
        if self.strategy == "rsrfd" and self._fake != "prior":
            raise ValueError("fake must be 'prior' with strategy 'rsrfd': take strategy='rsfd' for other fakes")

    @property
    def _fake(self):
        """What a fake is a report of; None where there are none."""
        if self.strategy in ("smp", "spl"):
            return self.fake
        return self.fake or ("prior" if self.strategy == "rsrfd" else "uniform")

    def _fakes(self, j, encoder, n_columns):
        """Return how often each value of a column is a fake one, of 2^64 times; None: no value is."""
        if self._fake == "zero":
            return None
        if self._fake != "prior":
            return even_weights(encoder.n_categories)
        values = list_of(self.prior, "prior", j, n_columns, encoder)
        try:
            weights = [Fraction(float(value)) for value in values]
        except (TypeError, ValueError, OverflowError):
            weights = []
        if len(weights) != encoder.n_categories or min(weights) < 0 or not any(weights):
            raise ValueError(f"prior of {encoder.name} must have a finite number of at least 0 for each of its "
                             f"{encoder.n_categories} categories, and not all of them 0: fill missing values, or give "
                             "them a number as the category that they are")
        return weights_of(weights)

    # ---------------------------------------------------------------- inside: estimates

    def _own_counts(self):
        return [self._columns.told(j, self._counts, self._n_users)[0] for j in range(len(self._counts))]

    @property
    def _drawn(self):
        return [self._columns.told(j, self._counts, self._n_users)[1] for j in range(len(self._counts))]

    @property
    def _laws_of_reports(self):
        """What all reports of each column follow: its law, or with fakes a mixture of that and of the fakes."""
        columns = self._columns
        return [columns.of_all(j) for j in range(len(columns))] if isinstance(columns, HiddenColumns) else columns.laws

    def _result_parts(self, level):
        """Return what `result_` shows: the frequencies of the categories of each column."""
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(self.categories_))])
        parts = zip(names, self.categories_, self.frequencies_, self.standard_errors_, self.confidence_interval(level))
        return [Part("frequency", (("feature", [name]), ("category", named(own))), f[None], error[None], ends[None])
                for name, own, f, error, ends in parts]

    def _told_of(self, row):
        """Return (the place of a row's value, frequencies, their standard errors) of each column, for the checks."""
        places = [int(c.encoder.encode(np.array([value], dtype=object))[0]) for c, value in zip(self._columns, row)]
        return zip(places, self._unbiased(), self.standard_errors_)

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "categories": [["a", "b", "c"], [False, True]]},
                {"epsilon": 2.0, "categories": [[0, 1, 2], [0, 1]], "strategy": "rsrfd", "neighbours": "attribute",
                 "prior": [[1, 2, 1], [1, 3]]}]
