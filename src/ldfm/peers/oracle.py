"""The network that rows were drawn from, as a peer: no model can answer better on average."""

from typing import Any, Self

from ldfm.inference.answers import QueryResult
from ldfm.networks import Network
from ldfm.peers import junction_tree
from ldfm.peers.base import DensityPeer, exact_result
from ldfm.tables import MergedRows, Schema
from ldfm.types import Booleans, Floats


class Oracle(DensityPeer):
    """A known Bayesian network; answers are exact.

    Parameters
    ----------
    network
        The network, such as ``ldfm.networks.load("alarm")``.

    Examples
    --------
    >>> from ldfm import networks
    >>> from ldfm.peers import Oracle
    >>> asia = networks.load("asia")
    >>> answers = Oracle(asia).fit().query_log_likelihood(asia.sample(1, seed=0), ["lung"], ["smoke", "xray"])
    >>> answers.joint.round(3)
    array([-0.437])
    """

    def __init__(self, network: Network) -> None:
        self.network = network

    def fit(self, X: Any = None, y: Any = None, sample_weight: Any = None, *, validation: Any = None) -> Self:  # noqa: ARG002
        """Take the variables and values of the network; tables are ignored, there is nothing to learn."""
        network = self.network
        self._adopt(Schema.of_values(dict(zip(network.variables, network.values, strict=True))), named=True)
        return self

    def _log_probabilities(self, rows: MergedRows) -> Floats:
        return junction_tree.log_probabilities(self.network, rows)

    def _answer(self, rows: MergedRows, asked: Booleans) -> QueryResult:
        joint, marginal = junction_tree.query(self.network, rows, asked)
        return exact_result(joint, marginal, rows, asked, self.network.cardinalities)
