"""What is stored, in a few lines: for the first page that people see."""

from pathlib import Path
from typing import Any

from ldfm.bench.density import model_of
from ldfm.bench.models import MODELS
from ldfm.bench.results import read
from ldfm.bench.tables import Records, markdown, mean_gap, models_of, networks_of, read_records

OURS = "ldfm"
_VARIABLES = 37  # kernels are shown at this size, if it was timed


def headline(results: Path) -> list[str]:
    """Give Markdown on everything stored under `results`, and on what is not."""
    records = read_records(results / "paper") if (results / "paper").is_dir() else {}
    return [*_paper(records), "", *_density(results), *_samplers(results), *_kernels(results)]


def _paper(records: Records) -> list[str]:
    if not records:
        return ["The comparison with other models by the paper's protocol has not been stored yet, so none is shown."]
    sizes = sorted({key.rows for key in records} - {0}, reverse=True)
    networks = [name for name in networks_of(records) if all(mean_gap(records, rows, OURS, name) for rows in sizes)]
    if not networks:
        return ["The comparison with other models by the paper's protocol has no rows of ours yet, so none is shown."]
    body = []
    for model in models_of(key for key in records if key.rows):
        gaps = [_mean(records, rows, model, networks) for rows in sizes]
        if any(gaps):
            body.append([MODELS[model].title, *gaps])
    lines = markdown(["", *(f"{rows} rows" for rows in sizes)], body)
    what = f"Nats a query variable below the true network, the mean over {', '.join(networks)}; less is better:"
    return [what, "", *lines]


def _mean(records: Records, rows: int, model: str, networks: list[str]) -> str:
    """Give the mean over networks, nothing where one has no record."""
    gaps = [mean_gap(records, rows, model, network) for network in networks]
    if any(gap is None for gap in gaps):
        return ""
    means = [gap["mean"] for gap in gaps if gap is not None]
    return "inf" if None in means else f"{sum(means) / len(means):.4f}"


def _stored(folder: Path) -> list[dict[str, Any]]:
    return [read(path) for path in sorted(folder.glob("*.json"))]


def _density(results: Path) -> list[str]:
    stored = _stored(results / "density")
    lines = []
    for result in stored:
        if model_of(result) == "ldfm":
            others = [other for other in stored if other["data"] == result["data"] and other is not result]
            shown = [f"{model_of(other)} {other['test']['log_likelihood']:.3f}" for other in others]
            lines.append(
                f"- Test log-likelihood of {result['data']}, {result['variables']} variables: "
                f"{result['test']['log_likelihood']:.3f} ±{result['test']['standard_error']:.3f} nats a row"
                + (f"; {', '.join(shown)}." if shown else ".")
            )
    return lines


def _samplers(results: Path) -> list[str]:
    found = _stored(results / "samplers")
    if not found:
        return []
    seconds = f"{max(found[0]['settings']['seconds']):g}"

    def worst(kernel: str) -> str:
        return f"{max(result['marginals'][kernel][seconds]['error'] for result in found if kernel in result['marginals']):.4f}"

    names = ", ".join(sorted({result["network"] for result in found}))
    return [
        f"- Error of posteriors after {seconds} s a query (total variation, the worst of {len(found)} models of {names}): "
        f"{worst('gibbs')}; naive Gibbs sampling {worst('naive')}."
    ]


def _kernels(results: Path) -> list[str]:
    if not (results / "kernels.json").exists():
        return []
    sizes = read(results / "kernels.json")["sizes"]
    size = min(sizes, key=lambda size: abs(size["n"] - _VARIABLES))
    times = {name: min(seconds) / size["graphs"] * 1e6 for name, seconds in size["seconds"].items()}
    others = ", ".join(f"{name} {time:.0f}" for name, time in times.items() if name != "ldfm")
    return [
        f"- Log forest sum and all arc marginals of {size['n']} variables: {times['ldfm']:.0f} microseconds on one core; {others}."
    ]
