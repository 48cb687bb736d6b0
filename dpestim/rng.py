"""Random words: a secure or seeded source, cut into streams that never meet.

Words of one public call come from AES-256 in counter mode under one 32-byte key; those of one record on a client may be
the system's own (below). A 128-bit counter names a pair of words:

    stage (8 bits) | column (24) | block (32) | position + 2 (64)

Different places have different counters, because each field has its own bits and position + 2 stays below 2**64. Why 2:
Galois/counter mode (GCM) encrypts under a nonce of 96 bits by the counters nonce | 2, nonce | 3, ... nonce | 2**32 - 1.
So what it makes of zeros under the nonce stage | column | block | 0 *is* the stream of that block from position 0 on,
and where the processor has vector AES, for which OpenSSL has written GCM but not CTR, large draws take this faster way
to the same words. The counters nonce | 0 and nonce | 1, with which GCM works besides, name no words. Few words
are made by a kernel of our own, with the processor's instructions for AES (`_core/src/aes.h`), where it has them, and
all where it has vector AES: they are the same, and OpenSSL, which makes all others, need not be loaded. Kernels that
take many words make them themselves so (`cipher`), a few thousand at a time: these never leave the first-level cache,
and threads need not wait for the interpreter's lock between the cipher and the kernel. With DPESTIM_ONLY_OPENSSL=1
OpenSSL makes all words.

Rows are cut into blocks of a size that depends on the mechanism alone, so which word a row sees is a function of
(key, stage, column, row): not of threads, batches or the order of blocks.

* ``random_state=None``: a fresh key from ``os.urandom`` for each public call. No state outlives a call, so a forked,
  cloned or pickled object cannot repeat noise. The few words of one record on a client are asked of ``os.urandom``
  themselves (`dpestim.words_of_one`): that is the generator whose output a key would be, and no cipher is set up. Where
  they are more than 32 (128 where the processor has no AES) they are a stream under a fresh key, cut into stages in the
  order in which these are asked for.
* an int: the key is derived from the seed. Reproducible, and marked `seeded`: such a release must not be published.
* a NumPy ``Generator`` or ``RandomState``: supplies a key and nothing else; marked `seeded` too. A copy of it (and
  `clone` copies parameters) supplies the same keys again.
"""

import hashlib
import os
from contextvars import ContextVar
from functools import lru_cache
from numbers import Integral
from types import SimpleNamespace

import numpy as np

from dpestim._core import rare

#: Bytes of keystream drawn at a time, so that a thread asks for the interpreter's lock rarely.
_CHUNK = 1 << 21
#: Bytes from which on GCM is faster, its set-up included, and the most that one nonce allows.
_GCM_LEAST, _GCM_MOST = 1 << 17, 16 * ((1 << 32) - 2)
#: Whether the environment asks that nothing but OpenSSL encrypts (SECURITY.md); processes that are started inherit it.
_ONLY_OPENSSL = os.environ.get("DPESTIM_ONLY_OPENSSL", "") not in ("", "0")
#: Bytes up to which a kernel encrypts by the processor's instructions, which costs no set-up, import or lock: all of
#: them where it has vector AES, and is as fast as OpenSSL.
_OWN_MOST = 0 if _ONLY_OPENSSL else 1 << 62 if rare.VECTOR_AES else 1 << 14
#: Words that the system makes in less time than a cipher takes to be set up, a kernel of our own or OpenSSL.
_FEW = 32 if rare.HAS_AES and not _ONLY_OPENSSL else 128
#: Words a block, where a mechanism says nothing else.
BLOCK_WORDS = 1 << 16
_WORD, _HALF = np.dtype(np.uint64), np.dtype(np.uint32)

#: In place of noise that is drawn here: who adds up the integers of several parties (`dpestim.parties.federated`).
sums_here = ContextVar("sums_here", default=None)


class Stage:
    """What words are for; different stages of one record never share a word."""

    SEED = 0  # public seeds of hash functions
    RESPONSE = 1  # the randomised answer
    RARE = 2  # words that few records need; each has a place of its own
    NOISE = 3  # noise of a release
    ROUNDING = 4  # unbiased rounding to a grid
    SUBSET = 5  # which columns a row reports
    SUBSET_AGAIN = 6  # the same, where words of the first draw allow no uniform one
    PERMANENT = 7  # an answer that a client keeps, and gives again in all its reports
    PERMANENT_RARE = 8  # words of it that few records need
    COINS = 9  # fair bits besides the response
    SECOND = 10  # a second randomised answer of one report
    SECOND_RARE = 11  # words of it that few records need


