"""Places: what devices may report of where they are, and what may be known of many places.

How data flows::

    (latitude, longitude) --projection--> places of a grid --law (layers, _core/places)--> reported place
                                                            --remap, by a public prior--> better place

* `projection.py`  degrees and metres; the step of a grid
* `layers.py`      weights that fall with the distance, in integers, and what verifies them
* `law.py`         `PlanarLaw`: reports of places, and their exact law
* `column.py`      two columns that are a place
* `planar.py`      `PlanarLaplaceTransformer` and what transformers of places share
* `cells.py`       `PlanarGeometricTransformer`, `OptimalGeoTransformer`: coarse grids
* `optimal.py`     the law of a linear program, rounded to integers that are verified
* `density.py`     `SpatialDensity`: counts of cells in the central model; `partitions.py` cuts the region
* `parts.py`       `LDPartEstimator`: a quadtree from reports of groups of users; `trees.py` makes it consistent
* `predictive.py`  `PredictiveTrace`: the places of a trace, reported anew only after a private test
* `fine.py`        places within cells of trajectories, in parts by noisy visits
* `trajectories.py`  `TrajectorySynthesizer`: walks of cells, drawn from noisy counts
* `map.py`         maps of cells, without tiles
* `remap.py`       reports moved by a public prior
* `adversary.py`   `PlaceAdversary`: how far off the best guess from a report is, by enumeration
* `meaning.py`     what epsilon for a metre means at a distance

A place has a distance from another, and what is promised is epsilon times the distance: that is a relaxation of local
differential privacy, by the name "geo-indistinguishability", so that ledgers, cards and sums treat it as any other one.
`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.geo.adversary import PlaceAdversary
    from dpestim.geo.cells import OptimalGeoTransformer, PlanarGeometricTransformer
    from dpestim.geo.density import SpatialDensity
    from dpestim.geo.parts import LDPartEstimator
    from dpestim.geo.planar import PlanarLaplaceTransformer
    from dpestim.geo.predictive import PredictiveTrace
    from dpestim.geo.trajectories import TrajectorySynthesizer

__getattr__, __dir__ = lazy.attach(__name__, {
    "adversary": "PlaceAdversary",
    "cells": "OptimalGeoTransformer PlanarGeometricTransformer",
    "density": "SpatialDensity",
    "parts": "LDPartEstimator",
    "planar": "PlanarLaplaceTransformer",
    "predictive": "PredictiveTrace",
    "trajectories": "TrajectorySynthesizer",
})

__all__ = ["LDPartEstimator", "OptimalGeoTransformer", "PlaceAdversary", "PlanarGeometricTransformer",
           "PlanarLaplaceTransformer", "PredictiveTrace", "SpatialDensity", "TrajectorySynthesizer"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Places"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("a device reports where it is, and nobody is trusted", "PlanarLaplaceTransformer", "epsilon for a metre, exact"),
    ("a device reports one of some cells that a service knows", "PlanarGeometricTransformer", "any number of cells"),
    ("there are few cells, and a prior is known", "OptimalGeoTransformer", "the least expected distance"),
    ("nobody is trusted, and counts of places are wanted", "LDPartEstimator", "cells follow where users are"),
    ("a curator holds the places, and counts are published", "SpatialDensity", "cells follow where rows are"),
    ("a curator holds trajectories, and others that resemble them are published", "TrajectorySynthesizer",
     "whole trajectories are protected"),
)
