"""Records behave as frozen dataclasses do, whose methods they share instead of compiling them."""

import copy
import dataclasses
import inspect
import os
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from dpestim import records
from dpestim.records import record


def of(decorator):
    @decorator
    class Pair:
        """Two fields that count, and one that does not."""

        first: int
        second: str = "b"
        third: float = dataclasses.field(default=0.0, compare=False, repr=False)

    return Pair


OURS, PLAIN = of(record), of(dataclasses.dataclass(frozen=True))


@record
class Kept:
    """A record of a module, with a text of its own."""

    one: tuple

    def __repr__(self):
        return "kept"


@record(eq=False)
class Same:
    """Equal to itself alone."""

    one: int = 1


@record
class More(Kept):
    """A record with the fields of another one, and one more."""

    two: int = 2


def test_they_are_made_compared_and_shown_as_frozen_dataclasses_are():
    assert inspect.signature(OURS) == inspect.signature(PLAIN)
    assert [f.name for f in dataclasses.fields(OURS)] == [f.name for f in dataclasses.fields(PLAIN)]
    assert repr(OURS(1)) == repr(PLAIN(1))
    assert OURS(1) == OURS(1, "b", 3.0) != OURS(2)
    assert hash(OURS(1)) == hash(OURS(1, "b", 3.0))
    assert OURS(1) != PLAIN(1)
    assert dataclasses.replace(OURS(1), second="c") == OURS(1, "c")
    assert dataclasses.asdict(OURS(1)) == dataclasses.asdict(PLAIN(1))


@pytest.mark.parametrize("name", ["first", "second", "third", "another"])
def test_nothing_of_them_changes(name):
    for made in (OURS(1), PLAIN(1)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, name, 2)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(made, name)


def test_what_a_class_says_itself_is_kept():
    assert repr(Kept((1,))) == "kept"
    assert repr(More((1,))) == "More(one=(1,), two=2)"
    assert Same() != Same()
    assert len({Same(), Same()}) == 2
    assert Kept((1,)) != More((1,))


def test_a_frozen_dataclass_of_somebody_else_can_have_their_fields():
    @dataclasses.dataclass(frozen=True)
    class Theirs(More):
        three: int = 3

    made = Theirs((1,), three=4)
    assert made == Theirs((1,), 2, 4) != Theirs((1,))
    assert repr(made).endswith("Theirs(one=(1,), two=2, three=4)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.one = ()
    with pytest.raises(TypeError, match="frozen"):
        dataclasses.dataclass(type("Open", (More,), {}))
    assert hash(of(record)(1)) == hash(OURS(1))


def test_they_travel():
    for made in (Kept((1, 2)), More((1,), 3)):
        assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made


def listed(decorator):
    @decorator
    class Listed:
        """A field that a function makes, and what is checked once all are set."""

        first: int
        many: list = dataclasses.field(default_factory=list)
        later: int = dataclasses.field(init=False, repr=False, compare=False)

        def __post_init__(self):
            if self.first < 0:
                raise ValueError("first must be at least 0")

    return Listed


def test_their_init_is_made_once_it_is_asked_for_and_works_as_that_of_dataclasses():
    ours, plain = listed(record), listed(dataclasses.dataclass(frozen=True))
    assert not inspect.isfunction(vars(ours)["__init__"])
    for kind in (ours, plain):
        one, other = kind(1), kind(first=1)
        assert one.many == other.many == []
        assert one.many is not other.many
        assert kind(1, many=[2]).many == [2]
        with pytest.raises(ValueError, match="at least 0"):
            kind(-1)
        for values, named in [((), {}), ((1, [], 2), {}), ((1,), {"first": 1}), ((1,), {"more": 2})]:
            with pytest.raises(TypeError, match=r"Listed.__init__\(\)"):
                kind(*values, **named)
    assert inspect.isfunction(vars(ours)["__init__"])
    assert str(inspect.signature(ours)) == str(inspect.signature(plain))
    assert inspect.signature(More) == inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind, default=default)
         for name, kind, default in [("one", tuple, inspect.Parameter.empty), ("two", int, 2)]], return_annotation=None)


def test_fields_are_looked_at_when_somebody_asks():
    """A first fit defines more records than it makes; whoever asks for the fields of one, and first, gets them."""

    @record
    class Asked:
        one: int
        two: str = "b"

    @record
    class Below(Asked):
        three: float = 0.0

    assert type(vars(Asked)["__dataclass_fields__"]) is not dict
    for kind in Below, Asked:
        for name in vars(kind):  # (a RuntimeError, if names were added now)
            getattr(kind, name)
    assert Below.__match_args__ == ("one", "two", "three")
    assert [field.name for field in dataclasses.fields(Below)] == ["one", "two", "three"]
    assert type(vars(Asked)["__dataclass_fields__"]) is dict
    assert Below(1).__replace__(one=2) == Below(2)
    assert Below(1) == Below(1, "b", 0.0) != Below(2)
    assert Asked.__doc__ == "Asked"


