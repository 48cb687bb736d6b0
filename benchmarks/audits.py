"""``python -m benchmarks.audits {alarms,power,broken,peers,registry}``: how often audits are right, and how fast.

* ``alarms``: many short audits of correct mechanisms at the claim that they just keep: the share of bounds above it is
  at most the declared error.
* ``power``: mechanisms whose epsilon is 10 % above the claim of 1, and bounds for those that keep it: outputs, seconds.
* ``broken``: mistakes of papers and of code: outputs and seconds until they are caught.
* ``registry``: each estimator of the package in its first test setting, at its own claim.
* ``peers``: noise of diffprivlib and of OpenDP, each in an interpreter that has it (``--diffprivlib``, ``--opendp``).
"""

import argparse
import json
import math
import subprocess
import time

import numpy as np
from sklearn.exceptions import NotFittedError

from benchmarks.peers import version
from dpestim.audit import audit
from dpestim.base import all_estimators
from dpestim.central import GaussianMechanism, LaplaceMechanism
from dpestim.local import GRRFrequencyEstimator, OUEFrequencyEstimator


def laplace(epsilon):
    return lambda x, n, rng: x + rng.laplace(scale=1 / epsilon, size=n)


def geometric(epsilon):
    p = 1 - math.exp(-epsilon)
    return lambda x, n, rng: x + rng.geometric(p, n) - rng.geometric(p, n)


def response(epsilon, d=4):
    keep = math.exp(epsilon) / (math.exp(epsilon) + d - 1)
    return lambda x, n, rng: np.where(rng.random(n) < keep, x, (x + rng.integers(1, d, n)) % d)


def unary(epsilon, d=8):
    def report(x, n, rng):
        bits = rng.random((n, d)) < 1 / (math.exp(epsilon) + 1)
        bits[:, x] = rng.random(n) < 0.5
        return bits.astype(np.uint8)

    return report


