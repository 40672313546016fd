"""Latent dependency forest models: probabilistic models of tables in which every row has its own forest of dependencies."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ldfm.version import __version__

if TYPE_CHECKING:
    from ldfm.estimator import LDFM, load
    from ldfm.inference import Budget, Estimate
    from ldfm.learning import Dirichlet, ModifiedDirichlet
    from ldfm.mixed_weights import MixedWeights
    from ldfm.model_file import ModelFileError
    from ldfm.tables import TableError
    from ldfm.weights import ArcWeights

# public names are imported when they are first used: `import ldfm` alone stays instant
_HOMES = {
    "LDFM": "ldfm.estimator",
    "load": "ldfm.estimator",
    "Budget": "ldfm.inference",
    "Estimate": "ldfm.inference",
    "Dirichlet": "ldfm.learning",
    "ModifiedDirichlet": "ldfm.learning",
    "MixedWeights": "ldfm.mixed_weights",
    "ModelFileError": "ldfm.model_file",
    "TableError": "ldfm.tables",
    "ArcWeights": "ldfm.weights",
}

__all__ = [
    "LDFM",
    "ArcWeights",
    "Budget",
    "Dirichlet",
    "Estimate",
    "MixedWeights",
    "ModelFileError",
    "ModifiedDirichlet",
    "TableError",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ldfm' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
