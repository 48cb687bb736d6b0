"""Checks of whatever randomises rows on devices: it travels as a survey, and its reports as messages.

Nothing is lost on the way: a client that is made of the file sends the same reports, and a server of it counts them to
the same numbers. Nothing can be slipped in: every other number or word in the file is refused, unless it makes another
survey by itself.
"""

import copy
import hashlib
import importlib
import json
import math
import warnings

import numpy as np

from dpestim.privacy.config import config_context
from dpestim.testing.tools import Book, fresh, require, same_state

#: Keys of a survey that anybody may choose; what stands under `client` makes the rest.
FREE = ("name", "valid_from", "valid_until", "question")
#: Rows that travel, and edits of the file that are tried at random.
_N, _EDITS = 200, 20


def travels(estimator):
    """Tell whether an estimator sends reports that a server counts, by one law for all users."""
    package = importlib.import_module("dpestim.collection.file")
    if _answers_rounds(estimator):
        return True
    try:
        package.columns_of(estimator)
    except (ValueError, AttributeError):
        return False
    return True


class Traveller:
    """An estimator, its survey, and the survey that the file of it makes."""

    def __init__(self, estimator):
        self._given, self._kept = estimator, {}

    @property
    def estimator(self):
        """The estimator; of a model in rounds one whose second round is open."""
        return self._known("estimator", lambda: _second_round(self._given, self.rows) if _answers_rounds(
            self._given) else self._given)

    def fresh(self, **params):
        """Return another one like it, with other parameters of what randomises."""
        if _answers_rounds(self._given):
            return copy.deepcopy(self.estimator).set_params(**{"random_state": 0, **params})
        return fresh(self._given, **params)

    @property
    def survey(self):
        """The survey of the estimator."""
        return self._known("survey", lambda: _collection().Survey(
            self.estimator, name="what is asked", valid_from="2026-11-26", questions=None))

    @property
    def loaded(self):
        """The survey that its file makes."""
        return self._known("loaded", lambda: type(self.survey).from_json(self.survey.to_json()))

    @property
    def rows(self):
        """What `privatize` takes."""
        return self._known("rows", lambda: _rows(self._given, _N))

    @property
    def reports(self):
        """What the estimator makes of the rows under a seed."""
        return self._known("reports", lambda: _own(self.fresh(random_state=3)).privatize(*self.rows))

    def _known(self, name, make):
        if name not in self._kept:
            _register(self._given)
            try:
                self._kept[name] = make()
            except ValueError as error:
                require(False, f"what is declared must travel: {error}")
        return self._kept[name]


def check_survey_survives_its_file(traveller):
    """A survey that was written and read has the same id, the same laws and the same promise.

    Its canonical form is that of another writer, and its text says epsilon.
    """
    survey, loaded = traveller.survey, traveller.loaded
    require(loaded == survey and loaded.id == survey.id, "a survey must have the id that its file has")
    require(loaded.to_json() == survey.to_json(), "a survey that was read must be written as it was")
    same = loaded.layout.columns.same_law(_columns(traveller.estimator))
    require(same, "the file must make the law and the domain of the client")
    promised = _promise(traveller).epsilon
    require(loaded.privacy_.epsilon == promised, "the file must promise what the client does")
    said = json.loads(survey.to_json())
    require(canonical(said) == survey.canonical_json.decode("utf-8"), "the canonical form is not that of the format")
    epsilon, text = survey.privacy_.epsilon, said["guarantee"]["text"]
    if epsilon != math.inf:
        bound = importlib.import_module("dpestim.privacy.text").bound(epsilon)
        require(f"epsilon = {bound}" in text, "the text of the guarantee must say epsilon")


