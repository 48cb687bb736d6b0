"""k-anonymity for comparison only: **nothing here is differentially private**, and nothing has a budget.

A table is k-anonymous if each combination of quasi-identifiers (what a stranger may know of a person) occurs at least
k times. That says something about one table, and nothing about what its release tells together with what else is
known: the attacks of this package need no more than the released tables. They are here so that the two ideas can be put
side by side, on the same data.

    table.py        columns by name or number, as codes; equivalence classes; how a class is written
    mondrian.py     `Mondrian`: cut the table at medians while all pieces stay large enough
    full_domain.py  `FullDomainGeneralization`: the same coarsening for all rows, along declared hierarchies
    measures.py     `anonymity`, `diversity`, `closeness` of a table, and what generalising lost
    attacks.py      `homogeneity_attack`, `intersection_attack`: what releases tell all the same

These are functions and classes outside of the registry: they have no `privacy_`, no ledger pays for them, and a private
pipeline refuses them.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.anonymity.attacks import Attack, homogeneity_attack, intersection_attack
    from dpestim.anonymity.full_domain import FullDomainGeneralization
    from dpestim.anonymity.measures import anonymity, certainty_penalty, closeness, discernibility, diversity
    from dpestim.anonymity.mondrian import Mondrian
    from dpestim.anonymity.table import equivalence_classes

__getattr__, __dir__ = lazy.attach(__name__, {
    "attacks": "Attack homogeneity_attack intersection_attack",
    "full_domain": "FullDomainGeneralization",
    "measures": "anonymity certainty_penalty closeness discernibility diversity",
    "mondrian": "Mondrian",
    "table": "equivalence_classes",
})

__all__ = [
    "Attack",
    "FullDomainGeneralization",
    "Mondrian",
    "anonymity",
    "certainty_penalty",
    "closeness",
    "discernibility",
    "diversity",
    "equivalence_classes",
    "homogeneity_attack",
    "intersection_attack",
]
