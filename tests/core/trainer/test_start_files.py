"""A project's files with the names of Python's own are data, unless its script imports them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.supervisor.spawn import environment
from tests.core.trainer.attended import Attended

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

MARKS = "import os; open(os.path.join({folder!r}, 'picked'), 'a').write({name!r} + '\\n')\n"
STARTS = """
import multiprocessing, subprocess, sys
from pathlib import Path

def begin():
    print("a worker began", flush=True)

if __name__ == "__main__":
    Path("child.py").write_text("print('a child began')")
    for python in sys.argv[1:]:
        for words in (("-c", "print('a child began')"), ("child.py",), ("-m", "child")):
            done = subprocess.run([python, *words], capture_output=True, text=True, check=True)
            print(done.stdout, flush=True)
    worker = multiprocessing.get_context("spawn").Process(target=begin)
    worker.start()
    worker.join()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As received, on a laptop whose user has an empty and a relative entry in PYTHONPATH."""
    folder = tmp_path / "project"
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for place in (folder, folder / "lib" / version / "site-packages"):
        place.mkdir(parents=True)
        for name in ("sitecustomize.py", "usercustomize.py", "of_a_project.pth"):
            (place / name).write_text(MARKS.format(folder=str(folder), name=name))
    (folder / "starts.py").write_text(STARTS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", ".", str(tmp_path / "of-the-user"))))
    monkeypatch.setenv("PYTHONUSERBASE", ".")
    return folder


def picked(project: Path) -> set[str]:
    marks = project / "picked"
    found = set(marks.read_text().split()) if marks.exists() else set()
    marks.unlink(missing_ok=True)
    return found


def pythons() -> tuple[str, str]:
    """This environment's Python, and its base Python: only the latter has a user's packages."""
    return sys.executable, os.path.realpath(sys.executable)


async def test_no_start_of_python_picks_up_a_projects_files(project: Path) -> None:
    for python in pythons():
        await (await asyncio.create_subprocess_exec(python, "-c", "", cwd=project)).wait()
    assert picked(project) == {"sitecustomize.py", "usercustomize.py", "of_a_project.pth"}, "it would be so"
    trainer = Attended(project.parent / "log", folder=str(project), script="starts.py", arguments=pythons())
    exit = await trainer.exit()
    assert exit.reason == "finished", (exit, trainer.text())
    assert trainer.text().count("a child began") == 6
    assert "a worker began" in trainer.text()
    assert picked(project) == set()


def test_what_the_user_has_there_is_used_all_the_same(project: Path) -> None:
    place = project.parent / "of-the-user"
    place.mkdir()
    (place / "sitecustomize.py").write_text(MARKS.format(folder=str(project), name="mine"))
    subprocess.run([sys.executable, "-c", ""], cwd=project, env=environment(), check=True)
    assert picked(project) == {"mine"}
