"""Cards and surveys in the language of their readers: texts, plural forms, numbers, and the picture of two worlds."""

import math
import re
import string
from pathlib import Path

import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import dpestim
from dpestim.accounting import Ledger
from dpestim.collection import Survey
from dpestim.inspection import privacy_card
from dpestim.local import GRRFrequencyEstimator, OUEFrequencyEstimator, PMTransformer
from dpestim.privacy import ZCDP, Neighbours, PrivacyGuarantee
from dpestim.privacy.languages import language, languages, texts
from dpestim.privacy.trust import Parties
from dpestim.tables import as_text

PACKAGE = Path(dpestim.__file__).parent
#: What a guarantee says in English itself.
OWN_IN_ENGLISH = ("promise.", "model.", "pairs.", "parties.", "format.power")


def parts(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def grr(**params):
    return GRRFrequencyEstimator(1.0, **{"categories": {"drink": ["tea", "coffee", "water"]}, **params})


def test_every_text_is_there_in_every_language_with_the_same_parts():
    for key, forms in texts().items():
        own = set(languages()) - {"en"} if key.startswith(OWN_IN_ENGLISH) and "en" not in forms else set(languages())
        assert set(forms) == own, key
        assert len({frozenset(parts(text)) for text in forms.values()}) == 1, key
        assert all(text == text.strip() or key == "odds.except" for text in forms.values()), key
    keys = set(texts())
    assert all(key.replace(".one", ".other") in keys for key in keys if key.endswith(".one"))


def test_no_text_is_left_over_and_none_is_missing():
    code = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    code += code.replace("'", '"')
    asked = set(re.findall(r'"((?:[a-z_]+\.)+[a-z_{]+)[.}"]', code))
    for key in texts():
        stem = key.removesuffix(".one").removesuffix(".other")
        assert stem in asked or f'"{stem.split(".")[0]}.{{' in code or f'"{stem.rpartition(".")[0]}.{{' in code, key
    for relation in Neighbours:
        for of in ("whom", "pairs", "without", "within"):
            assert language("de").has(f"{of}.{relation.value}")


def test_other_languages_are_refused_with_those_that_there_are():
    for wrong in ("fr", "EN", "", None, ["de"], 1):
        with pytest.raises(ValueError, match=r"language must be one of \['en', 'de'\]"):
            privacy_card(grr(), wrong)
    with pytest.raises(ValueError, match="language must be one of"):
        Survey(grr(), name="x", language="fr")


def test_numbers_and_plural_forms_are_those_of_the_language():
    frame = pd.DataFrame({"drink": ["tea"]})
    assert "aus 1 Bericht, mit" in str(privacy_card(grr().fit(frame), "de"))
    many = grr().fit(pd.concat([frame] * 1234))
    assert "drink aus 1.234 Berichten, mit" in str(privacy_card(many, "de"))
    assert "drink from 1,234 reports, through" in str(privacy_card(many))
    assert "drink from 1 report, through" in str(privacy_card(grr().fit(frame)))
    german = str(privacy_card(PrivacyGuarantee(0.5, 1e-3, "central", Neighbours.ADD_REMOVE, curve=ZCDP(0.02)), "de"))
    for part in ("(0,5; 0,001)-Differential Privacy", "e^0,5 = 1,65 mal", "76,74 %", "0,02-concentrated", "plus 0,001"):
        assert part in german
    assert not re.search(r"\d\.\d", german)
    ledger = Ledger(4)
    for _ in range(2):
        grr(ledger=ledger, random_state=0).fit(frame)
    assert "2 Veröffentlichungen haben Rauschen aus einem Startwert" in str(privacy_card(ledger, "de"))
    assert "2 releases have noise from a seed" in str(privacy_card(ledger))


@pytest.mark.parametrize("relation", Neighbours)
def test_both_worlds_of_every_relation_are_said_and_drawn(relation):
    guarantee = PrivacyGuarantee(1, 0, "central", relation)
    found = {name: privacy_card(guarantee, name) for name in languages()}
    assert len({str(card) for card in found.values()}) == len(found)
    for name, card in found.items():
        assert card.language == name
        assert f"lang='{name}'" in card.html
        assert card.html.count("<circle") == 200
        assert card.html.count("fill='currentColor'") == 27 + 74
        assert re.search(r"role='img' aria-label='[^']+27[^']+74", card.html)
        assert [line[2:14] for line in card.picture] == ["[###.......]", "[#######...]"]
        assert re.findall(r"\d+ \w+ \d+", card.picture[1])[-1].startswith("74")
    assert len({tuple(re.findall(r"(\d+) (?:of|von) 100", str(card))) for card in found.values()}) == 1


@pytest.mark.parametrize(("parties", "said"), [
    (Parties(5, 2, with_server=1, follows=True), "Keiner Partei und keinem Server, solange höchstens 2 der 5 Parteien "
     "gemeinsame Sache machen oder ausfallen, höchstens 1 davon mit dem Server gemeinsame Sache macht und der Server "
     "sich an das Protokoll hält."),
    (Parties(None, 1, name="owners", computing=True), "Keinem einzelnen Eigentümer, solange keine zwei der drei "
     "rechnenden Eigentümer gemeinsame Sache machen, höchstens 1 der Eigentümer mit anderen gemeinsame Sache macht und "
     "alle Eigentümer sich an das Protokoll halten."),
    (Parties(None, None, name="owners", honest=3), "Keinem Eigentümer und niemandem, der zusammenzählt, solange "
     "mindestens 3 der Eigentümer mit niemandem gemeinsame Sache machen."),
])
def test_parties_take_the_place_of_a_curator(parties, said):
    guarantee = PrivacyGuarantee(1, 0, "central", Neighbours.SUBSTITUTION, parties=(parties,))
    assert privacy_card(guarantee, "de").sections["Wem man vertrauen muss"] == said
    english = privacy_card(guarantee).sections["Who must be trusted"]
    assert english.endswith(f", as long as {parties.condition}.")
    assert re.findall(r"\d+", english) == re.findall(r"\d+", said)


def test_without_a_bound_nothing_is_drawn():
    for guarantee in (PrivacyGuarantee(float("inf")), PrivacyGuarantee(40), PrivacyGuarantee(0)):
        for name in languages():
            card = privacy_card(guarantee, name)
            assert not card.picture
            assert "<svg" not in card.html
            assert all(card.sections.values())
    assert "almost for certain" in str(privacy_card(PrivacyGuarantee(40)))
    only = privacy_card(PrivacyGuarantee(0, 1, "central", Neighbours.SUBSTITUTION, curve=ZCDP(0.02)))
    assert "No single bound of the odds" in str(only)  # (a curve alone: there is a bound for each delta)
    assert only.chances.right < 70


def test_the_gain_of_an_attacker_is_that_of_the_law():
    direct, unary = (privacy_card(kind(1.0, categories={"drink": ["tea", "coffee", "water"]})).sections[
        "What an attacker gains"] for kind in (GRRFrequencyEstimator, OUEFrequencyEstimator))
    assert "drink: An attacker who takes the 3 answers" in direct
    assert "right about 58 of 100 times, instead of about 33 of 100" in direct
    assert "right about 47 of 100 times" in unary  # (1.4 / 3, by hand)
    assert "An attacker who takes" not in str(privacy_card(PMTransformer(1.0, bounds=(0, 1))))


def test_each_column_has_its_own_law_and_a_relaxation_bounds_some_values_only():
    both = GRRFrequencyEstimator(2.0, categories={"drink": ["tea", "coffee", "water"], "smokes": [False, True]})
    said = privacy_card(both).sections["What an attacker gains"]
    assert "drink: An attacker who takes the 3 answers" in said
    assert re.search(r"smokes: An attacker who takes the 2 answers .* about 73 of 100 times, instead of about 50", said)
    relaxed = PrivacyGuarantee(float("inf"), relaxation="ULDP(x)", relaxed_epsilon=1)
    for name, (first, last) in {"en": ("For the values that ULDP(x) protects", "For all other values: no bound."),
                                "de": ("Für die Werte, die ULDP(x) schützt", "keine Schranke.")}.items():
        for text in list(privacy_card(relaxed, name).sections.values())[4:7]:
            assert text.startswith(first)
            assert text.endswith(last)


def test_a_survey_has_a_card_and_a_text_in_its_language():
    survey = Survey(grr(), name="Getränke", questions="Was trinken Sie?", language="de")
    assert survey.language == "de"
    assert Survey.from_json(survey.to_json()) == survey
    text = survey._body["guarantee"]["text"]
    for part in ("Ihre Antworten bleiben auf Ihrem Gerät", "2,72 mal", "in 27 von 100 Fällen",
                 "höchstens 74 von 100 Fällen", "Frage mit 3 Antworten", "58 von 100 Fällen"):
        assert part in text
    card = str(privacy_card(survey, "de"))
    for part in ("Datenschutzkarte: Getränke", "„Was trinken Sie?“: Ein Angreifer", "in etwa 58 von 100 Fällen"):
        assert part in card
    plain = Survey(grr(), name="Getränke", questions="Was trinken Sie?")
    assert plain.language is None
    assert plain.id != survey.id
    assert "of 100" not in plain._body["guarantee"]["text"]
    assert "27 of 100 times" in Survey(grr(), name="x", language="en")._body["guarantee"]["text"]


def told_odds(epsilon, delta):
    """Return (odds, probability) that the card of a guarantee states: more than these odds are at most so likely."""
    guarantee = PrivacyGuarantee(epsilon, delta, "central", Neighbours.ADD_REMOVE)
    said = privacy_card(guarantee).sections["The odds"]
    found = re.search(r"at most ([\d.e+]+) to 1 .* probability ([\d.e-]*\d)", said)
    return tuple(map(float, found.groups()))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.1, 0.4])
