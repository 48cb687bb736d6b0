"""The body of a survey: everything that follows from a client, as plain values in the order of the file."""

import contextlib
import datetime
import json
import math
from fractions import Fraction
from functools import lru_cache

from dpestim.collection.canonical import LARGEST, canonical, check_plain, first_difference
from dpestim.collection.description import described, inner, made
from dpestim.collection.layout import Layout
from dpestim.collection.table import shortened
from dpestim.collection.values import fraction_text, shortest, to_plain
from dpestim.collection.wording import text_of
from dpestim.local.client import Client
from dpestim.local.extend import registered
from dpestim.local.law import Randomizer
from dpestim.local.server import Server
from dpestim.models import PrivateModel
from dpestim.privacy.languages import language as language_of

FORMAT, VERSION = "dpestim survey", "1.2"
#: The versions of surveys that name no language, without fakes and with: their files and ids stay as they were.
PLAIN, FAKES = "1.0", "1.1"
#: Characters of a name and of a question.
_LONGEST_TEXT = 10_000


def columns_of(estimator):
    """Return the `Columns` of a client, or of the client in a server, or raise ValueError where none are declared."""
    client = estimator.transformer_ if hasattr(estimator, "transformer_") and isinstance(
        estimator, PrivateModel) else inner(estimator)
    if not isinstance(client, Client):
        raise ValueError("client must be a client of dpestim.local with one law for all users: a frequency estimator, "
                         "a transformer of numbers, a key-value estimator, LDPNaiveBayes, MixedEstimator, or a "
                         "MeanEstimator or DistributionEstimator of one. Of a PersonalizedEstimator make a survey for "
                         "each group")
    if not isinstance(client, Server) and not isinstance(estimator, Server) and not hasattr(client, "bounds") and (
            hasattr(client, "remainder")):
        raise ValueError("client must send reports that are counted, and PrivatizedColumns keeps each report beside a "
                         "label: take a MixedEstimator of its transformers")
    if client._no_survey:
        raise ValueError(client._no_survey)
    if not client._is_declared:
        raise ValueError(f"client must declare its domain, because a survey is public: give {client._domain or 'it'}")
    return client._columns_now()


def body_of(description, *, name, valid_from, valid_until, questions, language=None):
    """Return all of a survey but its id, or raise ValueError; parts may be those of other bodies: none is changed."""
    _check_text(name, "name")
    for day, what in ((valid_from, "valid_from"), (valid_until, "valid_until")):
        _check_day(day, what)
    if valid_from is not None and valid_until is not None and valid_from > valid_until:
        raise ValueError("valid_until must not be before valid_from")
    if language is not None:
        language_of(language)
    follows = _following(canonical(description), tuple(registered().items()), language)
    asked = _questions(questions, [column["name"] for column in follows["columns"]])
    columns = [{"name": column["name"], "question": question, **column} for column, question in zip(
        follows["columns"], asked)]
    version = VERSION if language is not None else FAKES if "fake" in columns[0] else PLAIN
    spoken = {} if language is None else {"language": language}
    return {"format": FORMAT, "version": version, **spoken, "name": name, "valid_from": valid_from,
            "valid_until": valid_until, "client": description, **follows, "columns": columns}


#: What parameters of other types may raise somewhere, where an estimator does not look at their types first.
_STRANGE = (TypeError, AttributeError, LookupError, ArithmeticError)


@lru_cache(maxsize=16)
def _following(text, known, language):
    """Return what follows from the canonical form of a description; `known` are the classes that were registered."""
    description, found = json.loads(text), None
    with contextlib.suppress(*_STRANGE):
        found = _worked_out(description, language)
    if found is None:
        raise ValueError("client must have parameters of the types that its class takes")
    return found


def _worked_out(description, language):
    estimator = made(description)
    differs = first_difference(described(estimator), description)
    if differs is not None:
        raise ValueError(f"client.{differs} is not written as a survey writes it: write the survey with Survey.save")
    columns = columns_of(estimator)
    layout, labels, units = Layout(columns), labels_of(estimator, columns), units_of(estimator)
    states = any(law.keeps_answers for law in columns.laws)
    guarantee, permanent = estimator.privacy_, _permanent(columns) if states else None
    found = {
        "columns": [{"name": label, "domain": _domain(column.domain, units.get(_key(label))),
                     "law": law_of(column.law), "fields": [_field(field) for field in fields], **fake}
                    for label, column, fields, fake in zip(labels, columns, layout.fields, _fakes(columns))],
        "sampled": columns.n_sampled,
        "report": {"bits": layout.bits, "bytes": layout.bytes, "states": states},
        "guarantee": {
            "epsilon": _amount(guarantee.epsilon), "model": guarantee.model, "relaxation": guarantee.relaxation,
            "relaxed_epsilon": _amount(guarantee.relaxed_epsilon), "longitudinal_epsilon": _amount(permanent),
            "text": text_of(guarantee, bits=layout.bits, n_columns=len(columns), n_sampled=columns.n_sampled,
                            states=states, permanent=permanent, hides=hasattr(columns, "fakes"), language=language,
                            answers=_answers(columns) if language is not None else ())},
    }
    check_plain(found)
    return found


def as_file(body, survey_id):
    """Return the text of a file: JSON for readers, with the id first."""
    return json.dumps({"id": survey_id, **body}, indent=2, ensure_ascii=False) + "\n"


