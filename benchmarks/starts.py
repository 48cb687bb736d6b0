"""What the first fit of a process costs beyond scikit-learn's own import: that of an estimator, and 1,000 rows."""

import os
import subprocess
import sys
from tempfile import TemporaryDirectory

from benchmarks._harness import Row

LARGEST = 30e-3
#: What has run already.
BEFORE = """
import sklearn.linear_model
import numpy as np
X = np.random.default_rng(0).normal(size=(1000, 5))
x, y, codes = X[:, 0], (X[:, 0] > 0).astype(int), np.arange(1000)[:, None] % 5
"""
#: Five categories, declared.
_FIVE = "categories=[[0, 1, 2, 3, 4]]"
_MODEL = "from dpestim.{0} import {1}\n{1}(1.0, {2})"
_LOCAL = f"from dpestim.local import {{0}}\n{{0}}(1.0, {_FIVE}).fit(codes)"
#: What is timed.
FITS = {
    "mean": "from dpestim.statistics import mean\nmean(x, epsilon=1.0, bounds=(-3, 3))",
    "quantile": "from dpestim.statistics import quantile\nquantile(x, 0.5, epsilon=1.0, bounds=(-3, 3))",
    "histogram": "from dpestim.statistics import histogram\nhistogram(x, epsilon=1.0, bounds=(-3, 3))",
    "GRR": _LOCAL.format("GRRFrequencyEstimator"),
    "OLH": _LOCAL.format("OLHFrequencyEstimator"),
    "PM": "from dpestim.local import MeanEstimator, PMTransformer\n"
          "MeanEstimator(PMTransformer(1.0, bounds=(-3, 3))).fit(X[:, :1])",
    "logistic": _MODEL.format("linear_model", "DPLogisticRegression", "data_norm=3.0, classes=[0, 1]") + ".fit(X, y)",
    "linear": _MODEL.format("linear_model", "DPLinearRegression",
                            "delta=1e-6, bounds=(-3, 3), target_bounds=(0, 1)") + ".fit(X, y)",
    "naive Bayes": _MODEL.format("naive_bayes", "DPGaussianNB",
                                 "delta=1e-6, bounds=(-3, 3), classes=[0, 1]") + ".fit(X, y)",
    "k-means": _MODEL.format("cluster", "DPKMeans", "n_clusters=3, bounds=(-3, 3)") + ".fit(X)",
    "PCA": _MODEL.format("decomposition", "DPPCA", "delta=1e-6, n_components=2, data_norm=3.0") + ".fit(X)",
    "scaler": _MODEL.format("preprocessing", "DPMinMaxScaler", "bounds=(-3, 3)") + ".fit(X)",
    "shuffled histogram": _MODEL.format("shuffle", "ShuffledHistogram", f"delta=1e-6, {_FIVE}") + ".fit(codes)",
    "boosting": _MODEL.format("ensemble", "DPGradientBoostingClassifier",
                              "bounds=(-3, 3), classes=[0, 1]") + ".fit(X, y)",
}


#: Libraries that a fit has loaded: kernels, and a cipher where it drew more than few words.
_LIBRARIES = """
import sys
print([name for name in sys.modules if name.startswith('dpestim._core.') or name.endswith('primitives.ciphers')])"""
#: What any design must do, kernels being what they are: load these libraries (and fit, which a second fit measures).
_LOAD = "import importlib\nfor name in {}:\n    importlib.import_module(name)"
_TIMED = f"""
import time
times = [time.process_time()]
{BEFORE}
times.append(time.process_time())
{{0}}
times.append(time.process_time())
{{1}}
times.append(time.process_time())
print(*(b - a for a, b in zip(times, times[1:])))"""


def rows(settings):
    """Yield one row for each estimator; a quick run takes one, as each time needs a process of its own."""
    repeats = 1 if settings.quick else 7
    with TemporaryDirectory() as folder:
        environment = {**os.environ}
        if not settings.quick:
            # as installed: pip compiles what it installs, and a variable of the environment may forbid it here
            environment["PYTHONPYCACHEPREFIX"] = folder
            environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def output(program):
            return subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, capture_output=True,
                                  text=True, env=environment).stdout

        def taken(first, then):
            return [float(seconds) for seconds in output(_TIMED.format(first, then)).split()]

        for name, fit in list(FITS.items())[: 1 if settings.quick else None]:
            load = _LOAD.format(output(f"{BEFORE}\n{fit}\n{_LIBRARIES}").strip())
            times = [(*taken(fit, fit), taken(load, "")[1]) for _ in range(repeats)]
            scikit_learn, ours, again, libraries = map(min, zip(*times))
            row = Row(f"import and first fit, {name}, 1,000 x 5", ours=ours, target=f"<{LARGEST * 1e3:g} ms",
                      repeats=repeats, limit="libraries and a fit", share=(libraries + again) / ours,
                      note="time of the processor beyond scikit-learn's import, the least of the repeats; of it "
                           f"{libraries * 1e3:.1f} ms load the libraries that the fit has loaded, and a second fit "
                           f"takes {again * 1e3:.1f} ms; scikit-learn's own import took {scikit_learn * 1e3:.0f} ms, "
                           "by which machines can be compared")
            if not settings.quick:
                row.met = row.ours < LARGEST
            yield row
