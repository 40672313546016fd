"""What the tables of the paper's protocol say, in sentences made of the records: what reproduces, what does not, who is ahead."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import hypot
from pathlib import Path
from typing import Any

from ldfm.bench.models import MODELS
from ldfm.bench.protocol import SPLITS
from ldfm.bench.tables import (
    PRINTED,
    Key,
    Published,
    Records,
    markdown,
    models_of,
    networks_of,
    read_libra,
    read_libra_oracles,
    read_published,
    read_records,
)

OURS, PAPERS = "ldfm", "g-ldfm"
NEAR = 0.02  # of a printed number: other rows of the same networks differ by as much
SURE = 2.0  # standard errors of a difference
ENOUGH = 0.005  # twice the effort must move scores by less
_SPLIT, _MAIN_ROWS = SPLITS[0], (5000, 500)


def lines_of(records: Records, effort: Records) -> list[str]:
    """Give a list and tables in Markdown; `effort` are records of the same cells, asked with twice the effort."""
    published = read_published()
    sizes = sorted({key.rows for key in records} - {0}, reverse=True)
    lines, tables = [], []
    for rows in sizes:
        if any(key.rows == rows and key.model == PAPERS for key in records):
            lines += [_against_printed(records, published, rows), *_one_by_one(records, published, rows)]
        if any(key.rows == rows and key.model == OURS for key in records):
            lines.append(_against_best(records, published, rows))
            tables += _against_peers(records, rows)
    return [
        *lines,
        *_effort(records, effort),
        *_against_libra(records),
        *_other_rows(records),
        *_cost(records),
        "",
        *tables,
    ]


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts) or "none"


def _where(rows: int) -> str:
    return f"{rows} rows, {_SPLIT.query}/{_SPLIT.evidence}"


def _by_share(records: Records, key: Key) -> float | None:
    found = records.get(key)
    value: float | None = None if found is None else found["result"]["score_by_share"]["mean"]
    return value


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Give texts by their group."""
    found: dict[str, list[str]] = defaultdict(list)
    for group, text in pairs:
        found[group].append(text)
    return found


def _against_printed(records: Records, published: Published, rows: int) -> str:
    """Say how far the paper's own model is from what the paper says of it."""

    def compared() -> Iterator[tuple[str, str]]:
        for network in networks_of(records):
            key = Key(rows, _SPLIT, PAPERS, network)
            ours = _by_share(records, key)
            if ours is not None and key in published:
                off = ours - published[key]
                yield "near" if abs(off) <= NEAR else "higher" if off > 0 else "lower", f"{network} ({off:+.3f})"

    found = _grouped(compared())
    return (
        f"- {_where(rows)}, {MODELS[PAPERS].title}, divided as the paper does: within {NEAR} of the printed number on "
        f"{len(found['near'])} of {sum(map(len, found.values()))} networks: {_listed(found['near'])}. "
        f"Higher: {_listed(found['higher'])}. Lower: {_listed(found['lower'])}."
    )


def _one_by_one(records: Records, published: Published, rows: int) -> list[str]:
    """Say, where ours is higher than printed, how its answers to query cells one by one compare.

    The paper counts draws that show a whole query, of which large queries have none: what is printed is then the other score.
    """
    found = []
    for network in networks_of(records):
        key = Key(rows, _SPLIT, PAPERS, network)
        ours = _by_share(records, key)
        if ours is not None and key in published and ours - published[key] > NEAR:
            result = records[key]["result"]
            cells = result["cmll"]["mean"] * ours / result["score"]["mean"]
            found.append(f"{network} ({cells - published[key]:+.3f})")
    what = f"- {_where(rows)}, where {MODELS[PAPERS].title} is higher than printed, its score of query cells one by one (CMLL)"
    return [f"{what} is this far from the printed number: {_listed(found)}."] if found else []


def _against_best(records: Records, published: Published, rows: int) -> str:
    """Say on how many networks ours is above all that the paper printed."""

    def compared() -> Iterator[tuple[str, str]]:
        for network in networks_of(records):
            ours = _by_share(records, Key(rows, _SPLIT, OURS, network))
            keys = (Key(rows, _SPLIT, model, network) for model in set(PRINTED.values()))
            printed = [published[key] for key in keys if key in published]
            if ours is not None and printed:
                off = ours - max(printed)
                yield "above" if off > 0 else "not", f"{network} ({off:+.3f})"

    found = _grouped(compared())
    return (
        f"- {_where(rows)}, {MODELS[OURS].title}: above the best number that the paper prints of any model on "
        f"{len(found['above'])} of {sum(map(len, found.values()))} networks: {_listed(found['above'])}. "
        f"Not above: {_listed(found['not'])}."
    )


