"""Control-flow graphs: reading them, the dominator tree, and numbers that fall along a tree."""


import numpy as np
from scipy import sparse

from dpestim.records import record

_WANTED = ("flow must be a dict of the successors of each block, such as {0: [1, 2], 1: [3], 2: [3], 3: []}, a square "
           "matrix of zeros and ones, or a networkx.DiGraph")


@record
class Flow:
    """A public control-flow graph: names of blocks, the successors of each by number, and the number of the entry."""

    blocks: tuple
    successors: tuple
    entry: int


def read_flow(flow, entry):
    """Return a `Flow`, or raise ValueError; all of it is public."""
    if isinstance(flow, np.ndarray) or sparse.issparse(flow):
        matrix = sparse.csr_array(flow) if flow.ndim == 2 and flow.dtype.kind in "biuf" else None
        if matrix is None or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(_WANTED)
        flow = {i: matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]].tolist() for i in range(matrix.shape[0])}
    pairs = getattr(flow, "adj", flow)
    if not hasattr(pairs, "items"):
        raise ValueError(_WANTED)
    try:
        known = {block: list(after) for block, after in pairs.items() if not isinstance(after, str)}
        places = {block: None for block in known} | {block: None for after in known.values() for block in after}
        blocks = tuple(sorted(places) if all(isinstance(block, int | np.integer) for block in places) else places)
        places = {block: place for place, block in enumerate(blocks)}
        successors = tuple(tuple(sorted({places[after] for after in known.get(block, ())})) for block in blocks)
        first = blocks[0] if entry is None else entry
        start = places.get(first)
    except (TypeError, IndexError):
        start = -1
    if start == -1 or len(known) != len(pairs):
        raise ValueError(_WANTED)
    if start is None:
        raise ValueError("entry must be a block of flow")
    if len(blocks) < 2:
        raise ValueError("flow must have at least two blocks")
    found = Flow(blocks, successors, start)
    if len(_postorder(found)) < len(blocks):
        raise ValueError("flow must lead from entry to every block: leave out blocks that no run can cover")
    return found


def dominators(flow):
    """Return the immediate dominator of each block, -1 for the entry (Cooper, Harvey and Kennedy)."""
    order = _postorder(flow)
    rank = {block: place for place, block in enumerate(order)}
    before = [[] for _ in flow.blocks]
    for block, after in enumerate(flow.successors):
        for other in after:
            before[other].append(block)
    parents = [None] * len(flow.blocks)
    parents[flow.entry] = flow.entry
    changed = True
    while changed:
        changed = False
        for block in order[-2::-1]:  # (from the entry on, which is the last and stays)
            found = None
            for other in before[block]:
                if parents[other] is None:
                    continue
                if found is None:
                    found = other
                while found != other:
                    while rank[found] < rank[other]:
                        found = parents[found]
                    while rank[other] < rank[found]:
                        other = parents[other]
            if parents[block] != found:
                parents[block], changed = found, True
    parents[flow.entry] = -1
    return np.array(parents)


def _postorder(flow):
    """Return the blocks that are reached, each after all that are first reached through it."""
    seen, order, stack = {flow.entry}, [], [(flow.entry, iter(flow.successors[flow.entry]))]
    while stack:
        block, rest = stack[-1]
        after = next((other for other in rest if other not in seen), None)
        if after is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(after)
            stack.append((after, iter(flow.successors[after])))
    return order


def fall_along(values, parents, weights=None):
    """Return the numbers closest to these of which none is above its parent's, by weighted squares: O(n log n).

    From the leaves up, each node is a block of one; while the child block of the largest mean is above its parent's
    block, the two become one (Pardalos and Xue). Child blocks are in skew heaps: two are merged in O(log n) on average.
    """
    n = len(values)
    weights = np.ones(n) if weights is None else np.asarray(weights, float)
    totals = (np.asarray(values, float) * weights).tolist()
    weights, parents = weights.tolist(), np.asarray(parents).tolist()
    means = [total / weight for total, weight in zip(totals, weights)]
    heap, left, right, owner = [-1] * n, [-1] * n, [-1] * n, list(range(n))

    def joined(a, b):  # (without recursion: the right-hand paths are merged, and children swapped from below)
        path = []
        while a >= 0 and b >= 0:
            if means[a] < means[b]:
                a, b = b, a
            path.append(a)
            a = right[a]
        low = a if b < 0 else b
        for top in reversed(path):
            left[top], right[top] = low, left[top]
            low = top
        return low

    for node in from_leaves(parents):
        while heap[node] >= 0 and means[heap[node]] > means[node]:
            child = heap[node]
            heap[node] = joined(joined(left[child], right[child]), heap[child])
            left[child] = right[child] = -1
            totals[node] += totals[child]
            weights[node] += weights[child]
            means[node] = totals[node] / weights[node]
            owner[child] = node
        if parents[node] >= 0:
            heap[parents[node]] = joined(heap[parents[node]], node)
    for node in reversed(from_leaves(parents)):
        if owner[node] != node:
            owner[node] = owner[owner[node]]
    return np.array([means[owner[node]] for node in range(n)])


def from_leaves(parents):
    """Return all nodes of a tree, each after its children; the root has the parent -1."""
    children = [[] for _ in parents]
    root = 0
    for node, parent in enumerate(parents):
        if parent < 0:
            root = node
        else:
            children[parent].append(node)
    order = [root]
    for node in order:
        order.extend(children[node])
    return order[::-1]
