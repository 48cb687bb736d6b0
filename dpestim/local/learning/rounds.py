"""Rounds of a descent: the server sends its model, a group answers with noisy gradients, it takes a step."""

import math
from copy import copy

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpestim import parallel
from dpestim.inputs import clipped_rows, in_order, is_by_column, longest, pair_of, row_shape
from dpestim.inputs.declared import columns_seen
from dpestim.inputs.numbers import FILL
from dpestim.inputs.safe_errors import attempt
from dpestim.inputs.scaled import Scale
from dpestim.local.estimates.mean import MeanEstimator
from dpestim.local.learning.gradients import MECHANISMS, Round, client_of, gradients_of
from dpestim.local.learning.groups import CENTRE, Groups, InParts
from dpestim.local.learning.told import Told
from dpestim.models import PrivateModel, checked_number
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import canonical_epsilon
from dpestim.progress import Progress, check_verbose
from dpestim.rng import WordSource, check_random_state

#: Rounds of a `fit`, how many of the first steps are cut to the longest one, and the exponent of the average.
_FEWEST, _MOST, _FIRST, _TAIL = 4, 256, 4, 8
#: The most noise (its square) that a centre may have.
_UNCLEAR = 0.25
#: Where weights are kept: no fit comes near it, and floats stay finite whatever the noise.
_RADIUS = 1e4
#: Users whose gradients are held at a time have so many numbers together.
_CELLS = 1 << 22
#: Parameters that may change between rounds.
_FREE = ("ledger", "random_state", "n_jobs", "verbose", "n_rounds", "warm_start")


