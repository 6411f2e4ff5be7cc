"""Makes the environment in which this laptop can train with another one: asks, builds it, offers to
switch."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton

from app.long_work import in_thread
from app.widgets.buttons import button, copy_button
from app.widgets.card import Card, row
from app.widgets.labels import Label, TextView, faint, set_tooltip
from app.widgets.problem_box import ProblemBox
from core.environment.make import Making, version_output
from core.environment.recipe import Recipe, WantedVersions, can_make, extras_here, recipe
from core.vocabulary import environments, units
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.text import plain, plain_lines
from core.vocabulary.versions import installed

_AGENT = (
    "Another process has Tandem open here (tandem agent, say): end it, and start it by the command above."
)
MOST_LINES = 500
REMOVAL_LIMIT_S = 15.0
"""How long the hidden window waits for a half-made environment to be removed; the rest is left to the next
try."""
Looked = tuple[Recipe, str]
"""The recipe, and what an existing complete environment reports of itself."""


class EnvironmentCard(Card):
    """Hidden until ``ask``. ``restart_asked(tandem)``: the user wants to switch to that environment's
    Tandem."""

    restart_asked = Signal(object)
    _heard = Signal(str)

    def __init__(self, look: Callable[[WantedVersions], Looked | Problem] | None = None) -> None:
        """``look``: replaces inspecting this laptop, for tests."""
        super().__init__()
        self.setObjectName("environment")
        self.setAccessibleName("Environment with other versions")
        self._look = look or look_here
        self._own, self._home = True, ""
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
        self.copy = copy_button(lambda: self.log.toPlainText(), "Copy command", name="copy-environment")
        self.leave = button("Not now", self.hide, name="leave-environment")
        self._buttons = (self.make, self.restart, self.stop, self.again, self.copy, self.leave)
        self.add(self.head, self.words, self.problem, self.log, self.hint, row(*self._buttons, 1))
        self._heard.connect(self._on_line, Qt.ConnectionType.QueuedConnection)
        QGuiApplication.instance().aboutToQuit.connect(self.end)  # type: ignore[union-attr]
        self.hide()

    @property
    def under_way(self) -> bool:
        return self._making is not None

    def ask(self, wanted: WantedVersions) -> None:
        """Shows what would be made, and waits for a yes. A build under way continues instead."""
        self.show()
        if self.under_way:
            return
        self._wanted = wanted
        self._show(f"Tandem with {wanted}", "Looking at what is here…")
        in_thread(self, lambda: self._look(wanted), lambda looked: self._on_looked(wanted, looked))

    def show_may_restart(self, *, own: bool, busy: bool, home: str = "") -> None:
        """``own``: this window's process has the node. ``busy``: a run is under way. ``home``: its folder."""
        self._own, self._home = own, home
        self.restart.setEnabled(own and not busy)
        set_tooltip(self.restart, "A run is under way: it has to end first." if busy else "")

    def end(self) -> None:
        """Nothing continues without the window, and nothing half-made stays."""
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
            f"Up to {units.size(made.download_bytes)} are fetched from the internet, and up to "
            f"{units.size(made.disk_bytes)} used in {made.folder}. It takes some minutes; Tandem can be used "
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
        """Called on the thread that makes it."""
        try:
            self._heard.emit(line)
        except RuntimeError:
            pass  # the window closed meanwhile

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
            text=made.start(home=self._home),
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

    def _restart(self) -> None:
        if self._recipe is not None:
            self.restart_asked.emit(self._recipe.tandem)

    def _show(self, head: str, words: str, *buttons: QPushButton, text: str = "") -> None:
        self.head.say(head)
        self.words.say_or_hide(words)
        self.log.setPlainText(text)
        self.log.setVisible(bool(text))
        self.problem.show_problem(None)
        self.hint.hide()
        self.stop.setEnabled(True)
        for each in self._buttons:
            each.setVisible(each in buttons)


def look_here(wanted: WantedVersions) -> Looked | Problem:
    """Blocks for a second if an environment exists."""
    try:
        made = recipe(environments.find_maker(), wanted, installed(), extras=extras_here(), able=can_make)
        return made, version_output(made)
    except TandemError as error:
        return error.problem


def _run(making: Making) -> str | Problem:
    try:
        return making.run()
    except TandemError as error:
        return error.problem
