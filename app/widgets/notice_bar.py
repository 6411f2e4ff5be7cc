"""The node's notices above the screens, until dismissed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from PySide6.QtWidgets import QWidget

from app.theme import GAP
from app.widgets.buttons import button
from app.widgets.card import column
from app.widgets.labels import Label, name_for_readers
from app.widgets.problem_box import ProblemBox
from core.vocabulary.errors import Problem

SHOWN = 2


class NoticeButton(NamedTuple):
    """A notice's button: its text and its action."""

    words: str
    do: Callable[[], object]


_NONE: Mapping[Problem, NoticeButton] = MappingProxyType({})


class NoticeBar(QWidget):
    """The newest ``SHOWN`` notices, and the number of others. A dismissed one stays away until its words
    change."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._dismissed: set[Problem] = set()
        self._notices: tuple[Problem, ...] = ()
        self._offers: dict[Problem, NoticeButton] = {}
        self._boxes = [_Notice(self) for _ in range(SHOWN)]
        self._more = Label("", "faint")
        layout = column(*self._boxes, self._more)
        layout.setContentsMargins(GAP * 2, GAP, GAP * 2, 0)
        self.setLayout(layout)
        self.hide()

    def show_notices(
        self, notices: Iterable[Problem], offers: Mapping[Problem, NoticeButton] = _NONE
    ) -> None:
        """``offers``: one-click actions for some of them."""
        self._notices, self._offers = tuple(notices), dict(offers)
        self._dismissed &= set(self._notices)
        self._show()

    def dismiss(self, notice: Problem | None) -> None:
        if notice is not None:
            self._dismissed.add(notice)
        self._show()

    def _show(self) -> None:
        open_ones = [notice for notice in reversed(self._notices) if notice not in self._dismissed]
        for index, box in enumerate(self._boxes):
            notice = open_ones[index] if index < len(open_ones) else None
            box.show_notice(notice, self._offers.get(notice) if notice is not None else None)
        more = len(open_ones) - SHOWN
        self._more.say_or_hide(f"{more} more below these" if more > 0 else "")
        self.setVisible(bool(open_ones))


class _Notice(ProblemBox):
    def __init__(self, bar: NoticeBar) -> None:
        super().__init__(level="warning")
        self._do: Callable[[], object] = lambda: None
        self.offer = button("", self._take_offer, name="notice-offer")
        self.buttons.addWidget(self.offer)
        self.dismiss = button("Dismiss", lambda: bar.dismiss(self.problem), "quiet", name="dismiss")
        self.buttons.addWidget(self.dismiss)

    def show_notice(self, notice: Problem | None, offer: NoticeButton | None) -> None:
        self.show_problem(notice, "warning")
        self.offer.setVisible(offer is not None)
        if offer is not None:
            self.offer.setText(offer.words)
            name_for_readers(self.offer, offer.words)
            self._do = offer.do
        if notice is not None:
            name_for_readers(self.dismiss, f"Dismiss: {notice.what}")

    def _take_offer(self) -> None:
        self._do()
        self.dismiss.click()
