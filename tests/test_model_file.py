"""Model files: what is saved comes back."""

import errno
import json
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ldfm import LDFM, Dirichlet, ModifiedDirichlet, load
from ldfm.learning import History, NoPrior
from ldfm.learning.history import Step
from ldfm.learning.settings import settings_from_json, settings_to_json
from ldfm.model_file import ModelRecord, read_model, write_model
from ldfm.tables import Schema
from ldfm.tables.encoding import MAX_VALUES
from ldfm.weights import ArcWeights
from model_files import SETTINGS, assert_same, model_of, same_bits
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
    model = LDFM("ldfm", "generation", prior=prior, max_iter=7, tol=0, validation_fraction=0.25, random_state=3).fit(
        rows
    )
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
        model = LDFM(objective="generation", max_iter=3).fit(table)
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
    model = LDFM(objective="generation", prior=ModifiedDirichlet(), max_iter=20, random_state=5).fit(data)
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
    "bend": st.booleans(),
    "relate": st.booleans(),
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
        ("max_iter", 2.5),
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
