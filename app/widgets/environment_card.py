"""Makes the environment in which this laptop can train with another one: asks, does it, offers to go over."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton

from app.device_words import size_words
from app.long_work import in_thread
from app.widgets.buttons import button
from app.widgets.card import Card, row
from app.widgets.labels import Label, TextView, faint, set_tooltip
from app.widgets.problem_box import ProblemBox
from core.environment.make import Making, said_by
from core.environment.recipe import Recipe, WantedVersions, extras_here, recipe
from core.vocabulary import environments
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.text import plain, plain_lines
from core.vocabulary.versions import installed

_AGENT = (
    "Another process has Tandem open here (tandem agent, say): end it, and start it by the command above."
)
MOST_LINES = 500
REMOVAL_LIMIT_S = 15.0
"""The hidden window waits so long for what is half made to be removed; the rest is left to the next try."""
Looked = tuple[Recipe, str]
"""How it would be made, and what a whole one that is there says of itself."""


class EnvironmentCard(Card):
    """Hidden until ``ask``. ``restart_asked(tandem)``: the user wants the one there instead of this one."""

    restart_asked = Signal(object)
    _heard = Signal(str)

    def __init__(self, look: Callable[[WantedVersions], Looked | Problem] | None = None) -> None:
        """``look``: for tests, instead of looking at this laptop."""
        super().__init__()
        self.setObjectName("environment")
        self.setAccessibleName("Environment with other versions")
        self._look = look or look_here
        self._own = True
        self._wanted: WantedVersions | None = None
        self._recipe: Recipe | None = None
        self._making: Making | None = None
        self._thread: Thread | None = None
        self.head = Label("", "heading", wraps=True)
        self.words = Label("", wraps=True)
        self.log = TextView("Commands and what they say", lines=6, wraps=True)
        self.log.setMaximumBlockCount(MOST_LINES)
        self.log.setFixedHeight(self.log.minimumHeight())
        self.problem = ProblemBox()
        self.hint = faint("", wraps=True)
        self.make = button("Make it", self._make, "primary", name="make-environment")
        self.stop = button("Stop", self._stop, name="stop-environment")
        self.restart = button("Restart Tandem there", self._restart, "primary", name="restart-there")
        self.again = button("Try again", self._ask_again, name="environment-again")
        self.copy = button("Copy command", self._copy, name="copy-environment")
        self.leave = button("Not now", self.hide, name="leave-environment")
        for piece in (self.head, self.words, self.problem, self.log, self.hint):
            self.body.addWidget(piece)
        self._buttons = (self.make, self.restart, self.stop, self.again, self.copy, self.leave)
        self.body.addLayout(row(*self._buttons, 1))
        self._heard.connect(self._on_line, Qt.ConnectionType.QueuedConnection)
        QGuiApplication.instance().aboutToQuit.connect(self.end)  # type: ignore[union-attr]
        self.hide()

    @property
    def under_way(self) -> bool:
        return self._making is not None

    def ask(self, wanted: WantedVersions) -> None:
        """What would be made is said, and waits for a yes. One that is under way goes on instead."""
        self.show()
        if self.under_way:
            return
        self._wanted = wanted
        self._show(f"Tandem with {wanted}", "Looking at what is here…")
        in_thread(self, lambda: self._look(wanted), lambda looked: self._on_looked(wanted, looked))

    def show_may_restart(self, *, own: bool, busy: bool) -> None:
        """``own``: this window's process has the node. ``busy``: a run is under way."""
        self._own = own
        self.restart.setEnabled(own and not busy)
        set_tooltip(self.restart, "A run is under way: it has to end first." if busy else "")

    def end(self) -> None:
        """Nothing goes on without the window, and nothing half made stays."""
        if self._making is not None and self._thread is not None:
            self._making.stop()
            self._thread.join(REMOVAL_LIMIT_S)

    # --- what comes of it ----------------------------------------------------------------------------------

    def _on_looked(self, wanted: WantedVersions, looked: Looked | Problem) -> None:
        if wanted != self._wanted or self.under_way:
            return  # another one was asked for meanwhile
        if isinstance(looked, Problem):
            self._fail(looked)
            return
        self._recipe, said = looked
        if said:
            self._show_ready(said)
            return
        made = self._recipe
        self._show(
            f"Tandem with {made.wanted}",
            "Beside this one, which stays as it is; with the same key, paired laptops, settings and runs. "
            f"Up to {size_words(made.download_bytes)} are fetched from the internet, and up to "
            f"{size_words(made.disk_bytes)} used in {made.folder}. It takes some minutes; Tandem can be used "
            "meanwhile.",
            self.make,
            self.leave,
            text="\n".join(map(str, made.steps)),
        )

    def _make(self) -> None:
        made = self._recipe
        if made is None or self.under_way:
            return
        making = self._making = Making(made, self._tell)
        self._show(
            f"Making Tandem with {made.wanted}",
            f"In {made.folder}. Closing Tandem ends this; what was fetched whole is not fetched again.",
            self.stop,
        )
        self.log.show()
        self._thread = in_thread(self, lambda: _run(making), self._on_made)

    def _tell(self, line: str) -> None:
        """On the thread that makes it."""
        try:
            self._heard.emit(line)
        except RuntimeError:
            pass  # the window went meanwhile

    def _on_line(self, line: str) -> None:
        self.log.appendPlainText(plain(line, 1000))

    def _on_made(self, end: str | Problem) -> None:
        self._making = None
        if isinstance(end, Problem):
            self._fail(end)
        elif end:
            self._show_ready(end)
        else:
            self._ask_again()

    def _show_ready(self, said: str) -> None:
        made = self._recipe
        assert made is not None
        self._show(
            f"Ready: {plain(said, 200)}",
            f"It lies in {made.folder}. Once restarted there, this laptop has what the other one has.",
            self.restart,
            self.copy,
            self.leave,
            text=str(made.tandem),
        )
        besides = f"What your scripts import besides, it needs too: {made.install} NAME"
        self.hint.say(besides if self._own else f"{_AGENT} {besides}")
        self.hint.show()

    def _fail(self, problem: Problem) -> None:
        head = f"Tandem with {self._wanted}"
        self._show(head, "", self.again, self.leave, text="\n".join(plain_lines(problem.detail)))
        self.problem.show_problem(problem)

    # --- buttons -------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        self.stop.setEnabled(False)
        if self._making is not None:
            self._making.stop()

    def _ask_again(self) -> None:
        if self._wanted is not None:
            self.ask(self._wanted)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.log.toPlainText())

    def _restart(self) -> None:
        if self._recipe is not None:
            self.restart_asked.emit(self._recipe.tandem)

    def _show(self, head: str, words: str, *buttons: QPushButton, text: str = "") -> None:
        self.head.say(head)
        self.words.say(words)
        self.words.setVisible(bool(words))
        self.log.setPlainText(text)
        self.log.setVisible(bool(text))
        self.problem.show_problem(None)
        self.hint.hide()
        self.stop.setEnabled(True)
        for each in self._buttons:
            each.setVisible(each in buttons)


def look_here(wanted: WantedVersions) -> Looked | Problem:
    """Blocks for a second where an environment is there."""
    try:
        made = recipe(environments.look(), wanted, installed(), extras=extras_here())
        return made, said_by(made)
    except TandemError as error:
        return error.problem


def _run(making: Making) -> str | Problem:
    try:
        return making.run()
    except TandemError as error:
        return error.problem
