"""Tables of the paper's protocol, rendered from stored records alone: Markdown for people, CSV for everything else."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from ldfm.bench.models import MODELS
from ldfm.bench.protocol import SPLITS, Split
from ldfm.bench.results import read
from ldfm.networks import load, names

PRINTED = {
    "g-LDFM": "g-ldfm",
    "LDFM": "g-ldfm",
    "t-LDFM": "t-ldfm-printed",
    "LDFM-S": "ldfm-s",
    "BN": "bn-gibbs",
    "DN": "dn",
    "SPN": "spn",
    "MT": "mt",
}  # which of our models stands for which of the paper
CAVEATS = """\
The rows come from Bayesian networks, so that a learned one with exact answers is hard to beat; the paper's BN rows, answered by
Gibbs sampling, show the error of those answers and not of the model. Peers are our own, learned and asked with more effort than
the paper's. Numbers are of other rows drawn from the same networks than the paper's: they agree with it within noise at best. The
printed tree sampler is biased; a number above the true network's is noise or bias, not skill."""


class Key(NamedTuple):
    """Where a number stands; rows 0 for the true network."""

    rows: int
    split: Split
    model: str
    network: str


Records = dict[Key, dict[str, Any]]
Published = dict[Key, float]


def read_records(folder: Path) -> Records:
    """Read all cells stored in a folder."""
    found: Records = {}
    for path in sorted(folder.rglob("*.json")):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue  # kept fits
        record = read(path)
        cell = record["cell"]
        found[Key(cell["rows"], Split(*cell["split"]), cell["model"], cell["network"])] = record
    return found


def read_published() -> Published:
    """Read the paper's numbers, which are divided by n Q%."""
    found: Published = {}
    for row in _rows_of("published.csv"):
        split = Split(int(row["query_percent"]), int(row["evidence_percent"]))
        key = Key(int(row["train_rows"]), split, PRINTED[row["model"]], row["network"])
        found.setdefault(key, float(row["value"]))
    return found


def _libra_scores() -> dict[tuple[int, str, str], float]:
    return {
        (int(row["train_rows"]), row["model"], row["network"]): float(row["score"]) for row in _rows_of("libra.csv")
    }


def read_libra_oracles() -> dict[str, float]:
    """Read the scores of the true networks on the rows that the Libra toolkit had."""
    return {network: score for (_, model, network), score in _libra_scores().items() if model == "oracle"}


def read_libra() -> Published:
    """Read the numbers of the Libra toolkit as gaps to the true network on its rows."""
    scores = _libra_scores()
    return {
        Key(rows, SPLITS[0], model, network): scores[0, "oracle", network] - score
        for (rows, model, network), score in scores.items()
        if rows
    }


