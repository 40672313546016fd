"""Model files: no file whatever does harm."""

import io
import json
import os
import pickle
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldfm import ModelFileError, load
from ldfm.learning import History
from ldfm.learning.history import Step
from ldfm.learning.settings import check_settings
from ldfm.model_file import FORMAT_VERSION
from ldfm.tables import Schema
from ldfm.weights import ArcWeights
from model_files import SETTINGS, model_of

# --- files that are no models ----------------------------------------------------------------------------------------


class Edited:
    """A sound small model file taken apart, to be put together wrongly; by hand, so that nothing is checked on the way."""

    def __init__(self) -> None:
        schema = Schema.of_values({"a": ["x", "y"], "b": [1, 2]})
        weights = ArcWeights.uniform(schema.cardinalities, "ldfm-s")
        assert weights.stop is not None
        self.header: Any = {
            "format": "ldfm-model",
            "format_version": FORMAT_VERSION,
            "library_version": "1.2.3",
            "schema": schema.to_json(),
            "settings": json.loads(json.dumps(SETTINGS)),
            "history": History([Step(0, -1.5, None, 0.25)], converged=True, reason="done").to_json(),
        }
        self.arrays: dict[str, np.ndarray[Any, Any]] = {"table": weights.table.copy(), "stop": weights.stop.copy()}
        self.text: str | None = None  # in place of the header

    def bytes(self) -> bytes:
        names = {
            "float64": "F64",
            "float32": "F32",
            "int64": "I64",
            "uint16": "BF16",
            "uint8": "F8_E4M3",
            "bool": "BOOL",
        }
        text = json.dumps(self.header) if self.text is None else self.text
        outer: dict[str, Any] = {"__metadata__": {"ldfm": text}}
        start = 0
        for name, array in self.arrays.items():
            span = [start, start + array.nbytes]
            outer[name] = {"dtype": names[array.dtype.name], "shape": array.shape, "data_offsets": span}
            start += array.nbytes
        return in_safetensors(json.dumps(outer).encode(), b"".join(array.tobytes() for array in self.arrays.values()))