def check_random_state(random_state):
    """Raise ValueError unless a `WordSource` can be made from it; draws nothing."""
    if random_state is None:
        return
    seed = isinstance(random_state, Integral) and not isinstance(random_state, bool) and random_state >= 0
    if not (seed or isinstance(random_state, np.random.Generator | np.random.RandomState)):
        raise ValueError("random_state must be None, an int of at least 0 or a NumPy generator")


class WordSource:
    """The words of one public call.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState

    Attributes
    ----------
    seeded : bool
    fingerprint : str or None
        Names the key of a seeded source (a hash of it), so that two uses of one seed are recognised.
    sums : object or None
        Whose totals, with the noise of several parties, stand in for noise that is drawn from this source.
    """

    sums = None

    def __init__(self, random_state=None):
        self.sums = sums_here.get()
        self.seeded, self.fingerprint = random_state is not None, None
        if random_state is None:
            self._key = os.urandom(32)
            return
        check_random_state(random_state)
        if isinstance(random_state, Integral):
            self._key = np.random.SeedSequence(int(random_state)).generate_state(8, np.uint32).tobytes()
        else:
            self._key = random_state.bytes(32)
        self.fingerprint = _fingerprint(self._key)

    def part(self, number):
        """Return the source of a part of this call, such as a group of users: no two parts share words.

        Its key is a hash of this one and of the number; this source itself must not be used besides.
        """
        part = object.__new__(type(self))
        part.seeded, part.sums = self.seeded, self.sums
        part._key = hashlib.sha256(b"dpestim part" + self._key + int(number).to_bytes(8, "big")).digest()
        part.fingerprint = _fingerprint(part._key) if self.seeded else None
        return part

    def key_for_workers(self):
        """Return the key, with which workers make the words of rows that they hold; this must not draw any more."""
        self._refuse_sums()
        return self._key

    @classmethod
    def of_key(cls, key, seeded):
        """Return the source of a worker: the words that the source has from which the key came."""
        source = object.__new__(cls)
        source.seeded, source._key = seeded, key
        source.fingerprint = _fingerprint(key) if seeded else None
        return source

    def __reduce__(self):
        """Refuse: a source that travels would repeat its words."""
        raise TypeError("a WordSource cannot be pickled or copied, because the copy would repeat its words: make a new "
                        "one")

    def reader(self):
        """Return a reader of its own for one thread."""
        if self.sums is not None:
            self._refuse_sums()
        return WordReader(self._key)

    def _refuse_sums(self):
        """Raise ValueError where several parties make the noise: what one of them draws alone protects nobody."""
        if self.sums is not None:
            raise ValueError("estimator must add noise to sums and draw nothing else, because several parties can only "
                             "add: take other parameters, or another estimator")


