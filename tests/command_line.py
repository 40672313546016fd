"""The command line run in this process, and what tests say about it."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import typer

from ldfm.cli import main


class Ended(NamedTuple):
    code: int
    stdout: str
    stderr: str


Ldfm = Callable[..., Ended]


def assert_refused(ended: Ended, reason: str) -> None:
    assert ended.code == 2
    assert ended.stdout == ""
    assert re.fullmatch(r"ldfm: [^\n]+\n", ended.stderr)
    assert reason in ended.stderr


def strict_json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with the words that call it."""
    for name, command in (group or typer.main.get_command(main.app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands())
