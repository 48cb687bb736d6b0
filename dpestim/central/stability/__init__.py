"""Answers of data that happen to be stable: noise as large as these data need it, and not the worst ones.

How rows flow::

    X --number_rows--> columns --ClippedGrid.read--> integers --+ Summary, merge --statistic.look--> value, S, distance
                                              (grid.py)    (rows.py)         (statistics.py)         | secret
                                        value_ <--public grid, clipped-- noise of a scale that is secret (heavy.py)

* `rows.py`           `RowMechanism`: summarise, merge, pay, release; scikit-learn's `fit`
* `grid.py`           numbers to integers within public bounds
* `statistics.py`     how far a record can move a statistic near these data: A(k), S and distances, exactly
* `heavy.py`          laws of real noise that bear another scale, and how the nearest point of a grid is found
* `distance_test.py`  a distance to other answers, and a threshold that it reaches or not, under noise
* `blocks.py`         a function that is run on random blocks of rows
* `rehearsal.py`      ... and tried on made-up rows first, before anything is charged

One idea a file, estimator and proof: smooth_sensitivity, propose_test_release, stable_release, sample_and_aggregate.
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Local sensitivity, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("a median or quantile of values that are rounded or repeat, or a trimmed mean", "SmoothSensitivity",
     "noise shrinks with the gaps near the statistic; for mostly distinct values ExponentialMechanism errs less"),
    ("you know, without the data, how far one record moves the answer", "ProposeTestRelease",
     "noise for the bound that you propose, if all data sets nearby keep it; otherwise no answer"),
    ("the answer is one of a few candidates, and far ahead of the others", "StableRelease",
     "the exact answer, or none"),
    ("nothing is known about the function", "SampleAndAggregate",
     "it runs any callable or estimator on random blocks of rows; one row changes one block"),
)
