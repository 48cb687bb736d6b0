"""How many edges cross a cut: declared cuts with noise for these, or all pairs of nodes for any later cut."""

import math
from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_gaussian import DiscreteGaussianLaw
from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.base import declared_delta
from dpestim.graph import pairs
from dpestim.graph.edge_release import EdgeRelease
from dpestim.privacy.exact import canonical_epsilon
from dpestim.results import Part

#: Operations that the exact sensitivity may take; beyond, the number of cuts bounds it.
_MOST = 10**10
#: Floats of 32 bits tell integers apart up to this number.
_EXACT = 1 << 24


class CutEstimator(EdgeRelease):
    """Publish how many edges join two sides of a cut: for declared cuts, or for any cut that is asked later.

    A cut is a set of nodes; its value is the number of edges between the set and all other nodes. Declared cuts get
    noise for as many of them as one edge can cross. Without a declaration every pair of nodes gets randomised response,
    and each later cut is an unbiased sum of published bits.

    **Privacy.** Pure epsilon in the central model, and (epsilon, delta) with a delta, for graphs on the same nodes of
    which one has one edge more. What is protected is a relationship of two persons, not a person: epsilon grows with
    the number of edges in which two graphs differ. The nodes, their number and the cuts are public. The curator, who
    holds the graph, must be trusted.

    **Utility.** Let D be the most declared cuts that separate any two nodes. Noise of each cut has the standard
    deviation 1.4 D / epsilon, and with a delta about sqrt(2 D ln(1 / delta)) / epsilon, whichever is less. Of any later
    cut with N pairs of nodes across it: sqrt(N e^epsilon) / (e^epsilon - 1), at most about n / (2 epsilon) for n nodes.

    **Complexity.** O(cuts times edges) time for declared cuts. Without a declaration O(n^2) time, and n^2 / 8 bytes of
    memory, for 20,000 nodes at most.

    {parameters}
    References
    ----------
    Gupta, Roth, Ullman (2012), "Iterative constructions and private data release", TCC, for all cuts from noise for
    each pair. Kearns, Saul (1998), "Large deviation methods for approximate probabilistic inference", UAI, for the
    error bound. The proof: ``cuts.md``.

    Examples
    --------
    >>> from dpestim.graph import CutEstimator, adjacency
    >>> circle = adjacency([(i, (i + 1) % 60) for i in range(60)], 60)
    >>> est = CutEstimator(1.0, cuts=[range(30), range(0, 60, 2)], random_state=0).fit(circle)
    >>> bool(abs(est.values_ - [2, 60]).max() < 20)
    True
    >>> later = CutEstimator(4.0, random_state=0).fit(circle)
    >>> bool(abs(later.estimate([range(0, 60, 2)])[0] - 60) < later.error_bound([range(0, 60, 2)], 0.999)[0])
    True
    """

    _more_parameters = """
    cuts : list of sequences of int, bool ndarray of shape (n_cuts, n_nodes) or None, default=None
        The nodes on one side of each cut, by number. None: any cut may be asked later, by `estimate`.
    delta : float or None, default=None
        Of declared cuts: None for noise of pure epsilon; else above 0 and below 1, for less noise where edges cross
        many cuts.
    """
    _more_attributes = """
    values_ : ndarray of shape (n_cuts,)
        Of declared cuts: the edges across each, unbiased. Without a declaration: the number of all edges alone.
    standard_error_ : float
        The standard deviation of the noise of each value.
    noisy_pairs_ : ndarray of shape (n_nodes, (n_nodes + 7) // 8)
        Without a declaration: bits of all pairs, by randomised response. Bit j of row i < j, from the lowest bit up.
    flip_ : Fraction
        Without a declaration: the exact probability that a bit is the wrong one.
    n_nodes_ : int
        The number of nodes, which is public.
    """
    _released = "values_"

    def __init__(self, epsilon=1.0, *, cuts=None, delta=None, ledger=None, random_state=None):
        self.epsilon = epsilon
        self.cuts = cuts
        self.delta = delta
        self.ledger = ledger
        self.random_state = random_state

    def estimate(self, cuts):
        """Return the number of edges across each of these cuts, unbiased, from the bits of all pairs; it is free.

        Parameters
        ----------
        cuts : list of sequences of int, or bool ndarray of shape (n_cuts, n_nodes)
            The nodes on one side of each cut.

        Returns
        -------
        ndarray of shape (n_cuts,)
        """
        sides = self._later(cuts)
        return self._law.unbiased(pairs.crossing(self.noisy_pairs_, sides.T), _across(sides))

    def standard_error(self, cuts):
        """Return the standard deviation of `estimate` of each of these cuts, exactly.

        Parameters
        ----------
        cuts : as for `estimate`

        Returns
        -------
        ndarray of shape (n_cuts,)
        """
        return np.sqrt(_across(self._later(cuts)) * self._law.variance)

    def error_bound(self, cuts, confidence=0.95, *, all_cuts=False):
        """Return what the error of `estimate` exceeds with a probability of 1 - confidence at most, for any graph.

        Parameters
        ----------
        cuts : as for `estimate`
        confidence : float, default=0.95
            In (0, 1).
        all_cuts : bool, default=False
            False: for each cut by itself, which is chosen before the bits are seen. True: the bounds of all cuts of the
            graph hold at once, so that cuts may be chosen by the bits.

        Returns
        -------
        ndarray of shape (n_cuts,)
        """
        if isinstance(confidence, bool) or not 0 < confidence < 1:
            raise ValueError("confidence must be a number between 0 and 1")
        logs = (self.n_nodes_ if all_cuts else 1) * math.log(2) - math.log1p(-confidence)
        return np.sqrt(2 * _across(self._later(cuts)) * self._law.proxy * logs)

    def confidence_interval(self, level=0.95):
        """Return (low, high) of `values_`: each encloses the exact number with at least this probability.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).

        Returns
        -------
        (low, high) : ndarrays of the shape of `values_`
        """
        if isinstance(level, bool) or not 0 < level < 1:
            raise ValueError("level must be a number between 0 and 1")
        if self._sides is None:
            half = math.sqrt(2 * self._most[0] * self._law.proxy * (math.log(2) - math.log1p(-level)))
        else:
            half = self._law.half_width(level)
        return np.clip(self.values_ - half, 0, self._most), np.clip(self.values_ + half, 0, self._most)

    @property
    def standard_error_(self):
        """The standard deviation of the noise of each value."""
        return math.sqrt(self._law.variance * (self._most[0] if self._sides is None else 1))

    # ---------------------------------------------------------------- inside

    def _later(self, cuts):
        if getattr(self, "noisy_pairs_", None) is None:
            raise ValueError("cuts of an estimator with declared cuts are answered by values_: fit one with cuts=None, "
                             "which answers any cut later")
        return _sides(cuts, self.n_nodes_)

    def _budget(self):
        epsilon, delta = canonical_epsilon(self.epsilon), declared_delta(self.delta)
        if delta and self.cuts is None:
            raise ValueError("delta must be None without declared cuts: randomised response of each pair needs none")
        return epsilon, delta, None

    def _nodes_of_audit(self):
        if isinstance(self.cuts, np.ndarray) and self.cuts.ndim == 2:
            return self.cuts.shape[1]
        return max([8, *(int(max(cut, default=0)) + 1 for cut in self.cuts or ())])

    def _check_graph(self, graph):
        if self.cuts is not None:
            _sides(self.cuts, graph.n_nodes)
        elif graph.n_nodes > pairs.LARGEST:
            raise ValueError(f"cuts must be declared for a graph of more than {pairs.LARGEST} nodes, because all pairs "
                             "of nodes would be published")

    def _noisy_parts(self, n_nodes):
        epsilon, delta, _ = self._budget()
        if self.cuts is None:
            return [pairs.PairFlips(epsilon)]
        sides = _sides(self.cuts, n_nodes)
        moved = max(_separated(sides), 1)
        laws = [DiscreteLaplaceLaw(epsilon, Fraction(0), Fraction(moved), 0)]
        if delta:
            root = Fraction(math.isqrt(moved << 80) + 1, 1 << 40) if math.isqrt(moved) ** 2 != moved else Fraction(
                math.isqrt(moved))
            laws.append(DiscreteGaussianLaw(epsilon, delta, root, 0, min(len(sides), 2)))
        return [min(laws, key=lambda law: law.variance)]

    def _answers(self, graph):
        if self.cuts is None:
            return [pairs.packed(graph)]
        sides = _sides(self.cuts, graph.n_nodes)
        rows = np.repeat(np.arange(graph.n_nodes), graph.degrees)
        once = rows < graph.neighbours
        ends, others = rows[once], graph.neighbours[once]
        return [np.array([np.count_nonzero(side[ends] != side[others]) for side in sides], np.int64)]

    def _learned(self, noisy, n_nodes):
        (law,), (noisy,) = self._noisy_parts(n_nodes), noisy
        if self.cuts is not None:
            sides = _sides(self.cuts, n_nodes)
            return {"values_": noisy.astype(float), "_law": law, "_sides": sides, "_most": _across(sides)}
        most, bits = math.comb(n_nodes, 2), pairs.upper(noisy)
        return {"values_": np.array([law.unbiased(pairs.ones(bits), most)]), "noisy_pairs_": bits, "flip_": law.flip,
                "_law": law, "_sides": None, "_most": np.array([most])}

    def _result_parts(self, level):
        ends = np.stack(self.confidence_interval(level), -1) if level else None
        errors = np.full(len(self.values_), self.standard_error_)
        name = "edges" if self._sides is None else "edges across the cut"
        if self._sides is None:
            return [Part(name, (), self.values_[0], errors[0], None if ends is None else ends[0])]
        return [Part(name, (("cut", list(range(len(self.values_)))),), self.values_, errors, ends)]

    @classmethod
    def _test_params(cls):
        return [{"epsilon": 1.0, "cuts": [[0, 1], [1, 2], [0]]}, {"epsilon": 2.0},
                {"epsilon": 1.0, "delta": 1e-3, "cuts": [[k] for k in range(4)] + [[0, k] for k in range(1, 4)] * 5}]


