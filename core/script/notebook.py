"""A Jupyter notebook as a script: its code cells in order, without Jupyter's own commands.

The format: https://nbformat.readthedocs.io/en/latest/format_description.html. Read with msgspec, since only
code cells are needed (docs/decisions/0022-notebooks-without-jupyter.md says why).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from core.runtime.regular_file import open_regular
from core.script.parse import SOURCE_BYTES, is_jupyter_command, not_python, parse, raw_tree
from core.vocabulary import units
from core.vocabulary.errors import TandemError
from core.vocabulary.paths import shown

SUFFIX = ".ipynb"
NOTEBOOK_BYTES = 100_000_000
"""Limit of a notebook's file, including the pictures in its cells' outputs."""
_MOST_PARSED = 4_000_000
"""Limit of characters parsed, for all cells together: a cell is parsed again for each block of commands that
is removed from it. Another laptop's notebook is read before its sender is trusted with anything."""
_LEAST_BLOCKS = 5
"""Blocks that may be removed from each cell, however long the notebook is."""
_PYTHON_BELOW = ("time", "capture")
"""Magics that can be removed without changing what their statement or cell computes."""
_HARMLESS = re.compile(r"%(matplotlib|autoreload|load_ext|config|time|%time|%capture|tensorboard)\b")
_MAGIC = re.compile(r"(?P<indent>\s*)%(?P<name>\w+)\s*(?P<rest>.*)")


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """``number``: as Jupyter counts code cells that are run in order, from 1. ``text``: Python, line for line
    as in the notebook. ``left_out``: the lines, or the whole cell's magic, that were removed."""

    number: int
    text: str
    left_out: tuple[str, ...] = ()

    @property
    def lines(self) -> int:
        return self.text.count("\n") + 1


class Notebook(msgspec.Struct, frozen=True, kw_only=True):
    cells: tuple[Cell, ...]

    def tree(self, name: str) -> ast.Module:
        """One module; its lines count on from cell to cell. Raises ``TandemError``."""
        body, before = list[ast.stmt](), 0
        for cell in self.cells:
            tree = parse(cell.text, named(name, cell.number))
            body += ast.increment_lineno(tree, before).body
            before += cell.lines
        return ast.Module(body=body, type_ignores=[])

    def place(self, line: int) -> tuple[int, int]:
        """The cell's number and the line in it, for a line of ``tree``."""
        for cell in self.cells:
            if line <= cell.lines:
                return cell.number, line
            line -= cell.lines
        raise ValueError("there is no such line")

    @property
    def left_out(self) -> str:
        """The removed parts, each with its cell, for a sentence; ``""``: nothing."""
        return ", ".join(
            f"{shown(words, 60)} (cell {cell.number})" for cell in self.cells for words in cell.left_out
        )

    @property
    def lacks_something(self) -> bool:
        """Whether the removed parts may affect more than the display in Jupyter."""
        return any(not _HARMLESS.match(words) for cell in self.cells for words in cell.left_out)


def named(name: str, cell: int) -> str:
    """A cell's name in messages, and the file name of its code."""
    return f"{name}, cell {cell}"


def read_notebook(path: Path) -> Notebook:
    """Raises ``OSError``, ``NotRegular``, and ``TandemError`` if it is not a Python notebook."""
    with open_regular(path) as file:
        return parse_notebook(file.read(NOTEBOOK_BYTES + 1), path.name)


