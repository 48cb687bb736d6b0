"""The law of one column: an immutable object that knows its exact distribution and its guarantee.

The arguments of ``__init__`` *are* the law. They are declared there and nowhere else: equality, hashing, pickling,
caching, and whether two aggregates may be merged all follow from them. A parameter that is left out of the signature
cannot make a law.
"""

import inspect
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from types import MappingProxyType, NoneType
from typing import NamedTuple

import numpy as np

from dpestim.docstrings import SignatureOfInit
from dpestim.local.constants import constants_of
from dpestim.local.fields import Field
from dpestim.local.guessing import BestGuess, Runs
from dpestim.privacy.exact import canonical_epsilon
from dpestim.rng import BLOCK_WORDS

#: The kind that everything belongs to.
ALL = "all"
#: What the names of relaxed models mean: the (inputs, others, outputs) for which epsilon holds. Outputs of the
#: protected kind are those that nobody reports because of having less protection. Other names need no line here.
MODELS = {
    "SDLDP": (("high", "high", ALL), (ALL, ALL, "high")),
    "ULDP": ((ALL, ALL, "protected"),),
}
#: Entries of a matrix of Fractions that guessing reads; a law with larger ones says what its columns are (`runs`).
LARGEST_LAW = 1 << 20
#: Rows whose reports are counted together, and bytes that these take at most.
_TOGETHER, _ROOM = 64, 1 << 23
#: Parameters that a law gets from the column: its share of epsilon, and how large the domain is.
_FROM_COLUMN = ("epsilon", "n_categories")
#: Types of arguments that are Python's own, never change, and are equal only where they are the same, but for a type.
_EXACT = frozenset({bool, int, str, bytes, Fraction, NoneType})


class Promise(NamedTuple):
    """One sentence of a guarantee: P[y | x] <= e^epsilon P[y | x'], exactly.

    For every x of the kind `inputs`, every x' of the kind `others` and every report y of the kind `outputs`;
    `ALL` is everything. `epsilon` is a Fraction, or ``math.inf``, which promises nothing.
    """

    inputs: str
    others: str
    outputs: str
    epsilon: Fraction | float