class GradientModel(Told, InParts, PrivateModel):
    """Linear model of users who answer once, with a noisy gradient; a sub-class knows targets and loss (`sgd.md`).

    It brings `_link` (of the classes, or None), `_targets` (as the link takes them, and what `_declared_domain` says:
    the classes or None, and the middle and half of the range), and `_check_more`.
    """

    _checked_as = "rounds"
    _advice = FILL
    _trust, _neighbours = "local", Neighbours.LOCAL
    #: The round that is open, the reports of its users so far, and the average of all weights.
    _round = _group = _average = None
    #: What the rows were read by: (norm, classes, (middle, half)); and classes that only `partial_fit` was told.
    _domain = _told = None
    #: The `Scale` of columns with bounds.
    _scale = None
    #: Steps so far, what is promised, what was learned without a promise, and the parameters of the first round.
    _n_steps, _made, _leaks, _frozen = 0, None, (), None
    _STATE = ("_round", "_group", "_average", "_domain", "_told", "_n_steps", "_made", "_leaks", "_frozen",
              "_scale", "transformer_", "n_rounds_", "coef_", "intercept_", "classes_", "data_norm_", "n_features_in_",
              "feature_names_in_")

    def __init__(self, epsilon=1.0, *, mechanism="privunit", bounds=None, data_norm=None, n_rounds=None,
                 learning_rate=0.6, fit_intercept=True, intercept_scaling=0.2, warm_start=False, ledger=None,
                 random_state=None, n_jobs=None, verbose=0):
        self.epsilon = epsilon
        self.mechanism = mechanism
        self.bounds = bounds
        self.data_norm = data_norm
        self.n_rounds = n_rounds
        self.learning_rate = learning_rate
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.warm_start = warm_start
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ---------------------------------------------------------------- the verbs of both sides

    def next_round(self, n_features=None, centre=False):
        """Close the open round, if there is one with reports, by a step; open the next, and return what to broadcast.

        Parameters
        ----------
        n_features : int, default=None
            Columns of X: needed for the first round of a model that has seen no row.
        centre : bool, default=False
            Whether the first group answers with its rows, and all others with gradients about the mean of those: for
            models with an intercept and for many users, whose mean has little noise.

        Returns
        -------
        Round
            For the next group of users. A round that nobody answered is returned again.
        """
        trial = self._resumed()
        trial._check_parameters()
        if n_features is not None:
            n_features = _whole("n_features", n_features, 1, 1 << 16)
        if trial._round is None:
            if n_features is None:
                raise ValueError("n_features must be given before the first round, because no row has been seen")
            if trial._inferred():
                raise ValueError(f"{' and '.join(trial._inferred())} must be declared before the first round")
            trial.n_features_in_ = n_features
            trial._settle_bounds(None, n_features)
            trial._open()
        elif n_features not in (None, trial.n_features_in_):
            raise ValueError(f"n_features must be {trial.n_features_in_}, as in the rounds before")
        if centre:
            if not trial.fit_intercept or trial._round.number or trial._group is not None:
                raise ValueError("centre must be False, except in the first round of a model with an intercept")
            trial._round = Round(0, trial._round.weights, None)
        if trial._group is not None:
            trial._step()
        self._adopt(trial)
        return self._round

    def privatize(self, X, y, round_=None):
        """Answer on the users' side: randomise the gradient of each row's loss at the model of a round.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        round_ : Round, default=None
            What the server broadcast. None: the round that is open here; where none is, the first.

        Returns
        -------
        ndarray of shape (n_rows, width)
            Reports for `aggregate`.

        Notes
        -----
        Each call is a release of its rows: a user answers in one round. `data_norm` and `classes` or `target_bounds`
        must be declared, since a device sees no other rows.
        """
        if round_ is not None and not isinstance(round_, Round):
            raise ValueError("round_ must be None or a Round, as next_round returns it")
        trial = self._resumed()
        rows, targets = trial._read(X, y, declared=True)
        round_ = trial._round if round_ is None else round_
        _whole("round_.number", round_.number, 0, Groups.most_rounds - 1)
        weights, error = attempt(lambda: np.asarray(round_.weights, np.float64))
        if error or weights.shape != trial._round.weights.shape:
            raise ValueError(f"round_ must have weights of shape {trial._round.weights.shape}, all of them numbers")
        d = trial.n_features_in_
        if round_.centre is not None:
            shape, error = attempt(lambda: np.shape(np.asarray(round_.centre, np.float64)))
            if error or shape not in ((), (d,)):
                raise ValueError(f"round_ must have a centre of {d} numbers, 0.0 or None")
        self._charge(trial._promised(), len(rows), getattr(trial, "feature_names_in_", ()))
        return trial._answers(rows, targets, round_, WordSource(self.random_state))

    def aggregate(self, reports):
        """Add reports of users, as `privatize` returns them, to the round that is open; returns self.

        Reports carry numbers only: that they answer this round is for the caller to know; what no client of this
        mechanism could have sent is a ValueError.
        """
        if self._round is None:
            raise ValueError("no round is open: call next_round first")
        group = MeanEstimator(self.transformer_) if self._group is None else self._group
        group.aggregate(reports)
        self._group = group
        self._bind_here()
        self._made = self._promised(elsewhere=True)
        return self

    def fit(self, X, y):
        """Fit the model to rows X and targets y, which answer one by one: one release of epsilon of each row.

        Plays both sides: groups are drawn independently of the rows, and each goes through `next_round`, `privatize`
        and `aggregate`.

        {fit of rows with targets}
        """
        return self._fit(X, y, restart=not self.warm_start)

    def partial_fit(self, X, y):
        """Let one more group answer: one round, and one release of epsilon of each of its rows, which are new users.

        {fit of rows with targets}
        """
        return self._fit(X, y, restart=False, one_group=True)

    def _fit(self, X, y, *, restart, one_group=False, told=None):
        trial = self._trial() if restart else self._resumed()
        trial._told = told if trial._told is None else trial._told
        if self._is_strict() and trial._inferred():
            raise ValueError(f"strict mode: declare {' and '.join(trial._inferred())}, which cannot be inferred from "
                             "the data")
        rows, targets = trial._read(X, y)

        def answers(groups, source):
            members = groups.of_rows(source, len(rows))

            def answer(k, round_):
                few = members[k]
                if len(few):
                    trial.aggregate(trial._answers(rows[few], targets[few], round_, source))
                return trial._group

            return answer

        return self._play(trial, len(rows), answers, one_group)

    def _play(self, trial, n_rows, answers, one_group=False):
        """Pay, and play both sides through.

        ``answers(groups, source)(k, round_)`` returns the counts of the reports of group k, or None.
        """
        n_centre = 0 if one_group else trial._n_centre(n_rows)
        n_rounds = 1 if one_group else min(trial._n_rounds(n_rows - n_centre), max(1, n_rows))
        trial._made = promise = trial._promised()
        self._charge(promise, n_rows, getattr(trial, "feature_names_in_", ()))
        trial._warn_if_inferred()
        progress = Progress(self, n_rounds + (n_centre > 0))
        groups = Groups(trial._round.number, n_rounds, n_centre > 0)
        answer = answers(groups, WordSource(self.random_state))
        for k in range(len(groups)):
            round_ = trial.next_round(centre=groups.centre and k == 0)
            trial._group = answer(k, round_)
            progress.done(k + 1)
        trial.next_round()
        trial._publish()
        trial._made = promise
        self._adopt(trial)
        return self

    @property
    def privacy_(self):
        """What the reports of one user promise; known before any data where everything is declared."""
        return self._promised() if self._made is None else self._made

    # ---------------------------------------------------------------- inside: users

    def _read(self, X, y, declared=False, made_up=False):
        """Return (rows of norm at most 1, targets), and open the first round where none is; nothing is spent."""
        self._check_parameters()
        strict = self._is_strict()
        if declared and self._inferred():
            raise ValueError(f"{' and '.join(self._inferred())} must be declared, because a device sees only its "
                             "user's row")
        if self._round is None and self.bounds is not None:
            self._settle_bounds(*columns_seen(X)[:2])
        X = self._checked_X(X, reset=self._round is None, total=strict)
        if self._scale is not None:
            X = self._scale.rows(X)
        targets, *rest = self._targets(y, len(X), strict or made_up)
        if self._round is None:
            self._leaks = tuple(self._inferred())
            self._domain = longest(X) if self._norm() is None else self._norm(), *rest
            self._open()
        return clipped_rows(X, self._domain[0], self._tail()), targets

    def _answers(self, rows, targets, round_, source, first=0):
        """Return the reports of users in a round, of whom so many come before the first."""
        link, columns = self._link(self._domain[1]), self.transformer_._columns_now()
        shift = np.zeros(rows.shape[1])
        if round_.centre is not None and self.fit_intercept:
            shift[:-1] = round_.centre
        source, many = source.part(round_.number), max(1, _CELLS // max(1, self._average.size))
        parts = []
        for at in range(0, len(rows), many):
            few = slice(at, at + many)
            if round_.centre is None:
                gradients = np.zeros((len(rows[few]), self._average.size))
                gradients[:, : self.n_features_in_] = rows[few, : self.n_features_in_]
            else:
                gradients = gradients_of(link, rows[few], targets[few], round_.weights, shift)
            read = columns.read(columns.parts(gradients), self.n_jobs, True)
            parts.append(columns.randomize(read, source, first + at, self.n_jobs))
        return np.concatenate(parts) if parts else np.empty((0, columns.report_width), columns.dtype)

    # ---------------------------------------------------------------- inside: the server

    def _open(self):
        """Open the first round, with weights of 0; from now on parameters of the model are as they are now."""
        if self._domain is None:
            self._domain = self._norm(), *self._declared_domain()
        shape = self._link(self._domain[1]).n_outputs, self.n_features_in_ + bool(self.fit_intercept)
        self.transformer_ = client_of(self.mechanism, self.epsilon, math.prod(shape))
        # (whoever uses it by itself pays as here)
        self.transformer_.set_params(ledger=self.ledger)._bound = self._to_bind()
        self._round, self._average = Round(0, np.zeros(shape)), np.zeros(shape)
        self._frozen = {k: v for k, v in self.get_params(deep=False).items() if k not in _FREE}

    def _settle_bounds(self, names, n_columns):
        """Find the scale of the columns, before the first round: bounds by name are in the order of the columns."""
        self._scale, bounds = None, self.bounds
        if bounds is None or n_columns is None:
            return
        if is_by_column(bounds):
            bounds = tuple(zip(*in_order(bounds, "pairs", names, name="bounds")[1]))
        self._scale = Scale(*pair_of(bounds, n_columns, same=True), centred=bool(self.fit_intercept))

    def _norm(self):
        """Return the declared norm of (scaled) rows, or None."""
        if self.data_norm is None:
            return None if self._scale is None else self._scale.norm
        return float(self.data_norm)

    def _step(self):
        """Close the round: a step against the mean gradient, as long as its noise, which is known, allows."""
        link, weights, centre = self._link(self._domain[1]), self._round.weights, self._round.centre
        mean = np.nan_to_num(self._group.mean_)
        if centre is None:
            self._round, self._group = Round(self._round.number + 1, weights, self._centre_of(mean)), None
            return
        gradient = mean.reshape(weights.shape) * link.most
        k, noise = self._n_steps + 1, self._noise() * link.most**2
        length = min(self._longest_step(), self.learning_rate * math.sqrt(self._group.n_users_ / (k * noise)))
        step = length * gradient * self._scales()
        if np.ndim(centre):  # (weights are those of rows that are not shifted)
            step[:, -1] -= step[:, :-1] @ centre / row_shape(self.n_features_in_, self._tail())[1]
        weights = weights - step
        weights *= min(1.0, _RADIUS / max(float(np.linalg.norm(weights)), 1e-300))
        share = (1 + _TAIL) / (k + _TAIL)
        self._average = (1 - share) * self._average + share * weights
        self._round, self._group, self._n_steps = Round(self._round.number + 1, weights, centre), None, k
        self._publish()

    def _centre_of(self, mean):
        """Return the mean of the rows of a group, shortened by what noise explains, and to what a row may have."""
        mean = mean[: self.n_features_in_]
        square, noise = float(mean @ mean), len(mean) * self._noise() / self._group.n_users_
        return mean * (max(0.0, 1 - noise / max(square, 1e-300)) * min(1.0, 1 / max(math.sqrt(square), 1e-300)))

    def _n_centre(self, n_rows):
        """Return how many users of a `fit` answer with their rows: none where their mean would be noise."""
        n = n_rows // CENTRE
        useful = self.fit_intercept and not self._round.number and self._group is None and n
        return n if useful and self.n_features_in_ * self._noise() / n <= _UNCLEAR else 0

    def _scales(self):
        """Return how many times longer steps are in each coordinate: so many that noise moves the intercept as rows."""
        scales = np.ones(self._average.shape[1])
        if self.fit_intercept:
            scales[-1] = 1 / row_shape(self.n_features_in_, self._tail())[1]
        return scales

    def _longest_step(self):
        """Return the longest step that no loss of a row makes unstable."""
        along = 1.0
        if self.fit_intercept:
            tail = row_shape(self.n_features_in_, self._tail())[1]
            along += tail - tail * tail
        return 1 / (self._link(self._domain[1]).curvature * along)

    def _noise(self):
        """Return the variance of a coordinate of what a report stands for."""
        columns = self.transformer_._columns_now()
        if columns.n_sampled:  # (in widths of the bounds, which are 2)
            return 4.0 * columns.laws[0].sampled_variance(len(columns), columns.n_sampled)
        return float(columns.even_variances().mean())

    def _publish(self):
        """Set what is public of the model: its averaged weights, in units of X and of the target."""
        norm, classes, (middle, half) = self._domain
        d = self._average.shape[1] - bool(self.fit_intercept)
        limit, tail = row_shape(d, self._tail())
        coef = self._average[:, :d] * (limit / norm) * half
        constant = np.full(len(coef), middle)
        if self.fit_intercept:
            constant += self._average[:, d] * tail * half
        self.coef_, self.intercept_, self.data_norm_ = coef, constant, norm
        if self._scale is not None:
            self.coef_, self.intercept_ = self._scale.in_units(coef, constant)
        self.n_rounds_ = self._n_steps
        if classes is None:
            self.coef_ = self.coef_[0]
        else:
            self.classes_ = classes

    # ---------------------------------------------------------------- inside: both

    def _scores(self, X):
        """Return the linear scores of rows, clipped as in `fit`; strict mode enters them in the ledger."""
        check_is_fitted(self)
        strict = self._is_strict()
        X = self._checked_X(X, reset=False, total=strict)
        if strict:
            self._note_predictions(len(X))
        limit, _ = row_shape(X.shape[1], 0.0)
        coef, intercept = np.atleast_2d(self.coef_), self.intercept_
        if self._scale is not None:
            coef, intercept = self._scale.of_scaled(coef, intercept)
            X = self._scale.rows(X)
        with np.errstate(all="ignore"):
            slopes = coef * (self.data_norm_ / limit)
            return clipped_rows(X, self.data_norm_, 0.0) @ slopes.T + intercept

    @classmethod
    def _typical_bits(cls):
        """Return how long a report is, for the table of estimators."""
        bits = client_of("privunit", 1.0, 1024).randomizer().report_bits
        return f"{bits:,.0f} (of 1,024 coefficients)"

    def _resumed(self):
        """Return a copy with the same state, which may read rows and open a round."""
        trial = copy(self)
        trial._group = None if self._group is None else copy(self._group)
        vars(trial).update(self._frozen or {})
        return trial

    def _adopt(self, trial):
        """Take the state of a copy."""
        for name in self._STATE:
            vars(self).pop(name, None)
        vars(self).update({name: value for name, value in vars(trial).items() if name in self._STATE})

    def _tail(self):
        return float(self.intercept_scaling) * bool(self.fit_intercept)

    def _n_rounds(self, n_rows):
        if self.n_rounds is not None:
            return int(self.n_rounds)
        link = self._link(self._domain[1])
        wanted = n_rows * (self.learning_rate / self._longest_step() / link.most) ** 2 / self._noise() / _FIRST
        return int(min(max(wanted, _FEWEST), _MOST))

    def _inferred(self):
        if self._round is not None:  # what was learned once stays so
            return list(self._leaks)
        given = {"classes": self._told, "data_norm": self.bounds}
        return [name for name in super()._inferred() if given.get(name) is None]

    def _promised(self, elsewhere=False):
        """Return what one user's report promises; `elsewhere`: whether it was seeded is not known here."""
        client = getattr(self, "transformer_", None)
        promise = self._guarantee(canonical_epsilon(self.epsilon if client is None else client.epsilon), 0)
        laws = [] if client is None else client._columns_now().laws
        notes = [*promise.notes, "The guarantee holds if no user answers "
                                 "twice.", *(f"Note: {r.slack}." for r in laws if r.slack)]
        known = {promise.seeded, False if self._made is None else self._made.seeded, None if elsewhere else False}
        seeded = True if True in known else None if None in known else False
        return PrivacyGuarantee(promise.epsilon, 0, self._trust, self._neighbours, seeded, tuple(dict.fromkeys(notes)))

    def _check_parameters(self):
        """Raise ValueError for a parameter that does not fit."""
        canonical_epsilon(self.epsilon)
        if not isinstance(self.mechanism, str) or self.mechanism not in MECHANISMS:
            raise ValueError(f"mechanism must be one of {', '.join(map(repr, MECHANISMS))}")
        if self.data_norm is not None:
            checked_number("data_norm", self.data_norm, "in [1e-100, 1e100]", lambda v: 1e-100 <= v <= 1e100)
        checked_number("intercept_scaling", self.intercept_scaling, "in [0.01, 100]", lambda v: 0.01 <= v <= 100)
        checked_number("learning_rate", self.learning_rate, "in [1e-6, 1e6]", lambda v: 1e-6 <= v <= 1e6)
        if self.n_rounds is not None:
            _whole("n_rounds", self.n_rounds, 1, 1 << 20)
        for name in ("fit_intercept", "warm_start"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False")
        if self.bounds is not None:
            pair_of(self.bounds, same=True)
        self._check_more()
        check_random_state(self.random_state)
        parallel.check_n_jobs(self.n_jobs)
        check_verbose(self.verbose)


def _whole(name, value, least, most):
    where = f"from {least} to {most:,}, an int"
    if isinstance(value, bool) or checked_number(name, value, where, lambda v: least <= v <= most) != int(value):
        raise ValueError(f"{name} must be a number {where}")
    return int(value)