def _sides(cuts, n_nodes):
    """Return a bool matrix with a row for each cut, or raise ValueError."""
    wanted = ("cuts must be a list of sets of nodes, each a sequence of numbers from 0 to n_nodes - 1, or a bool array "
              "with a row for each cut and a column for each node")
    if isinstance(cuts, np.ndarray) and cuts.dtype == bool:
        if cuts.ndim != 2 or cuts.shape[1] != n_nodes or not len(cuts):
            raise ValueError(wanted)
        return cuts
    if isinstance(cuts, str) or not hasattr(cuts, "__len__") or not len(cuts):
        raise ValueError(wanted)
    found = np.zeros((len(cuts), n_nodes), bool)
    for row, cut in zip(found, cuts):
        nodes = np.asarray(cut if hasattr(cut, "__len__") else ["no sequence"])
        whole = nodes.ndim == 1 and (not nodes.size or nodes.dtype.kind in "iu")
        if not whole or (nodes.size and not 0 <= nodes.min() <= nodes.max() < n_nodes):
            raise ValueError(wanted)
        row[nodes.astype(np.int64)] = True
    return found


def _across(sides):
    """Return the pairs of nodes on different sides of each cut."""
    inside = sides.sum(1, dtype=np.int64)
    return inside * (sides.shape[1] - inside)


def _separated(sides):
    """Return the most cuts that separate any two nodes; with too many cuts and nodes, at least that."""
    if len(sides) > _EXACT:
        return len(sides)
    alike = np.unique(np.packbits(sides.T, axis=1), axis=0)
    if len(alike) ** 2 * len(sides) > _MOST:
        return len(sides)
    columns = np.unpackbits(alike, axis=1, count=len(sides)).astype(np.float32)
    ones = columns.sum(1)
    return max(int((ones[k] + ones - 2 * columns @ columns[k]).max()) for k in range(len(columns)))
