"""Answers of data that happen to be stable: noise as large as these data need it, and not the worst ones.

How rows flow::

    X --number_rows--> columns --Grid.read--> integers --+ Summary + merge --statistic.look--> value, S or distance
                                              (grid.py)    (rows.py)         (statistics.py)         | secret
                                        value_ <--public grid, clipped-- noise of a scale that is secret (heavy.py)

* `rows.py`           `RowMechanism`: summarise, merge, pay, release; scikit-learn's `fit`
* `grid.py`           numbers to integers within public bounds
* `statistics.py`     how far a record can move a statistic near these data: A(k), S and distances, exactly
* `heavy.py`          laws of real noise that bear another scale, and how the nearest point of a grid is found
* `distance_test.py`  a distance to other answers, and a threshold that it reaches or not, under noise
* `blocks.py`         a function that is run on random blocks of rows
* `rehearsal.py`      ... and tried on made-up rows first, before anything is charged

One idea a file, face and proof: smooth_sensitivity, propose_test_release, stable_release, sample_and_aggregate.
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Local sensitivity, central model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("a median or quantile of values that are rounded or repeat, or a trimmed mean", "SmoothSensitivity",
     "noise shrinks with the gaps near the statistic; of mostly distinct values an ExponentialMechanism does better"),
    ("you know, without the data, how far one record moves it", "ProposeTestRelease",
     "noise for what you propose, if all data near these agree with you; else no answer"),
    ("the answer is one of a few, and far ahead", "StableRelease", "exact, or no answer"),
    ("nothing is known about the function", "SampleAndAggregate",
     "runs it on random blocks of rows, of which one row changes one: any callable or estimator"),
)
