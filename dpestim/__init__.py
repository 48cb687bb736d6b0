"""dpestim: differentially private estimators with scikit-learn's API and typed kernels underneath.

    central          noise on query answers under central differential privacy: Laplace, Gaussian, discrete and real
    linear_model     models under central differential privacy: logistic, linear and Poisson regression, vectors
    local            local differential privacy: frequencies of categories; means and distributions of numbers; models
    accuracy         how far off a release will be, before it is made: bounds of errors, and the epsilon for an accuracy
    accounting       `Ledger`: a budget that survives clones, workers and crashes; what series of releases cost together
    anonymity        k-anonymous tables and attacks on them, for comparison: nothing there is differentially private
    covariance       covariance matrices from one pass over rows, in the central model
    decomposition    principal components, in the central model
    audit            what a report tells an adversary, computed from the exact laws and measured
    collection       `Survey`: what clients and a server agree on, as a file; reports as bytes and as files
    cluster          centers of clusters, in the central model
    ensemble         boosting with curves that can be plotted, and random forests, in the central model
    geo              places: reports of devices that nobody must trust, with epsilon for a metre; counts of places
    graph            triangles, stars and edges of networks whose edges are private, in the central model
    feature_selection  choosing columns by private scores, in the central model
    inspection       `privacy_card`: what was collected, and what is and is not protected, as a page; displays that plot
    model_selection  `PrivateSearchCV`: choosing parameters under one total epsilon, the choice included
    naive_bayes      classifiers that need one pass: noisy counts and moments in each class, in the central model
    parties          sums among processes that trust nobody, over sockets: masks, shares of seeds, dropouts
    pipeline         `check_pipeline`: which step is private, and which leaks; `share_budget`; `PrivatePipeline` refuses
    postprocessing   pure functions of estimates, which cost no privacy
    preprocessing    scalers, imputers, bins, encoders before a private model, in the central model
    stream           counts and sums of streams at every step, in the central model; streams of local reports
    shuffle          sums and frequencies from users who trust a shuffler, and nobody else
    statistics       means, quantiles, histograms and others, with intervals, under central differential privacy
    synthesis        synthetic rows from noisy tables of few columns, in the central model
    privacy          guarantees, neighbouring relations, exact rounding
    datasets         real data to try it on
    tree             decision trees with privately chosen splits, in the central model
    testing          checks that any mechanism can be put through, yours included
    verify           proofs that a short program is private, and counterexamples where it is not

`config_context`, `set_config` and `get_config` switch strict mode, in which the caller is the analyst, not the curator.
`show_progress` tells how far long computations have come.

`Domain` is the public description of a table: declare it once, and give it to every estimator. Its columns are
`Numbers`, `Categories`, `Text` or `Keys`.

Layers, of which each imports only those below it: commands -> parties -> distributed, inspection, model_selection ->
accuracy, audit, verify, pipeline, collection -> ensemble, decomposition -> linear_model, preprocessing,
feature_selection, naive_bayes, tree, cluster, covariance, synthesis, graph, geo, stream -> statistics, shuffle ->
local, central -> accounting, testing, models, postprocessing, anonymity -> privacy, base, passes, inputs, links, rng,
noise, parallel, datasets -> _core (which knows numbers and bits, and no epsilon).
"""

import importlib

from dpestim import notebook
from dpestim.version import __version__

_SUBPACKAGES = ("accounting", "accuracy", "anonymity", "audit", "central", "cluster", "collection", "covariance",
                "datasets", "decomposition", "distributed", "ensemble", "feature_selection", "geo", "graph",
                "inspection",
                "linear_model", "local", "model_selection", "naive_bayes", "parties", "pipeline", "postprocessing",
                "preprocessing", "privacy", "recommend", "shuffle", "statistics", "stream", "synthesis", "testing",
                "tree", "verify")
_CONFIG = ("config_context", "get_config", "set_config")
_PROGRESS = ("show_progress",)
_DOMAIN = ("Categories", "Domain", "Keys", "Numbers", "Text")

__all__ = ["__version__", *_CONFIG, *_DOMAIN, *_PROGRESS, *_SUBPACKAGES]


def __getattr__(name):
    """Import a sub-package when it is first asked for, so that `import dpestim` stays light."""
    if name in _SUBPACKAGES:
        return importlib.import_module(f"dpestim.{name}")
    if name in _CONFIG:
        return getattr(importlib.import_module("dpestim.privacy.config"), name)
    if name in _PROGRESS:
        return getattr(importlib.import_module("dpestim.progress"), name)
    if name in _DOMAIN:
        return getattr(importlib.import_module("dpestim.inputs.domain"), name)
    raise AttributeError(f"module 'dpestim' has no attribute {name!r}")


def _show_card(estimator):
    """Return the privacy card of an estimator as HTML; `inspection` is loaded when somebody looks."""
    return importlib.import_module("dpestim.inspection").privacy_card(estimator).html


notebook.show = _show_card


def __dir__():
    return sorted({*globals(), *__all__})
