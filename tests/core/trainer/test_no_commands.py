"""A script in training cannot command its node, whatever processes it starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.home import socket_path
from core.home.home import Home, prepare
from core.node.client import Client
from core.node.local_socket import LocalSocket
from core.vocabulary.answers import Done
from core.vocabulary.commands import StopRun
from tests.core.fake_node import FakeNode
from tests.core.trainer.attended import Attended

pytestmark = [pytest.mark.real, pytest.mark.cluster, pytest.mark.timeout(600)]

COMMANDS = """
import socket, subprocess, sys

CALLS = '''
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
try:
    connection.sendall(b'{"id": 1, "type": "answer_consent", "run": "r", "decision": "always"}')
    connection.sendall(chr(10).encode())
except OSError:
    pass  # it was closed
print(connection.makefile().readline(), flush=True)
'''
exec(CALLS)
subprocess.run([sys.executable, "-c", CALLS, sys.argv[1]], start_new_session=True, check=True)
"""


async def test_neither_a_script_nor_what_it_starts_commands_the_node(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    prepare(home)
    node = FakeNode()
    server = LocalSocket(home, node)
    await server.open()
    script = tmp_path / "project" / "train.py"
    script.parent.mkdir()
    script.write_text(COMMANDS)

    trainer = Attended(
        tmp_path / "log",
        folder=str(script.parent),
        script="train.py",
        arguments=(str(socket_path.find(home)),),
    )
    exit = await trainer.exit()
    assert exit.reason == "finished", (exit, trainer.text("stderr"))

    told = [json.loads(line) for line in trainer.text().split("\n") if line]
    assert [line.get("problem", {}).get("code") for line in told] == ["script-commands"] * 2
    assert node.commands == [] and node.listeners == 0
    client = await Client.connect(home)
    assert await client.submit(StopRun()) == Done(), "this user's own commands are taken"
    await client.close()
    await server.close()
