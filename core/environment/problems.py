"""Problems that can occur while making an environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from core.vocabulary import units
from core.vocabulary.environments import DISTRIBUTION, PYTHONS
from core.vocabulary.errors import Problem
from core.vocabulary.text import plain

_NO_SPACE = re.compile(
    r"(?:no space left on device|not enough space|disk quota exceeded|os error 28)"
    r"(?:.*?(?:: '|at path \")(?P<path>[^'\"]+))?",
    re.I,
)
_NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|Read timed out|ProxyError|name resolution"
    r"|Name or service not known|getaddrinfo failed|nodename nor servname|dns error|Failed to fetch"
    r"|error sending request|Network is unreachable|Connection refused|client error \(Connect\)",
    re.I,
)
_NO_VENV = re.compile(r"ensurepip|No module named venv", re.I)
_NO_PYTHON = re.compile(r"No interpreter found|No download found", re.I)
_ERROR = re.compile(r"\W*error\b|\w+Error:", re.I)
_WARNING = re.compile(r"\W*warning\b", re.I)
_NOTHING_FOUND = re.compile(r"No matching distribution found for")
_OTHERS_FOUND = re.compile(r"\(from versions: (?!none)")
"""Shows that the index was reached, despite earlier retries."""
_GAVE_UP = re.compile(r"Retry\(total=0\b.*ResolutionImpossible", re.S)
"""The last output of a pip that has constraints and reached no index: it blames the constraints."""
_SAID_LINES = 40


def frozen() -> Problem:
    return Problem(
        code="environment-frozen",
        what="This Tandem is a bundled program with its own Python and packages.",
        fix="Run tandem environment NAME on the other laptop instead, or use the same program on both.",
    )


def unknown_source() -> Problem:
    return Problem(
        code="environment-unknown-source",
        what="Tandem does not know where it was installed from.",
        fix="Give that wheel, folder or address in a terminal: tandem environment NAME --source WHEEL.",
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
        what=f"This Tandem needs a release of {label} {made_for}, not {plain(version, 30)}.",
        fix="Install the newest Tandem on both laptops, without pre-releases of its packages.",
    )


def taken(folder: Path, why: str) -> Problem:
    """``folder`` has something else in it."""
    return Problem(
        code="environment-folder-taken",
        what=f"{folder} already exists, and is not an environment with these versions ({why}).",
        fix="Delete it if you do not need it, or name another one: tandem environment --folder DIR.",
    )


def under_way(folder: Path) -> Problem:
    return Problem(
        code="environment-under-way",
        what=f"Another Tandem is making {folder} right now.",
        fix="Wait until it is done, or stop it there.",
    )


def unwritable(folder: Path, error: OSError) -> Problem:
    if _NO_SPACE.search(str(error)):
        return full(folder, str(error.filename or ""))
    return Problem(
        code="environment-unwritable",
        what=f"{folder} cannot be made ({error.strerror or error}).",
        fix="Make its folder writable for you, or name another one: tandem environment --folder DIR.",
    )


def no_space(folder: Path, needed_bytes: int) -> Problem:
    needed = f"about {units.size(needed_bytes)} are needed there"
    return Problem(
        code="environment-no-space",
        what=f"There is too little space on the disk of {folder}: {needed}.",
        fix="Free some space, or name a folder on another disk: tandem environment --folder DIR.",
    )


def full(folder: Path, where: str) -> Problem:
    """``where``: the path that could not be written; ``""``: unknown."""
    disk = plain(where, 200) or f"{folder}, or of the folder for temporary files"
    return Problem(
        code="environment-no-space",
        what=f"There is no space left on the disk of {disk}.",
        fix="Free some space there, and try again. Set TMPDIR to use another folder for temporary files.",
    )


def not_started(words: str, program: str, error: OSError) -> Problem:
    return Problem(
        code="environment-failed",
        what=f"{words} failed: {program} cannot be started ({error.strerror or error}).",
        fix="Install it again if it is gone, and try again.",
    )


def too_long(words: str, limit_s: float) -> Problem:
    return Problem(
        code="environment-too-long",
        what=f"{words} did not finish within {units.duration(limit_s)}.",
        fix="Try again on a faster network. Complete downloads are kept.",
    )


def failed(words: str, lines: Sequence[str], python: str, folder: Path, source: str) -> Problem:
    """``lines``: the command's output. ``source``: where Tandem was to be installed from."""
    everything = "\n".join(lines)
    # A retry, which a warning reports, may have succeeded.
    said = "\n".join(line for line in lines if not _WARNING.match(line))
    detail = "\n".join(lines[-_SAID_LINES:])
    if no_space := _NO_SPACE.search(said):
        return full(folder, no_space["path"] or "")
    nothing_found = _NOTHING_FOUND.search(said) and not _OTHERS_FOUND.search(said)
    if _NO_NETWORK.search(everything if nothing_found or _GAVE_UP.search(everything) else said):
        return Problem(
            code="environment-no-network",
            what=f"{words} failed: the internet or the package index could not be reached.",
            fix="Connect this laptop to the internet, check any proxy or firewall, and try again.",
            detail=detail,
        )
    if _NO_VENV.search(said):
        command = f"sudo apt install python{python}-venv"
        return Problem(
            code="environment-no-venv",
            what=f"This system's Python {python} cannot make environments: its venv module is not installed.",
            fix=f"Install it (Debian, Ubuntu: {command}), and try again.",
            detail=detail,
            command=command,
        )
    if _NO_PYTHON.search(said):
        return Problem(
            code="environment-no-python",
            what=f"There is no Python {python} here, and uv could not fetch it.",
            fix=f"Install Python {python}, and try again.",
            detail=detail,
        )
    if _is_gone(source, said):
        return Problem(
            code="environment-no-source",
            what=f"Tandem was installed from {plain(source, 200)}, which no longer exists.",
            fix="Put it back, or install Tandem again from its new place; then try again.",
            detail=detail,
        )
    errors = [line for line in lines if _ERROR.match(line)] or lines or ("it said nothing",)
    return Problem(
        code="environment-failed",
        what=f"{words} failed: {plain(errors[-1], 300)}",
        fix="Try again; if it fails again, report it with its output.",
        detail=detail,
    )


def _is_gone(source: str, said: str) -> bool:
    path = url2pathname(urlsplit(source).path) if source.startswith("file:") else source
    signs = (
        f"No such file or directory: '{path}'",
        f"Distribution not found at: {Path(path).as_uri() if Path(path).is_absolute() else source}",
        f"{path} is not a valid editable requirement",
        f"No matching distribution found for {DISTRIBUTION}",
    )
    return any(sign in said for sign in signs)


def not_as_wanted(wanted: str, said: str) -> Problem:
    return Problem(
        code="environment-not-as-wanted",
        what=f"The new environment does not have {wanted}: {plain(said, 300) or 'it does not start'}",
        fix="Try again; if it fails again, report it with this message.",
    )
