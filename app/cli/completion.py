"""Shell completion: subcommands, options, paired devices and runs. Starts no node, changes nothing.

At each press of Tab the shell starts a new ``tandem`` with the line in the environment (argcomplete's
protocol).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from core.home import trust_file
from core.home.home import Home, choose
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import Role
from core.vocabulary.run_folder import SUMMARY
from core.vocabulary.text import plain

Completer = Callable[..., list[str]]
NAME_LENGTH = 63


def answer(parser: argparse.ArgumentParser) -> None:
    """Prints the completions for the shell and ends the process."""
    import argcomplete

    argcomplete.autocomplete(parser)


def devices(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """The paired devices; finding others would need a node."""
    home = _home(parsed_args)
    return [plain(name, NAME_LENGTH) for name in trust_file.names(home.folder)] if home is not None else []


def device_list(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """``anna,ben``: each device once."""
    before, comma, _last = prefix.rpartition(",")
    return [
        f"{before}{comma}{name}"
        for name in devices(parsed_args)
        if name.casefold() not in before.casefold().split(",")
    ]


def device_roles(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """``anna=worker``."""
    name, equals, _role = prefix.partition("=")
    return [f"{name}={role}" for role in Role] if equals else device_values(parsed_args)


def device_values(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """``anna=``, for a value that follows."""
    return [f"{name}=" for name in ("me", *devices(parsed_args))]


def runs(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Ids of the runs in the home, newest first."""
    home = _home(parsed_args)
    try:
        found = [] if home is None else [each.name for each in os.scandir(home.runs) if each.is_dir()]
    except OSError:
        return []
    return sorted((run for run in found if home and (home.runs / run / SUMMARY).is_file()), reverse=True)


def _home(parsed_args: argparse.Namespace) -> Home | None:
    try:
        return choose(getattr(parsed_args, "home", None))
    except TandemError:
        return None
