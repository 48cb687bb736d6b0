"""``python docs/tools/error_curves.py``: the error of every estimator of the registry over epsilon, on its own data.

An estimator's own data and settings are those of its first `_test_params` and of `_test_data`, which every check of the
registry uses; epsilon is replaced. What an error is follows from what the estimator does (`MEASURES`). The result is
``docs/_static/error_curves.json``, from which pages of classes get a table; a class that has no error says why.
"""

import inspect
import json
import sys
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import adjusted_rand_score

import dpestim
from dpestim.base import all_estimators

KEPT = Path(__file__).parents[1] / "_static" / "error_curves.json"
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
#: An epsilon that leaves hardly any noise, the first that is taken: what is compared with where truth has no formula.
PLENTY = (200.0, 50.0, 20.0, 12.0)
NUMBERS = (int, float, np.number, np.bool_)
REGISTRY = dict(all_estimators())
#: Rows of the data, seeds of the noise.
ROWS, FITS = 2_000, 16
#: Where an estimator has fewer rows than that: nodes of a graph, steps of a stream, users of a protocol.
NODES, STEPS = 120, 64
#: What cannot have an error, and why.
REASONS = {
    "preprocessing.DomainEncoder": "It learns nothing from rows: it writes them as the declared domain says, without "
                                   "noise and without a budget.",
}
#: What checks make small, so that laws can be enumerated: here the defaults are taken.
SMALL = ("n_estimators", "max_depth", "row_allocation", "n_blocks", "max_iter", "n_models", "grid", "n_iter",
         "n_hashes", "n_buckets", "n_cohorts", "n_rounds", "n_messages")
#: What suits graphs of 12 nodes, and no graph of 120.
INSTEAD = {"graph.NodeDegreeDistribution": {"max_bound": 64}, "graph.NodeSubgraphCount": {"max_bound": 64}}
#: Numbers that are counts: their errors are told as shares of them.
RATIOS = ("graph.ModularityEstimator", "graph.ClusteringCoefficientEstimator")
COUNTS = ("graph.", "shuffle.", "geo.", "recommend.", "statistics.Count", "statistics.Sum", "statistics.Histogram",
          "statistics.RangeCounts", "statistics.ContingencyTable", "statistics.UnknownCategories",
          "preprocessing.DPOneHotEncoder")


# ---------------------------------------------------------------- settings and data

def setting(name, epsilon, seed):
    """Return an estimator of the first setting of its checks, at another epsilon."""
    cls = REGISTRY[name]
    own = {key: value for key, value in next(iter(cls._test_params())).items() if key not in SMALL}
    model = cls(**{**own, **INSTEAD.get(name, {})})
    known = model.get_params(deep=True)
    size = {"n_users": rows_of(name)} if known.get("n_users") is not None else {}
    place = "epsilon" if "epsilon" in known else next(key for key in known if key.endswith("__epsilon"))
    if name == "local.PersonalizedEstimator":  # each group has its part of it
        size["settings"] = {group: {**own, "epsilon": epsilon * own.get("epsilon", 1.0)}
                            for group, own in model.settings.items()}
    if known.get("epsilons") is not None:  # of values that need more protection than others
        size["epsilons"] = [[epsilon * each for each in column] for column in model.epsilons]
    seeds = [key for key in known if key == "random_state"] or [key for key in known if key.endswith("__random_state")]
    return model.set_params(**size, **{place: epsilon}, **dict.fromkeys(seeds, seed))


def rows_of(name):
    """Return how many rows the data of an estimator have."""
    return NODES if name.startswith("graph.") and name != "graph.ControlFlowCoverage" else (
        STEPS if name.startswith("stream.") else ROWS)