def leaky(epsilon, delta):
    """Randomised response that tells all with probability delta."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + 1)

    def report(x, n, rng):
        return np.where(rng.random(n) < delta, 2 + x, np.where(rng.random(n) < keep, x, 1 - x))

    return report


ALARMS = {"Laplace": (laplace(1), 1.0), "geometric": (geometric(1), 1.0), "GRR, 4 values": (response(1), 1.0),
          "OUE, 8 values": (unary(1), 1.0), "response and delta 0.05": (leaky(1, 0.05), (1.0, 0.05))}


def alarms(n_audits, n_samples, error):
    """Print the share of audits whose bound is above the claim that the mechanism just keeps."""
    print(f"{n_audits} audits of {n_samples} outputs each, confidence {1 - error:g}\n")
    print("| mechanism | bounds above the truth | allowed | median bound |\n|---|---|---|---|")
    for name, (function, claim) in ALARMS.items():
        found = [audit(function, [(0, 1)], claim=claim, confidence=1 - error, batch=True, n_samples=n_samples,
                       side_channels=(), random_state=seed) for seed in range(n_audits)]
        share = np.mean([one.violated for one in found])
        middle = np.median([one.epsilon_lower for one in found])
        print(f"| {name} | {100 * share:.2f} % | {100 * error:g} % | {middle:.3f} |", flush=True)


def power(seeds, seconds):
    """Print outputs and seconds until an epsilon of 1.1 is told from the claim of 1, and bounds of what keeps it."""
    subjects = {
        "Laplace": lambda e: LaplaceMechanism(e, sensitivity=1.0),
        "Gaussian, delta 0.01": lambda e: GaussianMechanism(e, delta=0.01, sensitivity=1.0),
        "GRR, 4 values": lambda e: GRRFrequencyEstimator(e, categories=[range(4)]),
        "OUE, 16 values": lambda e: OUEFrequencyEstimator(e, categories=[range(16)]),
        "x + rng.laplace(), call by call": lambda e: (lambda x, rng: x + rng.laplace(scale=1 / e)),
    }
    print("| mechanism | caught at 1.1 | outputs | seconds | bound at 1 | outputs | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name, make in subjects.items():
        claim = (1.0, 0.01) if "delta" in name else 1.0
        pairs = [(0, 1)] if callable(make(1.0)) else None
        found = {e: [audit(make(e), pairs, claim=claim, time_limit=seconds, side_channels=(), random_state=seed)
                     for seed in range(seeds)] for e in (1.1, 1.0)}
        cells = [f"{sum(one.violated for one in found[1.1])} of {seeds}", *_costs(found[1.1]),
                 f"{np.median([one.epsilon_lower for one in found[1.0]]):.3f}", *_costs(found[1.0])]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _costs(found):
    return f"{np.median([one.n_samples for one in found]):,.0f}", f"{np.median([one.seconds for one in found]):.1f}"


def sparse_vector(noise_of_threshold=True, noise_of_query=True, scale_by_cutoff=True, tells_value=False, cutoff=1):
    """Sparse vector for epsilon 1 and sensitivity 1, or less of it."""
    def answers(queries, rng):
        threshold = rng.laplace(scale=2) if noise_of_threshold else 0.0
        out, n = [], 0
        for query in queries:
            scale = 4 * (cutoff if scale_by_cutoff else 1) if noise_of_query else 0.0
            noisy = query + (rng.laplace(scale=scale) if scale else 0.0)
            if noisy >= threshold:
                out.append(noisy if tells_value else True)
                n += 1
                if n == cutoff:
                    break
            else:
                out.append(False)
        return tuple(out)

    return answers


def noisy_max(scale, tells_value=False):
    def choice(scores, rng):
        noisy = np.asarray(scores) + rng.laplace(scale=scale, size=len(scores))
        return float(noisy.max()) if tells_value else int(noisy.argmax())

    return choice


def largest_gap(x, rng):
    return round(x + (rng.laplace() if x else 0.0), 1)


LOW, HIGH = (0, 0, 0, 0, 0), (1, 1, 1, 1, 1)
MIXED = (0, 0, 0, 0, 0, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 0, 0, 0, 0, 0)
BROKEN = {
    "x + rng.laplace(): the low bits": (lambda x, rng: x + rng.laplace(), [(0, 1)]),
    "half the noise": (lambda x, rng: x + rng.laplace(scale=0.5), [(0, 1)]),
    "noise only where there is something": (largest_gap, [(0, 1)]),
    "uniform noise": (lambda x, rng: x + rng.uniform(-5, 5), [(0, 1)]),
    "sparse vector without noise of queries": (sparse_vector(noise_of_query=False, cutoff=10), [MIXED]),
    "sparse vector, noise ignores the cut-off": (sparse_vector(scale_by_cutoff=False, cutoff=10), [MIXED]),
    "sparse vector that tells the noisy value": (sparse_vector(tells_value=True, cutoff=3), [MIXED]),
    "sparse vector without noise of the threshold": (sparse_vector(noise_of_threshold=False, scale_by_cutoff=False,
                                                                   cutoff=10), [MIXED]),
    "the largest noisy value": (noisy_max(2.0, tells_value=True), [(LOW, HIGH)]),
    "noisy maximum, a quarter of the noise": (noisy_max(0.5), [((0, 0, 0, 0), (1, -1, -1, -1))]),
    "an error for one value only": (lambda x: 1 / x, [(0, 1)]),
    "a seed that is always the same": (lambda x: x + np.random.default_rng(7).laplace(), [(0, 1)]),
}


def broken(seconds):
    """Print how soon mistakes are caught, at a claim of 1."""
    print("| mistake | caught | outputs | seconds | bound | event |\n|---|---|---|---|---|---|")
    for name, (function, pairs) in BROKEN.items():
        one = audit(function, pairs, claim=1.0, time_limit=seconds, random_state=0)
        print(f"| {name} | {'yes' if one.violated else 'no'} | {one.n_samples:,} | {one.seconds:.1f} | "
              f"{one.epsilon_lower:.2f} | {one.event[:90]} |", flush=True)


def registry(n_samples):
    """Print the bound of each estimator of the package, beside what it claims."""
    print("| estimator | claim | bound | outputs | seconds | event |\n|---|---|---|---|---|---|")
    for name, cls in all_estimators():
        est = cls(**cls._test_params()[0])
        n = n_samples * (20 if name.startswith("local.") else 1)
        try:
            try:
                claim = est.privacy_
            except (AttributeError, NotFittedError):
                claim = float(est.epsilon), float(getattr(est, "delta", 0.0) or 0.0)
            one = audit(est, claim=claim, n_samples=n, time_limit=20, random_state=0)
        except ValueError as error:
            print(f"| {name} | {str(error)[:90]} |", flush=True)
            continue
        print(f"| {name} | {one.claim[0]:g}, {one.claim[1]:g} | {one.epsilon_lower:.3f}"
              f"{' **above**' if one.violated else ''} | {one.n_samples:,} | {one.seconds:.1f} | {one.event[:70]} |",
              flush=True)


_SERVE = """
import json, sys
import numpy as np
{0}
for line in sys.stdin:
    x, n = json.loads(line)
    out = np.array([draw(x) for _ in range(n)])
    sys.stdout.write(json.dumps([float(v).hex() for v in out]) + chr(10)); sys.stdout.flush()