def test_larger_odds_than_those_of_a_card_are_as_rare_as_it_says(epsilon, delta):
    """Of normal noise odds above e^epsilon are more likely than delta, which a card once stated (errata, B8)."""
    times, chance = told_odds(epsilon, delta)
    shift = brentq(lambda mu: norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
                   - delta, 1e-3, 20)

    def beyond(odds):
        return norm.sf(math.log(odds) / shift - shift / 2)

    assert beyond(math.exp(epsilon)) > 1.05 * delta
    assert beyond(times) <= chance
    # a law that uses all of (epsilon, delta): of 0 and 1 the second has odds above e^epsilon by as little as one likes
    for over in (1e-6, 0.5, 0.99, 1.01, 3.0):
        p = delta * (1 + over) / over  # (p = e^epsilon (1 + over) q, and p - e^epsilon q = delta)
        if p < 1 and (1 + over) * math.exp(epsilon) > times:
            assert p <= chance


def test_a_delta_of_a_half_bounds_no_odds():
    for epsilon in (0.1, 300):
        assert "No single bound" in privacy_card(PrivacyGuarantee(
            epsilon, 0.5, "central", Neighbours.ADD_REMOVE)).sections["The odds"]
    far = privacy_card(PrivacyGuarantee(300, 1e-6, "central", Neighbours.ADD_REMOVE)).sections["The odds"]
    assert "at most 2 e^300 to 1" in far
    assert "probability 2e-06 at most" in far


