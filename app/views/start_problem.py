"""Instead of the screens where no node can be had: what happened, how to mend it, and another try."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.widgets.buttons import button
from app.widgets.card import row
from app.widgets.page import Page
from app.widgets.problem_box import ProblemBox
from core.vocabulary.errors import Problem


class StartProblemPage(QWidget):
    again_asked = Signal()

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.setObjectName("start-problem")
        self.setAccessibleName("Tandem can't work")
        page = Page("Tandem can't work here at the moment", characters=90, centred=True)
        self.problem = ProblemBox(problem)
        self.again = button("Try again", self.again_asked.emit, "primary", name="try-again")
        page.body.addWidget(self.problem)
        page.body.addLayout(row(self.again, 1))
        page.body.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(page)
        self.setFocusProxy(self.again)
