"""Switching to another environment's Tandem: it is started, now and by menu and login from then on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.exit_codes import ExitCode
from app.desktop import _go_over
from app.system import autostart, changeover, desktop_files
from app.system.changeover import go_over, is_in_menu, missing, window_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="desktop entries are Linux's")


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another environment's ``tandem-gui``, which records its arguments."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    program = tmp_path / "other" / "bin" / "tandem-gui"
    program.parent.mkdir(parents=True)
    program.write_text(
        '#!/bin/sh\necho "$*$PYTHONHOME$PYTHONPATH$VIRTUAL_ENV" > "$0.part" && mv "$0.part" "$0.told"\n'
    )
    program.chmod(0o755)
    return program


def test_the_window_lies_beside_the_command() -> None:
    assert window_of(Path("/e/bin/tandem")) == Path("/e/bin/tandem-gui")
    assert window_of(Path("/e/Scripts/tandem.exe")).name == "tandem-gui.exe"


@pytest.mark.real
def test_the_other_is_started_and_what_started_this_one_starts_it(
    other: Path, qapp: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"):
        monkeypatch.setenv(name, "/of/this/python")
    desktop_files.install(desktop_files.data_folder())
    autostart.set_start(True)
    assert is_in_menu()
    assert go_over((str(other), "--home", "/h")).wait(30) == 0
    assert other.with_name("tandem-gui.told").read_text() == "--home /h\n"
    for path in (desktop_files.entry_file(desktop_files.data_folder()), autostart.entry_file()):
        assert f"Exec={other}" in path.read_text(encoding="utf-8")


@pytest.mark.real
def test_what_did_not_start_this_one_does_not_start_the_other(other: Path) -> None:
    assert go_over((str(other),)).wait(30) == 0
    assert not is_in_menu() and not autostart.entry_file().exists()


@pytest.mark.real
def test_where_the_other_does_not_start_menu_and_login_still_start_this_one(
    other: Path, qapp: object, capsys: pytest.CaptureFixture[str]
) -> None:
    desktop_files.install(desktop_files.data_folder())
    autostart.set_start(True)
    entries = (desktop_files.entry_file(desktop_files.data_folder()), autostart.entry_file())
    before = [path.read_text(encoding="utf-8") for path in entries]
    other.unlink()
    with pytest.raises(FileNotFoundError):
        go_over((str(other),))
    assert _go_over((str(other),)) == ExitCode.CANNOT_START
    assert f"{other} cannot be started" in capsys.readouterr().err
    assert [path.read_text(encoding="utf-8") for path in entries] == before


@pytest.mark.real
def test_the_end_of_this_window_opens_the_other(other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(changeover, "go_over", lambda command: started.append(go_over(command)))
    assert _go_over((str(other), "--home", "/h")) == 0
    assert started[0].wait(30) == 0
    assert other.with_name("tandem-gui.told").read_text() == "--home /h\n"


def test_what_is_not_there_any_more_is_reported_before_this_window_goes(other: Path) -> None:
    tandem, python = other.with_name("tandem"), other.with_name("python")
    python.symlink_to(sys.executable)
    assert missing(tandem) is None
    python.unlink()
    python.symlink_to("/nowhere/python3.12")  # the interpreter was removed
    problem = missing(tandem)
    assert problem is not None and problem.what.startswith(f"{python} no longer exists") and problem.fix
    other.unlink()
    problem = missing(tandem)
    assert problem is not None and str(other) in problem.what
