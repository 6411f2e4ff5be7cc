"""How this installation's window is started from outside: by a desktop entry, at login, by a launcher."""

from __future__ import annotations

import sys
from pathlib import Path

from core.supervisor import spawn
from core.vocabulary.versions import is_frozen


def window_command() -> list[str]:
    """The frozen program itself, the installed ``tandem-gui``, or this Python with the starter."""
    if is_frozen():
        return spawn.program()
    name = "tandem-gui.exe" if sys.platform == "win32" else "tandem-gui"
    # Not resolved: in a virtual environment the scripts lie beside the link, not beside what it leads to.
    script = Path(sys.executable).absolute().with_name(name)
    if script.exists():
        return [str(script)]
    return spawn.program()


def exec_value(command: list[str]) -> str:
    """As ``Exec=`` of a desktop entry wants it (Desktop Entry Specification, "The Exec key")."""
    return " ".join(_quoted(part) for part in command)


def _quoted(part: str) -> str:
    part = part.replace("%", "%%")
    if part and all(char.isalnum() or char in "-_./=:+,@%" for char in part):
        return part
    inner = "".join(f"\\{char}" if char in '"`$\\' else char for char in part)
    # The value is a string first: its own escapes are undone before the quotes are.
    return '"' + inner.replace("\\", "\\\\") + '"'
