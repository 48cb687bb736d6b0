"""Checks that any mechanism can be put through, those of third parties included.

``check_mechanism(estimator)`` runs them all; ``mechanism_checks(estimator)`` lists them for a parametrised test. What
an estimator can do decides which:

    checks       all of them: which families an estimator belongs to
    lists        what randomises neighbour lists; list_patterns: what counts patterns from such reports
    item_lists   lists of items whose bits are flipped: the law, exact means and variances
    rated_rounds  ratings of which users report directions in rounds: means, words, that a fit is its verbs
    itemsets     what finds items and sets of items of baskets, by groups that answer one after another
    law          any law: a distribution, the kernel that follows it, reports that hold nothing else, words that are
                 never repeated
    promises     any law: what it promises, exactly, and to whom
    frequencies  laws of categories: all bytes of a report, supports, estimates, intervals
    numbers      laws of numbers: exact means, variances, rounding
    balls        vectors in a ball: the mean of what is reported, whole reports of short ones, fixed points
    trajectories  trajectories in the central model: by how much a row moves all tables
    densities    counts of places in the central model: splits of quadtrees, errors
    parts        what cuts a region by reports of groups of users
    places       reports of places: exact laws over all pairs of places, remapping
    pairs        sets of (key, value) pairs: exact laws over all sets, estimates, tables, rounds
    rows         rows of several numbers: which columns are drawn, joint laws
    behaviour    behaviour of any kind: refused parameters, state, merging, strict mode; a `Subject` says how it is used
    contract     behaviour of any client (`privatize`), that of a server included
    aggregates   behaviour of any server (`aggregate`)
    servers      what estimates from the reports of a transformer
    groups       what estimates from users of different settings
    mixed        rows of numbers and categories together
    models       what learns from rows in the central model: classifiers, regressors, transformers
    trees        trees and forests: exactly what neighbours can tell apart, on tiny data
    boosting     boosting: how far histograms of neighbours are apart, given all answers, on tiny data
    reported     fits that hear of rows by noisy integers and private choices: what all of them cost, exactly
    answers      fits in rounds of noisy sums: how far these are apart, given all answers, on tiny data
    rounds       what learns from reports of noisy gradients, in the local model
    itemsets     what finds sets of items of baskets, by groups of users that answer one after another
    graphs       counts of graphs: worst cases over all small graphs, laws of releases
    generators   what learns from a graph with noise, and draws graphs
    views        what estimates from views of rows, of which each user reports some
    synthesis    what learns a model of rows, and samples others from it
    releases     what releases answers, in the central model: charges, refusals, seeds, strict mode
    central      what adds noise to answers
    choices      what chooses among candidates
    queries      what says which of many queries are above a threshold
    stability    what takes rows, with noise that depends on them: worst cases over small data sets, summaries
    coverage_of_runs  reports on runs of a program: what one block moves, the law of flips, estimates
    graph_answers  noisy facts of a graph: how far those of all small neighbours are apart
    shuffle      protocols of the shuffle model: one user's messages, the exact law of those of few, totals
    shuffled     what puts a local estimator behind a shuffler
    statistics   statistics: exact laws on small tables (`plans`), what a result may depend on, summaries
    statistic_samples  ... releases against their laws, errors, intervals
    streams      what releases at every step of a stream: worst neighbours of few steps, laws, copies of a state
    surveys      what randomises rows on devices: the file that both sides agree on, and reports as messages

Exact rational laws come first, then samples against them, each with a named n and alpha, and each shown to *reject* a
law whose epsilon is 0.7 or 1.3 times the true one. Samples are drawn once for each setting and shared by its checks
(`sample`); they are seeded, so that a verdict is reproducible. A check raises `MechanismError` (an AssertionError),
which says what was expected.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.testing.checks import check_mechanism, mechanism_checks
    from dpestim.testing.tools import MechanismError

__getattr__, __dir__ = lazy.attach(__name__, {
    "checks": "check_mechanism mechanism_checks",
    "tools": "MechanismError",
})

__all__ = ["MechanismError", "check_mechanism", "mechanism_checks"]
