"""Estimates of k-stars, which are a node and k of its neighbours, from debiased bits; proof: ``k_star.md``.

All functions take numbers, Fractions or arrays alike, and are exact where their arguments are.
"""

from math import comb


def stars_of(noisy, degrees, values, v, k):
    """Return unbiased estimates of the k-stars of a graph, and of the variance of these, from a noisy one.

    `values` are those of a debiased 0 and a debiased 1, and v is the variance, a Fraction, of either.
    """
    n, v_like = noisy.n, type(values[0])(v)
    most = min(2 * k, n - 1)
    coefficients = as_subsets([variance_of_list(d, n - 1, v, k) for d in range(most + 1)])
    sums = [each.sum() for each in subsets(degrees, n - 1, values, max(most, k))]
    variance = sum(type(v_like)(c) * total for c, total in zip(coefficients, sums) if c)
    # two nodes share a bit: what it adds is a product of what the other bits of both say
    out, with_edge = (subsets(degrees - less, n - 2, values, k - 1)[-1] for less in (0, 1))
    shared = (out.sum() ** 2 - (out**2).sum()) / 2
    low, high = noisy.owners, noisy.nodes
    shared = shared + (with_edge[low] * with_edge[high] - out[low] * out[high]).sum()
    return sums[k], variance + 2 * v_like * shared


def subsets(ones, slots, values, k):
    """Return e_0, ..., e_k: the sums, over sets of so many of the bits of a list, of products of debiased bits.

    Of `slots` bits `ones` are 1; `values` are those of a debiased 0 and a debiased 1. By Newton's identities.
    """
    none, one = values
    powers = [ones * one**i + (slots - ones) * none**i for i in range(1, k + 1)]
    found = [1 + 0 * powers[0]]
    for m in range(1, k + 1):
        found.append(sum((-1) ** (i - 1) * found[m - i] * powers[i - 1] for i in range(1, m + 1)) / m)
    return found


def variance_of_list(degree, slots, v, k):
    """Return the variance of e_k of a list of so many neighbours among `slots` nodes; v is that of a debiased bit."""
    return sum(v**r * sum(comb(degree, t) * comb(slots - degree, r - t) * comb(degree - t, k - r) ** 2
                          for t in range(min(r, degree) + 1) if r - t <= slots - degree)
               for r in range(1, k + 1))


def as_subsets(values):
    """Return the numbers c_t with values[d] = sum of c_t C(d, t): e_t in the place of C(d, t) is unbiased, too."""
    found = list(values)
    for t in range(1, len(found)):
        found[t:] = [b - a for a, b in zip(found[t - 1:], found[t:])]
    return found
