"""``tandem doctor``: shows what works here and what does not, each problem with its fix."""

from __future__ import annotations

import argparse
from typing import Any

from app.cli.command_line import add_subcommand, node_of
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.follower import Follower
from core.vocabulary.answers import Done, Finding, Findings
from core.vocabulary.commands import Mend, RunDoctor
from core.vocabulary.text import plain

MARKS = {"ok": ("✓", "green"), "note": ("·", "dim"), "warning": ("!", "yellow"), "error": ("✗", "bold red")}


def add_doctor(parsers: Any) -> None:
    parser = add_subcommand(
        parsers, "doctor", "check what works on this laptop, and how to fix the rest", doctor, json=True
    )
    parser.add_argument("--deep", action="store_true", help="also load TensorFlow (takes some seconds)")
    parser.add_argument("--mend", metavar="CODE", help="let Tandem fix this finding, then check again")


async def doctor(arguments: argparse.Namespace, screen: Screen) -> int:
    async with node_of(arguments) as follower:
        return await doctor_on(follower, screen, deep=arguments.deep, mend=arguments.mend)


async def doctor_on(follower: Follower, screen: Screen, *, deep: bool, mend: str | None) -> int:
    if mend is not None:
        await follower.submit(Mend(code=mend), Done)
    findings = (await follower.submit(RunDoctor(deep=deep), Findings)).findings
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
