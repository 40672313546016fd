"""Learning weights from rows."""

from ldfm.learning.em import EMSettings, fit_generation
from ldfm.learning.history import History
from ldfm.learning.priors import Dirichlet, ModifiedDirichlet, NoPrior, Prior

__all__ = ["Dirichlet", "EMSettings", "History", "ModifiedDirichlet", "NoPrior", "Prior", "fit_generation"]
