"""One laptop's use: live bars, the last ten minutes, and the reading's age once no more come."""

from __future__ import annotations

from app.models import readings, stragglers
from app.models.readings import ReadingLine
from app.models.stragglers import StepTime
from app.widgets.card import ByKey, Card, column, row
from app.widgets.history import UseHistory
from app.widgets.labels import ElidedLabel, Label
from app.widgets.reading_bar import ReadingBar
from app.words import device_words
from core.vocabulary import units
from core.vocabulary.readings import Hardware, Reading

_WAITING_FOR_FIRST = "Its first reading comes within a second of its connection."


class MachineCard(Card):
    """Call ``show_reading`` for each reading, and ``show_age`` once a second. ``history`` has the last
    minutes of the readings that are fractions of a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.name = ElidedLabel("", "heading")
        self.state = Label("", "faint")
        self.hardware = ElidedLabel("", "faint")
        self.missing = Label(_WAITING_FOR_FIRST, "faint", wraps=True)
        self._most_bytes_s = 0.0
        lines = column()
        self.bars = ByKey(lines, ReadingBar)
        self.history = UseHistory()
        self.history.hide()
        self.add(row(self.name, 1, self.state), self.hardware, self.missing, lines, self.history, 1)

    def show_laptop(self, name: str, state: str, kind: str, hardware: Hardware | None) -> None:
        self.name.say(name)
        self.setAccessibleName(name)
        self.state.say(state)
        self.state.make(kind)
        self.hardware.say(device_words.hardware_words(hardware))
        self.hardware.setVisible(hardware is not None)

    def show_reading(self, reading: Reading, step: StepTime | None, at_s: float) -> None:
        """``at_s``: its arrival time, monotonic."""
        self._most_bytes_s = max(self._most_bytes_s, reading.sent_bytes_s + reading.received_bytes_s)
        lines = readings.lines_of(reading, self._most_bytes_s)
        if step is not None:
            lines.append(ReadingLine("Step", 1 - step.waiting, stragglers.step_words(step)))
            if step.share is not None:
                lines.append(ReadingLine("Share", step.share.part, step.share.words))
        elif "Step" in self.bars:
            lines.append(ReadingLine("Step", None, "no run here that reports its steps"))
        self.history.add(at_s, {line.name: line.part for line in lines if line.name in readings.KEPT})
        self.history.show()
        self.bars.keep(line.name for line in lines)
        for line in lines:
            self.bars[line.name].show_reading(line.part, line.words, alarm=line.alarm)
            self.bars[line.name].make_stale(False)

    def show_age(self, age_s: float | None, why: str) -> None:
        """Seconds since the last reading, None before the first; ``why`` there is none, if known."""
        stale = age_s is None or age_s > device_words.STALE_AFTER_S
        for bar in self.bars.values():
            bar.make_stale(stale)
        self.missing.setVisible(stale)
        if age_s is not None and stale:
            self.missing.say(f"No reading for {units.duration(age_s)}. {why}".strip())
        elif stale:
            self.missing.say(why or _WAITING_FOR_FIRST)
