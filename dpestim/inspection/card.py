"""The privacy card: what was collected, from whom, whom to trust, what epsilon means, what is not protected."""

from collections import Counter
from html import escape

from dpestim.inspection.attackers import guesses
from dpestim.inspection.promises import notes_of, odds_of, promise, trust_of
from dpestim.inspection.worlds import Worlds
from dpestim.pipeline.report import PipelineReport, report_on
from dpestim.pipeline.traversal import LEAKING
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.account import RELEASE, SCORE
from dpestim.privacy.languages import language as _language
from dpestim.privacy.ledger import Ledger
from dpestim.tables import Table, one_line


def privacy_card(of, language="en"):
    """Return what an estimator, a pipeline, a result, a plan, a ledger or a guarantee promises, as a page.

    Parameters
    ----------
    of : estimator, Pipeline, ColumnTransformer, FeatureUnion, search, result, plan, report, Survey, Ledger or \
PrivacyGuarantee
        An estimator of dpestim, or a pipeline with at least one. The card names all steps that learn from raw values.
    language : {"en", "de"}, default="en"
        The language of the people who read the card. Names of steps and notes of estimators stay in English.

    Returns
    -------
    PrivacyCard
        ``str(card)`` is text, ``card.html`` a self-contained piece of HTML; notebooks show it.

    Raises
    ------
    ValueError
        Where no part is private, and for another language.

    Notes
    -----
    All numbers are bounds for the worst pair of data sets, rounded up, but those that a section calls "about": they are
    exact for the law of the estimator (`dpestim.audit.BayesianAdversary`), rounded to whole numbers. The guide *How to
    read a privacy card* says which studies the sections follow.

    Examples
    --------
    >>> from dpestim.inspection import privacy_card
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> card = privacy_card(GRRFrequencyEstimator(1.0, categories=[["a", "b"]]).fit([["a"], ["b"]]))
    >>> print(card.sections["The odds"])
    Even odds on a statement about one person become at most 2.72 to 1 after the release: 73.11 % instead of 50 %.
    >>> print("\\n".join(card.picture))
      [###.......] With any other answers in place of yours: 27 of 100
      [#######...] With your answers: at most 74 of 100
    """
    say = _language(language)
    if isinstance(of, type):
        raise ValueError(f"of must be an object: call privacy_card({of.__name__}(...))")
    if isinstance(of, Ledger):
        return _card("Ledger", of.spent(), say, *_of_ledger(of, say))
    if isinstance(of, Table) and not isinstance(of, PipelineReport):
        if hasattr(of, "report_bits"):  # (a Survey, whose room most users of cards never load)
            return _of_survey(of, say)
        about = "collected.guarantee" if isinstance(of, PrivacyGuarantee) else "collected.result"
        return _card(type(of).__name__, of.privacy, say, say(about, about=of._about()))
    report = of if isinstance(of, PipelineReport) else report_on(of)
    private, unprotected = [step for step in report.steps if step.privacy is not None], _sentences(report, say)
    if not private:
        raise ValueError(f"of must be an estimator of dpestim or a pipeline with one in it, or a result, plan, report, "
                         f"ledger or guarantee of dpestim; got {type(of).__name__}, of which no part is private")
    collected = " ".join(_collected(step.name, step.estimator, step.privacy, say) for step in private)
    return _card(type(of).__name__, sum(step.privacy for step in private), say, collected, unprotected,
                 [sentence for step in private if _says(step.privacy) for sentence in guesses(step.estimator, say)])


def _card(title, guarantee, say, collected, unprotected=(), guessed=()):
    """Return the card of a guarantee, from what was collected and what is done without protection, in sentences."""
    trust, unprotected = say(f"trust.{guarantee.model}"), list(unprotected)
    if guarantee.parties:
        trust = " ".join(trust_of(one, say) for one in guarantee.parties)
    if unprotected:
        trust = say("trust.mixed", trust=trust)
    notes, worlds = notes_of(guarantee, say), Worlds(guarantee, say)
    if guarantee.relaxation is not None:
        unprotected.insert(0, say("unprotected.relaxed", relaxation=guarantee.relaxation, notes=notes))
    elif not guarantee.is_finite:
        unprotected.insert(0, say("unprotected.everything", notes=notes).strip())
    unprotected += [say("unprotected.groups"), say("unprotected.several")]
    whom = say(f"whom.{guarantee.neighbours.value}")
    return PrivacyCard(say("card.title", title=title), {
        say("card.collected"): collected,
        say("card.whom"): say("whom.says", whom=whom),
        say("card.trust"): trust,
        say("card.promise"): promise(guarantee, say),
        say("card.odds"): odds_of(guarantee, say),
        say("card.worlds"): worlds.text,
        say("card.attacker"): " ".join((worlds.guess, *guessed)),
        say("card.unprotected"): " ".join(unprotected),
    }, title, worlds, say)


