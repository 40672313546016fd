"""Orders and cycles of a directed graph given by the parents of each variable."""

import heapq
from collections.abc import Sequence

_SHOWN_VARIABLES = 10


def topological_order(parents: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Variables with every parent before its children, the smallest index first among those that are ready.

    O(n log n + arcs). Variables on a cycle, and their descendants, are left out: a result shorter than `parents` says
    that there is a cycle.
    """
    waiting = [len(of_child) for of_child in parents]
    children: list[list[int]] = [[] for _ in parents]
    for child, of_child in enumerate(parents):
        for parent in of_child:
            children[parent].append(child)
    ready = [variable for variable, count in enumerate(waiting) if count == 0]
    order = []
    while ready:
        variable = heapq.heappop(ready)
        order.append(variable)
        for child in children[variable]:
            waiting[child] -= 1
            if waiting[child] == 0:
                heapq.heappush(ready, child)
    return tuple(order)


def find_cycle(parents: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Variables of one cycle, each the parent of the next and the last of the first; empty if there is none.

    Starts with the smallest index on the cycle. O(n log n + arcs).
    """
    left = set(range(len(parents))).difference(topological_order(parents))
    if not left:
        return ()
    # A variable is left only if one of its parents is, so walking from child to parent within `left` must come back.
    walk = [min(left)]
    place = {walk[0]: 0}
    while True:
        parent = next(parent for parent in parents[walk[-1]] if parent in left)
        if parent in place:
            cycle = walk[place[parent] :][::-1]
            first = cycle.index(min(cycle))
            return (*cycle[first:], *cycle[:first])
        place[parent] = len(walk)
        walk.append(parent)


def describe_cycle(names: Sequence[str]) -> str:
    """Write the names of the variables of a cycle, leaving out the middle of a long one."""
    shown = [*names[:_SHOWN_VARIABLES], "..."] if len(names) > _SHOWN_VARIABLES else names
    return f"the arcs hold a cycle: {' -> '.join((*shown, names[0]))}"
