"""What somebody who sees one report of a client guesses, by the exact law of the client."""

from dpestim.local.client import Client
from dpestim.local.server import Server

#: Columns that a card speaks about, and answers of a column up to which its law is asked (local hashing: cubic time).
_MOST_COLUMNS, _MOST_ANSWERS = 4, 64


def guesses(estimator, say, names=None):
    """Yield a sentence for each column of categories of a client, or of the server of its reports.

    Nothing of laws that cannot be enumerated, of numbers (whose steps are no answers), and of many answers: there the
    bound of the guarantee speaks.

    Parameters
    ----------
    estimator : object
    say : Language
    names : list of str or None, default=None
        What columns are called. None: their names in a frame, or their places.
    """
    if not isinstance(estimator, Client | Server):
        return
    from dpestim.audit.adversary import BayesianAdversary  # (this takes as long as all cards of a notebook)

    try:
        client = estimator if isinstance(estimator, Client) else estimator._client()
        columns = estimator._columns or client._columns_now()
    except (ValueError, AttributeError):  # (nothing is declared, or each group has a law)
        return
    if names is None:
        names = getattr(estimator, "feature_names_in_", getattr(columns, "keys", None))
    if names is None:
        names = range(len(columns))
    for number, (column, name) in enumerate(zip(columns.columns[:_MOST_COLUMNS], names)):
        codes = getattr(column.law, "input_codes", ())
        if not 2 <= len(codes) <= _MOST_ANSWERS or column.domain.get("kind") != "categories":
            continue
        try:
            right = BayesianAdversary(estimator, column=number).expected_success()
        except (ValueError, TypeError):  # (fakes, or a law that does not say how it is guessed from)
            right = None
        if right is None:
            continue
        name = name if isinstance(name, str) else say("attacker.column", number=name)
        yield say("attacker.law", column=name, answers=len(codes), x=round(100 / len(codes)), y=round(100 * right))