def _says(guarantee):
    """Tell whether anything is promised, if only for some values."""
    return guarantee.is_finite or guarantee.relaxation is not None


def _of_survey(survey, say):
    """Return the card of a survey, for a person who is asked."""
    asked = [column["question"] or column["name"] for column in survey._body["columns"]]
    names = [say("attacker.column", number=each) if isinstance(each, int) else say("collected.asked", question=each)
             for each in asked]
    collected = say("collected.survey", name=survey.name, what=", ".join(names),
                    bits=say("collected.bits", n=survey.report_bits))
    guessed = guesses(survey.client(), say, names) if _says(survey.privacy_) else ()
    return _card(survey.name, survey.privacy_, say, collected, (), list(guessed))


def _of_ledger(ledger, say):
    """Return what is in a ledger, and what it has recorded without protection, in sentences."""
    entries = ledger.entries()
    released = Counter(e["estimator"] or say("collected.unnamed") for e in entries if e["kind"] == RELEASE)
    what = ", ".join(f"{name} ({say.count(n)})" for name, n in released.items()) or say("collected.nothing")
    scores, seeds = (sum(map(test, entries)) for test in (
        lambda e: e["kind"] == SCORE, lambda e: e["seeded"] == "yes"))
    said = [say("unprotected.scores", n=scores)] * bool(scores) + [say("unprotected.seeds", n=seeds)] * bool(seeds)
    return say("collected.ledger", what=what), said


class PrivacyCard:
    """A page about a release.

    Attributes
    ----------
    title : str
    sections : dict of str
        Heading to text, in order.
    language : str
    picture : list of str
        The picture of two worlds as lines of text, one for each: with the person's data, and without. Nothing where no
        bound holds.
    chances : Chances or None
        The numbers of the picture.
    """

    def __init__(self, heading, sections, title, worlds, say):
        self.title, self.language = one_line(title), say.name
        self.sections = {head: one_line(text) for head, text in sections.items()}
        self.picture, self.chances = worlds.lines, worlds.chances
        self._heading, self._seen, self._under = one_line(heading), worlds.html, say("card.worlds")

    @property
    def html(self):
        """The card as a self-contained piece of HTML."""
        parts = "".join(
            f"<dt style='font-weight:bold'>{escape(head)}</dt><dd style='margin:0 0 .6em 1em'>{escape(text)}"
            f"{self._seen if head == self._under else ''}</dd>" for head, text in self.sections.items()
        )
        return (
            f"<div lang='{self.language}' "
            "style='font-family:sans-serif;max-width:46em;border:1px solid #888;border-radius:.5em;padding:0 1em'>"
            f"<h3>{escape(self._heading)}</h3><dl>{parts}</dl></div>"
        )

    def _repr_html_(self):
        return self.html

    def __str__(self):
        lines = [self._heading]
        for head, text in self.sections.items():
            lines += [f"* {head}: {text}", *(self.picture if head == self._under else ())]
        return "\n".join(lines)

    __repr__ = __str__


def _sentences(report, say):
    """Return sentences about what is done without protection."""
    said = []
    for step in report.steps:
        if hasattr(step.estimator, "cv_results_"):
            said.append(say("unprotected.search", name=step.name, reason=step.reason.lower()))
        elif step.verdict == LEAKING and step.privacy is None:
            said.append(say("unprotected.step", name=step.name, kind=step.kind, reason=step.reason))
    said += [say("unprotected.raw", part=part, around=around) for part, around in report.passes_raw]
    return list(dict.fromkeys(said))


def _collected(name, step, privacy, say):
    """Return a sentence about the columns and the mechanism of a step; numbers only where they are public."""
    columns = getattr(step, "feature_names_in_", None)
    n = getattr(step, "n_features_in_", None)
    what = ", ".join(map(str, columns)) if columns is not None else (
        say("collected.columns", n=n) if n else say("collected.unknown"))
    users = getattr(step, "n_users_", None) if privacy.neighbours is not Neighbours.ADD_REMOVE else None
    kind = type(step).__name__
    what = what if name == kind else f"{name}: {what}"
    if not users:
        return say("collected.step", what=what, kind=kind)
    return say("collected.counted", n=int(users), what=what, kind=kind)
