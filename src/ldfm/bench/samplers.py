"""Which sampler gives the best answers in a given time: marginals and joints, on weights from EM and from the likelihood.

Marginals: chains of one kernel run for some seconds, the first fifth thrown away; the error is the total variation distance from
the reference, averaged over the unknown cells. Draws a second are independent draws of a value that would leave the same standard
error. Joints: clamping, with sweeps of each kind between; one round of populations, its error and the seconds it took.
References are sums over all states where these are few, else long runs of all kernels in turn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ldfm.bench.models import Effort, Run, fit_weights
from ldfm.bench.naive_gibbs import naive_sweeps
from ldfm.bench.protocol import SPLITS, draw_questions, draw_rows
from ldfm.bench.results import provenance, read, store
from ldfm.draws import fold
from ldfm.estimator import LDFM
from ldfm.inference import Budget, Starts, exact
from ldfm.inference.chains import Chains, start_states
from ldfm.inference.clamping import EXTRA_OF, sample_query
from ldfm.inference.diagnostics import r_hat, standard_error
from ldfm.inference.sampling import KERNEL_OF
from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.sweeps import Folded
from ldfm.tables import MISSING, unmerged
from ldfm.types import Codes, Floats, Integers

NETWORKS = ("asia", "sachs", "child", "alarm", "win95pts", "hailfinder")
KERNELS = ("gibbs", "tree", "blocked", "naive")
EXTRAS = ("blocked", "tree", "gibbs")
CHAINS = 8
_BLOCKS = 60  # records a run, about
_WARM_UP = 0.2
_REPEATS = 3  # joints a query: their errors are noisy


@dataclass(frozen=True)
class Settings:
    """How to compare samplers; see the options of ``ldfm bench samplers``."""

    networks: Sequence[str] = NETWORKS
    seconds: tuple[float, ...] = (0.1, 1.0, 10.0)
    questions: int = 4
    rows: int = 2000
    em_iterations: int = 40
    likelihood_steps: int = 200
    reference_seconds: float = 15.0
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Give what a record is compared by, whichever networks are run."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items() if name != "networks"}


class Problem(NamedTuple):
    """One row: known cells (n,), the values asked, and the exact or long-run answers."""

    model: Folded
    known: Codes
    cells: Integers
    values: Codes
    starts: Starts


class Sampled(NamedTuple):
    """What chains of one kernel found: records (chains, blocks, n, most values), seconds, sweeps of a chain."""

    records: Floats
    seconds: float
    sweeps: int


def move(chains: Chains, kernel: str, sweeps: int) -> Floats:
    """Run every chain for some sweeps of a kernel, or of all in turn ("cycle"); give (chains, n, most values) averages."""
    if kernel == "naive":
        visits = np.zeros((len(chains.codes), 1, chains.codes.shape[1], chains.model.most))
        work = make_workspace(chains.codes.shape[1])
        for codes, visit in zip(chains.codes, visits, strict=True):
            naive_sweeps(chains.model, chains.clamped, codes, sweeps, work, chains.generator, visit)
        return visits[:, 0] / sweeps
    if kernel == "cycle":
        # Gibbs leaves the forest behind; the blocked sweep after it draws a new one
        parts = [chains.move(name, sweeps, 1)[:, 0] for name in ("tree", "gibbs", "blocked")]
        averages: Floats = np.mean(parts, axis=0)
        return averages
    return chains.move(KERNEL_OF[kernel], sweeps, 1)[:, 0]


def sample_for(problem: Problem, kernel: str, seconds: float, seed: Sequence[int]) -> Sampled:
    """Run chains for some seconds, starts included; blocks of sweeps grow until there are few enough records."""
    generator = np.random.default_rng(list(seed))
    began = perf_counter()
    states = start_states(problem.model, problem.known, CHAINS, generator, 0, problem.starts)
    chains = Chains(problem.model, problem.known, *states, generator)
    sweeps, done, records = 1, 0, []
    while True:
        block = perf_counter()
        found = move(chains, kernel, sweeps)
        done += sweeps
        now = perf_counter()
        if now - began > _WARM_UP * seconds:
            records.append(found)
        if now - began >= seconds:
            break
        if not records and now - block < seconds / _BLOCKS:
            sweeps *= 2  # only while warming up: records must be of one length
    return Sampled(np.stack(records, axis=1), perf_counter() - began, done)


def distance(found: Floats, wanted: Floats, known: Codes) -> float:
    """Give the total variation distance between marginals (n, most values), averaged over the unknown cells."""
    free = known == MISSING
    return float(0.5 * np.abs(found - wanted)[free].sum(axis=1).mean())


def draws_a_second(sampled: Sampled, known: Codes) -> float | None:
    """Give how many independent draws of a value a second would leave the same standard error; the median over values.

    None where no value moves, or where a run is too short to tell.
    """
    means = sampled.records.mean(axis=(0, 1))
    variance = means * (1.0 - means)
    moving = (known == MISSING)[:, None] & (variance > 0.01)
    if sampled.records.shape[1] < 8 or not moving.any():
        return None
    errors = np.maximum(standard_error(sampled.records)[moving], 1e-9)
    return float(np.median(variance[moving] / errors**2) / sampled.seconds)


def make_problems(model: LDFM, name: str, settings: Settings) -> list[Problem]:
    """Take test rows with the paper's first split: the query cells and the hidden ones are unknown."""
    rows = draw_rows(name, settings.rows, settings.seed)
    count, n = settings.questions, rows.test.shape[1]
    asked, given = draw_questions(name, n, count, SPLITS[0], settings.seed)
    starts = Starts(model.draws_, model.weights_.cardinalities)
    folded = fold(model.weights_)
    return [
        Problem(folded, np.where(given[row], codes, MISSING), np.flatnonzero(asked[row]), codes, starts)
        for row, codes in enumerate(rows.test[:count])
    ]


