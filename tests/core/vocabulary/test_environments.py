"""The tools for a Tandem environment with another Python, and the documented commands that make one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from core.vocabulary import environments
from core.vocabulary.environments import EnvironmentMaker, find_maker

ROOT = Path(__file__).parents[3]
PYTHON = """\
#!/bin/sh
echo "$0 $*" >> "$TOLD"
if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/tandem"; fi
"""
UV = """\
#!/bin/sh
echo "$0 $*" >> "$TOLD"
if [ "$1 $2" = "python find" ]; then echo "$(dirname "$0")/fetched-python"; fi
"""


def by_hand(words: str) -> str:
    """The documented command with that beginning."""
    lines = (ROOT / "docs" / "headless.md").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith(words))


def test_installed_tools_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_maker(tmp_path).pythons == {} and not find_maker(tmp_path).uv
    for name in ("python3.12", "uv", "make"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    found = find_maker(ROOT)
    assert found == EnvironmentMaker(
        checkout=str(ROOT), source=str(ROOT), pythons={"3.12": str(tmp_path / "python3.12")}, uv=True
    )
    assert find_maker(tmp_path).checkout == "", "an installed Tandem has no Makefile"


def test_pyenvs_interpreter_is_found_instead_of_its_shim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("shims/python3.12", "versions/3.12.9/bin/python3.12", "versions/3.12.10/bin/python3.12"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        path.chmod(0o755)
    shutil.copy(tmp_path / "shims" / "python3.12", tmp_path / "shims" / "python3.13")  # of one that is gone
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    assert find_maker(tmp_path).pythons == {"3.12": str(tmp_path / "versions/3.12.10/bin/python3.12")}


@pytest.mark.parametrize(
    ("told", "source"),
    [
        (None, ""),
        ('{"url": "file:///home/a/t.whl", "archive_info": {}}', "file:///home/a/t.whl"),
        (
            '{"url": "https://a.example/t", "vcs_info": {"vcs": "git", "commit_id": "1f3a"}}',
            "git+https://a.example/t@1f3a",
        ),
        ("{", ""),
    ],
)
def test_it_is_installed_from_the_same_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str | None, source: str
) -> None:
    class Distribution:
        def read_text(self, name: str) -> str | None:
            return told

    monkeypatch.setattr(metadata, "distribution", lambda name: Distribution())
    assert find_maker(tmp_path).source == source


class Laptop:
    """Programs that record their arguments, and a copy of the files `make` reads."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.told = folder / "bin", folder / "told"
        self.checkout, self.home = folder / "a checkout", folder / "home"
        for made in (self.programs, self.checkout / "resources", self.home):
            made.mkdir(parents=True)
        for name in ("Makefile", "pyproject.toml", "resources/constraints.txt"):
            shutil.copy(ROOT / name, self.checkout / name)

    def has(self, name: str, text: str) -> str:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)
        return str(self.programs / name)

    def run(self, line: str) -> list[str]:
        """Arguments given to the programs."""
        path = f"{self.programs}:/usr/bin:/bin"
        environment = {**os.environ, "TOLD": str(self.told), "PATH": path, "MAKEFLAGS": ""}
        environment["HOME"] = str(self.home)
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.checkout,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return self.told.read_text().splitlines()


@pytest.mark.real
@pytest.mark.skipif(sys.platform == "win32", reason="the commands of Windows' shell are other ones")
def test_the_command_makes_the_environment_and_opens_the_window(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    laptop.has("python3.12", PYTHON)
    asked = laptop.run(by_hand("make app VENV="))
    assert asked[-1].strip() == ".venv-3.12/bin/tandem"
    assert any("--editable .[dev]" in line for line in asked)
    assert (laptop.checkout / ".venv-3.12" / "bin" / "python").exists()


@pytest.mark.real
@pytest.mark.skipif(sys.platform == "win32", reason="the commands of Windows' shell are other ones")
def test_uv_fetches_the_python_for_it(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path)
    laptop.has("uv", UV)
    laptop.has("fetched-python", PYTHON)
    asked = laptop.run(by_hand("uv python install"))
    assert asked[0].endswith("uv python install 3.12")
    assert asked[-1].strip() == ".venv-3.12/bin/tandem"


@pytest.mark.real
@pytest.mark.skipif(sys.platform == "win32", reason="the commands of Windows' shell are other ones")
@pytest.mark.parametrize("uv", [True, False])
def test_an_installed_tandem_is_installed_again(tmp_path: Path, uv: bool) -> None:
    laptop = Laptop(tmp_path)
    laptop.has("python3.12", PYTHON)
    laptop.has("uv", UV)
    line = by_hand("uv venv --python 3.12" if uv else "python3.12 -m venv")
    asked = laptop.run(line.replace("WHEEL", "file:///a/t.whl"))
    assert len(asked) == 2 and str(laptop.home / "tandem-python3.12") in asked[0]
    assert asked[1].endswith("file:///a/t.whl") and "pip install" in asked[1]
    assert environments.DISTRIBUTION == "tandem-laptops"
