"""A fit that is killed goes on and ends at the same bits; checkpoints are whole or absent."""

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ldfm import LDFM, independent_draws
from ldfm import load as load_model
from ldfm.learning import CheckpointError, fitting
from ldfm.learning.checkpoint import write_checkpoint
from ldfm.networks import load

CHILD = """
import json
import sys
import numpy as np
from ldfm import LDFM
table, path, settings = sys.argv[1:]
model = LDFM(**json.loads(settings), tol=0.0, random_state=0, n_jobs=1, checkpoint=path)
print("ready", flush=True)
model.fit(table)
np.save(path + ".npy", np.vstack([model.weights_.table, model.weights_.stop[None, 1:]]))
"""
FITS = {
    "generation": {"objective": "generation", "max_iter": 400},
    "generation, missing cells": {"objective": "generation", "max_iter": 200},
    "likelihood": {"objective": "likelihood", "max_iter": 600},
    "likelihood, chains": {"objective": "likelihood", "max_iter": 960},
}
KILLS = {"likelihood, chains": 10}  # of a fit; 3 of the others


def rows_with_gaps(rows: int) -> dict[str, list]:
    """Give rows of which every other has gaps: some few, drawn exactly, and some so many that chains draw them."""
    rng = np.random.default_rng(0)
    gaps = {name: rng.random(rows) < 0.6 * (np.arange(rows) % 2) for name in load("asia").variables}
    table = load("asia").sample(rows, seed=0)
    return {name: [None if gap else cell for gap, cell in zip(gaps[name], table[name], strict=True)] for name in table}


