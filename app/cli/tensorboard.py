"""``tandem tensorboard RUN``: exports a run as TensorBoard's event files, and says how to open them."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from pathlib import Path

from app.cli import completion
from app.cli.command_line import argument, node_of, subcommand
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from core.report.tensorboard import check_installed, write_event_files
from core.vocabulary import answers, versions
from core.vocabulary.commands import GetRun
from core.vocabulary.ids import RunId
from core.vocabulary.phases import ended


@subcommand(
    "write a run's event files for TensorBoard",
    argument("run", metavar="RUN", help="a run's id or a unique beginning of it", completer=completion.runs),
)
async def tensorboard(arguments: argparse.Namespace, screen: Screen) -> int:
    check_installed()
    async with node_of(arguments) as follower:
        details = await follower.submit(GetRun(run=RunId(arguments.run)), answers.RunDetails)
    logdir = await asyncio.to_thread(write_event_files, details, Path(details.entry.folder))
    if not ended(details.entry.phase):
        screen.say("The run is under way; this shows it up to now.")
    # -P: without it `-m` looks into the working directory first, where a project may have such a folder.
    here = [sys.executable, "-P", "-m", "tensorboard.main"]
    start = shlex.join([*(["tensorboard"] if versions.is_frozen() else here), "--logdir", str(logdir)])
    screen.end(
        {"ok": True, "logdir": str(logdir), "start": start}, f"Event files: {logdir}\nOpen them: {start}"
    )
    return ExitCode.OK
