"""Deliberately broken mechanisms, one fault each: what `dpestim.testing` must reject.

A module for each module of checks, and `relaxed` for laws of categories that give some of them less. To add one:
break one thing in a sub-class, and list it in its module's `BROKEN` with parameters and with the check that must fail.
(Broken models stand beside the models' unit tests.)
"""

from broken import (
    answers,
    balls,
    boosting,
    central,
    choices,
    contract,
    coverage_of_runs,
    densities,
    encoders,
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
    lists,
    mixed,
    nodes,
    numbers,
    pairs,
    parts,
    places,
    queries,
    rated_rounds,
    ratings,
    relaxed,
    rounds,
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
    trees,
    views,
)

MODULES = (law, frequencies, relaxed, numbers, balls, rows, contract, servers, groups, central, choices, queries,
           shuffle, shuffled, stability, graphs, lists, ratings, item_lists, rated_rounds, statistics, rounds,
           mixed, pairs, learning, synthesis, trees, boosting, answers, encoders, surveys, views, itemsets, nodes,
           graph_answers, coverage_of_runs, generators, list_patterns, places, densities, parts, trajectories, streams)
BROKEN = [entry for module in MODULES for entry in module.BROKEN]
