"""How a fit went."""

from typing import TYPE_CHECKING

import numpy as np

from ldfm.plots.style import ARC, INK, LABEL_SIZE, ROOTED, new_axes
from ldfm.types import Floats, Integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
