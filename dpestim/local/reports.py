"""Shapes that reports come in: a code, packed bits, fields. Mixins, which stand left of the law's base."""

import math

import numpy as np

from dpestim.local.fields import Field, bits_for

#: Reports whose fields are compared together.
_TOGETHER = 64


class CodeReports:
    """A report is a code below `n_counts`, and counts are a histogram of the codes."""

    report_width = 1

    @property
    def report_bits(self):
        """Information sent, in bits."""
        return math.log2(self.n_counts)

    @property
    def fields(self):
        """The code."""
        return (Field("code", bits_for(self.n_counts), self.n_counts),)

    def check_reports(self, reports):
        """Refuse codes outside the alphabet."""
        if int(reports.max()) >= self.n_counts:
            raise ValueError(f"a report must be a code below {self.n_counts}")

    def count(self, reports, counts):
        """Add a histogram of the reports."""
        from dpestim._core import grr  # (each library is loaded for reports of its kind)

        if not grr.count(reports.reshape(-1), counts):
            self.check_reports(np.full((1, 1), self.n_counts))


class PackedBits:
    """A report is ceil(d / 8) bytes of bits, bit j at byte j // 8, lowest first; counts are the sums of the bits."""

    report_dtype = np.dtype(np.uint8)

    @property
    def report_width(self):
        """Bytes a report."""
        return (self.n_categories + 7) // 8

    @property
    def report_bits(self):
        """Bits sent."""
        return self.n_categories

    @property
    def fields(self):
        """The bits."""
        return (Field("bits", 1, None, self.n_categories, packed=True),)

    def check_reports(self, reports):
        """Refuse bits beyond the domain."""
        if self.n_categories % 8 and (reports[:, -1] >> (self.n_categories % 8)).any():
            raise ValueError(f"a report must have no bits beyond the {self.n_categories} of the domain")

    def count(self, reports, counts):
        """Add the column sums of the bits."""
        from dpestim._core import unary

        padded = np.zeros(8 * self.report_width, np.int64)
        unary.count(reports, padded)
        counts += padded[: self.n_categories]

    def support(self, reports):
        """Return the unpacked bits."""
        return np.unpackbits(reports, axis=1, bitorder="little", count=self.n_categories)


class FieldReports:
    """A report is several numbers, its fields; `field_limits` names what each must stay below (None: anything)."""

    #: one entry a field
    field_limits = ()
    #: what each is called; where there is no name, "field 0" and so on
    field_names = ()

    @property
    def report_width(self):
        """Fields a report."""
        return len(self.field_limits)

    @property
    def fields(self):
        """The numbers: of as many bits as their limits need, or all of them."""
        all_bits = 8 * np.dtype(self.report_dtype).itemsize
        names = self.field_names or [f"field {number}" for number in range(self.report_width)]
        return tuple(Field(name, all_bits if limit is None else bits_for(limit), limit)
                     for name, limit in zip(names, self.field_limits))

    def check_reports(self, reports):
        """Refuse fields beyond their limits."""
        if all(limit is None for limit in self.field_limits):
            return
        for number, (limit, most) in enumerate(zip(self.field_limits, largest_of(reports))):
            if limit is not None and int(most) >= limit:
                raise ValueError(f"field {number} of a report must be below {limit}")


def largest_of(reports):
    """Return the largest number in each column of reports, in one pass over them where they lie side by side."""
    n, width = reports.shape
    at = n - n % _TOGETHER if reports.flags.c_contiguous else 0
    parts = [reports[at:, number].max(initial=0) for number in range(width)]
    if not at:
        return parts
    # (rows of many reports each: of rows of a few numbers NumPy takes the maximum one by one)
    rows = reports[:at].reshape(-1, _TOGETHER * width).max(axis=0).reshape(_TOGETHER, width)
    return np.maximum(rows.max(axis=0), parts)
