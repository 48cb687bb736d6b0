"""Proofs that a randomised program keeps its epsilon, and counterexamples where it does not.

    program             the decorator of a function that is read, and never run: what it claims and assumes
    queries             declares the parameter that holds the answers to queries
    laplace, discrete_laplace   noise, in such a function
    verify              proved, refuted or unknown, as a `Verdict`
    suite               the classic programs, correct and broken

How a program becomes an answer:

* `classics.py`   the suite of classic programs
* `language.py`, `reading.py`   the language: statements, types, what is secret
* `terms.py`       values: exact numbers, or terms of z3
* `running.py`     two runs at once, on neighbours; `worlds.py`, what they run in
* `shifts.py`      how noise is shifted between the runs; `ratios.py`, what that costs
* `proving.py`     the search, guided by counterexamples; `induction.py` and `invariants.py`, loops of any length
* `paths.py`       all paths of a program on numbers
* `probabilities.py` (by `exponentials.py`), `lattice.py`   their exact laws: Laplace noise, integer noise
* `refuting.py`    the search for a counterexample
* `checking.py`    both searches; `verdict.py`, the answer
* `verify.md`      the theorem, and its proof
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.verify.checking import verify
    from dpestim.verify.classics import suite
    from dpestim.verify.language import Program, ProgramError, Queries, discrete_laplace, laplace, program, queries
    from dpestim.verify.refuting import Refutation
    from dpestim.verify.verdict import Verdict

__getattr__, __dir__ = lazy.attach(__name__, {
    "checking": "verify",
    "classics": "suite",
    "language": "Program ProgramError Queries discrete_laplace laplace program queries",
    "refuting": "Refutation",
    "verdict": "Verdict",
})

__all__ = ["Program", "ProgramError", "Queries", "Refutation", "Verdict", "discrete_laplace", "laplace", "program",
           "queries", "suite", "verify"]
