"""The dependencies of one row, and how they change from one row to another."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ldfm.plots.circle import (
    alpha_of,
    axes_for,
    blend,
    draw_arcs,
    draw_variables,
    finish,
    order_by_strength,
    places_on_circle,
    width_of,
)
from ldfm.plots.style import ARC, INK, OTHER, PLAIN, ROOTED, shortened
from ldfm.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_SAME = "#b7c2cc"  # arcs that do not change
_NAMED = 3  # values by which a context is named at most


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
    labels = [_label(name, value) for name, value in zip(names, values, strict=True)]
    if ax is None:
        ax = axes_for(labels)
    places = places_on_circle(order_by_strength(marginals))
    draw_arcs(ax, places, marginals[1:], threshold, ARC)
    draw_variables(ax, places, [blend(PLAIN, ROOTED, share) for share in marginals[0]], labels, set())
    shown = sorted({threshold, 0.5, 1.0} - {0.0})
    less = {threshold: " (less: not drawn)"}
    handles = [_line(ARC, p, f"probability {p:g}{less.get(p, '')}") for p in shown]
    handles.append(_dot(ROOTED, "root of the forest"))
    title = "Dependencies of this row\narrows: which value brings which along, not causes"
    finish(ax, places, labels, title, handles)
    return ax


def plot_contrast(
    names: Sequence[str],
    values: tuple[Sequence[Any], Sequence[Any]],
    marginals: tuple[Floats, Floats],
    *,
    contexts: tuple[str, str] | None = None,
    ax: "Axes | None" = None,
    threshold: float = 0.1,
) -> "Axes":
    """Draw how dependencies change from one row to another: arcs as thick as their probability differs, the most in full.

    Arcs of one colour are more probable in the first row, those of the other in the second; grey ones are about as probable in
    both. Variables are coloured by where they are more probably a root. Labels of variables whose values differ are bold.

    Parameters
    ----------
    names
        Variables.
    values
        Their values in either row, None where the label is to be the name alone.
    marginals
        (n + 1, n) arc marginals of either row, root first.
    contexts
        What to call the rows; None: by the values that differ.
    ax
        Axes to draw on; None: new ones.
    threshold
        Arcs whose probability differs by less, and grey ones less probable than this in either row, are left out.
    """
    first, second = marginals
    labels = [_label(name, *pair) for name, *pair in zip(names, *values, strict=True)]
    if ax is None:
        ax = axes_for(labels)
    places = places_on_circle(order_by_strength(np.maximum(first, second)))
    change = second - first
    same = np.where(np.abs(change) < threshold, np.minimum(first, second), 0.0)
    draw_arcs(ax, places, same[1:], threshold, _SAME)
    most = max(float(np.abs(change[1:]).max()), 1e-9)  # drawn in full
    for sign, colour in ((-1.0, ARC), (1.0, OTHER)):
        draw_arcs(ax, places, sign * change[1:] / most, threshold / most, colour)
    colours = [blend(PLAIN, OTHER if gain > 0 else ARC, min(1.0, abs(gain))) for gain in change[0]]
    differ = {place for place, pair in enumerate(zip(*values, strict=True)) if pair[0] != pair[1]}
    draw_variables(ax, places, colours, labels, differ)
    here, there = contexts or _contexts(names, values, differ)
    handles = [
        _line(ARC, 1.0, f"this wide: {most:.2f} more probable where {here}"),
        _line(OTHER, 1.0, f"this wide: {most:.2f} more probable where {there}"),
        _line(_SAME, 0.6, "about as probable in both"),
    ]
    title = "How dependencies change\nwidth: difference of probabilities; dots: of being a root"
    finish(ax, places, labels, title, handles)
    return ax


def _label(name: str, value: Any, other: Any = None) -> str:
    if value is None:
        return shortened(name, 28)
    text = (
        shortened(value, 20) if other is None or other == value else f"{shortened(value, 14)} | {shortened(other, 14)}"
    )
    return f"{shortened(name, 28)} = {text}"


def _contexts(names: Sequence[str], values: tuple[Sequence[Any], Sequence[Any]], differ: set[int]) -> tuple[str, str]:
    """Name two rows by values that differ and are known."""

    def one(row: Sequence[Any]) -> str:
        known = [f"{names[place]} = {row[place]}" for place in sorted(differ) if row[place] != "?"]
        more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
        return shortened(", ".join(known[:_NAMED]), 60) + more if known else "less is known"

    return one(values[0]), one(values[1])


def _line(colour: str, strength: float, label: str) -> "Line2D":
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, linewidth=width_of(strength), alpha=alpha_of(strength), label=label)


def _dot(colour: str, label: str) -> "Line2D":
    from matplotlib.lines import Line2D

    return Line2D([], [], marker="o", linestyle="", markersize=9, color=colour, markeredgecolor=INK, label=label)
