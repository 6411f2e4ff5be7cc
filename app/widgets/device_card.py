"""A laptop on the Devices screen: this one, or another. Created once and then updated in place, so that
the focus stays."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QLineEdit, QWidget

from app.theme import GAP
from app.widgets.buttons import button, copy_button
from app.widgets.card import Card, column, row
from app.widgets.flow import Flow
from app.widgets.labels import ElidedLabel, Label, name_for_readers, set_tooltip
from app.widgets.problem_box import ProblemBox
from app.words import device_words as words
from core.vocabulary import units
from core.vocabulary.ids import DeviceId
from core.vocabulary.readings import Reading
from core.vocabulary.state import Device, Me

NAME_LIMIT = 60
USUAL, RENAMING, FORGETTING = range(3)


class DeviceCard(Card):
    """Another laptop. Emits its user's wishes; ``renamed`` carries the new nickname, ``allowed`` whether
    runs may start; ``match_asked``: this laptop should get that one's versions."""

    pair_asked = Signal()
    match_asked = Signal()
    forgotten = Signal()
    renamed = Signal(str)
    allowed = Signal(bool)

    def __init__(self, device: DeviceId, clock: Callable[[], float] = time.time) -> None:
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
        self.pair = button("Pair", self.pair_asked.emit, "primary", name="pair")
        self.rename = button("Rename", self._begin_rename, name="rename")
        self.forget = button("Forget", self._ask_forget, "danger", name="forget")
        self.allow = QCheckBox("May run scripts here without asking")
        self.allow.setObjectName("allow")
        self.allow.clicked.connect(self.allowed)
        self._edit = QLineEdit()
        self._edit.setObjectName("nickname")
        self._edit.setMaxLength(NAME_LIMIT)
        self._edit.returnPressed.connect(self._rename)
        self._sure = Label("", wraps=True)
        self._quiet = QTimer(self, singleShot=True, interval=int(words.STALE_AFTER_S * 1000))
        self._quiet.timeout.connect(self._show_stale)

        self.name.setSizePolicy(self.name.sizePolicy().Policy.Expanding, self.name.sizePolicy().Policy.Fixed)
        self.add(row(self.name, self.state), self.where, self.hardware, self.use, self.problem)
        usual, sure, edit = QWidget(), QWidget(), QWidget()
        usual.setLayout(column(Flow(self.allow, self.rename, self.forget, self.pair, right=self.rename)))
        keep = button("Keep", self._end_edit, name="keep")
        really = button("Forget", self._forget, "danger", name="really-forget")
        sure.setLayout(column(self._sure, row(1, keep, really)))
        self._keep = keep
        save = button("Save", lambda: self._rename(), "primary", name="save")
        cancel = button("Cancel", self._end_edit, name="cancel-rename")
        edit.setLayout(row(self._edit, save, cancel))
        self._ways = (usual, edit, sure)
        self.body.addSpacing(GAP // 2)
        self.add(*self._ways)
        self._way = USUAL
        self._show_way(USUAL)

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
        self.pair.setVisible(not device.paired)
        self.rename.setVisible(device.paired)
        self.forget.setVisible(device.paired)
        self.allow.setVisible(device.paired)
        self.allow.setChecked(device.policy == "always")
        if not device.paired:
            self._show_way(USUAL)

    def _name_buttons(self, name: str) -> None:
        for made, action in ((self.pair, "Pair with"), (self.rename, "Rename"), (self.forget, "Forget")):
            name_for_readers(made, f"{action} {name}")
        name_for_readers(self.allow, f"{name} may run scripts here without asking")
        name_for_readers(self._edit, f"New name of {name}")

    def _show_stale(self) -> None:
        if self._reading is not None:
            at = units.moment(self._clock() - words.STALE_AFTER_S, "%H:%M:%S")
            self.use.say(f"Nothing heard since {at} · {words.use_words(self._reading)}")
            self.use.make("warning")

    # --- renaming and forgetting ---------------------------------------------------------------------------

    def _begin_rename(self) -> None:
        shown = self._shown
        self._edit.setText("" if shown is None else shown.nickname)
        self._edit.setPlaceholderText("" if shown is None else shown.name[:NAME_LIMIT])
        self._show_way(RENAMING)
        self._edit.setFocus()

    def _rename(self) -> None:
        self.renamed.emit(self._edit.text().strip())
        self._end_edit()

    def _ask_forget(self) -> None:
        name = "" if self._shown is None else self._shown.shown_name
        self._sure.say(
            f"Forget {name}? It can no longer connect or train with this laptop until you pair again."
        )
        self._show_way(FORGETTING)
        self._keep.setFocus()

    def _forget(self) -> None:
        self.forgotten.emit()
        self._end_edit()

    def _end_edit(self) -> None:
        came_from = self._way
        self._show_way(USUAL)
        (self.rename if came_from == RENAMING else self.forget).setFocus()

    def _show_way(self, way: int) -> None:
        self._way = way
        for index, each in enumerate(self._ways):
            each.setVisible(index == way)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._way != USUAL:
            self._end_edit()
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
        self.where.say(words.addresses_words(addresses, 3) or "In no network")
        self.copy.setVisible(bool(addresses))
        self.hardware.say(words.hardware_words(me.hardware))
        self.use.say(words.use_words(me.reading))
        name_for_readers(self, me.name, "This laptop")

    def _address(self) -> str:
        return next(iter(words.in_the_network(self._me.addresses)), "") if self._me is not None else ""
