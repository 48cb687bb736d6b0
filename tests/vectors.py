"""Test vectors for clients in other languages: ``python tests/vectors.py`` writes clients/js/vectors.

A file for each class: a list of {survey, records, kept}. A record is [key, answers, message]: with the words of this
AES key (`dpestim.rng`, first row of a call) these answers become this message. `kept` are reports of one person whose
client keeps a state, in this order.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from dpestim import local
from dpestim.base import all_estimators
from dpestim.collection import Survey
from dpestim.collection.values import from_plain
from dpestim.inputs import Numbers
from dpestim.rng import WordSource

FOLDER = Path(__file__).resolve().parents[1] / "clients" / "js" / "vectors"
#: The laws that dpestim.mjs knows.
LAWS = frozenset(("GRR", "Binary", "OUE", "SUE", "OLH", "BLH", "SS", "HR", "RAPPOR", "PM", "SW", "HM", "Duchi",
                  "NumberOrMissing", "PCKVUnary", "PCKVCodes"))
KINDS = frozenset(("categories", "numbers", "keys"))
#: Classes whose reports are those of others.
_SAME = frozenset(("AdaptiveFrequencyEstimator", "DistributionEstimator", "MeanEstimator"))
RECORDS, KEPT = 12, 7

_D = [list(range(4))]
#: What the settings of the registry leave out: two words a draw, wide lanes, ties of patterns, fine grids, types.
_EDGES = (
    (local.GRRFrequencyEstimator, {"epsilon": 50.0, "categories": [["a", 'quote " \\ \n', "ünï", "1", 1, None, 0.5]]}),
    (local.GRRFrequencyEstimator, {"epsilon": 0.001, "categories": [list(range(300))]}),
    (local.BinaryFrequencyEstimator, {"epsilon": 1.2, "categories": {"smokes": [False, True]}, "design": "coin"}),
    (local.OUEFrequencyEstimator, {"epsilon": 2.0, "categories": [list(range(1200))]}),
    (local.OLHFrequencyEstimator, {"epsilon": 18.0, "categories": [list(range(100))]}),
    (local.SSFrequencyEstimator, {"epsilon": 0.5, "categories": [list(range(70))]}),
    (local.HRFrequencyEstimator, {"epsilon": 55.0, "categories": [list(range(5))]}),
    (local.HRFrequencyEstimator, {"epsilon": 3.0, "categories": [list(range(200))]}),
    (local.RAPPORFrequencyEstimator, {"epsilon": 2.0, "categories": _D, "n_bits": 16, "n_cohorts": 3, "f": 0.25,
                                      "p": 0.35}),
    (local.PMTransformer, {"epsilon": 1.5, "bounds": (17.3, 90.1)}),
    (local.PMTransformer, {"epsilon": 2.0, "bounds": {"age": Numbers(0, 110, unit="years", missing=True)}}),
    (local.SWTransformer, {"epsilon": 9.0, "bounds": (-1e-7, 1e9)}),
    (local.HMTransformer, {"epsilon": 0.25, "bounds": (0.1, 0.3)}),
    (local.PCKVEstimator, {"epsilon": 1.0, "keys": [f"k{i}" for i in range(70)], "bounds": (1, 5), "padding_length": 4,
                           "variant": "ue"}),
    (local.MixedEstimator, {"epsilon": 4.0, "n_sampled": 2, "transformers": [
        ("what", local.RAPPORFrequencyEstimator(categories=_D, n_bits=16), ["drink"]),
        ("age", local.PMTransformer(bounds={"age": Numbers(17, 90)}, grid=64), ["age"]),
        ("often", local.GRRFrequencyEstimator(categories=[["daily", "weekly", "never"]]), ["often"])]}),
)


def settings():
    """Yield (class, number of the setting, survey) of what dpestim.mjs can answer."""
    classes = [cls for _, cls in all_estimators(("local",)) if cls.__name__ not in _SAME]
    for cls in sorted(classes, key=lambda cls: cls.__name__):
        given = [*(cls._test_params() if hasattr(cls, "_test_params") else ()),
                 *(parameters for own, parameters in _EDGES if own is cls)]
        number = 0
        for parameters in given:
            try:
                survey = Survey(cls(**parameters), name=f"{cls.__name__} {number}")
            except ValueError:
                continue
            body = json.loads(survey.to_json())
            columns, kinds = body["columns"], {column["domain"]["kind"] for column in body["columns"]}
            if body["version"] == "1.0" and {column["law"]["name"] for column in columns} <= LAWS and kinds <= KINDS:
                yield cls, number, survey
                number += 1


def answers_of(survey, n, seed):
    """Return n lists of answers to a survey, as JSON has them: categories, and numbers around bounds."""
    rng = np.random.default_rng(seed)
    columns = json.loads(survey.to_json())["columns"]
    return [list(row) for row in zip(*(_answers(column["domain"], n, rng) for column in columns))]


def _answers(domain, n, rng):
    if domain["kind"] == "categories":
        values, drawn = domain["values"], rng.integers(0, len(domain["values"]), n)
        return [values[i % len(values) if len(values) < n else k] for i, k in enumerate(drawn)]
    if domain["kind"] == "numbers":
        values = _numbers(domain, rng)
        return [values[i % len(values)] for i in range(n)]
    out = []
    for i in range(n):
        held = rng.permutation(len(domain["keys"]))[: i % (len(domain["keys"]) + 1) if i < 6 else 3]
        values = _numbers(domain, rng)
        out.append([[domain["keys"][k], values[rng.integers(len(values))]] for k in held.tolist()])
    return out


def _numbers(domain, rng):
    low, high = float(domain["low"]), float(domain["high"])
    inner = (low + (high - low) * rng.random(5)).tolist()
    inside = [float(np.nextafter(a, b)) for a, b in ((low, high), (high, low))]
    edges = [low, high, low - (high - low), 2 * high - low, *inside]
    pairs = zip(edges, [*inner, (low + high) / 2])
    return ([None] if domain.get("missing") else []) + [x for pair in pairs for x in pair]


def rows_of(survey, answers):
    """Return a row of X, as the survey's client takes it, of one list of answers."""
    columns = json.loads(survey.to_json())["columns"]
    if columns[0]["domain"]["kind"] == "keys":
        pairs = [(0, from_plain(key), value) for key, value in answers[0]] or [(0, None, np.nan)]
        return pd.DataFrame(pairs, columns=["user", "key", "value"])
    values = {column["name"]: from_plain(answer) for column, answer in zip(columns, answers)}
    if any(isinstance(name, str) for name in values):
        return pd.DataFrame({name: pd.Series([value], dtype=object if isinstance(value, str) or value is None else None)
                             for name, value in values.items()})
    if all(column["domain"]["kind"] == "numbers" for column in columns):
        return np.array([[np.nan if values[name] is None else values[name] for name in sorted(values)]], np.float64)
    row = np.zeros((1, max(values) + 1), object)
    for name, value in values.items():
        row[0, name] = value
    return row


