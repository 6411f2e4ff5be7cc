"""``tandem tensorboard RUN``: exports a run's event files and opens TensorBoard on them, on this laptop
only."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections import deque
from pathlib import Path
from typing import Any

from app.cli import completion
from app.cli.command_line import add_subcommand, node_of
from app.cli.exit_codes import ExitCode
from app.cli.interrupts import Interrupts
from app.cli.screen import Screen
from core.report.tensorboard import check_installed, write_event_files
from core.supervisor import spawn
from core.vocabulary import answers, units, versions
from core.vocabulary.commands import GetRun
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import RunId
from core.vocabulary.phases import ended
from core.vocabulary.text import plain

START_S = 120.0
"""TensorBoard imports TensorFlow where it is installed: seconds, more on a busy laptop."""
END_S = 5.0
_ADDRESS = re.compile(r"TensorBoard \S+ at (http://\S+)")


def add_tensorboard(parsers: Any) -> None:
    parser = add_subcommand(
        parsers, "tensorboard", "show a run in TensorBoard, on this laptop alone", tensorboard, json=True
    )
    run = parser.add_argument("run", metavar="RUN", help="a run's id or a unique beginning of it")
    completion.completes(run, completion.runs)
    parser.add_argument(
        "--port", type=int, metavar="N", help="TensorBoard's port (default: 6006 or a free one)"
    )
    parser.add_argument(
        "--write-only", action="store_true", help="write the event files, say where, and start nothing"
    )


async def tensorboard(arguments: argparse.Namespace, screen: Screen) -> int:
    check_installed()
    async with node_of(arguments) as follower:
        details = await follower.submit(GetRun(run=RunId(arguments.run)), answers.RunDetails)
    logdir = await asyncio.to_thread(write_event_files, details, Path(details.entry.folder))
    if arguments.write_only:
        _say(screen, logdir, "")
        return ExitCode.OK
    if not ended(details.entry.phase):
        screen.say("The run is under way; this shows it up to now.")
    with Interrupts() as interrupts:
        return await _serve(logdir, arguments.port, screen, interrupts)


async def _serve(logdir: Path, port: int | None, screen: Screen, interrupts: Interrupts) -> int:
    process = await asyncio.create_subprocess_exec(
        *(*_program(), "--logdir", str(logdir), "--host", "127.0.0.1"),
        *(("--port", str(port)) if port is not None else ()),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        # TensorBoard only draws curves: the GPU is for training.
        env={**spawn.environment(), "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert process.stderr is not None
    words: deque[str] = deque(maxlen=20)
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    reading = asyncio.create_task(_read(process.stderr, words, address))
    stopping = asyncio.create_task(interrupts.wait_next())
    try:
        await asyncio.wait((address, stopping, reading), timeout=START_S, return_when="FIRST_COMPLETED")
        if stopping.done():
            return ExitCode.INTERRUPTED
        if not address.done():
            raise _unstarted(words, process.returncode is None and not reading.done())
        _say(screen, logdir, address.result())
        await asyncio.wait((stopping, reading), return_when="FIRST_COMPLETED")
        if not stopping.done():
            raise _unstarted(words, waited=False)
        return ExitCode.OK
    finally:
        stopping.cancel()
        await _end(process)
        reading.cancel()


def _program() -> tuple[str, ...]:
    if getattr(sys, "frozen", False):
        return sys.executable, spawn.TENSORBOARD_ARGUMENT
    # -P: without it `-m` looks into the working directory first, where a project may have such a folder.
    return sys.executable, "-P", "-m", "tensorboard.main"


async def _read(stream: asyncio.StreamReader, words: deque[str], address: asyncio.Future[str]) -> None:
    while line := await stream.readline():
        text = line.decode("utf-8", "replace")
        words.append(plain(text, 300))
        if (found := _ADDRESS.search(text)) and not address.done():
            address.set_result(found.group(1))


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), END_S)
        except TimeoutError:
            process.kill()
            await process.wait()


def _say(screen: Screen, logdir: Path, address: str) -> None:
    shows = f"TensorBoard shows the run at {address} (on this laptop only). Ctrl-C ends it."
    result = {"ok": True, "logdir": str(logdir), "address": address}
    screen.end(result, shows if address else f"Event files: {logdir}")


def _unstarted(words: deque[str], waited: bool) -> TandemError:
    last = next((line for line in reversed(words) if line), "")
    return TandemError(
        code="tensorboard-failed",
        what=f"TensorBoard did not start within {units.duration(START_S)}."
        if waited
        else f"TensorBoard ended: {last}",
        fix=f"Try another --port. {versions.install_fix('--upgrade tensorboard')}",
        detail="\n".join(words),
    )
