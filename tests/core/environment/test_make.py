"""Environments made by real interpreters and a real pip; failed and stopped ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from core.environment.make import MARK, Making, has, version_output
from core.environment.recipe import Recipe, RecipeStep, WantedVersions, recipe
from core.home.lock import HomeLock
from core.vocabulary.environments import EnvironmentMaker, find_maker
from core.vocabulary.errors import TandemError
from core.vocabulary.versions import installed
from tests.core.environment.tiny_tandem import wheel

ROOT = Path(__file__).parents[3]
LIMIT_S = 60.0
OURS = installed()
OTHER = next((python for python in find_maker().pythons if python != OURS.python), OURS.python)
"""Another Python if this machine has one."""


@pytest.fixture(autouse=True)
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevents requests beyond this machine, however its pip is configured."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")


def tiny(tmp_path: Path, python: str = OURS.python, tensorflow: str = "2.21.0") -> Recipe:
    maker = EnvironmentMaker(source=wheel(tmp_path), pythons=find_maker().pythons)
    wanted = WantedVersions(python, tensorflow, "3.15.1")
    made = recipe(maker, wanted, OURS, folder=tmp_path / "made", hashes=tmp_path / "none")
    return replace(made, disk_bytes=0)


def doing(tmp_path: Path, *lines: str) -> Recipe:
    """A recipe whose only step is this program."""
    program = (sys.executable, "-c", "\n".join(lines))
    return replace(tiny(tmp_path), steps=(RecipeStep("Working", program),))


def ignore(line: str) -> None:
    pass


def refusal(work: Callable[[], object]) -> TandemError:
    with pytest.raises(TandemError) as refused:
        work()
    assert refused.value.fix
    return refused.value


@pytest.mark.parametrize(
    ("said", "wanted", "whole"),
    [
        ("Tandem 0.1.0 (Python 3.12, TensorFlow 2.21.0, Keras 3.15.1)", WantedVersions("3.12"), True),
        (
            "Tandem 0.1.0 (Python 3.12, TensorFlow 2.21.0, Keras 3.15.1)",
            WantedVersions("3.12", "2.21.0", "3.15.1"),
            True,
        ),
        (
            "Tandem 0.1.0 (Python 3.12, TensorFlow 2.21.0, Keras 3.15.10)",
            WantedVersions("3.12", "", "3.15.1"),
            False,
        ),
        ("Tandem 0.1.0 (Python 3.11, TensorFlow 2.21.0, Keras 3.15.1)", WantedVersions("3.12"), False),
        (
            "Tandem 0.1.0 (Python 3.12, TensorFlow missing, Keras 3.15.1)",
            WantedVersions("3.12", "2.21.0"),
            False,
        ),
        ("", WantedVersions("3.12"), False),
    ],
)
def test_the_new_tandems_own_version_output_decides(said: str, wanted: WantedVersions, whole: bool) -> None:
    assert has(said, wanted) is whole


@pytest.mark.real
def test_an_environment_is_made_tried_and_found_again(tmp_path: Path) -> None:
    made, lines = tiny(tmp_path, OTHER), list[str]()
    assert version_output(made) == ""
    said = Making(made, lines.append).run()
    assert said == f"Tandem 0.1.0 (Python {OTHER}, TensorFlow 2.21.0, Keras 3.15.1)"
    assert lines[0].startswith("Making the environment: ") and lines[-1].startswith("Tandem 0.1.0")
    assert any("Successfully installed" in line for line in lines)
    assert made.tandem.exists() and not (made.folder / MARK).exists()
    assert version_output(made) == said
    lines.clear()
    assert Making(made, lines.append).run() == said and lines == [], "a whole one is not made anew"

    (made.folder / MARK).touch()  # as a killed build leaves it
    (made.folder / "rest").mkdir()
    assert version_output(made) == ""
    assert Making(made, ignore).run() == said, "one that was left half made is made anew"
    assert not (made.folder / "rest").exists() and not (made.folder / MARK).exists()


@pytest.mark.real
def test_stopped_it_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    made = doing(
        tmp_path,
        "import subprocess, sys, time, os",
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])",
        "print('begun', os.getpid(), child.pid, flush=True)",
        "time.sleep(600)",
    )
    pids: list[int] = []

    def told(line: str) -> None:
        if line.startswith("begun"):
            pids.extend(map(int, line.split()[1:]))
            assert (made.folder / MARK).exists()
            making.stop()

    making = Making(made, told)
    assert making.run() == ""
    assert len(pids) == 2 and not made.folder.exists()
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=30)
    assert not alive


@pytest.mark.real
@pytest.mark.skipif(sys.platform == "win32", reason="the program is a script")
def test_stopped_while_the_new_one_is_tried_it_ends_at_once(tmp_path: Path) -> None:
    made = doing(
        tmp_path,
        "import os",
        "os.mkdir('bin')",
        "open('bin/tandem', 'w').write('#!/bin/sh\\necho begun\\nsleep 600\\n')",
        "os.chmod('bin/tandem', 0o755)",
    )
    stopped: list[float] = []

    def told(line: str) -> None:
        if line == "begun":
            stopped.append(time.monotonic())
            making.stop()

    making = Making(made, told)
    assert making.run() == ""
    assert stopped and time.monotonic() - stopped[0] < 10 and not made.folder.exists()


@pytest.mark.real
def test_no_module_is_taken_from_where_tandem_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A received project may contain a ``venv.py`` and a ``pip.py``."""
    project, ran = tmp_path / "project", tmp_path / "project" / "ran"
    project.mkdir()
    for name in ("venv", "pip", "tandem_laptops", "sitecustomize"):
        (project / f"{name}.py").write_text("open('ran', 'w').close()")
    monkeypatch.chdir(project)
    subprocess.run([sys.executable, "-m", "venv", "new"], check=True)
    assert ran.exists(), "this is what would happen"
    ran.unlink()
    made = tiny(tmp_path)
    assert Making(made, ignore).run() and version_output(made)
    assert not ran.exists()


