"""Whether predicted probabilities come true."""

from typing import TYPE_CHECKING

from ldfm.plots.style import ARC, INK, PLAIN, new_axes
from ldfm.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_calibration(predicted: Floats, observed: Floats, errors: Floats, *, ax: "Axes | None" = None) -> "Axes":
    """Draw how often predictions came true, with standard errors; on the diagonal they are right.

    Parameters
    ----------
    predicted, observed, errors
        (bins,): mean prediction, share of them that came true, and its standard error.
    ax
        Axes to draw on; None: new ones.
    """
    if ax is None:
        ax = new_axes((4.6, 4.4))
    ax.plot([0, 1], [0, 1], color=PLAIN, linewidth=2, zorder=0)
    ax.errorbar(predicted, observed, yerr=2 * errors, color=ARC, ecolor=INK, marker="o", linewidth=1, capsize=2)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set_xlabel("predicted probability", color=INK)
    ax.set_ylabel("came true (bars: two standard errors)", color=INK)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
