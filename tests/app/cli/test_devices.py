import io
from argparse import Namespace

import pytest
from rich.console import Console

from app.cli import devices
from app.cli.devices import forget
from app.cli.exit_codes import ExitCode
from core.vocabulary import events as ev
from core.vocabulary.commands import Forget
from core.vocabulary.errors import TandemError
from tests.app.cli.scripted_node import (
    OTHER,
    PROBLEM,
    THIRD,
    ScriptedNode,
    Words,
    follower,
    found,
    linked,
    paired,
)


def test_the_table_has_this_laptop_first_then_the_paired_ones() -> None:
    node = ScriptedNode()
    for event in (
        ev.DeviceFound(device=THIRD, name="a stranger\x1b[2J", addresses=("192.168.1.9:27600",)),
        paired(),
        linked(),
        ev.LinkDown(device=OTHER, problem=PROBLEM),
    ):
        node.happen(event)
    out = io.StringIO()
    Console(file=out, width=160).print(devices._table(node.state))
    _, me, other, stranger = out.getvalue().splitlines()
    assert me.split()[:3] == ["here", "aaaaaaaa", "This"]
    assert "Not connected" in other, "in the words of its card"
    assert "It did not work. Do this." in other
    assert "a stranger " in stranger
    assert "\x1b" not in stranger


async def test_a_paired_device_is_forgotten() -> None:
    node, screen = ScriptedNode(), Words()
    node.happen(paired())
    with follower(node) as events:
        assert await forget(Namespace(device="other"), screen, events) == ExitCode.OK
    assert node.commands == [Forget(device=OTHER)]
    assert screen.said.startswith("other is forgotten.")


async def test_a_device_that_is_not_paired_cannot_be_forgotten() -> None:
    node = ScriptedNode()
    node.happen(found())
    with follower(node) as events, pytest.raises(TandemError, match="No device is called"):
        await forget(Namespace(device="other"), Words(), events)
    assert node.commands == []
