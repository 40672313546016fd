"""Text of options -> values."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # --help is instant without the compiler that learning needs
    from ldfm.learning import Dirichlet, ModifiedDirichlet


def parse_prior(text: str) -> "Dirichlet | ModifiedDirichlet | None":
    """Read none, dirichlet:ALPHA or modified:ALPHA,FLOOR."""
    from ldfm.learning import Dirichlet, ModifiedDirichlet

    name, _, rest = text.partition(":")
    try:
        numbers = [float(part) for part in rest.split(",")] if rest else []
    except ValueError:
        numbers = []
    if text == "none":
        return None
    if name == "dirichlet" and len(numbers) == 1:
        return Dirichlet(numbers[0])
    if name == "modified" and len(numbers) == 2:
        return ModifiedDirichlet(numbers[0], numbers[1])
    raise ValueError(f"prior must be none, dirichlet:ALPHA or modified:ALPHA,FLOOR, not {text!r}")
