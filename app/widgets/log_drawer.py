"""Output of the members' scripts, as plain text, one page per task. Folded until wanted."""

from __future__ import annotations

from collections import deque

from PySide6.QtCore import QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QComboBox, QSizePolicy

from app.widgets.buttons import copy_button
from app.widgets.card import row
from app.widgets.fold import Fold
from app.widgets.inputs import unscrolled
from app.widgets.labels import TextView, name_for_readers
from core.vocabulary.events import MemberLogged
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import Run
from core.vocabulary.text import plain_lines

MOST_LINES = 5_000
FLUSH_MS = 200
Page = tuple[DeviceId, str]
"""A member and one of its tasks."""


class LogDrawer(Fold):
    """``hear`` takes new lines; text is rendered only while the drawer is open."""

    def __init__(self) -> None:
        super().__init__("Log", name="log")
        self._lines: dict[Page, deque[str]] = {}
        self._new: dict[Page, int] = {}
        self.pages = unscrolled(QComboBox())
        name_for_readers(self.pages, "Whose log")
        self.pages.currentIndexChanged.connect(lambda _: self._show_page())
        self.copy = copy_button(self._whole_page, name="copy-log")
        self.pages.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.text = TextView("Log", lines=12, wraps=True)
        self.text.setMaximumBlockCount(MOST_LINES)
        head = row(self.pages, 1, self.copy)
        head.setStretchFactor(self.pages, 1000)
        self.pages.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.body.addLayout(head)
        self.body.addWidget(self.text)
        self._timer = QTimer(self, singleShot=True, interval=FLUSH_MS)
        self._timer.timeout.connect(self._flush)
        self.unfolded.connect(lambda unfolded: self._show_page() if unfolded else None)

    def begin(self, run: Run, names: dict[DeviceId, str]) -> None:
        """A new run, or one already under way: its newest lines are in the state."""
        self._lines, self._new = {}, {}
        self.pages.blockSignals(True)
        self.pages.clear()
        for task in run.plan.tasks:
            page = (task.device, task.name)
            name = names.get(task.device, task.device[:8])
            # The role first: without room, the end is cut off.
            self.pages.addItem(f"{task.name} on {name}" if run.plan.names_roles else name, page)
            self._lines[page] = deque(maxlen=MOST_LINES)
            for line in run.members[task.device].log.get(task.name, ()):
                self._lines[page].extend(plain_lines(line))
        self.pages.blockSignals(False)
        self._show_page()

    def hear(self, event: MemberLogged) -> None:
        page = (event.device, event.lines.task)
        kept = self._lines.get(page)
        if kept is None:
            return
        lines = plain_lines(event.lines.text)
        if event.lines.dropped:
            lines.insert(0, f"… {event.lines.dropped:,} lines left out here; all of them are in the log file")
        kept.extend(lines)
        self._new[page] = self._new.get(page, 0) + len(lines)
        if self._seen() and not self._timer.isActive():
            self._timer.start()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.is_open:
            self._show_page()

    def _seen(self) -> bool:
        return self.is_open and self.isVisible()

    def _page(self) -> Page | None:
        data = self.pages.currentData()
        return (data[0], data[1]) if data else None

    def _show_page(self) -> None:
        page = self._page()
        if not self.is_open or page is None:
            return
        self.text.setPlainText("\n".join(self._lines[page]))
        self._new[page] = 0
        self._to_end()

    def _flush(self) -> None:
        page = self._page()
        if page is None or not self._seen():
            return
        count = min(self._new.get(page, 0), len(self._lines[page]))
        self._new[page] = 0
        if not count:
            return
        bar = self.text.verticalScrollBar()
        # A reader who scrolled up stays there.
        at_end = bar.value() >= bar.maximum() - 2
        lines = list(self._lines[page])[-count:]
        self.text.appendPlainText("\n".join(lines))
        if at_end:
            self._to_end()

    def _to_end(self) -> None:
        bar = self.text.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _whole_page(self) -> str:
        page = self._page()
        return "" if page is None else "\n".join(self._lines[page])
