"""Where a script or a project folder is dropped or chosen, or an example taken."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QWidget

from app.examples import EXAMPLES, copied
from app.widgets.buttons import button
from app.widgets.card import Card, row
from app.widgets.inputs import FileDialog
from app.widgets.labels import ElidedLabel, Label, set_kind
from core.vocabulary.errors import Problem, TandemError

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


class ScriptDrop(Card):
    """``chosen(path)``; ``refused(problem)`` for a drop that cannot be one."""

    chosen = Signal(str)
    refused = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.home = ""
        self.setAcceptDrops(True)
        self.setAccessibleName("Script")
        self.where = ElidedLabel("", mode=Qt.TextElideMode.ElideMiddle)
        self.where.setObjectName("script")
        self.name = ElidedLabel("", "heading")
        self._path = ""
        self.hint = Label("Drop a Keras script or notebook here, or the folder of its project.", "heading")
        self.hint_2 = Label(
            "Any script that trains with model.fit: nothing in it needs to be changed.", "faint"
        )
        self.file = button("Choose script…", self._ask_file, "primary", name="choose-script")
        self.folder = button("Choose folder…", self._ask_folder, name="choose-folder")
        self.examples = [
            button(title, partial(self.take_example, name), name=f"example-{name}")
            for name, (title, _) in EXAMPLES.items()
        ]
        for each, (_, what) in zip(self.examples, EXAMPLES.values(), strict=True):
            each.setAccessibleDescription(what)
        self.examples_row = QWidget()
        self.examples_row.setLayout(row(Label("Or an example:", "faint"), *self.examples, 1))
        for line in (self.hint, self.hint_2, self.name, self.where):
            self.body.addWidget(line)
        self.body.addLayout(row(self.file, self.folder, 1))
        self.body.addWidget(self.examples_row)
        self.show_script("", "")

    def show_script(self, name: str, path: str) -> None:
        """What is chosen; ``""`` for nothing yet."""
        self._path = path
        self.name.say(name)
        self.where.say(path)
        self.name.setVisible(bool(name))
        self.where.setVisible(bool(path))
        for line in (self.hint, self.hint_2):
            line.setVisible(not path)
        # With a script chosen, the main action of this screen is Train.
        set_kind(self.file, "" if name else "primary")

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
        if len(urls) != 1:
            self.refused.emit(_ONE)
        elif not urls[0].isLocalFile():
            self.refused.emit(_NOT_HERE)
        else:
            self.chosen.emit(urls[0].toLocalFile())

    def take_example(self, name: str) -> None:
        """``chosen`` follows once the example's files lie in the node's home; nothing before there is one."""
        if self.home:
            Thread(target=self._copy_example, args=(name, self.home), daemon=True).start()

    def _copy_example(self, name: str, home: str) -> None:
        # The signals cross to the GUI thread by themselves; the widget may be gone by then.
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