def _rows_of(name: str) -> list[dict[str, str]]:
    text = (files("ldfm.bench") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def networks_of(records: Iterable[Key]) -> list[str]:
    """Give the networks that have records, small ones first."""
    there = {key.network for key in records}
    return sorted((name for name in names() if name in there), key=lambda name: (len(load(name).variables), name))


def models_of(records: Iterable[Key]) -> list[str]:
    """Give the models that have records, in the order of tables."""
    there = {key.model for key in records}
    return [name for name in MODELS if name in there]


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Give the lines of a table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def shown(part: dict[str, Any] | None, digits: int = 3) -> str:
    """Give a mean and its standard error as text; nothing where there is no record."""
    if part is None:
        return ""
    if part["mean"] is None:
        return "-inf"
    error = part["standard_error"]
    return f"{part['mean']:.{digits}f}" + ("" if error is None else f" ±{error:.{digits}f}")


def _record(records: Records, key: Key) -> dict[str, Any] | None:
    return records.get(key._replace(rows=0) if key.model == "oracle" else key)


def score_table(records: Records, rows: int, split: Split, part: str = "score") -> list[str]:
    """Give scores of all models on all networks for one training size and split; `part` says which normalisation."""
    networks, models = networks_of(records), models_of(records)
    body = []
    for model in models:
        found = [_record(records, Key(rows, split, model, network)) for network in networks]
        body.append([MODELS[model].title, *(shown(r and r["result"][part]) for r in found)])
    return markdown(["", *networks], body)


def paper_table(records: Records, published: Published, rows: int, split: Split) -> list[str]:
    """Give our scores, divided by n Q%, with the paper's behind them."""
    networks, models = networks_of(records), [name for name in models_of(records) if name in PRINTED.values()]
    body = []
    for model in models:
        cells = []
        for network in networks:
            key = Key(rows, split, model, network)
            record, printed = records.get(key), published.get(key)
            ours = shown(record["result"]["score_by_share"]).split(" ")[0] if record else "-"
            cells.append(ours + ("" if printed is None else f" ({printed:.3f})"))
        body.append([MODELS[model].title, *cells])
    return markdown(["ours (paper)", *networks], body)


def mean_gap(records: Records, rows: int, model: str, network: str) -> dict[str, Any] | None:
    """Give the gap to the true network averaged over the splits that all models here have records of, with its standard error."""
    splits: dict[str, set[Split]] = {}
    for key in records:
        if (key.rows, key.network) == (rows, network):
            splits.setdefault(key.model, set()).add(key.split)
    if model not in splits:
        return None
    gaps = [records[Key(rows, split, model, network)]["gap"] for split in sorted(set.intersection(*splits.values()))]
    if not gaps or any(gap["mean"] is None for gap in gaps):
        return {"mean": None, "standard_error": None} if gaps else None
    # splits ask about the same test rows: their errors are taken as fully correlated, which is never too small
    errors = [gap["standard_error"] or 0.0 for gap in gaps]
    return {"mean": sum(gap["mean"] for gap in gaps) / len(gaps), "standard_error": sum(errors) / len(errors)}


def gap_table(records: Records, rows: int, split: Split | None) -> list[str]:
    """Give gaps to the true network; split None: averaged over the splits that all models of a column have records of."""
    networks = networks_of(records)
    body = []
    for model in models_of(key for key in records if key.rows == rows):
        if split is None:
            gaps = [mean_gap(records, rows, model, network) for network in networks]
        else:
            found = [records.get(Key(rows, split, model, network)) for network in networks]
            gaps = [record and record["gap"] for record in found]
        body.append([MODELS[model].title, *(shown(gap, digits=4).replace("-inf", "inf") for gap in gaps)])
    return markdown(["nats below the true network", *networks], body)


def combinations(records: Records) -> Iterator[tuple[int, Split]]:
    """Yield training sizes, large first, and splits that have records."""
    for rows in sorted({key.rows for key in records} - {0}, reverse=True):
        for split in sorted({key.split for key in records if key.rows == rows}, reverse=True):
            yield rows, split


def origin_of(records: Iterable[dict[str, Any]]) -> str:
    """Say in a line which versions and machines made records, and when."""
    origins = [record["provenance"] for record in records]
    if not origins:
        return "Nothing is stored."
    commits = sorted({str(origin["commit"]) for origin in origins})
    machines = sorted({f"{o['machine']['processor']}, {o['machine']['cores']} cores" for o in origins})
    times = sorted(origin["time"][:10] for origin in origins)
    when = times[0] if times[0] == times[-1] else f"{times[0]} to {times[-1]}"
    return f"{len(origins)} records; commits {', '.join(commits)}; {'; '.join(machines)}; {when}."


def paper_page(records: Records) -> str:
    """Give all tables of the protocol as one page."""
    published, lines = read_published(), ["# The paper's protocol", "", CAVEATS, ""]
    for rows, split in combinations(records):
        counts = sorted({r["queries"] for k, r in records.items() if (k.rows, k.split) == (rows, split)})
        asked = " or ".join(map(str, counts))
        lines += [
            f"## {rows} training rows, {split.query} % query, {split.evidence} % evidence ({asked} queries)",
            "",
            "Larger of mean CLL and mean CMLL, nats a query variable, with the standard error over queries:",
            "",
            *score_table(records, rows, split),
            "",
            "Gap to the true network on the same queries, nats a query variable:",
            "",
            *gap_table(records, rows, split),
            "",
            "Divided by n Q%, as the printed numbers are:",
            "",
            *paper_table(records, published, rows, split),
            "",
        ]
    return "\n".join([*lines, origin_of(records.values()), ""])


COLUMNS = (
    *("network", "rows", "query_percent", "evidence_percent", "model", "queries"),
    *("score", "standard_error", "of", "cll", "cmll", "score_by_share", "gap", "gap_standard_error"),
    *("sampling_error", "met", "fit_seconds", "seconds_a_query", "published", "test_hash"),
)


def paper_csv(records: Records) -> str:
    """Give one line a record."""
    published, text = read_published(), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for key in sorted(records):
        record = records[key]
        result, gap = record["result"], record.get("gap") or {"mean": 0.0, "standard_error": 0.0}
        writer.writerow(
            [key.network, key.rows, *key.split, key.model, record["queries"]]
            + [result["score"][name] for name in ("mean", "standard_error", "of")]
            + [result[name]["mean"] for name in ("cll", "cmll", "score_by_share")]
            + [gap["mean"], gap["standard_error"]]
            + [result["sampling"]["standard_error_of_mean"], result["sampling"]["met"]]
            + [
                record["fit"]["seconds"],
                record["answer"]["seconds_a_query"],
                published.get(key),
                record["hashes"]["test"],
            ]
        )
    return text.getvalue()
