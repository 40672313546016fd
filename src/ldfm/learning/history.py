"""What happened during a fit."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ldfm.types import Floats


@dataclass(frozen=True)
class Step:
    """One iteration: the objective at the weights it started from, and the seconds since the fit began.

    `moves`, where chains run: the share of their values that a sweep changes.
    """

    iteration: int
    objective: float
    validation: float | None
    seconds: float
    moves: float | None = None


@dataclass
class History:
    """Convergence record of a fit.

    Attributes
    ----------
    steps
        One record an iteration.
    converged
        Whether the fit stopped by itself.
    reason
        Why it stopped.
    """

    steps: list[Step] = field(default_factory=list)
    converged: bool = False
    reason: str = ""

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @property
    def objective(self) -> Floats:
        """Objective of each iteration, a mean over rows.

        The log probability of generating the row plus log prior / rows; or, learning on the normalised likelihood, an estimate of
        the log probability of the row.
        """
        return np.array([step.objective for step in self.steps])

    @property
    def validation(self) -> Floats:
        """The same of held-out rows, without prior; NaN without such rows."""
        return np.array([np.nan if step.validation is None else step.validation for step in self.steps])

    def to_json(self) -> dict[str, Any]:
        """Give what `from_json` reads."""
        return {"steps": [asdict(step) for step in self.steps], "converged": self.converged, "reason": self.reason}

    @classmethod
    def from_json(cls, record: Any) -> "History":
        """Read and check what `to_json` gave; any fault is a ValueError."""
        try:
            steps = [
                Step(
                    int(step["iteration"]),
                    float(step["objective"]),
                    None if step["validation"] is None else float(step["validation"]),
                    float(step["seconds"]),
                    None if step["moves"] is None else float(step["moves"]),
                )
                for step in record["steps"]
            ]
            return cls(steps, bool(record["converged"]), str(record["reason"]))
        except (TypeError, KeyError) as error:
            raise ValueError(f"unreadable history: {error!r}") from error
