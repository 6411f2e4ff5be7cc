"""Machines: each laptop's use, live, and who waits for whom."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from app.bridge import Bridge
from app.models import stragglers
from app.theme import GAP
from app.views.view import View
from app.widgets.card import column, take_out
from app.widgets.labels import Label, name_for_readers
from app.widgets.machine_card import MachineCard
from app.widgets.page import Page
from app.words import device_words
from app.words.device_names import names_of
from core.vocabulary.events import Event, MemberEndedEpoch, MemberLogged, MemberProgressed, TelemetryReported
from core.vocabulary.ids import DeviceId
from core.vocabulary.readings import Reading
from core.vocabulary.state import Device, State

WIDE_CHARACTERS = 150
"""From this width on, two cards fit side by side."""
_STEPS = (MemberProgressed, MemberEndedEpoch, MemberLogged)


class MachinesView(View):
    """``clock``: seconds, monotonic. A laptop's own time says nothing about the age of its reading."""

    title = "Machines"

    def __init__(self, bridge: Bridge, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(bridge)
        self._clock = clock
        self._who_waits = stragglers.WaitingShown(clock)
        self._heard_s: dict[DeviceId, float] = {}
        self._shown: dict[DeviceId, Reading] = {}
        self._state = State()
        self.cards: dict[DeviceId, MachineCard] = {}
        page = Page(
            self.title,
            "GPU, CPU, memory and network of each laptop, now and over the last ten minutes. "
            "Recording starts when this window opens.",
        )
        self.setLayout(column(page))
        self.waiting = Label("", "warning", wraps=True)
        self.waiting.hide()
        self.wire = Label("", "faint", wraps=True)
        self.wire.hide()
        self.alone = Label(
            "Pair another laptop on the Devices screen to see it here too.", "faint", wraps=True
        )
        # Nothing in it takes the keyboard: its keys scroll.
        page.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        name_for_readers(page, self.title)
        self.setFocusProxy(page)
        cards = QWidget()
        self._grid = QGridLayout(cards)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(GAP)
        self._columns = 1
        page.add(self.waiting, self.wire, cards, self.alone, 1)
        self._age_timer = QTimer(self, interval=1000)
        self._age_timer.timeout.connect(self._show_ages)

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        self._state = state
        now_s = self._clock()
        self._keep_cards()
        for event in events:
            if isinstance(event, TelemetryReported):
                self._heard_s[event.device] = now_s
                # Also while another screen is in front, so that the history has no gap.
                self._take(event.device, event.reading)
        # Steps come often; waits are shown with the next reading.
        if self.isVisible() and not (events and all(isinstance(event, _STEPS) for event in events)):
            self._show()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show()
        self._age_timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._age_timer.stop()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        columns = 2 if self.width() > self.fontMetrics().averageCharWidth() * WIDE_CHARACTERS else 1
        if columns != self._columns:
            self._columns = columns
            self._lay_out()

    def _others(self) -> list[Device]:
        return [device for device in self._state.devices.values() if device.paired]

    def _take(self, device: DeviceId, reading: Reading) -> None:
        if device in self.cards:
            self._shown[device] = reading
            step = stragglers.steps_of(self._state.run).get(device)
            self.cards[device].show_reading(reading, step, self._clock())

    def _show(self) -> None:
        me = self._state.me
        if me is None:
            return
        others = self._others()
        self._keep_cards()
        self.cards[me.device].show_laptop(me.name, "This laptop", "faint", me.hardware)
        for other in others:
            words, kind = device_words.state_words(other)
            self.cards[other.device].show_laptop(other.shown_name, words, kind, other.hardware)
        for device, reading in {me.device: me.reading, **{o.device: o.reading for o in others}}.items():
            if reading is not None and reading != self._shown.get(device):
                self._heard_s.setdefault(device, self._clock())
                self._take(device, reading)
        self._show_waiting()
        self._show_ages()
        self.alone.setVisible(not others)

    def _show_waiting(self) -> None:
        run = self._state.run
        names = names_of(self._state, run.members) if run is not None else {}
        self.waiting.say_or_hide(self._who_waits.words(run, names))
        self.wire.say_or_hide(stragglers.wire_words(run))

    def _show_ages(self) -> None:
        now_s = self._clock()
        for device, card in self.cards.items():
            heard_s = self._heard_s.get(device)
            other = self._state.devices.get(device)
            why = "" if other is None or other.linked else "It is not connected."
            if other is not None and not other.linked and other.problem is not None:
                why = str(other.problem)
            card.show_age(None if heard_s is None else now_s - heard_s, why)
            card.history.show_until(now_s)

    def _keep_cards(self) -> None:
        """One per laptop, seen or not: its history begins with its first reading."""
        me = self._state.me
        wanted = [me.device, *(device.device for device in self._others())] if me is not None else []
        if wanted != list(self.cards):
            self._make_cards(wanted)

    def _make_cards(self, wanted: list[DeviceId]) -> None:
        for device in [device for device in self.cards if device not in wanted]:
            card = self.cards.pop(device)
            take_out(self._grid, card)
            self._heard_s.pop(device, None)
            self._shown.pop(device, None)
        self.cards = {device: self.cards.get(device) or MachineCard() for device in wanted}
        self._lay_out()

    def _lay_out(self) -> None:
        for place, card in enumerate(self.cards.values()):
            self._grid.addWidget(card, place // self._columns, place % self._columns)
            card.show()
