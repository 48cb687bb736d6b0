"""The privacy card: what was collected, from whom, whom to trust, what epsilon means, what is not protected."""

import math
from html import escape

from dpestim.base import PrivateEstimator
from dpestim.privacy import Neighbours

_TRUST = {
    "local": "Nobody. Values are randomised on the side of those who gave them; only reports leave.",
    "shuffle": "The shuffler, which must forward all reports and forget who sent which.",
    "central": "Whoever holds the data: it sees every value, and only what it publishes is protected.",
}
_WHO = {
    Neighbours.LOCAL: "one user, whose one row is protected whole",
    Neighbours.SUBSTITUTION: "one person, whose record may be replaced by any other; how many took part is public",
    Neighbours.ADD_REMOVE: "one person, who may as well not be in the data; how many took part is not public",
}
_ALWAYS = (
    "Facts about groups: what is true of many people is what the release is for, and it can be applied to one of them.",
    "People who appear in several releases: their epsilons add up. A ledger keeps the account.",
)
#: Steps that learn nothing from data.
_STATELESS = ("FunctionTransformer", "Normalizer", "passthrough", "NoneType", "str")


def privacy_card(estimator):
    """Return what an estimator or a pipeline promises about whose data, as a self-contained page.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Of dpestim, or a pipeline in which some steps are. Steps that are not private are named.

    Returns
    -------
    PrivacyCard
        ``str(card)`` is text, ``card.html`` a piece of HTML without any outside reference; notebooks show it.

    Raises
    ------
    ValueError
        Where no part of the estimator is private.

    Examples
    --------
    >>> from dpestim.inspection import privacy_card
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> card = privacy_card(GRRFrequencyEstimator(1.0, categories=[["a", "b"]]).fit([["a"], ["b"]]))
    >>> print(card.sections["The odds"])
    Whoever held something for as likely as not may, after the release, bet at most 2.72 to 1: 73.1 % instead of 50 %.
    """
    steps = _steps(estimator)
    private = [(name, step) for name, step in steps if isinstance(step, PrivateEstimator)]
    if not private:
        raise ValueError("estimator must be one of dpestim's, or a pipeline with one in it")
    guarantee, unprotected = _together(steps)
    sections = {
        "What was collected": " ".join(_collected(name, step) for name, step in private),
        "From whom": f"The promise is about {_WHO[guarantee.neighbours]}.",
        "Who must be trusted": _TRUST[guarantee.model],
        "The promise": str(guarantee),
        "The odds": _odds(guarantee),
        "What is not protected": " ".join((*unprotected, *_ALWAYS)),
    }
    return PrivacyCard(type(estimator).__name__, sections)


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


def _steps(estimator):
    """Return (name, step) of everything that data pass through, in order."""
    if hasattr(estimator, "best_estimator_"):
        estimator = estimator.best_estimator_
    if isinstance(estimator, PrivateEstimator):
        return [(type(estimator).__name__, estimator)]
    if hasattr(estimator, "steps"):
        return [pair for name, step in estimator.steps for pair in _named(name, step)]
    if hasattr(estimator, "transformers"):
        parts = getattr(estimator, "transformers_", estimator.transformers)
        return [pair for name, step, _ in parts for pair in _named(name, step)]
    return [(type(estimator).__name__, estimator)]


def _named(name, step):
    inner = _steps(step)
    return [(name, step)] if len(inner) == 1 and inner[0][1] is step else [(f"{name}.{n}", s) for n, s in inner]


def _together(steps):
    """Return the guarantee of all steps, and sentences about those that keep none."""
    total, unprotected, only_reports = None, [], False
    for name, step in steps:
        if isinstance(step, PrivateEstimator):
            total = step.privacy_ if total is None else total + step.privacy_
            only_reports = only_reports or (step.privacy_.model == "local" and hasattr(step, "transform"))
        elif type(step).__name__ in _STATELESS:
            continue
        elif not only_reports:
            unprotected.append(f"Step {name} ({type(step).__name__}) learned from raw values, without any guarantee.")
        elif hasattr(step, "predict"):
            unprotected.append(f"Step {name} ({type(step).__name__}) learned from reports, but its targets y were raw.")
    if not total.is_finite:
        unprotected.insert(0, " ".join(("Nothing, in fact.", *total.notes)))
    return total, unprotected


def _collected(name, step):
    """Return a sentence about the columns and the mechanism of a step; numbers only where they are public."""
    privacy = step.privacy_
    columns = getattr(step, "feature_names_in_", None)
    n = getattr(step, "n_features_in_", None)
    what = ", ".join(map(str, columns)) if columns is not None else f"{n} columns" if n else "columns"
    what = "1 column" if what == "1 columns" else what
    users = getattr(step, "n_users_", None) if privacy.neighbours is not Neighbours.ADD_REMOVE else None
    count = f" from {users:,} reports" if users else ""
    return f"{name}: {what}, through {type(step).__name__}{count}."


def _odds(guarantee):
    if not guarantee.is_finite:
        return "No bound: the release may tell everything about anybody."
    odds = math.exp(float(guarantee.epsilon))
    shown = f"{odds:.3g}" if odds < 1e4 else f"{odds:.1e}"
    chance = odds / (1 + odds) if odds < 1e300 else 1.0
    text = (f"Whoever held something for as likely as not may, after the release, bet at most {shown} to 1: "
            f"{100 * chance:.3g} % instead of 50 %.")
    if guarantee.delta:
        text += f" With a probability of at most {float(guarantee.delta):g} it may be more."
    return text
