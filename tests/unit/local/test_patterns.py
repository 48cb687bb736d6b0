"""The law of eight bits at a time: exact by enumeration, on every side of every boundary, and as drawn."""

from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import pytest
from scipy import stats

from dpestim._core import unary as kernel
from dpestim.local import patterns
from dpestim.local.categories.unary import OUE, SUE
from dpestim.local.patterns import BitPatterns, bit_patterns
from dpestim.local.patterns import draw_patterns as draw
from dpestim.privacy import category_weights, exact
from dpestim.rng import Stage, WordSource
from dpestim.words_of_one import WordsOfOne

WHOLE = 1 << 512


def thresholds():
    """Those of both mechanisms, tiny to enormous epsilon, and ends of the range."""
    some = [exact.canonical_epsilon(e) for e in (1e-9, 0.1, 1.0, 5.0, 12.0, 40.0)]
    of_laws = {f(e)[1] for e in some for f in (category_weights.oue_thresholds, category_weights.sue_thresholds)}
    return sorted({1, 12_345, (1 << 63) - 1} | of_laws)


def probability(pattern, threshold):
    """The product law, bit by bit."""
    one, result = Fraction(threshold, 1 << 64), Fraction(1)
    for bit in range(8):
        result *= one if pattern >> bit & 1 else 1 - one
    return result


def owners(threshold):
    """Return, from the product law alone, the number of cells of each pattern and the boundaries out of 2**512."""
    weights = [int(probability(s, threshold) * WHOLE) for s in range(256)]
    assert sum(weights) == WHOLE
    cells = [w >> 496 for w in weights[:-1]] + [0]
    left = [w - (m << 496) for w, m in zip(weights, cells)]
    return cells, list(accumulate(left, initial=sum(cells) << 496))


@pytest.mark.parametrize("threshold", thresholds())
@pytest.mark.no_kernel
def test_every_pattern_has_exactly_its_share_of_all_numbers(threshold):
    law = BitPatterns(threshold)
    cells, ends = owners(threshold)
    assert ends[-1] == WHOLE
    assert np.bincount(law.table[: sum(cells)], minlength=256).tolist() == cells
    assert (law.table[sum(cells) :] == 255).all()
    assert law.boundaries == ends[1:-1]
    assert law.edges.tolist() == [b >> 448 for b in law.boundaries]
    # counted once more by what the code says of numbers: cells by the table, the others by the boundaries
    edges = [sum(cells) << 496, *law.boundaries, WHOLE]
    for s, (a, b) in enumerate(pairwise(edges)):
        mine = (int((law.table[: sum(cells)] == s).sum()) << 496) + b - a
        assert Fraction(mine, WHOLE) == probability(s, threshold)
    assert len(law.table) - sum(cells) < 256 + 256  # open cells: less than one a pattern, and those of 255


