"""Which parts of a Dask collection one task makes and answers for: a task costs 0.5 to 3 ms, an answer often less.

Parts that are made for a request are made one after the other within a task, so that a thread holds one of them in
memory. Parts that workers hold already are answered where they are.
"""

from collections import Counter
from typing import NamedTuple

#: Tasks that a thread gets at least, where there are enough parts: threads must end at about the same time.
_TASKS_OF_A_THREAD = 8
#: Parts of a task at most: what a dead worker has to do again.
_PARTS_OF_A_TASK = 16
_MADE = "by the task itself"


class Part(NamedTuple):
    """What a task runs to make a part, what it is given for that, and which of all that are the part; all by keys."""

    tasks: dict
    given: tuple
    keys: tuple

    @property
    def is_made(self):
        """Whether a task makes the part from nothing."""
        return not self.given


def parts_of(graph, keys):
    """Return the parts of a graph, one for each tuple of keys."""
    def needs_of(todo):
        needs, todo = set(), list(todo)
        while todo:
            key = todo.pop()
            if key not in needs:
                needs.add(key)
                todo += () if _is_held(graph, key) else _needs(graph, key)
        return needs

    keys = [tuple(_meant(graph, key) for key in own) for own in keys]
    needs = [needs_of(own) for own in keys]
    used = Counter(key for own in needs for key in own)
    return [_part(graph, need, used, own) for own, need in zip(keys, needs)]


def _part(graph, needs, used, keys):
    held = [key for key in needs if _is_held(graph, key)]
    tasks = {key: graph[key] for key in needs.difference(held)}
    if any(used[key] > 1 or getattr(task, "block_fusion", False) for key, task in tasks.items()):
        return Part({}, keys, keys)  # (what makes other parts, too, runs once and by itself)
    return Part(tasks, tuple(held), keys)


def _meant(graph, key):
    """Return the key of what a key is another name of, which would be a task, too."""
    while type(graph.get(key)).__name__ == "Alias":
        key = graph[key].target
    return key


def _needs(graph, key):
    """Return the keys that a task takes, those that are in no graph, too."""
    from dask.core import get_dependencies

    known = getattr(graph[key], "dependencies", None)
    return known if isinstance(known, frozenset) else get_dependencies(graph, key)


def _is_held(graph, key):
    """Return whether workers hold this already, or will without us."""
    return key not in graph or type(graph[key]).__name__ == "Future"


def futures_of(keys):
    """Return what workers hold under keys that no graph tells of, by key: a task knows it by nothing else."""
    if not keys:
        return {}
    from distributed import Future

    return {key: Future(key, _client()) for key in keys}


def groups_of(parts, collections):
    """Return (lists of the numbers of parts that one task answers for, whether it is known where all parts are)."""
    client = _client()
    if client is None:  # (in this process a task costs little)
        return [[number] for number in range(len(parts))], True
    threads, holder, alike = client.nthreads(), {}, {}
    if not all(part.is_made for part in parts):
        holder = {key: min(workers) for key, workers in client.who_has(collections).items() if workers}
    used = Counter(key for part in parts for key in part.given)
    for number, part in enumerate(parts):
        # (what several parts take does not say where they are)
        homes = {holder.get(key) if used[key] == 1 else None for key in part.given}
        home = _MADE if part.is_made else homes.pop() if len(homes) == 1 else None
        alike.setdefault(number if home is None else home, []).append(number)
    groups = []
    for home, numbers in alike.items():
        least = _TASKS_OF_A_THREAD * sum(threads.values()) if home == _MADE else threads.get(home, 1)
        each = min(_PARTS_OF_A_TASK, max(1, len(numbers) // max(1, least)))
        groups += [numbers[at : at + each] for at in range(0, len(numbers), each)]
    return groups, all(isinstance(home, str) for home in alike)


def _client():
    """Return the client of the cluster that would compute, or None."""
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None
