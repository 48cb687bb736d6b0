"""``python -m benchmarks.graph_generators``: how like a graph private generators draw others, in seven measures.

In the manner of DPGraph: all generators of the registry, over epsilon, on two graphs that are made here: circles of
friends around few people, as in ego networks of Facebook, and a power law without communities. ``--write`` writes a
page of the guide with its picture. Fits are kept in a file, by what they are made of and by the version of the code.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_mutual_info_score

import dpestim
from benchmarks.coverage import ROOT, Kept
from dpestim.base import all_estimators
from dpestim.graph import adjacency, bter
from dpestim.graph.generators.base import joined
from dpestim.graph.patterns import PATTERNS
from dpestim.graph.reading import read_graph

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
#: Nodes from which paths are measured, communities that are looked for, and the share of nodes that count as central.
SOURCES, COMMUNITIES, CENTRAL = 100, 8, 0.05
#: What each measure is, in words; all are errors, 0 where both graphs agree.
MEASURES = {
    "degrees": "largest distance between the distribution functions of degrees",
    "triangles": "number of triangles, error relative to the truth",
    "clustering": "mean local clustering, absolute error",
    "paths": "mean length of shortest paths in the largest component, error relative to the truth",
    "assortativity": "correlation of degrees over edges, absolute error",
    "centrality": "share of the 5 % of nodes with the largest eigenvector centrality that are others",
    "communities": "1 - adjusted mutual information of communities (eight, by spectral clustering) in both graphs",
}
PAGE, PICTURE = ROOT / "docs" / "guide" / "graph_generators.md", ROOT / "docs" / "_static" / "graph_generators.png"


def circles(n=2_000, seed=0):
    """Return a graph like ego networks: circles of friends of many sizes, and few people whom all around know."""
    rng = np.random.default_rng(seed)
    homes = rng.permutation(np.arange(n) % COMMUNITIES)
    ends, others = [], []

    def befriend(members, share):
        i, j = np.triu_indices(len(members), 1)
        kept = rng.random(len(i)) < share
        ends.append(members[i[kept]])
        others.append(members[j[kept]])

    for home in range(COMMUNITIES):
        own = np.flatnonzero(homes == home)
        befriend(own, 0.008)
        ends.append(np.full(len(own), own[0]))  # (an ego)
        others.append(own)
        left = rng.permutation(own)
        while len(left) > 3:
            size = min(int(5 + 8 * rng.pareto(1.5)), len(left), 60)
            befriend(left[:size], 0.8 * rng.random() ** 0.3)
            left = left[size:]
    ends.append(rng.integers(0, n, n // 4))
    others.append(rng.integers(0, n, n // 4))
    return joined(np.concatenate(ends), np.concatenate(others), n)


def power_law(n=2_000, new=5, seed=0):
    """Return a graph by preferential attachment: each node joins `new` earlier ones, by their degrees."""
    rng = np.random.default_rng(seed)
    ends = list(range(new))
    edges = []
    for node in range(new, n):
        chosen = {ends[int(rng.integers(len(ends)))] for _ in range(new)}
        edges += [(node, other) for other in chosen]
        ends += [*chosen, *[node] * len(chosen)]
    return adjacency(edges, n)


#: What is not private, for comparison.
KNOWN = "`bter` of the true degrees, not private"
GRAPHS = {"circles of friends": circles, "power law": power_law}


class Seen:
    """A graph, and what is measured of it."""

    def __init__(self, matrix):
        matrix = sparse.csr_array(matrix)
        self.n, graph = matrix.shape[0], read_graph(matrix)
        self.degrees = graph.degrees
        self.shares = np.bincount(self.degrees, minlength=self.n) / self.n
        self.triangles = PATTERNS["triangle"](graph, 2).value
        numbers = matrix.astype(np.int64)
        own = np.asarray((numbers @ numbers).multiply(numbers).sum(axis=1)).ravel()
        self.clustering = float(np.mean(own / np.maximum(self.degrees * (self.degrees - 1), 1)))
        _, labels = connected_components(matrix, directed=False)
        inside = np.flatnonzero(labels == np.bincount(labels).argmax())
        sources = inside[np.random.default_rng(0).permutation(len(inside))[:SOURCES]]
        paths = shortest_path(matrix.astype(float), unweighted=True, indices=sources)[:, inside]
        self.paths = float(paths[paths > 0].mean()) if (paths > 0).any() else 0.0
        rows = np.repeat(np.arange(self.n), self.degrees)
        one, two = self.degrees[rows].astype(float), self.degrees[graph.neighbours].astype(float)
        self.assortativity = float(np.corrcoef(one, two)[0, 1]) if len(one) and one.std() else 0.0
        self.central, self.communities = self._spectral(matrix.astype(float))

    def _spectral(self, matrix):
        """Return (the nodes of largest eigenvector centrality, the community of each node)."""
        start = np.random.default_rng(0).random(self.n)
        first = np.abs(eigsh(matrix, k=1, v0=start)[1][:, 0])
        scale = sparse.diags_array(1 / np.sqrt(self.degrees + self.degrees.mean() + 1e-9))
        places = eigsh(scale @ matrix @ scale, k=COMMUNITIES, v0=start)[1]
        places = places / np.maximum(np.linalg.norm(places, axis=1, keepdims=True), 1e-12)
        found = KMeans(COMMUNITIES, n_init=3, random_state=0).fit_predict(places)
        return np.argsort(-first, kind="stable")[: int(CENTRAL * self.n)], found


def errors(truth, drawn):
    """Return {measure: error} of a graph that was drawn, against the true one."""
    return {
        "degrees": float(np.abs(np.cumsum(truth.shares - drawn.shares)).max()),
        "triangles": abs(drawn.triangles - truth.triangles) / max(truth.triangles, 1),
        "clustering": abs(drawn.clustering - truth.clustering),
        "paths": abs(drawn.paths - truth.paths) / truth.paths,
        "assortativity": abs(drawn.assortativity - truth.assortativity),
        "centrality": 1 - len(np.intersect1d(truth.central, drawn.central)) / len(truth.central),
        "communities": 1 - adjusted_mutual_info_score(truth.communities, drawn.communities),
    }


def generators():
    """Return {name: class} of what has `sample` in the registry of graphs."""
    return {name.split(".")[1]: cls for name, cls in all_estimators(("graph",)) if hasattr(cls, "sample")}


def at(cls, epsilon, seed):
    """Return a generator that protects an edge by epsilon: where two users report it, each has half."""
    est = cls(epsilon, random_state=seed)
    return est.set_params(epsilon=epsilon * epsilon / float(est.privacy_.to("edge").epsilon))


def drawn(cls, graph, epsilon, seed):
    """Return the graph that a generator draws after a fit; of None: what follows from the true degrees alone."""
    if cls is None:
        return bter(np.diff(graph.indptr), 0.3, random_state=seed)
    return at(cls, epsilon, seed).fit(graph).sample(random_state=seed)


def studied(name, graph, kept, seeds, epsilons):
    """Return {(generator, epsilon, measure): median error} on a graph."""
    truth, found = Seen(graph), {}
    for own, cls in {**generators(), KNOWN: None}.items():
        for epsilon in epsilons:
            all_of = [kept.of(f"graphs {name} {own} {epsilon} {seed}",
                              lambda of=(cls, graph, epsilon, seed): errors(truth, Seen(drawn(*of))))
                      for seed in range(seeds)]
            for measure in MEASURES:
                found[own, epsilon, measure] = float(np.median([one[measure] for one in all_of]))
    return found


def table(found, epsilon):
    """Return lines of a table: rows are generators, the least error of each measure is bold."""
    names = list(dict.fromkeys(own for own, _, _ in found))
    lines = [f"| epsilon {epsilon:g} | " + " | ".join(MEASURES) + " |", "|---|" + "---|" * len(MEASURES)]
    for own in names:
        texts = []
        for measure in MEASURES:
            least = min(found[other, epsilon, measure] for other in names if other != KNOWN)
            text = f"{found[own, epsilon, measure]:.2f}"
            texts.append(f"**{text}**" if own != KNOWN and text == f"{least:.2f}" else text)
        lines.append(f"| {own} | " + " | ".join(texts) + " |")
    return lines


def draw(all_found, epsilons, path):
    """Draw the errors of all generators over epsilon: a row of panels for each graph, a panel for each measure."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(own for found in all_found.values() for own, _, _ in found))
    size = 1.8 * len(MEASURES), 2.2 * len(all_found) + 0.6
    figure, rows = plt.subplots(len(all_found), len(MEASURES), figsize=size, squeeze=False, layout="constrained")
    for (name, found), row in zip(all_found.items(), rows):
        for measure, panel in zip(MEASURES, row):
            for k, own in enumerate(names):
                values = [max(found[own, e, measure], 1e-3) for e in epsilons]
                style = {"color": "grey", "linestyle": "--"} if own == KNOWN else {"marker": "osD^vPX*<>"[k % 10]}
                panel.plot(epsilons, values, markersize=4, label=own.replace("`", ""), **style)
            panel.set(xscale="log", title=measure)
            if max(found[own, e, measure] for own in names for e in epsilons) > 2:
                panel.set_yscale("log")
            else:
                panel.set_ylim(bottom=0)
            panel.set_xticks(epsilons, [f"{e:g}" for e in epsilons], minor=False)
            panel.set_xticks([], minor=True)
            panel.tick_params(labelsize=7)
        row[0].set_ylabel(name)
    figure.supxlabel("epsilon")
    shown = rows[0][0].get_legend_handles_labels()
    figure.legend(*shown, loc="outside upper center", ncols=min(len(names), 4))
    figure.savefig(path, dpi=90, facecolor="white", metadata={"Software": None})
    plt.close(figure)


