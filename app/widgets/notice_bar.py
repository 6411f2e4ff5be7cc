"""Notices of the node above the screens, until they are dismissed."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.theme import GAP
from app.widgets.buttons import button
from app.widgets.labels import Label, name_for_readers
from app.widgets.problem_box import ProblemBox
from core.vocabulary.errors import Problem

SHOWN = 2


class NoticeBar(QWidget):
    """The newest ``SHOWN`` notices; how many more there are is said. A dismissed one stays away until it
    comes with other words."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._dismissed: set[Problem] = set()
        self._notices: tuple[Problem, ...] = ()
        self._boxes = [_Notice(self) for _ in range(SHOWN)]
        self._more = Label("", "faint")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(GAP * 2, GAP, GAP * 2, 0)
        layout.setSpacing(GAP // 2)
        for box in self._boxes:
            layout.addWidget(box)
        layout.addWidget(self._more)
        self.hide()

    def show_notices(self, notices: Iterable[Problem]) -> None:
        self._notices = tuple(notices)
        self._dismissed &= set(self._notices)
        self._show()

    def dismiss(self, notice: Problem | None) -> None:
        if notice is not None:
            self._dismissed.add(notice)
        self._show()

    def _show(self) -> None:
        open_ones = [notice for notice in reversed(self._notices) if notice not in self._dismissed]
        for index, box in enumerate(self._boxes):
            box.show_notice(open_ones[index] if index < len(open_ones) else None)
        more = len(open_ones) - SHOWN
        self._more.say(f"{more} more below these" if more > 0 else "")
        self._more.setVisible(more > 0)
        self.setVisible(bool(open_ones))


class _Notice(ProblemBox):
    def __init__(self, bar: NoticeBar) -> None:
        super().__init__(level="warning")
        self.dismiss = button("Dismiss", lambda: bar.dismiss(self.problem), "quiet", name="dismiss")
        self.buttons.addWidget(self.dismiss)

    def show_notice(self, notice: Problem | None) -> None:
        self.show_problem(notice, "warning")
        if notice is not None:
            name_for_readers(self.dismiss, f"Dismiss: {notice.what}")
