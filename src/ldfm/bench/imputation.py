"""Mixed tables that come with scikit-learn: filling removed cells, and held-out log-density, beside what users would take instead.

A fifth of all cells is removed at random, three times over; every method learns from the rows of four folds, holes and all, and
fills those of the fifth. Density is that of complete rows: each method learns from four folds and scores the fifth, numbers in
standardised units. Components of the Gaussian mixture have shares of the classes, BIC chooses their number; the kernel estimate,
its width chosen by cross-validation, has a density for each class.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ldfm.bench.mixture import best_mixture
from ldfm.bench.protocol import hash_of, mean_of
from ldfm.bench.results import provenance, read, store
from ldfm.bench.tables import shown
from ldfm.types import Booleans, Floats

FOLDS, REMOVED, REMOVALS = 5, 0.2, 3
LEVELS = (0.05, 0.95)
TREES, ROUNDS = 20, 3  # of random forests: more take hours for tables of thirty columns
TABLES = ("iris", "wine", "diabetes", "breast_cancer")
PEERS = ("mean or mode", "5 nearest neighbours", "chained regressions", "chained random forests")
OURS = "ldfm"
MIXTURE = "Gaussian mixture, shared components"


class Mixed(NamedTuple):
    """A table of numbers and at most one column of categories.

    Attributes
    ----------
    numbers
        (rows, columns), as they come.
    classes
        (rows,): codes of the categories.
    names
        Of the columns, the categories' last.
    """

    numbers: Floats
    classes: Floats
    names: list[str]

    def frame(self, removed: Booleans) -> dict[str, Any]:
        """Give the table as users have it, without the removed cells."""
        columns: dict[str, Any] = {
            name: np.where(removed[:, place], np.nan, self.numbers[:, place])
            for place, name in enumerate(self.names[:-1])
        }
        labels = np.array([f"c{int(code)}" for code in self.classes], dtype=object)
        labels[removed[:, -1]] = None
        return columns | {self.names[-1]: labels}


def load_table(name: str) -> Mixed:
    """Load one of scikit-learn's tables: its classes are the column of categories, in diabetes it is the sex."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    numbers, classes = np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target, dtype=np.float64)
    names = [str(column) for column in bunch.feature_names]
    if name == "diabetes":
        place = names.index("sex")
        classes, target = (numbers[:, place] > 0).astype(np.float64), classes
        numbers = np.column_stack([np.delete(numbers, place, axis=1), target])
        names = [*(column for column in names if column != "sex"), "progression", "sex"]
    else:
        names.append("class")
    return Mixed(numbers, classes, names)


def folds_of(name: str, rows: int) -> list[Booleans]:
    """Give which rows are tested, fold by fold; the same every time."""
    order = np.random.default_rng([17, TABLES.index(name)]).permutation(rows)
    return [np.isin(np.arange(rows), order[fold::FOLDS]) for fold in range(FOLDS)]


class Filled(NamedTuple):
    """Cells of test rows as a method fills them: numbers standardised, codes of classes, ends of 90 % intervals or None."""

    numbers: Floats
    classes: Floats
    ends: Floats | None = None


def fill_by_peer(name: str, table: Mixed, removed: Booleans, test: Booleans) -> Filled:
    """Fill by one of scikit-learn's imputers; all categories but the first are indicator columns, the largest one is taken."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (makes it importable)
    from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

    makers: dict[str, Callable[[], Any]] = {
        PEERS[0]: SimpleImputer,
        PEERS[1]: KNNImputer,
        PEERS[2]: lambda: IterativeImputer(random_state=0),
        PEERS[3]: lambda: IterativeImputer(
            RandomForestRegressor(n_estimators=TREES, random_state=0), random_state=0, max_iter=ROUNDS
        ),
    }
    kinds = int(table.classes.max())
    wide = np.column_stack([np.where(removed[:, :-1], np.nan, table.numbers), indicators(table, removed, kinds)])
    centre, scale = np.nanmean(wide[~test], axis=0), np.nanstd(wide[~test], axis=0)
    wide = (wide - centre) / scale
    imputer = makers[name]().fit(wide[~test])
    filled = imputer.transform(wide[test])
    shares = filled[:, -kinds:] * scale[-kinds:] + centre[-kinds:]
    shares = np.column_stack([1.0 - shares.sum(axis=1), shares])
    raw = filled[:, :-kinds] * scale[:-kinds] + centre[:-kinds]
    return Filled(standardised(table, raw), shares.argmax(axis=1).astype(np.float64))


def indicators(table: Mixed, removed: Booleans, kinds: int) -> Floats:
    """Give (rows, kinds) 1 for the class of a row, but for the first class, NaN where it is removed."""
    found: Floats = np.eye(kinds + 1)[table.classes.astype(np.int64)][:, 1:]
    return np.where(removed[:, -1:], np.nan, found)


def standardised(table: Mixed, numbers: Floats) -> Floats:
    """Give numbers in units of their columns' standard deviations in the whole table."""
    found: Floats = (numbers - table.numbers.mean(axis=0)) / table.numbers.std(axis=0)
    return found


