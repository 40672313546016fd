"""Pictures, with matplotlib (``pip install 'ldfm[plots]'``)."""

from ldfm.plots.calibration import plot_calibration
from ldfm.plots.forest import plot_contrast, plot_forest
from ldfm.plots.history import plot_history
from ldfm.plots.overview import plot_overview
from ldfm.plots.posteriors import plot_marginals
from ldfm.plots.style import INK, new_axes

__all__ = [
    "INK",
    "new_axes",
    "plot_calibration",
    "plot_contrast",
    "plot_forest",
    "plot_history",
    "plot_marginals",
    "plot_overview",
]
