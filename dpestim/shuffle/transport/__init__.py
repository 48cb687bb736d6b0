"""What shuffles: from the messages of users to the multiset that the analyser may see.

A shuffler has one method, ``shuffle(messages)``: it returns the same messages in an order that says nothing about who
sent which. The party that runs the shuffler is trusted to do so; these classes are the algorithms, in one process.

    messages.py     what messages are, the words of a shuffle, the protocol `Shuffler`
    uniform.py      `UniformShuffler`: the shuffle of Fisher and Yates; fastest, its memory accesses tell the order
    bucket.py       `BucketShuffler`: whole buckets through a network, touched in an order that depends on n alone
    iblt.py         `IBLTShuffler`: tables that can be added up and taken apart: a shuffler from a secure sum
    secure_sum.py   `SecureSum`: sums under pairwise masks with recovery of dropouts, a functional simulation
    neighbours.py   who is a neighbour of whom in a secure sum
    shamir.py       shares of seeds

The proof beside each says what it hides from whom, and what it does not. The number of messages is public.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.shuffle.transport.bucket import BucketShuffler
    from dpestim.shuffle.transport.iblt import IBLTShuffler
    from dpestim.shuffle.transport.messages import Shuffler
    from dpestim.shuffle.transport.secure_sum import SecureSum
    from dpestim.shuffle.transport.uniform import UniformShuffler

__getattr__, __dir__ = lazy.attach(__name__, {
    "bucket": "BucketShuffler",
    "iblt": "IBLTShuffler",
    "messages": "Shuffler",
    "secure_sum": "SecureSum",
    "uniform": "UniformShuffler",
})

__all__ = ["BucketShuffler", "IBLTShuffler", "SecureSum", "Shuffler", "UniformShuffler"]