def parse_notebook(data: bytes, name: str) -> Notebook:
    """The same, from a file's bytes."""
    name = shown(name)
    if len(data) > NOTEBOOK_BYTES:
        raise not_python(name, f"it is larger than {units.size(NOTEBOOK_BYTES)}")
    try:
        read = _FILE.decode(data)
    except msgspec.MsgspecError as error:
        raise TandemError(
            code="script-not-python",
            what=f"{name} is not a notebook that Tandem can read: it is damaged, or older than format 4.",
            fix="Open it in Jupyter and save it again.",
            detail=str(error),
        ) from error
    language = read.metadata.language_info.name or read.metadata.kernelspec.language
    if language.lower() not in ("", "python", "ipython", "python3"):
        raise not_python(name, f"its language is {shown(language, 40)}")
    texts = [cell.text for cell in read.cells if cell.cell_type == "code" and cell.text.strip()]
    total = sum(map(len, texts))
    if total > SOURCE_BYTES:
        raise not_python(name, f"its code is larger than {units.size(SOURCE_BYTES)}")
    most = max(_LEAST_BLOCKS, _MOST_PARSED // max(total, 1))
    return Notebook(cells=tuple(_cell(number, text, most) for number, text in enumerate(texts, 1)))


def _cell(number: int, text: str, most_blocks: int) -> Cell:
    lines = text.split("\n")
    left_out = list[str]()
    first = next(index for index, line in enumerate(lines) if line.strip())
    if lines[first].startswith("%%"):
        magic = lines[first].rstrip()
        runs = magic[2:].split(maxsplit=1)[:1]
        keep = runs and runs[0] in _PYTHON_BELOW
        if runs != ["time"]:  # without it only the timing is missing
            left_out.append(magic)
        lines = [*_blank(lines[: first + 1]), *(lines[first + 1 :] if keep else _blank(lines[first + 1 :]))]
    for _ in range(most_blocks):
        index = _first_command(lines)
        if index is None:
            break
        # The line after a command begins a statement, too.
        while index < len(lines) and is_jupyter_command(lines[index]):
            words = lines[index].strip()
            index, stays = _leave_out(lines, index)
            if not stays:
                left_out.append(words)
    return Cell(number=number, text="\n".join(lines), left_out=tuple(left_out))


def _first_command(lines: list[str]) -> int | None:
    """The first line that Python cannot parse, if it is a command for Jupyter.

    Python itself decides: a ``%`` inside a text or between two numbers does not count.
    """
    try:
        raw_tree("\n".join(lines), "")
    except SyntaxError as error:
        index = (error.lineno or 0) - 1
        return index if 0 <= index < len(lines) and is_jupyter_command(lines[index]) else None
    except (ValueError, RecursionError, MemoryError):
        pass
    return None


def _leave_out(lines: list[str], index: int) -> tuple[int, bool]:
    """Replace a line by its runnable part, or by ``pass`` to keep its block valid. Returns the index of the
    next line, and whether its statement runs."""
    magic = _MAGIC.match(lines[index])
    if magic and magic["name"] in _PYTHON_BELOW and magic["rest"]:
        lines[index] = magic["indent"] + magic["rest"]
        return len(lines), True  # the statement may continue for some lines
    goes_on = lines[index].endswith("\\")
    indent = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
    lines[index] = indent + "pass"
    while goes_on and (index := index + 1) < len(lines):
        goes_on, lines[index] = lines[index].endswith("\\"), ""
    return index + 1, False


def _blank(lines: Iterable[str]) -> list[str]:
    return ["" for _ in lines]


# --- the file ----------------------------------------------------------------------------------------------


class _Language(msgspec.Struct, frozen=True):
    name: str = ""


class _Kernel(msgspec.Struct, frozen=True):
    language: str = ""


class _Metadata(msgspec.Struct, frozen=True):
    language_info: _Language = _Language()
    kernelspec: _Kernel = _Kernel()


class _FileCell(msgspec.Struct, frozen=True):
    cell_type: str
    source: str | list[str]

    @property
    def text(self) -> str:
        text = self.source if isinstance(self.source, str) else "".join(self.source)
        return text.replace("\r\n", "\n").rstrip("\n")


class _NotebookFile(msgspec.Struct, frozen=True):
    cells: list[_FileCell]
    metadata: _Metadata = _Metadata()


# At import: once a script runs, a trainer cannot make decoders any more (core.trainer.script).
_FILE = msgspec.json.Decoder(_NotebookFile)
