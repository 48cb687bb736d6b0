"""Groups of users who answer in rounds: the same for every cut of the rows into parts."""

import numpy as np
import pytest

from dpestim.local import grouping as module
from dpestim.local.learning.groups import Groups
from dpestim.rng import WordSource

N_ROWS = 150_000  # (blocks of words have 65,536 rows)


@pytest.mark.parametrize(("groups", "seed"), [(Groups(0, 7, True), 1), (Groups(3, 300, False), None),
                                              (Groups(0, 1, False), 2)])
def test_parts_have_the_groups_of_all_rows(groups, seed):
    source = WordSource(seed)
    whole = groups.of_rows(source, N_ROWS)
    assert len(whole) == len(groups)
    assert np.array_equal(np.sort(np.concatenate(whole)), np.arange(N_ROWS))
    for k in {0, 1, len(groups) - 1} & set(range(len(groups))):
        for before, n in ((0, N_ROWS), (0, 10), (65_535, 2), (65_536, 1), (70_000, 80_000), (149_999, 1), (5, 0)):
            places, earlier = groups.members(source, k, before, n)
            own = whole[k]
            assert np.array_equal(places + before, own[(own >= before) & (own < before + n)])
            assert earlier == (own < before).sum()


def test_sizes_are_those_of_fair_draws():
    """The statistic of Pearson for the sizes of 300 groups, within six standard deviations."""
    sizes = np.array([len(own) for own in Groups(0, 300, False).of_rows(WordSource(0), N_ROWS)])
    found = (np.square(sizes - 500) / 500).sum()
    assert abs(found - 299) < 6 * np.sqrt(2 * 299)
    first, *rest = (len(own) for own in Groups(0, 19, True).of_rows(WordSource(0), N_ROWS))
    assert all(abs(size - N_ROWS / 20) < 6 * np.sqrt(N_ROWS / 20) for size in (first, *rest))


def test_counts_of_blocks_are_kept_for_seeds_only(monkeypatch):
    monkeypatch.setattr(module, "_counted", {})
    monkeypatch.setattr(module, "_MOST", 2)
    for seed in (None, 1, 2):
        Groups(0, 5, False).members(WordSource(seed), 0, 140_000, 5)
        assert len(module._counted) <= 2
        assert bool(module._counted) == (seed is not None)
