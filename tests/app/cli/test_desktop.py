"""What ``tandem install-desktop`` adds to the menu, and ``tandem uninstall`` removes."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from app.cli import command_line, desktop
from app.cli.screen import Screen
from app.system import autostart, desktop_files
from core.home.home import Home
from core.home.lock import HomeLock
from core.home.opened_home import open_home
from core.vocabulary.errors import TandemError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A used and closed home, in the desktop's menu and autostart."""
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    home = Home(tmp_path / "home")
    open_home(home).close()
    (home.runs / "1").mkdir(parents=True)
    (home.runs / "1" / "model.keras").write_bytes(b"0")
    desktop_files.install(desktop_files.data_folder(), "linux")
    autostart.set_start(True, "linux")
    return home


async def run(home: Home, *words: str) -> dict[str, Any]:
    out = io.StringIO()
    arguments = command_line.read(["--home", str(home.folder), "uninstall", "--json", *words])
    assert await desktop.uninstall(arguments, Screen(json=True, out=out)) == 0
    told: dict[str, Any] = json.loads(out.getvalue())
    return told


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_the_home_is_kept_unless_it_is_asked_for(home: Home, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in files(home.folder)}
    told = await run(home)
    assert {path: path.read_bytes() for path in files(home.folder)} == before
    assert told["home"] == str(home.folder)
    assert not files(tmp_path / "XDG_DATA_HOME") and not files(tmp_path / "XDG_CONFIG_HOME")
    assert told["removed"], "it says what went"


async def test_on_request_nothing_is_left(home: Home, tmp_path: Path) -> None:
    told = await run(home, "--delete-home")
    assert not files(tmp_path) and not home.folder.exists()
    assert told["home"] == ""
    assert str(home.runs) in told["removed"] and str(home.identity) in told["removed"]
    assert (await run(home, "--delete-home"))["removed"] == [], "twice is once"


async def test_what_is_not_tandems_stays_in_the_folder(home: Home) -> None:
    (home.folder / "thesis.txt").write_text("mine")
    (home.runs / "link").symlink_to(home.folder / "thesis.txt")
    told = await run(home, "--delete-home")
    assert files(home.folder) == [home.folder / "thesis.txt"]
    assert told["home"] == str(home.folder)


async def test_a_folder_that_is_no_home_is_left_alone(home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    (other.folder / "runs").mkdir(parents=True)
    (other.folder / "runs" / "mine").write_text("mine")
    with pytest.raises(TandemError) as failure:
        await run(other, "--delete-home")
    assert failure.value.code == "no-home"
    assert (other.folder / "runs" / "mine").read_text() == "mine"


async def test_a_home_in_use_is_not_deleted(home: Home) -> None:
    lock = HomeLock.acquire(home.lock)
    try:
        with pytest.raises(TandemError) as failure:
            await run(home, "--delete-home")
    finally:
        lock.release()
    assert failure.value.code == "home-held" and home.identity.exists()


def test_all_that_a_home_has_is_known(home: Home) -> None:
    """An unknown file would stay when the home is deleted."""
    assert {path.name for path in home.folder.iterdir()} <= {path.name for path in home.own()}
    names = {
        value.name
        for name, kind in vars(Home).items()
        if isinstance(kind, property) and isinstance(value := getattr(home, name), Path)
    }
    assert names <= {path.name for path in home.own()}


@pytest.mark.parametrize(
    ("program", "frozen", "command"),
    [
        ("/usr/lib/tandem-laptops/tandem", True, "sudo apt remove tandem-laptops"),
        ("/home/anna/tandem/tandem", True, "delete the folder /home/anna/tandem"),
        ("/home/a/.local/share/pipx/venvs/tandem-laptops/bin/python", False, "pipx uninstall tandem-laptops"),
        (
            "/home/a/.local/share/uv/tools/tandem-laptops/bin/python",
            False,
            "uv tool uninstall tandem-laptops",
        ),
        ("/home/a/env/bin/python", False, "/home/a/env/bin/python -m pip uninstall tandem-laptops"),
    ],
)
def test_what_removes_the_program_is_said(
    program: str, frozen: bool, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    assert desktop.program_remover() == command


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


async def install(*argv: str) -> tuple[int, str]:
    out = io.StringIO()
    arguments = command_line.read(["install-desktop", *argv])
    screen = Screen(json=arguments.json, out=out)
    return await desktop.install_desktop(arguments, screen), out.getvalue()


async def test_it_says_where_the_entry_is(data: Path) -> None:
    code, said = await install()
    assert code == 0
    assert "applications/tandem.desktop" in said
    assert (data / "applications" / "tandem.desktop").exists()


async def test_it_can_be_taken_out_again(data: Path) -> None:
    assert await install("--remove") == (0, "Tandem was not in the menu.\n")
    await install()
    assert await install("--remove") == (0, "Tandem is no longer in the menu.\n")
    assert not (data / "applications" / "tandem.desktop").exists()


async def test_scripts_get_the_paths(data: Path) -> None:
    _, said = await install("--json")
    assert str(data / "applications" / "tandem.desktop") in json.loads(said)["installed"]