class WordReader:
    """Draws the words of a `WordSource`; one for each thread, buffers reused from block to block."""

    def __init__(self, key):
        self._key = key
        self._stream = self._blocks = None
        self._buffers, self._begun = {}, {}

    def __reduce__(self):
        """Refuse, as its source does."""
        raise TypeError("a WordReader cannot be pickled or copied, because the copy would repeat its words: make a new "
                        "one")

    def words(self, column, block, first, n_rows):
        """Return the `Words` of n_rows rows of a block, from row number `first` within it."""
        return Words(self, column, block, first, n_rows)

    def dense(self, stage, column, block, start, size):
        """Return words start .. start + size of a block's stream; valid until the next call for this stage."""
        position, skip = start >> 1, start & 1  # a counter value names two words
        pairs = (skip + size + 1) >> 1
        n_bytes = 16 * pairs
        buffer = self._buffers.get(stage)
        if buffer is None or buffer.size < n_bytes:
            buffer = self._buffers[stage] = np.empty(n_bytes, np.uint8)
        counter = _counter(stage, column, block, position, pairs)
        if n_bytes <= _OWN_MOST and rare.HAS_AES:
            drawn = buffer[:n_bytes]
            if pairs:  # (no rows ask for no words)
                rare.keystream(self._key, int.from_bytes(counter[:8], "big"), position + _OFFSET, drawn)
            return drawn.view(_WORD)[skip : skip + size]
        begun = self._begun.pop(stage, None)
        goes_on = begun is not None and begun[0] == (column, block, position) and 16 * position + n_bytes <= _GCM_MOST
        stream = begun[1] if goes_on else self._stream_at(counter, position, n_bytes)
        zeros = _ciphers().zeros
        for at in range(0, n_bytes, _CHUNK):
            step = min(_CHUNK, n_bytes - at)
            stream.update_into(zeros[:step], buffer[at : at + step])
        if stream is not self._stream:  # (GCM: what comes next of this block's stream is had without a new set-up)
            self._begun[stage] = (column, block, position + pairs), stream
        return buffer[:n_bytes].view(np.uint64)[skip : skip + size]

    def _stream_at(self, counter, position, n_bytes):
        """Return what encrypts zeros by this counter, the next one and so on."""
        modes = _ciphers()
        if position == 0 and _GCM_LEAST <= n_bytes <= _GCM_MOST and _gcm_is_faster():
            return modes.Cipher(modes.AES(self._key), modes.GCM(counter[:12])).encryptor()
        if self._stream is None:
            self._stream = modes.Cipher(modes.AES(self._key), modes.CTR(counter)).encryptor()
        else:
            self._stream.reset_nonce(counter)
        return self._stream

    def sparse(self, stage, column, block, places, first=0, end=None):
        """Return one word for each place (an array of integers) of a block's stream; each place has a counter.

        Places are counted from `first`, and lie below `end`, if that is given. One kernel does it: each call of NumPy's
        for more than a few hundred places lets another thread have the interpreter's lock, and then waits for it.
        """
        if not len(places):
            return np.empty(0, np.uint64)
        places, counters = np.ascontiguousarray(places, np.uint64), np.empty((len(places), 16), np.uint8)
        head = int.from_bytes(_counter(stage, column, block)[:8], "big")
        largest = rare.counters_of(places, head, first + _OFFSET, counters)
        if end is not None and largest >= end:
            raise ValueError(_OTHER_ROWS)
        _counter(stage, column, block, first + largest)
        return self._encrypted(counters).view(np.uint64)[::2]

    def below(self, stage, column, block, start, lanes, last, least=0):
        """Return (places k, numbers) of numbers up to `last`: 8 digits are lanes[k], 56 of the word at start + k.

        These are words as `sparse` draws them, where lanes leave open whether the number is below; numbers whose first
        digits are less than `least` are left out.
        """
        size = len(lanes)
        head = _counter(stage, column, block, start + size)[:8]
        if "open" not in self._buffers or len(self._buffers["open"][0]) < size:
            self._buffers["open"] = np.empty(size, np.int64), np.empty((size, 16), np.uint8)
        places, counters = self._buffers["open"]
        found = rare.open_places(lanes, last >> 56, int.from_bytes(head, "big"), start + _OFFSET, places, counters,
                                 least)
        places, numbers = places[:found].copy(), np.empty(found, np.uint64)
        if found:
            found = rare.settle(lanes, self._encrypted(counters[:found]).view(np.uint64), last, places, numbers)
        return places[:found], numbers[:found]

    def cipher(self, stage, column, block, start, size):
        """Return what a kernel makes the words of `dense` of: (key, head, counter, words to skip there), or None.

        Counters are the numbers head, counter + 0, 1, ... None: OpenSSL makes them, because it is faster, or a kernel
        cannot.
        """
        if not rare.HAS_AES or size << 3 > _OWN_MOST:
            return None
        position, skip = start >> 1, start & 1
        head = _counter(stage, column, block, position, (skip + size + 1) >> 1)[:8]
        return self._key, int.from_bytes(head, "big"), position + _OFFSET, skip

    def _encrypted(self, counters):
        """Return the bytes of scattered counters, over which they may be written.

        Counter mode there is the block cipher, which is what ECB does.
        """
        if counters.nbytes <= _OWN_MOST and rare.HAS_AES:
            blocks = counters.view(np.uint8).reshape(-1)
            rare.encrypt(self._key, blocks)
            return blocks
        if self._blocks is None:
            modes = _ciphers()
            self._blocks = modes.Cipher(modes.AES(self._key), modes.ECB()).encryptor()
        out = np.empty(counters.nbytes + 15, np.uint8)
        self._blocks.update_into(memoryview(counters).cast("B"), out)
        return out[: counters.nbytes]

    def heads(self, stage, column, n_blocks, size):
        """Return the first words of blocks 0, 1, ... of a column, an even number of each, of shape (n_blocks, size)."""
        _counter(stage, column, max(n_blocks - 1, 0), pairs=size // 2)
        counters = np.empty((n_blocks, size // 2, 2), ">u8")
        counters[..., 0] = (int(stage) << 56 | column << 32) + np.arange(n_blocks, dtype=np.uint64)[:, None]
        counters[..., 1] = np.arange(_OFFSET, _OFFSET + size // 2)
        return self._encrypted(counters).view(np.uint64).reshape(n_blocks, size)

    def scratch(self, size, dtype):
        """Return working memory of this thread; valid until the next call for this dtype."""
        dtype = np.dtype(dtype)
        buffer = self._buffers.get(dtype)
        if buffer is None or buffer.size < size:
            buffer = self._buffers[dtype] = np.empty(size, dtype)
        return buffer[:size]


class Words:
    """The words of consecutive rows of one column: what a randomizer is handed instead of a generator."""

    #: Whether nobody can draw these words again, so that a law may take whole words where rows of a block share them.
    alone = False

    def __init__(self, reader, column, block, first, n_rows):
        self._at = (column, block)
        self._reader, self._first, self._n_rows = reader, first, n_rows
        self._drawn = {}

    def _draw(self, stage, how):
        """Refuse to draw the words of a stage in two ways: they would be the same words."""
        if self._drawn.setdefault(stage, how) != how:
            raise ValueError(f"the words of stage {stage} were already drawn by another method: use another stage")

    def dense(self, stage, per_row):
        """Return per_row words for every row, as one array of n_rows * per_row words; asked again, the same words."""
        if self._drawn.setdefault(stage, per_row) != per_row:
            self._draw(stage, per_row)
        return self._reader.dense(stage, *self._at, self._first * per_row, self._n_rows * per_row)

    def cipher(self, stage, per_row):
        """Return what a kernel makes the words of `dense` of (`WordReader.cipher`), or None: then `dense` has them."""
        if self._drawn.setdefault(stage, per_row) != per_row:
            self._draw(stage, per_row)
        return self._reader.cipher(stage, *self._at, self._first * per_row, self._n_rows * per_row)

    def cipher_of_parts(self, stage, per_word):
        """Return the same of `halves` (2 a word) or `eighths` (8), with the number of parts to skip, or None."""
        self._draw(stage, "halves" if per_word == 2 else ("eighths", 1))
        start, skip = divmod(self._first, per_word)
        cipher = self._reader.cipher(stage, *self._at, start, (skip + self._n_rows + per_word - 1) // per_word)
        return cipher and (*cipher[:3], skip + per_word * cipher[3])

    def rare_cipher(self, stage, per_row):
        """Return (head, counter of place 0) of the words of `sparse`, of which a kernel makes those it asks for."""
        self._draw(stage, ("sparse", per_row))
        head = _counter(stage, *self._at, self._first * per_row, self._n_rows * per_row)[:8]
        return int.from_bytes(head, "big"), self._first * per_row + _OFFSET

    def halves(self, stage):
        """Return one 32-bit number for every row: row r gets half r % 2 of word r // 2 of the block's stream."""
        if self._drawn.setdefault(stage, "halves") != "halves":
            self._draw(stage, "halves")
        skip = self._first % 2
        size = (skip + self._n_rows + 1) // 2
        drawn = self._reader.dense(stage, *self._at, self._first // 2, size).view(_HALF)
        return drawn[skip : skip + self._n_rows]

    def eighths(self, stage, per_row=1):
        """Return per_row 8-bit numbers for every row: eight of a word, in the order of places row * per_row + slot."""
        self._draw(stage, ("eighths", per_row))
        start, size = self._first * per_row, self._n_rows * per_row
        skip = start % 8
        drawn = self._reader.dense(stage, *self._at, start // 8, (skip + size + 7) // 8)
        return drawn.view(np.uint8)[skip : skip + size]

    def below(self, limit, stage, rare_stage, per_row=1):
        """Return (places row * per_row + slot, ascending; numbers) of the uniform 64-bit numbers below a limit.

        Every place has such a number. Its first 8 digits are an eighth of a word of `stage`; the other 56 are drawn,
        as the first of a word of `rare_stage`, only where the first 8 leave open whether the number is below.
        """
        lanes = self.eighths(stage, per_row)
        self._draw(rare_stage, ("sparse", per_row))
        return self._reader.below(rare_stage, *self._at, self._first * per_row, lanes, limit - 1)

    def first_digits(self, limit, stage, rare_stage):
        """Return (eighths, rows): the first 8 digits of a uniform number for every row, and what they leave open.

        A number is below the limit where its first digits are less than those of limit - 1, and in these rows, where
        they are equal. Its other 56 digits are drawn as `below` draws them, where the first are equal.
        """
        lanes, last = self.eighths(stage), limit - 1
        self._draw(rare_stage, ("sparse", 1))
        return lanes, self._reader.below(rare_stage, *self._at, self._first, lanes, last, last >> 56)[0]

    def sparse(self, stage, per_row, places):
        """Return one word for each place row * per_row + slot, the row counted within these rows."""
        self._draw(stage, ("sparse", per_row))
        places = np.asarray(places)
        if places.dtype.kind != "u" and len(places) and int(places.min()) < 0:
            raise ValueError(_OTHER_ROWS)
        return self._reader.sparse(stage, *self._at, places, self._first * per_row, per_row * self._n_rows)

    def scratch(self, size, dtype):
        """Return working memory of this thread, reused from block to block; contents are whatever was left there."""
        return self._reader.scratch(size, dtype)


def fresh_words(n_words):
    """Return the bytes of words that nobody had before: the system's, or a stream under a key that is forgotten."""
    if n_words <= _FEW:
        return os.urandom(8 * n_words)
    key, n_bytes = os.urandom(32), 8 * n_words
    if n_bytes <= _OWN_MOST and rare.HAS_AES:
        return rare.fresh(key, 0, _OFFSET, n_bytes + 15 & -16)[:n_bytes]  # (a counter names two words)
    return WordReader(key).dense(0, 0, 0, 0, n_words).tobytes()


_OFFSET = 2  # of the position, see above
_OTHER_ROWS = "places must belong to these rows, because other places name words of other rows"


def _fingerprint(key):
    return hashlib.sha256(b"dpestim" + key).hexdigest()[:32]


def _counter(stage, column, block, position=0, pairs=1):
    """Return the counter of a position, or raise where this many pairs of words from there would leave the block."""
    if not (0 <= column < 1 << 24 and 0 <= block < 1 << 32 and 0 <= position <= (1 << 64) - _OFFSET - pairs):
        raise ValueError("X must have fewer columns or rows, because the counter of random words would overflow: "
                         "process X in parts")
    return (stage << 120 | column << 96 | block << 64 | position + _OFFSET).to_bytes(16, "big")


@lru_cache(maxsize=1)
def _ciphers():
    """Return what is used of `cryptography`, imported when more than few words are drawn, and zeros to encrypt.

    These are never written to: the system keeps one page of them, whatever their number.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return SimpleNamespace(Cipher=Cipher, AES=algorithms.AES, CTR=modes.CTR, ECB=modes.ECB, GCM=modes.GCM,
                           zeros=memoryview(bytes(_CHUNK)))


@lru_cache(maxsize=1)
def _gcm_is_faster():
    """Tell whether the processor has what OpenSSL's fast GCM needs, and OpenSSL takes such nonces.

    Of zeros under a key and a nonce of zeros it must make what counter mode makes of them.
    """
    from dpestim._core import build  # (a library, which few words do without)

    modes = _ciphers()
    try:
        encryptor = modes.Cipher(modes.AES(bytes(32)), modes.GCM(bytes(12))).encryptor()
        return build.VECTOR_AES and encryptor.update(bytes(len(_KNOWN))) == _KNOWN
    except Exception:  # whatever a provider with rules of its own raises: CTR has the same words
        return False


#: The first words under a key of zeros and a nonce of zeros, as counter mode makes them (a test compares).
_KNOWN = bytes.fromhex("cea7403d4d606b6e074ec5d3baf39d18726003ca37a62a74d1a2f58e7506358e"
                       "dd4ab1284d4ae17b41e85924470c36f74741cbe181bb7f30617c1de3ab0c3a1f")
