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


#: What any fit must do, kernels being what they are: load a cipher, draw a word, and load the kernels that it needs.
_LIMIT = """
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
Cipher(algorithms.AES(bytes(32)), modes.CTR(bytes(16))).encryptor().update(bytes(64))
import importlib
for name in {}:
    importlib.import_module(name)
"""
_KERNELS = "import sys\nprint([name for name in sys.modules if name.startswith('dpestim._core.')])"


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

        def taken(program):
            return float(output(f"import time\n{BEFORE}\nstart = time.process_time()\n{program}\n"
                                "print(time.process_time() - start)"))

        for name, fit in list(FITS.items())[: 1 if settings.quick else None]:
            kernels = output(f"{BEFORE}\n{fit}\n{_KERNELS}").strip()
            times = [(taken(fit), taken(_LIMIT.format(kernels))) for _ in range(repeats)]
            ours, limit = map(min, zip(*times))
            row = Row(f"import and first fit, {name}, 1,000 x 5", ours=ours, target=f"<{LARGEST * 1e3:g} ms",
                      repeats=repeats, limit="cipher and kernels", share=limit / ours,
                      note="time of the processor beyond scikit-learn's import, the least of the repeats; of it "
                           f"{limit * 1e3:.1f} ms load the cipher and those kernels that the fit has loaded")
            if not settings.quick:
                row.met = row.ours < LARGEST
            yield row
