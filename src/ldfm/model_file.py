"""Model files: arrays in safetensors, everything else in a JSON header; no code in them, every field checked when read.

A safetensors file is 8 bytes with the length of a JSON header, the header, and the raw numbers. Ours has the arrays ``table``
(S + 1, S) and, for an LDFM-S, ``stop`` (S + 1,), float64, perhaps ``draws`` (at most 4096, n), int16 codes drawn from the model.
Where a column is continuous there are ``intercepts``, ``slopes`` and ``deviations`` like ``table`` too, draws are float64, and the
format version is 2, or 3 where one is on a bent scale. Where columns are measured from others there are ``shares`` (n, n),
``levels`` and ``scales`` (n,), and it is 4. One metadata entry ``ldfm`` with a JSON object: format, format_version,
library_version, schema, settings, history.
"""

import json
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ldfm.files import written_whole
from ldfm.learning import History
from ldfm.learning.settings import settings_from_json
from ldfm.mixed_weights import MixedWeights
from ldfm.relations import Relations
from ldfm.tables import Schema
from ldfm.tables.encoding import MAX_VALUES
from ldfm.types import Rows
from ldfm.weights import ArcWeights

FORMAT = "ldfm-model"
FORMAT_VERSION = 4  # the newest; files have the oldest that can hold their model
MAX_DRAWS = 4096
_MAX_HEADER = 1 << 24
_MAX_ARRAYS = 8 * 5 * (MAX_VALUES + 1) ** 2
_NUMBERS = ("intercepts", "slopes", "deviations")
_RELATIONS = ("shares", "levels", "scales")
_FIELDS = {"format", "format_version", "library_version", "schema", "settings", "history"}


class ModelFileError(ValueError):
    """A file that is not a model, or not a whole and sound one."""


@dataclass(frozen=True)
class ModelRecord:
    """What a model file holds."""

    schema: Schema
    weights: ArcWeights | MixedWeights
    settings: dict[str, Any]
    history: History
    library_version: str
    draws: Rows | None = None


def write_model(path: Path, record: ModelRecord) -> None:
    """Write a model file, whole or not at all."""
    relations = record.weights.relations if isinstance(record.weights, MixedWeights) else None
    header = {
        "format": FORMAT,
        "format_version": _version_for(record.schema, related=relations is not None),
        "library_version": record.library_version,
        "schema": record.schema.to_json(),
        "settings": record.settings,
        "history": record.history.to_json(),
    }
    arrays = {"table": np.ascontiguousarray(record.weights.table)}
    if record.weights.stop is not None:
        arrays["stop"] = np.ascontiguousarray(record.weights.stop)
    if isinstance(record.weights, MixedWeights):
        arrays |= {name: np.ascontiguousarray(getattr(record.weights, name)) for name in _NUMBERS}
    if relations is not None:
        arrays |= {name: np.ascontiguousarray(array) for name, array in relations.arrays().items()}
    if record.draws is not None:
        dtype = np.float64 if record.schema.is_mixed else np.int16
        arrays["draws"] = np.ascontiguousarray(record.draws[:MAX_DRAWS], dtype=dtype)
    content = save(arrays, {"ldfm": json.dumps(header)})
    length = struct.unpack("<Q", content[:8])[0]
    if length > _MAX_HEADER or len(content) - 8 - length > _MAX_ARRAYS:
        raise ValueError(
            f"a model file has room for {_MAX_HEADER} bytes of names, values and history and for {MAX_VALUES} values; "
            f"this model has {length} bytes and {sum(record.schema.cardinalities)} values"
        )
    with written_whole(path) as temporary:
        temporary.write_bytes(content)


def _version_for(schema: Schema, *, related: bool) -> int:
    """Give the format version that can hold a model of this schema, with relations or without."""
    if related:
        return 4
    if any(column.units.bend for column in schema.columns):
        return 3
    return 2 if schema.is_mixed else 1


