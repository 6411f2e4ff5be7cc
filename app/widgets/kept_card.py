"""What paired laptops keep of each other's projects, looked at and removed; part of the settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import get_args

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.device_words import kept_words
from app.theme import GAP
from app.widgets.buttons import button
from app.widgets.card import Card, column, row, take_out
from app.widgets.labels import ElidedLabel, Label, faint, heading, name_for_readers
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.answers import KeptList
from core.vocabulary.errors import Problem
from core.vocabulary.holdings import Kept, Where
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.state import Device


class KeptCard(Card):
    """``asked(device)``: what is kept is to be looked at. ``removed(device, where)``: all of it has to go."""

    asked = Signal(str)
    removed = Signal(str, str)

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[DeviceId, _Line] = {}
        self.none = faint("Nobody is paired yet.")
        self._list = QVBoxLayout()
        self._list.setSpacing(GAP // 2)
        self.body.addWidget(heading("Projects on other laptops"))
        self.body.addWidget(
            faint(
                "Files that were sent for runs, and what the runs left there. Removing them leaves the list "
                "of runs as it is.",
                wraps=True,
            )
        )
        self.body.addWidget(self.none)
        self.body.addLayout(self._list)

    def show_devices(self, devices: dict[DeviceId, Device]) -> None:
        paired = {device: each for device, each in devices.items() if each.paired}
        for gone in self._lines.keys() - paired.keys():
            take_out(self._list, self._lines.pop(gone))
        for device, each in paired.items():
            if device not in self._lines:
                self._lines[device] = _Line(self, device)
                self._list.addWidget(self._lines[device])
                tab_as_seen(self)
            self._lines[device].show_device(each)
        self.none.setVisible(not paired)

    def show_kept(self, found: KeptList) -> None:
        if (line := self._lines.get(found.device)) is not None:
            line.show_kept(found)

    def show_problem(self, device: DeviceId, problem: Problem) -> None:
        if (line := self._lines.get(device)) is not None:
            line.show_problem(problem)


class _Line(QWidget):
    def __init__(self, card: KeptCard, device: DeviceId) -> None:
        super().__init__()
        self.setObjectName(f"kept-{short(device)}")
        self._card, self._device = card, device
        self.name = ElidedLabel("", "")
        self.look = button("Look", self._look, name="look")
        self.words = Label("", "faint", wraps=True)
        self.sides: dict[Where, _Side] = {}
        for where in get_args(Where):
            self.sides[where] = _Side(partial(self._remove, where), where)
        self.setLayout(
            column(row(self.name, self.look, 1), self.words, self.sides["there"], self.sides["here"])
        )
        self.words.hide()

    def show_device(self, device: Device) -> None:
        name = device.shown_name
        self.name.say(name)
        name_for_readers(self.look, f"Look at what {name} and this laptop keep of each other")
        self.sides["there"].title = f"Yours on {name}"
        self.sides["here"].title = f"{name}'s here"

    def show_kept(self, found: KeptList) -> None:
        self.look.setEnabled(True)
        self._say(str(found.problem) if found.problem is not None else "")
        self.sides["there"].show_kept(found.there)
        self.sides["here"].show_kept(found.here)

    def show_problem(self, problem: Problem) -> None:
        self.look.setEnabled(True)
        self._say(str(problem))

    def _look(self) -> None:
        self.look.setEnabled(False)
        self._say("Looking…")
        self._card.asked.emit(self._device)

    def _remove(self, where: Where) -> None:
        self.look.setEnabled(False)
        self._say("Removing…")
        self._card.removed.emit(self._device, where)

    def _say(self, words: str) -> None:
        self.words.say(words)
        self.words.setVisible(bool(words))


class _Side(QWidget):
    """One laptop's disk, and the question before it is tidied up."""

    def __init__(self, remove: Callable[[], None], where: Where) -> None:
        super().__init__()
        self.title = ""
        self._anything = False
        self.words = Label("", "", wraps=True)
        self.remove = button("Remove…", lambda: self._show_question(True), "danger", name=f"remove-{where}")
        self.keep = button("Keep", lambda: self._show_question(False), name=f"keep-{where}")

        def really() -> None:
            self._show_question(False)
            remove()

        self.really = button("Really remove", really, "danger", name=f"really-{where}")
        self.setLayout(row(self.words, 1, self.remove, self.keep, self.really))
        self.hide()

    def show_kept(self, kept: Kept | None) -> None:
        self.setVisible(kept is not None)
        if kept is None:
            return
        self.words.say(f"{self.title}: {kept_words(kept)}")
        self._anything = bool(kept.projects or kept.runs)
        for each, verb in ((self.remove, "Remove"), (self.really, "Really remove"), (self.keep, "Keep")):
            name_for_readers(each, f"{verb} what is {self.title[0].lower()}{self.title[1:]}")
        self._show_question(False)

    def _show_question(self, asked: bool) -> None:
        self.remove.setVisible(not asked and self._anything)
        self.keep.setVisible(asked)
        self.really.setVisible(asked)
        if asked:
            self.keep.setFocus()
