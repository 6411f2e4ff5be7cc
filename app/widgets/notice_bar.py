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
from core.vocabulary.errors import REPORT_CAME, Problem

SHOWN = 2


class NoticeButton(NamedTuple):
    """A notice's button: its text and its action. ``refuse``: what *No* does, in place of *Dismiss*."""

    words: str
    do: Callable[[], object]
    refuse: Callable[[], object] | None = None


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
        self._offer: NoticeButton | None = None
        self._bar = bar
        self.offer = button("", self._take_offer, name="notice-offer")
        self.buttons.addWidget(self.offer)
        self.dismiss = button("Dismiss", self._refuse, "quiet", name="dismiss")
        self.buttons.addWidget(self.dismiss)

    def show_notice(self, notice: Problem | None, offer: NoticeButton | None) -> None:
        self.show_problem(notice, "note" if notice is not None and notice.code == REPORT_CAME else "warning")
        self._offer = offer
        self.offer.setVisible(offer is not None)
        if offer is not None:
            self.offer.setText(offer.words)
            name_for_readers(self.offer, offer.words)
        if notice is not None:
            words = "Dismiss" if offer is None or offer.refuse is None else "No"
            self.dismiss.setText(words)
            name_for_readers(self.dismiss, f"{words}: {notice.what}")

    def _take_offer(self) -> None:
        if self._offer is not None:
            self._offer.do()
        self._bar.dismiss(self.problem)

    def _refuse(self) -> None:
        if self._offer is not None and self._offer.refuse is not None:
            self._offer.refuse()
        self._bar.dismiss(self.problem)
