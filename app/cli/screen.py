"""A subcommand's output: words for a person, or with ``--json`` one JSON object per line for a script.

With ``--json`` only JSON goes to stdout; words for people then go to stderr.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, cast

from core.node import json_lines
from core.vocabulary import wire
from core.vocabulary.answers import Refused
from core.vocabulary.errors import Problem
from core.vocabulary.text import plain, plain_lines

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

DETAIL_LINES = 12
WIDE = 240


class Screen:
    """Created once per command. Nothing it shows is read as markup."""

    def __init__(self, *, json: bool = False, out: IO[str] | None = None, err: IO[str] | None = None) -> None:
        self.json = json
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """For people: stdout, or stderr beside JSON."""
        if self._console is None:
            from rich.console import Console

            file = Lasting(self._err if self.json else self._out)
            self._console = Console(file=cast("IO[str]", file), markup=False, highlight=False, emoji=False)
            if not self._console.is_terminal and "COLUMNS" not in os.environ:
                # A file or a pipe has no edge; unwrapped rows are easier to search.
                self._console.width = WIDE
        return self._console

    @property
    def live(self) -> bool:
        """Whether a live display is possible: a person's terminal that supports it."""
        return not self.json and self.console.is_terminal and not self.console.is_dumb_terminal

    def say(self, text: str, style: str = "") -> None:
        """A line for a person; ``style`` is rich's."""
        self.console.print(text, style=style or None, soft_wrap=True)

    def show(self, what: RenderableType) -> None:
        self.console.print(what)

    def problem(self, problem: Problem) -> None:
        """The problem and its fix; with ``--json`` the same as an object."""
        if self.json:
            self.result({"ok": False, "problem": problem})
            return
        self.say(plain(problem.what, 600), "bold red")
        if problem.fix:
            self.say(plain(problem.fix, 600))
        for line in plain_lines(problem.detail)[-DETAIL_LINES:]:
            self.say(f"  {line}", "dim")

    def end(self, result: Any, words: str, style: str = "") -> None:
        """The outcome: ``result`` for a script, ``words`` for a person."""
        if self.json:
            self.result(result)
        else:
            self.say(words, style)

    def result(self, what: Any) -> None:
        """An object for a script, flushed so that a reader of the pipe sees it immediately."""
        self._out.write(wire.to_json(what).decode() + "\n")
        self._out.flush()


class Lasting:
    """Output for people on a terminal that may close before the program ends: from then on it is
    discarded. Any other failure is raised: a reader that leaves a pipe is meant to end us."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with self._outliving():
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with self._outliving():
            self._file.flush()

    @contextlib.contextmanager
    def _outliving(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno != errno.EIO:  # Linux's and macOS's error for a terminal that has hung up
                raise
            silence(self._file)
            self._file.flush()  # pending output, which Python would otherwise retry at exit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class LinesScreen(Screen):
    """Stdout belongs to JSON lines (``agent --jsonl``), so a failure is a line of that vocabulary too."""

    def __init__(self, *, out: IO[str] | None = None, err: IO[str] | None = None) -> None:
        super().__init__(json=True, out=out, err=err)

    def problem(self, problem: Problem) -> None:
        self._out.write(json_lines.write_reply(None, Refused(problem=problem)).decode())
        self._out.flush()


def silence(file: IO[str]) -> None:
    """Nobody reads our output any more (``tandem runs | head``, a closed terminal): Python must not
    complain at exit."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 (the file of a descriptor)
        os.dup2(nowhere.fileno(), file.fileno())
