"""What can keep an environment from being made, in sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from core.vocabulary.environments import DISTRIBUTION, PYTHONS
from core.vocabulary.errors import Problem
from core.vocabulary.text import plain

_NO_SPACE = re.compile(r"no space left on device|not enough space|disk quota exceeded|os error 28", re.I)
_NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|Read timed out|ProxyError|name resolution"
    r"|Name or service not known|getaddrinfo failed|nodename nor servname|dns error|Failed to fetch"
    r"|error sending request|Network is unreachable|Connection refused|client error \(Connect\)",
    re.I,
)
_NO_VENV = re.compile(r"ensurepip|No module named venv", re.I)
_NO_PYTHON = re.compile(r"No interpreter found|No download found", re.I)
_ERROR = re.compile(r"\W*error\b|\w+Error:", re.I)
_NO_SOURCE = re.compile(
    r"No such file or directory: '(?P<path>.+?)'|Distribution not found at: (?P<address>\S+)"
    rf"|No matching distribution found for {DISTRIBUTION}|{DISTRIBUTION} was not found in the package"
)
_SAID_LINES = 40


def frozen() -> Problem:
    return Problem(
        code="environment-frozen",
        what="This Tandem is a program that carries its own Python and packages.",
        fix="Have the other laptop change: tandem environment NAME there. Or use the same program on both.",
    )


def unknown_source() -> Problem:
    return Problem(
        code="environment-unknown-source",
        what="It is not known where this Tandem was installed from.",
        fix="Name that wheel, folder or address in a terminal: tandem environment NAME --source WHEEL.",
    )


def no_such_python(python: str) -> Problem:
    return Problem(
        code="environment-no-such-python",
        what=f"Tandem does not run on Python {plain(python, 20) or '(none is named)'}.",
        fix=f"Choose one of these on both laptops: {', '.join(PYTHONS)}.",
    )


def another_release(label: str, version: str, made_for: str) -> Problem:
    return Problem(
        code="environment-other-release",
        what=f"This Tandem is made for {label} {made_for}, and {plain(version, 30)} is wanted.",
        fix="Get the newest Tandem on both laptops; then they want the same.",
    )


def taken(folder: Path, why: str) -> Problem:
    """``folder`` has something else in it."""
    return Problem(
        code="environment-folder-taken",
        what=f"{folder} is there already, and is no environment with these versions ({why}).",
        fix="Delete it if you do not need it, or name another one: tandem environment --folder DIR.",
    )


def under_way(folder: Path) -> Problem:
    return Problem(
        code="environment-under-way",
        what=f"Another Tandem is making {folder} at this moment.",
        fix="Wait until it is done there, or stop it there.",
    )


def unwritable(folder: Path, error: OSError) -> Problem:
    if _NO_SPACE.search(str(error)):
        return no_space(folder, 0)
    return Problem(
        code="environment-unwritable",
        what=f"{folder} cannot be made ({error.strerror or error}).",
        fix="Make its folder writable for you, or name another one: tandem environment --folder DIR.",
    )


def no_space(folder: Path, needed_bytes: int) -> Problem:
    needed = f"about {needed_bytes / (1 << 30):.0f} GB are needed there" if needed_bytes else "it is full"
    return Problem(
        code="environment-no-space",
        what=f"There is too little space on the disk of {folder}: {needed}.",
        fix="Free some space, or name a folder on another disk: tandem environment --folder DIR.",
    )


def too_long(words: str, limit_s: float) -> Problem:
    return Problem(
        code="environment-too-long",
        what=f"{words} did not end within {limit_s / 60:.0f} minutes.",
        fix="Try again, in a faster network: what was downloaded whole is not downloaded again.",
    )


def failed(words: str, lines: Sequence[str], python: str, folder: Path) -> Problem:
    """``lines``: what the command said."""
    said = "\n".join(lines)
    detail = "\n".join(lines[-_SAID_LINES:])
    if _NO_SPACE.search(said):
        return no_space(folder, 0)
    if _NO_NETWORK.search(said):
        return Problem(
            code="environment-no-network",
            what=f"{words} failed: the internet, or the place where packages come from, was not reached.",
            fix="Connect this laptop to the internet (a proxy or firewall may stand between), and try again.",
            detail=detail,
        )
    if _NO_VENV.search(said):
        return Problem(
            code="environment-no-venv",
            what=f"The Python {python} of this system cannot make environments: its venv is not installed.",
            fix=f"Install it (Debian, Ubuntu: sudo apt install python{python}-venv), and try again.",
            detail=detail,
        )
    if _NO_PYTHON.search(said):
        return Problem(
            code="environment-no-python",
            what=f"There is no Python {python} here, and uv could not fetch it.",
            fix=f"Install Python {python}, and try again.",
            detail=detail,
        )
    if source := _NO_SOURCE.search(said):
        where = source["path"] or source["address"] or "the place where packages come from"
        return Problem(
            code="environment-no-source",
            what=f"Tandem was installed from {plain(where, 200)}, and is not there any more.",
            fix="Put it back there, or install Tandem again from where you have it now; then try again.",
            detail=detail,
        )
    errors = [line for line in lines if _ERROR.match(line)] or lines or ("it said nothing",)
    return Problem(
        code="environment-failed",
        what=f"{words} failed: {plain(errors[-1], 300)}",
        fix="Try again; if it fails again, report it with what it said.",
        detail=detail,
    )


def not_as_wanted(wanted: str, said: str) -> Problem:
    return Problem(
        code="environment-not-as-wanted",
        what=f"The new environment does not have {wanted}: {plain(said, 300) or 'it does not start'}",
        fix="Try again; if it fails again, report it with this message.",
    )