@cache
def data_of(name, seed=0):
    """Return (X, y or None)."""
    if name == "central.StableRelease":
        return np.repeat([[0.0], [1.0]], [ROWS * 51 // 100, ROWS - ROWS * 51 // 100], axis=0), None
    return setting(name, PLENTY[-1], 0)._test_data(rows_of(name), seed)


def fitted(name, epsilon, seed):
    """Return an estimator, fitted to its data."""
    rows, target = data_of(name)
    model = setting(name, epsilon, seed)
    return model.fit(rows) if target is None else model.fit(rows, target)


@cache
def best(name):
    """Return a fit with hardly any noise."""
    for epsilon in PLENTY:
        try:
            return fitted(name, epsilon, 0)
        except ValueError:
            continue
    raise ValueError(f"{name} takes none of {PLENTY}")


@cache
def clipped(name):
    """Return the rows inside of the declared bounds: what clipping changes is no error of noise."""
    rows, model = np.asarray(data_of(name)[0], float), setting(name, PLENTY[-1], 0)
    model = getattr(model, "transformer", None) or model
    if hasattr(model, "bounds"):
        return np.clip(rows, *np.asarray(model.bounds, float))
    away = rows - model.center  # (vectors in a ball)
    return model.center + away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True) / model.radius, 1)


# ---------------------------------------------------------------- errors

def root_mean_square(values):
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(np.square(np.asarray(values, float)))))


def frequencies(name, epsilon, seed):
    """Of a share of a category, over all categories of all columns."""
    rows, _ = data_of(name)
    model = fitted(name, epsilon, seed)
    model, off = getattr(model, "estimator_", model), []
    for j, (own, categories) in enumerate(zip(model.frequencies_, model.categories_)):
        column = np.asarray(rows)[:, -1 if name == "local.PersonalizedEstimator" else j]
        off += [value - np.mean([each == category for each in column]) for value, category in zip(own, categories)]
    return root_mean_square(off)


def distribution(name, epsilon, seed):
    """The total variation distance between the estimated and the true distribution over the bins."""
    model, rows = fitted(name, epsilon, seed), clipped(name)[:, 0]
    true = np.histogram(rows, model.bin_edges_[0])[0] / len(rows)
    return float(np.abs(model.distribution_[0] - true).sum() / 2)


def mean(name, epsilon, seed):
    """Of the mean of the clipped rows, in the unit of the column."""
    return root_mean_square(fitted(name, epsilon, seed).mean_ - clipped(name).mean(axis=0))


def sums(name, epsilon, seed):
    """Of the sum of a column of clipped rows, as a share of it."""
    true = clipped(name).sum(axis=0)
    return root_mean_square(fitted(name, epsilon, seed).sum_ / true - 1)


def numbers(name, epsilon, seed):
    """Of the mean of all reports, in the units of the column (over all columns), for rows inside of the bounds."""
    rows, model = clipped(name), setting(name, epsilon, seed)
    return root_mean_square(model.decode(model.privatize(rows)).mean(axis=0) - rows.mean(axis=0))


def places(name, epsilon, seed):
    """The distance of a reported place from the true one, in metres (over all users inside of the bounds)."""
    rows, model = clipped(name), setting(name, epsilon, seed)
    found = np.asarray(model.decode(model.privatize(rows)), float)
    return root_mean_square(np.hypot(*(found - rows).T))


def noise(name, epsilon, seed):
    """Of one released answer, of sensitivity 1 (100 releases a fit)."""
    models = (setting(name, epsilon, 100 * seed + k) for k in range(100))
    return root_mean_square([float(np.ravel(model.release(np.array([50])))[0]) - 50 for model in models])


def choice(name, epsilon, seed):
    """How far the score of the chosen candidate is below the best, of 100 candidates with scores from 0 to 99."""
    scores, model = np.arange(100), setting(name, epsilon, seed)
    chosen = np.ravel(model.release(scores))
    return float(np.mean(np.sort(scores)[::-1][:len(chosen)] - np.sort(scores[chosen])[::-1]))


def queries(name, epsilon, seed):
    """The share of wrong answers to 50 queries, the last of which is 20 above the threshold, the others 20 below."""
    asked = np.append(np.full(49, -20), 20)
    above = [bool(each.above) if hasattr(each, "above") else each is not False and each is not None
             for each in setting(name, epsilon, seed).process(asked, 0)]
    above += [False] * (len(asked) - len(above))  # (it ends with its last "above")
    return float(np.mean(np.array(above) != (asked > 0)))


def classes(name, epsilon, seed):
    """The share of wrong classes on rows of another seed."""
    rows, target = data_of(name, 1)
    return float(np.mean(fitted(name, epsilon, seed).predict(rows) != target))


def regression(name, epsilon, seed):
    """Of a prediction on rows of another seed, as a share of the standard deviation of the target."""
    rows, target = data_of(name, 1)
    return root_mean_square(fitted(name, epsilon, seed).predict(rows) - target) / float(np.std(target))


