"""``tandem environment``: for a paired laptop, or for given versions."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as changed

from app.cli import command_line
from app.cli.environment import environment, make, ready_lines, versions_of
from app.cli.exit_codes import ExitCode
from app.connection import start
from core.environment.recipe import Recipe, RecipeStep, WantedVersions, recipe
from core.home import home as homes
from core.vocabulary import environments
from core.vocabulary.environments import EnvironmentMaker
from core.vocabulary.errors import TandemError
from core.vocabulary.versions import Versions, installed
from tests.app.cli.scripted_node import VERSIONS, ScriptedNode, Words, follower, linked, paired
from tests.core.environment.tiny_tandem import wheel

THEIRS = changed(VERSIONS, python="3.12")
OURS = installed()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    maker, wanted = EnvironmentMaker(source=wheel(tmp_path)), WantedVersions(OURS.python)
    return replace(
        recipe(maker, wanted, OURS, folder=tmp_path / "made", hashes=tmp_path / "none"), disk_bytes=0
    )


async def ask(node: ScriptedNode, name: str = "other", limit_s: float = 0.0) -> Versions:
    with follower(node) as events:
        return await versions_of(events, name, VERSIONS, limit_s)


async def test_it_is_for_the_versions_of_the_laptop_that_is_named() -> None:
    node = ScriptedNode()
    node.happen(paired())
    node.happen(changed(linked(), versions=THEIRS))
    assert await ask(node) == THEIRS


@pytest.mark.parametrize(
    ("theirs", "code"),
    [
        (None, "not-connected"),
        (VERSIONS, "versions-agree"),
        (changed(THEIRS, protocol=2), "versions-differ"),
    ],
)
async def test_where_nothing_can_be_made_it_is_said_why(theirs: Versions | None, code: str) -> None:
    node = ScriptedNode()
    node.happen(paired())
    if theirs is not None:
        node.happen(changed(linked(), versions=theirs))
    with pytest.raises(TandemError) as refused:
        await ask(node)
    assert refused.value.code == code and refused.value.fix


async def test_a_stranger_has_no_versions() -> None:
    with pytest.raises(TandemError, match="No device is called"):
        await ask(ScriptedNode(), "nobody")


@pytest.mark.parametrize(
    ("words", "code"), [((), "bad-option"), (("--python", "3.14"), "environment-no-such-python")]
)
async def test_what_is_not_said_or_cannot_be_starts_nothing(words: tuple[str, ...], code: str) -> None:
    arguments = command_line.read(["environment", *words])
    with pytest.raises(TandemError) as refused:
        await environment(arguments, Words())
    assert refused.value.code == code


async def test_where_tandem_is_to_come_from_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if nobody knows its source; a name is a path, never looked up in an index."""
    monkeypatch.setattr(environments, "find_maker", EnvironmentMaker)
    monkeypatch.chdir(tmp_path)
    words = ["environment", "--python", OURS.python, "--folder", str(tmp_path)]
    with pytest.raises(TandemError) as refused:
        await environment(command_line.read(words), Words())
    assert refused.value.code == "environment-unknown-source"
    asked: list[Recipe] = []

    async def make(made: Recipe, screen: object, **_: object) -> int:
        asked.append(made)
        return 0

    monkeypatch.setattr("app.cli.environment.make", make)
    monkeypatch.setattr("app.cli.environment.extras_here", tuple)
    for source in ("tandem-laptops", "https://a.example/t.whl"):
        await environment(command_line.read([*words, "--source", source]), Words())
    assert [made.steps[-2].command[-1] for made in asked] == [
        str(tmp_path / "tandem-laptops"),
        "tandem-laptops @ https://a.example/t.whl",
    ]


@pytest.mark.real
async def test_that_a_tandem_runs_here_is_found_out_for_versions_that_are_named_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []

    async def make(made: Recipe, screen: object, *, runs_here: bool, home: str) -> int:
        told.append(runs_here)
        return 0

    monkeypatch.setattr("app.cli.environment.make", make)
    folder = str(tmp_path / "home")
    arguments = command_line.read(
        ["environment", "--python", OURS.python, "--source", "/t", "--home", folder]
    )
    await environment(arguments, Words())
    assert not Path(folder).exists(), "none is started for the question"
    async with start(homes.choose(folder)):
        await environment(arguments, Words())
    assert told == [False, True]


@pytest.mark.real
async def test_it_shows_what_it_does_and_how_to_go_on(made: Recipe) -> None:
    screen = Words()
    assert await make(made, screen) == ExitCode.OK
    assert all(str(step) in screen.said for step in made.steps)
    assert f"Ready: Tandem 0.1.0 (Python {OURS.python}," in screen.said
    assert f"Start it: {made.tandem}" in screen.said and made.tandem.exists()
    again = Words(json=True)
    assert await make(made, again) == ExitCode.OK
    assert again.told[0]["ok"] and again.told[0]["tandem"] == str(made.tandem)


@pytest.mark.real
@pytest.mark.skipif(sys.platform == "win32", reason="no signals to send")
async def test_ctrl_c_leaves_nothing(made: Recipe) -> None:
    endless = (sys.executable, "-c", "print('begun', flush=True); import time; time.sleep(600)")
    made, screen = replace(made, steps=(RecipeStep("Working", endless),)), Words()
    say = screen.say

    def interrupted(text: str, style: str = "") -> None:
        say(text, style)
        if text == "begun":
            assert made.folder.exists()
            os.kill(os.getpid(), signal.SIGINT)

    screen.say = interrupted  # type: ignore[method-assign]
    assert await make(made, screen) == ExitCode.INTERRUPTED
    assert "begun" in screen.said and "the unfinished environment was removed" in screen.said
    assert not made.folder.exists()


def test_what_to_do_next_depends_on_what_runs_here_and_on_the_menu(made: Recipe) -> None:
    def lines(*, runs_here: bool = False, in_menu: bool = False, home: str = "") -> str:
        return "\n".join(ready_lines(made, "Tandem 0.1.0", runs_here=runs_here, in_menu=in_menu, home=home))

    assert f"Start it: {made.tandem}\n" in lines()
    assert f"Start it: {made.tandem} --home /h\n" in lines(home="/h")

    assert "First close the Tandem that is open here" not in lines()
    assert "First close the Tandem that is open here" in lines(runs_here=True)
    assert f"{made.tandem} install-desktop" in lines(in_menu=True)
    assert f"{made.python} -m pip install NAME" in lines()
