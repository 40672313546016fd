"""A fit that is killed goes on and ends at the same bits; checkpoints are whole or absent."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ldfm import LDFM
from ldfm.learning import CheckpointError, fitting
from ldfm.networks import load

CHILD = """
import sys
import numpy as np
from ldfm import LDFM
from ldfm.networks import load
objective, steps, path = sys.argv[1:4]
model = LDFM(objective=objective, max_iter=int(steps), tol=0.0, random_state=0, n_jobs=1, checkpoint=path)
print("ready", flush=True)
model.fit(load("asia").sample(400, seed=0))
np.save(path + ".npy", np.vstack([model.weights_.table, model.weights_.stop[None, 1:]]))
"""
STEPS = {"generation": 400, "likelihood": 600}


def uninterrupted(objective: str) -> np.ndarray:
    model = LDFM(objective=objective, max_iter=STEPS[objective], tol=0.0, random_state=0, n_jobs=2)
    model.fit(load("asia").sample(400, seed=0))
    return np.vstack([model.weights_.table, model.weights_.stop[None, 1:]])


@pytest.mark.parametrize("objective", ["generation", "likelihood"])
def test_a_killed_fit_ends_at_the_same_bits(objective, tmp_path):
    path, rng, kills = tmp_path / "fit.checkpoint", np.random.default_rng(0), 0
    command = [sys.executable, "-c", CHILD, objective, str(STEPS[objective]), str(path)]
    for _ in range(40):
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        process.stdout.readline()
        if kills < 3:
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
    assert np.array_equal(np.load(f"{path}.npy"), uninterrupted(objective))


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


@pytest.mark.parametrize("objective", ["generation", "likelihood"])
def test_a_cut_checkpoint_is_named(objective, tmp_path):
    rows, path = load("asia").sample(100, seed=0), tmp_path / "fit"
    settings = {"objective": objective, "max_iter": 50, "tol": 0.0, "random_state": 0, "n_jobs": 1}
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
