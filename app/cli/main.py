"""Runs one subcommand on an asyncio loop and turns every failure into a message and an exit code."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import traceback
from collections.abc import Sequence

from app.cli import command_line
from app.cli.exit_codes import ExitCode
from app.cli.screen import Lasting, LinesScreen, Screen, silence
from app.connection import CannotStart
from core.vocabulary.errors import Problem, TandemError


def main(argv: Sequence[str]) -> int:
    """Returns the process's exit code."""
    arguments = command_line.read(argv)
    screen: Screen
    if getattr(arguments, "jsonl", False):
        screen = LinesScreen()
    else:
        screen = Screen(json=getattr(arguments, "json", False))
    try:
        code: int = asyncio.run(arguments.runs(arguments, screen))
        Lasting(sys.stdout).flush()
        return code
    except KeyboardInterrupt:
        screen.say("Interrupted.")
        return ExitCode.INTERRUPTED
    except CannotStart as error:
        screen.problem(error.problem)
        return ExitCode.CANNOT_START
    except TandemError as error:
        screen.problem(error.problem)
        return ExitCode.REFUSED
    except BrokenPipeError:
        silence(sys.stdout)
        return ExitCode.FAILED
    except Exception as error:
        screen.problem(
            Problem(
                code="internal",
                what=f"Tandem failed because of a bug ({type(error).__name__}).",
                fix=f"Please report it, with what you did{_kept(error)}.",
            )
        )
        return ExitCode.FAILED


def _kept(error: BaseException) -> str:
    """Saves the traceback to a file and names it: people never see a traceback."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="tandem-failure-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return ""
    return f" and the file {file.name}"
