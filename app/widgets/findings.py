"""The doctor's findings, one a line, each with its mend."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.theme import GAP
from app.widgets.buttons import button
from app.widgets.card import take_out
from app.widgets.labels import Label, name_for_readers
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.answers import Finding

SIGNS = {"ok": ("✓", "good"), "note": ("•", "faint"), "warning": ("!", "warning"), "error": ("✗", "bad")}
ACTIONS = {
    "differences-accepted": "Withdraw",
    "open-port": "Withdraw",
    "not-sealed": "Open the port for this run",
}
"""By code, what a finding's button says where that is not Mend."""
SPOKEN = {"ok": "All right", "note": "Note", "warning": "Warning", "error": "Error"}


class FindingsList(QWidget):
    """``mend_asked(code)``: the user pressed a finding's Mend."""

    mend_asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(GAP // 2)
        self._lines: dict[Finding, QWidget] = {}

    def show_findings(self, findings: Sequence[Finding]) -> None:
        """Replaces what was shown; worst first. A line that stays keeps its widgets, and the keyboard."""
        order = ["error", "warning", "note", "ok"]
        shown = list(dict.fromkeys(sorted(findings, key=lambda each: order.index(each.level))))
        if shown == list(self._lines):
            return
        before, self._lines = self._lines, {}
        for finding in shown:
            line = before.pop(finding, None)
            if line is not None:
                self._layout.removeWidget(line)
            self._lines[finding] = line or self._line(finding)
            self._layout.addWidget(self._lines[finding])
        for line in before.values():
            take_out(self._layout, line)
        if any(finding.mend for finding in findings):
            tab_as_seen(self)

    def _line(self, finding: Finding) -> QWidget:
        line = QWidget()
        line.setObjectName(f"finding-{finding.code}")
        name_for_readers(line, f"{SPOKEN[finding.level]}: {finding.what}", finding.fix)
        layout = QHBoxLayout(line)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(GAP)
        sign, kind = SIGNS[finding.level]
        mark = Label(sign, kind)
        mark.setFixedWidth(mark.fontMetrics().averageCharWidth() * 2)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(Label(finding.what, wraps=True))
        if finding.fix:
            words.addWidget(Label(finding.fix, "faint", wraps=True))
        layout.addWidget(mark, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(words, 1)
        if finding.mend:
            action = ACTIONS.get(finding.code, "Mend")
            mend = button(action, lambda: self.mend_asked.emit(finding.code), name=f"mend-{finding.code}")
            name_for_readers(mend, f"{action}: {finding.what}")
            layout.addWidget(mend, 0, Qt.AlignmentFlag.AlignTop)
        return line
