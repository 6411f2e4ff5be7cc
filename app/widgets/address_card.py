"""Pairing by address: for networks in which laptops can't find each other."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit

from app.device_words import in_the_network
from app.widgets.buttons import button
from app.widgets.card import Card, row
from app.widgets.labels import Label, faint, heading, name_for_readers
from app.widgets.problem_box import ProblemBox
from core.net import address
from core.vocabulary.errors import Problem, TandemError


class AddressCard(Card):
    """``asked(address)`` once what was typed reads as one; what is wrong with it is said otherwise."""

    asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.problem = ProblemBox()
        self.setObjectName("by-address")
        self.edit = QLineEdit()
        self.edit.setObjectName("address")
        self.edit.setPlaceholderText("192.168.1.20:27600")
        self.edit.setMaxLength(300)
        self.edit.returnPressed.connect(self._ask)
        self.edit.textEdited.connect(lambda: self.show_problem(None))
        name_for_readers(self.edit, "Address of the other laptop")
        self.pair = button("Pair", self._ask, name="pair-address")
        name_for_readers(self.pair, "Pair with the laptop at this address")
        self.own = Label("", wraps=True)
        self.body.addWidget(heading("Pair by address"))
        self.body.addWidget(faint("Type the address that Tandem shows on the other laptop.", wraps=True))
        self.body.addLayout(row(self.edit, self.pair))
        self.body.addWidget(self.problem)
        self.body.addWidget(self.own)

    def show_own(self, addresses: tuple[str, ...]) -> None:
        where = ", ".join(in_the_network(addresses)[:3])
        self.own.say(f"This laptop's own address: {where}" if where else "This laptop is in no network.")

    def show_problem(self, problem: Problem | None) -> None:
        self.problem.show_problem(problem)

    def _ask(self) -> None:
        try:
            found = address.parse(self.edit.text())
        except TandemError as error:
            self.show_problem(error.problem)
            self.edit.setFocus()
            return
        self.show_problem(None)
        self.asked.emit(str(found))
