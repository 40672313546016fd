"""How probable arcs are on average over rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ldfm.plots.circle import order_by_strength
from ldfm.plots.style import INK, LABEL_SIZE, LETTER, new_axes, shortened
from ldfm.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL = 0.19  # inches
_WITH_NUMBERS = 0.36  # inches, of a cell with its number
_NUMBERED = 14  # variables up to which cells have their numbers


def plot_overview(names: Sequence[str], marginals: Floats, *, ax: "Axes | None" = None) -> "Axes":
    """Draw arc marginals averaged over rows as a heat map: parents down, children across, dependent variables side by side.

    Every column sums to 1: a variable has one parent, which may be the root.

    Parameters
    ----------
    names
        Variables.
    marginals
        (n + 1, n): mean arc marginals, root first.
    ax
        Axes to draw on; None: new ones of the size it takes.
    """
    order = order_by_strength(marginals)
    labels = [shortened(names[variable], 24) for variable in order]
    numbered = len(order) <= _NUMBERED
    if ax is None:
        side = (_WITH_NUMBERS if numbered else _CELL) * (len(order) + 1)
        margin = max(map(len, labels)) * LETTER
        ax = new_axes((max(side + margin + 1.3, 4.5), max(side + margin + 0.8, 3.0)))
    shown = marginals[[0, *(1 + variable for variable in order)]][:, order]
    image = ax.imshow(shown, cmap="Blues", vmin=0.0, vmax=max(float(shown.max()), 1e-9))
    ax.set_xticks(range(len(order)), labels, rotation=90, fontsize=LABEL_SIZE, color=INK)
    ax.set_yticks(range(len(order) + 1), ["(root)", *labels], fontsize=LABEL_SIZE, color=INK)
    ax.set_xlabel("child", color=INK)
    ax.set_ylabel("parent", color=INK)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title("Mean probability of arcs", color=INK, fontsize=10)
    if numbered:
        _write_numbers(ax, shown)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, aspect=25)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=LABEL_SIZE, length=0)
    return ax


def _write_numbers(ax: "Axes", shown: Floats) -> None:
    """Write cells that are not about 0 as hundredths, in white where the cell is dark."""
    for parent, child in np.argwhere(shown >= 0.005).tolist():
        share = shown[parent, child]
        colour = "white" if share > 0.6 * shown.max() else INK
        number = f"{share:.2f}".removeprefix("0")
        ax.text(child, parent, number, ha="center", va="center", fontsize=LABEL_SIZE - 1, color=colour)
