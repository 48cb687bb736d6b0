"""The privacy card: what was collected, from whom, whom to trust, what epsilon means, what is not protected."""

from collections import Counter
from html import escape

from dpestim.pipeline.report import PipelineReport, report_on
from dpestim.pipeline.traversal import LEAKING
from dpestim.privacy import Neighbours
from dpestim.privacy.account import RELEASE, SCORE
from dpestim.privacy.ledger import Ledger
from dpestim.privacy.text import bound, odds, posterior
from dpestim.tables import Table

_TRUST = {
    "local": "Nobody, if each person's device randomises the answer: only noisy reports leave the device.",
    "shuffle": "The shuffler, which must forward all reports and remove their senders.",
    "central": "The curator, who holds the data and sees every value. Only published results are protected.",
}
_WHO = {
    Neighbours.LOCAL: "one user, whose whole row is protected",
    Neighbours.SUBSTITUTION: "one person, whose record may be replaced by any other record; the number of participants "
                             "is public",
    Neighbours.ADD_REMOVE: "one person, whose record may be missing from the data; the number of participants is not "
                           "public",
    Neighbours.EDGE: "one edge, a relationship of two persons; a person with many relationships is protected less, and "
                     "who takes part is public",
    Neighbours.LIST: "one entry of a user's neighbour list; a relationship that two users report costs twice, a "
                     "user with many relationships is protected less, and who takes part is public",
    Neighbours.NODE: "one node of a graph, such as a person with all relationships; the number of nodes is not public",
    Neighbours.EVENT: "one event of a stream; a user with many events is protected less, and when steps end is public",
    Neighbours.USER: "all events of one user of a stream, up to the declared number of them; when steps end is public",
    Neighbours.RATING: "one rating of one user; a user with many ratings is protected less, and who the users are is "
                       "public",
}
_ALWAYS = (
    "Facts about groups: the release informs about groups of people, and readers can apply these facts to a member.",
    "People who appear in several releases: the epsilons of these releases add up. A ledger adds them up.",
)


def privacy_card(of):
    """Return what an estimator, a pipeline, a result, a plan, a ledger or a guarantee promises, as a page.

    Parameters
    ----------
    of : estimator, Pipeline, ColumnTransformer, FeatureUnion, search, result, plan, report, Ledger or PrivacyGuarantee
        An estimator of dpestim, or a pipeline with at least one. The card names all steps that learn from raw values.

    Returns
    -------
    PrivacyCard
        ``str(card)`` is text, ``card.html`` a self-contained piece of HTML; notebooks show it.

    Raises
    ------
    ValueError
        Where no part is private.

    Examples
    --------
    >>> from dpestim.inspection import privacy_card
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> card = privacy_card(GRRFrequencyEstimator(1.0, categories=[["a", "b"]]).fit([["a"], ["b"]]))
    >>> print(card.sections["The odds"])
    Even odds on a statement about one person become at most 2.72 to 1 after the release: 73.11 % instead of 50 %.
    """
    if isinstance(of, type):
        raise ValueError(f"of must be an object: call privacy_card({of.__name__}(...))")
    if isinstance(of, Ledger):
        return _card("Ledger", of.spent(), *_of_ledger(of))
    if isinstance(of, Table) and not isinstance(of, PipelineReport):
        return _card(type(of).__name__, of.privacy, of._about())
    report = of if isinstance(of, PipelineReport) else report_on(of)
    private, unprotected = [step for step in report.steps if step.privacy is not None], _sentences(report)
    if not private:
        raise ValueError(f"of must be an estimator of dpestim or a pipeline with one in it, or a result, plan, report, "
                         f"ledger or guarantee of dpestim; got {type(of).__name__}, of which no part is private")
    collected = " ".join(_collected(step.name, step.estimator, step.privacy) for step in private)
    return _card(type(of).__name__, sum(step.privacy for step in private), collected, unprotected)


