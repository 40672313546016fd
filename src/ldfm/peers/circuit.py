"""Circuits over Chow-Liu trees: putting them together, and their answers row by row in threads."""

from typing import NamedTuple

import numpy as np

from ldfm.inference.answers import QueryResult
from ldfm.inference.exact import ImpossibleEvidenceError
from ldfm.parallel import blocks, map_in_order
from ldfm.peers.base import exact_result
from ldfm.peers.chow_liu import Tree
from ldfm.peers.kernels import circuits
from ldfm.peers.kernels.circuits import LEAF, PRODUCT, SUM, Circuit
from ldfm.tables import MergedRows
from ldfm.types import Booleans, Codes, Floats

_BLOCK_ROWS = 64


class Sum(NamedTuple):
    """A mixture of children of one scope, with their weights."""

    weights: Floats
    children: tuple["Node", ...]


class Product(NamedTuple):
    """Independent children of disjoint scopes."""

    children: tuple["Node", ...]


Node = Tree | Sum | Product


def to_circuit(root: Node, cardinalities: tuple[int, ...]) -> Circuit:
    """Lay a circuit out in arrays."""
    nodes: list[Node] = []
    parents: list[int] = []
    log_weights: list[float] = []

    def visit(node: Node, log_weight: float) -> int:
        own = [] if isinstance(node, Tree) else list(node.children)
        logs = np.log(node.weights).tolist() if isinstance(node, Sum) else [0.0] * len(own)
        numbers = [visit(child, log) for child, log in zip(own, logs, strict=True)]
        nodes.append(node)
        parents.append(-1)
        log_weights.append(log_weight)
        for number in numbers:
            parents[number] = len(nodes) - 1
        return len(nodes) - 1

    visit(root, 0.0)
    kinds = [LEAF if isinstance(node, Tree) else SUM if isinstance(node, Sum) else PRODUCT for node in nodes]
    is_leaf = np.array(kinds) == LEAF
    trees = [node for node in nodes if isinstance(node, Tree)]
    starts = np.cumsum([0] + [len(tree.variables) for tree in trees])
    tables = [table.ravel() for tree in trees for table in tree.tables]
    above = [np.where(tree.above >= 0, tree.above + start, -1) for tree, start in zip(trees, starts[:-1], strict=True)]
    return Circuit(
        np.array(kinds, dtype=np.int64),
        np.array(parents, dtype=np.int64),
        np.array(log_weights),
        np.where(is_leaf, np.cumsum(is_leaf) - 1, -1),
        starts.astype(np.int64),
        np.concatenate([tree.variables for tree in trees]).astype(np.int64),
        np.concatenate(above).astype(np.int64),
        np.cumsum([0] + [len(table) for table in tables[:-1]]).astype(np.int64),
        np.concatenate(tables),
        np.array(cardinalities, dtype=np.int64),
    )


def log_probabilities(circuit: Circuit, codes: Codes, n_jobs: int | None = 1) -> Floats:
    """Give the log probability of the known cells of each row."""

    def one_block(rows: slice) -> Floats:
        logs = np.empty(rows.stop - rows.start)
        circuits.log_probabilities(circuit, codes[rows], logs)
        return logs

    found = list(map_in_order(one_block, blocks(len(codes), _BLOCK_ROWS), n_jobs))
    return np.concatenate(found) if found else np.empty(0)


def query(circuit: Circuit, rows: MergedRows, asked: Booleans, n_jobs: int | None = 1) -> QueryResult:
    """Answer distinct questions exactly."""

    def one_block(part: slice) -> Floats:
        found = np.empty((2, part.stop - part.start))
        circuits.query(circuit, rows.codes[part], asked[part], found[0], found[1])
        return found

    parts = list(map_in_order(one_block, blocks(len(asked), _BLOCK_ROWS), n_jobs))
    joint, marginal = np.concatenate(parts, axis=1) if parts else np.empty((2, 0))
    impossible = np.flatnonzero(np.isnan(joint))
    if impossible.size:
        where = f"row {rows.first_rows[impossible[0]]}"
        raise ImpossibleEvidenceError(f"{where}: its known cells have probability zero under this model")
    return exact_result(joint, marginal, rows, asked, tuple(circuit.cardinalities.tolist()))
