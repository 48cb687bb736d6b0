"""What all streams share: a start that is charged, steps, a state that pickles, and intervals of every step."""

import copy

import numpy as np

from dpestim.central.base import CentralMechanism
from dpestim.privacy import Neighbours
from dpestim.results import Part
from dpestim.rng import WordSource, check_random_state
from dpestim.stream.plotting import StreamDisplay
from dpestim.stream.reading import checked_count
from dpestim.stream.run import Noise, Run

#: The most events of one user that can be declared.
_MOST_EVENTS = 1 << 20


class StreamMechanism(CentralMechanism):
    """Base of streams: sub-classes have ``__init__``, `_spec` (how steps are read and taken) and `_columns`.

    `_spec()` returns an object with `read(X, strict)` (integers of steps, whether it was one step), `begin()` (the
    state of a stream without a step) and `take(state, steps, noise)`, which changes the state and returns a dict of
    what is known of these steps: "values" and, where they are known, "errors" (standard deviations) and "widths".
    """

    _checked_as, _template = "stream", "stream"
    _not_in_parts = "needs the steps in their order, and one state: call partial_fit with one part after the other"

    _texts = {
        "values": """\
            bounds : (low, high), default=(0, 1)
                The public range of a step; values are clipped to it. The ends must be multiples of `resolution`.
            change : float, default=None
                The most by which one event changes one step. None: from one end of the bounds to the other. Declare 1
                for steps that count events.
            resolution : float, default=1
                Values are rounded down to multiples of it.
        """,
        "user events": """\
            user_events : int, default=None
                The most events of one user: the guarantee is then for users. None: it is for events.
        """,
        "latest releases": """\
            values_ : ndarray
                The releases of the latest call.
            value_ : float or ndarray
                The release of the latest step.
            n_steps_ : int
                Steps so far.
        """,
    }

    #: SECRET: exact sums of the steps so far are in it
    _run = None

    def fit(self, X, y=None):
        """Start a new stream, which is charged, and take its first steps.

        Parameters
        ----------
        X : as for `partial_fit`
        y : ignored

        Returns
        -------
        self
        """
        self._bind_here()
        self._advance(X, None)
        return self

    def partial_fit(self, X, y=None):
        """Take the next steps and return what is released at them; the first call starts the stream and is charged.

        Parameters
        ----------
        X : a step, or array-like, Series or data frame with a row for each step
        y : ignored

        Returns
        -------
        float or ndarray
            The release of the step, or of each step.

        Raises
        ------
        ValueError
            For bad data, before anything is charged or taken; after the horizon; and where a copy of this stream has
            gone on from the same step.
        """
        self._bind_here()
        return self._advance(X, self._run)

    def release(self, X):
        """Return what a new stream of these steps releases, and keep nothing; one charge.

        Parameters
        ----------
        X : as for `partial_fit`

        Returns
        -------
        float or ndarray
        """
        return copy.copy(self)._advance(X, None)

    def confidence_interval(self, level=0.95):
        """Return (low, high), ends of intervals for the steps of the latest call.

        Each encloses its exact number with this probability; not all together.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : ndarrays of the shape of `values_`

        Raises
        ------
        AttributeError
            Of what has no error bars.
        """
        widths = getattr(self, "_widths", None)
        if widths is None:
            raise AttributeError(f"{type(self).__name__} has no intervals here: {self._no_intervals}")
        if isinstance(level, bool) or not 0 < level < 1:
            raise ValueError("level must be a number between 0 and 1")
        half = np.broadcast_to(widths.half(level), self.values_.shape)
        return self.values_ - half, self.values_ + half

    def plot(self, truth=None, *, level=0.95, ax=None, **kwargs):
        """Draw the releases of the latest call with their band, and the exact numbers where these are given.

        Parameters
        ----------
        truth : array-like, default=None
            Exact numbers to compare with. A picture of them publishes them.
        level : float or None, default=0.95
            Level of the band; None draws none.
        ax : matplotlib Axes or None, default=None
            None makes new ones.
        **kwargs
            For matplotlib's `plot` of the releases.

        Returns
        -------
        dpestim.stream.StreamDisplay
        """
        return StreamDisplay.from_estimator(self, truth, level=level, ax=ax, **kwargs)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "values_")

    # ---------------------------------------------------------------- inside

    #: What to do where there are no intervals.
    _no_intervals = "the error depends on the stream"
    #: What a release is called.
    _quantity = "release"

    def _relation(self):
        return Neighbours.EVENT if checked_count("user_events", self.user_events, _MOST_EVENTS) is None else (
            Neighbours.USER)

    def _events(self):
        return checked_count("user_events", self.user_events, _MOST_EVENTS) or 1

    def _advance(self, X, run):
        """Take steps of a stream, a new one where there is none, and return their releases."""
        spec = self._spec() if run is None else run.state[0]
        steps, single = spec.read(X, self._is_strict())
        _check_horizon(spec, 0, steps)
        if run is None:
            check_random_state(self.random_state)
            promised = self._guarantee()
            self._pay()
            run = Run([spec, spec.begin(), False], promised, self.random_state)
        with run.lock:
            _check_horizon(spec, run.n_steps, steps)  # (under the lock: another thread may have taken steps meanwhile)
            if run.state[2]:
                raise ValueError("an earlier call of this stream was cut off, and its noise may have been used: "
                                 "start a new stream with fit, which charges again")
            run.claim(self._find_ledger(), type(self).__name__)
            run.state[2] = True
            found = spec.take(run.state[1], steps, run.noise(self.random_state))
            run.n_steps += len(steps)
            run.state[2] = False
            values = found["values"]
            learned = {"values_": values, "value_": values[-1], "n_steps_": run.n_steps,
                       "_run": run, "_widths": found.get("widths"), "_kept_promise": run.guarantee}
            if "errors" in found:
                learned["standard_errors_"] = np.broadcast_to(found["errors"], values.shape)
            self._become({**learned, **found.get("more", {})})
        if not single:
            return values
        return float(values[0]) if values.ndim == 1 else values[0]

    def _noise(self, seed):
        """Return noise of a seed, for tests."""
        return Noise(WordSource(seed))

    def _notes(self):
        if self._relation() is Neighbours.USER:
            return (f"User level: a user has at most {self._events()} events, all of which may differ. The steps at "
                    "which something is released are public.",)
        return ("Event level: one event differs; a user with several events has as many times this epsilon. The steps "
                "at which something is released are public.",)

    def _labels(self):
        """Return the axes of one release, for `result_`."""
        return ()

    def _result_parts(self, level):
        errors = getattr(self, "standard_errors_", None)
        interval = None
        if level and getattr(self, "_widths", None) is not None:
            low, high = self.confidence_interval(level)
            interval = np.stack([low[-1], high[-1]], -1)
        return [Part(f"{self._quantity} at step {self.n_steps_}", self._labels(), np.asarray(self.values_[-1]),
                     None if errors is None else np.asarray(errors[-1]), interval)]


def _check_horizon(spec, before, steps):
    """Raise ValueError where steps go beyond the last one."""
    horizon = getattr(spec, "horizon", None)
    if horizon is not None and before + len(steps) > horizon:
        raise ValueError(f"X goes beyond the horizon of {horizon} steps: start a new stream with fit, which charges "
                         "again, or declare a longer horizon")