@pytest.mark.parametrize("asked_before", [False, True])
def test_annotations_tell_the_fields_of_records_as_dataclasses_do(asked_before):
    """What makes, compares and hashes a record is the same, whether its classes are dataclasses yet or not."""

    def family(decorator):
        @decorator
        class Above:
            one: int
            two: object = (1, 2)
            of_all: ClassVar[int] = 3
            bare: ClassVar = 4

        class Between(Above):
            no_field: int = 5

        @decorator
        class Below(Between):
            three: str = "c"
            two: object = None
            other_of_all: ClassVar[str] = "d"

        if asked_before:
            dataclasses.fields(Above)
        return Below, Above

    pairs = list(zip(family(record), family(dataclasses.dataclass(frozen=True))))
    for ours, plain in pairs:
        assert [vars(kind(1)) for kind in (ours, ours)] == [vars(plain(1))] * 2
        assert vars(ours(1, two=3)) == vars(plain(1, two=3))
        assert len({ours(1), ours(1), ours(2)}) == 2
        assert ours(1, 3) != ours(1)
    assert [type(vars(ours)["__dataclass_fields__"]) is dict for ours, _ in pairs] == [asked_before] * 2
    for ours, plain in pairs:
        found, expected = ([(f.name, f.default) for f in dataclasses.fields(kind)] for kind in (ours, plain))
        assert found == expected
        assert str(inspect.signature(ours)) == str(inspect.signature(plain))


def test_threads_ask_for_the_same_fields():
    for _ in range(50):
        kind, barrier = of(record), threading.Barrier(4)

        @record
        class Late:
            one: int

        def make(late=Late, kind=kind, barrier=barrier):
            barrier.wait()
            return repr(kind(1)), late(2) == late(2), dataclasses.replace(late(1), one=2) == late(2)

        with ThreadPoolExecutor(4) as pool:
            made = [task.result() for task in [pool.submit(make) for _ in range(4)]]
        assert len(set(made)) == 1
        assert made[0][1:] == (True, True)


def ask_while_another_is_settled(monkeypatch, meanwhile):
    """Settle a class, and do something in the middle of it."""
    real = records.dataclass

    def settled_slowly(*args, **kwargs):
        monkeypatch.setattr(records, "dataclass", real)
        meanwhile()
        return real(*args, **kwargs)

    @record
    class Late:
        one: int

    monkeypatch.setattr(records, "dataclass", settled_slowly)
    assert [field.name for field in dataclasses.fields(Late)] == ["one"]
    assert Late(1) == Late(1)


def test_a_signal_handler_makes_records_while_another_class_is_settled(monkeypatch):
    made = []
    task = threading.Thread(target=ask_while_another_is_settled, daemon=True,  # (it may hang)
                            args=(monkeypatch, lambda: made.append(of(record)(1))))
    task.start()
    task.join(5)
    assert len(made) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_child_that_was_forked_while_a_class_was_settled_makes_records(monkeypatch):
    began, ends = threading.Event(), threading.Event()
    task = threading.Thread(target=ask_while_another_is_settled, daemon=True,
                            args=(monkeypatch, lambda: (began.set(), ends.wait(60))))
    task.start()
    assert began.wait(60)
    try:
        child = os.fork()
        if not child:
            signal.alarm(10)
            os._exit(of(record)(1).first - 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        ends.set()
        task.join()


@pytest.mark.parametrize("asked_before", [False, True])
def test_annotations_that_are_text_are_read_as_dataclasses_read_them(asked_before):
    from dataclasses import KW_ONLY, InitVar

    def declared(as_kind):
        class Kinds:
            first: "int"
            shared: "ClassVar[int]" = 3
            second: float = 2.0

        class Marked:
            first: int
            _: KW_ONLY
            second: int = 1

        class Passed:
            first: int
            given: InitVar[int] = 3

        return [as_kind(kind) for kind in (Kinds, Marked, Passed)]

    for kind, plain in zip(declared(record), declared(dataclasses.dataclass(frozen=True))):
        names = [field.name for field in dataclasses.fields(plain)]
        if asked_before:
            dataclasses.fields(kind)
        assert list(inspect.signature(kind).parameters) == names
        assert vars(kind(1)) == vars(plain(1))
        assert kind(1) == kind(1) != kind(2)