def write_csv(path: Path, table: dict[str, list]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def uninterrupted(table: Path, settings: dict) -> np.ndarray:
    model = LDFM(**settings, tol=0.0, random_state=0, n_jobs=2).fit(table)
    return np.vstack([model.weights_.table, model.weights_.stop[None, 1:]])


@pytest.mark.parametrize("fit", FITS)
def test_a_killed_fit_ends_at_the_same_bits(fit, tmp_path):
    path, rng, kills = tmp_path / "fit.checkpoint", np.random.default_rng(0), 0
    table = tmp_path / "rows.csv"
    network = load("sachs" if "chains" in fit else "asia")
    write_csv(table, rows_with_gaps(400) if "missing" in fit else network.sample(400, seed=0))
    command = [sys.executable, "-c", CHILD, str(table), str(path), json.dumps(FITS[fit])]
    for _ in range(40):
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        process.stdout.readline()
        if kills < KILLS.get(fit, 3):
            before = path.stat().st_mtime_ns if path.exists() else 0
            while process.poll() is None and not (path.exists() and path.stat().st_mtime_ns > before):
                time.sleep(0.005)  # a fit must get on before it is killed
            time.sleep(rng.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if process.returncode == 0:
            break
        kills += 1
        assert process.returncode == -signal.SIGKILL
    assert kills > 0
    assert kills == KILLS.get(fit, kills)
    assert np.array_equal(np.load(f"{path}.npy"), uninterrupted(table, FITS[fit]))


class Stopped(Exception):
    """Stands for whatever ends a process."""


def stopped_after(writes: int, monkeypatch) -> None:
    write, count = fitting.write_checkpoint, iter(range(1, 10**6))

    def stop(*arguments):
        write(*arguments)
        if next(count) == writes:
            raise Stopped

    monkeypatch.setattr(fitting, "write_checkpoint", stop)


@pytest.mark.parametrize("objective", ["generation", "likelihood"])
def test_taken_up_with_other_threads_and_refused_by_other_fits(objective, tmp_path, monkeypatch):
    rows, path = load("asia").sample(300, seed=0), tmp_path / "fit"
    settings = {"objective": objective, "max_iter": 200, "tol": 0.0, "random_state": 0}
    whole = LDFM(n_jobs=1, **settings).fit(rows)
    with monkeypatch.context() as patch:
        stopped_after(2, patch)
        with pytest.raises(Stopped):
            LDFM(n_jobs=1, checkpoint=path, **settings).fit(rows)
    taken_up = LDFM(n_jobs=2, checkpoint=path, **settings).fit(rows)
    assert np.array_equal(taken_up.weights_.table, whole.weights_.table)
    assert np.array_equal(taken_up.draws_, whole.draws_)
    assert np.array_equal(taken_up.history_.objective, whole.history_.objective)
    others = [
        (load("asia").sample(300, seed=1), {}),
        (rows, {"random_state": 1}),
        (rows, {"max_iter": 199}),
    ]
    for other, change in others:
        if objective == "generation" and "random_state" in change:
            continue  # EM of complete rows draws nothing but its kept draws
        with pytest.raises(CheckpointError, match="is the checkpoint of another fit"):
            LDFM(n_jobs=1, checkpoint=path, **{**settings, **change}).fit(other)


@pytest.mark.parametrize("left", [6, 2, 1])  # iterations to go: before the best on held-out rows, and past it
def test_em_goes_on_with_its_draws_and_its_best_weights(left, tmp_path, monkeypatch):
    rows, path = rows_with_gaps(120), tmp_path / "fit"
    settings = {"objective": "generation", "max_iter": 30, "random_state": 0, "n_jobs": 1, "validation_fraction": 0.2}
    whole = LDFM(**settings).fit(rows)
    with monkeypatch.context() as patch:
        stopped_after(len(whole.history_) - left, patch)
        with pytest.raises(Stopped):
            LDFM(checkpoint=path, **settings).fit(rows)
    taken_up = LDFM(checkpoint=path, **settings).fit(rows)
    assert np.array_equal(taken_up.weights_.table, whole.weights_.table)
    assert np.array_equal(taken_up.history_.objective, whole.history_.objective)
    assert np.array_equal(taken_up.history_.validation, whole.history_.validation)
    assert "validation" in whole.history_.reason
    assert (taken_up.history_.converged, taken_up.history_.reason) == (True, whole.history_.reason)


@pytest.mark.parametrize(("objective", "steps"), [("generation", 15), ("likelihood", 280)])
def test_going_on_from_weights_replaces_the_checkpoint_of_the_fit_before(objective, steps, tmp_path, monkeypatch):
    path = tmp_path / "fit"
    batches = [load("asia").sample(120, seed=seed) for seed in range(3)]
    settings = {"objective": objective, "max_iter": steps, "tol": 0.0, "random_state": 0, "n_jobs": 1}
    whole, kept = LDFM(**settings), LDFM(checkpoint=path, **settings)
    for batch in batches[:2]:
        whole.partial_fit(batch)
        kept.partial_fit(batch)
    kept.save(tmp_path / "model")
    with monkeypatch.context() as patch:
        stopped_after(2, patch)
        with pytest.raises(Stopped):
            kept.partial_fit(batches[2])
    stopped = path.read_bytes()
    with pytest.raises(CheckpointError, match="is the checkpoint of another fit"):
        LDFM(checkpoint=path, **settings).partial_fit(batches[2])
    assert path.read_bytes() == stopped
    lengths = []
    monkeypatch.setattr(fitting, "write_checkpoint", lambda *arguments: lengths.append(len(arguments[3]["steps"])))
    taken_up = load_model(tmp_path / "model").set_params(checkpoint=path, n_jobs=1).partial_fit(batches[2])
    whole.partial_fit(batches[2])
    assert lengths[0] > 1
    assert np.array_equal(taken_up.weights_.table, whole.weights_.table)
    # so does a warm start, but not over a file that is no checkpoint
    taken_up.set_params(warm_start=True).fit(batches[0])
    path.write_text("mine")
    with pytest.raises(CheckpointError, match="is not a checkpoint of a fit"):
        taken_up.partial_fit(batches[1])


def test_the_checkpoint_of_a_fit_by_other_stages_is_refused(tmp_path, monkeypatch):
    rows, path = load("asia").sample(100, seed=0), tmp_path / "fit"
    settings = {"max_iter": 100, "random_state": 0, "n_jobs": 1, "checkpoint": path}
    LDFM(**settings).fit(rows)
    monkeypatch.setattr(fitting, "FINER", (0.02, 0.01))
    with pytest.raises(CheckpointError, match="is the checkpoint of another fit"):
        LDFM(**settings).fit(rows)


@pytest.mark.parametrize("objective", ["generation", "likelihood"])
def test_a_cut_checkpoint_is_named(objective, tmp_path):
    rows, path = load("asia").sample(100, seed=0), tmp_path / "fit"
    settings = {"objective": objective, "max_iter": 100, "tol": 0.0, "random_state": 0, "n_jobs": 1}
    LDFM(checkpoint=path, **settings).fit(rows)
    content = path.read_bytes()
    for length in (0, 5, 40, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match="fit is not a checkpoint of a fit"):
            LDFM(checkpoint=path, **settings).fit(rows)
    path.write_bytes(np.random.default_rng(0).bytes(1000))
    with pytest.raises(CheckpointError, match="is not a checkpoint of a fit"):
        LDFM(checkpoint=path, **settings).fit(rows)
    assert list(Path(tmp_path).iterdir()) == [path]


class Killed(Exception):
    """Stands for the end of a process."""


@pytest.mark.parametrize("values", ["enumerated", "not enumerated"])  # then chains are kept, too
def test_a_mixed_fit_goes_on_to_the_same_bits(values, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    table = {"x": x, "y": x + rng.normal(size=60), "z": np.where(x > 0, "a", "b")}
    table["y"][:10] = np.nan
    monkeypatch.setattr(independent_draws, "MAX_STATES", 1024 if values == "enumerated" else 1)
    settings = {"max_iter": 24, "random_state": 0, "n_jobs": 1}
    whole = LDFM(**settings).fit(table)
    path, written = tmp_path / "fit.checkpoint", []

    def write_and_die(*arguments):
        write_checkpoint(*arguments)
        written.append(arguments)
        if len(written) == 2:
            raise Killed

    monkeypatch.setattr(fitting, "write_checkpoint", write_and_die)
    with pytest.raises(Killed):
        LDFM(**settings, checkpoint=path).fit(table)
    assert int(written[-1][2]["step"]) == 20
    model = LDFM(**settings, checkpoint=path).fit(table)
    for name in ("table", "intercepts", "slopes", "deviations"):
        assert np.array_equal(getattr(model.weights_, name), getattr(whole.weights_, name))
    np.testing.assert_array_equal(model.history_.objective, whole.history_.objective)
    with pytest.raises(CheckpointError, match="another fit"):
        LDFM(**settings | {"random_state": 1}, checkpoint=path).fit(table)
