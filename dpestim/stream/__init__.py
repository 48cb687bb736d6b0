"""Streams: what may be released at every step of data that come with a clock.

How data flow::

    steps --reading--> integers --factors, totals--> releases of partial_fit, with standard errors and intervals
                                  ^ run (the state: pickles, goes on once)

* `reading.py`    steps as they come in, and what one event changes
* `factors.py`    two ways to put noise on all running totals (kernels: `_core/streams`)
* `totals.py`     epochs: a horizon, doubling, sliding windows
* `run.py`        the state of a stream between two steps, and who may go on with it
* `widths.py`     intervals
* `plotting.py`   `StreamDisplay`: releases, their band, and the truth
* `counter.py`    `StreamCounter`: counts and sums
* `histogram.py`  `ContinualHistogram`: a total for each cell
* `haar.py`       `HaarRelease`: each step by noisy Haar coefficients
* `rows.py`       what streams of rows share
* `sparse.py`     `SVTRelease`: a new row only where the stream has moved
* `w_event.py`    `WEventRelease`: one budget within any w steps (`sampled.py`: at times that follow from releases)
* `local.py`      `LocalStream`: reports of users at every step, by the longitudinal mechanisms of `dpestim.local`

What is protected is said by the relation of the guarantee: `Neighbours.EVENT`, or `Neighbours.USER` where the number of
events of a user is bounded by ``user_events``. Ledgers of streams are those with ``neighbours="event"`` or ``"user"``.

`__all__` is the registry: a class listed here is exported, checked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.stream.counter import StreamCounter
    from dpestim.stream.haar import HaarRelease
    from dpestim.stream.histogram import ContinualHistogram
    from dpestim.stream.local import LocalStream
    from dpestim.stream.plotting import StreamDisplay
    from dpestim.stream.sparse import SVTRelease
    from dpestim.stream.w_event import WEventRelease

__getattr__, __dir__ = lazy.attach(__name__, {
    "counter": "StreamCounter",
    "haar": "HaarRelease",
    "histogram": "ContinualHistogram",
    "local": "LocalStream",
    "plotting": "StreamDisplay",
    "sparse": "SVTRelease",
    "w_event": "WEventRelease",
})

__all__ = ["ContinualHistogram", "HaarRelease", "LocalStream", "SVTRelease", "StreamCounter", "StreamDisplay",
           "WEventRelease"]

#: What its estimators are for, in the tables of the documentation.
TASK = "Streams"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("a count or a sum so far, or of the latest steps, is released at every step", "StreamCounter",
     "the error grows with the logarithm of the number of steps"),
    ("a histogram so far is released at every step", "ContinualHistogram", "each cell has the noise of one counter"),
    ("each step is a row of counts over neighbouring cells", "HaarRelease", "sums of ranges have little noise"),
    ("rows change seldom, and a user may be in all of them", "SVTRelease", "only new rows cost budget"),
    ("rows come for ever, and users are protected within some steps", "WEventRelease", "spent budget comes back"),
)
