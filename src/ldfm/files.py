"""Files are written whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_target(path: Path) -> Path:
    """Give the file that writing to `path` would make or replace, links followed; an OSError says why it could not.

    Whoever computes for long before writing calls this first.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file to write")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"no such folder: {target.parent}")
    if target.exists() and not target.is_file():  # a device or a pipe would be gone for everyone
        raise FileExistsError(f"{path} is not an ordinary file and is not replaced")
    for place in (target.parent, target):
        if place.exists() and not os.access(place, os.W_OK):
            raise PermissionError(f"no permission to write to {place}")
    return target


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path` to write to; move it into place if the block succeeds, else remove it.

    A reader sees the old file or the new one, never a part, also after a crash. A file that is replaced keeps its permissions.
    """
    target = check_target(path)
    temporary = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:  # whose file name would say nothing to the user
        raise type(error)(error.errno, error.strerror, str(path)) from error
    try:
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
