"""The release report: questions, answers with their intervals, and the budget, as a page to hand on."""

import os
from collections.abc import Mapping
from html import escape
from pathlib import Path

from dpestim.privacy.text import bound
from dpestim.tables import NumberTable, Table, called


def release_report(answers, *, ledger=None, title="Release report"):
    """Return one table of released answers, with their intervals, their cost, and what is left of a budget.

    **Privacy.** A report is made of released results only. It costs nothing.

    Parameters
    ----------
    answers : dict
        From the question, in words, to its answer: what a function of `dpestim.statistics` returned, or a fitted
        estimator with a `result_`.
    ledger : dpestim.accounting.Ledger, default=None
        Whose budget is reported below the table.
    title : str, default="Release report"

    Returns
    -------
    ReleaseReport
        ``print(report)`` shows text, notebooks show HTML, ``report.save("report.html")`` writes a page, and
        ``report.to_frame()`` returns the table as a pandas frame.

    Raises
    ------
    ValueError
        Where `answers` is no dict, is empty, or has an answer that is no result.

    Examples
    --------
    >>> from dpestim.accounting import Ledger
    >>> from dpestim.inspection import release_report
    >>> from dpestim.statistics import count
    >>> with Ledger(1.0) as ledger:
    ...     smokers = count([True, False] * 500, epsilon=0.25, random_state=0)
    >>> report = release_report({"How many smoke?": smokers}, ledger=ledger)
    >>> report.to_frame()["epsilon"].tolist()
    [0.25]
    """
    if not isinstance(answers, Mapping) or not answers:
        raise ValueError("answers must be a dict from questions to results, such as "
                         '{"How many smoke?": count(smokes, epsilon=0.5)}')
    results = {str(question): _result(question, answer) for question, answer in answers.items()}
    return ReleaseReport(results, () if ledger is None else _budget(ledger), str(title))


class ReleaseReport(Table):
    """Questions, answers, intervals and cost; `release_report` makes it.

    Attributes
    ----------
    title : str
    results : dict of Result, GroupResults or Estimates
    budget : tuple of str
        Sentences about the ledger.
    """

    _most_lines = 200
    _n_labels = 2
    _plotted = ("answer", "low", "high")

    def __init__(self, results, budget, title):
        self.results, self.budget, self.title = results, budget, title

    @property
    def privacy(self):
        """What all answers together promise: the sum, as the same people may be in all of them."""
        return sum(result.privacy for result in self.results.values())

    def save(self, path):
        """Write the report as an HTML page without outside references; an existing file is replaced whole.

        Parameters
        ----------
        path : str or path-like
        """
        path = Path(path)
        page = (f"<!DOCTYPE html><html><head><meta charset='utf-8'><title>{escape(self.title)}</title></head>"
                f"<body>{self._repr_html_()}</body></html>\n")
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        partial.write_text(page, encoding="utf-8")
        partial.replace(path)

    def __str__(self):
        return f"{self.title}\n{super().__str__()}"

    def _repr_html_(self):
        return super()._repr_html_().replace(">", f"><h3>{escape(self.title)}</h3>", 1)

    def _head(self):
        return "question", "of", "answer", "low", "high", "level", "epsilon", "delta"

    def _rows(self):
        for question, result in self.results.items():
            epsilon, delta = (float(bound(part)) for part in (result.privacy.epsilon, result.privacy.delta))
            for *labels, value, _, low, high in result._cells():
                # (estimates have no label, None, where an axis is of their other parts)
                of = ", ".join(called(label, result._none) for label in labels
                               if label is not None or result._none != "-")
                yield question, of or None, value, low, high, result.level, epsilon, delta

    def _remarks(self):
        return ("The exact answer lies between low and high with a probability of at least level, for each number "
                "separately.", "Epsilon and delta are the cost of all numbers of one question; the groups of one "
                "question are different people, and cost as much as one group.", *self.budget)


def _result(question, answer):
    found = getattr(answer, "result_", answer)
    if not isinstance(found, NumberTable):
        raise ValueError(f"the answer to {str(question)!r} must be a result of dpestim.statistics or a fitted "
                         f"estimator with a result_, got {type(answer).__name__}: print its privacy_card instead")
    return found


def _budget(ledger):
    try:
        spent, left = ledger.spent(), ledger.remaining()
    except AttributeError:
        raise ValueError("ledger must be a dpestim.accounting.Ledger or None") from None
    return (f"Spent: epsilon = {bound(spent.epsilon)}, delta = {bound(spent.delta)}.",
            f"Left: epsilon = {bound(left.epsilon, down=True)}, delta = {bound(left.delta, down=True)}.")
