"""Failures that a user can meet: each says what happened and how to fix it. Full tracebacks go to the log."""

from __future__ import annotations

import msgspec

from core.vocabulary.bounds import DETAIL, WORDS, Detail, Few, Word, Words, fit
from core.vocabulary.ids import DeviceId

OVERTAKEN = "overtaken"
"""Code of a run that ended because a laptop cut off from it had trained further."""
CUT_OFF = "run-cut-off"
"""Code of the notice that a run could go on after a crash; its detail is the run's id."""
SWEEP_CUT_OFF = "sweep-cut-off"
"""The same for a sweep; its detail is the sweep's id."""
REPORT_CAME = "report-came"
"""Code of the notice that another laptop sent a report; its detail is the file."""
MODULES_MISSING = "modules-missing"
"""Code of modules that a script imports and a laptop lacks."""
INSTALL_ASKED = "install-asked"
"""Code of the notice that another laptop asks to install packages; its detail: the laptop's id, then the
packages."""
INSTALLED = "installed"
"""Code of the notice about the newest installation that a laptop asked for: requested, done, or failed."""
LEFT_RUN = "left"
"""Code of a laptop that left a run at its user's wish, or because of its battery."""
BY_A_USER = ("closed", "stopped")
"""Codes of a user's own actions: a run that they ended was stopped, and did not fail."""
GOES_BACK = "goes-back"
"""Code of a training that ended to be resumed from an earlier checkpoint, which an audit confirmed."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A failure's text for people; the same in the window, the terminal and JSON.

    ``code`` is stable and machine-readable (``kebab-case``); ``detail`` is for the log drawer (may be long).
    ``command``: the one shell command in ``fix``, to be copied; ``""``: there is none, or several.
    ``command_on``: the name of the laptop that it is for; ``""``: this one. ``installs``: laptops that
    ``ask_to_install`` lets install the packages that they lack.
    """

    code: Word
    what: Words
    fix: Words = ""
    detail: Detail = ""
    command: Words = ""
    command_on: Words = ""
    installs: Few[DeviceId] = ()

    def __post_init__(self) -> None:
        fit(self, what=WORDS, fix=WORDS, detail=DETAIL, command=WORDS, command_on=WORDS)

    def __str__(self) -> str:
        return f"{self.what} {self.fix}".strip()


class TandemError(Exception):
    """A failure with its fix. ``what`` and ``fix`` are whole sentences; ``code`` is stable."""

    def __init__(self, *, code: str, what: str, fix: str = "", detail: str = "", command: str = "") -> None:
        super().__init__(what)
        self.problem = Problem(code=code, what=what, fix=fix, detail=detail, command=command)

    @classmethod
    def of(cls, problem: Problem) -> TandemError:
        error = cls(code=problem.code, what=problem.what)
        error.problem = problem
        return error

    @property
    def code(self) -> str:
        return self.problem.code

    @property
    def what(self) -> str:
        return self.problem.what

    @property
    def fix(self) -> str:
        return self.problem.fix

    def __str__(self) -> str:
        return str(self.problem)


class IllegalTransition(RuntimeError):
    """A state machine received an event that is impossible in its state: a bug in Tandem."""
