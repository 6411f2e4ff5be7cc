"""Examines this node: the doctor, its fixes, and a zip for those who help.

The zip has log, findings, versions and state; no keys, scripts or outputs. The doctor is imported late: it is
rarely used.
"""

from __future__ import annotations

import asyncio
import io
import platform
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from core.doctor.view import Examined
from core.home.home import Home
from core.home.private_file import write_atomically
from core.vocabulary.answers import Finding
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.phases import Exit, Failed
from core.vocabulary.state import State
from core.vocabulary.versions import installed

Ended = TypeVar("Ended", Exit, Failed)

LOG_BYTES = 2_000_000
"""The last bytes of each log file."""


async def examine(view: Examined, *, deep: bool = False) -> tuple[Finding, ...]:
    from core.doctor import examination

    return await examination.examine(view, deep=deep)


async def mend(view: Examined, code: str) -> None:
    """Raises ``TandemError``."""
    from core.doctor import files

    await asyncio.to_thread(files.mend, view.home, code)


async def save_diagnostics(view: Examined, path: str) -> str:
    """Returns the zip's path. Raises ``TandemError``."""
    findings = await examine(view)
    target = Path(path).expanduser()
    return str(await asyncio.to_thread(save, target, view.home, view.state, findings))


def save(path: Path, home: Home, state: State, findings: Sequence[Finding]) -> Path:
    """Write the zip to ``path``, or with a generated name into that folder. Returns its path.

    Blocks. Raises ``TandemError``.
    """
    if path.is_dir():
        path = path / f"tandem-diagnostics-{time.strftime('%Y%m%d-%H%M%S')}.zip"
    elif path.exists() and not zipfile.is_zipfile(path):
        raise TandemError(
            code="file-exists",
            what=f"{path} exists and is not a zip, so it was left alone.",
            fix="Choose another name for the diagnostics.",
        )
    try:
        write_atomically(path, _zipped(home, state, findings))
    except OSError as error:
        raise TandemError(
            code="diagnostics-unwritable",
            what=f"The diagnostics can't be written to {path} ({error.strerror or error}).",
            fix="Choose another place, or free some space.",
        ) from error
    return path


def _zipped(home: Home, state: State, findings: Sequence[Finding]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (
            ("versions.json", _pretty(installed())),
            ("system.txt", f"{platform.platform()}\n{platform.python_version()}\n".encode()),
            ("findings.json", _pretty(findings)),
            ("state.json", _pretty(_redacted(state))),
        ):
            archive.writestr(name, _anonymous(content))
        for log in sorted(home.logs.glob("tandem.log*")):
            archive.writestr(f"logs/{log.name}", _anonymous(_end_of(log)))
    return memory.getvalue()


def _redacted(state: State) -> State:
    """The state without a script's output and projects' contents in requests; and no code while pairing."""
    run = state.run
    if run is not None:
        silent = {
            device: replace(member, log={}, exits={task: _brief(end) for task, end in member.exits.items()})
            for device, member in run.members.items()
        }
        phase = _brief(run.phase) if isinstance(run.phase, Failed) else run.phase
        run = replace(run, members=silent, plan=replace(run.plan, arguments=()), phase=phase)
    pairing = replace(state.pairing, code="") if state.pairing else None
    return replace(state, run=run, pairing=pairing, consents=())


def _brief(end: Ended) -> Ended:
    """The end in a sentence: the details are a traceback with the script's lines, or its output."""
    return replace(end, problem=replace(end.problem, detail="")) if end.problem else end


def _end_of(log: Path) -> bytes:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LOG_BYTES))
            return file.read(LOG_BYTES)
    except OSError as error:
        return f"not readable: {error}\n".encode()


def _anonymous(content: bytes) -> bytes:
    """Replaces the path of the home folder, which contains the user's name."""
    return content.replace(str(Path.home()).encode(), b"~") if len(str(Path.home())) > 1 else content


def _pretty(content: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


# --- a node's own failures ---------------------------------------------------------------------------------


def broke(name: str, error: BaseException) -> Problem:
    return Problem(
        code="internal",
        what=f"A part of Tandem failed ({name}). This is a bug in Tandem.",
        fix="Restart Tandem; if it happens again, save the diagnostics and report it.",
        detail=repr(error),
    )


def internal(error: Exception) -> Problem:
    return Problem(
        code="internal",
        what=f"This failed because of a bug in Tandem ({type(error).__name__}).",
        fix="Try again; if it happens again, save the diagnostics and report it.",
        detail=repr(error),
    )


ENDING = Problem(code="ending", what="Tandem is ending.", fix="Start it again.")
LATER_PORT = Problem(
    code="port-later", what="The new port takes effect at the next start.", fix="Restart Tandem."
)
