"""The payload of a report: the numbers of a row's columns as bits, without gaps, and back.

A row that reports all of its columns has their fields side by side. One that draws k of them has k slots of equal
length: the number of a column, the fields of its law, and zeros. Bits are numbered from the lowest bit of the first
byte on; a number lies with its lowest bit first; zeros fill the last byte.
"""

from functools import cached_property
from itertools import chain

import numpy as np

from dpestim._core import wire
from dpestim.local.fields import bits_for

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
        widths = [_widths(law, fields) for law, fields in zip(columns.laws, self.fields)]
        sizes = [sum(own) for own in widths]
        if self.n_slots is None:
            self._widths, self.bits = np.array([list(chain(*widths))], np.uint8), sum(sizes)
        else:
            self._widths = np.array([own + [0] * (columns.slot_width - 1 - len(own)) for own in widths], np.uint8)
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
        widths = self._widths[0]
        return bool((widths[:-1] == 8 * size).all() and -(-int(widths[-1]) // 8) == size)

    def pack(self, reports):
        """Return the payloads of checked reports, an (n, bytes) array of uint8."""
        reports = np.ascontiguousarray(reports)
        if self.is_memory:
            return reports.view(np.uint8).reshape(len(reports), self.bytes)
        out = np.zeros((len(reports), self.bytes), np.uint8)
        if self.n_slots is None:
            wire.pack(reports, self._widths, out)
        else:
            slots = reports.reshape(-1, self.columns.slot_width)
            wire.pack_slots(slots, self._widths, self._number_bits, self._slot_bits, self.n_slots, out)
        return out

    def unpack(self, payloads):
        """Return the reports of payloads, an (n, bytes) array of uint8; ValueError for what `pack` never gives.

        What the laws allow is for `Columns.check_reports` to say.
        """
        reports, good = self._read(payloads)
        if not good.all():
            raise ValueError("a report must have zeros behind the bits of each column, and no other columns than there "
                             "are")
        return reports

    def possible(self, payloads):
        """Return a mask: which payloads `unpack` takes."""
        return self._read(payloads)[1]

    def _read(self, payloads):
        """Return (reports, a mask: which of them `pack` could have written)."""
        payloads = np.ascontiguousarray(payloads)
        n, dtype, width = len(payloads), self.columns.dtype, self.columns.report_width
        if self.n_slots is not None:
            slots, wrong = np.empty((n * self.n_slots, self.columns.slot_width), dtype), np.empty(n, np.uint8)
            wire.unpack_slots(payloads, self._widths, self._number_bits, self._slot_bits, self.n_slots, slots, wrong)
            return slots.reshape(n, width), wrong == 0
        good = payloads[:, -1] >> (self.bits % 8) == 0 if self.bits % 8 else np.ones(n, bool)
        if self.is_memory:
            return payloads.view(dtype).reshape(n, width), good
        out = np.empty((n, width), dtype)
        wire.unpack(payloads, self._widths, out)
        return out, good


def _widths(law, fields):
    """Return the bits of each number of a law's report, or raise ValueError for a law that contradicts itself."""
    widths = [bits for field in fields for bits in field.widths()]
    most = 8 * np.dtype(law.report_dtype).itemsize
    if len(widths) != law.report_width or not all(0 <= bits <= most for bits in widths):
        raise ValueError(f"fields of {type(law).__name__} must be those of the {law.report_width} numbers of a report")
    return widths
