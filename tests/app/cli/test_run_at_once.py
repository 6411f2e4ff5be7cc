"""Two people press Enter on ``tandem run`` at once: processes, each with its own node."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import sys
import termios
from pathlib import Path
from typing import Self

import pytest

from app.cli.exit_codes import ExitCode
from tests.core.nodes import node, pair

pytestmark = [
    pytest.mark.real,
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.name != "posix", reason="types into terminals as POSIX has them"),
]
ROOT = Path(__file__).parents[3]
LIMIT_S = 240
SCRIPT = """
import keras
import numpy as np

data = np.ones((64, 4), "float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
model.compile(optimizer="sgd", loss="mse")
model.fit(data, data[:, :2], batch_size=16, epochs=2, verbose=0)
"""
QUESTION = "run this here? always"
LOST = "and that run goes first."


class Terminal:
    """``tandem`` on its own terminal, with a person who reads and types."""

    def __init__(self, *argv: str) -> None:
        self._argv = argv
        self._seen = ""
        self._more = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._screen, slave = pty.openpty()
        termios.tcsetwinsize(slave, (50, 200))
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "app", *self._argv),
            cwd=ROOT,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TERM": "dumb"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        asyncio.get_running_loop().add_reader(self._screen, self._read)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        asyncio.get_running_loop().remove_reader(self._screen)
        os.close(self._screen)

    def _read(self) -> None:
        try:
            self._seen += os.read(self._screen, 65536).decode("utf-8", "replace")
        except OSError:  # the program has ended
            asyncio.get_running_loop().remove_reader(self._screen)
        self._more.set()

    @property
    def seen(self) -> str:
        return " ".join(self._seen.split())

    async def wait_seen(self, words: str) -> Self:
        while words not in self.seen:
            assert self.process.returncode is None, self.seen
            self._more.clear()
            await self._more.wait()
        return self

    def types(self, text: str) -> None:
        os.write(self._screen, text.encode())


async def paired_homes(base: Path) -> None:
    async with node(base, "anna") as anna, node(base, "ben") as ben:
        await pair(anna, ben)


async def asked(*terminals: Terminal) -> tuple[Terminal, Terminal]:
    """The terminal that got the question, and the other."""
    waits = [asyncio.create_task(each.wait_seen(QUESTION)) for each in terminals]
    done, rest = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    (loser,) = [task.result() for task in done]
    (winner,) = [each for each in terminals if each is not loser]
    return loser, winner


@pytest.mark.parametrize(
    "answer", ["once", *(pytest.param(answer, marks=pytest.mark.complete) for answer in ("no", "Ctrl-C"))]
)
async def test_one_of_two_bare_runs_goes_first_and_the_other_stays_to_be_asked(
    tmp_path: Path, answer: str
) -> None:
    script = tmp_path / "somewhere" / "project" / "train.py"
    script.parent.mkdir(parents=True)
    script.write_text(SCRIPT)
    async with asyncio.timeout(LIMIT_S):
        await paired_homes(tmp_path)
        commands = [("run", str(script), "--home", str(tmp_path / name)) for name in ("anna", "ben")]
        async with Terminal(*commands[0]) as anna, Terminal(*commands[1]) as ben:
            loser, winner = await asked(anna, ben)
            assert LOST in loser.seen and LOST not in winner.seen
            assert loser.process.returncode is winner.process.returncode is None
            if answer == "Ctrl-C":
                loser.process.send_signal(signal.SIGINT)
            else:
                loser.types(f"{answer}\n")
            codes = [await each.process.wait() for each in (winner, loser)]
            await asyncio.sleep(0.1)
    expected = {
        "once": [ExitCode.OK, ExitCode.REFUSED],
        "no": [ExitCode.REFUSED, ExitCode.REFUSED],
        "Ctrl-C": [ExitCode.REFUSED, ExitCode.INTERRUPTED],
    }
    assert codes == expected[answer], (winner.seen, loser.seen)
    assert "Traceback" not in winner.seen + loser.seen
    assert ("The run is finished." in winner.seen) == ("The run is finished." in loser.seen)
    assert ("The run is finished." in winner.seen) == (answer == "once")
    assert answer == "once" or "did not allow the script to run there" in winner.seen
