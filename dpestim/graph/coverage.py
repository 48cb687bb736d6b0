"""How many runs of a program cover each block of its control-flow graph, where no run is told to anybody."""

import math
from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from dpestim.base import PrivateEstimator
from dpestim.graph.flow import dominators, fall_along, from_leaves, read_flow
from dpestim.graph.pairs import PairFlips
from dpestim.inputs.frames import is_frame, refuse_masked, refuse_parts
from dpestim.inputs.matrices import entries_of
from dpestim.privacy import Neighbours, PrivacyGuarantee
from dpestim.privacy.exact import canonical_epsilon
from dpestim.results import Part, named
from dpestim.rng import Stage, WordSource, check_random_state

RELATIONS = ("strict", "relaxed")
#: The column of random words that choose blocks: flips take column 0.
_CHOICE = 1


class ControlFlowCoverage(PrivateEstimator):
    """Estimate how many runs cover each block of a program, from randomised bits and the dominator tree.

    Each user reports on one run. With "strict" a user draws one block and reports its bit; with "relaxed" a user
    reports the bits of all blocks, and each gets a part of epsilon. A run that covers a block covers all blocks that
    dominate it, so that counts fall along the dominator tree of the public control-flow graph: a weighted isotonic
    regression along the tree takes noise away, and costs nothing.

    **Privacy.** Local model: no other party must be trusted. "strict": pure epsilon for any two runs. "relaxed":
    epsilon for two runs that differ in at most `max_blocks` blocks, a **relaxation**, which `privacy_` names; any
    two runs have epsilon / max_blocks for each block, which is ``privacy_.epsilon`` and what other ledgers are charged.
    The control-flow graph is public, and so is that every run covers the entry. Each user reports once.

    **Utility.** Let n be the runs, and B the blocks besides the entry. A count of "relaxed" has noise of standard
    deviation sqrt(n e^a) / (e^a - 1), a = epsilon / max_blocks; one of "strict" about sqrt(B) times that of
    a = epsilon, and the error of a sample of n / B runs. Both are unbiased before the regression (`noisy_counts_`).

    **Complexity.** O(n B) time and B bits a report for "relaxed", O(n) time and one number a report for "strict";
    O(B log B) for the regression.

    {parameters}
    References
    ----------
    Zhang, Latif, Bassily, Rountev (2020), "Differentially-private control-flow node coverage for software usage
    analysis", USENIX Security, for the problem; laws and bounds are those of ``coverage.md``, which has the proof.
    Cooper, Harvey, Kennedy (2001), "A simple, fast dominance algorithm". Pardalos, Xue (1999), "Algorithms for a class
    of isotonic regression problems", Algorithmica.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.graph import ControlFlowCoverage
    >>> flow = {"start": ["if", "end"], "if": ["then", "else"], "then": ["end"], "else": ["end"], "end": []}
    >>> runs = np.repeat([[1, 0, 0, 0, 1], [1, 1, 1, 0, 1]], [3000, 1000], axis=0)
    >>> est = ControlFlowCoverage(2.0, flow=flow, random_state=0).fit(runs)
    >>> est.blocks_
    ['start', 'if', 'then', 'else', 'end']
    >>> bool(np.abs(est.counts_ - [4000, 1000, 1000, 0, 4000]).max() < 400)
    True
    """

    merges = "reports"
    _checked_as, _template = "coverage", "rows"
    _not_in_parts = "keeps runs on their users' devices: call privatize there, and aggregate the reports"
    _more_parameters = """
    flow : dict, square matrix or networkx.DiGraph, default=None
        The public control-flow graph: the successors of each block, by name or number; must be declared. Every block
        must be reached from the entry.
    entry : block or None, default=None
        The block where all runs begin. None: the first one.
    relation : {"strict", "relaxed"}, default="strict"
        Whether epsilon is for any two runs, or for runs that differ in at most `max_blocks` blocks.
    max_blocks : int, default=1
        Of "relaxed": in how many blocks two runs differ at most.
    """
    _more_attributes = """
    counts_ : ndarray of shape (n_blocks,)
        How many runs cover each block: none more than the block that dominates it, and all of them the entry.
    noisy_counts_ : ndarray of shape (n_blocks,)
        The same before the regression: unbiased; NaN for a block that no user has drawn.
    blocks_ : list
        The names of the blocks, in the order of columns: as they come in `flow`; ascending, if all are integers.
    dominators_ : ndarray of shape (n_blocks,)
        The number of the immediate dominator of each block, -1 for the entry.
    n_users_ : int
        Runs that were reported.
    """
    #: a parameter that is a dict, and not of columns
    _is_no_table = ("flow",)
    #: (ones of each block, reports of each block, runs), the law and flow of these, whether noise was seeded
    _seen = None

    def __init__(self, epsilon=1.0, *, flow=None, entry=None, relation="strict", max_blocks=1, ledger=None,
                 random_state=None):
        self.epsilon = epsilon
        self.flow = flow
        self.entry = entry
        self.relation = relation
        self.max_blocks = max_blocks
        self.ledger = ledger
        self.random_state = random_state

    def privatize(self, X):
        """Randomise runs into reports, on the users' side; one release of each run.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_runs, n_blocks)
            Whether each run covers each block: zeros and ones, columns in the order of `blocks_`. A data frame whose
            columns are named as blocks may have them in any order.

        Returns
        -------
        ndarray of uint8 of shape (n_runs, (n_blocks + 6) // 8) or of uint32 of shape (n_runs, 1)
            "relaxed": bits of all blocks but the entry, from the lowest bit up. "strict": twice the number of the block
            that was drawn, among those, and its bit.
        """
        self._bind_here()
        flow = self._checked()
        runs = self._read(X, flow)
        promised, source = self._guarantee(flow), WordSource(self.random_state)
        self._charge(promised, len(runs))
        return self._randomised(runs, source)

    def fit(self, X, y=None):
        """Randomise runs and estimate from the reports alone; forgets earlier reports.

        Parameters
        ----------
        X : as for `privatize`
        y : ignored

        Returns
        -------
        self
        """
        reports, flow = self.privatize(X), self._checked()
        return self._take(*self._counted(reports, len(flow.blocks) - 1), len(reports), flow,
                          self.random_state is not None, afresh=True)

    def aggregate(self, reports):
        """Add reports, as `privatize` returns them, of users who have not reported before.

        Parameters
        ----------
        reports : ndarray, as `privatize` returns it

        Returns
        -------
        self
        """
        flow = self._checked()
        ones, asked = self._counted(reports, len(flow.blocks) - 1)
        # (whether clients used seeds is not known here, unless this very object is the seeded client)
        return self._take(ones, asked, len(reports), flow, True if self.random_state is not None else None)

    def merge(self, other):
        """Add what another estimator of the same law has aggregated from other users; returns self."""
        if type(other) is not type(self) or other is self:
            raise ValueError(f"other must be another {type(self).__name__}")
        check_is_fitted(other)
        ones, asked, n_users, law, flow, seeded = other._seen
        mine = self._checked()
        if (self._law(mine), mine, self.relation) != (law, flow, other._relation_seen):
            raise ValueError("other must have the same flow, relation and epsilon: reports of another law do not add "
                             "up")
        return self._take(ones, asked, n_users, mine, seeded)

    @property
    def privacy_(self):
        """What the report of one run promises; after reports what those promise, also if parameters changed since."""
        return self._guarantee(self._checked()) if self._seen is None else self._promise

    def confidence_interval(self, level=0.95):
        """Return (low, high) of `counts_`: all enclose the exact counts at once with at least this probability.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : ndarrays of shape (n_blocks,)
            They fall along the dominator tree, as the exact counts do.
        """
        check_is_fitted(self)
        if isinstance(level, bool) or not 0 < level < 1:
            raise ValueError("level must be a number between 0 and 1")
        (_, asked, n, law, flow, _), parents = self._seen, self.dominators_
        logs = math.log(2 * (len(flow.blocks) - 1)) - math.log1p(-level)
        half = np.zeros(len(parents))
        with np.errstate(divide="ignore"):
            half[_others(flow)] = (n * np.sqrt(logs / (2 * asked)) / law.gain if self._relation_seen == "strict"
                                   else math.sqrt(2 * n * law.proxy * logs))
        known = np.nan_to_num(self.noisy_counts_)
        low, high = np.maximum(known - half, 0.0), np.minimum(known + half, float(n))
        order = from_leaves(parents.tolist())
        for block in order[:-1]:
            low[parents[block]] = max(low[parents[block]], low[block])
        for block in order[-2::-1]:
            high[block] = min(high[block], high[parents[block]])
        return np.minimum(low, self.counts_), np.maximum(high, self.counts_)

    def __sklearn_is_fitted__(self):
        return self._seen is not None

    # ---------------------------------------------------------------- inside

    def _checked(self):
        """Return the flow, or raise ValueError for a wrong parameter."""
        canonical_epsilon(self.epsilon)
        if not isinstance(self.relation, str) or self.relation not in RELATIONS:
            raise ValueError(f"relation must be one of {list(RELATIONS)}")
        most = self.max_blocks
        if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
            raise ValueError("max_blocks must be an int of at least 1")
        check_random_state(self.random_state)
        if self.flow is None:
            raise ValueError("flow must be declared: the public control-flow graph")
        flow = read_flow(self.flow, self.entry)
        self._law(flow)
        return flow

    def _law(self, flow):
        """Return the law of a bit."""
        epsilon = canonical_epsilon(self.epsilon)
        return PairFlips(epsilon if self.relation == "strict" else epsilon / min(
            int(self.max_blocks), len(flow.blocks) - 1))

    def _guarantee(self, flow):
        epsilon, size = canonical_epsilon(self.epsilon), len(flow.blocks) - 1
        whole, name, relaxed = epsilon, None, None
        if self.relation == "relaxed" and self.max_blocks < size:
            whole, relaxed = epsilon / int(self.max_blocks) * size, epsilon
            name = f"runs that differ in at most {int(self.max_blocks)} of {size} blocks"
        return PrivacyGuarantee(whole, 0, "local", Neighbours.LOCAL, self.random_state is not None,
                                ("That a run covers the entry is public.",), relaxation=name, relaxed_epsilon=relaxed)

    def _read(self, X, flow):
        """Return an array whose entries are not 0 where a run covers a block, or raise ValueError."""
        refuse_parts(X, "X")
        refuse_masked(X, "X")
        wanted = "X must have a row for each run and a column for each block of flow, zeros and ones"
        if is_frame(X):
            names = list(X.columns)
            if sorted(map(str, names)) == sorted(map(str, flow.blocks)):
                places = {str(name): place for place, name in enumerate(names)}
                X = X.to_numpy()[:, [places[str(block)] for block in flow.blocks]]
            else:
                raise ValueError("X must have a column for each block of flow, with its name")
        if sparse.issparse(X):
            X = entries_of(X).toarray()
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "biuf" or not len(X):
            raise ValueError(wanted)
        if X.shape[1] != len(flow.blocks):
            raise ValueError(wanted)
        if not self._is_strict():
            if X.dtype.kind == "f" and np.isnan(X).any():
                raise ValueError("X must have no missing values (NaN): leave out runs whose blocks are not all known")
            whole = X.dtype.kind != "f" or (np.floor(X) == X).all()
            if not (whole and X.min() >= 0 and X.max() <= 1):
                raise ValueError(wanted)
        return X

    def _randomised(self, runs, source):
        flow, n = self._checked(), len(runs)
        law, others = self._law(flow), _others(flow)
        size = len(others)
        if self.relation == "strict":
            words = source.reader().dense(Stage.RESPONSE, _CHOICE, 0, 0, n)
            drawn = (words % np.uint64(size)).astype(np.int64)  # (what is drawn depends on no run)
            bits = law.add(np.packbits(runs[np.arange(n), others[drawn]] != 0, bitorder="little"), source)
            said = np.unpackbits(bits, count=n, bitorder="little")
            return (2 * drawn + said).astype(np.uint32)[:, None]
        bits = law.add(np.packbits(runs[:, others] != 0, axis=1, bitorder="little"), source)
        if size % 8:
            bits[:, -1] &= (1 << size % 8) - 1
        return bits

    def _counted(self, reports, size):
        """Return (ones of each block, reports of each block), or raise ValueError."""
        strict = self.relation == "strict"
        width, dtype = (1, np.uint32) if strict else (-(-size // 8), np.uint8)
        if not isinstance(reports, np.ndarray) or reports.dtype != dtype or reports.shape[1:] != (width,):
            raise ValueError(f"reports must be what privatize returns: {np.dtype(dtype)} with {width} numbers a user")
        if strict:
            if len(reports) and reports.max() >= 2 * size:
                raise ValueError("reports must be about blocks of flow")
            found = np.bincount(reports[:, 0], minlength=2 * size)
            return found[1::2].astype(np.int64), (found[::2] + found[1::2]).astype(np.int64)
        if size % 8 and len(reports) and (reports[:, -1] >> size % 8).any():
            raise ValueError("reports must be about blocks of flow")
        ones = np.zeros(size, np.int64)
        for first in range(0, len(reports), 1 << 14):
            ones += np.unpackbits(reports[first : first + (1 << 14)], axis=1, count=size, bitorder="little").sum(
                0, dtype=np.int64)
        return ones, np.full(size, len(reports), np.int64)

    def _take(self, ones, asked, n_users, flow, seeded, afresh=False):
        law, mine = self._law(flow), None if afresh else self._seen
        if mine is not None:
            if (mine[3], mine[4], self._relation_seen) != (law, flow, self.relation):
                raise ValueError("parameters must be those of the earlier reports: call fit, or make a new estimator")
            ones, asked, n_users = ones + mine[0], asked + mine[1], n_users + mine[2]
            seeded = True if True in (seeded, mine[5]) else None if None in (seeded, mine[5]) else False
        parents, others = dominators(flow), _others(flow)
        with np.errstate(invalid="ignore"):
            shares = (ones - asked * float(law.flip)) / law.gain / asked
        noisy = np.full(len(flow.blocks), float(n_users))
        noisy[others] = n_users * shares
        weights = np.full(len(noisy), float(n_users))
        weights[others] = asked
        some = np.nan_to_num(noisy)
        # (the entry is known, so that it holds whatever is below it; a block that nobody drew follows the others)
        weights[flow.entry] = 1e12 * max(n_users, 1)
        counts = np.clip(fall_along(some, parents, np.maximum(weights, 1e-6)), 0, n_users)
        counts[flow.entry] = n_users
        return self._become({
            "counts_": counts, "noisy_counts_": noisy, "blocks_": list(flow.blocks), "dominators_": parents,
            "n_users_": n_users, "_seen": (ones, asked, n_users, law, flow, seeded), "_relation_seen": self.relation,
            "_promise": replace(self._guarantee(flow), seeded=seeded)})

    def _result_parts(self, level):
        ends = np.stack(self.confidence_interval(level), -1) if level else None
        return [Part("runs", (("block", named(np.array(self.blocks_, object))),), self.counts_, None, ends)]

    def _relation(self):
        return Neighbours.LOCAL

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # (columns are blocks of a program, and nothing but 0 and 1)
        return tags

    def _test_data(self, n_rows, seed=0):
        """Return runs of the flow of the test settings: random walks from the entry."""
        flow, rng = self._checked(), np.random.default_rng(seed)
        runs = np.zeros((n_rows, len(flow.blocks)), np.uint8)
        for run in runs:
            block = flow.entry
            for _ in range(2 * len(flow.blocks)):
                run[block] = 1
                if not flow.successors[block]:
                    break
                block = flow.successors[block][rng.integers(len(flow.successors[block]))]
        return runs, None

    @classmethod
    def _test_params(cls):
        flow = {0: [1, 4], 1: [2, 3], 2: [5], 3: [5], 4: [5], 5: [1, 6], 6: []}
        return [{"epsilon": 1.0, "flow": flow}, {"epsilon": 2.0, "flow": flow, "relation": "relaxed", "max_blocks": 2}]


def _others(flow):
    """Return the numbers of all blocks but the entry."""
    return np.delete(np.arange(len(flow.blocks)), flow.entry)
