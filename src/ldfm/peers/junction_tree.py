"""Exact answers of a Bayesian network, by pyAgrum's junction trees."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from ldfm.inference.exact import ImpossibleEvidenceError
from ldfm.networks import Network
from ldfm.tables import MISSING, MergedRows
from ldfm.types import Booleans, Codes, Floats


def import_pyagrum() -> Any:
    """Give pyAgrum, or say how to install it."""
    try:
        with warnings.catch_warnings():
            # its SWIG types have no __module__, of which Python warns; where warnings are errors the import would crash
            warnings.simplefilter("ignore", DeprecationWarning)
            import pyagrum
    except ImportError as error:
        raise ImportError("Bayesian networks need pyAgrum: pip install 'ldfm[peers]'") from error
    return pyagrum


class JunctionTree:
    """A network made ready for questions; not for more than one thread at a time.

    Parameters
    ----------
    network
        The network. Variables and values go by their places.
    """

    def __init__(self, network: Network) -> None:
        self._gum = import_pyagrum()
        self._network = _to_pyagrum(self._gum, network)
        self._engine = self._gum.LazyPropagation(self._network)
        self._engine.setNumberOfThreads(1)

    def log_evidence(self, codes: Codes, known: Booleans) -> float:
        """Give log p of the `known` cells of one row, -inf where they are impossible."""
        self._set(codes, known, ())
        try:
            probability = float(self._engine.evidenceProbability())
        except self._gum.IncompatibleEvidence:
            return -np.inf
        return float(np.log(probability)) if probability > 0 else -np.inf

    def log_marginals(self, codes: Codes, known: Booleans, asked: Booleans) -> float:
        """Give the sum over the `asked` cells of one row of log p(cell | known cells)."""
        places = np.flatnonzero(asked).tolist()
        self._set(codes, known, places)
        self._engine.makeInference()
        posteriors = [float(self._engine.posterior(place)[int(codes[place])]) for place in places]
        with np.errstate(divide="ignore"):
            return float(np.log(posteriors).sum())

    def _set(self, codes: Codes, known: Booleans, targets: Iterable[int]) -> None:
        # without targets the engine would work out the posteriors of all variables
        self._engine.eraseAllTargets()
        self._engine.setEvidence({int(place): int(codes[place]) for place in np.flatnonzero(known)})
        self._engine.setTargets(set(targets))


def log_probabilities(network: Network, rows: MergedRows) -> Floats:
    """Give log p of the known cells of each distinct row."""
    known = rows.codes != MISSING
    complete = known.all(axis=1)
    logs = np.empty(len(known))
    logs[complete] = network.log_probability(rows.codes[complete])
    if not complete.all():
        tree = JunctionTree(network)
        for row in np.flatnonzero(~complete):
            logs[row] = tree.log_evidence(rows.codes[row], known[row])
    return logs


def query(network: Network, rows: MergedRows, asked: Booleans) -> tuple[Floats, Floats]:
    """Give log p(query | evidence) and the sum of the cells' own log posteriors, of each distinct row."""
    known = rows.codes != MISSING
    tree = JunctionTree(network)
    joint, marginal = np.zeros(len(known)), np.zeros(len(known))
    for row, codes in enumerate(rows.codes):
        evidence = known[row] & ~asked[row]
        log_evidence = tree.log_evidence(codes, evidence)
        if log_evidence == -np.inf:
            where = f"row {rows.first_rows[row]}"
            raise ImpossibleEvidenceError(f"{where}: its known cells have probability zero under this model")
        if asked[row].any():
            joint[row] = tree.log_evidence(codes, known[row]) - log_evidence
            marginal[row] = tree.log_marginals(codes, evidence, asked[row])
    return joint, marginal


def _to_pyagrum(gum: Any, network: Network) -> Any:
    """Build the network in pyAgrum; variable i is called "i" and its node is number i."""
    built = gum.BayesNet()
    for place, cardinality in enumerate(network.cardinalities):
        built.add(gum.RangeVariable(str(place), "", 0, cardinality - 1))
    for child, parents in enumerate(network.parents):
        for parent in parents:
            built.addArc(parent, child)
    for child, parents in enumerate(network.parents):
        cells = built.cpt(child)
        # pyAgrum's first name is the axis that changes fastest, NumPy's last axis
        axes = [(*parents, child).index(int(name)) for name in reversed(cells.names)]
        cells[:] = np.ascontiguousarray(network.tables[child].transpose(axes))
    return built
