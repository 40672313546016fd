"""Bayesian networks: a BIF reader, networks of other libraries, nine benchmark networks and forward sampling."""

from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable

from ldfm.networks.bif import parse_bif, read_bif
from ldfm.networks.foreign import import_network
from ldfm.networks.network import Network, NetworkStatistics

__all__ = ["Network", "NetworkStatistics", "import_network", "load", "names", "parse_bif", "read_bif"]

_SUFFIX = ".bif.gz"


def names() -> tuple[str, ...]:
    """Names of the networks that ship with the library, in alphabetical order."""
    return tuple(sorted(file.name.removesuffix(_SUFFIX) for file in _data().iterdir() if file.name.endswith(_SUFFIX)))


@cache
def load(name: str) -> Network:
    """Read one of the networks that ship with the library.

    Parameters
    ----------
    name
        One of `names`.

    Returns
    -------
    network
        The network, called `name`. It is immutable, and later calls return the same one.

    Raises
    ------
    ValueError
        If no network has this name.
    """
    known = names()
    if name not in known:
        raise ValueError(f"no network is called {name!r}; the networks are {', '.join(known)}")
    with as_file(_data() / (name + _SUFFIX)) as path:
        return replace(read_bif(path), name=name)


def _data() -> Traversable:
    return files(__name__) / "data"