"""
_THEIRS = {
    "diffprivlib": {
        "Laplace": "from diffprivlib.mechanisms import Laplace\ndraw = Laplace(epsilon=1.0, sensitivity=1.0).randomise",
        "LaplaceTruncated": "from diffprivlib.mechanisms import LaplaceTruncated\n"
                            "draw = LaplaceTruncated(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=1.0).randomise",
        "Staircase": "from diffprivlib.mechanisms import Staircase\n"
                     "draw = Staircase(epsilon=1.0, sensitivity=1.0).randomise",
        "Uniform, delta 0.1": "from diffprivlib.mechanisms import Uniform\n"
                              "draw = Uniform(delta=0.1, sensitivity=1.0).randomise",
        "Gaussian, delta 0.01": "from diffprivlib.mechanisms import GaussianAnalytic\n"
                                "draw = GaussianAnalytic(epsilon=1.0, delta=0.01, sensitivity=1.0).randomise",
        "Snapping": "from diffprivlib.mechanisms import Snapping\n"
                    "draw = Snapping(epsilon=1.0, sensitivity=1.0, lower=-100.0, upper=100.0).randomise",
        "Geometric": "from diffprivlib.mechanisms import Geometric\n"
                     "draw = lambda x: Geometric(epsilon=1.0, sensitivity=1).randomise(int(x))",
    },
    "opendp": {
        "make_laplace, float": "import opendp.prelude as dp\ndp.enable_features('contrib')\n"
                               "space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)\n"
                               "draw = dp.m.make_laplace(*space, scale=1.0)",
        "make_laplace, int": "import opendp.prelude as dp\ndp.enable_features('contrib')\n"
                             "space = dp.atom_domain(T=int), dp.absolute_distance(T=int)\n"
                             "made = dp.m.make_laplace(*space, scale=1.0)\ndraw = lambda x: made(int(x))",
    },
}


class Served:
    """A function of another interpreter: ``f(x, n)``."""

    def __init__(self, python, code):
        self.process = subprocess.Popen([python, "-W", "ignore", "-c", _SERVE.format(code)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __call__(self, x, n):
        self.process.stdin.write(json.dumps([x, n]) + "\n")
        self.process.stdin.flush()
        return np.array([float.fromhex(value) for value in json.loads(self.process.stdout.readline())])


def peers(pythons, seconds):
    """Print what audits say of other libraries."""
    print("| library | mechanism | claim wrong | bound | outputs | seconds | event |\n|---|---|---|---|---|---|---|")
    for name, python in pythons.items():
        label = version(name, python)
        for what, code in _THEIRS[name].items():
            claim = (0.0, 0.1) if "0.1" in what.split()[-1:] else (1.0, 0.01) if "0.01" in what else 1.0
            served = Served(python, code)
            one = audit(served, [(0.0, 1.0)], claim=claim, batch=True, time_limit=seconds, random_state=0)
            served.process.stdin.close()
            served.process.wait()
            print(f"| {label} | {what} | {'yes' if one.violated else 'no'} | {one.epsilon_lower:.3f} | "
                  f"{one.n_samples:,} | {one.seconds:.1f} | {one.event[:90]} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["alarms", "power", "broken", "peers", "registry"])
    parser.add_argument("--audits", type=int, default=2000, help="of each mechanism")
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--error", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--time", type=float, default=60)
    parser.add_argument("--diffprivlib")
    parser.add_argument("--opendp")
    arguments, start = parser.parse_args(), time.perf_counter()
    if arguments.what == "alarms":
        alarms(arguments.audits, arguments.samples, arguments.error)
    elif arguments.what == "power":
        power(arguments.seeds, arguments.time)
    elif arguments.what == "registry":
        registry(arguments.samples)
    elif arguments.what == "broken":
        broken(arguments.time)
    else:
        given = {"diffprivlib": arguments.diffprivlib, "opendp": arguments.opendp}
        peers({name: python for name, python in given.items() if python}, arguments.time)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
