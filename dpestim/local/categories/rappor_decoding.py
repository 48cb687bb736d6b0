"""What RAPPOR's bits say of candidates: a regression of the bits on their Bloom filters, and its errors."""

from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from scipy.optimize import nnls

from dpestim.local import pivots
from dpestim.local.categories.regression import BitRegression

#: Candidates that are decoded at a time: what they take is a square matrix.
LARGEST_DESIGN = 1 << 12
#: Candidates of an open column are decoded together up to this share of the bits of all cohorts; more would leave too
#: little to tell them apart by, and errors would grow without end as the share nears 1.
TOGETHER = 3 / 8


class DecodedBits:
    """Frequencies from counts of bits by cohort; the law brings `masks`, `bit_one` and `bit_zero`."""

    def _bits(self, codes):
        """Return the Bloom filters of codes, unpacked: (cohorts, codes, n_bits), uint8."""
        masks = [self.masks(codes, np.full(len(codes), j)) for j in range(self.n_cohorts)]
        return np.unpackbits(np.stack(masks), axis=2, bitorder="little")

    def design(self, codes):
        """Return the regression of bits on these candidates; ValueError where bits cannot tell them apart.

        Where the domain is open the bits of all values that are not among them are one more column.
        """
        if len(codes) > LARGEST_DESIGN:
            raise ValueError(f"categories: RAPPOR decodes at most {LARGEST_DESIGN} candidates at a time")
        others = self.n_hashes / self.n_bits if self.is_open else None
        return BitRegression(self._bits(codes), float(self.bit_one), float(self.bit_zero), others)

    @cached_property
    def _all(self):
        return self.design(range(self.n_categories) if self.is_open else np.arange(self.n_categories))

    def estimate(self, counts, n):
        """Return the unbiased frequencies of all candidates."""
        return self._all.estimate(self._rows(counts), n)

    def reach(self, goal):
        """Return the least and the most that one report adds to n times the estimated share of some values, floats.

        All bits may be set that speak for them, in the cohort where these say most.
        """
        if self.is_open:
            raise ValueError("categories must be listed for this audit: estimates of an open column depend on the "
                             "candidates that are asked for together")
        told = self._all.inverse[goal].sum(axis=0).reshape(self.n_cohorts, self.n_bits)
        one, zero = float(self.bit_one), float(self.bit_zero)
        base, unit = -zero * told.sum(axis=1), self.n_cohorts / (one - zero)
        return (float((base + np.minimum(told, 0).sum(axis=1)).min()) * unit,
                float((base + np.maximum(told, 0).sum(axis=1)).max()) * unit)

    knows_reports = True

    def known_counts(self, counts, n):
        """Return how often each cohort was drawn, and how many bits are 1 in all reports together."""
        rows = self._rows(counts)
        parts = ((n * (self.n_bits - self.n_hashes), float(self.bit_zero)), (n * self.n_hashes, float(self.bit_one)))
        drawn = pivots.cells("cohorts that were drawn", rows[:, -1], np.full(len(rows), 1 / len(rows)), n)
        return [pivots.total("bits that are 1", int(rows[:, :-1].sum()), parts), *([drawn] if len(rows) > 1 else [])]

    def known_of(self, reports):
        """Return the same, and how many bits are 1 in each report."""
        counts = np.zeros(self.n_counts, np.int64)
        self.count(reports, counts)
        law = pivots.law_of_ones(self.n_bits - self.n_hashes, float(self.bit_zero), self.n_hashes, float(self.bit_one))
        each = pivots.values("ones in a report", pivots.ones_of(reports[:, 1:]), law)
        return [each, *self.known_counts(counts, len(reports))]

    def non_negative(self, counts, n):
        """Return the frequencies of all candidates by regression without negative ones; biased where one is 0."""
        return _non_negative(self, counts.tobytes(), n).copy()

    def estimate_of(self, codes, counts, n):
        """Return the frequencies of these candidates: of a list the entries of `estimate`."""
        if self.is_open:
            codes, back = np.unique(codes, return_inverse=True)
            rows, parts = self._rows(counts), self._parts(len(codes))
            return np.concatenate([self.design(codes[part]).estimate(rows, n) for part in parts])[back]
        return self.estimate(counts, n)[codes]

    def _parts(self, d):
        """Return slices of d candidates that are decoded together: few enough for the bits to tell them apart well.

        Those of the other parts are values that nobody asks for. Which candidates go together their hashes say.
        """
        most = min(LARGEST_DESIGN, max(1, int(self.n_cohorts * self.n_bits * TOGETHER)))
        edges = np.linspace(0, d, -(-d // most) + 1).astype(int)
        return [slice(*each) for each in pairwise(edges)]

    def error_of(self, codes, f, counts, n):
        """Return the standard errors of the frequencies f of these candidates."""
        if self.is_open:
            codes, first, back = np.unique(codes, return_index=True, return_inverse=True)
            rows, f, parts = self._rows(counts), f[first], []
            for part in self._parts(len(codes)):
                design = self.design(codes[part])
                parts.append((*design.line(f[part]), design.unevenness(rows, n)))
            f, (at_zero, slope, more) = f[back], (np.concatenate(each)[back] for each in zip(*parts))
            back = slice(None)
        else:
            (at_zero, slope), back, more = self.variance_line(counts, n), slice(None), 0.0
            at_zero, slope = at_zero[codes], slope[codes]
        squared = np.maximum(at_zero + slope * np.clip(f, 0.0, 1.0), 0.0) / n + more
        return np.sqrt(squared)[back]

    def variance(self, n, f):
        """Return the exact variance of `estimate`, f being the frequencies of all candidates; of one, others alike."""
        f = np.asarray(f, np.float64)
        if f.ndim:
            return f @ self._all.variances / n
        at_zero, slope = self._all.line(np.full(self.n_categories, 1 / self.n_categories))
        return (at_zero + slope * f) / n

    def variance_line(self, counts, n):
        """Return the lines of n times the variance: what others hold is as the counts have it."""
        return self._all.line(self.estimate(counts, n))

    def _rows(self, counts):
        return counts.reshape(self.n_cohorts, self.n_bits + 1)


@lru_cache(maxsize=8)  # (the solver takes long, and every attribute asks for its answer)
def _non_negative(law, counts, n):
    """Return the regression without negative frequencies from the bytes of counts."""
    design, wanted = law._all.weighted(law._rows(np.frombuffer(counts, np.int64)), n)
    return nnls(design, wanted)[0]