def clusters(name, epsilon, seed):
    """The mean squared distance to the nearest centre, as a multiple of that with hardly any noise."""
    rows, _ = data_of(name)
    return float(fitted(name, epsilon, seed).score(rows) / best(name).score(rows))


def components(name, epsilon, seed):
    """The share of the variance that components miss of what those with hardly any noise explain."""
    rows, _ = data_of(name)
    centred = rows - rows.mean(axis=0)
    kept = [np.square(centred @ model.components_.T).sum() for model in (fitted(name, epsilon, seed), best(name))]
    return float(1 - kept[0] / kept[1])


def degrees(name, epsilon, seed):
    """Of a degree in a drawn graph, where nodes are ordered by degree."""
    graph, _ = data_of(name)
    drawn = fitted(name, epsilon, seed).sample(random_state=seed)
    found, true = (np.sort(np.asarray(each.sum(axis=0), float).ravel()) for each in (drawn, graph))
    return root_mean_square(found - true)


def bits(name, epsilon, seed):
    """Of the estimated number of edges, as a share of it."""
    graph, model = data_of(name)[0], setting(name, epsilon, seed)
    model.fit(graph)
    found = float(np.asarray(model.debiased(model.privatize(graph)).sum()))
    return abs(found / float(graph.sum()) - 1)


def ratings(name, epsilon, seed):
    """Of a predicted rating, where ratings are known."""
    known, _ = data_of(name)
    known = known.tocoo()
    predicted = np.asarray(fitted(name, epsilon, seed).predict(known.tocsr()), float)
    return root_mean_square(predicted[known.row, known.col] - known.data)


def steps(name, epsilon, seed):
    """Of the count that is released at a step, over all steps and cells."""
    rows, model = np.asarray(data_of(name)[0], float), setting(name, epsilon, seed)
    running = name in ("stream.StreamCounter", "stream.ContinualHistogram")  # totals so far
    return root_mean_square(np.asarray(model.release(rows), float) - (np.cumsum(rows, axis=0) if running else rows))


def refusals(name, epsilon, seed):
    """The share of fits that release nothing, where 51 % of rows hold the commonest value and 49 % the other."""
    return float(not cells(fitted(name, epsilon, seed)))


def communities(name, epsilon, seed):
    """1 less the adjusted Rand index of communities and those that are found with hardly any noise."""
    return 1 - adjusted_rand_score(*(np.asarray(each.labels_) for each in (fitted(name, epsilon, seed), best(name))))


def released_shares(name, epsilon, seed):
    """Of a released number, as a share of their root mean square; compared with a fit with hardly any noise."""
    return released_numbers(name, epsilon, seed) / root_mean_square([*cells(best(name)).values()])


def released_numbers(name, epsilon, seed):
    """Of a released number, in its own unit; compared with a fit with hardly any noise."""
    model = fitted(name, epsilon, seed)
    if any(isinstance(value, NUMBERS) and np.isnan(value) for value in model.result_.to_frame()["value"]):
        return np.nan  # (no answer, which is no small number)
    true, found = cells(best(name)), cells(model)
    keys = [*dict.fromkeys([*true, *found])]  # what is not released counts as 0
    return root_mean_square([found.get(key, 0.0) - true.get(key, 0.0) for key in keys])


def cells(model):
    """Return {labels: number} of what a fitted estimator tells."""
    frame = model.result_.to_frame()
    labels = [c for c in frame if c not in ("value", "standard_error", "low", "high")]
    return {tuple(str(row[label]) for label in labels): float(row["value"]) for row in frame.to_dict("records")
            if row.get("quantity") != "rows" and isinstance(row["value"], NUMBERS) and np.isfinite(row["value"])}


BY_NAME = {"local.DistributionEstimator": distribution, "local.MeanEstimator": mean, "shuffle.BooleanSum": sums,
           "shuffle.RealSum": sums, "shuffle.ShuffledEstimator": frequencies, "local.MixedEstimator": released_numbers,
           "cluster.DPKMeans": clusters, "decomposition.DPPCA": components, "graph.RNLTransformer": bits,
           "central.StableRelease": refusals, "graph.CommunityEstimator": communities}
