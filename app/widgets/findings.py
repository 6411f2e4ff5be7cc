"""The doctor's findings, one per line, each with its fix and the buttons that do it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.models.offers import Check, Offer
from app.theme import GAP
from app.widgets.buttons import button, command_in, copy_button, copy_words
from app.widgets.card import ByKey, column, row
from app.widgets.flow import Flow
from app.widgets.labels import Label, name_for_readers
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.answers import Finding

SIGNS = {"ok": ("✓", "good"), "note": ("•", "faint"), "warning": ("!", "warning"), "error": ("✗", "bad")}
ACTIONS = {"differences-accepted": "Withdraw", "file-only-here": "Send along"}
"""Button texts of findings if not Mend, by code."""
SPOKEN = {"ok": "All right", "note": "Note", "warning": "Warning", "error": "Error"}


class FindingsList(QWidget):
    """``mend_asked(code)``: the user pressed a finding's Mend. ``taken(offer)``: one of its offers."""

    mend_asked = Signal(str)
    taken = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        layout = column()
        self.setLayout(layout)
        self._lines = ByKey(layout, self._line)
        self._offers: dict[Finding, dict[str, Offer]] = {}
        self._waits = False

    def show_findings(self, findings: Sequence[Finding]) -> None:
        """Replaces the shown findings, worst first. A line that stays keeps its widgets and the keyboard
        focus."""
        order = ["error", "warning", "note", "ok"]
        self._offers = {}
        for each in sorted(findings, key=lambda each: order.index(each.level)):
            offers = each.offers if isinstance(each, Check) else ()
            bare = replace(each, offers=()) if isinstance(each, Check) else each
            self._offers[bare] = {offer.words: offer for offer in offers}
        # A line takes some milliseconds to make: out of sight, such as behind a run that ends, it waits.
        self._waits = self.window().isVisible() and not self.isVisible()
        if not self._waits:
            self._make_lines()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._waits:
            self._waits = False
            self._make_lines()
            for line in self._lines.values():
                line.show()  # as those that were there: Qt would show it in the next turn

    def _make_lines(self) -> None:
        if self._lines.keep((finding, tuple(offers)) for finding, offers in self._offers.items()):
            tab_as_seen(self)

    def _line(self, key: tuple[Finding, tuple[str, ...]]) -> QWidget:
        finding, offered = key
        line = QWidget()
        line.setObjectName(f"finding-{finding.code}")
        name_for_readers(line, f"{SPOKEN[finding.level]}: {finding.what}", finding.fix)
        sign, kind = SIGNS[finding.level]
        mark = Label(sign, kind)
        mark.setFixedWidth(mark.fontMetrics().averageCharWidth() * 2)
        fix = [Label(finding.fix, "faint", wraps=True)] if finding.fix else []
        words = column(Label(finding.what, wraps=True), *fix, spacing=0)
        made = [self._offered(finding, offer) for offer in offered]
        if command := command_in(finding.fix, finding.command):
            copy_it = copy_words(finding.command_on)
            copy = copy_button(lambda: command, copy_it, name=f"copy-{finding.code}")
            name_for_readers(copy, f"{copy_it}: {finding.what}")
            made.append(copy)
        if made:
            words.addSpacing(GAP // 2)
            words.addWidget(Flow(*made))
            words.addSpacing(GAP // 2)
        layout = row(mark, words)
        layout.setAlignment(mark, Qt.AlignmentFlag.AlignTop)
        layout.setStretchFactor(words, 1)
        line.setLayout(layout)
        if finding.mend:
            action = ACTIONS.get(finding.code, "Mend")
            mend = button(action, lambda: self.mend_asked.emit(finding.code), name=f"mend-{finding.code}")
            name_for_readers(mend, f"{action}: {finding.what}")
            layout.addWidget(mend, 0, Qt.AlignmentFlag.AlignTop)
        return line

    def _offered(self, finding: Finding, words: str) -> QPushButton:
        # A line stays while its words do: what its offers make may have changed.
        made = button(
            words, lambda: self.taken.emit(self._offers[finding][words]), name=f"offer-{finding.code}"
        )
        name_for_readers(made, words, finding.what)
        return made
