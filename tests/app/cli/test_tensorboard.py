from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.cli import command_line, tensorboard
from app.cli.exit_codes import ExitCode
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


async def test_event_files_are_written_and_how_to_open_them_is_said(
    node: ScriptedNode, tmp_path: Path
) -> None:
    screen = Words()
    arguments = Namespace(run="2026")
    assert await tensorboard.tensorboard(arguments, screen) == ExitCode.OK
    assert node.commands == [GetRun(run=RunId("2026"))]
    assert f"Event files: {tmp_path / 'tensorboard'}" in screen.said
    assert f"-m tensorboard.main --logdir {tmp_path / 'tensorboard'}" in screen.said
    assert list((tmp_path / "tensorboard").rglob("events.out.tfevents.*"))


async def test_without_the_extra_nothing_is_asked(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.report.tensorboard.find_spec", lambda name: None)
    with pytest.raises(TandemError) as caught:
        await tensorboard.tensorboard(Namespace(run="2026"), Words())
    assert "-m pip install 'tensorboard>=2.20'" in caught.value.fix
    assert node.commands == []