def in_safetensors(header: bytes, content: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + content


def refusal(path: Path, content: bytes | None = None) -> str:
    """Give the reason for which a file is refused; it must be one short line that names the file."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path} is not a usable model file: ")
    assert message.isprintable()
    assert len(message) < 500
    return message.removeprefix(f"{path} is not a usable model file: ")


def test_the_edited_file_is_sound_until_it_is_edited(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(Edited().bytes())
    model = load(tmp_path / "m")
    assert model.schema_.names == ("a", "b")
    assert model.history_.reason == "done"


@pytest.fixture(scope="module")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("small") / "m"
    model_of({"a": ["x", "é"], "b": [True, False]}).save(path)
    return path.read_bytes()


def test_every_prefix_is_refused(tmp_path: Path, small_file: bytes) -> None:
    for length in range(len(small_file)):
        refusal(tmp_path / "m", small_file[:length])


def test_anything_appended_is_refused(tmp_path: Path, small_file: bytes) -> None:
    for extra in (b"\0", b"\n", bytes(8), small_file):
        refusal(tmp_path / "m", small_file + extra)


@pytest.mark.parametrize("bits", [0x01, 0x20, 0x80, 0xFF])
def test_every_flipped_byte_is_refused_or_leaves_a_sound_model(tmp_path: Path, small_file: bytes, bits: int) -> None:
    loaded = 0
    for place in range(len(small_file)):
        flipped = bytearray(small_file)
        flipped[place] ^= bits
        (tmp_path / "m").write_bytes(flipped)
        try:
            model = load(tmp_path / "m")
        except ModelFileError:
            continue
        loaded += 1
        assert len(set(model.schema_.names)) == 2
        assert model.weights_.cardinalities == (2, 2)
        assert np.isfinite(model.weights_.table).all()
        assert (model.weights_.table >= 0).all()
        assert (model.weights_.table[~model.weights_.mask] == 0).all()
        check_settings(model.get_params())
    assert loaded < len(small_file)


class Boom:
    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, (str(Path(os.environ["BOOM"])),)


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model", "x")
    return buffer.getvalue()


def test_files_of_other_kinds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOOM", str(tmp_path / "executed"))
    others = {
        "empty": b"",
        "short": b"1234567",
        "zeros": bytes(100),
        "json": json.dumps(Edited().header).encode(),
        "pickle": pickle.dumps(Boom()),
        "zip": zipped(),
        "csv": b"a,b\n1,2\n" * 50,
        "npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }" + bytes(99),
        "not json": in_safetensors(b"not json"),
        "a list": in_safetensors(b"[]      "),
        "no arrays": in_safetensors(b"{}      "),
        "not utf-8": in_safetensors(b'{"\xff": 1}'),
        "deep": in_safetensors(b"[" * 100_000),
        "escapes": in_safetensors(b'{"\x1b[31m\\u001b[31m\\n": {"dtype": "\\u001b[31m"}}'),
        "pickle in metadata": in_safetensors(b'{"__metadata__": {"ldfm": "cos\\nsystem\\n(S\'true\'\\ntR."}}'),
    }
    for content in others.values():
        refusal(tmp_path / "m", content)
    rng = np.random.default_rng(0)
    for size in (8, 20, 200, 5000):
        for _ in range(50):
            refusal(tmp_path / "m", rng.bytes(size))
            refusal(tmp_path / "m", in_safetensors(rng.bytes(size)))
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_safetensors_file_of_something_else_is_refused(tmp_path: Path) -> None:
    array = '"table": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}'
    for metadata in ("", '"__metadata__": {}, ', '"__metadata__": {"format": "pt"}, '):
        content = in_safetensors(f"{{{metadata}{array}}}".encode(), bytes(8))
        assert refusal(tmp_path / "m", content) == "it holds arrays but no model"


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "it is not an ordinary file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of Unix")
def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "it is not an ordinary file"


# --- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "size", "reason"),
    [
        (struct.pack("<Q", 2**60), 100, "does not start as"),
        (struct.pack("<Q", 2**64 - 1), 100, "does not start as"),
        (struct.pack("<Q", 20 << 20), (20 << 20) + 8, "does not start as"),
        (struct.pack("<Q", 10 << 20), 10 << 20, "cut short"),
        (struct.pack("<Q", 2) + b"{}", 10 * 2**30, "larger than any model"),
        (bytes(8), 10 * 2**30, "larger than any model"),
    ],
)
def test_sizes_are_checked_before_anything_is_read(tmp_path: Path, start: bytes, size: int, reason: str) -> None:
    with (tmp_path / "m").open("wb") as file:
        file.write(start)
        file.truncate(size)  # sparse: takes no room
    began = time.perf_counter()
    tracemalloc.start()
    try:
        assert reason in refusal(tmp_path / "m")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
    assert time.perf_counter() - began < 2


def many_columns(file: Edited) -> None:
    column = file.header["schema"][0]
    file.header["schema"] = [{**column, "name": str(k)} for k in range(100_000)]


def many_values(file: Edited) -> None:
    file.header["schema"][1]["values"] = list(range(500_000))


def many_steps(file: Edited) -> None:
    file.header["history"]["steps"] = [[]] * 300_000


@pytest.mark.parametrize("edit", [many_columns, many_values, many_steps])
def test_large_headers_are_refused_in_seconds(tmp_path: Path, edit: Callable[[Edited], None]) -> None:
    file = Edited()
    edit(file)
    content = file.bytes()
    began = time.perf_counter()
    refusal(tmp_path / "m", content)
    assert time.perf_counter() - began < 5


# --- headers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "1",
        '"ldfm-model"',
        "{",
        "NaN",
        "[" * 1_000_000,
        '{"a":' * 100_000,
        '{"format": "ldfm-model", "format_version": ' + "9" * 10_000 + "}",
        '{"format": "ldfm-model", "format_version": 1e999}',
    ],
)
def test_headers_that_are_no_headers_are_refused(tmp_path: Path, text: str) -> None:
    file = Edited()
    file.text = text
    refusal(tmp_path / "m", file.bytes())


@pytest.mark.parametrize("value", ["", "ldfm", "LDFM-MODEL", None, 1, ["ldfm-model"], {}])
def test_another_format_is_refused(tmp_path: Path, value: Any) -> None:
    file = Edited()
    file.header["format"] = value
    assert refusal(tmp_path / "m", file.bytes()) == "its format is not 'ldfm-model'"


@pytest.mark.parametrize("value", [0, -1, True, False, "1", 1.0, None, [1], {}])
def test_what_is_no_version_is_refused(tmp_path: Path, value: Any) -> None:
    file = Edited()
    file.header["format_version"] = value
    assert "is not a version" in refusal(tmp_path / "m", file.bytes())


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 10**18])
def test_a_later_version_asks_to_upgrade_whatever_else_it_has(tmp_path: Path, version: int) -> None:
    file = Edited()
    file.header = {"format": "ldfm-model", "format_version": version, "library_version": "9.8.7", "new": {}}
    file.arrays = {"other": np.zeros(3)}
    reason = refusal(tmp_path / "m", file.bytes())
    assert "upgrade" in reason
    assert "9.8.7" in reason
    assert str(version) in reason


PLACES = {
    "header": lambda header: header,
    "settings": lambda header: header["settings"],
    "history": lambda header: header["history"],
    "step": lambda header: header["history"]["steps"][0],
    "column": lambda header: header["schema"][1],
}


@pytest.mark.parametrize("place", PLACES)
def test_unknown_and_missing_fields_are_refused(tmp_path: Path, place: str) -> None:
    names = list(PLACES[place](Edited().header))
    for name in names:
        file = Edited()
        del PLACES[place](file.header)[name]
        refusal(tmp_path / "m", file.bytes())
    file = Edited()
    PLACES[place](file.header)["command"] = "rm"
    refusal(tmp_path / "m", file.bytes())


WRONG: dict[tuple[str, str], list[Any]] = {
    ("header", "library_version"): [None, 1, [], {}],
    ("header", "schema"): [None, 1, "x", {}, [], [None], [[]], [1], ["x"]],
    ("header", "settings"): [None, [], "x", 1, {}],
    ("header", "history"): [None, [], "x", 1, {}],
    ("column", "name"): [None, 1, [], {}],
    ("column", "kind"): [None, "continuous", [], {}],
    ("column", "dtype"): [None, 1, []],
    ("history", "steps"): [None, 1, {}, "x", [1], [None], [[]], ["x"]],
    ("history", "converged"): [None, "yes", [], 2],
    ("history", "reason"): [None, 1, []],
    ("step", "iteration"): [None, "1", 0.5, float("inf"), float("nan"), []],
    ("step", "objective"): [None, "1", [], 10**400],
    ("step", "validation"): ["1", [], 10**400],
    ("step", "seconds"): [None, "1", []],
}


@pytest.mark.parametrize(("place", "name"), WRONG)
def test_values_of_wrong_types_are_refused(tmp_path: Path, place: str, name: str) -> None:
    for value in WRONG[place, name]:
        file = Edited()
        PLACES[place](file.header)[name] = value
        refusal(tmp_path / "m", file.bytes())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_jobs", 10**9),
        ("verbose", 10**9),
        ("kinds", {"a": "x"}),
        ("max_iter", -1),
        ("max_iter", 2**63),
        ("max_iter", 5.0),
        ("max_iter", True),
        ("tol", -1.0),
        ("tol", float("nan")),
        ("tol", 10**400),
        ("tol", "0"),
        ("variant", "forest"),
        ("variant", ["ldfm"]),
        ("objective", "likelihoods"),
        ("objective", None),
        ("validation_fraction", 0.0),
        ("validation_fraction", 1.0),
        ("validation_fraction", float("nan")),
        ("validation_fraction", True),
        ("random_state", -1),
        ("random_state", True),
        ("random_state", 0.5),
        ("random_state", [1]),
        ("prior", "Dirichlet"),
        ("prior", []),
        ("prior", {}),
        ("prior", {"name": "os.system"}),
        ("prior", {"name": ["Dirichlet"]}),
        ("prior", {"name": "Dirichlet"}),
        ("prior", {"name": "Dirichlet", "alpha": 0.5}),
        ("prior", {"name": "Dirichlet", "alpha": 10**400}),
        ("prior", {"name": "Dirichlet", "alpha": "2"}),
        ("prior", {"name": "Dirichlet", "alpha": True}),
        ("prior", {"name": "Dirichlet", "alpha": float("inf")}),
        ("prior", {"name": "Dirichlet", "alpha": 2.0, "floor": 0.5}),
        ("prior", {"name": "ModifiedDirichlet", "alpha": 2.0}),
        ("prior", {"name": "ModifiedDirichlet", "alpha": 0.0, "floor": 0.0}),
        ("prior", {"name": "ModifiedDirichlet", "alpha": float("nan"), "floor": 0.1}),
        ("prior", {"name": "NoPrior", "self": 1.0}),
    ],
)
def test_settings_no_fit_would_accept_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    file = Edited()
    file.header["settings"][name] = value
    refusal(tmp_path / "m", file.bytes())


# --- schema ----------------------------------------------------------------------------------------------------------


def test_duplicate_columns_are_refused(tmp_path: Path) -> None:
    file = Edited()
    file.header["schema"][1]["name"] = "a"
    assert "'a' occurs more than once" in refusal(tmp_path / "m", file.bytes())


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("str", []),
        ("str", ["x", 1]),
        ("str", ["x", None]),
        ("str", ["x", "x"]),
        ("str", ["x", ["y"]]),
        ("int", [1, True]),
        ("int", [1, 1.0]),
        ("int", [1, 2.5]),
        ("bool", [0, 1]),
        ("float", [1, 2]),
        ("float", [0.0, -0.0]),
        ("float", [0.5, float("nan")]),
        ("float", [0.5, float("-inf")]),
        ("date", ["2024-01-01", "2024-02-30"]),
        ("date", ["2024-01-01", "20240101"]),
        ("date", ["2024-01-01", 5]),
        ("date", [20240101, 20240102]),
        ("datetime", ["2024-01-01T25:00:00", "x"]),
        ("complex", [1, 2]),
        ("object", ["x", "y"]),
        (["str"], ["x", "y"]),
        (None, ["x", "y"]),
        ("str", "xy"),
        ("str", {"x": 1, "y": 2}),
        ("str", ["x"]),
        ("str", ["x", "y", "z"]),
    ],
)
def test_unsound_values_are_refused(tmp_path: Path, type_: Any, values: Any) -> None:
    file = Edited()
    file.header["schema"][1].update(type=type_, values=values)
    refusal(tmp_path / "m", file.bytes())


# --- arrays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["table", "stop"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), -1e-300])
def test_unsound_weights_are_refused(tmp_path: Path, name: str, value: float) -> None:
    file = Edited()
    file.arrays[name].flat[0] = value
    assert "must be finite and not negative" in refusal(tmp_path / "m", file.bytes())


def test_arcs_inside_a_variable_are_refused(tmp_path: Path) -> None:
    file = Edited()
    file.arrays["table"][1, 1] = 0.1
    assert "same variable" in refusal(tmp_path / "m", file.bytes())


@pytest.mark.parametrize("name", ["table", "stop"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint16", "uint8", "bool"])
def test_other_dtypes_are_refused(tmp_path: Path, name: str, dtype: str) -> None:
    file = Edited()
    file.arrays[name] = file.arrays[name].astype(dtype)
    assert f"array {name} must be F64" in refusal(tmp_path / "m", file.bytes())


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("table", (4, 5)),
        ("table", (20,)),
        ("table", (1, 5, 4)),
        ("table", (0, 4)),
        ("table", (6, 5)),
        ("table", ()),
        ("stop", (4,)),
        ("stop", (5, 1)),
        ("stop", (6,)),
        ("stop", (0,)),
    ],
)
def test_other_shapes_are_refused(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    file = Edited()
    file.arrays[name] = np.zeros(shape)
    assert f"array {name} must be F64" in refusal(tmp_path / "m", file.bytes())


def test_missing_and_unknown_arrays_are_refused(tmp_path: Path) -> None:
    file = Edited()
    del file.arrays["table"]
    assert "must hold the arrays" in refusal(tmp_path / "m", file.bytes())
    file = Edited()
    file.arrays["more"] = np.zeros(1)
    assert "must hold the arrays" in refusal(tmp_path / "m", file.bytes())
    file.arrays["x" * 1000 + "\x1b[31m\n"] = np.zeros(1)
    refusal(tmp_path / "m", file.bytes())


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F64", "shape": [5, 4], "data_offsets": [0, 2**60]},
        {"dtype": "F64", "shape": [5, 4], "data_offsets": [40, 200]},
        {"dtype": "F64", "shape": [5, 4], "data_offsets": [160, 0]},
        {"dtype": "F64", "shape": [5, 4], "data_offsets": [-160, 0]},
        {"dtype": "F64", "shape": [2**62, 2**62], "data_offsets": [0, 160]},
        {"dtype": "F64", "shape": [-5, -4], "data_offsets": [0, 160]},
        {"dtype": "object", "shape": [5, 4], "data_offsets": [0, 160]},
    ],
)
def test_lying_array_entries_are_refused(tmp_path: Path, entry: dict[str, Any]) -> None:
    outer = {"__metadata__": {"ldfm": json.dumps(Edited().header)}, "table": entry}
    refusal(tmp_path / "m", in_safetensors(json.dumps(outer).encode(), bytes(160)))
