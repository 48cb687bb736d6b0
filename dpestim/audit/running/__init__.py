"""Audits of running code: a lower bound on its epsilon, from outputs alone.

* `audit.py`     the function, and what it refuses
* `asserting.py` the function as an assertion
* `result.py`    what it returns
* `plans.py`     claims, rounds and their errors: what is declared before anything runs
* `pairs.py`     neighbouring data
* `subjects.py`  estimators: what one output is
* `sampling.py`  who is called, how often, and for how long
* `channels.py`  time, and noise that repeats
* `outputs.py`   outputs as columns of numbers and categories
* `events.py`    sets of outputs, in words
* `scores.py`    a score that is learned from outputs
* `search.py`    what is chosen from a pilot, and what is tested
* `bounds.py`    from counts to a bound on epsilon
"""
