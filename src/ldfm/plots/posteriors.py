"""Posteriors of the unknown cells of a row, as bars."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ldfm.plots.style import ARC, INK, LABEL_SIZE, LETTER, PLAIN, new_axes, room, shortened
from ldfm.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# inches: height of a line, widths of a bar, its number and what parts panels
_LINE, _BAR, _NUMBER, _BETWEEN = 0.17, 1.3, 1.0, 0.35
_LINES = 46  # of a panel


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
    widths = [max(max(len(line.label) for line in panel) * LETTER, 0.6) + _BAR + _NUMBER for panel in panels]
    width, height = sum(widths) + _BETWEEN * (len(panels) - 1), max(map(len, panels)) * _LINE
    if ax is None:
        ax = new_axes((width + 0.3, height + 0.6))
    wide_room, high_room = room(ax)
    size = LABEL_SIZE * min(1.0, 1.25 * min(wide_room / width, high_room / height))
    left = 0.0
    for panel, wide in zip(panels, widths, strict=True):
        _draw_panel(ax, panel, left + wide - _BAR - _NUMBER, size)
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
        panels[-1].append(_Line(shortened(name), None, 0.0))
        panels[-1] += [
            _Line(shortened(value), float(share), float(error))
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
            number += f" \u00b1 {line.error:.3f}" if line.error >= 0.0005 else " \u00b1 <0.001"
        ax.text(left + _BAR + 0.06, y, number, ha="left", va="center", fontsize=size, color=INK)
