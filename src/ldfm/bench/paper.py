"""Run the paper's tables cell by cell: each is stored as soon as it is known, and not run again."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

from ldfm.bench.models import FITS, MODELS, Effort, Fit, Run, settings_of
from ldfm.bench.protocol import ROWS, SPLITS, Rows, Split, draw_questions, draw_rows, gap_to, hash_of, summary_of
from ldfm.bench.results import provenance, read, store
from ldfm.estimator import LDFM
from ldfm.estimator import load as load_model
from ldfm.inference import QueryResult
from ldfm.learning.checkpoint import CheckpointError
from ldfm.networks import load, names
from ldfm.types import Floats

PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "pyagrum")
PROTOCOL = 1  # raised when rows, questions or scores are made another way: older records are then run again
ORACLE = "oracle"
ANSWERS = ("sweeps", "peer_chains")  # parts of the effort that fits of LDFMs do not depend on


class Cell(NamedTuple):
    """One number of the tables; the oracle, which learns nothing, has rows 0."""

    network: str
    rows: int
    split: Split
    model: str

    def path(self, folder: Path) -> Path:
        """Give the file of its record."""
        place = folder / self.network / self.split.name
        return (place if self.model == ORACLE else place / str(self.rows)) / f"{self.model}.json"

    def __str__(self) -> str:
        rows = "" if self.model == ORACLE else f" {self.rows} rows"
        return f"{self.network}{rows} {self.split.query}/{self.split.evidence} {self.model}"


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes
    ----------
    networks, rows, splits, models
        All combinations are run, small networks first; the oracle always is.
    queries
        Test queries a cell: the first of 1,000.
    effort
        Of fits and answers.
    seed
        Of everything random.
    n_jobs
        Threads.
    folder
        Where records are kept.
    """

    networks: Sequence[str] = ()
    rows: Sequence[int] = ROWS
    splits: Sequence[Split] = SPLITS
    models: Sequence[str] = tuple(MODELS)
    queries: int = 1000
    effort: Effort = field(default_factory=Effort)
    seed: int = 0
    n_jobs: int | None = 1
    folder: Path = Path("benchmarks/results/paper")

    def groups(self) -> Iterator[list[Cell]]:
        """Yield the cells that share rows and a fit."""
        for network in sorted(self.networks or names(), key=lambda name: (len(load(name).variables), name)):
            yield [Cell(network, 0, split, ORACLE) for split in self.splits]
            for rows in self.rows:
                for fit in FITS:
                    models = [name for name in self.models if MODELS[name].fit == fit and name != ORACLE]
                    if models:
                        yield [Cell(network, rows, split, model) for model in models for split in self.splits]

    def is_done(self, cell: Cell) -> bool:
        """Say whether a record answers at least as many queries, with the same settings and seed."""
        path = cell.path(self.folder)
        if not path.exists():
            return False
        record = read(path)
        wanted = {"protocol": PROTOCOL, "seed": self.seed, "settings": settings_of(cell.model, self.effort)}
        return record["queries"] >= self.queries and all(record[name] == value for name, value in wanted.items())


class Stopwatch:
    """Measures seconds that pass, and those that this process computes: on a machine that others use too they differ."""

    def __init__(self) -> None:
        self._began = perf_counter(), process_time()

    def read(self) -> dict[str, float]:
        """Give both since the start."""
        wall, cpu = self._began
        return {"seconds": round(perf_counter() - wall, 3), "cpu_seconds": round(process_time() - cpu, 3)}


class Clock:
    """Tells how long is left, from the time that cells of the same model took, by the square of the number of variables."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._left = list(cells)
        self._total = len(cells)
        self._spent: dict[str, list[float]] = {}

    def tick(self, cell: Cell, seconds: float) -> str:
        """Note that a cell is done; give a text that says how far the run is."""
        self._left.remove(cell)
        self._spent.setdefault(cell.model, []).append(seconds / _size(cell))
        everything = [rate for rates in self._spent.values() for rate in rates]
        left = sum(float(np.mean(self._spent.get(c.model, everything))) * _size(c) for c in self._left)
        return f"[{self._total - len(self._left)}/{self._total}] {_duration(left)} left"


def _size(cell: Cell) -> float:
    return float(len(load(cell.network).variables)) ** 2


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(plan: Plan, command: str, say: Callable[[str], None] = _say) -> int:
    """Run what is not stored yet; give the number of cells that were run. A run that is stopped goes on where it was."""
    unknown = [name for name in plan.models if name not in MODELS]
    if unknown:
        raise ValueError(f"no model is called {unknown[0]!r}; the models are {', '.join(MODELS)}")
    groups = [[cell for cell in group if not plan.is_done(cell)] for group in plan.groups()]
    clock = Clock([cell for group in groups for cell in group])
    done = 0
    for group in filter(None, groups):
        for cell, record in _run_group(plan, group, command):
            store(cell.path(plan.folder), record)
            done += 1
            score, seconds = record["result"]["score"]["mean"], record["answer"]["seconds"]
            shown = "-inf" if score is None else f"{score:.4f}"
            fit = record["fit"]["seconds"] / len(group)
            say(
                f"{clock.tick(cell, seconds + fit)}: {cell} {shown}, {seconds:.1f} s, fit {record['fit']['seconds']:.1f} s"
            )
    return done


def _run_group(plan: Plan, group: list[Cell], command: str) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Fit once, answer all splits; yield records."""
    rows = draw_rows(group[0].network, group[0].rows, plan.seed)
    fit = _fit_once(plan, group[0], rows)
    for cell in group:
        record = _run_cell(plan, cell, rows, fit)
        record["fit"] = fit.facts
        record["provenance"] = provenance(command, PACKAGES)
        yield cell, record


