"""The classic programs of the literature on verification, correct and broken.

Sparse vectors are those of Lyu, Su and Li (VLDB 2017), whose Figure 1 has the broken ones; the others those of LightDP,
ShadowDP and CheckDP (Wang, Ding, Kifer and Zhang, CCS 2020), written anew. No function here is ever called.
"""

from functools import cache

from dpestim.verify.language import discrete_laplace, laplace, program, queries

_ONE = {"assume": ["epsilon > 0"]}
_CUT = {"assume": ["epsilon > 0", "N >= 1"], "integers": ["N"]}
_BLOCKS = {"assume": ["epsilon > 0", "M >= 1"], "integers": ["M"]}


def suite(which="all"):
    """Return the classic programs, by name.

    Parameters
    ----------
    which : {"all", "correct", "broken"}, default="all"

    Returns
    -------
    dict of Program

    Examples
    --------
    >>> from dpestim.verify import suite
    >>> suite("correct")["noisy max"]
    <program noisy_max(q, epsilon), which claims epsilon>
    """
    parts = {"all": (_CORRECT, _BROKEN), "correct": (_CORRECT,), "broken": (_BROKEN,)}
    if which not in parts:
        raise ValueError(f"which must be one of {', '.join(parts)}, got {which!r}")
    return {name: _read(name) for part in parts[which] for name in part}


@cache
def _read(name):
    function, claim, declared, answers = {**_CORRECT, **_BROKEN}[name]
    return program(claim, **declared, q=answers)(function)


# ---------------------------------------------------------------- single answers and sums

def laplace_mechanism(q, epsilon):
    """One answer with noise."""
    return q[0] + laplace(1 / epsilon)


def half_the_noise(q, epsilon):
    """One answer with noise for a sensitivity of 1/2."""
    return q[0] + laplace(1 / (2 * epsilon))


def histogram(q, epsilon):
    """Noise on each cell."""
    out = []
    for i in range(len(q)):
        out.append(q[i] + laplace(1 / epsilon))
    return out


def integer_histogram(q, epsilon):
    """Integer noise on each cell."""
    out = []
    for i in range(len(q)):
        out.append(q[i] + discrete_laplace(1 / epsilon))
    return out


def one_noise_for_all(q, epsilon):
    """The same noise on each cell."""
    out = []
    noise = laplace(1 / epsilon)
    for i in range(len(q)):
        out.append(q[i] + noise)
    return out


def partial_sum(q, epsilon):
    """A sum with noise."""
    total = 0
    for i in range(len(q)):
        total = total + q[i]
    return total + laplace(1 / epsilon)


def prefix_sum(q, epsilon):
    """Sums of noisy answers, at each step."""
    out = []
    total = 0
    for i in range(len(q)):
        total = total + q[i] + laplace(1 / epsilon)
        out.append(total)
    return out


def prefix_sum_of_exact(q, epsilon):
    """Exact sums with noise, at each step."""
    out = []
    total = 0
    for i in range(len(q)):
        total = total + q[i]
        out.append(total + laplace(1 / epsilon))
    return out


def smart_sum(q, epsilon, M):
    """Running sums from noisy sums of blocks of M answers, and noisy answers since."""
    out = []
    blocks = 0
    block = 0
    running = 0
    for i in range(len(q)):
        if (i + 1) % M == 0:
            blocks = blocks + block + q[i] + laplace(1 / epsilon)
            block = 0
            running = blocks
        else:
            block = block + q[i]
            running = running + q[i] + laplace(1 / epsilon)
        out.append(running)
    return out


# ---------------------------------------------------------------- report noisy max

def noisy_max(q, epsilon):
    """The place of the largest noisy answer."""
    best = 0
    index = 0
    for i in range(len(q)):
        value = q[i] + laplace(2 / epsilon)
        if i == 0 or value > best:
            best = value
            index = i
    return index


def noisy_max_with_less(q, epsilon):
    """The place of the largest answer, with half the noise."""
    best = 0
    index = 0
    for i in range(len(q)):
        value = q[i] + laplace(1 / epsilon)
        if i == 0 or value > best:
            best = value
            index = i
    return index


def integer_noisy_max(q, epsilon):
    """The place of the largest answer with integer noise."""
    best = 0
    index = 0
    for i in range(len(q)):
        value = q[i] + discrete_laplace(2 / epsilon)
        if i == 0 or value > best:
            best = value
            index = i
    return index


def noisy_max_and_value(q, epsilon):
    """The place and the noisy value itself."""
    best = 0
    index = 0
    for i in range(len(q)):
        value = q[i] + laplace(2 / epsilon)
        if i == 0 or value > best:
            best = value
            index = i
    return index, best


def noisy_max_and_fresh_value(q, epsilon):
    """The place, and its answer with new noise."""
    best = 0
    index = 0
    answer = 0
    for i in range(len(q)):
        value = q[i] + laplace(4 / epsilon)
        if i == 0 or value > best:
            best = value
            index = i
            answer = q[i]
    return index, answer + laplace(2 / epsilon)


# ---------------------------------------------------------------- sparse vector

def sparse_vector(q, epsilon, N, T):
    """Which answers are above a noisy threshold, until N are: Algorithm 1."""
    out = []
    threshold = T + laplace(2 / epsilon)
    count = 0
    i = 0
    while count < N and i < len(q):
        if q[i] + laplace(4 * N / epsilon) >= threshold:
            out.append(True)
            count = count + 1
        else:
            out.append(False)
        i = i + 1
    return out


def sparse_vector_2cn(q, epsilon, N, T):
    """The same with half the noise on answers: enough if they are monotone."""
    out = []
    threshold = T + laplace(2 / epsilon)
    count = 0
    i = 0
    while count < N and i < len(q):
        if q[i] + laplace(2 * N / epsilon) >= threshold:
            out.append(True)
            count = count + 1
        else:
            out.append(False)
        i = i + 1
    return out