def test_powers_and_models_are_those_of_german():
    for model, said in {"local": "im lokalen Modell für", "shuffle": "im Shuffle-Modell für",
                        "central": "im zentralen Modell für"}.items():
        relation = Neighbours.LOCAL if model == "local" else Neighbours.SUBSTITUTION
        text = str(privacy_card(PrivacyGuarantee(20, 0 if model == "local" else 1e-6, model, relation), "de"))
        assert said in text
        assert "e^20 = 4,86 · 10^8 mal" in text
        assert not re.search(r"\de[+-]?\d", text)
    assert language("en").number("4.86e+08") == "4.86e+08"


@pytest.mark.parametrize("order", ["\n", "\r", "\x0b", "\x00", "\x85", "\u2028", "\u202e", "\u2066"])
def test_names_and_questions_of_strangers_write_no_line_of_a_card(order):
    forged = f"tea?{order}* The promise: nothing is told {{0}}</div><b>"
    frame = pd.DataFrame({forged: ["a", "b"]})
    plain = [GRRFrequencyEstimator(1.0, categories=[["a", "b"]]).fit(frame)]
    for of in (*plain, Survey(grr(), name=forged, questions=forged)):
        for name in languages():
            card = privacy_card(of, name)
            assert "nothing is told {0}</div><b>" in str(card)
            assert order not in str(card).replace("\n* ", "").replace("\n  [", "")
            assert str(card).count("\n") == len(card.sections) + len(card.picture)
            assert "<b>" not in card.html
    survey = Survey(grr(categories={"drink": [forged, "tea"]}), name=forged, questions=forged)
    for text in (str(survey), survey._repr_html_(), as_text(forged)):
        assert "nothing is told {0}" in text
        assert f"{order}* The promise" not in text
        assert order == "\n" or order not in text
