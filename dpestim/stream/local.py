"""A stream without a curator: what users report at each step by a longitudinal mechanism."""

import numpy as np
from sklearn.base import BaseEstimator, clone

from dpestim.local.categories.longitudinal import LongitudinalEstimator
from dpestim.stream.plotting import StreamDisplay


class LocalStream(BaseEstimator):
    """Estimate frequencies of categories at every step of a stream from reports of users who trust nobody.

    It is the server. Users keep a `ClientState` on their devices, and report at each step by the client's
    ``privatize(X, state=state)``. Any longitudinal estimator of `dpestim.local` can be the client.

    **Privacy.** In the local model, that of the client: `privacy_` is what all reports of a user up to the latest step
    promise together. Processing reports costs no further privacy.

    **Utility.** Each step has the error of one report a user. Errors of steps are not independent, because users keep
    their answers: a mean of steps has more noise than that of independent steps.

    **Complexity.** O(reports) time a step; a count for each category and step is kept.

    Parameters
    ----------
    client : longitudinal estimator of `dpestim.local`, default=None
        With declared categories of one column. None is refused: which mechanism users report by decides about privacy.

    Attributes
    ----------
    n_steps_ : int
        Steps so far.
    values_, standard_errors_ : ndarray of shape (n_steps, n_categories)
        Frequencies at all steps, and their standard errors.
    value_ : ndarray of shape (n_categories,)
        Frequencies at the latest step.
    n_users_ : ndarray of shape (n_steps,)
        Reports at each step.
    categories_ : ndarray
        The categories, in the order of the columns.
    privacy_ : PrivacyGuarantee
        Of all reports of a user who reported at every step.

    References
    ----------
    Those of the client. The proof is that of the client: ``local/categories/longitudinal.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.local import LGRRFrequencyEstimator
    >>> from dpestim.stream import LocalStream
    >>> client = LGRRFrequencyEstimator(1.0, epsilon_permanent=2.0, categories=[["home", "out"]], random_state=0)
    >>> places = np.random.default_rng(0).choice(["home", "out"], (2000, 1))
    >>> state = client.client_state(places)
    >>> stream = LocalStream(client)
    >>> for hour in range(3):
    ...     frequencies = stream.partial_fit(client.privatize(places, state=state))
    >>> stream.values_.shape, stream.privacy_.relaxed_epsilon <= 2
    ((3, 2), True)
    """

    def __init__(self, client=None):
        self.client = client

    def fit(self, X, y=None):
        """Start a new stream, and take the reports of its first steps.

        Parameters
        ----------
        X : sequence of what `partial_fit` takes, one for each step
        y : ignored

        Returns
        -------
        self
        """
        if isinstance(X, np.ndarray) and X.ndim != 3:
            raise ValueError("X must be a sequence of arrays of reports, one for each step; give the reports of one "
                             "step to partial_fit")
        started = clone(self)
        for reports in X:
            started.partial_fit(reports)
        if not hasattr(started, "_steps"):
            raise ValueError("X must have the reports of a step at least")
        self._steps = started._steps
        return self

    def partial_fit(self, X, y=None):
        """Take the reports of one step, and return the frequencies at this step.

        Parameters
        ----------
        X : reports of one step, as ``client.privatize(rows, state=state)`` returns them; of any users
        y : ignored

        Returns
        -------
        ndarray of shape (n_categories,)

        Raises
        ------
        ValueError
            Where the client is not longitudinal, has several columns, or could not have made these reports; nothing is
            taken.
        """
        steps = getattr(self, "_steps", [])
        step = self._server().aggregate(X)
        if len(step.frequencies_) != 1:
            raise ValueError("client must have one column: make a stream for each column")
        if steps and (step.randomizer() != steps[0].randomizer()):
            raise ValueError("client must stay what it was at the first step: call fit to start a new stream")
        self._steps = [*steps, step]
        return self.value_

    def confidence_interval(self, level=0.95):
        """Return (low, high): ends of intervals of the frequencies at every step; each holds by itself.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : ndarrays of the shape of `values_`
        """
        ends = np.array([step.confidence_interval(level)[0] for step in self._taken()])
        return ends[..., 0], ends[..., 1]

    def plot(self, truth=None, *, category=0, level=0.95, ax=None, **kwargs):
        """Draw the frequency of a category at all steps with its band, and the exact one where it is given.

        Parameters
        ----------
        truth : array-like of shape (n_steps,), default=None
            Exact frequencies to compare with. A picture of them publishes them.
        category : int, default=0
            The place of the category in `categories_`.
        level : float or None, default=0.95
            Level of the band; None draws none.
        ax : matplotlib Axes or None, default=None
            None makes new ones.
        **kwargs
            For matplotlib's `plot` of the frequencies.

        Returns
        -------
        dpestim.stream.StreamDisplay
        """
        values = self.values_[:, category]
        band = None if level is None else tuple(end[:, category] for end in self.confidence_interval(level))
        if truth is not None:
            truth = np.asarray(truth, np.float64)
            if truth.shape != values.shape:
                raise ValueError("truth must have a number for each step")
        return StreamDisplay(values, band, truth, label=str(self.categories_[category])).plot(ax, **kwargs)

    @property
    def n_steps_(self):
        """Steps so far."""
        return len(self._taken())

    @property
    def values_(self):
        """Frequencies at all steps."""
        return np.array([step.frequencies_[0] for step in self._taken()])

    @property
    def value_(self):
        """Frequencies at the latest step."""
        return self._taken()[-1].frequencies_[0]

    @property
    def standard_errors_(self):
        """Standard errors at all steps."""
        return np.array([step.standard_errors_[0] for step in self._taken()])

    @property
    def n_users_(self):
        """Reports at each step."""
        return np.array([step.n_users_ for step in self._taken()])

    @property
    def categories_(self):
        """The categories."""
        return self._taken()[-1].categories_[0]

    @property
    def privacy_(self):
        """What all reports of a user who reported at every step promise together."""
        last = self._taken()[-1]
        return last._all_reports(last._columns_now(), self.n_steps_)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_steps")

    # ---------------------------------------------------------------- inside

    def _taken(self):
        if not hasattr(self, "_steps"):
            raise AttributeError("this LocalStream has no steps yet: call partial_fit with the reports of one")
        return self._steps

    def _server(self):
        if not isinstance(self.client, LongitudinalEstimator):
            raise ValueError("client must be a longitudinal estimator of dpestim.local, such as LGRRFrequencyEstimator")
        return clone(self.client)