BY_KIND = {"noise": noise, "choice": choice, "queries": queries, "places": places, "graph generator": degrees,
           "list generator": degrees, "stream": steps}


def measure_of(name):
    """Return what is measured of a class: a function whose docstring says it."""
    cls = REGISTRY[name]
    model, kind = setting(name, 1.0, 0), getattr(cls, "_checked_as", None)
    if name in BY_NAME or kind in BY_KIND:
        return BY_NAME.get(name) or BY_KIND[kind]
    if is_classifier(model) or is_regressor(model):
        return classes if is_classifier(model) else regression
    if name.startswith("recommend.") and hasattr(cls, "predict"):
        return ratings
    if hasattr(cls, "decode"):
        return numbers
    if name.endswith(("FrequencyEstimator", "ShuffledHistogram", "PersonalizedEstimator")):
        return frequencies
    return released_shares if name.startswith(COUNTS) and name not in RATIOS else released_numbers


def said(name):
    """Return the parameters of the setting in words: those that are not defaults, at an epsilon of 1."""
    model, words = setting(name, 1.0, 0), []
    default = {key: each.default for key, each in inspect.signature(REGISTRY[name]).parameters.items()}
    for key, value in model.get_params(deep=False).items():
        text = " ".join(repr(value).split())
        if key in ("epsilon", "random_state") or text == repr(default[key]):
            continue
        words.append(f"{key}={text}" if len(text) <= 60 and "0x" not in text else f"{key}=...")
    return ", ".join(words)


def curve(name, fits=FITS):
    """Return what is kept of a class: what is measured, of how many rows and fits, and the mean at each epsilon.

    None stands for an epsilon that a law refuses, or at which a fit gives no answer.
    """
    measure, errors = measure_of(name), []
    for epsilon in EPSILONS:
        try:
            value = float(f"{np.mean([measure(name, epsilon, seed) for seed in range(fits)]):.3g}")
        except ValueError as refused:
            print(f"{name} refuses {epsilon}: {str(refused)[:150]}", flush=True)
            value = np.nan
        errors.append(value if np.isfinite(value) else None)
    rows = int(np.shape(data_of(name)[0])[0])
    return {"error": measure.__doc__.rstrip("."), "setting": said(name), "rows": rows, "fits": fits, "errors": errors}


# ---------------------------------------------------------------- what pages show

def table_of(name):
    """Return the lines (reStructuredText) of the error of a class over epsilon, or of why there is none."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    lines = [".. rubric:: Error over epsilon", ""]
    if name in kept["reasons"]:
        return [*lines, kept["reasons"][name], ""]
    own = kept["curves"][name]
    kind = own["error"]
    if kind.startswith("Of "):
        kind = f"Root-mean-square error o{kind[1:]}, in one fit (the absolute error, where a fit has one number)"
    about = f", with ``{own['setting']}``" if own["setting"] else ""
    lines += [f"{kind}. Mean of {own['fits']} fits to the {own['rows']:,} artificial rows that tests use{about}.", ""]
    lines += [".. list-table::", "   :widths: auto", "   :stub-columns: 1", ""]
    for head, cells_of in (("epsilon", [f"{e:g}" for e in kept["epsilons"]]),
                           ("error", ["no answer" if e is None else f"{e:.3g}" for e in own["errors"]])):
        lines += [f"   * - {head}", *(f"     - {text}" for text in cells_of)]
    return [*lines, ""]


def main(names=()):
    """Run all and write the file, or print some; "--missing" runs those that the file does not have, and writes it."""
    warnings.simplefilter("ignore")
    kept = json.loads(KEPT.read_text(encoding="utf-8"))["curves"] if "--missing" in names else {}
    wanted = [name for name in REGISTRY if name not in REASONS and name not in kept] if kept or not names else names
    began = time.process_time()
    for name in wanted:
        start = time.process_time()
        kept[name] = curve(name)
        print(f"{name} {kept[name]['errors']} {time.process_time() - start:.1f} s", flush=True)
    if wanted is not names:
        curves = {name: kept[name] for name in REGISTRY if name in kept}
        found = {"dpestim": dpestim.__version__, "epsilons": EPSILONS, "curves": curves, "reasons": REASONS}
        KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{time.process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    main(sys.argv[1:])
