"""Parses source text into its syntax tree; executes nothing. Errors name the line."""

from __future__ import annotations

import ast
import re
import threading
import warnings

from core.vocabulary.errors import TandemError

SOURCE_BYTES = 2_000_000
_ONE_AT_A_TIME = threading.Lock()
"""CPython 3.11 confuses the recursion depths of threads that parse at once, and warning filters are
shared."""
_JUPYTER_COMMAND = re.compile(
    r"\s*([%!?]|[\w.\[\]'\", ]+=\s*[%!]|[\w.]+\?{1,2}\s*(#.*)?$|(pip3?|conda|mamba)\s+(un)?install\b)"
)
"""Magics, shell commands, assignments from either, help, and lines that Jupyter treats as a magic
automatically."""


def parse(source: str | bytes, name: str) -> ast.Module:
    """The syntax tree. ``name``: the file's, with the cell in it. Raises ``TandemError`` where ``source`` is
    not valid Python."""
    if b"\0" in source if isinstance(source, bytes) else "\0" in source:
        raise not_python(name, "it contains bytes that are not text")
    try:
        return raw_tree(source, name)
    except SyntaxError as error:
        if error.lineno is None:
            raise not_python(name, error.msg) from error
        line, text = error.lineno, (error.text or "").strip()
        detail = f"{name}:{line}\n" + (f"    {text}" if text else "")
        if is_jupyter_command(text):
            raise TandemError(
                code="script-magic",
                what=f"Line {line} of {name} is a Jupyter command, not Python: {text:.80}",
                fix="Remove the line, or choose the notebook itself: Tandem runs its cells and skips "
                "such commands.",
                detail=detail,
            ) from error
        raise TandemError(
            code="script-syntax",
            what=f"{name} has a syntax error in line {line}: {error.msg}.",
            fix=f"Fix line {line} and try again.",
            detail=detail,
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise not_python(name, "Python cannot parse it") from error


def raw_tree(source: str | bytes, name: str) -> ast.Module:
    """Raises what ``ast.parse`` raises."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, filename=name)


def is_jupyter_command(line: str) -> bool:
    """Whether a line that is not valid Python is a command for Jupyter."""
    return _JUPYTER_COMMAND.match(line) is not None


def not_python(name: str, reason: str) -> TandemError:
    return TandemError(
        code="script-not-python",
        what=f"{name} is not a Python script: {reason}.",
        fix="Choose a .py file or a notebook that trains with Keras.",
    )
