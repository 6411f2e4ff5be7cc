"""What reading a script found: facts and known mistakes, each with its line."""

from __future__ import annotations

import msgspec

from core.vocabulary.errors import Problem
from core.vocabulary.paths import shown


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Something in the source that decides how it trains: ``what`` it is, and where."""

    path: str
    line: int
    what: str


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """``line`` 0: the whole file."""

    code: str
    path: str
    line: int
    what: str
    fix: str

    @property
    def problem(self) -> Problem:
        """The same for a screen, with its place in front."""
        where = f"{shown(self.path)}, line {self.line}: " if self.line else ""
        return Problem(code=self.code, what=where + self.what, fix=self.fix)