def _against_peers(records: Records, rows: int) -> list[str]:
    """Give a table of where each other model is closer to the true network than ours, and where farther."""
    networks, body = networks_of(records), []
    for model in models_of(key for key in records if key.rows == rows and key.model != OURS):
        cells = [_beside(*(records.get(Key(rows, _SPLIT, name, n)) for name in (model, OURS))) for n in networks]
        if any(cells):
            body.append([MODELS[model].title, *cells])
    what = (
        f"{_where(rows)}: closer to the true network than {MODELS[OURS].title} by more than two standard errors, or farther "
        "(-: no difference to tell; nothing: not both stored)"
    )
    return [what, "", *markdown(["", *networks], body), ""] if body else []


def _beside(theirs: dict[str, Any] | None, ours: dict[str, Any] | None) -> str:
    if theirs is None or ours is None or ours["gap"]["mean"] is None:
        return ""
    if theirs["gap"]["mean"] is None:  # a query of probability zero
        return "farther"
    # both are of the same questions, so that this error is rather too large
    error = hypot(*(record["gap"]["standard_error"] or 0.0 for record in (theirs, ours)))
    off = theirs["gap"]["mean"] - ours["gap"]["mean"]
    return "-" if abs(off) <= SURE * error else "farther" if off > 0 else "closer"


def _against_libra(records: Records) -> list[str]:
    """Say for each peer whether it is as close to the true network as that of the Libra toolkit is on its rows."""
    libra, found = read_libra(), defaultdict(list)
    for rows, model in dict.fromkeys((key.rows, key.model) for key in libra):
        both = [key for key in libra if (key.rows, key.model) == (rows, model) and key in records]
        gaps = {key.network: (records[key]["gap"]["mean"], libra[key]) for key in both}
        farther = [name for name, (ours, theirs) in gaps.items() if ours is None or ours > theirs + NEAR]
        if gaps:
            exceptions = f" (not {_listed(farther)})" if farther else ""
            found[rows].append(f"{MODELS[model].title} {len(gaps) - len(farther)} of {len(gaps)}{exceptions}")
    return [
        f"- {_where(rows)}, networks on which a peer is at most {NEAR} farther below the true network than that of the Libra "
        f"toolkit is on its own rows: {'; '.join(parts)}."
        for rows, parts in found.items()
    ]


def _other_rows(records: Records) -> list[str]:
    """Say how far apart scores are on other rows of the same networks, by those of the true networks."""
    others, found = read_libra_oracles(), []
    for network in networks_of(records):
        key = Key(0, _SPLIT, "oracle", network)
        if key in records and network in others:
            found.append(f"{network} ({records[key]['result']['score']['mean'] - others[network]:+.3f})")
    what = f"{_SPLIT.query}/{_SPLIT.evidence}, scores of the true networks on our test rows less those on the Libra toolkit's"
    return [f"- {what}, which is how much other rows alone can do: {_listed(found)}."] if found else []


def _effort(records: Records, effort: Records) -> list[str]:
    """Say how much scores of models that sample move with more effort, on the same questions."""
    moved: dict[str, list[str]] = {}
    for key, more in sorted(effort.items()):
        less = records.get(key)
        if key.model == "oracle" or less is None or less["queries"] != more["queries"]:
            continue
        before, after = less["result"]["score"]["mean"], more["result"]["score"]["mean"]
        if before is not None and after is not None:
            mark = "" if abs(after - before) < ENOUGH else ", too much"
            text = f"{key.network} {key.rows} rows {after - before:+.4f}{mark}"
            moved.setdefault(MODELS[key.model].title, []).append(text)
    return [f"- Twice the effort moves scores of {model} by: {', '.join(texts)}." for model, texts in moved.items()]


def _cost(records: Records) -> list[str]:
    """Say how long the main tables took: answers, and each fit once; models that differ in their answers alone share it."""
    main = {key: r for key, r in records.items() if key.rows in (0, *_MAIN_ROWS) and key.split in SPLITS[:2]}
    answers = sum(_processor_seconds(record["answer"]) for record in main.values())
    fits: dict[tuple[str, int, str], float] = {}
    for key, record in main.items():
        which = key.network, key.rows, MODELS[key.model].fit
        fits[which] = max(fits.get(which, 0.0), _processor_seconds(record["fit"]))
    hours = (answers + sum(fits.values())) / 3600
    what = " and ".join(f"{rows}" for rows in _MAIN_ROWS)
    splits = " and ".join(f"{split.query}/{split.evidence}" for split in SPLITS[:2])
    cells = f"{len(main)} cells of {what} rows, {splits}, those of the true networks among them"
    return [f"- {cells}, took {hours:.1f} hours of one processor core."] if main else []


def _processor_seconds(part: dict[str, Any]) -> float:
    return float(part.get("cpu_seconds") or part.get("seconds") or 0.0)


def read_effort(folder: Path) -> Records:
    """Read the records of cells asked with more effort; none where there is no such folder."""
    return read_records(folder) if folder.is_dir() else {}