def begin(recipe: Recipe, *before: str) -> subprocess.Popen[str]:
    """Another process that makes it. ``before``: its first action."""
    lines = (
        *("import datetime, os, pathlib, signal, sys", f"sys.path.insert(0, {str(ROOT)!r})"),
        *("from pathlib import *", "from core.environment.make import Making"),
        "from core.environment.recipe import Recipe, RecipeStep, WantedVersions",
        *before,
        f"Making({recipe!r}, lambda line: print(line, flush=True)).run()",
    )
    return subprocess.Popen(
        [sys.executable, "-c", "\n".join(lines)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    )


@pytest.mark.real
@pytest.mark.skipif(sys.platform == "win32", reason="the program is a script, and SIGKILL ends it")
@pytest.mark.parametrize("removed", [1, 30, 60])
def test_killed_in_the_middle_of_removal_what_is_left_is_not_taken_for_a_whole_one(
    tmp_path: Path, removed: int
) -> None:
    answer = f"Tandem 0.1.0 (Python {OURS.python}, TensorFlow 2.21.0, Keras 3.15.1)"
    made = doing(
        tmp_path,
        "import os",
        "os.mkdir('bin')",
        f"open('bin/tandem', 'w').write('#!/bin/sh\\necho \"{answer}\"\\n')",
        "os.chmod('bin/tandem', 0o755)",
        "for number in range(60): open(f'file{number}', 'w').close()",
        "raise SystemExit(1)",
    )
    kills = (
        *("count = [0]", "def watch(event, arguments):", "    if event == 'os.remove':"),
        *("        count[0] += 1", f"        if count[0] > {removed}: os.kill(os.getpid(), signal.SIGKILL)"),
        "sys.addaudithook(watch)",
    )
    maker = begin(made, *kills)
    maker.communicate(timeout=LIMIT_S)
    assert maker.returncode == -signal.SIGKILL
    left = {entry.name for entry in made.folder.iterdir()}
    assert MARK in left and 1 < len(left) < 64, "it died in the middle"
    assert version_output(made) == "", "nothing is offered of it"
    assert Making(tiny(tmp_path), ignore).run() == answer


@pytest.mark.real
@pytest.mark.skipif(sys.platform == "win32", reason="a child cannot hold the lock there")
def test_a_command_left_running_by_a_killed_tandem_still_holds_the_folder(tmp_path: Path) -> None:
    made = doing(
        tmp_path,
        "import os, time",
        "print('begun', os.getpid(), flush=True)",
        f"while not os.path.exists({str(tmp_path / 'end')!r}): time.sleep(0.02)",
    )
    maker = begin(made)
    assert maker.stdout is not None
    begun = next(line for line in maker.stdout if line.startswith("begun"))
    writer = psutil.Process(int(begun.split()[1]))
    try:
        maker.kill()
        maker.communicate(timeout=LIMIT_S)
        assert writer.is_running(), "it outlives who started it"
        assert refusal(Making(tiny(tmp_path), ignore).run).code == "environment-under-way"
    finally:
        (tmp_path / "end").touch()
    writer.wait(LIMIT_S)
    assert Making(tiny(tmp_path), ignore).run()


@pytest.mark.real
def test_a_failure_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    made = doing(tmp_path, "print('ERROR: No such thing')", "raise SystemExit(1)")
    problem = refusal(Making(made, ignore).run).problem
    assert problem.code == "environment-failed" and "No such thing" in problem.what
    assert not made.folder.exists()


@pytest.mark.real
def test_a_missing_network_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real pip, whose index is a port of this machine where nobody listens."""
    monkeypatch.delenv("PIP_NO_INDEX")
    made = tiny(tmp_path)
    venv, fill, _ = made.steps
    lonely = (*fill.command[:-1], "--index-url", "http://127.0.0.1:9/simple", "--retries", "1", "six")
    made = replace(made, steps=(venv, RecipeStep("Fetching the packages", lonely)))
    problem = refusal(Making(made, ignore).run).problem
    assert problem.code == "environment-no-network", problem.detail
    assert "NewConnectionError" in problem.detail
    assert not made.folder.exists()


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    made = replace(tiny(tmp_path), steps=(RecipeStep("Fetching Python 3.12", ("/nowhere/uv", "venv")),))
    problem = refusal(Making(made, ignore).run).problem
    assert problem.what.startswith("Fetching Python 3.12 failed: /nowhere/uv cannot be started")
    assert "writable" not in problem.fix and not made.folder.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links are for administrators")
def test_a_mark_that_cannot_be_opened_is_reported_with_its_folder(tmp_path: Path) -> None:
    made = tiny(tmp_path)
    made.folder.mkdir()
    (made.folder / MARK).symlink_to(tmp_path)
    problem = refusal(Making(made, ignore).run).problem
    assert problem.code == "environment-unwritable" and "--home" not in problem.fix


@pytest.mark.real
def test_an_environment_that_does_not_load_is_not_kept(tmp_path: Path) -> None:
    made = tiny(tmp_path)
    wheel(tmp_path, loads=False)
    problem = refusal(Making(made, ignore).run).problem
    assert problem.what.startswith("Loading TensorFlow there failed: ImportError: cannot load it")
    assert not made.folder.exists()


@pytest.mark.real
def test_a_step_that_does_not_end_is_ended(tmp_path: Path) -> None:
    made = doing(tmp_path, "import time; time.sleep(600)")
    assert refusal(Making(made, ignore, limit_s=0.2).run).code == "environment-too-long"
    assert not made.folder.exists()


@pytest.mark.real
def test_an_environment_with_other_versions_is_not_kept(tmp_path: Path) -> None:
    made = tiny(tmp_path, tensorflow="2.21.1")
    problem = refusal(Making(made, ignore).run).problem
    assert problem.code == "environment-not-as-wanted" and "TensorFlow 2.21.0" in problem.what
    assert not made.folder.exists()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    made = tiny(tmp_path)
    made.folder.mkdir()
    (made.folder / "mine").write_text("all I have")
    assert refusal(Making(made, ignore).run).code == "environment-folder-taken"
    assert (made.folder / "mine").read_text() == "all I have"


def test_a_second_process_is_refused_while_one_makes_it(tmp_path: Path) -> None:
    made = tiny(tmp_path)
    made.folder.mkdir()
    lock = HomeLock.acquire(made.folder / MARK)
    try:
        assert refusal(Making(made, ignore).run).code == "environment-under-way"
    finally:
        lock.release()


def test_too_little_space_is_reported_before_anything_is_fetched(tmp_path: Path) -> None:
    made, lines = replace(tiny(tmp_path), disk_bytes=1 << 60), list[str]()
    assert refusal(Making(made, lines.append).run).code == "environment-no-space"
    assert not lines and not made.folder.exists()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    made = replace(tiny(tmp_path), folder=tmp_path / "file" / "made")
    assert refusal(Making(made, ignore).run).code == "environment-unwritable"
