"""Other packages' private models, each run in an environment of its own: rows and seeds in, answers out.

A peer is a Python interpreter that has the package, and a script that reads (train rows X, targets y, test rows T) and
prints one line of JSON for each fit. Nothing of it is imported here.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

_READ = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
data, epsilons, seeds, task, delta = (np.load(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3]), sys.argv[4],
                                      float(sys.argv[5]))
def asked(name):
    return any(part in name for part in json.loads(sys.argv[6]))
X, y, T = data["X"], data["y"], data["T"]
low, high = float(data["low"]), float(data["high"])
box = (data["box"][0], data["box"][1])
def show(name, epsilon, answers):
    print(json.dumps([name, epsilon, np.asarray(answers, float).round(6).tolist()]), flush=True)
"""

DIFFPRIVLIB = _READ + """
from diffprivlib.models import GaussianNB, LinearRegression, LogisticRegression, RandomForestClassifier
for seed in range(seeds):
    for epsilon in epsilons:
        if task == "regression":
            model = LinearRegression(epsilon=epsilon, bounds_X=box, bounds_y=(low, high), random_state=seed)
            show("diffprivlib LinearRegression", epsilon, model.fit(X, y).predict(T))
            continue
        if asked("diffprivlib LogisticRegression"):
            model = LogisticRegression(epsilon=epsilon, data_norm=1.0, random_state=seed, max_iter=1000)
            show("diffprivlib LogisticRegression", epsilon, model.fit(X, y).predict_proba(T))
        if asked("diffprivlib GaussianNB"):
            model = GaussianNB(epsilon=epsilon, bounds=box, random_state=seed)
            show("diffprivlib GaussianNB", epsilon, model.fit(X, y).predict_proba(T))
        if asked("diffprivlib RandomForest"):
            ends, classes = (data["ranges"][:, 0], data["ranges"][:, 1]), np.unique(y)
            model = RandomForestClassifier(epsilon=epsilon, bounds=ends, classes=classes, random_state=seed)
            show("diffprivlib RandomForest", epsilon, model.fit(data["raw"], y).predict_proba(data["raw_test"]))
"""

INTERPRET = _READ + """
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
kinds, bounds = data["kinds"].tolist(), data["ranges"]
def table(raw):
    found = np.empty(raw.shape, object)  # its own way with categories, which is better than columns of zeros and ones
    for k, kind in enumerate(kinds):
        found[:, k] = raw[:, k] if kind == "continuous" else raw[:, k].astype(int).astype(str)
    return found
X, T = table(data["raw"]), table(data["raw_test"])
for seed in range(seeds):
    for epsilon in epsilons:
        shared = dict(epsilon=epsilon, delta=delta, privacy_bounds=bounds, feature_types=kinds, random_state=seed,
                      n_jobs=1)
        if task == "regression":
            model = DPExplainableBoostingRegressor(privacy_target_min=low, privacy_target_max=high, **shared)
            show("DP-EBM", epsilon, model.fit(X, y).predict(T))
        elif len(set(y)) == 2:
            show("DP-EBM", epsilon, DPExplainableBoostingClassifier(**shared).fit(X, y).predict_proba(T))
"""

OPENDP = _READ + """
import opendp.prelude as dp
dp.enable_features("contrib", "floating-point", "honest-but-curious", "idealized-numerics")
if task == "regression" and X.shape[1] == 1:
    n = len(X)
    def build(scale):
        return dp.sklearn.linear_model.LinearRegression(dp.max_divergence(), x_bounds=[(box[0][0], box[1][0])],
                                                        y_bounds=(low, high), scale=scale)
    for epsilon in epsilons:
        scale = dp.binary_search(lambda s: build(s).measurement.map(d_in=2) <= epsilon, bounds=(1e-6, 1e6))
        for seed in range(seeds):
            show("opendp Theil-Sen", epsilon, build(scale).fit(X, y).predict(T))
"""

SCRIPTS = {"interpret": INTERPRET, "diffprivlib": DIFFPRIVLIB, "opendp": OPENDP}
_VERSION = "import importlib.metadata as m; print('{0}', m.version('{0}'))"
_PACKAGES = {"diffprivlib": "diffprivlib", "interpret": "interpret-core", "opendp": "opendp"}


def version(name, python):
    """Return the name and version of a peer, as its environment says."""
    code = _VERSION.format(_PACKAGES[name])
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def answers(name, python, task, epsilons, seeds, delta, wanted=("",)):
    """Yield (model, epsilon, answers for the test rows) of the fits of a peer; those that failed are not there.

    `wanted` has parts of names of models: others are not fitted by those peers that have several.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, errors = Path(folder) / "data.npz", Path(folder) / "errors"
        low, high = task.bounds or (0.0, 0.0)
        np.savez(path, X=task.X, y=task.y, T=task.T, low=low, high=high, box=np.stack(task.box), kinds=task.kinds,
                 ranges=task.ranges, raw=task.views["raw"][0], raw_test=task.views["raw"][1])
        command = [python, "-c", SCRIPTS[name], path, json.dumps(epsilons), str(seeds), task.kind, str(delta),
                   json.dumps(wanted)]
        with errors.open("w") as own, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=own, text=True) as run:
            for line in run.stdout:
                model, epsilon, found = json.loads(line)
                yield model, epsilon, np.array(found)
        if run.returncode:
            print(f"{name} stopped: {errors.read_text().strip().splitlines()[-1][:160]}", flush=True)
