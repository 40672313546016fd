"""Model files: what is saved comes back, and no file whatever does harm."""

import errno
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ldfm import LDFM, Dirichlet, ModelFileError, ModifiedDirichlet, load
from ldfm.learning import History, NoPrior
from ldfm.learning.history import Step
from ldfm.learning.settings import settings_from_json, settings_to_json
from ldfm.model_file import FORMAT_VERSION, ModelRecord, read_model, write_model
from ldfm.tables import Schema
from ldfm.tables.encoding import MAX_VALUES
from ldfm.weights import ArcWeights
from models import random_weights

ODD_VALUES: dict[str, list[Any]] = {
    "texts, all odd": ["", " ", "a b", "\"'\\", "naïve Ünïcödé", "👩‍🚀", "\x00\x1b[31m\n", "\ud800", "NA"],
    "": [True, False],
    "whole 'numbers'": [0, -1, 10**30],
    "numbers": [0.1, -1e-300, 1e300],
    "days": [date(1, 1, 1), date(2024, 2, 29)],
    "times": [datetime(2024, 2, 29, 23, 59, 59, 999999), datetime(2024, 1, 1, tzinfo=UTC)],
    "only one": ["x"],
}
SETTINGS = settings_to_json(LDFM().get_params())


def model_of(values: dict[str, list[Any]], seed: int = 0, *, stops: bool = True, decades: float = 2.0) -> LDFM:
    weights = random_weights(tuple(map(len, values.values())), seed, stops=stops, decades=decades, normalise=False)
    return LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values)


def same_bits(first: np.ndarray[Any, Any] | None, second: np.ndarray[Any, Any] | None) -> bool:
    if first is None or second is None:
        return first is second
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def assert_same(first: ModelRecord, second: ModelRecord) -> None:
    assert first.schema == second.schema
    assert repr(first.schema) == repr(second.schema)  # also -0.0 and the types of values, which == does not see
    assert same_bits(first.weights.table, second.weights.table)
    assert same_bits(first.weights.stop, second.weights.stop)
    assert first.weights.cardinalities == second.weights.cardinalities
    assert first.settings == second.settings
    assert repr(first.history) == repr(second.history)  # NaN differs from itself
    assert first.library_version == second.library_version


# --- what is saved comes back ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stops", [True, False])
def test_odd_values_come_back(tmp_path: Path, stops: bool) -> None:
    model = model_of(ODD_VALUES, stops=stops, decades=300)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert back.schema_ == model.schema_
    assert repr(back.schema_) == repr(model.schema_)
    assert same_bits(back.weights_.table, model.weights_.table)
    assert same_bits(back.weights_.stop, model.weights_.stop)
    assert list(back.feature_names_in_) == list(ODD_VALUES)
    assert back.n_features_in_ == len(ODD_VALUES)
    assert back.weights_.variant == back.variant == model.variant


@pytest.mark.parametrize(
    "prior", [None, NoPrior(), Dirichlet(2), Dirichlet(np.float32(1.5)), ModifiedDirichlet(-1, 1e-4)]
)
def test_settings_and_history_come_back(tmp_path: Path, prior: Any) -> None:
    rows = np.random.default_rng(0).choice(["a", "b", "c"], (60, 3)).astype(object)
    model = LDFM("ldfm", prior=prior, max_iter=7, tol=0, validation_fraction=0.25, random_state=3).fit(rows)
    model.save(str(tmp_path / "m"))
    back = load(str(tmp_path / "m"))
    assert back.get_params() == model.get_params()
    assert back.history_ == model.history_
    assert back.history_.validation.tolist() == model.history_.validation.tolist()
    assert back.fit(rows).weights_.table.tobytes() == model.weights_.table.tobytes()


def test_fitted_frames_come_back(tmp_path: Path) -> None:
    times = [datetime(2024, 1, 1, 12), datetime(2024, 1, 2, 12)]
    frame = pl.DataFrame({
        "day": [t.date() for t in times] * 4,
        "time": times * 4,
        "flag": [True, False, False, True] * 2,
        "count": [1, 2, 3, 4] * 2,
        "é 😀": ["", "'\"", "x y", "z"] * 2,
    })  # fmt: skip
    for name, table in (("polars", frame), ("pandas", frame.to_pandas())):
        model = LDFM(max_iter=3).fit(table)
        model.save(tmp_path / name)
        back = load(tmp_path / name)
        assert back.schema_ == model.schema_, name
        assert same_bits(back.score_samples(table), model.score_samples(table)), name


ASK = """
import sys
import numpy as np
from ldfm import load

def answers(model):
    whole = {"sky": ["rain", "sun"], "road": ["wet", "dry 👍"], "day": [1, 3]}
    part = {"sky": ["rain", None], "road": [None, None], "day": [None, 2]}
    marginals = model.marginals(part).probabilities
    return [
        model.log_forest_sum(whole), model.score_samples(part), *(marginals[name] for name in whole),
        model.arc_marginals(whole), model.best_forest(whole), model.sample_forests(whole, 5),
        np.array([model.log_partition().value]),
    ]

if __name__ == "__main__":
    print(*(array.tobytes().hex() for array in answers(load(sys.argv[1]))))
"""


def test_answers_are_the_same_in_a_new_process(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    data = {
        "sky": rng.choice(["rain", "sun"], 50),
        "road": rng.choice(["wet", "dry 👍"], 50),
        "day": rng.integers(1, 4, 50),
    }
    model = LDFM(prior=ModifiedDirichlet(), max_iter=20, random_state=5).fit(data)
    model.save(tmp_path / "m.ldfm")
    namespace: dict[str, Any] = {"__name__": "ask"}
    exec(ASK, namespace)
    expected = [array.tobytes().hex() for array in namespace["answers"](model)]
    assert [array.tobytes().hex() for array in namespace["answers"](load(tmp_path / "m.ldfm"))] == expected
    (tmp_path / "ask.py").write_text(ASK, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "ask.py"), str(tmp_path / "m.ldfm")]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert told.stdout.split() == expected


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    model = model_of(ODD_VALUES)
    model.save(tmp_path / "a")
    load(tmp_path / "a").save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


