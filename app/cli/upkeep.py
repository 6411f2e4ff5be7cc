"""``tandem doctor``: shows what works here and what does not, each problem with its fix. ``tandem clear``:
removes what other laptops sent and their runs left on this one."""

from __future__ import annotations

import argparse

from app.cli.command_line import argument, node_subcommand
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.follower import Follower
from core.vocabulary import units
from core.vocabulary.answers import Cleared, Done, Finding, Findings
from core.vocabulary.commands import Clear, Mend, RunDoctor
from core.vocabulary.text import plain

MARKS = {"ok": ("✓", "green"), "note": ("·", "dim"), "warning": ("!", "yellow"), "error": ("✗", "bold red")}


@node_subcommand(
    "check what works on this laptop, and how to fix the rest",
    argument("--deep", action="store_true", help="also load TensorFlow (takes some seconds)"),
    argument("--mend", metavar="CODE", help="fix this finding, then check again"),
)
async def doctor(arguments: argparse.Namespace, screen: Screen, follower: Follower) -> int:
    if arguments.mend is not None:
        await follower.submit(Mend(code=arguments.mend), Done)
    findings = (await follower.submit(RunDoctor(deep=arguments.deep), Findings)).findings
    failed = any(finding.level == "error" for finding in findings)
    if screen.json:
        screen.result({"ok": not failed, "findings": findings})
    else:
        for finding in findings:
            _say(finding, screen)
    return ExitCode.FAILED if failed else ExitCode.OK


def _say(finding: Finding, screen: Screen) -> None:
    mark, style = MARKS[finding.level]
    screen.say(f"{mark} {finding.topic}: {plain(finding.what, 500)}", style)
    if finding.fix:
        screen.say(f"    {plain(finding.fix, 600)}")
    if finding.mend:
        screen.say(f"    Tandem can fix this: tandem doctor --mend {finding.code}")


@node_subcommand(
    "remove other laptops' projects, data and reports, and the files of their runs",
    more="The record of each run stays. Your own runs lose only outputs-left: outputs that could not be "
    "brought back.",
)
async def clear(arguments: argparse.Namespace, screen: Screen, follower: Follower) -> int:
    freed = (await follower.submit(Clear(), Cleared)).freed_bytes
    screen.end({"ok": True, "freed_bytes": freed}, f"Freed {units.size(freed)}.")
    return ExitCode.OK