@pytest.mark.parametrize("width", [1, 15, 16, 31, 32, 33, 63, 64, 65, 130])
def test_every_cell_is_looked_up_alike_in_records_of_every_width(width):
    per = 4 * -(-width // 4)
    for threshold in (1, 1 << 62, int(0.2689 * 2**64), (1 << 63) - 1, 1 << 63):
        law = bit_patterns(threshold)
        cells = np.resize(np.arange(1 << 16, dtype=np.uint16), -(-(1 << 16) // per) * per).reshape(-1, per)
        cells = np.ascontiguousarray(cells[:, ::-1])
        words = np.zeros((len(cells), 1 + per // 4), np.uint64)
        words[:, 1:] = cells.view(np.uint64)
        out, ties = np.full((len(words) + 1, width), 170, np.uint8), np.empty(len(words) * width + 1, np.uint32)
        n_ties = kernel.draw(words, law.table, law.columns, out[:-1], ties)
        expected = law.table[cells[:, :width]]
        assert np.array_equal(out[:-1], expected)
        assert (out[-1] == 170).all()
        assert ties[:n_ties].tolist() == np.flatnonzero(expected == 255).tolist()


def test_bits_that_are_mostly_ones_are_the_others_turned():
    """Beyond 1/2, where RAPPOR may go, and up to a probability of 1."""
    for threshold in (1 << 64, (1 << 63) + 1, 3 << 62):
        out, turned = np.empty((2, 50, 20), np.uint8)
        draw(threshold, WordSource(1).reader().words(0, 0, 0, 50), out)
        draw((1 << 64) - threshold, WordSource(1).reader().words(0, 0, 0, 50), turned)
        assert (out == 255 - turned).all()


class Digits:
    """Words of which a test chooses all 512 digits of every group; in place of a `dpestim.rng.Words`."""

    def __init__(self, numbers, width, true_word):
        self.rows = [numbers[i : i + width] for i in range(0, len(numbers), width)]
        self.width, self.true_word, self.asked = width, true_word, []

    def dense(self, stage, per_row):
        assert stage is Stage.RESPONSE
        assert per_row == 1 + -(-self.width // 4)
        out = np.zeros((len(self.rows), per_row), np.uint64)
        out[:, 0] = self.true_word
        for words, row in zip(out, self.rows):
            words[1:].view(np.uint16)[: self.width] = [u >> 496 for u in row]
        return out.reshape(-1)

    def sparse(self, stage, per_row, places):
        assert stage is Stage.RARE
        assert per_row == 8 * self.width
        self.asked += np.asarray(places).tolist()
        return np.array([self.rare(*divmod(int(place), 8)) for place in places], np.uint64)

    def rare(self, group, word):
        """The first brings 48 digits and 16 that nobody may look at, the others bring 64."""
        u = self.rows[group // self.width][group % self.width]
        if word == 0:
            return ((u >> 448) % (1 << 48)) << 16 | 0xBEEF
        return (u >> (448 - 64 * word)) % (1 << 64)

    def scratch(self, size, dtype):
        return np.empty(size, dtype)


def drawn(randomizer, numbers, true_word=0):
    """Return the reports of records whose groups have these numbers, the true bit being bit 0, and what was asked."""
    words = Digits(numbers, randomizer.report_width, true_word)
    out = np.full((len(words.rows), randomizer.report_width), 170, np.uint8)
    randomizer.privatize(np.zeros(len(out), randomizer.code_dtype), words, out)
    return out, words.asked


@pytest.mark.parametrize("cls", [OUE, SUE])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 12.0, 40.0])
@pytest.mark.parametrize("d", [24, 19])
def test_reports_change_exactly_at_every_boundary(cls, epsilon, d):
    """512 digits on both sides of all boundaries: with the test above, the exact law of a report."""
    randomizer = cls.make(epsilon, d)
    threshold = randomizer.false_threshold
    law = bit_patterns(threshold)
    edges = owners(threshold)[1]
    rng = np.random.default_rng(0)
    some = [int.from_bytes(rng.bytes(64), "big") for _ in range(300)]
    near = [b + e for b in [*edges, *(a << 496 for a in range(0, 1 << 16, 97))] for e in (-1, 0, 1)]
    tails = [(b, s, int.from_bytes(rng.bytes(64), "big") % (1 << s)) for b in edges[1:-1] for s in (440, 448, 496)]
    near += [b >> s << s | tail for b, s, tail in tails]
    numbers = [u for u in [0, WHOLE - 1, *some, *near] if 0 <= u < WHOLE]
    numbers += [0] * (-len(numbers) % 3)
    expected = [int(law.table[u >> 496]) if u < edges[0] else sum(b <= u for b in edges[1:-1]) for u in numbers]
    for true_word, true_bit in ((randomizer.true_threshold - 1, 1), (randomizer.true_threshold, 0)):
        out, asked = drawn(randomizer, numbers, true_word)
        wanted = np.array(expected, np.uint8).reshape(-1, 3)
        wanted[:, 0] = wanted[:, 0] & 254 | true_bit
        if d % 8:
            wanted[:, 2] &= (1 << d % 8) - 1
        assert out.tolist() == wanted.tolist()
        # each place is asked for once, but for the first word of the groups that 64 digits left open
        left_open = {place // 8 for place in asked if place % 8}
        assert left_open == {
            g for g, u in enumerate(numbers) if law.table[u >> 496] == 255 and u >> 448 in law.edges.tolist()}
        assert sorted(asked) == sorted(
            [8 * g for g, u in enumerate(numbers) if law.table[u >> 496] == 255]
            + [8 * g + k for g in left_open for k in range(8)])


@pytest.mark.parametrize("cls", [OUE, SUE])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 12.0])
@pytest.mark.parametrize("n_spare", [0, 1, 3, 7])
def test_one_record_has_the_report_of_its_digits_wherever_they_come_from(monkeypatch, cls, epsilon, n_spare):
    """On both sides of all boundaries, with fewer spare words than ties, as many, and more."""
    monkeypatch.setattr(patterns, "spare_words", lambda width: n_spare)
    randomizer, rng = cls.make(epsilon, 19), np.random.default_rng(0)
    law = bit_patterns(randomizer.false_threshold)
    edges = owners(randomizer.false_threshold)[1]
    tails = [b >> s << s | int.from_bytes(rng.bytes(64), "big") % (1 << s) for b in edges[1:-1] for s in (440, 448)]
    near = [u for b in edges for u in (b - 1, b, b + 1)] + tails
    numbers = [u for u in near if 0 <= u < WHOLE]
    numbers += [int.from_bytes(rng.bytes(64), "big") for _ in range(100 - len(numbers) % 3 + 2)]
    rng.shuffle(numbers)
    for at in range(0, len(numbers) - 2, 3):
        for true_word in (randomizer.true_threshold - 1, randomizer.true_threshold):
            digits = Digits(numbers[at : at + 3], 3, true_word)
            ties = [g for g in range(3) if law.table[digits.rows[0][g] >> 496] == 255]
            spare = [digits.rare(g, 0) for g in ties[:n_spare]] + [0] * (n_spare - len(ties))
            words, left = WordsOfOne(0), iter(enumerate(ties))
            words._all = digits.dense(Stage.RESPONSE, 2).tobytes() + np.array(spare, np.uint64).tobytes()
            words._end = 2 + n_spare

            def more(size, left=left, digits=digits):
                number, group = next(left)
                assert size == 8 - (number < n_spare)  # a spare word stays the group's first one
                return [digits.rare(group, k) for k in range(8 - size, 8)]

            words.more = more
            out = np.full((1, 3), 170, np.uint8)
            randomizer.privatize(np.zeros(1, randomizer.code_dtype), words, out)
            assert out.tolist() == drawn(randomizer, digits.rows[0], true_word)[0].tolist()


def test_patterns_of_one_record_that_are_mostly_ones(monkeypatch):
    """As RAPPOR's: without a true bit, turned, and with ties that no spare word settles."""
    for threshold in (1 << 64, (1 << 63) + 1, 3 << 62, 1 << 62):
        for n_spare in (0, 2):
            monkeypatch.setattr(patterns, "spare_words", lambda width, n=n_spare: n)
            words, width = WordsOfOne(0), 40
            words._end = 1 + width // 4 + n_spare
            words._all = b"\xff" * 8 * words._end  # all are ties, above all boundaries
            words.more = lambda size: [(1 << 64) - 1] * size
            out = np.full((1, width), 170, np.uint8)
            draw(threshold, words, out)
            assert (out == (255 if threshold <= 1 << 63 else 0)).all() or threshold == 1 << 64
            assert threshold != 1 << 64 or (out == 255).all()


@pytest.mark.parametrize("n_bits", [1, 7, 8, 9, 16, 30])
def test_kernels_of_bits_are_what_arrays_say(n_bits):
    rng, n, width = np.random.default_rng(n_bits), 50, (n_bits + 7) // 8
    words, true, false = (rng.integers(0, 1 << 64, size, np.uint64) for size in ((n, n_bits), n_bits, n_bits))
    words[rng.random(words.shape) < 0.3] = false[0]  # (also exactly a threshold)
    codes, out = rng.integers(0, n_bits, n).astype(np.uint8), np.full((n, width), 170, np.uint8)
    kernel.compare(codes, words.ravel(), np.stack([true, false]), out)
    bits = np.where(np.arange(n_bits) == codes[:, None], words < true, words < false)
    assert np.array_equal(out, np.packbits(bits, axis=1, bitorder="little"))
    kept, said, coins = rng.integers(0, 256, (3, n, 8), np.uint8)
    kept, said = np.ascontiguousarray(kept[:, :width]), np.ascontiguousarray(said[:, :width])
    inside = np.packbits(np.arange(8 * width) < n_bits, bitorder="little")
    for given, expected in ((coins, np.where(np.unpackbits(kept, axis=1), np.unpackbits(coins[:, :width], axis=1),
                                             np.unpackbits(said, axis=1))),
                            (coins[:0], np.unpackbits(kept ^ said, axis=1))):
        out = said.copy()
        kernel.flip(kept, given.view(np.uint64).ravel(), n_bits, out)
        assert np.array_equal(out, np.packbits(expected, axis=1) & inside)


def test_kernels_of_one_record_check_lengths():
    law, words, out = bit_patterns(1 << 62).both, bytes(8 * 9), np.zeros((1, 3), np.uint8)
    assert kernel.draw_one(words, 1, 3, 9, law, False, 23, 24, 0, out) == 0
    for wrong in ((words[1:], 1, 3, 9, law, False, 0, 24, 0, out), (words, 1, 4, 9, law, False, 0, 24, 0, out),
                  (words, -1, 1, 9, law, False, 0, 24, 0, out), (words, 1, 3, 2, law, False, 0, 24, 0, out),
                  (words, 1, 3, 9, law[1:], False, 0, 24, 0, out), (words, 1, 3, 9, law, False, 24, 24, 0, out),
                  (words, 1, 3, 9, law, False, 0, 16, 0, out), (words, 1, 3, 9, law, False, 0, 25, 0, out),
                  (words, 1, 3, 9, law, False, 0, 24, 0, np.zeros((2, 3), np.uint8))):
        with pytest.raises(ValueError, match="differ in length"):
            kernel.draw_one(*wrong)


def draw_patterns(randomizer, n_groups, privatize):
    """Return a histogram of the patterns of groups that hold no true bit."""
    counts = np.zeros(256, np.int64)
    rows = 4096
    reader = WordSource(7).reader()
    for block in range(n_groups // (rows * (randomizer.report_width - 1))):
        out = np.empty((rows, randomizer.report_width), np.uint8)
        privatize(np.zeros(rows, randomizer.code_dtype), reader.words(0, block, 0, rows), out)
        counts += np.bincount(out[:, 1:].ravel(), minlength=256)
    return counts


def chi_square(counts, threshold):
    """The p-value; patterns that are expected fewer than 20 times are one cell."""
    expected = np.array([float(probability(s, threshold)) for s in range(256)]) * counts.sum()
    rare = expected < 20
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1)


@pytest.mark.parametrize(("cls", "epsilon"), [(OUE, 1.0), (SUE, 1.0), (OUE, 2.0)])
def test_drawn_patterns_follow_the_law_and_open_ties_are_noticed(cls, epsilon):
    """n = 2 million groups, alpha = 1e-6; seeded, so that it passes always or never."""
    randomizer = cls.make(epsilon, 8 * 33)
    threshold = randomizer.false_threshold
    law = bit_patterns(threshold)

    def never_settled(codes, words, out):
        dense = words.dense(Stage.RESPONSE, randomizer.n_words).reshape(-1, randomizer.n_words)
        kernel.draw(dense, law.table, law.columns, out, np.empty(out.size + 1, np.uint32))

    assert chi_square(draw_patterns(randomizer, 2_000_000, randomizer.privatize), threshold) > 1e-6
    assert chi_square(draw_patterns(randomizer, 2_000_000, never_settled), threshold) < 1e-12


def test_groups_of_a_record_are_independent():
    """Neighbouring bits across and within groups agree as often as independent ones do."""
    randomizer = SUE.make(0.5, 64)
    n = 200_000
    out = np.empty((n, 8), np.uint8)
    randomizer.privatize(np.zeros(n, np.uint8), WordSource(3).reader().words(0, 0, 0, n), out)
    bits = np.unpackbits(out, axis=1, bitorder="little")[:, 1:]
    q = float(randomizer.q_star)
    both = (bits.T.astype(np.float64) @ bits) / n
    z = (both - q * q) / np.sqrt(q * q * (1 - q * q) / n)
    np.fill_diagonal(z, 0)
    assert np.abs(z).max() < 6