def vectors(survey, n=RECORDS):
    """Return {survey, records, kept} of a survey."""
    n = min(n, 4) if survey.report_bytes > 100 else n
    made = answers_of(survey, n, 0)
    records = []
    for seed, answers in enumerate(made):
        reports = survey.client(random_state=seed).privatize(rows_of(survey, answers))
        records.append([WordSource(seed).key_for_workers().hex(), answers, survey.encode_text(reports)[0]])
    kept, state = [], None
    for seed in range(KEPT if survey.keeps_answers else 0):
        client, answers = survey.client(random_state=seed), made[(0, 0, 1, 0, 2, 1, 3)[seed] % n]
        row = rows_of(survey, answers)
        state = client.client_state(row) if state is None else state
        state._n_calls = 0  # (elsewhere each report is the first of a call)
        text = survey.encode_text(client.privatize(row, state=state))[0]
        kept.append([WordSource(seed).part(1 + state.number).key_for_workers().hex(), answers, text])
    return {"survey": json.loads(survey.to_json()), "records": records, **({"kept": kept} if kept else {})}


def files():
    """Return {name of a file: text} of all vectors."""
    found = {}
    for cls, _, survey in settings():
        found.setdefault(f"{cls.__name__}.json", []).append(vectors(survey))
    return {name: "[\n" + ",\n".join(map(_text, parts)) + "\n]\n" for name, parts in found.items()}


def _text(part):
    lines = [f'"survey": {_line(part["survey"])}']
    for name in ("records", "kept"):
        if name in part:
            lines.append(f'"{name}": [\n' + ",\n".join(map(_line, part[name])) + "\n]")
    return "{" + ",\n".join(lines) + "}"


def _line(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
