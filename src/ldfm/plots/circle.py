"""Variables on a circle with arcs between them."""

from collections.abc import Sequence
from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING

import numpy as np

from ldfm.plots.style import INK, LABEL_SIZE, LETTER, new_axes, room
from ldfm.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_TITLE_AND_LEGEND = 0.9  # inches, above and below the circle
_GAP = 10  # points between a variable and its label


def axes_for(labels: Sequence[str]) -> "Axes":
    """Make axes on which variables with these labels have room."""
    side = min(14.0, max(5.0 + 0.17 * len(labels), 3.4 + 2 * max(map(len, labels)) * LETTER))
    return new_axes((side, side + _TITLE_AND_LEGEND))


def order_by_strength(marginals: Floats) -> list[int]:
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


def places_on_circle(order: Sequence[int]) -> Floats:
    """Give (n, 2): where each variable is, clockwise from the top."""
    places = np.empty((len(order), 2))
    for position, variable in enumerate(order):
        angle = pi / 2 - 2 * pi * position / len(order)
        places[variable] = cos(angle), sin(angle)
    return places


def draw_arcs(ax: "Axes", places: Floats, strengths: Floats, threshold: float, colour: str) -> None:
    """Draw arcs parent -> child with `strengths` (n, n) from the threshold on, the strongest on top."""
    from matplotlib.patches import FancyArrowPatch

    arcs = np.argwhere((strengths >= threshold) & (strengths > 0))
    for parent, child in arcs[np.argsort(strengths[tuple(arcs.T)], kind="stable")].tolist():
        strength = float(strengths[parent, child])
        ax.add_patch(
            FancyArrowPatch(
                tuple(places[parent]),
                tuple(places[child]),
                connectionstyle=f"arc3,rad={_bend(places[parent], places[child], parent < child):.3f}",
                arrowstyle="-|>",
                mutation_scale=5 + 8 * strength,
                shrinkA=7,
                shrinkB=7,
                linewidth=width_of(strength),
                color=colour,
                alpha=alpha_of(strength),
                zorder=1 + strength,
            )
        )


def width_of(strength: float) -> float:
    """Give the line width of an arc, points."""
    return 0.4 + 3.2 * strength


def alpha_of(strength: float) -> float:
    """Give how opaque an arc is: weak ones fade, so that many of them do not hide a strong one."""
    return 0.15 + 0.85 * strength


def _bend(start: Floats, end: Floats, first: bool) -> float:
    """Give how far an arc bends towards the centre; the two directions between a pair bend differently, to be told apart."""
    (across, up), middle = end - start, (start + end) / 2
    side = 1.0 if up * middle[0] - across * middle[1] <= 0 else -1.0
    inwards = 0.34 - 0.12 * hypot(across, up)
    return side * (inwards if first else 0.4 * inwards)


def draw_variables(ax: "Axes", places: Floats, colours: Sequence[str], labels: Sequence[str], strong: set[int]) -> None:
    """Draw variables as dots, their labels outside along the radius; those in `strong` in bold."""
    for variable, (place, colour, label) in enumerate(zip(places, colours, labels, strict=True)):
        ax.scatter(place[0], place[1], s=110, color=colour, edgecolor=INK, linewidth=0.8, zorder=3)
        angle = np.degrees(np.arctan2(place[1], place[0]))
        left = abs(angle) > 90
        text = ax.annotate(
            label,
            place,
            xytext=tuple(_GAP * place / max(float(np.hypot(*place)), 1e-9)),
            textcoords="offset points",
            rotation=angle + 180 if left else angle,
            rotation_mode="anchor",
            ha="right" if left else "left",
            va="center",
            color=INK,
            fontsize=LABEL_SIZE,
            weight="bold" if variable in strong else "normal",
        )
        text.set_in_layout(False)  # the circle is made to fit them


def blend(plain: str, full: str, share: float) -> str:
    """Give the colour so far on the way from one to the other."""
    from matplotlib.colors import to_hex, to_rgb

    mixed = (1 - share) * np.array(to_rgb(plain)) + share * np.array(to_rgb(full))
    return str(to_hex(tuple(np.clip(mixed, 0, 1))))


def finish(ax: "Axes", places: Floats, labels: Sequence[str], title: str, handles: "Sequence[Line2D]") -> None:
    """Put the title above and the legend below; make the circle as large as labels leave room for."""
    ax.axis("off")
    ax.set_title(title, color=INK, fontsize=10)
    # side by side where they have room
    longest = max(len(str(handle.get_label())) for handle in handles) * LETTER + 0.5
    columns = max(1, min(len(handles), int(room(ax)[0] / longest)))
    ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=columns,
        frameon=False,
        fontsize=LABEL_SIZE,
        labelcolor=INK,
    )
    ax.figure.figure.draw_without_rendering()  # only then is it known how much room is left
    half = np.array(room(ax)) / 2
    with np.errstate(divide="ignore"):
        radius = float(((half - LABEL_SIZE / 144) / np.abs(places) - _lengths(labels)[:, None]).min())
    limits = half / max(radius, 0.3 * float(half.min()))
    ax.set(xlim=(-limits[0], limits[0]), ylim=(-limits[1], limits[1]))


def _lengths(labels: Sequence[str]) -> Floats:
    """Give how far labels reach beyond the circle, inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    bold = FontProperties(weight="bold")
    widths = [TextPath((0, 0), label, size=LABEL_SIZE, prop=bold).get_extents().width for label in labels]
    return (np.array(widths) + _GAP + 2) / 72
