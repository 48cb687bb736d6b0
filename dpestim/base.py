"""What every estimator of dpestim shares: an honest pickle, ledger and strict mode of the block, a registry."""

import contextlib
import importlib
import inspect
import os
from functools import lru_cache, partial
from pathlib import Path

from sklearn.base import BaseEstimator

from dpestim import lazy, notebook
from dpestim.docstrings import Documented, SignatureOfInit
from dpestim.privacy import ambient
from dpestim.privacy.config import is_strict, relation_of_block, relation_of_process
from dpestim.privacy.neighbours import CENTRAL, Neighbours
from dpestim.rng import check_random_state

#: Raised by one whenever the state of a pickled estimator changes its meaning.
PICKLE_FORMAT = 5
#: The sub-packages whose `__all__` is the registry, in the order of the documentation.
SUBPACKAGES = ("local", "shuffle", "central", "statistics", "linear_model", "tree", "ensemble", "cluster",
               "covariance", "decomposition", "naive_bayes", "preprocessing", "feature_selection", "synthesis",
               "graph", "geo", "recommend", "stream")
#: The relation of what has no parameter for it: the name, which an enum looks up anew each time it is asked.
_PUBLIC = Neighbours.SUBSTITUTION.value
#: Methods that raise ValueError for parameters, and ask for no data.
_CHECKS_OF_PARAMETERS = ("_check", "_check_parameters", "_check_call_parameters", "_checked_bounds")


class BoundRepr:
    """`__repr__` of instances: what scikit-learn shows, and what they and their parts are bound to.

    The class has that of scikit-learn, by which it knows where lines may be broken.
    """

    def __get__(self, instance, owner):
        return BaseEstimator.__repr__ if instance is None else partial(_shown, instance)


class ResultOf:
    """What a fitted estimator tells: numbers with labels, standard errors and intervals, where it knows some.

    A table: ``print``, `to_frame`, `plot`, `interval`, and `dpestim.inspection.privacy_card` take it. It costs nothing.
    """

    def __get__(self, estimator, owner):
        """Return `dpestim.results.Estimates`; an AttributeError where nothing was fitted, or there is nothing to tell.

        It has no setter, so that an estimator may keep a result of its own under this name.
        """
        if estimator is None:
            return self
        from dpestim.results import result_of  # (loaded when somebody asks what a fit says)

        return result_of(estimator)


