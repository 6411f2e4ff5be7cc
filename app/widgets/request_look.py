"""Before the consent: a request's files, each as it would run, and the changes since the last consent."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QButtonGroup, QHeaderView, QPushButton, QTreeWidget, QTreeWidgetItem, QWidget

from app.widgets.buttons import button
from app.widgets.card import column, row
from app.widgets.code_view import CodeView
from app.widgets.labels import ElidedLabel, Label, name_for_readers
from core.script.analysis import SUFFIXES
from core.vocabulary import units
from core.vocabulary.answers import RequestFile
from core.vocabulary.text import spelled

FILES_SHOWN = 500
LEAST_CHARACTERS = 22
"""Minimum width of the list of files."""
CHANGES = {"": "", "new": "new", "changed": "changed", "same": "as before", "gone": "gone"}
NOT_SHOWN = (
    "This file is not text, or is too large to show here. It is sent after you allow the run. Its "
    "fingerprint is checked, so it cannot be swapped for another."
)
GONE = "This file was there when you last allowed the script. It has been removed since."


class RequestLook(QWidget):
    """``show_files`` takes the node's answer."""

    def __init__(self) -> None:
        super().__init__()
        self._files: Sequence[RequestFile] = ()
        self.list = QTreeWidget()
        self.list.setObjectName("request-files")
        self.list.setHeaderLabels(["File", "Change"])
        self.list.setRootIsDecorated(False)
        self.list.setUniformRowHeights(True)
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = self.list.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self.list.setMinimumWidth(self.list.fontMetrics().averageCharWidth() * LEAST_CHARACTERS)
        name_for_readers(self.list, "Files that would run here")
        self.list.currentItemChanged.connect(lambda *_: self._show_file())
        self.path = ElidedLabel("", "heading", mode=Qt.TextElideMode.ElideMiddle)
        self.changes = _side("What changed", "show-changes")
        self.whole = _side("Whole file", "show-whole")
        self._sides = QButtonGroup(self)
        for side in (self.changes, self.whole):
            self._sides.addButton(side)
            side.clicked.connect(self._show_text)
        self.note = Label("", "warning", wraps=True)
        self.code = CodeView("Text of the file")
        self.code.setObjectName("code")
        head = row(self.path, self.changes, self.whole, spacing=0)
        head.setStretchFactor(self.path, 1)
        right = column(head, self.note, self.code)
        right.setStretchFactor(self.code, 1)
        layout = row(self.list)
        layout.addLayout(right)
        layout.setStretch(0, 2)
        layout.setStretch(1, 5)
        self.setLayout(layout)

    def show_files(self, files: Sequence[RequestFile]) -> None:
        self._files = files
        self.list.clear()
        compared = any(file.change for file in files)
        self.list.setHeaderHidden(not compared)
        self.list.setColumnHidden(1, not compared)
        for file in files[:FILES_SHOWN]:
            self.list.addTopLevelItem(QTreeWidgetItem([spelled(file.path), CHANGES[file.change]]))
        if len(files) > FILES_SHOWN:
            more = QTreeWidgetItem([f"and {len(files) - FILES_SHOWN:,} more files"])
            more.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addTopLevelItem(more)
        if (first := self.list.topLevelItem(0)) is not None:
            self.list.setCurrentItem(first)

    @property
    def _file(self) -> RequestFile | None:
        item = self.list.currentItem()
        at = -1 if item is None else self.list.indexOfTopLevelItem(item)
        return self._files[at] if 0 <= at < min(len(self._files), FILES_SHOWN) else None

    def _show_file(self) -> None:
        file = self._file
        if file is None:
            return
        self.path.say(f"{spelled(file.path)} · {units.size(file.size)}")
        for side in (self.changes, self.whole):
            side.setVisible(bool(file.diff))
        (self.changes if file.diff else self.whole).setChecked(True)
        notes = [file.note, GONE if file.change == "gone" else NOT_SHOWN if file.text is None else ""]
        self.note.say(" ".join(note for note in notes if note))
        self.note.setVisible(any(notes))
        name_for_readers(self.code, f"Text of {file.path}")
        self._show_text()

    def _show_text(self) -> None:
        file = self._file
        if file is None:
            return
        if file.diff and self.changes.isChecked():
            self.code.show_code(file.diff, "diff")
        else:
            marked = {deed.line for deed in file.deeds or () if deed.marked}
            self.code.show_code(file.text or "", "python" if file.path.endswith(SUFFIXES) else "", marked)


def _side(words: str, name: str) -> QPushButton:
    made = button(words, lambda: None, "side", name=name)
    made.setCheckable(True)
    return made
