"""Histograms by fake messages: every user sends the user's value, and now and then a value that nobody holds."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from dpestim._core import grr
from dpestim.inputs import smallest_dtype
from dpestim.local.categories.estimator import CategoryClient
from dpestim.local.categories.frequencies import Frequencies
from dpestim.privacy.exact import WORD
from dpestim.privacy.rounding import float_down
from dpestim.rng import Stage
from dpestim.shuffle.base import ShuffledColumns, ShuffleProtocol
from dpestim.shuffle.coins import delta_among
from dpestim.shuffle.law import RARELY, ShuffleLaw, first_below

#: Fake messages a user at most.
_MOST = 1 << 12
#: Less is not told from 0.
_LEAST = 1e-300
#: So many coins times ln(2 / delta) / epsilon^2 are about enough.
_COINS = 6
#: Bits of the probability of a fake that are looked for.
_PRECISION = 14
#: A law with more combinations of fakes is not enumerated.
_ENUMERATED = 500


class Fakes(ShuffleLaw):
    """The own category, and several places of which each holds any category with ``other`` of 2^64 words, or nothing.

    A message d of d categories is none at all: places that are left empty.
    """

    n_words = n_counts = report_dtype = report_width = report_bits = None
    local_ratio = math.inf
    block_words = 1 << 18  # as of GRR: a place takes an eighth of a word where fakes are rare

    def __init__(self, epsilon, n_categories, delta, n_users, colluding):
        super().__init__(epsilon, delta, n_users, colluding)
        self.n_categories = n_categories
        self.code_dtype = smallest_dtype(n_categories)
        self.n_places, self.other = self._least()
        self.report_width, self.n_words = 1 + self.n_places, self.n_places
        self.report_dtype = smallest_dtype(n_categories + 1)
        self.n_counts = n_categories + 1
        self.report_bits = (1 + self.n_fakes) * math.log2(n_categories)
        if math.comb(n_categories + self.n_places, self.n_places) > _ENUMERATED:
            self.not_enumerated = "it has many messages"

    def _least(self):
        """Return (places, words for each category in each): the fewest fakes that are enough, to a relative 2^-14."""
        epsilon, delta, most = float_down(self.epsilon), float_down(self.delta), WORD // self.n_categories

        def gap(other):  # (delta falls about exponentially, so its logarithm is nearly a line)
            found = self._delta(epsilon, self.n_honest, places, other)
            distance = math.log(max(found, _LEAST) / delta)
            return max(distance, _LEAST) if found > delta else min(distance, 0.0)

        places, above = 1, None
        # (far more fakes than are needed take long to add up: about how many are is guessed, and then looked at)
        times = 2 * self.n_honest * most / WORD * min(epsilon, 1.0) ** 2 / (_COINS * math.log(2 / delta))
        halved = min(math.floor(math.log2(max(times, 1.0))), max(0, most.bit_length() - 21))
        while (below := gap(most >> halved)) > 0:
            if halved:
                halved, above = halved - 1, below
                continue
            places *= 2
            above = None
            if places > _MOST:
                raise ValueError(f"n_users must be larger: {self.n_honest} honest users would have to send more than "
                                 f"{_MOST} fake messages each to hide {self.n_categories} categories")
        high = most >> halved
        while high > 1 << 20 and above is None:
            found = gap(high // 2)
            if found > 0:
                above = found
            else:
                high, below = high // 2, found
        step = max(1, high >> _PRECISION)
        steps = first_below(lambda k: gap(min(high, k * step)), max(1, high // (2 * step)), high // step + 1, above,
                            below)
        return places, min(high, steps * step)

    def delta_at(self, epsilon, n_honest):
        """Return delta as in ``fakes.md``: the fakes in two categories are fair coins between them."""
        return self._delta(epsilon, n_honest, self.n_places, self.other)

    @staticmethod
    def _delta(epsilon, n_honest, places, other):
        return delta_among(epsilon, 0.0, n_honest * places, 2 * other / WORD)

    @property
    def n_fakes(self):
        """Fake messages a user, on average."""
        return self.n_places * self.n_categories * self.other / WORD

    @property
    def input_codes(self):
        """The code of every category."""
        return np.arange(self.n_categories, dtype=self.code_dtype)

    def message_law(self, code):
        """Return the law of the messages, sorted."""
        d, k = self.n_categories, self.n_places
        share = [Fraction(self.other, WORD)] * d + [1 - d * Fraction(self.other, WORD)]
        law = {}
        for fakes in combinations_with_replacement(range(d + 1), k):
            ways = math.factorial(k)
            for often in Counter(fakes).values():
                ways //= math.factorial(often)
            law[tuple(sorted((int(code), *fakes)))] = ways * math.prod(share[j] for j in fakes)
        return law

    def privatize(self, codes, words, out):
        """Write the own code and the fakes."""
        out[:, 0] = codes
        if self.n_categories * self.other <= RARELY:
            out[:, 1:] = self.n_categories
            at, drawn = words.below(self.n_categories * self.other, Stage.RESPONSE, Stage.RARE, self.n_places)
            out[at // self.n_places, 1 + at % self.n_places] = drawn // np.uint64(self.other)
            return
        out[:, 1:] = self._places(words).reshape(len(codes), -1)

    def check_reports(self, reports):
        """Refuse what is no category, nor an empty place."""
        if int(reports.max()) > self.n_categories:
            raise ValueError(f"a message must be a code of at most {self.n_categories}")

    def count(self, reports, counts):
        """Add how often each category was sent, and how many places were empty."""
        if not grr.count(reports.reshape(-1), counts):
            self.check_reports(np.full((1, 1), self.n_counts))

    def count_sent(self, codes, words, counts):
        """Add what `count` would of the messages that `privatize` would write, without writing them."""
        self.count(codes, counts)
        if self.n_categories * self.other <= RARELY:
            drawn = words.below(self.n_categories * self.other, Stage.RESPONSE, Stage.RARE, self.n_places)[1]
            counts[-1] += len(codes) * self.n_places - len(drawn)
            drawn //= np.uint64(self.other)
            self.count(drawn.astype(np.uint32), counts)
            return
        self.count(self._places(words).astype(self.report_dtype), counts)

    def _places(self, words):
        """Return what is in every place, where fakes are not rare."""
        drawn = words.dense(Stage.RESPONSE, self.n_places)
        return np.minimum(drawn // np.uint64(self.other), np.uint64(self.n_categories))

    def estimate(self, counts, n):
        """Return the unbiased frequencies: what is seen less the fakes that are to be expected."""
        return counts[:-1] / n - self.n_places * (self.other / WORD)

    def variance(self, n, f=0.0):
        """Return the exact variance of each of them, whatever the frequencies are."""
        p = self.other / WORD
        return self.n_places * p * (1 - p) / n + 0.0 * np.asarray(f)

    def variance_line(self, counts, n):
        """Return (at_zero, slope) of n times the variance as a line in f."""
        return float(n * self.variance(n)), 0.0


class ShuffledHistogram(Frequencies, ShuffleProtocol, CategoryClient):
    """Estimate frequencies of categories by messages with fake ones among them, behind a shuffler.

    Every user sends the true category and, with a small probability that falls with the number of users, fake
    categories. The estimator subtracts the expected number of fakes.

    **Privacy.** (epsilon, delta)-differential privacy in the shuffle model, for data sets of equal size that differ in
    one user's row; delta is computed exactly. The shuffler is trusted to hide which messages came from one user; the
    analyser and `colluding` users are not. **Without the shuffler there is no protection**: the true category is among
    the few messages of a user.

    **Utility.** Unbiased; a count has the variance ``n k p (1 - p)``, where k places of each user hold any one category
    with probability p: an error of about the same number of users for any n and any number of categories (6.5 at
    epsilon 1 and delta 1e-6). Delta decides how large it is once epsilon is above some 4: there, and with few users,
    local reports (`ShuffledEstimator`, or no shuffler at all) may be more accurate.

    **Complexity.** O(1 + fakes) a user, ``randomizer().n_fakes`` of them on average; O(messages) for the analyser, in
    memory for the counts. c columns share epsilon, and each needs about c^2 times the fakes: `fit` takes O(n c +
    c^3 d) time and O(c (n + d)) memory for n users and d categories.

    {parameters}
    References
    ----------
    V. Balcer, A. Cheu (2020), "Separating local and shuffled differential privacy via histograms", ITC (each category
    with a small probability, and a bound; here places, and the exact sum). The proofs: ``fakes.md``, ``coins.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.shuffle import ShuffledHistogram
    >>> X = np.repeat([["tea"], ["coffee"], ["water"]], [5000, 3000, 2000], axis=0)
    >>> est = ShuffledHistogram(1.0, delta=1e-6, categories=[["tea", "coffee", "water"]], random_state=0).fit(X)
    >>> np.abs(est.counts_[0] - [5000, 3000, 2000]).max() < 30
    np.True_
    """

    _randomizer = Fakes
    _no_law = CategoryClient._no_law | {"postprocess"}
    _more_parameters = """
    categories : "auto", list of array-like, dict or Domain, default="auto"
        The public domain, at least two distinct values for each column. A list has one array for each column, in
        order; a dict goes from column names to arrays. "auto" learns the domain from the data that `fit` sees, which
        leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon`` infinite.
    postprocess : None, str or callable, default=None
        None keeps estimates unbiased. A name in `dpestim.postprocessing`, or a callable of (estimates,
        standard_errors) that returns an array like estimates.
    """
    _more_attributes = """
    categories_ : list of ndarray
        The domain of each column, in the order of all other outputs.
    frequencies_, counts_ : list of ndarray of shape (n_categories,)
        Estimated share of each category, in column order, and of how many users that is.
    standard_errors_ : list of ndarray of shape (n_categories,)
        Standard error of the unbiased frequency, given the data: only the fakes are random.
    """

    def __init__(self, epsilon=1.0, *, delta=None, categories="auto", postprocess=None, n_users=None, colluding=0,
                 ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, delta=delta, n_users=n_users, colluding=colluding, ledger=ledger,
                         random_state=random_state, n_jobs=n_jobs)
        self.categories = categories
        self.postprocess = postprocess

    @property
    def counts_(self):
        """Estimated numbers of users."""
        return [self._n_users * f for f in self.frequencies_]

    def _made(self, lists, names, **more):
        return _shuffled(super()._made(lists, names, **more))

    def _like(self, columns):
        return _shuffled(super()._like(columns))

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 3.0, "delta": 0.01, "n_users": 4, "categories": [["a", "b", "c"]]},
                {"epsilon": 4.0, "delta": 0.01, "n_users": 12, "colluding": 2, "categories": [[0, 1], [False, True]]}]


def _shuffled(columns):
    """Return the same columns, whose messages are shuffled."""
    return ShuffledColumns(columns.columns, columns.inferred, columns.keys)