def _reference(model: LDFM, problem: Problem, settings: Settings) -> tuple[Floats, float, dict[str, Any]]:
    """Give marginals, the log joint of the query cells, and how they were found."""
    weights = model.weights_
    if exact.count_states(weights, problem.known == MISSING) <= exact.MAX_STATES:
        tables, asked = exact.ExactTables(weights), np.zeros((1, len(problem.known)), dtype=np.bool_)
        asked[0, problem.cells] = True
        found = exact.marginals(tables, unmerged(problem.known[None, :]))
        marginals = np.zeros((len(found), problem.model.most))
        for i, shares in enumerate(found):
            marginals[i, : shares.shape[1]] = shares[0]
        questions = unmerged(np.where(asked | (problem.known != MISSING)[None, :], problem.values[None, :], MISSING))
        return marginals, float(exact.query(tables, questions, asked)[0][0]), {"exact": True}
    sampled = sample_for(problem, "cycle", settings.reference_seconds, (settings.seed, 1))
    moving = (problem.known == MISSING)[:, None] & (sampled.records.std(axis=(0, 1)) > 1e-9)
    worst = float(r_hat(sampled.records)[moving].max()) if moving.any() else 1.0
    # blocked sweeps are part of both; a sampler that is stuck is sure of too low a number, so none is trusted by its error
    tries = {
        extra: _clamp(problem, extra, settings.reference_seconds / 2, settings.seed + 1) for extra in ("tree", "gibbs")
    }
    joint = float(np.logaddexp(tries["tree"]["joint"], tries["gibbs"]["joint"]) - np.log(2.0))
    facts = {"exact": False, "largest_r_hat": worst, "joints": tries}
    return sampled.records.mean(axis=(0, 1)), joint, facts


def _clamp(problem: Problem, extra: str, seconds: float | None, seed: int) -> dict[str, float]:
    """Answer a joint by clamping: one round of populations, or as many as `seconds` allow."""
    budget = Budget(target_se=1e-6, max_sweeps=1 if seconds is None else 10**9, seconds=seconds)
    began = perf_counter()
    found = sample_query(
        problem.model,
        problem.known,
        problem.cells,
        problem.values,
        EXTRA_OF[extra],
        budget,
        np.random.SeedSequence(seed),
        0,
        problem.starts,
    )
    return {"joint": found.joint, "standard_error": found.joint_se, "seconds": perf_counter() - began}


def _warm_up(problem: Problem) -> None:
    """Compile everything before anything is timed."""
    for kernel in (*KERNELS, "cycle"):
        sample_for(problem, kernel, 1e-3, (0,))
    for extra in EXTRAS:
        _clamp(problem, extra, None, 0)


