"""Finds other laptops: those nearby, one at an address, and reasons why none is found."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from app.widgets.buttons import button
from app.widgets.card import ByKey, Card, column, row
from app.widgets.labels import ElidedLabel, Label, faint, heading, name_for_readers
from app.widgets.problem_box import ProblemBox
from app.widgets.tab_order import tab_as_seen
from app.words.device_words import addresses_words, in_the_network
from core.net import address
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import Device, State


class NearbyList(QWidget):
    """``pair_asked(device)``."""

    pair_asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._looking = Label("Looking for other laptops in this network…", "faint")
        layout = column(self._looking)
        self.setLayout(layout)
        self._lines: ByKey[DeviceId, _NearbyLine] = ByKey(layout, lambda device: _NearbyLine(self, device))

    def show_state(self, state: State) -> None:
        if self._lines.keep(state.devices):
            tab_as_seen(self)
        for device, line in self._lines.items():
            line.show_device(state.devices[device])
        self._looking.setVisible(not self._lines)


class _NearbyLine(QWidget):
    def __init__(self, nearby: NearbyList, device: DeviceId) -> None:
        super().__init__()
        self.name = ElidedLabel("", "heading")
        self.where = ElidedLabel("", "faint")
        self.paired = Label("✓ Paired", "good")
        self.pair: QPushButton = button(
            "Pair", lambda: nearby.pair_asked.emit(device), "primary", name="pair"
        )
        layout = row(self.name, self.where, self.paired, self.pair)
        layout.setStretchFactor(self.where, 1)
        self.setLayout(layout)

    def show_device(self, device: Device) -> None:
        self.name.say(device.shown_name)
        self.where.say(addresses_words(device.addresses, 1))
        self.paired.setVisible(device.paired)
        self.pair.setVisible(not device.paired)
        name_for_readers(self.pair, f"Pair with {device.shown_name}")


class AddressCard(Card):
    """``asked(address)`` once the input is a valid address; otherwise shows what is wrong with it."""

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
        self.add(
            heading("Pair by address"),
            faint("Type the address that Tandem shows on the other laptop.", wraps=True),
            *(row(self.edit, self.pair), self.problem, self.own),
        )

    def show_own(self, addresses: tuple[str, ...]) -> None:
        where = ", ".join(in_the_network(addresses)[:3])
        self.own.say(f"This laptop's own address: {where}" if where else "This laptop is not on a network.")

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


CAUSES = (
    ("Is Tandem open on the other laptop?", "It is found only while its window or its agent runs."),
    (
        "Are both in the same network?",
        "Compare the Wi-Fi's name on both. Guest and public Wi-Fi often keep laptops apart "
        "(client isolation): use another network, a phone's hotspot, or a cable between the two.",
    ),
    (
        "Does a firewall stand between them?",
        "On both laptops let in UDP port 5353 (finding) and TCP port {port} (pairing and training).",
    ),
    (
        "Is a VPN on?",
        "Many send everything through their tunnel. Pause it, or let it leave the local network alone.",
    ),
)


class NobodyFound(Card):
    """``doctor_asked``: have Tandem diagnose the cause."""

    doctor_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("nobody-found")
        self.add(heading("No other laptop found yet"))
        self._fixes: list[tuple[Label, str]] = []
        for cause, fix in CAUSES:
            self.body.addSpacing(4)
            label = faint(fix, wraps=True)
            self.add(Label(cause, wraps=True), label)
            self._fixes.append((label, fix))
        self.body.addSpacing(4)
        self.add(row(button("Look for the cause", self.doctor_asked.emit, name="look-for-cause"), 1))
        self.show_port(27600)

    def show_port(self, port: int) -> None:
        for label, fix in self._fixes:
            label.say(fix.replace("{port}", str(port)))
