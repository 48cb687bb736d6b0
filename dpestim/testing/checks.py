"""All checks of a mechanism: which family of them knows how it is used, by what it can do."""

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
from dpestim.testing.tools import check_numeric_setting, check_setting, client_of
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