def page(all_found, graphs, epsilons, seeds, seconds):
    """Return the text of the page of the guide."""
    shown = [e for e in (1.0, 4.0) if e in epsilons] or list(epsilons[:2])
    lines = ["# How like the graph are graphs that are drawn?", "",
             f"Written by `python -m benchmarks.graph_generators --write`: medians of {seeds} fits, and one graph of "
             f"each. dpestim {dpestim.__version__}, {seconds:,.0f} s of one core. All measures are errors, 0 where both"
             " graphs agree; the least error of each is bold.", ""]
    lines += [f"* *{measure}*: {words}." for measure, words in MEASURES.items()]
    lines += ["", "Epsilon is that of an edge for all of them. Where the users of both ends report an edge "
              "(`DGGGenerator`, `LDPGenGenerator`), each report has half of epsilon. These two and `RNLGenerator` need "
              "no curator; all others do. Each generator has its defaults: a clustering of 0.3 is assumed where one "
              "must be.", "",
              f"![errors of each generator over epsilon](../_static/{PICTURE.name})", ""]
    for name, found in all_found.items():
        graph = graphs[name]
        lines += [f"## {name[0].upper()}{name[1:]}: {graph.shape[0]:,} nodes, {graph.nnz // 2:,} edges", ""]
        for epsilon in shown:
            lines += [*table(found, epsilon), ""]
    return "\n".join(lines)


def main(arguments=None):
    """Fit, print, and write the page and its picture."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graph_generators", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--epsilons", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--write", action="store_true", help="write the page of the guide and its picture")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "graph_generators.json",
                        help="where errors are kept")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    kept, start = Kept(chosen.cache), time.process_time()
    graphs = {name: make(chosen.nodes) for name, make in GRAPHS.items()}
    all_found = {name: studied(f"{name} {chosen.nodes}", graph, kept, chosen.seeds, chosen.epsilons)
                 for name, graph in graphs.items()}
    text = page(all_found, graphs, chosen.epsilons, chosen.seeds, time.process_time() - start)
    print(text)
    if chosen.write:
        PAGE.write_text(text)
        draw(all_found, chosen.epsilons, PICTURE)
    return text


if __name__ == "__main__":
    main()
