"""The forest of greatest weight of one row (Chu, Liu and Edmonds), dense, O(n^3) at worst and O(n^2) mostly."""

from math import inf, log

import numpy as np
from numba import njit

from ldfm.kernels.forest_draws import NO_FOREST


@njit(nogil=True, cache=True, error_model="numpy")
def _find_cycle(best, alive, cycle):
    """Fill `cycle` with the nodes of some loop of the map node -> best[node]; give its length, 0 without any."""
    nodes = best.shape[0]
    seen = np.zeros(nodes, dtype=np.int64)
    for start in range(1, nodes):
        if not alive[start] or seen[start]:
            continue
        node = start
        while node != 0 and seen[node] == 0:
            seen[node] = start
            node = best[node]
        if node != 0 and seen[node] == start:
            length = 0
            first = node
            while True:
                cycle[length] = node
                length += 1
                node = best[node]
                if node == first:
                    return length
    return 0


@njit(nogil=True, cache=True, error_model="numpy")
def _best_arc(weights, alive, child):
    """Give the parent with the greatest weight into `child`, -1 where there is none; the first of equals."""
    parent = -1
    largest = -inf
    for node in range(weights.shape[0]):
        if alive[node] and node != child and weights[node, child] > largest:
            largest = weights[node, child]
            parent = node
    return parent


@njit(nogil=True, cache=True, error_model="numpy")
def _contract(weights, tails, heads, best, alive, cycle, length):
    """Merge the nodes of a cycle into its first, remembering in `tails` and `heads` which arc each weight stands for."""
    merged = cycle[0]
    inside = np.zeros(weights.shape[0], dtype=np.bool_)
    kept = np.empty(length)
    for c in range(length):
        inside[cycle[c]] = True
        kept[c] = weights[best[cycle[c]], cycle[c]]
    for node in range(weights.shape[0]):
        if not alive[node] or inside[node]:
            continue
        into, out = -inf, -inf
        into_at, out_at = merged, merged
        for c in range(length):
            member = cycle[c]
            # to enter at a member gives up the cycle's own arc into it
            if weights[node, member] - kept[c] > into:
                into = weights[node, member] - kept[c]
                into_at = member
            if weights[member, node] > out:
                out = weights[member, node]
                out_at = member
        into_tail, into_head = tails[node, into_at], heads[node, into_at]
        out_tail, out_head = tails[out_at, node], heads[out_at, node]
        weights[node, merged], weights[merged, node] = into, out
        tails[node, merged], heads[node, merged] = into_tail, into_head
        tails[merged, node], heads[merged, node] = out_tail, out_head
    for c in range(1, length):
        alive[cycle[c]] = False


@njit(nogil=True, cache=True, error_model="numpy")
def best_forest(arcs, parents):
    """Fill `parents` (n,) with the forest of greatest weight, root = -1; all -2 where Z = 0.

    Returns
    -------
    log weight of the forest, -inf where there is none.
    """
    nodes, n = arcs.shape
    logs = np.full((nodes, n), -inf)
    for i in range(nodes):
        for j in range(n):
            if i != j + 1 and arcs[i, j] > 0.0:
                logs[i, j] = log(arcs[i, j])
    return best_forest_of_logs(logs, parents)


@njit(nogil=True, cache=True, error_model="numpy")
def best_forest_of_logs(logs, parents):
    """Do the same for an arc matrix (n + 1, n) of the logs of weights."""
    nodes = logs.shape[0]
    weights = np.full((nodes, nodes), -inf)
    tails = np.zeros((nodes, nodes), dtype=np.int64)
    heads = np.zeros((nodes, nodes), dtype=np.int64)
    for i in range(nodes):
        for j in range(1, nodes):
            tails[i, j], heads[i, j] = i, j
            weights[i, j] = logs[i, j - 1]
    alive = np.ones(nodes, dtype=np.bool_)
    best = np.zeros(nodes, dtype=np.int64)
    cycle = np.zeros(nodes, dtype=np.int64)
    # of each merger: which node every original node belonged to before it, and the arcs the cycle's members had
    member_of = np.empty((nodes, nodes), dtype=np.int64)
    own_tails = np.full((nodes, nodes), -1, dtype=np.int64)
    own_heads = np.full((nodes, nodes), -1, dtype=np.int64)
    belongs = np.arange(nodes)
    mergers = np.zeros(nodes, dtype=np.int64)
    count = 0
    while True:
        for node in range(1, nodes):
            if alive[node]:
                best[node] = _best_arc(weights, alive, node)
                if best[node] < 0:
                    parents[:] = NO_FOREST
                    return -inf
        length = _find_cycle(best, alive, cycle)
        if length == 0:
            break
        member_of[count, :] = belongs
        mergers[count] = cycle[0]
        for c in range(length):
            member = cycle[c]
            own_tails[count, member] = tails[best[member], member]
            own_heads[count, member] = heads[best[member], member]
        for node in range(nodes):
            for c in range(1, length):
                if belongs[node] == cycle[c]:
                    belongs[node] = cycle[0]
                    break
        count += 1
        _contract(weights, tails, heads, best, alive, cycle, length)
    # the arc that enters a merged node, as (tail, head) of the original graph
    entering_tail = np.zeros(nodes, dtype=np.int64)
    entering_head = np.zeros(nodes, dtype=np.int64)
    for node in range(1, nodes):
        if alive[node]:
            entering_tail[node] = tails[best[node], node]
            entering_head[node] = heads[best[node], node]
    for merger in range(count - 1, -1, -1):
        merged = mergers[merger]
        tail, head = entering_tail[merged], entering_head[merged]
        entered = member_of[merger, head]
        for node in range(1, nodes):
            if own_tails[merger, node] >= 0:
                entering_tail[node], entering_head[node] = own_tails[merger, node], own_heads[merger, node]
        entering_tail[entered], entering_head[entered] = tail, head
    total = 0.0
    for node in range(1, nodes):
        parents[node - 1] = entering_tail[node] - 1
        total += logs[entering_tail[node], node - 1]
    return total
