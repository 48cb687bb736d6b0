"""What docstrings claim of growth, and what a fitted slope says of that.

A claim is what stands in an ``O(...)`` of a docstring: sums of products of letters, powers and logarithms.
``scale_claims.toml`` repeats the claims; a test compares the two.
"""

import math
import re
import tomllib
from pathlib import Path

import numpy as np

CLAIMS = tomllib.loads(Path(__file__).with_name("scale_claims.toml").read_text(encoding="utf-8"))
AXES = ("rows", "columns", "categories")
KINDS = ("time", "memory")
#: How much a slope may exceed what is claimed, besides two of its standard errors. Fixed before anything was measured.
TOLERANCE = 0.10
#: Smaller numbers say nothing: seconds of the processor, bytes.
FLOORS = {"time": 3e-4, "memory": 2e6}
#: What is fitted is the upper part of a curve: so many points that are above the floor.
UPPER, FEWEST = 5, 3


def claimed(name, kind, axis, sizes):
    """Return the exponent that a docstring allows over sizes of one axis: the largest slope of its claims.

    Of a sum only the terms with the letter count. A claim that does not name the letter allows no growth.
    """
    own, sizes = CLAIMS[name], np.asarray(sizes, float)
    grown = (evaluate(claim, own[axis], sizes) - evaluate(claim, own[axis], 0 * sizes) for claim in own[kind])
    return max(slope(sizes, each)[0] if np.any(each) else 0.0 for each in grown)


def evaluate(claim, letter, sizes):
    """Return the values of a claim such as ``n d^2 + d log d``: a letter has these sizes, and all others are 1."""
    code = re.sub(r"log (\w+)", r"log(\1)", claim).replace("^", "**")
    code = re.sub(r"(?<=[\w)]) (?=[\w(])", "*", code)
    letters = {each: sizes if each == letter else 1.0 for each in re.findall(r"[A-Za-z]+", claim) if each != "log"}
    return eval(code, {"__builtins__": {}}, {**letters, "log": lambda x: np.log2(x + 1)})  # (our own file)


def slope(sizes, values):
    """Return (slope, its standard error) of a line through the logarithms, by least squares."""
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(values, float))
    x = x - x.mean()
    fitted = float(x @ y / (x @ x))
    left = y - y.mean() - fitted * x
    return fitted, math.sqrt(float(left @ left) / max(len(x) - 2, 1) / float(x @ x))


def judged(name, kind, axis, points):
    """Return what is kept of a curve: its slope, that of the claim, and whether it keeps to the claim.

    Where fewer than three points are above the floor there is no growth to speak of, and no slope.
    """
    upper = [(point["size"], point[kind]) for point in points if point[kind] >= FLOORS[kind]][-UPPER:]
    if len(upper) < FEWEST:
        return {"slope": None, "error": None, "sizes": [], "claimed": None, "kept": True}
    sizes = [size for size, _ in upper]
    found, error = slope(*zip(*upper))
    limit = claimed(name, kind, axis, sizes)
    return {"slope": round(found, 3), "error": round(error, 3), "sizes": sizes, "claimed": round(limit, 3),
            "kept": bool(found <= limit + TOLERANCE + 2 * error)}
