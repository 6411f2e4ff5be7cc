"""Impossible runs: refused with a sentence and an exit code before anything is done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli.exit_codes import ExitCode
from core.home.home import Home
from core.vocabulary.answers import ScriptRead
from core.vocabulary.bounds import MOST_FILES
from core.vocabulary.commands import AnalyseScript, ChangeSettings
from core.vocabulary.settings import Settings, SettingsChange
from tests.lab.agent import Agent
from tests.lab.lab import find
from tests.lab.laptops import Laptops
from tests.trouble.command_line import tandem

pytestmark = pytest.mark.real


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import keras\nkeras.Model().fit()\n")
    return tmp_path / "train.py"


def refusal(agent: Agent, script: Path, *options: str) -> str:
    code, said = tandem("run", script, "--home", agent.home.folder, *options)
    assert code == ExitCode.REFUSED, said
    assert not agent.state.busy
    return said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--with", "nobody"), "No device is called 'nobody'. Visible or paired: ben."),
        (("--with", "ben", "--role", "me=chief", "--role", "ben=chief"), "anna and ben were made chief."),
        (("--with", "ben", "--role", "me=worker", "--role", "ben=worker"), "No device is the chief"),
        (("--solo", "--role", "ben=worker"), "ben has a role but does not take part"),
        (("--with", "ben", "--share", "ben=many"), "--share does not accept 'many'."),
    ],
    ids=["an unknown device", "two chiefs", "no chief", "a role outside the run", "no share"],
)
def test_what_cannot_be_planned_is_refused(
    laptops: Laptops, script: Path, options: tuple[str, ...], words: str
) -> None:
    before = laptops.ben.state.run
    said = refusal(laptops.anna, script, *options)
    assert words in said
    assert laptops.ben.state.run == before


@pytest.fixture
def cleo(laptops: Laptops, tmp_path: Path) -> Iterator[Agent]:
    """A stranger visible to anna."""
    laptops.anna.do(ChangeSettings(change=SettingsChange(discovery=True)))
    # A unique name: another test run on this machine may have its cleo, too.
    name = f"cleo-{os.getpid()}"
    settings = Settings(name=name, port=0, interfaces=("lo",), first_run_done=True)
    try:
        with Agent(Home(tmp_path / name), settings=settings) as cleo:
            find(laptops.anna, cleo)
            yield cleo
    finally:
        laptops.anna.do(ChangeSettings(change=SettingsChange(discovery=False)))


def test_a_device_that_is_seen_but_not_paired_is_refused(laptops: Laptops, cleo: Agent, script: Path) -> None:
    said = refusal(laptops.anna, script, "--with", cleo.name)
    assert f"{cleo.name} is not paired with this laptop." in said and f"tandem pair {cleo.name}" in said
    assert cleo.state.run is None and cleo.state.consents == ()


def test_a_device_that_is_off_is_refused(laptops: Laptops, script: Path) -> None:
    laptops.ben.end()
    laptops.anna.until(lambda state: not state.devices[laptops.ben.device].linked, "see that ben is off")
    said = refusal(laptops.anna, script, "--with", "ben")
    assert "ben is not connected: Tandem was closed there." in said and "with Tandem running" in said
    laptops.restart(1)


def test_a_project_of_too_many_files_says_where_most_of_them_are(laptops: Laptops, script: Path) -> None:
    images = script.parent / "images"
    images.mkdir()
    for number in range(MOST_FILES):
        (images / str(number)).touch()
    said = refusal(laptops.anna, script)
    assert "Most of them: images/ (100,000 files)" in said and "write lines such as /images/ into" in said


def test_what_must_not_travel_stays_and_is_named(laptops: Laptops, script: Path, tmp_path: Path) -> None:
    (script.parent / "passwords").symlink_to("/etc/passwd")
    (script.parent / "up").symlink_to("..")
    os.mkfifo(script.parent / "pipe")
    (script.parent / "CON.txt").write_text("")

    answer = laptops.anna.ask(AnalyseScript(path=str(script)))

    assert isinstance(answer, ScriptRead)
    assert {file.path for file in answer.files} == {"train.py"}
    left = "\n".join(answer.skipped)
    assert all(name in left for name in ("passwords", "up", "pipe", "CON.txt"))
