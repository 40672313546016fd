"""How much effort an answer may take."""

from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Budget:
    """When to stop sampling: when the target is met, or when either limit is reached.

    Parameters
    ----------
    target_se
        Largest standard error wanted. None: 0.01 for a marginal probability, 0.05 nats for a row's joint.
    max_sweeps
        Most sweeps of all chains of a row together.
    seconds
        Most seconds a row.
    """

    target_se: float | None = None
    max_sweeps: int = 4_000
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.target_se is not None and not self.target_se > 0:
            raise ValueError(f"target_se must be positive, not {self.target_se}")
        if self.max_sweeps < 1:
            raise ValueError(f"max_sweeps must be at least 1, not {self.max_sweeps}")
        if self.seconds is not None and not self.seconds > 0:
            raise ValueError(f"seconds must be positive, not {self.seconds}")

    @classmethod
    def of(cls, budget: "Budget | float | None") -> "Budget":
        """Take a number as seconds a row, however many sweeps that are, None as the default."""
        if isinstance(budget, Budget):
            return budget
        return cls() if budget is None else cls(max_sweeps=2**62, seconds=float(budget))


class Meter:
    """Counts what a row has used of its budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.sweeps = 0
        self._began = perf_counter()

    def is_used_up(self) -> bool:
        """Say whether a limit is reached."""
        seconds = self.budget.seconds
        return self.sweeps >= self.budget.max_sweeps or (
            seconds is not None and perf_counter() - self._began >= seconds
        )
