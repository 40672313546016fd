"""Plots of stored results."""

from pathlib import Path
from typing import Any

import numpy as np

from ldfm.bench.models import MODELS
from ldfm.bench.samplers import CHAINS, KERNELS
from ldfm.bench.tables import Records, mean_gap, models_of, networks_of, read_published
from ldfm.plots import INK, new_axes

# fixed, so that a model looks the same in every plot, whatever else is in it; ours are drawn filled
_STYLES = {
    "bn-exact": ("#1b6ca8", "s"),
    "bn-gibbs": ("#7fb3d5", "s"),
    "dn": ("#8e6bbf", "D"),
    "mt": ("#5d8a66", "^"),
    "spn": ("#a3b18a", "v"),
    "moat": ("#3d5a40", "P"),
    "g-ldfm": ("#f2a541", "o"),
    "t-ldfm-printed": ("#999999", "x"),
    "t-ldfm": ("#f6cd8b", "o"),
    "ldfm-s": ("#e07a2f", "o"),
    "ldfm": ("#c1272d", "*"),
}
_LEAST = 1e-4  # gaps below this, or negative by noise, are drawn here


def plot_gaps(records: Records, rows: int, path: Path) -> None:
    """Draw the gap to the true network by network and model, averaged over splits."""
    networks = networks_of(records)
    ax: Any = new_axes((max(6.0, 0.9 * len(networks) + 1.0), 5.2))  # wider, its letters are too small to read on a page
    models = models_of(key for key in records if key.rows == rows)
    for place, model in enumerate(models):
        found = [mean_gap(records, rows, model, network) for network in networks]
        shift = (place - (len(models) - 1) / 2) * 0.7 / max(len(models), 1)
        points = [
            (x + shift, max(gap["mean"], _LEAST)) for x, gap in enumerate(found) if gap and gap["mean"] is not None
        ]
        colour, marker = _STYLES[model]
        size = 110 if model == "ldfm" else 42
        ax.scatter(*np.array(points).reshape(-1, 2).T, c=colour, marker=marker, s=size, label=MODELS[model].title)
    ax.set(
        yscale="log",
        ylabel="nats a query variable below the true network",
        title=f"{rows} training rows, mean over shared splits",
    )
    ax.set_xticks(range(len(networks)), networks)
    ax.grid(axis="y", alpha=0.3)
    ax.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncol=4)
    ax.figure.savefig(path, dpi=150)


def plot_against_paper(records: Records, path: Path) -> None:
    """Draw our scores against the printed ones, both divided by n Q%."""
    published = read_published()
    ax: Any = new_axes((6.5, 6.0))
    lowest = -0.1
    for model in models_of(published):
        pairs = [
            (value, records[key]["result"]["score_by_share"]["mean"])
            for key, value in published.items()
            if key.model == model and key in records
        ]
        known = np.array([pair for pair in pairs if pair[1] is not None]).reshape(-1, 2)
        if len(known):
            colour, marker = _STYLES[model]
            ax.scatter(*known.T, c=colour, marker=marker, s=30, label=MODELS[model].title)
            lowest = min(lowest, float(known.min()))
    ax.plot([lowest, 0], [lowest, 0], color=INK, linewidth=0.8)
    ax.set(
        xlabel="the paper", ylabel="ours", title="Larger of CLL and CMLL, divided by n Q% (above the line: ours better)"
    )
    ax.grid(alpha=0.3)
    ax.legend(frameon=False, fontsize=8)
    ax.figure.savefig(path, dpi=150)


def plot_samplers(results: list[dict[str, Any]], path: Path) -> None:
    """Draw the error of marginals after the longest time, by kernel, network and weights."""
    ax: Any = new_axes((1.0 * len(results) + 3.5, 4.2))
    seconds = max(results[0]["settings"]["seconds"])
    for kernel, colour in zip(KERNELS, ("#c1272d", "#1b6ca8", "#f2a541", "#999999"), strict=True):
        points = [
            (x, result["marginals"][kernel][f"{seconds:g}"]["error"])
            for x, result in enumerate(results)
            if kernel in result["marginals"]
        ]
        ax.scatter(*np.array(points, dtype=np.float64).reshape(-1, 2).T, c=colour, s=60, label=kernel)
    ax.set(
        yscale="log",
        ylabel="error of marginals (total variation)",
        title=f"After {seconds:g} s a query, one thread, {CHAINS} chains",
    )
    ax.set_xticks(range(len(results)), [f"{r['network']}\n{r['weights']}" for r in results], fontsize=8)
    ax.grid(axis="y", alpha=0.3)
    ax.legend(frameon=False)
    ax.figure.savefig(path, dpi=150)
