"""The JSON Schema of surveys ships with the package, takes every survey and refuses other structures."""

import copy
import importlib.resources
import json
import re
from pathlib import Path

import pytest

from dpestim import Domain, Numbers
from dpestim.base import all_estimators
from dpestim.collection import Survey
from dpestim.local import (
    GRRFrequencyEstimator,
    ItemsetEstimator,
    PMTransformer,
    PrivKVMEstimator,
    RAPPORFrequencyEstimator,
)
from dpestim.testing import surveys

SCHEMA = json.loads(importlib.resources.files("dpestim.collection").joinpath("survey.schema.json").read_text())
KNOWN = {"type", "const", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "required", "properties",
         "additionalProperties", "items", "minItems", "maxItems", "anyOf", "oneOf", "$ref", "$defs", "$schema", "title",
         "description"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int}


def is_of(value, name):
    return isinstance(value, TYPES[name]) and not (name == "integer" and isinstance(value, bool))


def fits(value, schema):
    """Tell whether a value is as a schema says, for the words of JSON Schema that this one uses."""
    if schema is True:
        return True
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema and not fits(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]):
        return False
    wanted = schema.get("type")
    if wanted is not None and not any(is_of(value, name) for name in ([wanted] if isinstance(wanted, str) else wanted)):
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if isinstance(value, str) and not (
            re.search(schema.get("pattern", ""), value, re.ASCII)
            and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))):
        return False
    if is_of(value, "integer") and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return False
    if "anyOf" in schema and not any(fits(value, one) for one in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(fits(value, one) for one in schema["oneOf"]) != 1:
        return False
    if isinstance(value, list):
        return schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)) and all(
            fits(part, schema.get("items", True)) for part in value)
    if isinstance(value, dict):
        known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        return set(schema.get("required", ())) <= set(value) and all(
            fits(part, known[key]) if key in known else more is not False and fits(part, more)
            for key, part in value.items())
    return True


def places(value, path=()):
    """Yield the path of every object."""
    if isinstance(value, dict):
        yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*path, key))


def test_every_survey_fits():
    seen = 0
    for name, cls in all_estimators(("local",)):
        for estimator in (cls(**params) for params in cls._test_params()):
            if surveys.travels(estimator):
                assert fits(json.loads(surveys.Traveller(estimator).survey.to_json()), SCHEMA), name
                seen += 1
    assert seen > 100


@pytest.mark.parametrize("client", [
    PMTransformer(bounds=Domain({"age": Numbers(17, 90, unit="years", missing=True)})),
    RAPPORFrequencyEstimator(categories=None),
    GRRFrequencyEstimator(categories=[["a", None, 1, True and 2, 0.5, b"x", 1 << 60]]),
    PrivKVMEstimator(3.0, keys=["a", "b"], n_rounds=3).resume_at({"published": [[0.5, -0.25]]}),
    ItemsetEstimator(3.0, items=["a", "b"]).resume_at({"number": 2, "candidates": [[1], [0]], "length": 2}),
], ids=lambda client: type(client).__name__)
def test_surveys_of_other_domains_fit(client):
    assert fits(json.loads(Survey(client, name="x", valid_until="2026-12-31", questions=["?"]).to_json()), SCHEMA)


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "surveys").glob("*.json")), ids=lambda path: path.stem)
def test_other_structures_do_not_fit(path):
    """A survey with a part more or less, or of another type, where the structure is fixed."""
    said, free = json.loads(path.read_text(encoding="utf-8")), ("parameters", "constants", "arguments", "round")
    assert fits(said, SCHEMA)
    for place in list(places(said)):
        if any(key in free for key in place):
            continue
        for change in ("more", "less", "type"):
            changed = copy.deepcopy(said)
            own = changed
            for key in place:
                own = own[key]
            if change == "more":
                own["further"] = 1
            elif change == "less":
                own.pop(next(iter(own)))
            elif place:
                parent = changed
                for key in place[:-1]:
                    parent = parent[key]
                parent[place[-1]] = 1.5
            assert (change == "type" and not place) or not fits(changed, SCHEMA), (place, change)
