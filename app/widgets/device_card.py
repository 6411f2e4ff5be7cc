"""A laptop on the Devices screen: this one, or another. Created once and then updated in place, so that
the focus stays."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QWidget

from app.theme import GAP
from app.widgets.buttons import button, copy_button
from app.widgets.card import Card, column, row
from app.widgets.flow import Flow
from app.widgets.in_place_edit import InPlaceEdit
from app.widgets.labels import ElidedLabel, Label, name_for_readers, set_tooltip
from app.widgets.problem_box import ProblemBox
from app.words import device_words as words
from core.vocabulary import units
from core.vocabulary.commands import Command, Forget, Pair, Rename, SetCodePolicy
from core.vocabulary.ids import DeviceId
from core.vocabulary.readings import Reading
from core.vocabulary.state import Device, Me

NAME_LIMIT = 60
Ask = Callable[[Command], object]


class DeviceCard(Card):
    """Another laptop. ``match_asked``: this laptop should get that one's versions."""

    match_asked = Signal()

    def __init__(self, device: DeviceId, ask: Ask, clock: Callable[[], float] = time.time) -> None:
        """``ask`` gives its user's commands to the node."""
        super().__init__()
        self.device = device
        self._shown: Device | None = None
        self._reading: Reading | None = None
        self._clock = clock
        self.setObjectName(f"device-{device[:8]}")
        self.name = ElidedLabel("", "heading")
        self.state = Label()
        self.state.setObjectName("state")
        set_tooltip(self.state, f"Fingerprint of its key: {device}")
        self.where = ElidedLabel("", "faint")
        self.hardware = ElidedLabel("", "faint")
        self.use = ElidedLabel("", "faint")
        self.problem = ProblemBox(level="warning")
        self.match = button("Have the same here…", self.match_asked.emit, "primary", name="match")
        self.match.hide()
        self.problem.buttons.addWidget(self.match)
        self.pair = button("Pair", lambda: ask(Pair(device=device)), "primary", name="pair")
        self.rename = button("Rename", self._rename, name="rename")
        self.edit = InPlaceEdit("Name of this laptop here", self.name, self.rename, NAME_LIMIT)
        self.edit.setObjectName("nickname")
        self.edit.kept.connect(lambda name: ask(Rename(device=device, nickname=name)))
        self.forget = button("Forget", self._ask_forget, "danger", name="forget")
        self.allow = QCheckBox("May run scripts here without asking")
        self.allow.setObjectName("allow")
        self.allow.clicked.connect(
            lambda yes: ask(SetCodePolicy(device=device, policy="always" if yes else "ask"))
        )
        self._quiet = QTimer(self, singleShot=True, interval=int(words.STALE_AFTER_S * 1000))
        self._quiet.timeout.connect(self._show_stale)

        self.name.setSizePolicy(self.name.sizePolicy().Policy.Expanding, self.name.sizePolicy().Policy.Fixed)
        self.add(row(self.name, self.edit, self.state), self.where, self.hardware, self.use, self.problem)
        self._usual, self._sure, self._question = QWidget(), Label("", wraps=True), QWidget()
        flow = Flow(self.allow, self.rename, self.forget, self.pair, right=self.rename)
        self._usual.setLayout(column(flow))
        self._keep = button("Keep", self._end_question, name="keep")
        really = button("Forget", lambda: ask(Forget(device=device)), "danger", name="really-forget")
        really.clicked.connect(self._end_question)
        self._question.setLayout(column(self._sure, row(1, self._keep, really)))
        self._question.hide()
        self.body.addSpacing(GAP // 2)
        self.add(self._usual, self._question)

    def show_device(self, device: Device) -> None:
        """Cheap if only the reading changed."""
        before, self._shown = self._shown, device
        if device.reading is not self._reading:
            self._reading = device.reading
            self._quiet.start()
            self.use.say(words.use_words(device.reading))
            self.use.make("faint")
        self.use.setVisible(device.linked and device.reading is not None)
        if before is not None and _same_but_reading(before, device):
            return
        self.name.say(device.shown_name)
        said, kind = words.state_words(device)
        self.state.say(said)
        self.state.make(kind)
        as_name = f"calls itself {device.name} · " if device.nickname and device.name else ""
        self.where.say(f"{as_name}{words.addresses_words(device.addresses)}")
        self.where.setVisible(bool(device.addresses or as_name))
        self.hardware.say(words.hardware_words(device.hardware))
        self.hardware.setVisible(device.hardware is not None)
        self.problem.show_problem(device.problem if device.paired else None, "warning")
        self._show_buttons(device)
        name_for_readers(self, device.shown_name, said)
        self._name_buttons(device.shown_name)

    def show_may_match(self, may: bool) -> None:
        """Whether another environment here would fix the version mismatch."""
        self.match.setVisible(may)

    def show_busy_pairing(self, busy: bool) -> None:
        """Only one pairing at a time."""
        self.pair.setEnabled(not busy)
        set_tooltip(self.pair, "Another pairing is under way." if busy else "")

    def _show_buttons(self, device: Device) -> None:
        if not device.paired:
            self.edit.cancel()
            self._show_question(False)
        self.pair.setVisible(not device.paired)
        self.rename.setVisible(device.paired)
        self.forget.setVisible(device.paired)
        self.allow.setVisible(device.paired)
        self.allow.setChecked(device.policy == "always")

    def _name_buttons(self, name: str) -> None:
        for made, action in ((self.pair, "Pair with"), (self.rename, "Rename"), (self.forget, "Forget")):
            name_for_readers(made, f"{action} {name}")
        name_for_readers(self.allow, f"{name} may run scripts here without asking")
        name_for_readers(self.edit, f"New name of {name}")

    def _show_stale(self) -> None:
        if self._reading is not None:
            at = units.moment(self._clock() - words.STALE_AFTER_S, "%H:%M:%S")
            self.use.say(f"Nothing heard since {at} · {words.use_words(self._reading)}")
            self.use.make("warning")

    # --- renaming and forgetting ---------------------------------------------------------------------------

    def _rename(self) -> None:
        if self._shown is not None:
            self.edit.begin(self._shown.nickname)
            self.edit.setPlaceholderText(self._shown.name[:NAME_LIMIT])

    def _ask_forget(self) -> None:
        name = "" if self._shown is None else self._shown.shown_name
        self._sure.say(
            f"Forget {name}? It can no longer connect or train with this laptop until you pair again."
        )
        self._show_question(True)
        self._keep.setFocus()

    def _end_question(self) -> None:
        self._show_question(False)
        self.forget.setFocus()

    def _show_question(self, asked: bool) -> None:
        self._usual.setVisible(not asked)
        self._question.setVisible(asked)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and not self._question.isHidden():
            self._end_question()
        else:
            super().keyPressEvent(event)


def _same_but_reading(before: Device, now: Device) -> bool:
    return all(
        getattr(before, field) is getattr(now, field) or getattr(before, field) == getattr(now, field)
        for field in Device.__struct_fields__
        if field != "reading"
    )


class MyCard(Card):
    """This laptop: its name, its addresses, its hardware, its use."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("this-laptop")
        self.name = ElidedLabel("", "heading")
        self.state = Label("This laptop", "faint")
        self.where = Label("", "mono")
        self.where.setObjectName("own-address")
        self.copy = copy_button(self._address, kind="quiet", name="copy-address")
        name_for_readers(self.copy, "Copy this laptop's address")
        self.hardware = ElidedLabel("", "faint")
        self.use = ElidedLabel("", "faint")
        self._me: Me | None = None
        self.name.setSizePolicy(self.name.sizePolicy().Policy.Expanding, self.name.sizePolicy().Policy.Fixed)
        self.add(row(self.name, self.state), row(self.where, self.copy, 1), self.hardware, self.use)

    def show_me(self, me: Me | None, busy: bool) -> None:
        self._me = me
        if me is None:
            self.name.say("Starting…")
            self.copy.hide()
            return
        self.name.say(me.name)
        self.state.say("This laptop · training" if busy else "This laptop")
        addresses = words.in_the_network(me.addresses)
        self.where.say(words.addresses_words(addresses, 3) or "Not on a network")
        self.copy.setVisible(bool(addresses))
        self.hardware.say(words.hardware_words(me.hardware))
        self.use.say(words.use_words(me.reading))
        name_for_readers(self, me.name, "This laptop")

    def _address(self) -> str:
        return next(iter(words.in_the_network(self._me.addresses)), "") if self._me is not None else ""
