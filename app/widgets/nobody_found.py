"""Why no other laptop may have been found, each cause with its mend."""

from __future__ import annotations

from PySide6.QtCore import Signal

from app.widgets.buttons import button
from app.widgets.card import Card, row
from app.widgets.labels import Label, faint, heading

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
    """``doctor_asked``: have Tandem look for the cause itself."""

    doctor_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("nobody-found")
        self.body.addWidget(heading("No other laptop found yet"))
        self._fixes: list[tuple[Label, str]] = []
        for cause, fix in CAUSES:
            self.body.addSpacing(4)
            self.body.addWidget(Label(cause, wraps=True))
            label = faint(fix, wraps=True)
            self.body.addWidget(label)
            self._fixes.append((label, fix))
        self.body.addSpacing(4)
        self.body.addLayout(
            row(button("Look for the cause", self.doctor_asked.emit, name="look-for-cause"), 1)
        )
        self.show_port(27600)

    def show_port(self, port: int) -> None:
        for label, fix in self._fixes:
            label.say(fix.replace("{port}", str(port)))
