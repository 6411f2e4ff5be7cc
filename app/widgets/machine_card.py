"""One laptop's use: live bars, the last ten minutes, and its age where nothing comes any more."""

from __future__ import annotations

from app import device_words
from app.models import readings, stragglers
from app.models.readings import Line
from app.models.stragglers import Step
from app.widgets.card import Card, column, row, take_out
from app.widgets.gauge import Gauge
from app.widgets.history import History
from app.widgets.labels import ElidedLabel, Label
from core.vocabulary.readings import Hardware, Reading

_WAITING_FOR_FIRST = "Its first reading comes within a second of its connection."


class MachineCard(Card):
    """``show_reading`` for each that comes; ``show_age`` once a second. ``history`` has the last minutes of
    what is a part of a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.name = ElidedLabel("", "heading")
        self.state = Label("", "faint")
        self.hardware = ElidedLabel("", "faint")
        self.missing = Label(_WAITING_FOR_FIRST, "faint", wraps=True)
        self.gauges: dict[str, Gauge] = {}
        self._most_bytes_s = 0.0
        self._has_reading = False
        self.body.addLayout(row(self.name, 1, self.state))
        self.body.addWidget(self.hardware)
        self.body.addWidget(self.missing)
        self._lines = column()
        self.body.addLayout(self._lines)
        self.history = History()
        self.history.hide()
        self.body.addWidget(self.history)
        self.body.addStretch(1)

    def show_laptop(self, name: str, state: str, kind: str, hardware: Hardware | None) -> None:
        self.name.say(name)
        self.setAccessibleName(name)
        self.state.say(state)
        self.state.make(kind)
        self.hardware.say(device_words.hardware_words(hardware))
        self.hardware.setVisible(hardware is not None)

    def show_reading(self, reading: Reading, step: Step | None, at_s: float) -> None:
        """``at_s``: when it came, monotonic."""
        self._has_reading = True
        self._most_bytes_s = max(self._most_bytes_s, reading.sent_bytes_s + reading.received_bytes_s)
        lines = readings.lines_of(reading, self._most_bytes_s)
        if step is not None:
            lines.append(Line("Step", 1 - step.waiting, stragglers.step_words(step)))
            if step.share is not None:
                lines.append(Line("Share", step.share.part, step.share.words))
        elif "Step" in self.gauges:
            lines.append(Line("Step", None, "no run here that reports its steps"))
        self.history.add(at_s, {line.name: line.part for line in lines if line.name in readings.KEPT})
        self.history.show()
        self._keep_only([line.name for line in lines])
        for line in lines:
            self.gauges[line.name].show_reading(line.part, line.words, alarm=line.alarm)
            self.gauges[line.name].make_stale(False)

    def show_age(self, age_s: float | None, why: str) -> None:
        """Seconds since the last reading, None before the first; ``why`` there is none, if known."""
        stale = age_s is None or age_s > device_words.STALE_AFTER_S
        for gauge in self.gauges.values():
            gauge.make_stale(stale)
        self.missing.setVisible(stale)
        if age_s is not None and stale:
            self.missing.say(f"No reading for {_age(age_s)}. {why}".strip())
        elif stale:
            self.missing.say(why or _WAITING_FOR_FIRST)

    def _keep_only(self, names: list[str]) -> None:
        if names == list(self.gauges):
            return
        for name in [name for name in self.gauges if name not in names]:
            gauge = self.gauges.pop(name)
            take_out(self._lines, gauge)
        kept = {name: self.gauges[name] if name in self.gauges else Gauge(name) for name in names}
        for gauge in kept.values():
            self._lines.removeWidget(gauge)
            self._lines.addWidget(gauge)
        self.gauges = kept


def _age(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"
