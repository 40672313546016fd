"""Other density models of discrete tables, to compare with: estimators that answer the same questions as `ldfm.LDFM`."""

from ldfm.peers.base import DensityPeer, LearningPeer, Peer
from ldfm.peers.bayesian_network import BayesianNetwork
from ldfm.peers.dependency_network import DependencyNetwork
from ldfm.peers.mixture_of_all_trees import MixtureOfAllTrees
from ldfm.peers.mixture_of_trees import MixtureOfTrees
from ldfm.peers.oracle import Oracle
from ldfm.peers.sum_product_network import SumProductNetwork

__all__ = [
    "BayesianNetwork",
    "DensityPeer",
    "DependencyNetwork",
    "LearningPeer",
    "MixtureOfAllTrees",
    "MixtureOfTrees",
    "Oracle",
    "Peer",
    "SumProductNetwork",
]