class Randomizer:
    """What is reported of one column's values; made once from its arguments, and never changed.

    A sub-class sets in ``__init__``, whose first parameter is ``epsilon``, after calling this one:

    n_words : int
        Random words a record, all stages together, without the rare ones.
    report_dtype, report_width : numpy dtype and int
        A report is ``report_width`` numbers of this dtype (`dpestim.local.reports` has the usual shapes).
    report_bits : float
        Information sent by a user, in bits.
    n_counts : int
        Length of the vector of counts that `count` fills.

    and brings `privatize`, `check_reports`, `count`, `transition_matrix` and `law_indices`; a relaxed law also
    `promises`, `kind_of`, `output_kinds` and `relaxation`. One with ``count_sent(codes, words, counters)``, which adds
    to `sent_counters` what `count` would of the reports that `privatize` would write, fits without writing them; a
    sub-class of it that brings `privatize` or `count` of its own is asked for these. Instances are shared:
    nothing may change after ``__init__``.

    Attributes
    ----------
    arguments : mapping
        What it was made from, by name, with epsilon as the exact Fraction; for reading only, so take `dict(arguments)`
        where it is to be copied or pickled.
    """

    #: Random words a block of rows: what Python does once a block must be small beside what the kernels do.
    block_words = BLOCK_WORDS
    #: Of these so many are drawn at a time, and their rows answered and counted; None: all. The words are the same.
    tile_words = None
    #: Whether reports are as many numbers as codes, of their dtype, and may stand in their place (`Columns`).
    may_replace_codes = False
    #: Rare words of one record that are drawn with its others, where a law asks for such (`dpestim.local.patterns`).
    n_spare = 0
    #: Whether `count` refuses, by the same errors, all that `check_reports` does: servers then read reports once.
    count_refuses = False
    #: Rows of reports that a server counts at a time.
    served_rows = 1 << 16
    #: Whether clients keep a randomised answer, of which all reports are noisy copies.
    keeps_answers = False
    #: Whether it keeps tables that it has worked out, so that few of its kind are cached.
    heavy = False
    #: Nanoseconds of a processor that a client takes for each word of a report, all of its work included, as measured:
    #: what plans go by (`dpestim.local.costs`), within a small factor.
    word_ns = 5.0
    #: Where at least 0.99 of epsilon is not used: the reason, in a sentence.
    slack = ""
    #: The name of the relaxed model under which `epsilon` holds, where it does not hold for all inputs and outputs.
    relaxation = None
    #: The kind of inputs (`kind_of`) that a relaxation gives less protection.
    relaxed_kind = "low"
    #: What else a reader of the guarantee should know, in sentences.
    notes = ()
    __signature__ = SignatureOfInit()

    def __new__(cls, *args, **kwargs):
        """Keep the arguments: they are the identity of the law."""
        self = super().__new__(cls)
        vars(self)["arguments"] = MappingProxyType(_arguments(cls, args, kwargs))
        return self

    def __init__(self, epsilon):
        self.epsilon = canonical_epsilon(epsilon)

    def __setattr__(self, name, value):
        if "_frozen" in vars(self):
            raise AttributeError(f"a randomizer never changes: {name} cannot be set")
        super().__setattr__(name, value)

    @classmethod
    def make(cls, *args, **kwargs):
        """Return the randomizer of these arguments, from a cache where it was made before."""
        arguments, make = _arguments(cls, args, kwargs).values(), _make_heavy if cls.heavy else _make
        return make(cls, *(arguments if _EXACT.issuperset(map(type, arguments)) else map(_typed, arguments)))

    @classmethod
    def own_parameters(cls):
        """Return the names of its parameters besides epsilon and the size of the domain."""
        return _own_parameters(cls)

    @cached_property
    def _identity(self):
        return type(self), *(_typed(value) for value in self.arguments.values())

    def __eq__(self, other):
        return self is other or (type(self) is type(other) and self._identity == other._identity)

    def __hash__(self):
        return hash(self._identity)

    def __reduce__(self):
        """Pickle what it was made from: tables that were worked out are not worth their bytes."""
        return _remake, (type(self), *self.arguments.values())

    def __repr__(self):
        shown = (f"{name}={float(v) if isinstance(v, Fraction) else v!r}" for name, v in self.arguments.items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def check(self):
        """Raise ValueError where the arguments make no law; called once, and so before anything is charged."""

    # ---------------------------------------------------------------- what is sent

    @property
    def block_rows(self):
        """Rows a block of random words; depends on the mechanism alone."""
        return max(1, self.block_words // self.n_words)

    @property
    def counted_rows(self):
        """Rows that are counted together: whole blocks, several where a report is long and a block has few of them.

        All counters are read and written once for all these rows, which otherwise takes longer than the reports do.
        Where a law has `tile_words`, a part of a block: as many rows as these are for, in sixteens, so that what is
        drawn of a word for several rows, or of a pair of words, is not drawn again for the next.
        """
        if self.tile_words is not None:
            return min(self.block_rows, max(16, self.tile_words // self.n_words // 16 * 16))
        row = self.report_width * np.dtype(self.report_dtype).itemsize
        return self.block_rows * max(1, min(_TOGETHER, _ROOM // row) // self.block_rows)

    def privatize(self, codes, words, out):
        """Write one report for each code; all randomness comes from `words` (a `dpestim.rng.Words`)."""
        raise TypeError(f"{type(self).__name__} does not say how to privatize: implement `privatize`")

    def check_reports(self, reports):
        """Raise ValueError unless a client could have produced every report."""
        raise TypeError(f"{type(self).__name__} does not say how to check reports: implement `check_reports`")

    def count(self, reports, counts):
        """Add what the reports say to counts (int64, `n_counts` long)."""
        raise TypeError(f"{type(self).__name__} does not say how to count reports: implement `count`")

    def counted(self, reports):
        """Return the counts of checked reports alone: int64, or what `columns.wide` makes that of."""
        counts = np.zeros(self.n_counts, np.int64)
        for start in range(0, len(reports), self.served_rows):
            block = reports[start : start + self.served_rows]
            self.count(np.ascontiguousarray(block, self.report_dtype), counts)
        return counts

    @property
    def count_ns(self):
        """Nanoseconds of a processor that the server takes to count a report, for plans: a little for each byte."""
        return 0.4 + 0.08 * self.report_width * np.dtype(self.report_dtype).itemsize

    def sent_counters(self, n):
        """Return what `count_sent` adds n reports to, in one call or in several: here counts."""
        return np.zeros(self.n_counts, np.int64)

    def counts_of_sent(self, counters, *others):
        """Return the sum of these, one of each thread, as counts, as `counted` has them; they are used no more."""
        for part in others:
            counters += part
        return counters

    def public_part(self, reports):
        """Return the fields of the reports that are drawn before the value is looked at, or None.

        They follow from the words of `Stage.SEED` alone, which the response does not use.
        """
        return None

    @property
    def fields(self):
        """The bits of a report, a tuple of `dpestim.local.fields.Field`: here all bits of every number.

        They are those of the `report_width` numbers of a report, in their order.
        """
        return (Field("number", 8 * np.dtype(self.report_dtype).itemsize, None, self.report_width),)

    def constants(self):
        """Return, by name, every exact number that a client draws by: integers, Fractions, booleans, and parts of such.

        A survey (`dpestim.collection`) writes them down for clients in other languages, and a reader works them out
        again. Here: what `dpestim.local.constants.constants_of` finds among the attributes.
        """
        return constants_of(self)

    #: Whether `known_of` tells of more than counts do.
    knows_reports = False

    def known_counts(self, counts, n):
        """Return what happens as often for every input, as far as counts tell: a list of `dpestim.local.pivots.Pivot`.

        Only what has the same probability whatever is held belongs here: that is what false alarms are computed from.
        """
        return []

    def known_of(self, reports):
        """Return the same of reports."""
        if self.knows_reports:
            raise TypeError(f"{type(self).__name__} does not say what is known of reports: implement `known_of`")
        counts = np.zeros(self.n_counts, np.int64)
        self.count(reports, counts)
        return self.known_counts(counts, len(reports))

    # ---------------------------------------------------------------- the exact law

    def transition_matrix(self):
        """Return rows of Fractions: the law of the response for each input (given whatever is public)."""
        raise TypeError(f"{type(self).__name__} does not state its law: implement `transition_matrix`")

    def law_indices(self, codes, reports):
        """Return, for each record, the row and the column of the transition matrix that it realises.

        Without a public part input number k has row k, and a column is one report.
        """
        raise TypeError(f"{type(self).__name__} does not relate reports to its law: implement `law_indices`")

    def worst_ratio(self):
        """Return the largest ratio of the probabilities of a report for two inputs, a Fraction rounded up, or inf.

        From the structure of the law, of any size; the matrix, where it can be enumerated, says the same.
        """
        return self.runs().worst_ratio()

    # ---------------------------------------------------------------- the guarantee, as data

    @property
    def promises(self):
        """All that is promised, a tuple of `Promise`; the one for ``(ALL, ALL, ALL)`` is plain epsilon."""
        return (Promise(ALL, ALL, ALL, self.epsilon),)

    @cached_property
    def plain_epsilon(self):
        """Epsilon for any two inputs and any report: what holds without a relaxation."""
        return next(p.epsilon for p in self.promises if p[:3] == (ALL, ALL, ALL))

    def kind_of(self, codes):
        """Return the kind of input that each code belongs to, an array of names."""
        return np.full(len(codes), ALL)

    def input_kinds(self):
        """Return the kind of each row of the transition matrix."""
        if self.relaxation is None:
            return np.full(len(self.transition_matrix()), ALL)
        return self.kind_of(self.input_codes)

    def output_kinds(self):
        """Return the kind of each column of the transition matrix."""
        return np.full(len(self.transition_matrix()[0]), ALL)

    @property
    def guarantee_by_input(self):
        """Epsilon for each pair of kinds of inputs, whatever is reported."""
        return {f"{p.inputs}-{p.others}": p.epsilon for p in self.promises
                if p.outputs == ALL and (p.inputs != ALL or len(self.promises) == 1)}

    # ---------------------------------------------------------------- what an adversary asks

    def input_of(self, codes):
        """Return the number of the input that each code is, or is nearest to."""
        order = np.argsort(self.input_codes, kind="stable")
        return order[np.searchsorted(self.input_codes, codes, sorter=order)]

    def runs(self):
        """Return the columns of the law as `dpestim.local.guessing.Runs`; for large laws faster than the matrix."""
        if self.public_part(np.zeros((1, self.report_width), self.report_dtype)) is not None:
            raise ValueError(f"{type(self).__name__} has a public part and must have a method `guessing` for this "
                             "audit")
        if len(self.input_codes) ** 2 > LARGEST_LAW:  # (it has about as many outputs, or more)
            raise ValueError(f"the law {type(self).__name__} is too large to enumerate and must have a method `runs` "
                             "for this audit")
        return Runs.of_matrix([[float(p) for p in row] for row in self.transition_matrix()])

    def guessing(self, prior):
        """Return, for each input, how often the best guess under a prior over the inputs is right; ties at random."""
        return BestGuess(self.runs(), prior).success

    def likelihoods(self, reports):
        """Return an array of a row for each report: proportional to its probability for each input."""
        law = np.array([[float(p) for p in row] for row in self.transition_matrix()])
        out = np.empty((len(reports), len(self.input_codes)))
        for number, code in enumerate(self.input_codes):
            codes = np.repeat(code[np.newaxis], len(reports), axis=0)  # (a joint law's code is a row)
            out[:, number] = law[self.law_indices(codes, reports)]
        return out

    # ---------------------------------------------------------------- what a server of numbers asks

    def channel(self, n_bins):
        """Return (bin edges as positions, the channel's output for each count, a channel of `dpestim.local.channel`).

        Raises ValueError where counts do not tell enough.
        """
        raise ValueError(_NO_CODES)

    def mean_values(self):
        """Return (a number for each count whose mean is the input's position, the largest bias that is left)."""
        raise ValueError(_NO_CODES)


_NO_CODES = ("transformer must send one code of a small alphabet for each column, as randomised response does: its law "
             "must be one matrix")


@lru_cache(maxsize=256)
def _signature(cls):
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    if any(p.kind != p.POSITIONAL_OR_KEYWORD for p in parameters):
        raise TypeError(f"{cls.__name__}.__init__ must name its parameters, which may be given by position: they are "
                        "the law's identity")
    return inspect.Signature(parameters)


@lru_cache(maxsize=256)
def _own_parameters(cls):
    return tuple(name for name in _signature(cls).parameters if name not in _FROM_COLUMN)


@lru_cache(maxsize=256)
def _defaults(cls):
    return {name: p.default for name, p in _signature(cls).parameters.items()}


def _arguments(cls, args, kwargs):
    """Return what `inspect` binds, in a fraction of its time: it tells what is wrong where something is."""
    found = {**_defaults(cls), **kwargs}
    names = tuple(found)
    found.update(zip(names, args))
    exact = _EXACT.issuperset(map(type, found.values()))
    if (len(names) > len(_defaults(cls)) or len(args) > len(names) or not kwargs.keys().isdisjoint(names[: len(args)])
            or (not exact and any(value is inspect.Parameter.empty for value in found.values()))):
        _signature(cls).bind(*args, **kwargs)
    if not exact:
        found = {name: _plain(value, name) for name, value in found.items()}
    if found.get("epsilon") is not None:
        found["epsilon"] = canonical_epsilon(found["epsilon"])
    return found


def _plain(value, name):
    """Return an argument as Python's own immutable type: what could change, or has no equality, is no identity."""
    if isinstance(value, tuple | frozenset):
        return type(value)(_plain(part, name) for part in value)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, bool | int | float | str | bytes | Fraction | Decimal | NoneType | Randomizer):
        raise ValueError(f"{name} must be a number, a string, a law or a tuple of such, to be part of a law")
    return value


class _Typed(NamedTuple):
    """A value with its type: 1, 1.0 and True are equal, and not the same argument."""

    kind: type
    value: object


def _typed(value):
    if isinstance(value, tuple):
        return _Typed(tuple, tuple(map(_typed, value)))
    if isinstance(value, frozenset):
        return _Typed(frozenset, frozenset(map(_typed, value)))
    if isinstance(value, float):
        return _Typed(float, value.hex())  # 0.0 and -0.0 differ
    return _Typed(type(value), value)


def _untyped(item):
    if item.kind is tuple or item.kind is frozenset:
        return item.kind(map(_untyped, item.value))
    return float.fromhex(item.value) if item.kind is float else item.value


def _check_model(law):
    """Raise ValueError where the name of a relaxation is known, and the law does not promise what it means."""
    if law.relaxation in MODELS:
        for meant in MODELS[law.relaxation]:
            kept = [p.epsilon for p in law.promises if all(mine in (ALL, kind) for mine, kind in zip(p, meant))]
            if not kept or min(kept) > law.epsilon:
                raise ValueError(f"a law with the relaxation {law.relaxation} must promise its epsilon for {meant}")


def _frozen(cls, *args):
    randomizer = cls(*(_untyped(item) if type(item) is _Typed else item for item in args))
    randomizer.check()
    _check_model(randomizer)
    for value in vars(randomizer).values():  # (all that have these arguments get this very object)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    vars(randomizer)["_frozen"] = True
    return randomizer


_make, _make_heavy = (lru_cache(maxsize=size, typed=True)(_frozen) for size in (256, 16))


def _remake(cls, *args):
    return cls.make(*args)
