"""The local socket's path fits the system's limit, however deep the home is."""

import os
import stat
from pathlib import Path

import pytest

from core.home import socket_path
from core.home.home import Home


def choose(home: Home, tmp_path: Path) -> Path:
    """``tmp_path`` alone may exceed a system's limit."""
    return socket_path.choose(home, longest=len(os.fsencode(tmp_path)) + 60)


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """A home whose own socket fits."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    home = tmp_path / ("deep" * 30)
    home.mkdir()
    return home


def test_the_socket_is_in_the_home_where_its_path_fits(short: Path, tmp_path: Path) -> None:
    home = Home(short)

    assert choose(home, tmp_path) == home.socket == socket_path.find(home)


def test_a_long_home_has_its_socket_in_a_private_folder_elsewhere(long: Path, tmp_path: Path) -> None:
    home = Home(long)

    path = choose(home, tmp_path)

    assert path == socket_path.find(home)
    assert path.parent.parent == tmp_path
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_nothing_is_left_after_release(long: Path, tmp_path: Path) -> None:
    home = Home(long)
    choose(home, tmp_path).write_bytes(b"")

    socket_path.release(home)

    assert list(tmp_path.iterdir()) == [long]
    assert list(long.iterdir()) == []


def test_leftovers_of_a_crash_are_removed(long: Path, tmp_path: Path) -> None:
    home = Home(long)
    crashed = choose(home, tmp_path)
    crashed.write_bytes(b"")

    assert choose(home, tmp_path) != crashed
    assert not crashed.parent.exists()


def test_a_record_that_names_another_folder_deletes_nothing(long: Path, tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (long / "node.sock.path").write_text(str(tmp_path / "documents" / "node.sock"))

    socket_path.release(Home(long))

    assert (tmp_path / "documents").is_dir()
    assert socket_path.find(Home(long)) == Home(long).socket
