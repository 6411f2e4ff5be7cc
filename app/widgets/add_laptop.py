"""The button by which a paired laptop joins the run under way."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMenu, QWidget

from app.bridge import Bridge
from app.widgets.buttons import button, escape_mnemonic
from app.widgets.labels import BriefLabel, set_tooltip
from app.words.device_names import names_of
from core.run.abilities import why_not
from core.vocabulary.answers import Answer, Refused
from core.vocabulary.commands import AddLaptops
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Training
from core.vocabulary.state import Run, State

ADD = "Add a laptop"
_HINT = "The laptop is asked first. Then the run stops at the end of a step and goes on with it."


class AddLaptop(QObject):
    """``button`` goes beside Stop, ``said`` below. The button is hidden where no laptop could join."""

    def __init__(self, around: QWidget, bridge: Bridge) -> None:
        super().__init__(around)
        self._bridge = bridge
        self._menu = QMenu(around)
        self.button = button(ADD, lambda: None, name="add-laptop")
        self.button.setMenu(self._menu)
        set_tooltip(self.button, _HINT)
        self._offered: tuple[RunId, dict[DeviceId, str]] | None = None
        self.button.hide()
        self.said = BriefLabel()

    def show_run(self, run: Run, state: State) -> None:
        names = names_of(state, joinable(run, state))
        self.button.setVisible(bool(names))
        if self._offered == (run.plan.run, names):
            return
        self._offered = run.plan.run, names
        self._menu.clear()
        for device, name in names.items():
            action = self._menu.addAction(escape_mnemonic(name))
            action.triggered.connect(partial(self._add, run.plan.run, device, name))

    def _add(self, run: RunId, device: DeviceId, name: str, _checked: bool = False) -> None:
        def on_answer(answer: Answer) -> None:
            if isinstance(answer, Refused):
                self.said.tell(f"{answer.problem.what} {answer.problem.fix}", "bad")
            else:
                self.said.tell(f"Asking {name}. The run goes on meanwhile.", "faint")

        self._bridge.submit(AddLaptops(run=run, devices=(device,)), on_answer)


def joinable(run: Run, state: State) -> list[DeviceId]:
    """Laptops that ``AddLaptops`` takes: those outside of a managed run that trains and began here, if
    they are idle or have left it."""
    mine = state.me is not None and run.plan.starter == state.me.device
    if not mine or run.plan.strategy != "managed" or not isinstance(run.phase, Training):
        return []
    present = {device for device, member in run.members.items() if member.left is None}
    return [
        device.device
        for device in state.devices.values()
        if device.device not in present
        and (why_not(device) is None or (device.linked and device.paired and device.device in run.members))
    ]  # it watches