def check_survey_client_sends_the_same(traveller):
    """The client of a survey that was read sends the reports of the original under one seed, and charges as much.

    In strict mode, too, and from what it keeps between reports, where it does.
    """
    rows, loaded = traveller.rows, traveller.loaded
    book, other = Book(), Book()
    sent = loaded.client(random_state=3, ledger=book).privatize(*rows)
    _own(traveller.fresh(random_state=3, ledger=other)).privatize(*rows)
    right = sent.dtype == traveller.reports.dtype and np.array_equal(sent, traveller.reports)
    require(right, "the client of a survey must send what the original client sends")
    require(book.paid and same_state(book.paid, other.paid), "the client of a survey must charge as the original does")
    with config_context(strict=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        client = loaded.client(random_state=3)
    strict = client.privatize(*rows)
    require(client._is_strict() and np.array_equal(strict, traveller.reports), "strict mode must change no report")
    if not loaded.keeps_answers:
        return
    sent = []
    for client in (loaded.client(random_state=3), _own(traveller.fresh(random_state=3))):
        state = client.client_state(*rows)
        sent.append([client.privatize(*rows, state=state) for _ in range(2)])
    require(same_state(*sent), "the client of a survey must keep what the original client keeps")


def check_survey_server_counts_the_same(traveller):
    """A server of a survey counts reports to the estimates of the original server."""
    reports = traveller.reports
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counted = traveller.loaded.server().aggregate(reports)
        own = traveller.fresh()
        own = own if hasattr(own, "aggregate") else traveller.survey.server()
        own = own.aggregate(reports)
    require(all(map(np.array_equal, _counts(counted), _counts(own))), "the server of a survey must count the same")
    require(type(counted) is type(own), "the server of a survey must be of the class of the original one")


def check_messages_are_reports(traveller):
    """Messages give the reports back, with and without nonces and as text; changed ones are refused, and shown nowhere.

    They are as short as the fields of the laws allow.
    """
    survey, reports = traveller.loaded, traveller.reports
    bits = sum(field.bits * field.count for law in survey.layout.columns.laws for field in law.fields)
    if survey.layout.n_slots is None:
        short = survey.report_bits == bits and survey.report_bytes == -(-bits // 8)
        require(short, "a report must have the bits of its fields")
    for nonces in (False, True):
        messages = survey.encode(reports, nonces=nonces)
        require(messages.shape == (len(reports), 25 + 8 * nonces + survey.report_bytes), "messages have another length")
        for given in (messages, [bytes(row) for row in messages]):
            again = _given_back(survey.decode, given)
            same = again.dtype == reports.dtype and np.array_equal(again, reports)
            require(same, "a message must give its report back")
        texts = survey.encode_text(reports[:3], nonces=nonces)
        again = _given_back(survey.decode_text, texts)
        require(np.array_equal(again, reports[:3]), "a text must give its report back")
    rng, message = np.random.default_rng(0), bytes(survey.encode(reports[:1])[0])
    flips = rng.integers(0, 8 * len(message), 40).tolist()
    changed = [_flipped(message, bit) for bit in flips]
    for wrong in (*changed, message[:-1], message + b"\0", b"", b"x" * len(message)):
        said = _refusal(survey.decode, wrong, "a message that was changed")
        require(not any(part in said for part in (repr(wrong)[2:-1], wrong.hex())) or not wrong, "no message shows a "
                "report")
    other = type(survey).from_json(traveller.survey.to_json().replace("what is asked", "another", 1).replace(
        survey.id, _renamed_id(survey)))
    _refusal(other.decode, message, "a message of another survey")


def check_survey_refuses_changes(traveller):
    """Every other word or number in the file is refused, but for the name, the dates, the questions and the client.

    Of the client another one is made, if any, whose survey says all the rest by itself. Without another id all of it is
    refused. What the file lacks, or has besides, is refused, too.
    """
    survey = traveller.survey
    said = json.loads(survey.to_json())
    for path in list(leaves(said)):
        place, own = _at(said, path[:-1]), _at(said, path)
        place[path[-1]] = _other(own)
        _check_change(survey, said, path)
        place[path[-1]], said["id"] = own, survey.id
    for key in said:
        if key != "id":
            fewer = {name: part for name, part in said.items() if name != key}
            _refusal(survey.from_json, json.dumps({**fewer, "id": _id_of(fewer)}), f"a survey without {key}")
    more = {**said, "more": 1}
    _refusal(survey.from_json, json.dumps({**more, "id": _id_of(more)}), "a survey with another part")


def check_survey_survives_noise(traveller):
    """Any edit of the bytes of the file is a ValueError, or leaves the survey as it was."""
    survey, rng = traveller.survey, np.random.default_rng(1)
    text = survey.to_json().encode("utf-8")
    for _ in range(_EDITS):
        at, n = int(rng.integers(0, len(text))), int(rng.integers(0, 4))
        written = bytes(rng.integers(32, 127, int(rng.integers(0, 3))).tolist())
        edited = text[:at] + written + text[at + n :]
        made = _made(survey.from_json, edited)
        require(made is None or made == survey, "an edit of the file must be refused")


def _check_change(survey, changed, path):
    """Require that one change of the file is refused, or makes another survey by itself."""
    free = path[-1] in FREE or path[0] in FREE
    if free or path[0] in ("client", "id"):
        _refusal(survey.from_json, json.dumps(changed), f"{_name(path)} with the old id")
    if path[0] == "id":
        return
    changed["id"] = _id_of(changed)
    if not free and path[0] != "client":
        said = _refusal(survey.from_json, json.dumps(changed), f"another {_name(path)}")
        right = path[0] in ("format", "version") or "follow" in said
        require(right, f"another {_name(path)} is refused for another reason: {said}")
        return
    made = _made(survey.from_json, json.dumps(changed))
    if made is not None:
        require(json.loads(made.to_json()) == changed, "a survey that was read must say what its file says")


CHECKS = (check_survey_survives_its_file, check_survey_client_sends_the_same, check_survey_server_counts_the_same,
          check_messages_are_reports, check_survey_refuses_changes, check_survey_survives_noise)


# ---------------------------------------------------------------- a second implementation of the format


def canonical(value):
    """Return the canonical form of a plain value, as the format says it."""
    if isinstance(value, str):
        named = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
        return '"' + "".join(named.get(c) or (c if c >= " " else f"\\u{ord(c):04x}") for c in value) + '"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{canonical(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else (
        str(value))


def leaves(value, path=()):
    """Yield the path of every word, number or truth value in a plain value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path
        return
    for key, part in items:
        yield from leaves(part, (*path, key))


def _other(value):
    """Return a value, where it can be of the same type, that a leaf might have been changed to."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + chr(ord(value[-1]) + 1) if value else "a"
    return 0


def _id_of(said):
    body = {key: part for key, part in said.items() if key != "id"}  # (what `canonical` makes of it, sooner)
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


def _renamed_id(survey):
    return _id_of({**json.loads(survey.to_json()), "name": "another"})


# ---------------------------------------------------------------- tools


def _collection():
    return importlib.import_module("dpestim.collection")


def _columns(estimator):
    return importlib.import_module("dpestim.collection.file").columns_of(estimator)


def _answers_rounds(estimator):
    """Tell whether it is a model that learns from answers in rounds."""
    return hasattr(estimator, "public_state") and hasattr(estimator, "predict")


def _second_round(estimator, rows):
    """Return a model whose first round was answered, and whose second one is open."""
    model = fresh(estimator, random_state=1)
    model.next_round(n_features=rows[0].shape[1])
    model.aggregate(model.privatize(*rows)).next_round()
    return model


def _promise(traveller):
    """Return what a client promises; one that asks for rows first, what its columns do."""
    try:
        return traveller.fresh(random_state=None).privacy_
    except ValueError:
        return _columns(traveller.estimator).guarantee(False)


def _register(estimator):
    """Let surveys name the classes of an estimator of somebody else."""
    local, extend = importlib.import_module("dpestim.local"), importlib.import_module("dpestim.local.extend")
    given = [estimator, getattr(estimator, "transformer", None)]
    for part in given:
        if part is not None and getattr(local, type(part).__name__, None) is not type(part):
            extend.register(type(part))


def _own(estimator):
    """Return who randomises for an estimator."""
    return importlib.import_module("dpestim.collection.description").inner(estimator)


def _rows(estimator, n):
    X, y = estimator._test_data(n)
    return (X,) if y is None else (X, y)


def _counts(server):
    return server._group._counts if _answers_rounds(server) else server._counts


def _at(value, path):
    for key in path:
        value = value[key]
    return value


def _name(path):
    return ".".join(map(str, path))


def _flipped(message, bit):
    changed = bytearray(message)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _refusal(call, given, what):
    """Require a ValueError, and return what it says."""
    try:
        call(given)
    except ValueError as error:
        return str(error)
    except Exception as error:
        require(False, f"{what} must be a ValueError, got {type(error).__name__}")
    return require(False, f"{what} must be a ValueError")


def _given_back(call, messages):
    """Return the reports of messages that were just made."""
    try:
        return call(messages)
    except ValueError as error:
        return require(False, f"a message must give its report back: {error}")


def _made(call, given):
    """Return what a call gives, None for a ValueError."""
    try:
        return call(given)
    except ValueError:
        return None
    except Exception as error:
        return require(False, f"a file of any content must be a ValueError, got {type(error).__name__}")
