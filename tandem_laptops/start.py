# PYTHON_ARGCOMPLETE_OK: the shell may ask the installed script for completions.
"""Where the installed commands begin: puts the house on the path of this process and goes in."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
HOUSE = _HERE / "house" if (_HERE / "house").is_dir() else _HERE.parent


def main() -> int:
    """The process's exit code. Imports nothing of the house before its folder is first on the path."""
    sys.path.insert(0, str(HOUSE))
    from app.__main__ import main as begin

    return begin()