def law_of(law):
    """Return a law as plain values: its name, epsilon, arguments and constants."""
    given = {name: value for name, value in law.arguments.items() if name != "epsilon"}
    return {"name": type(law).__name__, "epsilon": _amount(law.epsilon), "arguments": _argument(given),
            "constants": shortened(_constant(law.constants()))}


def labels_of(estimator, columns):
    """Return what each column is called: a name, a place, or a list of these where a law reads several together."""
    client = inner(estimator)
    if hasattr(columns, "row"):  # (views of features: several may be of one)
        return [view.name for view in columns]
    if hasattr(columns, "members"):
        each = [label for part in columns.members for label in part.labels]
    elif columns.keys is not None:
        each = list(columns.keys)
    else:
        each = list(range(columns.n_features))
    each = [to_plain(label) for label in each]
    if not all(isinstance(label, str | int) for label in each):
        raise ValueError(f"{type(client).__name__} must name columns by strings or places")
    if hasattr(columns, "row"):  # (views of features: of which features each is)
        return [each[column.places[0]] if len(column.places) == 1 else [each[k] for k in column.places]
                for column in columns]
    return [each[part] if column.n_joint is not None else each[part.start]
            for column, part in zip(columns, columns.features)]


def units_of(estimator):
    """Return the units of columns of numbers that a `Domain` declares, by name or place."""
    client = inner(estimator)
    bounds = getattr(client, "bounds", None)
    pairs = bounds.items() if hasattr(bounds, "items") else ()
    found = {key: own.unit for key, own in pairs if getattr(own, "unit", None) is not None}
    for part in getattr(client, "transformers", None) or ():
        found |= units_of(part[1])
    return found


def _fakes(columns):
    """Return for each column {}, or how often its value is told, and how often each value is a fake, of 2^64 times."""
    if not hasattr(columns, "fakes"):
        return [{}] * len(columns)
    return [{"fake": {"told": str(chance), "values": None if own is None else list(map(str, own))}}
            for chance, own in zip(columns.chances, columns.fakes)]


def _permanent(columns):
    each = [law.epsilon_permanent if law.keeps_answers else math.inf for law in columns.laws]
    return columns.of_row(each)


def _answers(columns):
    """Return how many answers each column of categories has."""
    return [len(column.domain["values"]) for column in columns if column.domain["kind"] == "categories"]


def _key(label):
    return label if isinstance(label, str | int) else None


def _domain(domain, unit):
    out = {}
    for key, value in domain.items():
        if key in ("values", "classes") or key == "keys":
            out[key] = to_plain(value)
        else:
            out[key] = _domain(value, None) if isinstance(value, dict) else _number(value)
        if key == "high" and domain["kind"] == "numbers":
            out["unit"] = unit
    return out


def _number(value):
    if isinstance(value, list):
        return [_number(part) for part in value]
    return shortest(value) if isinstance(value, float) else value


def _field(field):
    return {"name": field.name, "bits": field.bits, "count": field.count,
            "below": None if field.below is None else str(field.below)}


def _amount(epsilon):
    return None if epsilon is None or epsilon == math.inf else fraction_text(epsilon)


def _argument(value):
    """Return an argument of a law as a plain value for readers: numbers that are no small integers are strings."""
    if isinstance(value, dict):
        return {key: _argument(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_argument(part) for part in value]
    if isinstance(value, frozenset):
        return sorted((_argument(part) for part in value), key=repr)
    if isinstance(value, Randomizer):
        return law_of(value)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) < LARGEST else str(value)
    if isinstance(value, float):
        return shortest(value) if math.isfinite(value) else str(value)
    return value.hex() if isinstance(value, bytes) else str(value)


def _constant(value):
    """Return constants as plain values: every number is a string."""
    if isinstance(value, dict) and set(value) == {"name", "arguments", "constants"}:
        return {"name": value["name"], "arguments": _argument(value["arguments"]),
                "constants": _constant(value["constants"])}
    if isinstance(value, dict):
        return {key: _constant(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_constant(part) for part in value]
    if isinstance(value, bool | str) or value is None:
        return value
    return fraction_text(value) if isinstance(value, Fraction) else str(value)


def _questions(questions, labels):
    if questions is None:
        return [None] * len(labels)
    if isinstance(questions, str):
        questions = [questions]
    if isinstance(questions, dict):
        unknown = [key for key in questions if key not in labels]
        if unknown:
            raise ValueError(f"questions must name columns of the survey, which are {labels}")
        questions = [questions.get(label) if isinstance(label, str | int) else None for label in labels]
    if not isinstance(questions, list | tuple) or len(questions) != len(labels):
        raise ValueError(f"questions must be a string for each of the {len(labels)} columns, or a dict by their names")
    for question in questions:
        if question is not None:
            _check_text(question, "questions")
    return list(questions)


def _check_text(text, name):
    if not isinstance(text, str) or not 0 < len(text) <= _LONGEST_TEXT:
        raise ValueError(f"{name} must be a string of 1 to {_LONGEST_TEXT:,} characters")


def _check_day(day, name):
    found = None
    if isinstance(day, str):
        try:
            found = datetime.date.fromisoformat(day)
        except ValueError:
            found = None
    if day is not None and (found is None or found.isoformat() != day):
        raise ValueError(f"{name} must be None or a date, such as '2026-11-26'")