def fill_by_ldfm(table: Mixed, removed: Booleans, test: Booleans, seed: int, n_jobs: int | None) -> Filled:
    """Fill by posterior means and most probable categories."""
    from ldfm.estimator import LDFM

    frame = table.frame(removed)
    model = LDFM(random_state=seed, n_jobs=n_jobs).fit({name: cells[~test] for name, cells in frame.items()})
    answer = model.marginals({name: cells[test] for name, cells in frame.items()})
    means = np.column_stack([answer.numbers[name].means for name in table.names[:-1]])
    ends = np.stack([answer.numbers[name].quantiles(LEVELS) for name in table.names[:-1]], axis=1)
    codes = np.array([float(str(value)[1:]) for value in model.schema_.columns[-1].values])
    classes = codes[answer.probabilities[table.names[-1]].argmax(axis=1)]
    ends = np.stack([standardised(table, ends[..., side]) for side in (0, 1)], axis=-1)
    return Filled(standardised(table, means), classes, ends)


def removals_of(name: str, table: Mixed) -> list[Booleans]:
    """Give which cells are removed, each time; the same in every run."""
    shape = len(table.numbers), len(table.names)
    place = TABLES.index(name)
    return [np.random.default_rng([18, place, time]).random(shape) < REMOVED for time in range(REMOVALS)]


def errors_of(table: Mixed, test: Booleans, parts: Sequence[tuple[Booleans, Filled]]) -> dict[str, float | None]:
    """Give the root mean square error of numbers, the share of wrong categories, and that of numbers inside their intervals.

    `parts` are removed cells, and rows with these filled, for each time that cells were removed; all removed cells count the same.
    """
    truth, classes = standardised(table, table.numbers)[test], table.classes[test]
    squares, wrong, inside = list[Floats](), list[Booleans](), list[Booleans]()
    for removed, filled in parts:
        numbers, category = removed[test][:, :-1], removed[test][:, -1]
        squares.append(((filled.numbers - truth) ** 2)[numbers])
        wrong.append((filled.classes != classes)[category])
        if filled.ends is not None:
            inside.append(((filled.ends[..., 0] <= truth) & (truth <= filled.ends[..., 1]))[numbers])
    return {
        "numbers": float(np.sqrt(np.concatenate(squares).mean())),
        "categories": float(np.concatenate(wrong).mean()),
        "covered": float(np.concatenate(inside).mean()) if inside else None,
    }