def _fit_once(plan: Plan, cell: Cell, rows: Rows) -> Fit:
    """Learn what a cell needs, or take the model of an earlier run with the same settings; time is that of learning."""
    name = MODELS[cell.model].fit
    settings = {part: value for part, value in settings_of(cell.model, plan.effort).items() if part not in ANSWERS}
    asked = {"protocol": PROTOCOL, "seed": plan.seed, "settings": settings, "hashes": rows.hashes}
    place = plan.folder / ".fits" / f"{cell.network}-{cell.rows}-{name}"
    model_file, facts_file, checkpoint = (
        place.with_name(place.name + end) for end in (".ldfm", ".json", ".checkpoint")
    )
    run = Run(plan.effort, plan.seed, plan.n_jobs, checkpoint)
    if facts_file.exists() and (kept := read(facts_file))["asked"] == asked:
        return Fit(load_model(model_file).set_params(n_jobs=run.n_jobs, random_state=run.seed), kept["facts"])
    place.parent.mkdir(parents=True, exist_ok=True)
    watch = Stopwatch()
    try:
        fit = FITS[name](rows, run)
    except CheckpointError:  # of a run with other settings, or of another version
        checkpoint.unlink()
        fit = FITS[name](rows, run)
    fit = Fit(fit.model, {**watch.read(), **fit.facts, "commit": provenance("")["commit"]})
    if isinstance(fit.model, LDFM):
        facts_file.unlink(missing_ok=True)
        fit.model.save(model_file)
        store(facts_file, {"asked": asked, "facts": fit.facts})
    checkpoint.unlink(missing_ok=True)
    return fit


def _run_cell(plan: Plan, cell: Cell, rows: Rows, fit: Fit) -> dict[str, Any]:
    n = len(rows.network.variables)
    queries = min(plan.queries, len(rows.test))
    questions = draw_questions(cell.network, n, queries, cell.split, plan.seed)
    watch = Stopwatch()
    found = MODELS[cell.model].answer(fit.model, rows, questions, Run(plan.effort, plan.seed, plan.n_jobs))
    spent = watch.read()
    result = summary_of(found, n, cell.split)
    hashes = {**rows.hashes, "asked": hash_of(questions.asked), "given": hash_of(questions.given)}
    record = {
        "cell": {**cell._asdict(), "split": list(cell.split), "variables": n},
        "protocol": PROTOCOL,
        "seed": plan.seed,
        "settings": settings_of(cell.model, plan.effort),
        "queries": queries,
        "hashes": hashes,
        "result": result,
        "answer": {**spent, "seconds_a_query": round(spent["seconds"] / queries, 6)},
    }
    if cell.model == ORACLE:
        record["answers"] = {"joint": _as_text(found.joint), "marginal": _as_text(found.marginal)}
    else:
        record["gap"] = _gap(plan, cell, found, result, hashes)
    return record


def _gap(plan: Plan, cell: Cell, found: QueryResult, result: dict[str, Any], hashes: dict[str, str]) -> dict[str, Any]:
    """Give how far below the true network's the answers are, from its stored record."""
    oracle = read(cell._replace(rows=0, model=ORACLE).path(plan.folder))
    if oracle["hashes"]["test"] != hashes["test"]:
        raise ValueError(f"{cell}: the oracle's record is of other test rows; remove it and run again")
    of = oracle["result"]["score"]["of"]
    answers = _from_text(oracle["answers"]["joint" if of == "cll" else "marginal"])
    return gap_to(answers / oracle["result"]["query_variables"], found, result["score"]["of"])


def _as_text(values: Floats) -> str:
    return " ".join(f"{value:.5f}" for value in values)


def _from_text(text: str) -> Floats:
    return np.array([float(part) for part in text.split()])
