"""Learning from tables with missing cells: as they are, beside filling them in first and dropping incomplete rows.

All models learn from the same rows of a network, of which cells are removed at random, and are asked the same questions about
complete test rows. How much each loses is the mean difference to the model that had all cells.
"""

from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ldfm.bench.protocol import SPLITS, Rows, draw_questions, draw_rows, hash_of, mean_of
from ldfm.bench.results import provenance, read, store
from ldfm.bench.tables import markdown, shown
from ldfm.estimator import LDFM
from ldfm.tables import MISSING
from ldfm.types import Floats, Integers

WHOLE, HOLES = "all cells", "missing cells as they are"


class Settings(NamedTuple):
    """Network, training rows, share of removed cells, test queries, steps (None: as usual), seed and threads."""

    network: str = "alarm"
    rows: int = 5000
    removed: float = 0.3
    queries: int = 200
    steps: int | None = None
    seed: int = 0
    n_jobs: int | None = 1


def tables_of(train: Integers, removed: float, seed: int) -> dict[str, Integers]:
    """Give the training sets (rows, n) by name, -1 where a cell is missing."""
    generator = np.random.default_rng([seed, 30])
    holes = np.where(generator.random(train.shape) < removed, MISSING, train)
    usual = [int(np.bincount(column[column != MISSING]).argmax()) for column in holes.T]
    half = train.copy()
    half[generator.permutation(len(train))[: len(train) // 2], train.shape[1] // 2] = MISSING
    return {
        WHOLE: train,
        HOLES: holes,
        "most frequent values filled in": np.where(holes == MISSING, usual, holes),
        "incomplete rows dropped": holes[(holes != MISSING).all(axis=1)],
        "one column missing in half of the rows": half,
    }


def _ask(codes: Integers, rows: Rows, settings: Settings) -> tuple[Floats, dict[str, Any]]:
    """Learn from a training set; give log p(query | evidence) a query variable, and facts about the fit.

    A table without a row teaches nothing: its model is uniform. Values that a table lacks are known by a row of weight 0.
    """
    sizes = np.array(rows.network.cardinalities)
    questions = draw_questions(rows.network.name, len(sizes), settings.queries, SPLITS[0], settings.seed)
    test = rows.test[: settings.queries]
    if not len(codes):
        return -np.where(questions.asked, np.log(sizes), 0.0).sum(axis=1) / questions.asked.sum(axis=1), {"rows": 0}
    every = np.arange(sizes.max())[:, None] % sizes
    weights = np.concatenate([np.ones(len(codes)), np.zeros(len(every))])
    table = rows.named(np.concatenate([codes, every]))
    model = LDFM(max_iter=settings.steps, random_state=settings.seed, n_jobs=settings.n_jobs)
    began = perf_counter()
    model.fit(table, sample_weight=weights)
    facts = {"rows": len(codes), "seconds": round(perf_counter() - began, 1), "stopped": model.history_.reason}
    found = model.query_log_likelihood(rows.named(test), *questions)
    return found.joint / found.n_query, facts


def measure(settings: Settings) -> dict[str, Any]:
    """Learn from all tables, and compare."""
    rows = draw_rows(settings.network, settings.rows, settings.seed)
    tables = tables_of(rows.train, settings.removed, settings.seed)
    found = {}
    whole: Floats | None = None
    for name, codes in tables.items():
        scores, facts = _ask(codes, rows, settings)
        whole = scores if whole is None else whole
        found[name] = {"score": mean_of(scores), "loss": mean_of(whole - scores), "fit": facts}
    return {
        "settings": settings._asdict() | {"n_jobs": None},
        "variables": rows.train.shape[1],
        "hashes": {**rows.hashes, "holes": hash_of(tables[HOLES])},
        "tables": found,
    }


def run(settings: Settings, folder: Path, command: str) -> dict[str, Any]:
    """Measure and store the result."""
    path = folder / f"{settings.network}.json"
    store(path, {**measure(settings), "provenance": provenance(command)})
    return read(path)


def lines_of(results: list[dict[str, Any]]) -> list[str]:
    """Give the Markdown tables of stored results."""
    lines = []
    for result in results:
        of = result["settings"]
        body = [
            [name, str(part["fit"]["rows"]), shown(part["score"], 4), "" if name == WHOLE else shown(part["loss"], 4)]
            for name, part in result["tables"].items()
        ]
        lines += [
            f"{of['network']}, {result['variables']} variables, {of['rows']} training rows, "
            f"{100 * of['removed']:.0f} % of their cells removed at random; "
            f"{of['queries']} queries, 40 % of a row given 30 %; nats a query variable:",
            "",
            *markdown(["learned from", "rows", "log-likelihood", "lost"], body),
            "",
        ]
    return lines
