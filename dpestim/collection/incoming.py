"""Reports that come in: what is wrong with each, as a reason, and the counts of those with which nothing is.

A `Block` holds payloads of one survey, as far as they could be read, and a reason for each that could not. A `Tally`
is what one transaction adds: counts of all that a client could have sent, and numbers of all else. No step raises for
the content of a report, and none puts it into a message.
"""

import datetime
import zlib
from collections import Counter
from typing import NamedTuple

import numpy as np

from dpestim.collection import messages

MALFORMED, TRUNCATED, FOREIGN, NEWER, DAMAGED = "malformed", "truncated", "foreign", "newer", "damaged"
DATES, IMPOSSIBLE, DUPLICATE, REPEATED = "outside dates", "impossible", "duplicate", "repeated batch"
#: Why a report was not counted.
REASONS = {
    MALFORMED: "bytes that are no report",
    TRUNCATED: "the beginning of a report, or of a file",
    FOREIGN: "a report to another survey",
    NEWER: "of a newer version of the format",
    DAMAGED: "the checksum is wrong",
    DATES: "received before the survey began, or after its end",
    IMPOSSIBLE: "no client of this survey could have sent it",
    DUPLICATE: "its nonce came before, within the window",
    REPEATED: "its batch was counted before, under another name or none",
}
#: Each reason as a small number; 0 is none.
CODES = {reason: code for code, reason in enumerate(REASONS, 1)}
_NAMES = ["", *REASONS]
#: Bytes of payload that are examined at a time, and rows at most.
BLOCK_BYTES, BLOCK_ROWS = 1 << 24, 1 << 20

#: The key of digests of nonces: the same everywhere, as states are merged.
_PUBLIC = b"dpestim: nonces of reports, v. 1"
#: The codes of reasons that messages are refused for.
_OF_MESSAGES = np.array([CODES[reason] if reason else 0 for reason in messages.REASONS], np.uint8)


class Added(NamedTuple):
    """What became of a batch, of a file, or of all files of a scan."""

    #: Reports that were counted.
    n: int = 0
    #: Reports that were not counted, by reason.
    rejected: dict = {}
    #: Batches, or files, that were known before, of which nothing was counted again.
    known: int = 0
    #: Bytes at the end of growing files that are no whole line yet: they are read again.
    waiting: int = 0

    def __add__(self, other):
        rejected = Counter(self.rejected)
        rejected.update(other.rejected)
        return Added(self.n + other.n, dict(rejected), self.known + other.known, self.waiting + other.waiting)


class Block:
    """Reports that came in together, before any is looked at.

    Parameters
    ----------
    payload : ndarray of uint8, shape (n, report_bytes)
    reasons : ndarray of uint8, shape (n,), default=None
        0, or the code of a reason for a payload that means nothing.
    nonces : ndarray of uint64, shape (n,), default=None
    has_nonce : ndarray of bool, shape (n,), default=None
        None: all, where there are nonces.
    days : ndarray of int64, shape (n,), default=None
        Days since 1970 on which they were received; the smallest integer where it is not known.
    raw : callable, default=None
        ``raw(row)`` gives the bytes that came.
    """

    def __init__(self, payload, reasons=None, nonces=None, has_nonce=None, days=None, raw=None):
        self.payload, self.nonces, self.days, self.has_nonce = payload, nonces, days, has_nonce
        self._reasons = reasons
        self._raw = raw  # (no closure of this object: a circle would keep its memory until somebody looks for circles)

    def __len__(self):
        return len(self.payload)

    def raw(self, row):
        """Return the bytes that came."""
        return self.payload[row].tobytes() if self._raw is None else self._raw(row)

    def came_as(self, raw):
        """Take another function for `raw`."""
        self._raw = raw

    @property
    def reasons(self):
        """The codes of reasons, made when they are asked for."""
        if self._reasons is None:
            self._reasons = np.zeros(len(self.payload), np.uint8)
        return self._reasons

    def fine(self):
        """Return the rows that have no reason, or None: all."""
        return None if self._reasons is None or not self._reasons.any() else np.flatnonzero(self._reasons == 0)

    def reject(self, mask, reason):
        """Give a reason to those of a mask that have none yet."""
        if mask.any():
            self.reasons[mask & (self.reasons == 0)] = CODES[reason]


