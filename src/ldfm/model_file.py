"""Model files: arrays in safetensors, everything else in a JSON header; no code in them, every field checked when read.

A safetensors file is 8 bytes with the length of a JSON header, the header, and the raw numbers. Ours has the arrays ``table``
(S + 1, S) and, for an LDFM-S, ``stop`` (S + 1,), float64, and one metadata entry ``ldfm`` with a JSON object: format,
format_version, library_version, schema, settings, history.
"""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ldfm.files import written_whole
from ldfm.learning import History
from ldfm.tables import Schema
from ldfm.tables.encoding import MAX_VALUES
from ldfm.weights import ArcWeights

FORMAT = "ldfm-model"
FORMAT_VERSION = 1
_MAX_HEADER = 1 << 24
_FIELDS = {"format", "format_version", "library_version", "schema", "settings", "history"}


class ModelFileError(ValueError):
    """A file that is not a model, or not a whole and sound one."""


@dataclass(frozen=True)
class ModelRecord:
    """What a model file holds."""

    schema: Schema
    weights: ArcWeights
    settings: dict[str, Any]
    history: History
    library_version: str


def write_model(path: Path, record: ModelRecord) -> None:
    """Write a model file, whole or not at all."""
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "library_version": record.library_version,
        "schema": record.schema.to_json(),
        "settings": record.settings,
        "history": record.history.to_json(),
    }
    arrays = {"table": np.ascontiguousarray(record.weights.table)}
    if record.weights.stop is not None:
        arrays["stop"] = np.ascontiguousarray(record.weights.stop)
    text = json.dumps(header, ensure_ascii=False, allow_nan=True)
    with written_whole(path) as temporary:
        save_file(arrays, str(temporary), metadata={"ldfm": text})


def read_model(path: Path) -> ModelRecord:
    """Read and check a model file; any fault is a `ModelFileError` that says what is wrong."""
    try:
        _check_size(path)
        header, arrays = _read_parts(path)
        return _checked_record(header, arrays)
    except (ValueError, SafetensorError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise ModelFileError(f"{path} is not a usable model file: {error}") from error


def _check_size(path: Path) -> None:
    """Check lengths before anything of the size they claim is read."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
    if len(start) < 8:
        raise ValueError("it is too short")
    length = struct.unpack("<Q", start)[0]
    if length > _MAX_HEADER:
        raise ValueError("it does not start as a model file does")
    if 8 + length > size:
        raise ValueError("it is cut short")
    if size > 8 + length + 8 * (MAX_VALUES + 1) ** 2 + 8 * (MAX_VALUES + 1):
        raise ValueError(f"at {size} bytes it is larger than any model")


def _read_parts(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    with safe_open(str(path), framework="numpy") as file:
        metadata = file.metadata() or {}
        if "ldfm" not in metadata:
            raise ValueError("it holds arrays but no model")
        header = json.loads(metadata["ldfm"])
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}")
        version = header.get("format_version")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise ValueError(f"format version {version!r} is not a version")
        if version > FORMAT_VERSION:
            raise ValueError(
                f"it has format version {version}, this library reads up to {FORMAT_VERSION}; "
                f"it was written by ldfm {header.get('library_version')}: upgrade to read it"
            )
        names = set(file.keys())
        if not names <= {"table", "stop"} or "table" not in names:
            raise ValueError(f"it must hold the arrays table and stop, not {sorted(names)}")
        arrays = {name: file.get_tensor(name) for name in names}
    return header, arrays


def _checked_record(header: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> ModelRecord:
    if set(header) != _FIELDS:
        raise ValueError(f"its header must have the fields {sorted(_FIELDS)}, not {sorted(header)}")
    schema = Schema.from_json(header["schema"])
    for name, array in arrays.items():
        if array.dtype != np.float64:
            raise ValueError(f"array {name} must be float64, not {array.dtype}")
    weights = ArcWeights(arrays["table"], schema.cardinalities, arrays.get("stop"))
    if not isinstance(header["settings"], dict) or not isinstance(header["library_version"], str):
        raise ValueError("its settings or library version are not readable")
    return ModelRecord(
        schema, weights, header["settings"], History.from_json(header["history"]), header["library_version"]
    )