class PrivateEstimator(Documented, BaseEstimator):
    """Base of all estimators: parameters are only stored, state is versioned, budget is charged in one place."""

    #: (ledger, strict) of the block in which this was made, cloned or pickled, and the ledger of the block that paid
    #: for it last; its clones and pickles take it along
    _bound = (None, False)
    #: whether this left a process in which a block was open: then parameters alone do not end what it is bound to
    _stays_bound = False
    #: name of the relation of the block (`config_context`) in which this was made, cloned, pickled or last summarised
    _bound_relation = None
    #: reservations (`Ledger.reserve`) on which this draws where their ledger pays, while others are fitted, too; clones
    #: and pickles take them along
    _reservations = ()
    #: Which family of checks of `dpestim.testing` knows how it is used, where its capabilities do not tell.
    _checked_as = None
    #: By which protocol parts that were read apart are added: "summaries" (`summarize`, `merge`, `release`), counts of
    #: "reports" (`merge`), or "nothing".
    merges = "nothing"
    #: Whether a fit adds noise to integers that are sums of those of parts of the rows, whoever has these, and reads
    #: nothing else of rows: then several parties can make the noise (`dpestim.parties`).
    _adds_up = False
    #: Of what has no `fit_parts`: why it is not fitted to rows in parts, and what to do instead.
    _not_in_parts = ("needs all rows at once: fit it to a sample of the rows on one machine, or take an estimator that "
                     "has fit_parts")
    #: Name of the proof file, where it is not that of the module.
    _proof_name = None
    __signature__ = SignatureOfInit()
    result_ = ResultOf()

    def __new__(cls, *args, **kwargs):
        """Bind the ledger and the strict mode of the block, so that they are found in any thread and after it."""
        self = super().__new__(cls)
        ledger, strict, relation = ambient.ledger(), self._is_strict(), relation_of_block()
        if ledger is not None or strict:
            self._bound = ledger, strict
        if relation is not None:
            self._bound_relation = relation
        return self

    @classmethod
    @lru_cache(maxsize=256)
    def _get_param_names(cls):
        """Return what scikit-learn reads from the signature: once for each class, as it is most of a clone."""
        return super()._get_param_names()

    def set_params(self, **params):
        """Set parameters; ``ledger=None`` also ends what bound this to the ledger of a block.

        Among other parameters it does so only where the parameter `ledger` was not None, so that
        ``set_params(**get_params())`` changes nothing. What a block has sent to another process stays bound:
        ``Ledger.detach`` ends that.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self
        """
        ends = "ledger" in params and params["ledger"] is None and not self._stays_bound and (
            len(params) == 1 or getattr(self, "ledger", None) is not None)
        super().set_params(**params)
        if ends:
            self._unbind()
        return self

    def _unbind(self):
        """Be bound to no ledger: a later use is paid by the parameter, or by the block around it."""
        vars(self).pop("_stays_bound", None)
        if self._bound[0] is not None:
            self._bound = (None, self._bound[1])

    def __sklearn_clone__(self):
        twin = super().__sklearn_clone__()
        bound = self._to_bind()
        if bound != (None, False):
            twin._bound = bound
        if self._bound_relation is not None and twin._bound_relation is None:
            twin._bound_relation = self._bound_relation
        if self._stays_bound:
            twin._stays_bound = True
        if self._reservations:
            twin._reservations = self._reservations
        return twin

    def __getstate__(self):
        state = dict(super().__getstate__())
        state["_dpestim_format"] = PICKLE_FORMAT
        bound = self._to_bind()
        if bound != (None, False):
            state["_bound"] = bound
        if bound[0] is not None and ambient.is_open(bound[0]):
            state["_dpestim_sent"] = os.getpid()
        relation = relation_of_block()
        return state if relation is None else {**state, "_bound_relation": relation}

    def __setstate__(self, state):
        state = dict(state)
        found = state.pop("_dpestim_format", None)
        if found != PICKLE_FORMAT:
            raise ValueError(
                f"this pickle of {type(self).__name__} has format {found}, and this version of dpestim reads format "
                f"{PICKLE_FORMAT} only: fit again, or load the pickle with the version that wrote it"
            )
        sent = state.pop("_dpestim_sent", None)
        super().__setstate__(state)
        if sent not in (None, os.getpid()):
            self._stays_bound = True

    def _to_bind(self):
        """Return (ledger, strict) as a clone, a copy or a pickle must take them along, wherever it is made."""
        here = ambient.ledger()
        if here is None:
            here = self._bound[0]
        if here is None and getattr(self, "ledger", None) is None:
            here = ambient.to_bind()
        return here, self._is_strict()

    def _is_strict(self):
        """Tell whether nothing that the caller sees may depend on a value (`dpestim.config_context`)."""
        return self._bound[1] or is_strict()

    def _refuse_in_strict(self, why):
        """Raise ValueError in strict mode."""
        if self._is_strict():
            raise ValueError(f"strict mode: {why}")

    def _relation(self):
        """Return whom a release protects, or raise ValueError: as `neighbours` says, or the block, or the ledger.

        Without such a parameter the number of records is public.
        """
        name = getattr(self, "neighbours", _PUBLIC)
        if name is None:
            name = relation_of_block() or self._bound_relation or relation_of_process()
            if name == "ledger":
                ledger = self._known_ledger()
                if ledger is None:
                    return Neighbours.SUBSTITUTION
                return CENTRAL.get(getattr(ledger, "neighbours", None), Neighbours.SUBSTITUTION)
        if not isinstance(name, str) or name not in CENTRAL:
            raise ValueError(f"neighbours must be None or one of {sorted(CENTRAL)}")
        return CENTRAL[name]

    def _randomises(self, method):
        """Tell whether a method randomises each row by itself; ValueError where no row is turned by itself."""
        return False

    @property
    def _replaces(self):
        """Whether neighbours have one record replaced, so that the number of records is public."""
        return self._relation() is Neighbours.SUBSTITUTION

    def _known_ledger(self):
        """Return the ledger that would pay, or None: the parameter, else that of the block, else the one bound."""
        ledger = getattr(self, "ledger", None)
        if ledger is None and ambient.open_blocks.are_open:
            ledger = ambient.ledger()
        return self._bound[0] if ledger is None else ledger

    def _find_ledger(self):
        """Return the ledger that pays."""
        ledger = self._known_ledger()
        if ledger is None:
            if ambient.open_blocks.are_open:
                ambient.refuse_to_slip_through()
        elif isinstance(ledger, type) or not callable(getattr(ledger, "charge", None)):
            raise ValueError("ledger must be None or a dpestim.accounting.Ledger (something with a method charge)")
        return ledger

    def _charge(self, guarantee, n_rows, columns=()):
        """Charge a release to the ledger, where there is one; called after validation and before words are drawn."""
        ledger = self._find_ledger()
        if ledger is not None:
            self._payer(ledger).charge(guarantee, estimator=type(self).__name__, n_rows=n_rows, columns=tuple(columns))
            self._bind(ledger)

    def _refuse_ahead(self, y, n_rows):
        """Raise ValueError for what a fit would refuse, whatever the rows hold: whoever fits several asks all first.

        Here: parameters that no promise depends on.
        """
        check_random_state(getattr(self, "random_state", None))
        for name in _CHECKS_OF_PARAMETERS:
            getattr(self, name, lambda: None)()

    def _become(self, learned):
        """Take over what was learned, by name, and drop what was learned before; returns self.

        In this order: another thread that uses this estimator meanwhile never finds nothing.
        """
        vars(self).update(learned)
        for name in vars(self).copy():
            if name.endswith("_") and not name.startswith("_") and name not in learned:
                vars(self).pop(name, None)
        return self

    def _payer(self, ledger):
        """Return the handle to charge in place of a ledger: of a reservation in it on which this draws, or itself."""
        return next((one for one in self._reservations if one == ledger), ledger)

    @contextlib.contextmanager
    def _drawing_on(self, reservations):
        """Draw on reservations, before others, as long as the block is open."""
        self._reservations = (*reservations, *self._reservations)
        try:
            yield
        finally:  # (blocks of two threads may end in any order: each takes its own away)
            left = tuple(one for one in self._reservations if all(one is not own for own in reservations))
            if left:
                self._reservations = left
            else:
                vars(self).pop("_reservations", None)  # as it was: that of the class

    def _bind(self, ledger):
        """Stay bound to the ledger of the block, which has just paid: it pays for every later use too.

        Without a label: whose rows come later nobody knows, so that they are charged to everybody.
        """
        if ledger is not None and ledger is ambient.ledger() and ledger is not self._bound[0]:
            self._bound = (getattr(ledger, "for_everybody", lambda: ledger)(), self._bound[1])

    def _bind_here(self):
        """Stay bound to the ledger of the block around this place: called by verbs that a release may follow."""
        self._bind(ambient.ledger())
        self._bind_relation()

    def _bind_relation(self):
        """Keep the relation of the block around this place."""
        relation = relation_of_block()
        if relation is not None:
            self._bound_relation = relation

    def _note_score(self, n_rows, what=""):
        """Record, where there is a ledger, that raw data were compared with: an entry of epsilon 0, flagged.

        `what` is shown instead of a score, such as predictions.
        """
        ledger = self._find_ledger()
        if ambient.is_noted() and hasattr(ledger, "record_score"):
            ledger.record_score(estimator=f"{type(self).__name__} {what}".rstrip(), n_rows=n_rows)
            self._bind(ledger)

    @classmethod
    def _proof(cls):
        """Return the path of the proof: the Markdown file beside the module of the class, which several may share."""
        module = Path(inspect.getfile(cls))
        return module.with_name(f"{cls._proof_name or module.stem}.md")

    @property
    def _repr_html_(self):
        """In notebooks a fitted estimator shows its privacy card, and any other what scikit-learn shows."""
        if not (callable(getattr(self, "__sklearn_is_fitted__", None)) and self.__sklearn_is_fitted__()):
            return super()._repr_html_
        return lambda: notebook.show(self)

    def _result_parts(self, level):
        """Return what `result_` shows (`dpestim.results.Part`), with intervals of this level; none: nothing is kept."""
        from dpestim.results import learned_parts  # (as for `result_`)

        return learned_parts(self, level)

    __repr__ = BoundRepr()

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        return {**bundle, "text/html": self._repr_html_()} if "text/html" in bundle else bundle

    def _test_data(self, n_rows, seed=0):
        """Return (X, y or None) that suit the declared domain of this setting; the registry's checks use it."""
        raise TypeError(f"{type(self).__name__} does not say what data it takes: implement `_test_data`")


