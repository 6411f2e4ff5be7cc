"""The button by which this laptop leaves the run, and the question that it asks first."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.bridge import Bridge
from app.widgets.buttons import button
from app.widgets.card import Card, row
from app.widgets.labels import Label, name_for_readers, set_tooltip
from app.words.device_names import names_of
from core.run import departure
from core.vocabulary.answers import Answer, Refused
from core.vocabulary.commands import LeaveRun
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import Run, State
from core.vocabulary.text import listed, plain

LEAVE, STAY, STOP = "Leave this run", "Stay", "Stop for all"
_HINT = "The training on this laptop ends, and the others go on."


class LeaveThisRun(QObject):
    """``button`` goes beside Stop, ``question`` below. ``stop_asked``: the others cannot go on, and the user
    chose to stop the run instead."""

    stop_asked = Signal()

    def __init__(self, around: QWidget, bridge: Bridge) -> None:
        super().__init__(around)
        self._bridge = bridge
        self.button = button(LEAVE, self._ask, name="leave")
        set_tooltip(self.button, _HINT)
        self.button.hide()
        self.words = Label("", wraps=True)
        self.stay = button(STAY, self._close, name="stay")
        self.really = button(LEAVE, self._leave, "danger", name="really-leave")
        self.stop = button(STOP, self._stop, "danger", name="stop-for-all")
        name_for_readers(self.stop, "Stop the run for all laptops")
        self.question = Card()
        self.question.add(self.words, row(1, self.stay, self.really, self.stop))
        self.question.hide()

    def show_run(self, run: Run, state: State) -> None:
        me = state.me.device if state.me is not None else None
        there = me is not None and departure.takes_part(run, me)
        self.button.setVisible(there)
        if not there:
            self.question.hide()
        elif not self.question.isHidden():
            self._say(run, state)

    def _ask(self) -> None:
        state = self._bridge.state
        if state.run is not None and state.me is not None:
            self._say(state.run, state)
            self.question.show()
            self.stay.setFocus()

    def _say(self, run: Run, state: State) -> None:
        assert state.me is not None
        why = departure.why_not(run, state.me.device)
        self.really.setVisible(why is None)
        self.stop.setVisible(why is not None)
        self.words.say(str(why) if why is not None else consequences(run, state, state.me.device))

    def _close(self) -> None:
        self.question.hide()
        self.button.setFocus()

    def _stop(self) -> None:
        self._close()
        self.stop_asked.emit()

    def _leave(self) -> None:
        run = self._bridge.state.run
        if run is None:
            return

        def on_answer(answer: Answer) -> None:
            if isinstance(answer, Refused):
                self.words.say(str(answer.problem))
                self.question.show()

        self._close()
        self._bridge.submit(LeaveRun(run=run.plan.run), on_answer)


def consequences(run: Run, state: State, me: DeviceId) -> str:
    """What happens to the others, and to this laptop's files."""
    others = list(names_of(state, [device for device in run.staying if device != me]).values())
    who, go_on = plain(listed(others), 200), "goes on" if len(others) == 1 else "go on"
    if run.plan.starter == me:
        own = (
            "Tandem here still coordinates the run, so keep it open; the trained model and the outputs come "
            "here at the end, and your files stay as they are. This laptop trains again once you add a "
            "laptop, or press Stop and Resume."
        )
    else:
        own = (
            "This laptop's copy of the project is deleted when the run ends, as always; your own files are "
            "not touched. It comes back only if it is added again."
        )
    return f"{who} {go_on} from the same step without this laptop, with the same result. {own}"
