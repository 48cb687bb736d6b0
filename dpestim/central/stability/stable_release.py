"""Stable answers: a choice among candidates that is exact, if many records would have to change for another one."""

import math

import numpy as np

from dpestim.central.stability.blocks import BlockMechanism
from dpestim.central.stability.distance_test import DistanceTest, is_far, passes
from dpestim.exact_reals import BitStream
from dpestim.inputs import CategoryEncoder, category_rows, columns_of, smallest_dtype
from dpestim.inputs.safe_errors import attempt
from dpestim.rng import WordSource


class StableRelease(DistanceTest, BlockMechanism):
    """Release the mode, or the most frequent result of blocks, exactly or not at all, by distance to instability.

    An answer that does not change if a few records change reveals nothing about these records. The exact answer is
    therefore released if a noisy distance to any other answer is large enough; otherwise the result is None. Take it
    where one candidate is expected to be far ahead: the mode of a column, or (with a function) which of two models is
    better on nearly every block. Where the lead may be small, the exponential mechanism always answers.

    **Privacy.** (epsilon, delta)-differential privacy in the central model for the declared neighbours; d columns get
    epsilon / d and delta / d each. A function must look at nothing but its block, and leave nothing behind. The
    curator, who holds the data, must be trusted.

    **Utility.** An answer is exact. A lead of g votes is a distance of about g / 2 - 1, and ``refusal_rate(distance)``
    is the probability of None: a half at ``threshold()``, about ln(1 / (2 delta)) / epsilon.

    **Complexity.** O(n) time for each column, or one call of the function for each block.

    {parameters}
    References
    ----------
    Smith, Thakurta (2013), "Differentially private feature selection via stability arguments, and the robustness of the
    lasso", COLT, section 3. Dwork, Roth (2014), "The algorithmic foundations of differential privacy", section 7.3. The
    proof: ``stable_release.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.central import StableRelease
    >>> drinks = np.random.default_rng(0).choice(["tea", "coffee"], 1_000, p=[0.6, 0.4])
    >>> mode = StableRelease(1.0, delta=1e-6, candidates=["coffee", "tea", "water"], random_state=0)
    >>> mode.release(drinks), mode.release(drinks[:10])
    ('tea', None)
    """

    _checked_as = "votes"
    _more_parameters = """
    {delta that must be declared}
    candidates : array-like, default=None
        The public answers, at least two distinct values, declared; of those with equally many votes the first counts.
        Other values vote for none.
    function : None, callable or estimator, default=None
        None: X has columns of candidates, and each record votes. A callable of a block of rows of numbers (and of y for
        these rows, if y is given) that returns a candidate; an estimator is cloned and fitted to each block, and its
        `attribute` is the result. Then blocks vote, and there is one result.
""" + BlockMechanism._shared_parameters + "    "
    _more_attributes = """
    value_ : list
        For each column, or for the function, a candidate, or None where the answer was refused; after `fit`.
    {columns seen}
    """

    def __init__(self, epsilon=1.0, *, delta=None, candidates=None, function=None, attribute=None, n_blocks=None,
                 neighbours=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.candidates = candidates
        self.function = function
        self.attribute = attribute
        self.n_blocks = n_blocks
        self.neighbours = neighbours
        self.ledger = ledger
        self.random_state = random_state

    def _plan(self, n_columns):
        self._check_function()
        if self.candidates is None:
            raise ValueError("candidates must be declared, the public list of possible answers")
        encoder, error = attempt(CategoryEncoder, self.candidates, "candidates")
        if error:
            raise ValueError("candidates must be a list of at least two distinct values, none infinite")
        n_results = n_columns if self.function is None else 1
        return {"encoder": encoder, "n_columns": n_columns, "n_results": n_results, "test": self._test(n_results),
                "kind": (tuple(encoder.categories.tolist()), self.function is None)}

    def _has_blocks(self):
        return self.function is not None

    def _kind(self, plan):
        return plan["kind"]

    def _read_table(self, X, strict):
        if self.function is not None:
            return super()._read_table(X, strict)
        if strict and not self._replaces and getattr(X, "shape", ())[:1] == (0,) and len(X.shape) == 2:
            return np.empty(X.shape)  # the number of rows is private, none is a number like any other
        rows = category_rows(X, strict=strict)
        if not strict and isinstance(rows, np.ndarray) and rows.dtype.kind == "f":
            self._refuse_infinite(rows)
        return rows

    def _kept(self, rows, y, plan, strict):
        if self.function is not None:
            return plan["kind"], self._with_y(rows, y, strict)
        encoder, m = plan["encoder"], len(plan["encoder"].categories)
        out = np.empty(rows.shape, smallest_dtype(m + 1))
        for j, column in enumerate(columns_of(rows)):
            out[:, j], why = encoder.read(column, out.dtype, m, explain=not strict)
            if why and not strict and "missing" in why:
                raise ValueError(f"column {j} of X has a missing value (None, NaN or NA): list it in candidates or "
                                 "remove the row")
        return plan["kind"], out

    def _sampled(self, seen, plan, source):
        """Return (the code of the answer, its distance) of each column."""
        m = len(plan["encoder"].categories)
        if self.function is not None:
            seen = np.array(self._run(seen, plan["n_columns"], source, lambda result: self._code(result, plan)), object)
            seen = np.where(seen == None, m, seen).astype(np.int64)[:, None]  # noqa: E711
        return [leader(np.bincount(column, minlength=m + 1)[:m]) for column in seen.T]

    @staticmethod
    def _code(result, plan):
        """Return the code of a result, or raise ValueError where it is no candidate."""
        encoder = plan["encoder"]
        code, why = encoder.read(np.asarray(result).reshape(1), smallest_dtype(len(encoder.categories) + 1),
                                 len(encoder.categories))
        if why:
            raise ValueError
        return int(code[0])

    def _answer(self, seen, plan, source):
        reader, (epsilon, threshold), values = source.reader(), plan["test"], plan["encoder"].categories.tolist()
        return [values[code] if is_far(BitStream(reader, j, 0), distance, threshold, epsilon) else None
                for j, (code, distance) in enumerate(seen)]

    def _outcomes(self, summary, places):
        plan = self._plan(1)
        ((code, distance),) = self._sampled(summary.totals, plan, WordSource(self.random_state))
        epsilon, threshold = plan["test"]
        chance = passes(distance, threshold, float(epsilon))
        return None, {None: math.log(1 - chance), plan["kind"][0][code]: math.log(chance)}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = self.function is None
        return tags

    def _test_column(self):
        """Return a column with a lead of which half is refused."""
        first, second = self._plan(1)["kind"][0][:2]
        if self.function is not None:
            return np.array([second] * (2 * self.threshold()) ** 2)  # in as many blocks as the root
        return np.array([second] * 9 + [first] * (9 + 2 * self.threshold()))

    def _test_data(self, n_rows, seed=0):
        """Return a table of candidates."""
        return np.random.default_rng(seed).choice(np.asarray(self.candidates), (n_rows, 2)), None

    @classmethod
    def _test_params(cls):
        return [
            {"epsilon": 0.5, "delta": 1e-3, "candidates": [0.0, 1.0, 2.0]},
            {"epsilon": 0.5, "delta": 1e-6, "candidates": [2.5, 0.5], "neighbours": "add_remove"},
            {"epsilon": 1.0, "delta": 0.01, "candidates": [0.0, 1.0], "function": np.max},
        ]


def leader(counts):
    """Return (the first candidate with the most votes, how many votes need to change for another one, less one)."""
    first = int(np.argmax(counts))
    ties = np.arange(len(counts)) > first
    votes = (counts[first] - counts + ties + 1) // 2
    votes[first] = counts.sum() + 1
    return first, int(votes.min()) - 1
