"""What closing the window means: at once where nothing runs, a question while a run is under way."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.widgets.buttons import button
from app.widgets.card import row
from app.widgets.labels import Label
from app.widgets.sheet import Sheet


class ClosingSheet(Sheet):
    """``stay_asked``: go on without a window. ``quit_asked``: stop the run and end."""

    stay_asked = Signal()
    quit_asked = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "Closing while a run is under way")
        self.setObjectName("closing")
        self.words = Label("", wraps=True)
        self.stay = button("Keep in background", self._stay, "primary", name="keep-training")
        self.quit = button("Stop and quit", self._quit, "danger", name="stop-and-quit")
        self.cancel = button("Cancel", self.shut, name="cancel-closing")
        self.body.addWidget(Label("A run is under way", "title", wraps=True))
        self.body.addWidget(self.words)
        self.body.addLayout(row(self.cancel, 1, self.quit, self.stay))

    def ask(self, tray: bool) -> None:
        back = "Tandem's icon in the tray" if tray else "starting Tandem again"
        self.words.say(
            f"The run can go on without the window; {back} brings it back. Stopping ends the run on every "
            "laptop that takes part."
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
