"""A node's start and end: why none could start, and what closing the window means during a run."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.widgets.buttons import button
from app.widgets.card import column, fill, row
from app.widgets.labels import Label
from app.widgets.page import Page
from app.widgets.problem_box import ProblemBox
from app.widgets.sheet import Sheet
from core.vocabulary.errors import Problem


class ShutdownSheet(Sheet):
    """Explains closing while a run is under way. ``stay_asked``: keep running without a window.
    ``quit_asked``: stop the run and exit."""

    stay_asked = Signal()
    quit_asked = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "Closing while a run is under way")
        self.setObjectName("closing")
        self.words = Label("", wraps=True)
        self.stay = button("Keep in background", self._stay, "primary", name="keep-training")
        self.quit = button("Stop and quit", self._quit, "danger", name="stop-and-quit")
        self.cancel = button("Cancel", self.shut, name="cancel-closing")
        head = Label("A run is under way", "title", wraps=True)
        fill(self.body, head, self.words, row(self.cancel, 1, self.quit, self.stay))

    def ask(self, tray: bool) -> None:
        back = "Tandem's icon in the tray" if tray else "starting Tandem again"
        self.words.say(
            f"The run can continue without the window; {back} brings it back. Stopping ends the run on every "
            "laptop, unless the others can go on without this one."
        )
        self.open()

    def on_escape(self) -> None:
        self.shut()

    def _stay(self) -> None:
        self.shut()
        self.stay_asked.emit()

    def _quit(self) -> None:
        self.shut()
        self.quit_asked.emit()


class StartProblemPage(QWidget):
    """Replaces the screens if no node could start: the problem, its fix, and another try."""

    again_asked = Signal()

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.setObjectName("start-problem")
        self.setAccessibleName("Tandem can't work")
        page = Page("Tandem can't work here at the moment", characters=90, centred=True)
        self.problem = ProblemBox(problem)
        self.again = button("Try again", self._try_again, "primary", name="try-again")
        page.add(self.problem, row(self.again, 1), 1)
        self.setLayout(column(page))
        self.setFocusProxy(self.again)

    def _try_again(self) -> None:
        self.again.setEnabled(False)
        self.again.setText("Starting…")  # the node before it may take some seconds to end
        self.again_asked.emit()
