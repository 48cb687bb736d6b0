"""Where the environment asks for it, OpenSSL alone encrypts, and words are the same."""

import os
import subprocess
import sys

PROGRAM = """
import numpy as np
from dpestim import rng
from dpestim._core import grr, hcms, unary
from dpestim.local import (GRRFrequencyEstimator, HCMSFrequencyEstimator, LOUEFrequencyEstimator, OLHFrequencyEstimator,
                           SUEFrequencyEstimator)

def refuse(*_):
    raise RuntimeError("a kernel encrypts")

def unless_it_encrypts(kernel):
    return lambda codes, seeds, *more: refuse() if isinstance(seeds, tuple) else kernel(codes, seeds, *more)

if rng._ONLY_OPENSSL:
    rng.rare.encrypt = rng.rare.keystream = rng.rare.fresh = refuse
    grr.answer = unary.encode = unary.toss = refuse
    hcms.answer, hcms.send = map(unless_it_encrypts, (hcms.answer, hcms.send))
X, codes = np.arange(300)[:, None] % 5, [list(range(500))]
for cls in (GRRFrequencyEstimator, OLHFrequencyEstimator, SUEFrequencyEstimator, LOUEFrequencyEstimator,
            HCMSFrequencyEstimator):
    print(cls(2.0, categories=codes, random_state=1).fit(X).frequencies_[0].tolist())
    for mechanism in (cls(2.0, categories=codes), cls(2.0, categories=codes, random_state=1)):
        one = mechanism.privatize(X[:1])
    print(np.asarray(one).tolist())
for n_words in (33, 129, 2048):
    assert len(rng.fresh_words(n_words)) == 8 * n_words
print(rng.WordReader(bytes(32)).heads(3, 0, 2, 4).tolist(), rng._ONLY_OPENSSL)
"""


def test_the_environment_asks_for_openssl_alone():
    """No way to words leads to the kernel then, of fits and of records, and seeded words are the same."""
    found = {}
    for value in ("0", "1"):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], check=True, capture_output=True,
                              text=True, env={**os.environ, "DPESTIM_ONLY_OPENSSL": value})
        found[value], _, asked = done.stdout.strip().rpartition(" ")
        assert asked == str(value == "1")
    assert found["0"] == found["1"]