def _shown(estimator, N_CHAR_MAX=700):
    """Return what scikit-learn shows, and what an estimator and its parts are bound to besides their parameters."""
    own, parts = _bindings(estimator), []
    for name, part in estimator.get_params(deep=True).items():
        parts += [f"{name}: {each}" for each in _bindings(part) if each not in own]
    return ", ".join([BaseEstimator.__repr__(estimator, N_CHAR_MAX), *own, *parts])


def _bindings(estimator):
    """Return what an estimator is bound to, in words: a ledger, strict mode, and a relation, of a block."""
    if not isinstance(estimator, PrivateEstimator):
        return []
    (ledger, strict), relation = estimator._bound, estimator._bound_relation
    return ([f"bound to {ledger!r}"] * (ledger is not None) + ["strict mode"] * strict
            + [f'neighbours="{relation}" by its block'] * (relation is not None))


def all_estimators(packages=SUBPACKAGES, room=""):
    """Return the registry: (name, class) of every estimator in an `__all__` that brings `_test_params()`.

    Whatever is listed there is exported, tested, benchmarked and documented with no further line. With a `room`, a
    package within these, what is known to live in other rooms is left out, and not imported.
    """
    found = []
    for package in packages:
        module = importlib.import_module(f"dpestim.{package}")
        for name in module.__all__:
            home = lazy.home(module.__name__, name)
            if room and home and not home.startswith(f"{module.__name__}.{room}."):
                continue
            item = getattr(module, name)
            if inspect.isclass(item) and issubclass(item, BaseEstimator) and hasattr(item, "_test_params"):
                found.append((f"{package}.{name}", item))
    return found