def densities_of(table: Mixed, test: Booleans, seed: int, n_jobs: int | None) -> dict[str, float]:
    """Give the mean log-density of test rows, numbers standardised."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KernelDensity

    from ldfm.estimator import LDFM

    numbers, classes = standardised(table, table.numbers), table.classes.astype(np.int64)
    mixture = best_mixture(numbers[~test], classes[~test], 0).log_density(numbers[test], classes[test])
    kernel = per_class(
        table,
        test,
        lambda rows: GridSearchCV(KernelDensity(), {"bandwidth": np.geomspace(0.1, 2.0, 12)}).fit(rows).best_estimator_,
    )
    frame = table._replace(numbers=numbers).frame(np.zeros((len(numbers), len(table.names)), dtype=np.bool_))
    model = LDFM(random_state=seed, n_jobs=n_jobs).fit({name: cells[~test] for name, cells in frame.items()})
    ours = model.score_samples({name: cells[test] for name, cells in frame.items()})
    return {OURS: float(ours.mean()), MIXTURE: float(mixture.mean()), "kernel estimate": kernel}


def per_class(table: Mixed, test: Booleans, learn: Callable[[Floats], Any]) -> float:
    """Give the mean of log p(class) + log p(numbers | class) over test rows, one density a class."""
    numbers = standardised(table, table.numbers)
    logs = np.empty(len(numbers))
    for code in np.unique(table.classes):
        mine = table.classes == code
        share = (mine & ~test).sum() / (~test).sum()
        logs[mine & test] = np.log(share) + learn(numbers[mine & ~test]).score_samples(numbers[mine & test])
    return float(logs[test].mean())


def measure_fold(name: str, table: Mixed, fold: int, seed: int, n_jobs: int | None) -> dict[str, Any]:
    """Fill and score the rows of one fold by all methods."""
    test, removals = folds_of(name, len(table.numbers))[fold], removals_of(name, table)
    found = {
        method: errors_of(table, test, [(removed, fill_by_peer(method, table, removed, test)) for removed in removals])
        for method in PEERS
    }
    began = perf_counter()
    ours = [(removed, fill_by_ldfm(table, removed, test, seed, n_jobs)) for removed in removals]
    found[OURS] = errors_of(table, test, ours)
    seconds = round(perf_counter() - began, 1)
    return {"imputation": found, "densities": densities_of(table, test, seed, n_jobs), "seconds": seconds}


def record_of(name: str, table: Mixed, seed: int, folds: list[dict[str, Any]]) -> dict[str, Any]:
    """Give what is stored: the folds measured so far, and their means."""
    return {
        **_identity(name, table, seed),
        "folds": folds,
        "imputation": {
            method: _means([fold["imputation"][method] for fold in folds]) for method in folds[0]["imputation"]
        },
        "densities": _means([fold["densities"] for fold in folds]),
        "seconds": round(sum(fold["seconds"] for fold in folds), 1),
    }


def _identity(name: str, table: Mixed, seed: int) -> dict[str, Any]:
    """Say what a record is of."""
    return {
        "table": name,
        "rows": len(table.numbers),
        "columns": len(table.names),
        "hash": hash_of(np.round(table.numbers * 1e6).astype(np.int64)),
        "settings": {"folds": FOLDS, "removed": REMOVED, "removals": REMOVALS, "seed": seed},
    }


def _means(parts: Sequence[Mapping[str, float | None]]) -> dict[str, Any]:
    """Give for each number its mean over folds and the standard error of that."""
    found: dict[str, Any] = {}
    for key in parts[0]:
        values = [part[key] for part in parts]
        if any(value is None for value in values):
            continue
        numbers = np.array(values, dtype=np.float64)
        found[key] = mean_of(numbers)
    return found


def run(name: str, seed: int, n_jobs: int | None, folder: Path, command: str) -> dict[str, Any]:
    """Measure one table fold by fold, each stored as soon as it is known; a run that was stopped goes on with the next fold."""
    path, table = folder / f"{name}.json", load_table(name)
    stored = read(path) if path.exists() else {}
    same = {key: stored.get(key) for key in _identity(name, table, seed)} == _identity(name, table, seed)
    folds: list[dict[str, Any]] = stored.get("folds", []) if same else []
    if len(folds) == FOLDS:
        folds = []
    for fold in range(len(folds), FOLDS):
        measured = measure_fold(name, table, fold, seed, n_jobs)
        origin = provenance(command, ("numpy", "numba", "scipy", "scikit-learn"))
        folds.append({**measured, "commit": origin["commit"]})
        store(path, {**record_of(name, table, seed, folds), "provenance": origin})
    return read(path)


def _so_far(result: dict[str, Any]) -> str:
    """Say how many folds are measured, if not all."""
    done, wanted = len(result.get("folds", [])), result["settings"]["folds"]
    return f" ({done} of {wanted} folds)" if 0 < done < wanted else ""


def _beside_best(result: dict[str, Any], key: str) -> str:
    """Say how much larger an error of ours is than that of the best other method, with the standard error over folds of that."""
    found = {method: result["imputation"][method].get(key, {}).get("mean") for method in (OURS, *PEERS)}
    means = {method: mean for method, mean in found.items() if mean is not None and method != OURS}
    best = min(means, key=means.__getitem__, default=None)
    if best is None or found[OURS] is None or "folds" not in result or not means[best] > 0:
        return ""
    pairs = [[fold["imputation"][method][key] for method in (OURS, best)] for fold in result["folds"]]
    error = mean_of(np.array([ours - theirs for ours, theirs in pairs]))["standard_error"]
    shown_error = "" if error is None else f" ±{error / means[best]:.0%}"
    return f"{found[OURS] / means[best] - 1.0:+.0%}{shown_error} ({best})"


def lines_of(results: list[dict[str, Any]]) -> list[str]:
    """Give the Markdown tables of stored results."""
    methods = (OURS, *PEERS)
    names = [result["table"] + _so_far(result) for result in results]

    def table(title: str, key: str, rows: tuple[str, ...]) -> list[str]:
        body = [
            f"| {method} | " + " | ".join(shown(r["imputation"][method].get(key)) for r in results) + " |"
            for method in rows
        ]
        return [title, "", "| | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 1), *body, ""]

    kinds = dict.fromkeys(kind for r in results for kind in r["densities"])
    density = [f"| {kind} | " + " | ".join(shown(r["densities"].get(kind)) for r in results) + " |" for kind in kinds]
    return [
        *table(
            "Root mean square error of filled numbers, in standard deviations of their columns:", "numbers", methods
        ),
        *table("Share of filled categories that are wrong:", "categories", methods),
        "Errors of ours less those of the best other method, in percent of the latter, with the standard error over folds; few "
        "categories are removed, so that single ones decide there:",
        "",
        "| | " + " | ".join(names) + " |",
        "|" + "---|" * (len(names) + 1),
        *(
            f"| {key} | " + " | ".join(_beside_best(r, key) for r in results) + " |"
            for key in ("numbers", "categories")
        ),
        "",
        *table("Share of removed numbers inside their 90 % intervals:", "covered", (OURS,)),
        "Log-density of held-out rows, nats a row, numbers standardised; the kernel estimate, and a Gaussian mixture without "
        "shared components, have one density for each class:",
        "",
        "| | " + " | ".join(names) + " |",
        "|" + "---|" * (len(names) + 1),
        *density,
        "",
    ]
