"""Amplification by shuffling: what n shuffled messages promise, given the local law of one.

    clones          any law with a local epsilon (`clones_delta`: delta at an epsilon)
    blanket         a law whose structure is known, the best of its kind (`blanket_delta`)
    best            the smaller of both that applies, never above the local epsilon (`best_delta`)
    erlingsson, clones_closed    closed formulas, quoted to compare
    exact_delta     the truth, for a few users
    largest_local   the other way round: the largest local epsilon that keeps a promise (`keeps`: whether one does)

    reductions.py        reductions: a victim's two laws, and what the others have in common with everybody
    sums.py         the divergence of a reduction, an upper bound for any n
    bounds.py       the functions above; the proofs are in ``bounds.md`` and ``sums.md``

Neighbours are data sets of n users of whom one has another input; n is public, and the shuffler is trusted. The 2023
refinement of the clones is left out: it has been corrected since, and `blanket` needs none of it.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.shuffle.amplification.bounds import best, best_delta, blanket, blanket_delta, clones, clones_delta
    from dpestim.shuffle.amplification.calibrate import keeps, largest_local
    from dpestim.shuffle.amplification.closed import clones_closed, erlingsson
    from dpestim.shuffle.amplification.exact import exact_delta

__getattr__, __dir__ = lazy.attach(__name__, {
    "bounds": "best best_delta blanket blanket_delta clones clones_delta",
    "calibrate": "keeps largest_local",
    "closed": "clones_closed erlingsson",
    "exact": "exact_delta",
})

__all__ = ["best", "best_delta", "blanket", "blanket_delta", "clones", "clones_closed", "clones_delta", "erlingsson",
           "exact_delta", "keeps", "largest_local"]
