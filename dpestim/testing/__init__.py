"""Checks that any mechanism can be put through, those of third parties included.

``check_mechanism(estimator)`` runs them all; ``mechanism_checks(estimator)`` lists them for a parametrised test. What
an estimator can do decides which:

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

from functools import partial

from dpestim.testing import (
    attributes,
    balls,
    central,
    choices,
    contract,
    coverage_of_runs,
    densities,
    encoders,
    finders,
    frequencies,
    generators,
    graph_answers,
    graphs,
    groups,
    item_lists,
    itemsets,
    law,
    learning,
    list_patterns,
    mixed,
    nodes,
    numbers,
    pairs,
    parts,
    places,
    promises,
    queries,
    rated_rounds,
    ratings,
    rows,
    servers,
    shuffle,
    shuffled,
    stability,
    statistics,
    streams,
    surveys,
    synthesis,
    trajectories,
    views,
)
from dpestim.testing.aggregates import SERVER_CHECKS
from dpestim.testing.answers import ANSWER_CHECKS
from dpestim.testing.boosting import BOOSTING_CHECKS
from dpestim.testing.models import MODEL_CHECKS
from dpestim.testing.reported import REPORTED_CHECKS
from dpestim.testing.rounds import ROUND_CHECKS
from dpestim.testing.sample import Sample
from dpestim.testing.tools import MechanismError, check_numeric_setting, check_setting, client_of
from dpestim.testing.trees import TREE_CHECKS

#: What releases says by `_checked_as` how it is used: each family makes a `behaviour.Subject` of an estimator.
_FAMILIES = {"noise": central.Noise, "choice": choices.Choices, "queries": queries.Queries, "rows": stability.Rows,
             "votes": stability.Votes, "statistic": statistics.Statistics, "shuffle": shuffle.Shuffles,
             "shuffled": shuffled.Shuffled, "keyvalue": pairs.Pairs,
             "heavy hitters": finders.Finders, "local model": learning.Learners,
             "privatized columns": learning.Privatized, "views": views.Viewed, "itemsets": itemsets.Found,
             "attributes": attributes.Attributes,
             "coverage": coverage_of_runs.Covered,
             "graph": graphs.Graphs,
             "graph answers": graph_answers.Answers,
             "graph generator": generators.Generators,
             "list generator": generators.ListGenerators,
             "lists": list_patterns.family,
             "ratings": ratings.Rated,
             "item lists": item_lists.Itemised,
             "rated rounds": rated_rounds.RatedRounds,
             "nodes": nodes.Nodes,
             "places": places.Places,
             "density": densities.Densities,
             "parts": parts.Parted,
             "trajectories": trajectories.Trajectories,
             "stream": streams.Streams,
             }

__all__ = ["MechanismError", "check_mechanism", "mechanism_checks"]


def mechanism_checks(estimator):
    """Return the list of (name, check) for an estimator; each check is called without arguments.

    Parameters
    ----------
    estimator : FrequencyEstimator, transformer of numbers, what estimates from such a transformer, what wraps that,
        central mechanism or model
        Unfitted; it is cloned, never changed. Frequency estimators need declared categories: lists of at most 9 str,
        int, float or bool values, of one type a column and none missing; transformers declared bounds and a grid of at
        most 64 steps, or a declared radius and at most 8 candidates. Each column's share of epsilon must lie between
        0.1 and 5, where 400,000 samples can tell it from 0.7 and 1.3 times as much.

    Returns
    -------
    list of (str, callable)
        They share their samples, some 15 MB a column, which live as long as the list.

    Raises
    ------
    ValueError
        For a setting outside these; it says nothing about the mechanism.
    """
    checks, subject = _checks_for(estimator)
    found = [(check.__name__, partial(check, subject)) for check in checks]
    if surveys.travels(estimator):
        traveller = surveys.Traveller(estimator)
        found += [(check.__name__, partial(check, traveller)) for check in surveys.CHECKS]
    return found


def check_mechanism(estimator):
    """Run every check on an estimator and return their names; raises `MechanismError` at the first that fails.

    Examples
    --------
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> from dpestim.testing import check_mechanism
    >>> len(check_mechanism(GRRFrequencyEstimator(1.0, categories=[["a", "b", "c"]]))) > 10
    True
    """
    names = []
    for name, check in mechanism_checks(estimator):
        check()
        names.append(name)
    return names


def _checks_for(estimator):
    """Return (the checks that the capabilities of an estimator call for, what they take)."""
    kind = getattr(estimator, "_checked_as", None)
    if kind == "model":
        return (*REPORTED_CHECKS, *MODEL_CHECKS), estimator
    if kind == "answers":
        return (*REPORTED_CHECKS, *MODEL_CHECKS, *ANSWER_CHECKS), estimator
    if kind == "tree":
        return (*MODEL_CHECKS, *TREE_CHECKS), estimator
    if kind == "boosting":
        return (*MODEL_CHECKS, *BOOSTING_CHECKS), estimator
    if kind == "rounds":
        return (*MODEL_CHECKS, *ROUND_CHECKS), estimator
    if kind == "synthesizer":
        return synthesis.CHECKS, estimator
    if kind == "encoder":
        return encoders.CHECKS, estimator
    family = _FAMILIES.get(kind)
    if family:
        subject = family(estimator)
        return subject.checks(), subject
    if hasattr(estimator, "transformers"):
        behaviour = (contract.check_clone_and_pickle, contract.check_freeze, contract.check_strict_mode_stays,
                     contract.check_bad_reports, contract.check_threads, *SERVER_CHECKS)
        return (*behaviour, *mixed.ESTIMATOR_CHECKS), Sample(estimator, mixed.Mixed)
    client = client_of(estimator)
    kind = frequencies.Categories if hasattr(client, "categories") else numbers.Numbers
    if hasattr(client, "radius"):
        kind = balls.Balls
    sample, behaviour = Sample(estimator, kind), (*contract.CLIENT_CHECKS, *contract.BOTH_CHECKS)
    if hasattr(estimator, "categories"):
        check_setting(estimator)
        checks = (*law.LAW_CHECKS, *promises.CHECKS, *frequencies.LAW_CHECKS)
        return (*checks, *frequencies.ESTIMATOR_CHECKS, *behaviour, *SERVER_CHECKS), sample
    if hasattr(estimator, "decode") and kind is balls.Balls:
        balls.check_setting(estimator)
        checks = (*law.LAW_CHECKS, *promises.CHECKS, *balls.LAW_CHECKS)
        return (*checks, *numbers.ESTIMATOR_CHECKS, *behaviour), sample
    if hasattr(estimator, "decode"):
        check_numeric_setting(estimator)
        strategy = getattr(estimator, "strategy", "split")
        joint = rows.JOINT_CHECKS if strategy == "joint" else numbers.LAW_CHECKS
        checks = (*law.LAW_CHECKS, *promises.CHECKS, *joint)
        sampled = rows.SAMPLED_CHECKS if strategy == "sample" else ()
        return (*checks, *sampled, *numbers.ESTIMATOR_CHECKS, *behaviour), sample
    if hasattr(estimator, "settings"):
        strict = contract.check_strict_mode_stays
        both = [check for check in contract.BOTH_CHECKS if check is not strict or estimator.settings is None]
        return (*both, *SERVER_CHECKS, *groups.ESTIMATOR_CHECKS), sample
    if hasattr(estimator, "transformer"):
        return (*contract.BOTH_CHECKS, *SERVER_CHECKS, *servers.ESTIMATOR_CHECKS), sample
    raise ValueError(f"no checks are known for {type(estimator).__name__}")
