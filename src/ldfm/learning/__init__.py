"""Learning weights from rows."""

from ldfm.learning.checkpoint import CheckpointError
from ldfm.learning.em import EMSettings, fit_generation
from ldfm.learning.fitting import FitSettings, Fitted, Objective, draw_from, hold_out, learn, uniform_weights
from ldfm.learning.history import History
from ldfm.learning.likelihood import LikelihoodFit, LikelihoodSettings
from ldfm.learning.priors import Dirichlet, ModifiedDirichlet, NoPrior, Prior
from ldfm.learning.scales import choose_scales

__all__ = [
    "CheckpointError",
    "Dirichlet",
    "EMSettings",
    "FitSettings",
    "Fitted",
    "History",
    "LikelihoodFit",
    "LikelihoodSettings",
    "ModifiedDirichlet",
    "NoPrior",
    "Objective",
    "Prior",
    "choose_scales",
    "draw_from",
    "fit_generation",
    "hold_out",
    "learn",
    "uniform_weights",
]
