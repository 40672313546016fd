"""Checkpoints of a fit: arrays and a record, written whole or not at all, taken up only by the very same fit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ldfm.files import written_whole

Arrays = dict[str, np.ndarray[Any, Any]]


class CheckpointError(ValueError):
    """A checkpoint that cannot be taken up."""


def write_checkpoint(path: Path, fingerprint: str, arrays: Arrays, record: dict[str, Any]) -> None:
    """Write a checkpoint."""
    header = json.dumps({"fingerprint": fingerprint, "record": record})
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}  # numbers stay without dimensions
    with written_whole(path) as temporary:
        temporary.write_bytes(save(whole, metadata={"ldfm-checkpoint": header}))


def read_checkpoint(path: Path, fingerprint: str, *, going_on: bool = False) -> tuple[Arrays, dict[str, Any]] | None:
    """Read the checkpoint of the fit with this fingerprint; None where there is no file.

    That of another fit is refused, but for a fit going on from the weights of an earlier one, whose checkpoint may lie there: None.
    """
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["ldfm-checkpoint"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise CheckpointError(f"{path} is not a checkpoint of a fit: {error}") from error
    if header.get("fingerprint") != fingerprint:
        if going_on:
            return None
        raise CheckpointError(
            f"{path} is the checkpoint of another fit (other rows, settings or random_state); remove it or give another path"
        )
    return arrays, header["record"]


def arrays_of_state(state: Any) -> Arrays:
    """Give the fields of a dataclass of arrays and numbers as arrays."""
    return {name: np.asarray(value) for name, value in vars(state).items()}


def restore_state(state: Any, arrays: Arrays) -> None:
    """Set the fields of such a dataclass to what `arrays_of_state` gave."""
    for name, value in vars(state).items():
        setattr(state, name, arrays[name].copy() if isinstance(value, np.ndarray) else type(value)(arrays[name]))
