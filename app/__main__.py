"""Tandem's entry point. A subcommand runs without a window and without Qt; otherwise the window opens."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

WINDOW = "app.desktop"
SCRIPTS = (".py", ".pyw", ".ipynb")
"""File types a desktop may pass to the window; the core's own list loads after the first paint."""


def main(argv: Sequence[str] | None = None, *, window: str = WINDOW) -> int:
    """Returns the process's exit code."""
    given = list(sys.argv[1:] if argv is None else argv)

    if "_ARGCOMPLETE" in os.environ:
        # During shell completion the line is in the environment: no window must open.
        from app.cli import command_line, completion

        completion.answer(command_line.build())
        return 0

    if wants_window(given):
        # Runs first and imports nothing of the core: the window paints before it loads what it needs.
        return _open_window(given, window)

    from core.supervisor import spawn

    # Tandem restarts itself as one of these.
    match given:
        case [spawn.HIDDEN_ARGUMENT, *rest]:
            code: int = import_module("core.trainer.__main__").run(rest)
            return code
        case [spawn.PROBE_ARGUMENT]:
            import_module("core.trainer.probe").main()
            return 0
        case [spawn.SEAL_ARGUMENT]:
            import_module("core.trainer.sealed.namespace").enter()
            return 0

    from app.cli.main import main as run_subcommand

    return run_subcommand(given)


def wants_window(argv: Sequence[str]) -> bool:
    """True if only ``--home DIR`` and a script are given: any other argument would be a subcommand."""
    match list(argv):
        case ["--home", _, *rest]:
            pass
        case [one, *rest] if one.startswith("--home="):
            pass
        case rest:
            pass
    return not rest or (len(rest) == 1 and rest[0].endswith(SCRIPTS))


def _open_window(argv: Sequence[str], name: str) -> int:
    try:
        window = import_module(name)
    except ImportError as error:
        from app.cli.exit_codes import ExitCode
        from app.system import qt_libraries

        if libraries := qt_libraries.missing(os.environ, sys.platform):
            sys.stderr.write(qt_libraries.words(libraries))
            return ExitCode.CANNOT_START
        why = "is not part of this installation" if error.name == name else f"can't be loaded ({error})"
        sys.stderr.write(
            f"Tandem's window {why}.\nEverything it does works from here, too: see tandem --help, "
            "and tandem doctor.\n"
        )
        return ExitCode.CANNOT_START
    code: int = window.main(argv)
    return code


if __name__ == "__main__":
    sys.exit(main())
