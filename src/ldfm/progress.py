"""Progress on stderr, silent unless asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Advance", "progress"]


class Advance(Protocol):
    """Moves a progress bar on."""

    def __call__(self, note: str = "", steps: int = 1) -> None:
        """Move on by `steps` and show a note behind the bar."""


def _ignore(note: str = "", steps: int = 1) -> None:
    del note, steps


@contextmanager
def progress(title: str, total: int | None, verbose: int) -> Iterator[Advance]:
    """Show a bar on stderr while the block runs; `verbose` 0 shows nothing and imports nothing."""
    if verbose <= 0:
        yield _ignore
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=verbose == 1) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda note="", steps=1: bar.update(task, advance=steps, note=note)
