"""Takes a script or a project folder: dropped, chosen, one of several, or an example."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.models.examples import copied
from app.theme import GAP
from app.widgets.buttons import button
from app.widgets.canvas import Illustration
from app.widgets.card import Card, column, take_out
from app.widgets.example_cards import ExampleCards
from app.widgets.flow import Flow
from app.widgets.inputs import FileDialog
from app.widgets.labels import ElidedLabel, Label, set_kind
from core.vocabulary.answers import ScriptsFound
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.text import plain

_ONE = Problem(
    code="several-dropped",
    what="Several things were dropped at once.",
    fix="Drop one script, or the one folder that holds it.",
)
_NOT_HERE = Problem(
    code="not-a-file",
    what="What was dropped is not a file on this laptop.",
    fix="Download it first, then drop the file.",
)


EMPTY_LINES = 17
"""Height of the empty drop area in lines of text."""


class ScriptDrop(Card):
    """``chosen(path)``; ``refused(problem)`` for an impossible drop. ``examples`` goes below it."""

    chosen = Signal(str)
    refused = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.home = ""
        self.setAcceptDrops(True)
        self.setAccessibleName("Script")
        self.where = ElidedLabel("", "faint", mode=Qt.TextElideMode.ElideMiddle)
        self.where.setObjectName("script")
        self.name = ElidedLabel("", "heading")
        self._path = ""
        self.picture = Illustration("drop")
        self.hint = Label("Drop a script, a notebook or a project folder here", "subtitle", wraps=True)
        self.hint_2 = Label(
            "Any Keras script that trains with model.fit: nothing in it needs to be changed.",
            "faint",
            wraps=True,
        )
        for each in (self.picture, self.hint, self.hint_2):
            each.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.file = button("Choose script…", self._ask_file, "primary", name="choose-script")
        self.folder = button("Choose folder…", self._ask_folder, name="choose-folder")
        self.show_examples = button("Examples", self._toggle_examples, "quiet", name="examples")
        self.examples = ExampleCards(self)  # without a parent it would be a window
        self.examples.chosen.connect(self.take_example)
        self.body.setSpacing(GAP)
        words = column(self.name, self.where, spacing=GAP // 3)
        self.buttons = Flow(self.file, self.folder, self.show_examples)
        self.add(1, self.picture, self.hint, self.hint_2, words, self.buttons, 1)
        self.show_script("", "")

    def show_script(self, name: str, path: str) -> None:
        """The chosen script; ``""`` for none yet."""
        self.name.say(name)
        self.where.say(path)
        self.name.setVisible(bool(name))
        self.where.setVisible(bool(path))
        for line in (self.picture, self.hint, self.hint_2):
            line.setVisible(not path)
        if path != self._path or not path:
            self.examples.setVisible(not path)
        self._path = path
        self.show_examples.setVisible(bool(path))
        # A drop area while empty, a line of the form afterwards.
        set_kind(self, "card" if path else "drop")
        self.setMinimumHeight(0 if path else self.fontMetrics().height() * EMPTY_LINES)
        self.buttons.centre(not path)
        # Once a script is chosen, the main action of this screen is Train.
        set_kind(self.file, "" if name else "primary")

    def take_line(self, line: QWidget) -> None:
        """A line about the chosen script, above the buttons."""
        self.body.insertWidget(self.body.indexOf(self.buttons), line)

    def _toggle_examples(self) -> None:
        self.examples.setVisible(self.examples.isHidden())

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()
            self.choose(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.choose(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self.choose(False)
        urls = event.mimeData().urls()
        event.acceptProposedAction()
        if len(urls) > 1:
            self.refused.emit(_ONE)
        elif not urls or not urls[0].isLocalFile():
            self.refused.emit(_NOT_HERE)
        else:
            self.chosen.emit(urls[0].toLocalFile())

    def take_example(self, name: str) -> None:
        """``chosen`` follows once the example's files are in the node's home; nothing before there is a
        node."""
        if self.home:
            Thread(target=self._copy_example, args=(name, self.home), daemon=True).start()

    def _copy_example(self, name: str, home: str) -> None:
        # The signals cross to the GUI thread; the widget may be gone by then.
        with suppress(RuntimeError):
            try:
                self.chosen.emit(str(copied(name, Path(home) / "examples")))
            except TandemError as error:
                self.refused.emit(error.problem)

    def _ask_file(self) -> None:
        dialog = self._dialog("Choose a script")
        dialog.setFileMode(FileDialog.FileMode.ExistingFile)
        dialog.setNameFilters(["Python scripts and notebooks (*.py *.pyw *.ipynb)", "All files (*)"])
        dialog.open()

    def _ask_folder(self) -> None:
        dialog = self._dialog("Choose a project folder")
        dialog.setFileMode(FileDialog.FileMode.Directory)
        dialog.setOption(FileDialog.Option.ShowDirsOnly)
        dialog.open()

    def _dialog(self, title: str) -> FileDialog:
        dialog = FileDialog(self.window(), title, str(Path(self._path).parent) if self._path else "")
        dialog.fileSelected.connect(self.chosen)
        return dialog


MOST = 12
NAME_LENGTH = 60


class ScriptChoices(Card):
    """``chosen(path)``. Hidden while there is nothing to choose."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Scripts of the folder")
        self.heading = Label("Which script is to be trained?", "heading")
        self.more = Label("", "faint")
        self._choices = column()
        self.add(self.heading, self._choices, self.more)
        self.buttons: list[QPushButton] = []
        self.hide()

    def show_scripts(self, found: ScriptsFound | None) -> None:
        for made in self.buttons:
            take_out(self._choices, made)
        self.buttons = []
        if found is not None:
            for script in found.scripts[:MOST]:
                path = str(Path(found.folder) / script)
                words = plain(script, NAME_LENGTH)
                made = button(words, partial(self.chosen.emit, path), name="script-choice")
                self.buttons.append(made)
                self._choices.addWidget(made, 0, Qt.AlignmentFlag.AlignLeft)
            more = len(found.scripts) - MOST
            words = f"and {more} more: choose one of those by Choose script…" if more > 0 else ""
            self.more.say_or_hide(words)
        self.setVisible(found is not None)