def _measure_marginals(problems: list[Problem], wanted: list[Floats], settings: Settings) -> dict[str, Any]:
    """Run the kernels in turns, query by query, so that what else the machine does hits all alike."""
    found: dict[str, Any] = {kernel: {} for kernel in KERNELS}
    for seconds in settings.seconds:
        runs: dict[str, list[Sampled]] = {kernel: [] for kernel in KERNELS}
        for place, problem in enumerate(problems):
            for kernel in KERNELS:
                runs[kernel].append(sample_for(problem, kernel, seconds, (settings.seed, 2, place)))
        for kernel in KERNELS:
            found[kernel][f"{seconds:g}"] = _summary_of(runs[kernel], wanted, problems)
    return found


def _summary_of(runs: list[Sampled], wanted: list[Floats], problems: list[Problem]) -> dict[str, float | None]:
    errors, draws = [], []
    for run, want, problem in zip(runs, wanted, problems, strict=True):
        errors.append(distance(run.records.mean(axis=(0, 1)), want, problem.known))
        draws.append(draws_a_second(run, problem.known))
    known = [number for number in draws if number is not None]
    return {
        "error": float(np.mean(errors)),
        "draws_a_second": float(np.median(known)) if known else None,
        "sweeps_a_second": float(np.mean([run.sweeps * CHAINS / run.seconds for run in runs])),
        "seconds": float(np.mean([run.seconds for run in runs])),
    }


def _measure_joints(problems: list[Problem], wanted: list[float], settings: Settings) -> dict[str, Any]:
    found = {}
    for extra in EXTRAS:
        runs = [_clamp(problem, extra, None, settings.seed + 7 + r) for problem in problems for r in range(_REPEATS)]
        errors = np.array([run["joint"] for run in runs]) - np.repeat(wanted, _REPEATS)
        found[extra] = {
            "mean_error": float(errors.mean()),
            **root_mean_square(errors.reshape(-1, _REPEATS)),
            "standard_error": float(np.mean([run["standard_error"] for run in runs])),
            "seconds": float(np.mean([run["seconds"] for run in runs])),
        }
    return found


def root_mean_square(errors: Floats) -> dict[str, float | None]:
    """Give the root mean square of errors (queries, repeats), and its standard error by the differences between queries."""
    squares = (errors**2).mean(axis=1)
    root = float(np.sqrt(squares.mean()))
    spread = None if len(squares) < 2 else float(squares.std(ddof=1) / np.sqrt(len(squares)) / (2 * max(root, 1e-300)))
    return {"root_mean_square_error": root, "its_standard_error": spread}


def measure(name: str, learned: str, settings: Settings) -> dict[str, Any]:
    """Compare all samplers on one network's weights."""
    rows = draw_rows(name, settings.rows, settings.seed)
    effort = Effort(em_iterations=settings.em_iterations, likelihood_steps=settings.likelihood_steps)
    run = Run(effort, settings.seed, 1)
    if learned == "em":
        model = fit_weights(rows, "ldfm", "generation", 0.0, run).model
    else:
        model = fit_weights(rows, "ldfm-s", "likelihood", None, run, judged=False).model
    problems = make_problems(model, name, settings)
    _warm_up(problems[0])
    references = [_reference(model, problem, settings) for problem in problems]
    return {
        "network": name,
        "weights": learned,
        "variables": len(problems[0].known),
        "settings": settings.to_json(),
        "reference": [facts for _, _, facts in references],
        "marginals": _measure_marginals(problems, [marginals for marginals, _, _ in references], settings),
        "joints": _measure_joints(problems, [joint for _, joint, _ in references], settings),
    }


def run(settings: Settings, folder: Path, command: str, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Compare samplers on all networks and weights; what is stored with the same settings is not run again."""
    found = []
    for name in settings.networks:
        for learned in ("em", "likelihood"):
            path = folder / f"{name}-{learned}.json"
            if not path.exists() or read(path)["settings"] != settings.to_json():
                began = perf_counter()
                store(path, {**measure(name, learned, settings), "provenance": provenance(command)})
                say(f"{name}, weights by {learned}: {perf_counter() - began:.0f} s")
            found.append(read(path))
    return found
