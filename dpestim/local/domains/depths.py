"""Which views of a code users draw, from public numbers only: levels, hashes, and who is kept for the estimates."""

import hashlib
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpestim.local.categories.flh import FLH
from dpestim.local.categories.hcms import HCMS
from dpestim.local.categories.pgr import PGR
from dpestim.local.categories.sketch import MOST_HASHES
from dpestim.local.domains.prefixes import Fragment, Prefix, hash_of

METHODS = ("pem", "treehist", "bitstogram", "sfp")
#: Candidates that a level has at most; cells of a table of hashes, and where noise is far smaller than collisions.
MOST_CANDIDATES, MOST_CELLS, MANY_CELLS = 1 << 22, 1 << 18, 1 << 20
#: Hashes of Hadamard sketches have so many buckets: one bit is sent whatever their number is.
_BUCKETS = 1 << 10
#: The sum of the squares of all frequencies that is expected, and what share of the noise collisions may add then.
_SQUARES, _COLLISIONS = 0.02, 0.04
#: Bits of the hash beside a fragment, and of both together, at most.
_PUZZLE = {"bitstogram": 10, "sfp": 8}
_FRAGMENT = 14
#: How probable it is that a value which is just frequent enough to be found is found.
POWER = 0.9
#: The error of confirmation that the share of users for it is planned for.
_ALPHA = 0.05


class Depths(NamedTuple):
    """Levels as bits, prefixes kept at each, views that each level has beside one for estimates; what is found.

    All views are drawn equally often.
    """

    bits: tuple
    n_keep: int
    n_views: int
    detectable: float

    @property
    def share(self):
        """The share of users who report a level."""
        return self.n_views / (self.n_views * len(self.bits) + 1)


