"""Audits: the true epsilon and delta of a law, and what an adversary learns from a report.

    BayesianAdversary   guesses a user's value from one report: how often it is right, expected and measured
    audit               a lower bound on the epsilon of running code, from its outputs alone
    assert_private      the same as an assertion, for test suites; a fixture of pytest
    exact_epsilon       the epsilon that a law, a matrix or a mechanism really has; exact_delta, its delta at an epsilon
    hockey_stick        the delta between two laws of one outcome, or two densities; max_loss, the worst ln(ratio)
    compose             several outcomes together, exactly: what fast accounting is measured against
    poisoning           the worst gain of malicious users under each law, by their inputs or by any reports
    column_inference    how often the column is guessed that a report with fakes tells the truth about
    search_counterexample    two neighbours, and an event, that refute a claimed epsilon: searched, and certified
    audit_model         a lower bound of a model's epsilon from one fit, by canaries that coins include
    mistakes            published mechanisms that are less private than they claim, and what they really lose

Functions that compare with raw data are not private and are for the curator; their docstrings state this.

* `exact.py`     the four questions, of whatever can answer them
* `finite_laws.py`     laws of finitely many outcomes, as Fractions; composition
* `density.py`   densities on the line: quadrature with a known error
* `adversary.py` the Bayesian adversary
* `columns.py`   the attacker who guesses a column
* `targets.py`   what malicious users aim at, and how far one report moves it
* `malicious.py` their worst gains, and the picture of these
* `running/`     audits of running code: pairs, events, bounds
* `models.py`    the audit of a model by one fit; `canaries.py`, `scores.py` and `one_run.py`, its bound
* `search.py`    the search for a counterexample; `spaces.py`, its inputs, and `certificates.py`, what proves it
* `gallery/`     the mistakes, by what they are about
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.audit.adversary import BayesianAdversary, Success
    from dpestim.audit.columns import ColumnInference, column_inference
    from dpestim.audit.density import Density, Estimate
    from dpestim.audit.exact import exact_delta, exact_epsilon, hockey_stick, max_loss
    from dpestim.audit.finite_laws import compose
    from dpestim.audit.gallery import Mistake, mistakes
    from dpestim.audit.malicious import Gain, Poisoning, PoisoningDisplay, poisoning
    from dpestim.audit.models import Guesses, ModelAudit, audit_model
    from dpestim.audit.running.asserting import assert_private
    from dpestim.audit.running.audit import audit
    from dpestim.audit.running.result import Audit
    from dpestim.audit.search import Counterexample, search_counterexample
    from dpestim.local.pivots import PoisoningTest, Suspicion

__getattr__, __dir__ = lazy.attach(__name__, {
    "adversary": "BayesianAdversary Success",
    "columns": "ColumnInference column_inference",
    "density": "Density Estimate",
    "exact": "exact_delta exact_epsilon hockey_stick max_loss",
    "finite_laws": "compose",
    "gallery": "Mistake mistakes",
    "malicious": "Gain Poisoning PoisoningDisplay poisoning",
    "models": "Guesses ModelAudit audit_model",
    "running.asserting": "assert_private",
    "running.audit": "audit",
    "running.result": "Audit",
    "search": "Counterexample search_counterexample",
    "dpestim.local.pivots": "PoisoningTest Suspicion",
})

__all__ = ["Audit", "BayesianAdversary", "ColumnInference", "Counterexample", "Density", "Estimate", "Gain", "Guesses",
           "Mistake", "ModelAudit", "Poisoning", "PoisoningDisplay", "PoisoningTest", "Success", "Suspicion",
           "assert_private", "audit", "audit_model", "column_inference", "compose", "exact_delta", "exact_epsilon",
           "hockey_stick", "max_loss", "mistakes", "poisoning", "search_counterexample"]
