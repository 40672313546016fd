"""Pictures, with matplotlib (``pip install 'ldfm[plots]'``)."""

from collections.abc import Sequence
from math import cos, pi, sin
from typing import TYPE_CHECKING, Any

import numpy as np

from ldfm.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#22303c"
ARC = "#2c7fb8"
ROOTED = "#f2a541"
PLAIN = "#dfe7ee"
LABEL_SIZE = 8  # points


def new_axes(size: tuple[float, float]) -> "Axes":
    """Make axes on a new figure of this size in inches."""
    # a Figure made without pyplot needs no screen and is freed with its last reference
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib; try: pip install 'ldfm[plots]'") from error
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def plot_forest(
    names: Sequence[str],
    values: Sequence[Any],
    marginals: Floats,
    *,
    ax: "Axes | None" = None,
    threshold: float = 0.05,
) -> "Axes":
    """Draw the dependencies of one row: variables on a circle, arcs as thick as they are probable.

    A variable is the fuller in colour the more probably it is a root of the forest.

    Parameters
    ----------
    names, values
        Variables and their values in this row.
    marginals
        (n + 1, n): arc marginals of the row, root first.
    ax
        Axes to draw on; None: new ones.
    threshold
        Arcs less probable than this are left out.
    """
    n = len(names)
    labels = [f"{name} = {value}" for name, value in zip(names, values, strict=True)]
    if ax is None:
        side = min(14.0, 5.0 + 0.17 * n)
        ax = new_axes((side, side))
    places = np.empty((n, 2))
    for position, variable in enumerate(_around_the_circle(marginals)):
        angle = pi / 2 - 2 * pi * position / n
        places[variable] = cos(angle), sin(angle)
    _draw_arcs(ax, places, marginals, threshold)
    _draw_variables(ax, places, marginals[0], labels)
    # the circle is as large as the longest label leaves room for
    box, figure = ax.get_position(), ax.figure
    half = min(box.width * figure.bbox.width, box.height * figure.bbox.height) / figure.dpi / 2
    needed = 0.2 + max(map(len, labels)) * LABEL_SIZE * 0.62 / 72
    limit = half / max(half - needed, 0.3 * half)
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    ax.axis("off")
    ax.set_title("Dependencies of this row\narrows: which value brings which along, not causes", color=INK, fontsize=10)
    _explain(ax, threshold)
    return ax


def _explain(ax: "Axes", threshold: float) -> None:
    """Say what widths and colours mean."""
    from matplotlib.lines import Line2D

    shown = [threshold, 0.5, 1.0]
    arcs = [
        Line2D([], [], color=ARC, linewidth=0.4 + 3.0 * p, alpha=0.25 + 0.75 * p, label=f"probability {p:g}")
        for p in shown
    ]
    root = Line2D(
        [], [], marker="o", linestyle="", markersize=9, color=ROOTED, markeredgecolor=INK, label="root of the forest"
    )
    ax.legend(handles=[*arcs, root], loc="lower left", frameon=False, fontsize=LABEL_SIZE, labelcolor=INK)


def _around_the_circle(marginals: Floats) -> list[int]:
    """Order variables so that strongly dependent ones are neighbours: greedily, next to the strongest of those placed."""
    strength = marginals[1:] + marginals[1:].T
    order = [int(np.argmax(marginals[0]))] if len(strength) else []
    left = set(range(len(strength))) - set(order)
    while left:
        candidates = sorted(left)
        nearest = candidates[int(np.argmax(strength[order[-1], candidates]))]
        if strength[order[-1], nearest] < 0.05:
            nearest = candidates[int(np.argmax(strength[np.ix_(order, candidates)].max(axis=0)))]
        order.append(nearest)
        left.remove(nearest)
    return order


def _draw_arcs(ax: "Axes", places: Floats, marginals: Floats, threshold: float) -> None:
    from matplotlib.patches import FancyArrowPatch

    for parent, child in np.argwhere(marginals[1:] >= threshold):
        probability = float(marginals[1 + parent, child])
        ax.add_patch(
            FancyArrowPatch(
                tuple(places[parent]),
                tuple(places[child]),
                connectionstyle="arc3,rad=0.16",
                arrowstyle="-|>",
                mutation_scale=7 + 6 * probability,
                shrinkA=8,
                shrinkB=8,
                linewidth=0.4 + 3.0 * probability,
                color=ARC,
                alpha=0.25 + 0.75 * probability,
                zorder=1,
            )
        )


def _draw_variables(ax: "Axes", places: Floats, root: Floats, labels: Sequence[str]) -> None:
    from matplotlib.colors import to_rgb

    plain, rooted = np.array(to_rgb(PLAIN)), np.array(to_rgb(ROOTED))
    for place, probability, label in zip(places, root, labels, strict=True):
        colour = tuple((1 - probability) * plain + probability * rooted)
        ax.scatter(place[0], place[1], s=130, color=colour, edgecolor=INK, linewidth=0.8, zorder=2)
        angle = np.degrees(np.arctan2(place[1], place[0]))
        left = abs(angle) > 90
        ax.annotate(
            label,
            place,
            xytext=tuple(10 * place / max(float(np.hypot(*place)), 1e-9)),
            textcoords="offset points",
            rotation=angle + 180 if left else angle,
            rotation_mode="anchor",
            ha="right" if left else "left",
            va="center",
            color=INK,
            fontsize=LABEL_SIZE,
        )