def _card(title, guarantee, collected, unprotected=()):
    """Return the card of a guarantee, from what was collected and what is done without protection, in sentences."""
    trust, unprotected = _TRUST[guarantee.model], list(unprotected)
    if guarantee.parties:
        trust = " ".join(f"{one.nobody.capitalize()}, as long as {one.condition}." for one in guarantee.parties)
    if unprotected:
        trust = f"Those who run the steps that are not private, and see raw values. For the private steps: {trust}"
    if guarantee.relaxation is not None:
        unprotected.insert(0, f"All values that {guarantee.relaxation} does not protect. {' '.join(guarantee.notes)}")
    elif not guarantee.is_finite:
        unprotected.insert(0, " ".join(("Nothing, in fact.", *guarantee.notes)))
    return PrivacyCard(title, {
        "What was collected": collected,
        "From whom": f"The promise is about {_WHO[guarantee.neighbours]}.",
        "Who must be trusted": trust,
        "The promise": str(guarantee),
        "The odds": _odds(guarantee),
        "What is not protected": " ".join((*unprotected, *_ALWAYS)),
    })


def _of_ledger(ledger):
    """Return what is in a ledger, and what it has recorded without protection, in sentences."""
    entries = ledger.entries()
    released = Counter(e["estimator"] or "unnamed releases" for e in entries if e["kind"] == RELEASE)
    what = ", ".join(f"{name} ({n:,})" for name, n in released.items()) or "nothing yet"
    scores, seeds = (sum(map(test, entries)) for test in (
        lambda e: e["kind"] == SCORE, lambda e: e["seeded"] == "yes"))
    said = [f"{scores:,} results were compared with raw data, or computed from them."] * bool(scores)
    said += [f"{seeds:,} releases have noise from a seed: whoever knows it can remove the noise."] * bool(seeds)
    return f"Releases by estimator, and how many: {what}.", said


class PrivacyCard:
    """A page about a release.

    Attributes
    ----------
    title : str
    sections : dict of str
        Heading to text, in order.
    """

    def __init__(self, title, sections):
        self.title, self.sections = title, sections

    @property
    def html(self):
        """The card as a self-contained piece of HTML."""
        parts = "".join(
            f"<dt style='font-weight:bold'>{escape(head)}</dt><dd style='margin:0 0 .6em 1em'>{escape(text)}</dd>"
            for head, text in self.sections.items()
        )
        return (
            "<div style='font-family:sans-serif;max-width:46em;border:1px solid #888;border-radius:.5em;padding:0 1em'>"
            f"<h3>Privacy card: {escape(self.title)}</h3><dl>{parts}</dl></div>"
        )

    def _repr_html_(self):
        return self.html

    def __str__(self):
        return "\n".join([f"Privacy card: {self.title}", *(f"* {h}: {t}" for h, t in self.sections.items())])

    __repr__ = __str__


def _sentences(report):
    """Return sentences about what is done without protection."""
    said = []
    for step in report.steps:
        if hasattr(step.estimator, "cv_results_"):
            said.append(f"The search {step.name}: {step.reason.lower()} Its cv_results_ and best_params_ are exact "
                        "releases, which the guarantee on this card does not cover.")
        elif step.verdict == LEAKING and step.privacy is None:
            said.append(f"Step {step.name} ({step.kind}): {step.reason}")
    said += [f"Step {part} of {around} passes raw values on." for part, around in report.passes_raw]
    return list(dict.fromkeys(said))


def _collected(name, step, privacy):
    """Return a sentence about the columns and the mechanism of a step; numbers only where they are public."""
    columns = getattr(step, "feature_names_in_", None)
    n = getattr(step, "n_features_in_", None)
    what = ", ".join(map(str, columns)) if columns is not None else f"{n} columns" if n else "columns"
    what = "1 column" if what == "1 columns" else what
    users = getattr(step, "n_users_", None) if privacy.neighbours is not Neighbours.ADD_REMOVE else None
    count = f" from {users:,} reports" if users else ""
    kind = type(step).__name__
    return f"{'' if name == kind else f'{name}: '}{what}{count}, through {kind}."


def _odds(guarantee):
    bounded = guarantee.is_finite and guarantee.delta < 1  # (a curve alone is no bound of odds)
    epsilon = guarantee.epsilon if bounded else guarantee.relaxed_epsilon
    if epsilon is None:
        return "No bound: the release may reveal everything about a person."
    times = odds(epsilon).removeprefix(" = ") or f"e^{bound(epsilon)}"
    text = (f"Even odds on a statement about one person become at most {times} to 1 after the release: "
            f"{posterior(epsilon)} % instead of 50 %.")
    if not bounded:
        text = f"For the values that {guarantee.relaxation} protects: {text} For all other values: no bound."
    if guarantee.delta:
        text += f" Except for an event of probability {bound(guarantee.delta)}, in which this bound does not hold."
    return text