@lru_cache(maxsize=256)
def depths_of(method, epsilon, n_bits, n_top, n_users):
    """Return the `Depths` whose detectable frequency is least, of those with few enough candidates.

    A value is detectable where all levels find it with a probability of 0.9 together, as if they were independent. More
    levels have fewer candidates each, and fewer users. Those kept for the estimates are as many as confirm it with a
    probability of a half or more: between a whole level's and a quarter.
    """
    n_keep = 1 << max(3, (5 * n_top - 1).bit_length())
    found = []
    variance = _plain(method, epsilon)
    for n_levels in range(1, n_bits + 1):
        if method in _PUZZLE:
            bits, most = _evenly(0, n_bits, n_levels), 1 << _PUZZLE[method]
            if max(np.diff((0, *bits))) > _FRAGMENT - _PUZZLE[method]:
                continue
            candidates = most << int(max(np.diff((0, *bits))))
        else:
            first = min(n_bits, MOST_CANDIDATES.bit_length() - 1, n_bits // n_levels + n_keep.bit_length() - 1)
            first = n_bits if n_levels == 1 else first
            bits = (first, *_evenly(first, n_bits, n_levels - 1)) if n_levels > 1 else (first,)
            if len(set(bits)) < n_levels:
                break
            steps = np.diff(bits)
            candidates = max(1 << first, *(n_keep << int(step) for step in steps), 0)
            if candidates > MOST_CANDIDATES:
                continue
        power = float(ndtri(POWER ** (1 / n_levels)))
        if method in _PUZZLE:  # above the largest noise of the other fragments of its hash, which varies, too
            others = candidates >> _PUZZLE[method]
            above = ndtri(0.5 ** (1 / others))
            power *= math.sqrt(1 + math.pi**2 / 12 / math.log(max(others, 2)))
        else:  # above the noise of all candidates but half of those that are kept
            above = ndtri(1 - n_keep / 2 / candidates) if candidates > n_keep else 0.0
        above = float(max(above, ndtri(1 - _ALPHA)))
        z = above + ndtri(POWER)
        n_views = next(k for k in (4, 2, 1) if k == 1 or ndtri(1 - _ALPHA / n_top) <= z / math.sqrt(k))
        depths = Depths(bits, n_keep, n_views, 0.0)
        n_each = n_users * depths.share
        noise = variance / n_each + _SQUARES / (candidates if method in _PUZZLE else _cells(variance, n_each))
        found.append(depths._replace(detectable=found_from(above * math.sqrt(noise), power, noise, n_each)))
    return min(found, key=lambda depths: depths.detectable)


def found_from(least, power, variance, n):
    """Return the number whose estimate exceeds `least` but for a miss of `power` errors.

    It solves f = least + power sqrt(variance + f / n): who is among the n users is drawn, too.
    """
    half = power**2 / (2 * n)
    return least + half + math.sqrt(power**2 * (variance + least / n) + half**2)


def error_of(law, f, n_users):
    """Return the standard error of a frequency that so many users report by a law, with their draw and collisions."""
    p, q = float(law.p_star), float(law.q_star)
    response = q * (1 - q) / (p - q) ** 2 + f * (1 - p - q) / (p - q)
    collisions = 0.0 if law.is_exact else _SQUARES / (law.n_hashes * (law.n_buckets - 1))
    return math.sqrt((response + f * (1 - f)) / n_users + collisions)


def views_of(method, epsilon, n_bits, depths, n_users, seed):
    """Return the views of a code: those of each level together, and last the whole code, which estimates need."""
    n_each, bits = n_users * depths.share, depths.bits
    if method not in _PUZZLE:
        laws = [_law(method, epsilon, b, n_each, _seed(seed, b)) for b in bits]
        views = [Prefix(f"first {b} bits", law, b, n_bits - b) for law, b in zip(laws, bits)]
    else:
        hash_bits = _PUZZLE[method]
        columns = hash_of(n_bits, hash_bits, seed)
        views = [Fragment(f"bits {a} to {b}", PGR.make(epsilon, 1 << (hash_bits + b - a)), b - a, n_bits - b, columns,
                          hash_bits) for a, b in zip((0, *bits), bits)]
    views = [view.named(f"{view.name}, {k + 1}") for view in views for k in range(depths.n_views)]
    return [*views, Prefix("all bits", _law(method, epsilon, n_bits, n_each, _seed(seed, 0)), n_bits, 0)]


def _seed(seed, level):
    """Return the seed of a level's hashes: no value is found because of collisions that its estimate has, too."""
    return int.from_bytes(hashlib.blake2b(b"dpestim level %d of %d" % (level, seed), digest_size=8).digest(), "little")


def _law(method, epsilon, n_bits, n_each, seed):
    """Return the law of a level, with as many hashes as make collisions a small part of its noise."""
    cls, m = (HCMS, min(_BUCKETS, 1 << n_bits)) if method == "treehist" else (FLH, _buckets(epsilon))
    n_hashes = min(MOST_HASHES, 1 << max(4, math.ceil(math.log2(_cells(_plain(method, epsilon), n_each) / m))))
    return cls.make(epsilon, 1 << n_bits, n_hashes, m, seed)


def _cells(variance, n_each):
    """Return how many cells of hashes make collisions a small part of the noise, or as many as there may be."""
    wanted = _SQUARES * n_each / _COLLISIONS / variance
    return min(max(wanted, 1.0), MANY_CELLS, max(MOST_CELLS, wanted / 8))


def _buckets(epsilon):
    return FLH.make(epsilon, 2, 16).n_buckets


@lru_cache(maxsize=256)
def _plain(method, epsilon):
    """Return n times the variance of a rare value, without collisions of hashes."""
    law = HCMS.make(epsilon, 1 << 20, 16, _BUCKETS) if method == "treehist" else FLH.make(epsilon, 1 << 20, 16)
    q, gap = law.q_star, law.p_star - law.q_star
    return float(q * (1 - q) / gap**2)


def _evenly(first, last, n):
    """Return n increasing numbers up to the last, in steps that are as equal as they can be; the widest come last."""
    return tuple(first + (last - first) * k // n for k in range(1, n + 1))
