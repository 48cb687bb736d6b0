"""Noise added to the answers of queries.

How an answer flows::

    answers --answers.py--> integers of a public grid --+ NoiseLaw.draw--> integers --clipped--> release
              (shape, dtype, bounds)   (mechanism.py)     (law.py, _core/noise)

* `mechanism.py`  `AdditiveMechanism`: parameters, what is checked before anything is charged, `release`, `transform`
* `answers.py`    numbers, arrays and frames of answers, and the way back
* `law.py`        `NoiseLaw`: exact integers, a law and its guarantee as data; its fields are its identity
* `normal.py`     deltas of Gaussian noise as upper bounds, and the least noise for a delta

One idea a file, law and estimator, with its proof beside it: discrete_laplace, laplace, gaussian, discrete_gaussian,
staircase, snapping. (The first and the third law are
added by many who release no answers of others: their mechanisms stand apart, in discrete_laplace_mechanism and
gaussian_mechanism.)

Real answers are rounded to a grid whose step is a power of two, and the rounding is part of the sensitivity; then noise
is an integer with an exact law, so that no low bit of a float tells what was added. With `bounds`, a public range,
answers and results are clipped to it.
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Noise on query answers, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("an answer is a count", "DiscreteLaplaceMechanism", "the result is an integer, and the law of the noise is exact"),
    ("answers are real numbers", "LaplaceMechanism", "no delta; noise grows with the sum of all changes"),
    ("one person changes many answers a little", "GaussianMechanism",
     "noise grows with the Euclidean norm of the changes, for a small delta"),
    ("there is one answer, epsilon is above 3, and the mean absolute error counts", "StaircaseMechanism",
     "the least mean absolute error; 95 % intervals are shorter from an epsilon of 5 on"),
)
