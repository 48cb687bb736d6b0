"""What releases from a graph for whole nodes: it cuts the graph to a bound that is chosen privately, and adds noise."""

from fractions import Fraction

import numpy as np

from dpestim.central.additive.discrete_laplace import DiscreteLaplaceLaw
from dpestim.central.base import CentralMechanism
from dpestim.central.stability.rows import checked_share
from dpestim.graph.nodes.choosing import Bounds
from dpestim.graph.reading import read_graph
from dpestim.graph.tags import TagsOfGraphs
from dpestim.privacy import Neighbours
from dpestim.privacy.exact import canonical_epsilon
from dpestim.progress import Progress
from dpestim.rng import WordSource, check_random_state

#: Bounds are no larger.
_LARGEST = 1 << 20
PARAMETERS = """
    bound : int, default=None
        The public bound, from 1 to 2^20. None: it is chosen privately.
    max_bound : int, default=1024
        The bounds to choose from are 1, 2, 4, ... up to this public number.
    bound_fraction : float, default=0.5
        The part of epsilon, above 0 and below 1, that the choice of the bound takes.
"""


class NodeRelease(TagsOfGraphs, CentralMechanism):
    """Base: a sub-class says how a graph is cut, by the class `_kind()`, and what is learned of noisy answers.

    What `of` makes of a graph has, for each bound: `total`, how much it keeps, an integer that one node more raises by
    `rise` or lowers by `fall` at most; and `answers`, integers, as many as `size`, which one node more moves by
    `sensitivity` at most, in all. Totals and answers are secret, the rest is public.
    """

    _checked_as, _template = "nodes", "rows"
    _not_in_parts = ("needs all edges at once, because an edge may join nodes of several parts: fit it to the whole "
                     "graph on one machine")

    def fit(self, X, y=None):
        """Release once: it is charged before anything is drawn; nothing else is kept.

        Parameters
        ----------
        X : sparse matrix, ndarray of shape (n_nodes, n_nodes) or networkx.Graph
            An undirected graph as a symmetric adjacency matrix of zeros and ones with a zero diagonal. `adjacency`
            makes one of a table of edges. It may have no node.
        y : ignored

        Returns
        -------
        self
        """
        self._bind_here()
        kind, bounds = self._kind(), self._bounds()
        graph = self._read(X)
        promised, source = self._guarantee(), WordSource(self.random_state)
        self._pay()
        order, choice, noise = (source.part(k) for k in range(3))
        bound, law, noisy = self._drawn(kind.of(graph, order, self), bounds, choice, noise)
        return self._become({**self._learned(noisy), "bound_": bound, "_law_": law, "_kept_promise": promised})

    def __sklearn_is_fitted__(self):
        return hasattr(self, "bound_")

    # ---------------------------------------------------------------- inside

    def _drawn(self, seen, bounds, choice, noise):
        """Return (the bound, the law of the noise, noisy answers)."""
        bound = bounds.draw(seen, choice, Progress(self, len(bounds.bounds), "bound").of)
        law, answers = self._law(type(seen), bound), seen.answers(bound)
        return bound, law, [answer + z for answer, z in zip(answers, law.draw(noise, len(answers)).tolist())]

    def _read(self, X):
        return read_graph(X, strict=self._is_strict())

    def _seen(self, X, source):
        """Return what is made of a graph, whose order of edges the source draws; secret."""
        return self._kind().of(self._read(X), source, self)

    def _relation(self):
        return Neighbours.NODE

    def _budget(self):
        self._kind()
        self._bounds()
        return canonical_epsilon(self.epsilon), Fraction(0), None

    def _share(self):
        """Return the part of epsilon that the choice takes, as a Fraction."""
        share = checked_share(self.bound_fraction, "bound_fraction")
        return share if self.bound is None else Fraction(0)

    def _law(self, kind, bound):
        """Return the law of the noise of one answer."""
        epsilon = canonical_epsilon(self.epsilon) * (1 - self._share())
        return DiscreteLaplaceLaw(epsilon, Fraction(0), Fraction(kind.sensitivity(bound, self)), 0)

    def _bounds(self):
        """Return the `Bounds` to choose from; ValueError for whatever parameter is wrong."""
        check_random_state(self.random_state)
        largest = _checked_bound(self.max_bound, "max_bound")
        if self.bound is None:
            found = [1 << k for k in range(largest.bit_length())]
        else:
            found = [_checked_bound(self.bound, "bound")]
        kind = self._kind()
        laws = [self._law(kind, b) for b in found]  # (ValueError, where noise would not fit into integers)
        errors = [kind.size(b) * float(law.sensitivity / law.epsilon) for b, law in zip(found, laws)]
        return Bounds(found, errors, canonical_epsilon(self.epsilon) * self._share())

    def _notes(self):
        return ("What is protected is a node with all its edges, such as a person with all relationships. The number "
                "of nodes is private, too.",)

    def _test_data(self, n_rows, seed=0):
        """Return the adjacency matrix of a random graph."""
        upper = np.triu(np.random.default_rng(seed).random((n_rows, n_rows)) < 0.2, 1)
        return (upper | upper.T).astype(np.uint8), None


def _checked_bound(value, name):
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= _LARGEST:
        raise ValueError(f"{name} must be an int from 1 to 2^20")
    return int(value)


def chosen(options, value, name):
    """Return what a name stands for, or raise ValueError."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {sorted(options)}")
    return options[value]
