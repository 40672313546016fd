"""Test log-likelihood on the files that density estimators are compared on: 0/1 rows, comma-separated, in three parts."""

import gzip
from collections.abc import Callable
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ldfm import peers
from ldfm.bench.protocol import hash_of
from ldfm.bench.results import provenance, read, store
from ldfm.bench.tables import markdown
from ldfm.draws import anneal
from ldfm.forests import log_sums
from ldfm.inference import ExactTables, exact
from ldfm.learning import FitSettings, learn
from ldfm.tables import merge_rows
from ldfm.types import Floats, Integers
from ldfm.weights import ArcWeights

PARTS = ("train", "valid", "test")


class Files(NamedTuple):
    """Files of training, validation and test rows."""

    train: Path
    valid: Path
    test: Path

    @classmethod
    def named(cls, folder: Path, name: str) -> "Files":
        """Give the files of a data set, such as nltcs.train.data or nltcs.train.data.gz, whichever is there."""
        paths = []
        for part in PARTS:
            plain = folder / f"{name}.{part}.data"
            packed = plain.with_name(plain.name + ".gz")
            paths.append(packed if packed.exists() and not plain.exists() else plain)
        return cls(*paths)

    @property
    def missing(self) -> list[Path]:
        """The files that are not there."""
        return [path for path in self if not path.exists()]


class Effort(NamedTuple):
    """Steps of learning (None: as many as the estimator takes), chains that find the partition, seed and threads."""

    steps: int | None = None
    chains: int = 4096
    seed: int = 0
    n_jobs: int | None = 1


def read_rows(path: Path) -> Integers:
    """Read rows of 0 and 1; a ValueError names what is something else."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("ascii", errors="replace")
    rows: list[list[str]] = []
    for place, line in enumerate(text.splitlines()):
        cells = line.strip().split(",")
        if rows and len(cells) != len(rows[0]):
            raise ValueError(f"{path} row {place} has {len(cells)} cells, row 0 has {len(rows[0])}")
        wrong = next((cell for cell in cells if cell not in ("0", "1")), None)
        if wrong is not None:
            raise ValueError(f"{path} row {place}: {wrong!r} is neither 0 nor 1")
        rows.append(cells)
    if not rows:
        raise ValueError(f"{path} has no rows")
    return np.array(rows, dtype=np.int64)


class Scores(NamedTuple):
    """Log-likelihoods of test rows, the log partition and its standard error (0: exact), and facts about the fit."""

    logs: Floats
    log_partition: float
    error: float
    fit: dict[str, Any]


def _of_ldfm(train: Integers, valid: Integers, test: Integers, effort: Effort) -> Scores:
    """Learn on the likelihood; the partition is a sum over all rows there are, or comes from annealing."""
    cardinalities = (2,) * train.shape[1]
    settings = FitSettings("likelihood", None, effort.steps, 1e-5, effort.seed, None, effort.n_jobs)
    began = perf_counter()
    found = learn(merge_rows(train), None, ArcWeights.uniform(cardinalities, "ldfm-s"), settings, merge_rows(valid))
    fit = {"seconds": round(perf_counter() - began, 1), "steps": found.history.steps[-1].iteration}
    if prod(cardinalities) <= exact.MAX_STATES:
        partition, error = ExactTables(found.weights, effort.n_jobs).log_partition(), 0.0
    else:
        annealed = anneal(found.weights, effort.chains, (effort.seed, 1), effort.n_jobs)
        partition, error = annealed.value, annealed.standard_error
    logs = log_sums(found.weights, test, effort.n_jobs) - partition
    return Scores(logs, partition, error, {**fit, "stopped": found.history.reason})


def _of_peer(kind: Callable[..., Any]) -> Callable[[Integers, Integers, Integers, Effort], Scores]:
    def scores(train: Integers, valid: Integers, test: Integers, effort: Effort) -> Scores:
        began = perf_counter()
        model = kind(n_jobs=effort.n_jobs, random_state=effort.seed).fit(train, validation=valid)
        seconds = round(perf_counter() - began, 1)
        return Scores(model.score_samples(test), 0.0, 0.0, {"seconds": seconds})

    return scores


MODELS = {
    "ldfm": _of_ldfm,
    "bn": _of_peer(peers.BayesianNetwork),
    "mt": _of_peer(peers.MixtureOfTrees),
    "spn": _of_peer(peers.SumProductNetwork),
}


def measure(name: str, files: Files, effort: Effort, model: str = "ldfm") -> dict[str, Any]:
    """Learn a model, and score the test rows."""
    train, valid, test = (read_rows(path) for path in files)
    if not train.shape[1] == valid.shape[1] == test.shape[1]:
        raise ValueError(f"{name}: the files have {train.shape[1]}, {valid.shape[1]} and {test.shape[1]} columns")
    scores = MODELS[model](train, valid, test, effort)
    return {
        "data": name,
        "model": model,
        "variables": train.shape[1],
        "rows": {part: len(rows) for part, rows in zip(PARTS, (train, valid, test), strict=True)},
        "hashes": {part: hash_of(rows) for part, rows in zip(PARTS, (train, valid, test), strict=True)},
        "settings": effort._asdict() | {"n_jobs": None},
        "test": {
            "log_likelihood": float(scores.logs.mean()),
            "standard_error": float(scores.logs.std(ddof=1) / np.sqrt(len(scores.logs))),
        },
        "log_partition": {
            "value": scores.log_partition,
            "standard_error": scores.error,
            "exact": scores.error == 0.0,
        },
        "fit": scores.fit,
    }


def run(name: str, files: Files, effort: Effort, folder: Path, command: str, model: str = "ldfm") -> dict[str, Any]:
    """Measure one data set and store the result."""
    path = folder / (f"{name}.json" if model == "ldfm" else f"{name}-{model}.json")
    store(path, {**measure(name, files, effort, model), "provenance": provenance(command)})
    return read(path)


def model_of(result: dict[str, Any]) -> str:
    """Give the model of a stored result; the first ones were of LDFMs alone, and do not say so."""
    return str(result.get("model", "ldfm"))


def lines_of(results: list[dict[str, Any]]) -> list[str]:
    """Give the Markdown table of stored results."""
    body = []
    for result in results:
        test, partition = result["test"], result["log_partition"]
        sure = "exact" if partition["exact"] else f"±{partition['standard_error']:.3f}"
        known = f"{partition['value']:.3f} ({sure})" if model_of(result) == "ldfm" else "0"
        body.append(
            [
                result["data"],
                str(result["variables"]),
                model_of(result),
                f"{test['log_likelihood']:.3f} ±{test['standard_error']:.3f}",
                known,
                f"{result['fit']['seconds']:.0f}",
            ]
        )
    return markdown(["", "variables", "model", "test log-likelihood", "log partition", "fit, s"], body)
