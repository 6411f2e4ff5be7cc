"""Finds the script that a path means: the file itself, or the one script of a folder."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from core.script.analysis import ScriptReport, analyse
from core.script.imports import missing
from core.script.notebook import SUFFIX as NOTEBOOK
from core.vocabulary.errors import TandemError
from core.vocabulary.paths import shown

SCRIPTS_READ = 200

_NO_SCRIPT = re.compile(r"__init__\.py|setup\.py|conftest\.py|test_.*|.*_test\.py|\..*")


class SeveralScripts(TandemError):
    """A folder with several scripts that train: the user has to choose one of ``scripts``, names in
    ``folder``."""

    def __init__(self, folder: Path, scripts: tuple[str, ...]) -> None:
        listed = ", ".join(shown(script) for script in scripts[:8]) + (", …" if len(scripts) > 8 else "")
        super().__init__(
            code="script-ambiguous",
            what=f"{shown(str(folder))} contains {len(scripts)} training scripts: {listed}.",
            fix="Choose one of them instead of the folder.",
        )
        self.folder = folder
        self.scripts = scripts


def find_script(path: Path) -> Path:
    """The script at ``path``, or the only one in the folder ``path``.

    Raises ``TandemError``; ``SeveralScripts`` for a folder where the user has to choose. In a folder with
    several files, a script is one that trains and that no other of them imports.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise missing(path) from error
    if stat.S_ISREG(mode):
        return path.resolve()
    if not stat.S_ISDIR(mode):
        raise TandemError(
            code="script-unreadable",
            what=f"{shown(str(path))} is neither a file nor a folder.",
            fix="Choose a Python script, or its folder.",
        )
    return _only_script(path.resolve())


def _only_script(folder: Path) -> Path:
    try:
        files = sorted(
            entry for entry in folder.iterdir() if entry.suffix in (".py", NOTEBOOK) and entry.is_file()
        )
    except OSError as error:
        raise TandemError(
            code="folder-unreadable",
            what=f"The folder {shown(str(folder))} cannot be read ({error.strerror}).",
            fix="Choose a folder that you can open.",
        ) from error
    files = [file for file in files if not _NO_SCRIPT.fullmatch(file.name)]
    if len(files) == 1:
        return files[0]
    reports = [report for file in files[:SCRIPTS_READ] if (report := _read(file))]
    imported = {module for report in reports for module in report.modules[1:]}
    trains = [report for report in reports if report.kind != "neither"]
    for some in (trains, [report for report in trains if report.script not in imported]):
        if len(some) == 1:
            return folder / some[0].script
    if not trains:
        raise TandemError(
            code="script-not-in-folder",
            what=f"No script in {shown(str(folder))} trains a Keras model.",
            fix="Choose a folder that contains one, or choose the script itself.",
        )
    raise SeveralScripts(folder, tuple(report.script for report in trains))


def _read(file: Path) -> ScriptReport | None:
    try:
        return analyse(file)
    except TandemError:
        return None