def read_model(path: Path) -> ModelRecord:
    """Read and check a model file; any fault is a `ModelFileError` that says what is wrong."""
    try:
        _check_size(path)
        with safe_open(str(path), framework="numpy") as file:
            return _read(file)
    except (ValueError, SafetensorError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise ModelFileError(f"{path} is not a usable model file: {_in_one_line(error)}") from error


def _in_one_line(error: Exception) -> str:
    """Give the message of an error, which may quote a stranger's file at length, fit to be shown on a terminal."""
    text = "".join(c if c.isprintable() else " " for c in str(error))
    return text if len(text) <= 300 else f"{text[:300]}..."


def _check_size(path: Path) -> None:
    """Check lengths before anything of the size they claim is read."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not an ordinary file")
    with path.open("rb") as file:
        start = file.read(8)
    if len(start) < 8:
        raise ValueError("it is too short")
    length = struct.unpack("<Q", start)[0]
    if length > _MAX_HEADER:
        raise ValueError("it does not start as a model file does")
    if 8 + length > status.st_size:
        raise ValueError("it is cut short")
    if status.st_size > 8 + length + _MAX_ARRAYS:
        raise ValueError(f"at {status.st_size} bytes it is larger than any model")


def _read(file: Any) -> ModelRecord:
    header = _read_header(file)
    settings_from_json(header["settings"])
    if not isinstance(header["library_version"], str):
        raise ValueError(f"its library version cannot be {header['library_version']!r}")
    history = History.from_json(header["history"])
    if history.to_json() != header["history"]:
        raise ValueError("its history has unknown fields or values of wrong types")
    if len(header["schema"]) > MAX_VALUES:
        raise ValueError(f"it has {len(header['schema'])} columns, more than any model")
    schema = Schema.from_json(header["schema"])
    related = set(_RELATIONS) <= set(file.keys())
    if header["format_version"] < _version_for(schema, related=related):
        raise ValueError(
            f"format version {header['format_version']} has no continuous columns, or none on a bent scale or in a relation"
        )
    arrays = _read_arrays(file, sum(schema.cardinalities), len(schema.columns), mixed=schema.is_mixed)
    draws = _check_draws(arrays.get("draws"), schema)
    weights: ArcWeights | MixedWeights
    if schema.is_mixed:
        intercepts, slopes, deviations = (arrays[name] for name in _NUMBERS)
        kinds = schema.cardinalities, schema.continuous
        relations = Relations(*(arrays[name] for name in _RELATIONS)) if related else None
        numbers = arrays["table"], intercepts, slopes, deviations
        weights = MixedWeights(*numbers, *kinds, arrays.get("stop"), relations)
    else:
        weights = ArcWeights(arrays["table"], schema.cardinalities, arrays.get("stop"))
    return ModelRecord(schema, weights, header["settings"], history, header["library_version"], draws)


def _check_draws(draws: np.ndarray[Any, Any] | None, schema: Schema) -> Rows | None:
    if draws is None:
        return None
    discrete = ~np.array(schema.continuous)
    if not np.isfinite(draws).all() or (draws[:, discrete] % 1 != 0).any():
        raise ValueError("its draws have numbers that are not finite, or codes that are not whole")
    if not ((draws >= 0) & (draws < np.array(schema.cardinalities)))[:, discrete].all():
        raise ValueError("its draws have codes that no value has")
    return draws


def _read_header(file: Any) -> dict[str, Any]:
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
    if set(header) != _FIELDS:
        raise ValueError(f"its header must have the fields {sorted(_FIELDS)}, not {sorted(header)}")
    return header


def _read_arrays(file: Any, size: int, n: int, *, mixed: bool) -> dict[str, np.ndarray[Any, Any]]:
    """Read the arrays of a model of n variables with so many values, once their types and shapes are known to be right."""
    names = set(file.keys())
    needed = {"table", *(_NUMBERS if mixed else ())}
    related = set(_RELATIONS) if mixed and names & set(_RELATIONS) else set[str]()
    if not needed | related <= names <= {*needed, *related, "stop", "draws"}:
        raise ValueError(f"it must hold the arrays {sorted(needed)} and perhaps stop and draws, not {sorted(names)}")
    wanted: dict[str, tuple[str, list[int]]] = {name: ("F64", [size + 1, size]) for name in needed}
    wanted["stop"] = ("F64", [size + 1])
    wanted |= {name: ("F64", [n, n] if name == "shares" else [n]) for name in related}
    if "draws" in names:
        rows = file.get_slice("draws").get_shape()[:1]
        if rows == [] or not 1 <= rows[0] <= MAX_DRAWS:
            raise ValueError(f"it must hold between 1 and {MAX_DRAWS} draws, not {rows}")
        wanted["draws"] = ("F64" if mixed else "I16", [*rows, n])
    for name in names:
        dtype, shape = file.get_slice(name).get_dtype(), file.get_slice(name).get_shape()
        right_dtype, right_shape = wanted[name]
        if (dtype, shape) != wanted[name]:
            raise ValueError(
                f"array {name} must be {right_dtype} {right_shape} for its {size} values, not {dtype} {shape}"
            )
    return {name: file.get_tensor(name) for name in names}
