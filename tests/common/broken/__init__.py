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
    densities,
    encoders,
    frequencies,
    graphs,
    groups,
    itemsets,
    law,
    learning,
    mixed,
    numbers,
    pairs,
    parts,
    places,
    queries,
    relaxed,
    rounds,
    rows,
    servers,
    shuffle,
    shuffled,
    stability,
    statistics,
    surveys,
    synthesis,
    trajectories,
    trees,
    views,
)

MODULES = (law, frequencies, relaxed, numbers, balls, rows, contract, servers, groups, central, choices, queries,
           shuffle, shuffled, stability, graphs, places, densities, parts, trajectories, statistics, rounds, mixed,
           pairs, learning, synthesis, trees, boosting, answers, encoders, surveys, views, itemsets)
BROKEN = [entry for module in MODULES for entry in module.BROKEN]
