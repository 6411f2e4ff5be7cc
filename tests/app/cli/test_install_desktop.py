import io
import json
import shutil
import sys
from pathlib import Path

import pytest

from app.cli import command_line, install_desktop
from app.cli.screen import Screen


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


async def run(*argv: str) -> tuple[int, str]:
    out = io.StringIO()
    arguments = command_line.read(["install-desktop", *argv])
    screen = Screen(json=arguments.json, out=out)
    return await install_desktop.install_desktop(arguments, screen), out.getvalue()


async def test_it_says_where_the_entry_is(data: Path) -> None:
    code, said = await run()
    assert code == 0
    assert "applications/tandem.desktop" in said
    assert (data / "applications" / "tandem.desktop").exists()


async def test_it_can_be_taken_out_again(data: Path) -> None:
    assert await run("--remove") == (0, "Tandem was not in the menu.\n")
    await run()
    assert await run("--remove") == (0, "Tandem is no longer in the menu.\n")
    assert not (data / "applications" / "tandem.desktop").exists()


async def test_scripts_get_the_paths(data: Path) -> None:
    _, said = await run("--json")
    assert str(data / "applications" / "tandem.desktop") in json.loads(said)["installed"]