def row_count(survey):
    """Return how many reports of a survey make a block."""
    return max(1, min(BLOCK_ROWS, BLOCK_BYTES // survey.report_bytes))


def of_messages(survey, given):
    """Return the block of messages: bytes of any length, or rows of an array of one length."""
    found = messages.opened(given, survey.id, survey.report_bytes)
    reasons = _OF_MESSAGES[found.reasons]
    raw = (lambda row: given[row].tobytes()) if isinstance(given, np.ndarray) else given.__getitem__
    block = Block(found.payloads, reasons, has_nonce=found.has_nonce, raw=raw)
    for row in np.flatnonzero((reasons == CODES[MALFORMED]) | (reasons == CODES[DAMAGED])).tolist():
        fault = _fault(block.raw(row), survey)
        if fault == TRUNCATED or reasons[row] == CODES[MALFORMED]:
            reasons[row] = CODES[fault]
    if found.has_nonce.any():
        block.nonces = found.nonces.view("<u8").ravel()
    return block


def _fault(message, survey):
    """Return why bytes are no message of this survey: often they are cut off, or of one with longer reports."""
    head, own = messages.MAGIC + bytes([messages.VERSION]), bytes.fromhex(survey.id)
    if not message or message[:4] != head[: len(message)] or message[4:5] > b"\1":
        return MALFORMED
    said = message[5 : messages.HEAD_BYTES]
    if said != own[: len(said)]:
        whole = zlib.crc32(message[:-4]) == int.from_bytes(message[-4:], "little")
        return FOREIGN if whole and len(message) >= messages.HEAD_BYTES + 4 else MALFORMED
    size = messages.HEAD_BYTES + messages.NONCE_BYTES * (message[4:5] == b"\1") + survey.report_bytes + 4
    return TRUNCATED if len(message) < size else MALFORMED


def day_of(date):
    """Return a date, or its ISO form, as days since 1970; None stays."""
    return None if date is None else int(np.datetime64(date, "D").astype(np.int64))


def today():
    """Return the day, in UTC, as days since 1970."""
    return day_of(datetime.datetime.now(datetime.UTC).date())


class Examiner:
    """Examines blocks of one survey, without a lock and without a file.

    Parameters
    ----------
    survey : Survey
    keeps_nonces : bool
        Whether nonces matter.
    keeps_rejected : bool
        Whether the bytes of what is rejected are kept.
    """

    def __init__(self, survey, keeps_nonces, keeps_rejected):
        self.survey, self.keeps_nonces, self.keeps_rejected = survey, keeps_nonces, keeps_rejected
        self.columns, self.n_jobs = survey.layout.columns, None
        # (a day is another one elsewhere on earth)
        first, last = day_of(survey.valid_from), day_of(survey.valid_until)
        self.first = None if first is None else first - 1
        self.last = None if last is None else last + 1

    def add(self, block, tally, day):
        """Add what a block says, or why it is not counted; `day`: of those that do not say when they were received."""
        self._check_dates(block, day)
        at = block.fine()
        if len(block) if at is None else len(at):
            reports, fine = self.reports_of(block.payload if at is None else block.payload[at])
            if fine is not None:
                at = np.arange(len(block)) if at is None else at
                block.reasons[at[~fine]] = CODES[IMPOSSIBLE]
                at = at[fine]
            if reports is not None:
                tally.add_counts(self.columns.count(reports, self.n_jobs), len(reports))
                self._note_nonces(block, at, reports, tally)
        self._note_rejected(block, tally)

    def _note_nonces(self, block, at, reports, tally):
        """Keep the reports with nonces, of these rows, until the nonces of others are known."""
        if not self.keeps_nonces or block.nonces is None:
            return
        rows = np.arange(len(block)) if at is None else at
        if block.has_nonce is not None:
            own = block.has_nonce[rows]
            rows, reports = rows[own], reports[own]
        if len(rows):
            tally.nonces.append((digests_of(block.nonces[rows]), reports, rows, block.raw))

    def _note_rejected(self, block, tally):
        if block.fine() is None:
            return
        bad = np.flatnonzero(block.reasons)
        codes = block.reasons[bad]
        for code in np.unique(codes).tolist():
            tally.rejected[_NAMES[code]] += int((codes == code).sum())
        if self.keeps_rejected:
            tally.kept += [(_NAMES[code], block.raw(row)) for code, row in zip(codes.tolist(), bad.tolist())]

    def reports_of(self, payload):
        """Return (reports as the columns take them, None), or (those that a client could have sent, a mask of them)."""
        layout, fine = self.survey.layout, None
        try:
            return self.columns.check_reports(layout.unpack(payload)), None
        except ValueError:
            fine = layout.possible(payload)
        if not fine.any():
            return None, fine
        reports = layout.unpack(payload[fine])
        allowed = self.columns.possible(reports)
        fine[fine] = allowed
        return reports[allowed], fine

    def _check_dates(self, block, day):
        if self.first is None and self.last is None:
            return
        days = np.full(len(block), day) if block.days is None else np.where(block.days == NO_DAY, day, block.days)
        outside = np.zeros(len(block), bool)
        if self.first is not None:
            outside |= days < self.first
        if self.last is not None:
            outside |= days > self.last
        block.reject(outside, DATES)

    def remove_duplicates(self, tally, take):
        """Take out of a tally the reports whose nonces are known: ``take(digests)`` says which."""
        for digests, reports, rows, raw in tally.nonces:
            seen = take(digests)
            if seen.any():
                n = int(seen.sum())
                tally.add_counts([-counts for counts in self.columns.count(reports[seen], self.n_jobs)], -n)
                tally.rejected[DUPLICATE] += n
                if self.keeps_rejected:
                    tally.kept += [(DUPLICATE, raw(row)) for row in rows[seen].tolist()]


#: A day that is not known.
NO_DAY = np.iinfo(np.int64).min


def digests_of(nonces):
    """Return 64-bit digests of nonces: half of AES of a nonce and zeros, by a public key.

    Without the other half nobody can decrypt it, so that a nonce is found by trying all of them only. Whoever knows the
    nonce of a batch of one report can try all reports against the identity of the batch. Two digests of n are equal by
    chance with a probability of n^2 / 2^65, as two nonces are.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    blocks = np.zeros((len(nonces), 2), "<u8")
    blocks[:, 0] = nonces
    found = Cipher(algorithms.AES(_PUBLIC), modes.ECB()).encryptor().update(blocks.tobytes())
    return np.frombuffer(found, "<i8")[::2].astype(np.int64)


class Tally:
    """What one transaction adds: counts of n reports, rejected ones by reason, and nonces that are to be compared."""

    def __init__(self):
        self.counts, self.n, self.rejected, self.kept, self.nonces = None, 0, Counter(), [], []

    def add_counts(self, counts, n):
        """Add vectors of counts."""
        self.counts = list(counts) if self.counts is None else [a + b for a, b in zip(self.counts, counts)]
        self.n += n
