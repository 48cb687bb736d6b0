"""The payload of a report: the numbers of a row's columns as bits, without gaps, and back.

A row that reports all of its columns has their fields side by side. One that draws k of them has k slots of equal
length: the number of a column, the fields of its law, and zeros. Bits are numbered from the lowest bit of the first
byte on; a number lies with its lowest bit first; zeros fill the last byte.
"""

from functools import cached_property

import numpy as np

from dpestim._core import wire
from dpestim.local.fields import bits_for
from dpestim.local.sampling import places_of

_HERE = np.empty(0, np.int64)
#: Rows that are packed or unpacked at a time, where they are checked.
BLOCK_ROWS = 1 << 16


class Layout:
    """Where the bits of a report lie.

    Parameters
    ----------
    columns : dpestim.local.columns.Columns

    Attributes
    ----------
    bits, bytes : int
        Of a payload.
    """

    def __init__(self, columns):
        self.columns, self.n_slots = columns, columns.n_sampled
        self.fields = [list(law.fields) for law in columns.laws]
        self._widths = [_widths(law, fields) for law, fields in zip(columns.laws, self.fields)]
        sizes = [int(widths.sum(dtype=np.int64)) for widths in self._widths]
        if self.n_slots is None:
            self.bits = sum(sizes)
        else:
            self._number_bits = bits_for(len(columns))
            self._slot_bits = self._number_bits + max(sizes)
            self.bits = self.n_slots * self._slot_bits
        self.bytes = -(-self.bits // 8)

    @cached_property
    def is_memory(self):
        """Whether the bytes of a payload are those of a report in memory, so that nothing needs to be packed."""
        size = self.columns.dtype.itemsize
        if self.n_slots is not None or self.columns.dtype.newbyteorder("=").str[0] == ">":
            return False
        widths = np.concatenate(self._widths)
        return bool((widths[:-1] == 8 * size).all() and -(-int(widths[-1]) // 8) == size)

    def pack(self, reports):
        """Return the payloads of checked reports, an (n, bytes) array of uint8."""
        reports = np.ascontiguousarray(reports)
        if self.is_memory:
            return reports.view(np.uint8).reshape(len(reports), self.bytes)
        out = np.zeros((len(reports), self.bytes), np.uint8)
        if self.n_slots is None:
            wire.pack(reports, np.concatenate(self._widths), _HERE, _HERE, out)
        else:
            slots = reports.reshape(-1, self.columns.slot_width)
            for number, at in enumerate(places_of(slots[:, 0], len(self.columns))):
                if len(at):
                    widths = self._slot_widths(number)
                    part = np.ascontiguousarray(slots[at, : len(widths)])
                    wire.pack(part, widths, at // self.n_slots, at % self.n_slots * self._slot_bits, out)
        return out

    def unpack(self, payloads):
        """Return the reports of payloads, an (n, bytes) array of uint8; ValueError for what `pack` never gives.

        What the laws allow is for `Columns.check_reports` to say.
        """
        payloads = np.ascontiguousarray(payloads)
        if self.bits % 8 and len(payloads) and (payloads[:, -1] >> (self.bits % 8)).any():
            raise ValueError("a report must have zeros behind its last bit")
        dtype, width = self.columns.dtype, self.columns.report_width
        if self.is_memory:
            return payloads.view(dtype).reshape(len(payloads), width)
        if self.n_slots is None:
            out = np.empty((len(payloads), width), dtype)
            wire.unpack(payloads, np.concatenate(self._widths), _HERE, _HERE, out)
            return out
        drawn = self._drawn(payloads)
        if int(drawn.max()) >= len(self.columns):
            raise ValueError(f"the columns of a report must be numbers below {len(self.columns)}")
        out = self._unpack_slots(payloads, drawn)
        if not np.array_equal(self.pack(out), payloads):
            raise ValueError("a report must have zeros behind the bits of each column")
        return out

    def possible(self, payloads):
        """Return a mask: which payloads `unpack` takes."""
        out = np.ones(len(payloads), bool)
        if self.bits % 8:
            out &= payloads[:, -1] >> (self.bits % 8) == 0
        if self.n_slots is not None:
            drawn = self._drawn(np.ascontiguousarray(payloads))
            out &= (drawn.reshape(len(payloads), -1) < len(self.columns)).all(axis=1)
            rows = np.flatnonzero(out)
            if len(rows):
                left = np.ascontiguousarray(payloads[rows])
                again = self.pack(self._unpack_slots(left, self._drawn(left)))
                out[rows] = (again == left).all(axis=1)
        return out

    def _drawn(self, payloads):
        """Return the numbers of the columns of all slots, an (n * k, 1) array."""
        n, k = len(payloads), self.n_slots
        drawn = np.empty((n * k, 1), self.columns.dtype)
        wire.unpack(payloads, np.array([self._number_bits], np.uint8), *self._places(n), drawn)
        return drawn

    def _places(self, n):
        """Return (the row, the first bit) of each slot of n reports."""
        return np.repeat(np.arange(n), self.n_slots), np.tile(np.arange(self.n_slots) * self._slot_bits, n)

    def _unpack_slots(self, payloads, drawn):
        n = len(payloads)
        out = np.zeros((len(drawn), self.columns.slot_width), self.columns.dtype)
        rows, starts = self._places(n)
        for number, at in enumerate(places_of(drawn[:, 0], len(self.columns))):
            if len(at):
                widths = self._slot_widths(number)
                part = np.empty((len(at), len(widths)), self.columns.dtype)
                wire.unpack(payloads, widths, rows[at], starts[at], part)
                out[at, : len(widths)] = part
        return out.reshape(n, self.columns.report_width)

    def _slot_widths(self, number):
        return np.concatenate([np.array([self._number_bits], np.uint8), self._widths[number]])


def _widths(law, fields):
    """Return the bits of each number of a law's report, or raise ValueError for a law that contradicts itself."""
    widths = [bits for field in fields for bits in field.widths()]
    most = 8 * np.dtype(law.report_dtype).itemsize
    if len(widths) != law.report_width or not all(0 <= bits <= most for bits in widths):
        raise ValueError(f"fields of {type(law).__name__} must be those of the {law.report_width} numbers of a report")
    return np.array(widths, np.uint8)
