"""How settled each part of the package is: the one table that the documentation shows and tests read.

What is stable changes with a warning over two minor releases. What is provisional may change in any minor release, with
a line in the changelog. The label is about names, parameters and results; the guarantee of both is the same.
"""

STABLE, PROVISIONAL = "stable", "provisional"

#: {public part of the package: its label}
STABILITY = {
    **dict.fromkeys(
        ("accounting", "central", "covariance", "datasets", "ensemble", "exceptions", "inspection", "linear_model",
         "local", "model_selection", "naive_bayes", "postprocessing", "preprocessing", "privacy", "statistics",
         "tree"), STABLE
    ),
    **dict.fromkeys(
        ("accuracy", "anonymity", "audit", "cluster", "collection", "commands", "decomposition", "distributed",
         "feature_selection", "geo", "graph", "inputs", "parties", "pipeline", "recommend", "shuffle", "stream",
         "synthesis", "testing", "verify"), PROVISIONAL
    ),
}