any_text = st.text(st.characters(exclude_categories=()), max_size=6)  # lone surrogates too
zones = st.none() | st.just(UTC) | st.builds(lambda m: timezone(timedelta(minutes=m)), st.integers(-1439, 1439))
finite = st.floats(allow_nan=False, allow_infinity=False)
moments = st.datetimes(timezones=zones).map(lambda moment: moment.replace(fold=0))  # fold means nothing in these zones
kinds_of_values = [any_text, st.booleans(), st.integers(-(10**25), 10**25), finite, st.dates(), moments]
columns = st.one_of([st.lists(kind, min_size=1, max_size=4, unique=True) for kind in kinds_of_values])
steps = st.builds(Step, st.integers(0, 9), st.floats(), st.none() | st.floats(), finite)
priors = (
    st.none()
    | st.builds(Dirichlet, st.floats(1, 1e300))
    | st.builds(ModifiedDirichlet, finite, st.floats(0, 1, exclude_min=True, exclude_max=True))
)
params = st.fixed_dictionaries({
    "variant": st.sampled_from(["ldfm", "ldfm-s"]),
    "objective": st.just("generation"),
    "prior": priors,
    "max_iter": st.integers(0, 2**63 - 1),
    "tol": st.floats(0) | st.integers(0, 9),
    "validation_fraction": st.none() | st.floats(0, 1, exclude_min=True, exclude_max=True),
    "random_state": st.none() | st.integers(0, 2**200),
})  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.dictionaries(any_text, columns, min_size=1, max_size=4),
    seed=st.integers(0, 99),
    stops=st.booleans(),
    given_settings=params,
    history=st.builds(History, st.lists(steps, max_size=3), st.booleans(), any_text),
    version=any_text,
)
def test_any_record_comes_back(
    tmp_path: Path,
    values: dict[str, list[Any]],
    seed: int,
    stops: bool,
    given_settings: dict[str, Any],
    history: History,
    version: str,
) -> None:
    schema = Schema.of_values(values)
    weights = random_weights(schema.cardinalities, seed, stops=stops, decades=320, normalise=False)
    record = ModelRecord(schema, weights, settings_to_json(given_settings), history, version)
    write_model(tmp_path / "m", record)
    back = read_model(tmp_path / "m")
    assert_same(back, record)
    assert settings_from_json(back.settings) == given_settings


# --- settings --------------------------------------------------------------------------------------------------------


def test_settings_may_be_numpy_numbers_and_bools() -> None:
    model = LDFM(
        max_iter=np.int64(5), tol=np.float32(0.5), random_state=np.uint8(7), validation_fraction=np.float64(0.5)
    )  # type: ignore[arg-type]
    back = settings_from_json(json.loads(json.dumps(settings_to_json(model.get_params()))))
    assert back["max_iter"] == 5
    assert back["tol"] == 0.5
    assert back["random_state"] == 7
    assert back["validation_fraction"] == 0.5


def test_what_belongs_to_a_machine_or_a_moment_is_not_kept(tmp_path: Path) -> None:
    rows = np.array([["a", "b"], ["b", "a"]], dtype=object)
    model = LDFM(max_iter=1, n_jobs=10**9, verbose=0, random_state=np.random.default_rng(0), kinds={"x0": "discrete"})
    model.fit(rows).save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert (back.n_jobs, back.verbose, back.random_state, back.kinds) == (None, 0, None, None)


class OwnPrior(NoPrior):
    pass


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prior", OwnPrior()),
        ("prior", "flat"),
        ("max_iter", -1),
        ("max_iter", None),
        ("tol", float("nan")),
        ("tol", "small"),
        ("random_state", -1),
        ("variant", "forest"),
        ("validation_fraction", 1.0),
    ],
)
def test_settings_that_could_not_be_read_are_not_written(tmp_path: Path, name: str, value: Any) -> None:
    model = model_of({"a": [1, 2]}).set_params(**{name: value})
    with pytest.raises(ValueError, match=name):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


# --- written whole or not at all -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
def test_a_fault_while_writing_leaves_the_old_model(
    tmp_path: Path, fault: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_half(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise fault

    old, new = model_of({"a": [1, 2]}), model_of({"b": [3, 4, 5]})
    old.save(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write_half)
        with pytest.raises(type(fault)):
            new.save(tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert (tmp_path / "m").read_bytes() == content
    new.save(tmp_path / "m")
    assert load(tmp_path / "m").schema_ == new.schema_
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_saving_into_a_missing_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such folder: .*nowhere"):
        model_of({"a": [1, 2]}).save(tmp_path / "nowhere" / "m")


def test_more_than_can_be_read_is_not_written(tmp_path: Path) -> None:
    long = model_of({"a": ["x" * (1 << 24), "y"]})
    with pytest.raises(ValueError, match="bytes of names, values and history"):
        long.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_the_largest_model_comes_back(tmp_path: Path) -> None:
    size = MAX_VALUES // 2
    weights = ArcWeights.uniform((size, size), "ldfm-s")
    schema = Schema.of_values({"a": range(size), "b": range(size)})
    write_model(tmp_path / "m", ModelRecord(schema, weights, SETTINGS, History(), ""))
    assert same_bits(read_model(tmp_path / "m").weights.table, weights.table)


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
        model._check_settings()
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
