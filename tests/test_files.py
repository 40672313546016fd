import errno
import os
import re
import stat
from pathlib import Path

import pytest

from ldfm.files import check_target, written_whole

needs_unix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and pipes of Unix")


def write(path: Path, text: str = "new") -> None:
    with written_whole(path) as temporary:
        temporary.write_text(text)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_appears_under_its_name_only(tmp_path: Path) -> None:
    with written_whole(tmp_path / "a") as temporary:
        temporary.write_text("new")
        assert not (tmp_path / "a").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "new"


def test_an_old_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old and longer")
    write(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "new"


def write_half(path: Path, fault: BaseException) -> None:
    with written_whole(path) as temporary:
        temporary.write_text("half")
        raise fault


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "disk full"), KeyboardInterrupt(), SystemExit(1)])
def test_after_a_fault_the_old_file_is_as_it_was_and_nothing_is_left(tmp_path: Path, fault: BaseException) -> None:
    (tmp_path / "a").write_text("old")
    for name in ("a", "b"):
        with pytest.raises(type(fault)):
            write_half(tmp_path / name, fault)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_after_a_fault_at_the_end_nothing_is_left(tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, step, fail) if step == "fsync" else monkeypatch.setattr(Path, step, fail)
    with pytest.raises(OSError, match="Input/output"):
        write(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    write(tmp_path / ("x" * 255))
    assert (tmp_path / ("x" * 255)).read_text() == "new"


@needs_unix
@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_of_a_new_file_follow_the_umask(tmp_path: Path, mask: int, expected: int) -> None:
    before = os.umask(mask)
    try:
        write(tmp_path / "a")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a") == expected


@needs_unix
def test_a_private_file_stays_private(tmp_path: Path) -> None:
    (tmp_path / "a").touch(mode=0o600)
    write(tmp_path / "a")
    assert mode(tmp_path / "a") == 0o600


@needs_unix
def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "target")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "target").read_text() == "new"


@needs_unix
def test_a_pipe_or_device_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="pipe is not an ordinary file"):
        write(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="folder is a folder"):
        write(tmp_path / "folder")


@pytest.mark.parametrize("name", ["nowhere/a", "file/a", "nowhere/../a/b"])
def test_the_folder_must_exist(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match="no such folder"):
        write(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("place", ["folder", "folder/a"])
def test_without_permission_nothing_is_tried(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").touch()
    # not by real permissions: root, under whom containers run tests, may write anywhere
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != tmp_path / place)
    with pytest.raises(PermissionError, match=f"no permission to write to .*{place}$"):
        check_target(tmp_path / "folder" / "a")


def test_a_place_that_takes_no_file_is_named_as_the_user_named_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Path, **_: object) -> None:
        raise PermissionError(errno.EROFS, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "touch", fail)
    with pytest.raises(PermissionError, match=re.escape(f"Read-only file system: '{tmp_path / 'a'}'")):
        write(tmp_path / "a")
