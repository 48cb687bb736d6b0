"""How a broken law becomes an estimator, and the settings that the broken ones are tried with."""

from dpestim.local import SDPMTransformer

PLAIN = {"epsilon": 1.0, "categories": [["a", "b", "c", "d"]]}
STEPS = {"epsilon": 1.0, "bounds": (0.0, 10.0), "grid": 16}
LOW = {**STEPS, "low_sensitivity": (2.0, 7.0), "n_cells": 2}
SAMPLED = {"epsilon": 5.0, "bounds": ([0.0, -5.0, 2.0, 1.0], [1.0, 5.0, 4.0, 9.0]), "grid": 8, "strategy": "sample"}
BALL = {"epsilon": 1.0, "center": [0.5, -0.5], "candidates": 8}
JOINT = {"epsilon": 1.0, "bounds": ([0.0, -5.0, 2.0, 1.0], [1.0, 5.0, 4.0, 9.0]), "strategy": "joint"}
MEAN = {"transformer": SDPMTransformer(**{**LOW, "epsilon": 2.0})}


def face_of(face, randomizer):
    """Return an estimator with the broken randomizer in place of its own."""
    cls = type(randomizer.__name__ + "Face", (face,), {"_randomizer": randomizer, "__module__": __name__})
    return globals().setdefault(cls.__name__, cls)  # so that it can be pickled, and is made once
