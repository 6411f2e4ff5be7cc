"""Devices: this laptop and the others as cards; pairing begins here."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from PySide6.QtCore import QTimer, Signal

from app.bridge import Bridge
from app.theme import GAP
from app.views.pairing import UNDER_WAY
from app.views.view import View
from app.widgets.buttons import button
from app.widgets.card import ByKey, column
from app.widgets.device_card import DeviceCard, MyCard
from app.widgets.environment_card import EnvironmentCard
from app.widgets.labels import Label
from app.widgets.other_laptops import AddressCard, NobodyFound
from app.widgets.page import Page
from app.widgets.problem_box import ProblemBox
from app.widgets.tab_order import tab_as_seen
from app.words import device_words as words
from core.environment.recipe import WantedVersions
from core.net import address
from core.vocabulary.answers import Answer
from core.vocabulary.commands import Command, Pair
from core.vocabulary.errors import TandemError
from core.vocabulary.events import Event
from core.vocabulary.ids import DeviceId
from core.vocabulary.settings import DEFAULT_PORT
from core.vocabulary.state import Device, Me, State

NOBODY_AFTER_MS = 5_000
"""Others appear within two seconds; after this long without any, the user may need help."""


class DevicesView(View):
    """``doctor_asked``: the user wants a diagnosis. ``restart_asked``: into the environment."""

    title = "Devices"
    doctor_asked = Signal()
    restart_asked = Signal(object)

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self._devices: dict[DeviceId, Device] | None = None
        self._shown: tuple[object, ...] | None = None
        self._waited = False
        self._offered = False
        page = Page(self.title)
        self.setLayout(column(page))
        self.add = button("Add by address…", self._toggle_by_address, name="add-by-address")
        page.head.addWidget(self.add)
        self.mine = MyCard()
        self.problem = ProblemBox()
        self.environment = EnvironmentCard()
        self.environment.restart_asked.connect(self.restart_asked)
        self.looking = Label("Looking for other laptops in this network…", "faint")
        self.nobody = NobodyFound()
        self.nobody.doctor_asked.connect(self.doctor_asked)
        self.nobody.hide()
        self.by_address = AddressCard()
        self.by_address.asked.connect(self._pair_by_address)
        self.by_address.hide()
        cards = column(spacing=GAP)
        self._cards = ByKey(cards, self._new_card)
        page.add(self.mine, self.problem, self.environment, cards)
        page.add(self.looking, self.nobody, self.by_address, 1)
        self._page = page
        self._patience = QTimer(self, singleShot=True, interval=NOBODY_AFTER_MS)
        self._patience.timeout.connect(self._lose_patience)
        self.setFocusProxy(self.add)

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        shown = (state.me, state.busy, state.devices, state.pairing)
        if self._shown is not None and all(map(is_, shown, self._shown)):
            return  # a run's steps don't matter to this screen
        self._shown = shown
        self.mine.show_me(state.me, state.busy)
        if state.me is not None:
            if not self._waited and not self._patience.isActive():
                self._patience.start()
            self.by_address.show_own(state.me.addresses)
            self.nobody.show_port(_port(state.me.addresses))
        if state.devices is not self._devices:
            self._devices = state.devices
            self._show_devices(state.devices, state.me)
        pairing = state.pairing is not None and state.pairing.stage in UNDER_WAY
        for card in self._cards.values():
            card.show_busy_pairing(pairing)
        self.by_address.pair.setEnabled(not pairing)
        home = state.me.home if state.me is not None else ""
        self.environment.show_may_restart(own=self.bridge.own, busy=state.busy, home=home)
        self._show_emptiness(state)

    def _show_devices(self, devices: dict[DeviceId, Device], me: Me | None) -> None:
        moved = self._cards.keep(each.device for each in sorted(devices.values(), key=_rank))
        for device, card in self._cards.items():
            card.show_device(devices[device])
            card.show_may_match(words.may_match(me, devices[device]))
        if moved:
            tab_as_seen(self)

    def _new_card(self, device: DeviceId) -> DeviceCard:
        card = DeviceCard(device, self._ask)
        card.match_asked.connect(lambda: self.match(device))
        return card

    def match(self, device: DeviceId) -> None:
        """Offers to make an environment with that laptop's versions here."""
        known = self.bridge.state.devices.get(device)
        if known is not None and known.versions is not None:
            self.environment.ask(WantedVersions.like(known.versions))
            self._page.ensureWidgetVisible(self.environment)

    def _show_emptiness(self, state: State) -> None:
        nobody = not state.devices and state.me is not None
        self.looking.setVisible(nobody and not self._waited)
        self.nobody.setVisible(nobody and self._waited)
        if state.devices and self._offered and not self.by_address.edit.text():
            # It was offered because nobody was found.
            self._offered = False
            self.by_address.hide()

    def _lose_patience(self) -> None:
        self._waited = True
        self._show_emptiness(self.bridge.state)
        if not self.bridge.state.devices:
            self._offered = self.by_address.isHidden()
            self.by_address.show()

    def _toggle_by_address(self) -> None:
        self._offered = False
        self.by_address.setVisible(self.by_address.isHidden())
        if not self.by_address.isHidden():
            self.by_address.edit.setFocus()
            QTimer.singleShot(0, self.by_address, lambda: self._page.ensureWidgetVisible(self.by_address))

    def _pair_by_address(self, where: str) -> None:
        self.bridge.submit(
            Pair(address=where), lambda answer: self.by_address.show_problem(words.problem_of(answer))
        )

    def _ask(self, command: Command) -> None:
        self.bridge.submit(command, self._on_answer)

    def _on_answer(self, answer: Answer) -> None:
        self.problem.show_problem(words.problem_of(answer))
        # A refused change is reverted on screen: a check box may show the wrong state.
        for card in self._cards.values():
            device = self.bridge.state.devices.get(card.device)
            if device is not None:
                card.allow.setChecked(device.policy == "always")


def _rank(device: Device) -> tuple[bool, bool, str, str]:
    """Paired ones first, then present ones; names keep the order steady while states change."""
    return (not device.paired, not (device.linked or device.seen), device.shown_name.lower(), device.device)


def _port(addresses: tuple[str, ...]) -> int:
    try:
        return address.parse(addresses[0]).port if addresses else DEFAULT_PORT
    except TandemError:
        return DEFAULT_PORT
