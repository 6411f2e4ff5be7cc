"""The doctor's findings, one per line, each with its fix."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from app.widgets.buttons import button
from app.widgets.card import ByKey, column, row
from app.widgets.labels import Label, name_for_readers
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.answers import Finding

SIGNS = {"ok": ("✓", "good"), "note": ("•", "faint"), "warning": ("!", "warning"), "error": ("✗", "bad")}
ACTIONS = {"differences-accepted": "Withdraw", "file-only-here": "Send along"}
"""By code: a finding's button text if it is not Mend."""
SPOKEN = {"ok": "All right", "note": "Note", "warning": "Warning", "error": "Error"}


class FindingsList(QWidget):
    """``mend_asked(code)``: the user pressed a finding's Mend."""

    mend_asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        layout = column()
        self.setLayout(layout)
        self._lines = ByKey(layout, self._line)

    def show_findings(self, findings: Sequence[Finding]) -> None:
        """Replaces the shown findings, worst first. A line that stays keeps its widgets and the keyboard
        focus."""
        order = ["error", "warning", "note", "ok"]
        shown = dict.fromkeys(sorted(findings, key=lambda each: order.index(each.level)))
        if self._lines.keep(shown) and any(finding.mend for finding in findings):
            tab_as_seen(self)

    def _line(self, finding: Finding) -> QWidget:
        line = QWidget()
        line.setObjectName(f"finding-{finding.code}")
        name_for_readers(line, f"{SPOKEN[finding.level]}: {finding.what}", finding.fix)
        sign, kind = SIGNS[finding.level]
        mark = Label(sign, kind)
        mark.setFixedWidth(mark.fontMetrics().averageCharWidth() * 2)
        fix = [Label(finding.fix, "faint", wraps=True)] if finding.fix else []
        words = column(Label(finding.what, wraps=True), *fix, spacing=0)
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
