"""Pictures, with matplotlib (``pip install 'ldfm[plots]'``)."""

from collections.abc import Mapping, Sequence
from math import cos, pi, sin
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldfm.types import Floats, Integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#22303c"
ARC = "#2c7fb8"
ROOTED = "#f2a541"
PLAIN = "#dfe7ee"
LABEL_SIZE = 8  # points
_LETTER = LABEL_SIZE * 0.62 / 72  # inches, of a wide letter
_LINE, _BAR, _NUMBER, _BETWEEN = (
    0.17,
    1.3,
    1.0,
    0.35,
)  # inches: height of a line, widths of a bar, its number and what parts panels
_LINES = 46  # of a panel
_LONGEST = 36  # letters of a label


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


class _Line(NamedTuple):
    """A line of the picture of posteriors: the name of a variable, or a value with its bar."""

    label: str
    share: float | None
    error: float


def plot_marginals(
    values: Mapping[str, Sequence[Any]],
    shares: Mapping[str, Floats],
    errors: Mapping[str, Floats],
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw posteriors of variables as bars with standard errors, in as many panels side by side as they need.

    Parameters
    ----------
    values
        The values of each variable.
    shares, errors
        Probability of each value and its standard error.
    ax
        Axes to draw on; None: new ones of the size it takes.
    """
    panels = _panels(values, shares, errors)
    # places are in inches, as letters are
    widths = [max(max(len(line.label) for line in panel) * _LETTER, 0.6) + _BAR + _NUMBER for panel in panels]
    width, height = sum(widths) + _BETWEEN * (len(panels) - 1), max(map(len, panels)) * _LINE
    if ax is None:
        ax = new_axes((width + 0.3, height + 0.6))
    box, figure = ax.get_position(), ax.figure
    room = box.width * figure.bbox.width / figure.dpi / width, box.height * figure.bbox.height / figure.dpi / height
    left = 0.0
    for panel, wide in zip(panels, widths, strict=True):
        _draw_panel(ax, panel, left + wide - _BAR - _NUMBER, LABEL_SIZE * min(1.0, 1.25 * min(room)))
        left += wide + _BETWEEN
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    ax.set_title("Posteriors of the unknown cells of this row", color=INK, fontsize=10)
    return ax


def _panels(
    values: Mapping[str, Sequence[Any]], shares: Mapping[str, Floats], errors: Mapping[str, Floats]
) -> list[list[_Line]]:
    """Give the lines of panels of about the same length; a variable is never parted."""
    total = sum(1 + len(listed) for listed in values.values())
    length = -(-total // -(-total // _LINES))
    panels: list[list[_Line]] = [[]]
    for name, listed in values.items():
        if len(panels[-1]) + 0.5 * (1 + len(listed)) > length:
            panels.append([])
        panels[-1].append(_Line(_shortened(name), None, 0.0))
        panels[-1] += [
            _Line(_shortened(value), float(share), float(error))
            for value, share, error in zip(listed, shares[name], errors[name], strict=True)
        ]
    return panels


def _draw_panel(ax: "Axes", lines: Sequence[_Line], left: float, size: float) -> None:
    """Draw lines from the top, bars starting at `left`."""
    for place, line in enumerate(lines):
        y = (place + 0.5) * _LINE
        bold = "bold" if line.share is None else "normal"
        ax.text(left - 0.06, y, line.label, ha="right", va="center", fontsize=size, color=INK, weight=bold)
        if line.share is None:
            continue
        ax.barh(y, _BAR, left=left, height=0.7 * _LINE, color=PLAIN)
        ax.barh(y, _BAR * line.share, left=left, height=0.7 * _LINE, color=ARC)
        number = f"{line.share:.3f}"
        if line.error > 0:
            ax.errorbar(left + _BAR * line.share, y, xerr=_BAR * line.error, color=INK, capsize=2, linewidth=1)
            number += f" \u00b1 {line.error:.3f}"
        ax.text(left + _BAR + 0.06, y, number, ha="left", va="center", fontsize=size, color=INK)


def _shortened(label: Any) -> str:
    text = str(label)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\u2026"


_OBJECTIVES = {
    "generation": "log p of generating a row, nats",
    "likelihood": "sum of log p(cell | rest of row), nats",
}


def plot_history(
    steps: Integers, objective: Floats, validation: Floats, kind: str, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw the record of a fit.

    Parameters
    ----------
    steps
        (records,): iterations.
    objective, validation
        (records,): of the rows learned from and of held-out ones, NaN where there are none.
    kind
        "generation" or "likelihood".
    ax
        Axes to draw on; None: new ones.
    """
    if ax is None:
        ax = new_axes((6.0, 3.8))
    from matplotlib.ticker import MaxNLocator

    marker = "o" if len(steps) < 3 else None
    for numbers, label, colour in ((objective, "rows learned from", ARC), (validation, "held-out rows", ROOTED)):
        known = np.isfinite(numbers)
        if known.any():
            ax.plot(steps[known], numbers[known], color=colour, label=label, marker=marker)
    later = np.concatenate([objective[1:], validation[1:]])
    later = later[np.isfinite(later)]
    if len(later) > 2 and steps[0] == 0:  # where the fit started, which may be far below
        ax.set_ylim(bottom=later.min() - 0.08 * (np.ptp(later) or 1.0))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("iteration", color=INK)
    ax.set_ylabel(_OBJECTIVES[kind], color=INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower right", frameon=False, fontsize=LABEL_SIZE, labelcolor=INK)
    return ax
