"""`IBLTShuffler`: a shuffler made of a sum, by tables that can be added up and then taken apart."""

import numpy as np

from dpestim._core import iblt as kernel
from dpestim.exceptions import DecodeError
from dpestim.rng import Stage, WordSource, check_random_state
from dpestim.shuffle.transport.messages import check_integer, rows_of_bytes
from dpestim.shuffle.transport.secure_sum import SecureSum
from dpestim.shuffle.transport.uniform import permuted

#: Words of a nonce: 128 bits, which is at least 2 log2 N + 40 for every N that is allowed.
_NONCE = 2


class IBLTShuffler:
    """Shuffle through an invertible Bloom lookup table: the party that adds up tables sees no message.

    Each user appends a random nonce to each message, so that equal messages are different keys, and adds the key to
    three cells of a table, one in each third. A cell holds a count, the sum of its keys and a check sum, modulo 2**64,
    so the sum of all tables is the table of all messages. The analyser takes out the keys of cells that hold one until
    none is left. What it finds is put in a uniformly random order, as the order of finding depends on the nonces.

    **Privacy.** With a secure sum the analyser sees the sum of the tables, which is a function of the multiset of
    messages and of randomness that is independent of who sent what. So what a protocol proves of the multiset
    (neighbours differ in one user's value; n and the sizes are public) holds. Here one process plays all parts, which
    makes no claim of security: see `SecureSum`. Users are trusted to write a sound table.

    **Utility.** The multiset is unchanged, or there is an error: messages that cannot all be taken out are reported.
    How often that happens falls with the number of messages; it is printed in ``iblt.md``.

    **Complexity.** O(n) time; 1.3 n cells of ``8 * (4 + ceil(width / 8))`` bytes, width being the bytes of a message.
    With a secure sum of n users, O(n) times as much, so that is for hundreds of users.

    Parameters
    ----------
    secure_sum : SecureSum or None, default=None
        What adds up the tables, one a message: ``bits`` of it must be 64. None adds each key to one table at
        once, which is the same sum.
    cells : int or None, default=None
        Cells of a table. None takes 1.5 n + 50 below 1,000 messages, from there on 1.3 n, but at least 1,550.
    attempts : int, default=3
        How often users send at most, from 1 to 1,000: again with new nonces where a table could not be taken apart.
    random_state : None, int or NumPy generator, default=None
        None draws secure words at each call; an int repeats nonces and order and must not be used for a release.

    Raises
    ------
    ValueError
        For messages that are not an array of an unsigned type with one or two axes; or a bad parameter.
    DecodeError
        Where messages are left that cannot be taken out in any attempt; it says how many. None is returned then.

    References
    ----------
    M. T. Goodrich, M. Mitzenmacher, Invertible Bloom Lookup Tables, Allerton 2011 (tables, listing).
    J. Bell et al., Secure Single-Server Aggregation with (Poly)Logarithmic Overhead, CCS 2020 (shuffling).

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.shuffle.transport import IBLTShuffler
    >>> sorted(IBLTShuffler(random_state=0).shuffle(np.array([3, 1, 1, 2], np.uint8)).tolist())
    [1, 1, 2, 3]
    """

    def __init__(self, secure_sum=None, *, cells=None, attempts=3, random_state=None):
        if secure_sum is not None and not (isinstance(secure_sum, SecureSum) and secure_sum.bits == 64):
            raise ValueError("secure_sum must be None or a SecureSum of 64 bits")
        if cells is not None:
            check_integer("cells, where it is not None,", cells, 3, 1 << 33)
        check_integer("attempts", attempts, 1, 1000)
        check_random_state(random_state)
        self.secure_sum, self.cells = secure_sum, cells
        self.attempts, self.random_state = attempts, random_state

    def n_cells(self, n):
        """Return the number of cells for n messages, a multiple of 3."""
        if self.cells is not None:
            cells = self.cells
        else:
            cells = -(-3 * n // 2) + 50 if n < 1000 else max(1550, -(-13 * n // 10))
        return 3 * -(-cells // 3)

    def distance(self, n):
        """Return 0: the order of n messages is uniform, exactly (``iblt.md``, claim 2)."""
        return 0.0

    def shuffle(self, messages):
        """Return the messages, an array (n,) or (n, width) of an unsigned type, in a uniformly random order."""
        out, rows = rows_of_bytes(messages)
        source = WordSource(self.random_state)
        n, width = rows.shape
        for attempt in range(1, self.attempts + 1):
            keys, salt = self._keys(rows, source.part(attempt))
            found, left = self._peel(self._sum(keys, salt), salt, *keys.shape)
            if not left:
                break
        else:
            raise DecodeError(f"{left} of {n} messages could not be decoded from a table of {self.n_cells(n)} cells in "
                              f"attempt {attempt}, and no message was returned: take more cells or attempts")
        if n:
            rows[:] = found.view(np.uint8)[:, :width]
        return permuted(out, rows, source.part(0))

    def _keys(self, rows, source):
        """Return what each user writes, message and nonce, and the public salt of the table."""
        n, width = rows.shape
        n_words = -(-width // 8)
        keys = np.zeros((n, n_words + _NONCE), np.uint64)
        keys.view(np.uint8)[:, :width] = rows
        reader = source.reader()
        keys[:, n_words:] = reader.dense(Stage.RESPONSE, 0, 0, 0, n * _NONCE).reshape(n, _NONCE)
        return keys, int(reader.dense(Stage.SEED, 0, 0, 0, 1)[0])

    def _sum(self, keys, salt):
        """Return the sum of the tables of all users."""
        shape = self.n_cells(len(keys)), keys.shape[1] + 2
        if self.secure_sum is None or not len(keys):
            table = np.zeros(shape, np.uint64)
            kernel.insert(keys, salt, table)
            return table
        tables = np.zeros((len(keys), *shape), np.uint64)
        for key, table in zip(keys, tables):
            kernel.insert(key[np.newaxis], salt, table)
        return self.secure_sum.sum(tables.reshape(len(keys), -1)).reshape(shape)

    def _peel(self, table, salt, n, n_words):
        """Return the keys of a table, in no particular order, and how many of n are left in it."""
        found = np.empty((n, n_words), np.uint64)
        n_found = kernel.peel(table, salt, np.empty(len(table), np.int64), found)
        # all found and something left: cells that no honest user wrote
        return found, n - n_found or int(table.any())
