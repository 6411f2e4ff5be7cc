from __future__ import annotations

import asyncio
import json
import urllib.request
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.cli import command_line, tensorboard
from app.cli.exit_codes import ExitCode
from app.cli.interrupts import Interrupts
from app.connection import NodeConnection
from core.vocabulary import events as ev
from core.vocabulary import wire
from core.vocabulary.answers import RunDetails
from core.vocabulary.commands import GetRun
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import RunId
from core.vocabulary.run_folder import METRICS
from tests.app.cli.scripted_node import ScriptedNode, Words
from tests.core.cluster.laptops import ANNA
from tests.core.run.told import run_told, steps_of


@pytest.fixture
def told(tmp_path: Path) -> RunDetails:
    details = run_told()
    steps = [ev.MemberProgressed(run=details.entry.run, device=ANNA, progress=step) for step in steps_of(5)]
    (tmp_path / METRICS).write_bytes(b"".join(wire.to_json(step) + b"\n" for step in steps))
    return RunDetails(entry=replace(details.entry, folder=str(tmp_path)), plan=details.plan)


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, told: RunDetails) -> ScriptedNode:
    node = ScriptedNode()
    node.answers[GetRun] = told

    @asynccontextmanager
    async def connect(home: object) -> AsyncIterator[NodeConnection]:
        yield NodeConnection(node, own=False)

    monkeypatch.setattr(command_line, "connect", connect)
    monkeypatch.setattr(command_line, "home_of", lambda arguments: None)
    return node


async def test_event_files_alone_are_written_and_named(node: ScriptedNode, tmp_path: Path) -> None:
    screen = Words()
    arguments = Namespace(run="2026", port=None, write_only=True)
    assert await tensorboard.tensorboard(arguments, screen) == ExitCode.OK
    assert node.commands == [GetRun(run=RunId("2026"))]
    assert f"Event files: {tmp_path / 'tensorboard'}" in screen.said.replace("\n", "")
    assert list((tmp_path / "tensorboard").rglob("events.out.tfevents.*"))


async def test_without_the_extra_nothing_is_asked(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.report.tensorboard.find_spec", lambda name: None)
    with pytest.raises(TandemError) as caught:
        await tensorboard.tensorboard(Namespace(run="2026", port=None, write_only=False), Words())
    assert "-m pip install 'tensorboard>=2.20'" in caught.value.fix
    assert node.commands == []


@pytest.mark.real
async def test_tensorboard_shows_the_run_on_loopback_until_it_is_interrupted(
    node: ScriptedNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ``python -m`` looks into the working directory first: a package there is not run instead.
    (tmp_path / "cwd" / "tensorboard").mkdir(parents=True)
    for module in ("__init__.py", "main.py"):
        (tmp_path / "cwd" / "tensorboard" / module).write_text("raise SystemExit('not me')")
    monkeypatch.chdir(tmp_path / "cwd")
    asked = Interrupts()
    monkeypatch.setattr(tensorboard, "Interrupts", lambda: asked)
    said: asyncio.Queue[str] = asyncio.Queue()
    monkeypatch.setattr(tensorboard, "_say", lambda screen, logdir, address: said.put_nowait(address))
    serving = asyncio.create_task(
        tensorboard.tensorboard(Namespace(run="2026", port=0, write_only=False), Words())
    )
    told = asyncio.create_task(said.get())
    await asyncio.wait((told, serving), timeout=150, return_when="FIRST_COMPLETED")
    assert told.done(), serving
    address = told.result()
    assert address.startswith("http://127.0.0.1:")

    def tags() -> dict[str, dict[str, object]]:
        with urllib.request.urlopen(f"{address}data/plugin/scalars/tags", timeout=60) as answer:
            found: dict[str, dict[str, object]] = json.load(answer)
            return found

    async with asyncio.timeout(120):
        while not (found := await asyncio.to_thread(tags)):  # noqa: ASYNC110
            await asyncio.sleep(0.2)  # TensorBoard reads the files in its own time
    assert "steps/loss" in found["Anna-s-aaaaaaaa"]
    asked.interrupt()
    assert await asyncio.wait_for(serving, 60) == ExitCode.OK


@pytest.mark.real
async def test_a_tensorboard_that_does_not_start_says_why(node: ScriptedNode) -> None:
    with pytest.raises(TandemError) as caught:
        await tensorboard.tensorboard(Namespace(run="2026", port=99_999_999, write_only=False), Words())
    assert caught.value.code == "tensorboard-failed"
    assert caught.value.problem.detail