def numeric_sparse_vector(q, epsilon, N, T):
    """The answers above a noisy threshold, with new noise."""
    out = []
    threshold = T + laplace(3 / epsilon)
    count = 0
    i = 0
    while count < N and i < len(q):
        if q[i] + laplace(6 * N / epsilon) >= threshold:
            out.append(q[i] + laplace(3 * N / epsilon))
            count = count + 1
        else:
            out.append(False)
        i = i + 1
    return out


def gap_sparse_vector(q, epsilon, N, T):
    """How far noisy answers are above a noisy threshold."""
    out = []
    threshold = T + laplace(2 / epsilon)
    count = 0
    i = 0
    while count < N and i < len(q):
        value = q[i] + laplace(4 * N / epsilon)
        if value >= threshold:
            out.append(value - threshold)
            count = count + 1
        else:
            out.append(False)
        i = i + 1
    return out


def gap_to_the_exact_threshold(q, epsilon, N, T):
    """How far the same noisy answers are above the exact threshold: Algorithm 3."""
    out = []
    threshold = T + laplace(2 / epsilon)
    count = 0
    i = 0
    while count < N and i < len(q):
        value = q[i] + laplace(4 * N / epsilon)
        if value >= threshold:
            out.append(value - T)
            count = count + 1
        else:
            out.append(False)
        i = i + 1
    return out


def exact_answers(q, epsilon, N, T):
    """The exact answers above a noisy threshold."""
    out = []
    threshold = T + laplace(2 / epsilon)
    count = 0
    i = 0
    while count < N and i < len(q):
        if q[i] + laplace(4 * N / epsilon) >= threshold:
            out.append(q[i])
            count = count + 1
        else:
            out.append(False)
        i = i + 1
    return out


def sparse_vector_4(q, epsilon, N, T):
    """Noise on answers that forgets N: Algorithm 4."""
    out = []
    threshold = T + laplace(4 / epsilon)
    count = 0
    i = 0
    while count < N and i < len(q):
        if q[i] + laplace(4 / (3 * epsilon)) >= threshold:
            out.append(True)
            count = count + 1
        else:
            out.append(False)
        i = i + 1
    return out


def sparse_vector_5(q, epsilon, T):
    """No noise on answers: Algorithm 5."""
    out = []
    threshold = T + laplace(2 / epsilon)
    for i in range(len(q)):
        if q[i] >= threshold:
            out.append(True)
        else:
            out.append(False)
    return out


def sparse_vector_6(q, epsilon, T):
    """No cut-off: Algorithm 6."""
    out = []
    threshold = T + laplace(2 / epsilon)
    for i in range(len(q)):
        if q[i] + laplace(2 / epsilon) >= threshold:
            out.append(True)
        else:
            out.append(False)
    return out


_CORRECT = {
    "Laplace mechanism": (laplace_mechanism, "epsilon", _ONE, queries()),
    "histogram": (histogram, "epsilon", _ONE, queries(differ="one")),
    "histogram of integers": (integer_histogram, "epsilon", _ONE, queries(differ="one", integer=True)),
    "partial sum": (partial_sum, "epsilon", _ONE, queries(differ="one")),
    "prefix sum": (prefix_sum, "epsilon", _ONE, queries(differ="one")),
    "smart sum": (smart_sum, "2 * epsilon", _BLOCKS, queries(differ="one")),
    "noisy max": (noisy_max, "epsilon", _ONE, queries()),
    "noisy max, monotone": (noisy_max_with_less, "epsilon", _ONE, queries(differ="monotone")),
    "noisy max of integers": (integer_noisy_max, "epsilon", _ONE, queries(integer=True)),
    "noisy max, fresh value": (noisy_max_and_fresh_value, "epsilon", _ONE, queries()),
    "sparse vector": (sparse_vector, "epsilon", _CUT, queries()),
    "sparse vector, monotone": (sparse_vector_2cn, "epsilon", _CUT, queries(differ="monotone")),
    "numeric sparse vector": (numeric_sparse_vector, "epsilon", _CUT, queries()),
    "gap sparse vector": (gap_sparse_vector, "epsilon", _CUT, queries()),
}

_BROKEN = {
    "half the noise": (half_the_noise, "epsilon", _ONE, queries()),
    "histogram, all cells differ": (histogram, "epsilon", _ONE, queries()),
    "histogram, one noise for all": (one_noise_for_all, "epsilon", _ONE, queries()),
    "partial sum, all answers differ": (partial_sum, "epsilon", _ONE, queries()),
    "prefix sum of exact sums": (prefix_sum_of_exact, "epsilon", _ONE, queries(differ="one")),
    "smart sum, half the claim": (smart_sum, "epsilon", _BLOCKS, queries(differ="one")),
    "noisy max, value too": (noisy_max_and_value, "epsilon", _ONE, queries()),
    "noisy max, half the noise": (noisy_max_with_less, "epsilon", _ONE, queries()),
    "sparse vector, Algorithm 3 (noisy answers)": (gap_to_the_exact_threshold, "epsilon", _CUT, queries()),
    "sparse vector, Algorithm 4 (noise without N)": (sparse_vector_4, "epsilon", _CUT, queries()),
    "sparse vector, no noise on queries": (sparse_vector_5, "epsilon", _ONE, queries()),
    "sparse vector, Algorithm 6 (no cut-off)": (sparse_vector_6, "epsilon", _ONE, queries()),
    "sparse vector, half the noise": (sparse_vector_2cn, "epsilon", _CUT, queries()),
    "sparse vector, exact answers": (exact_answers, "epsilon", _CUT, queries()),
}
