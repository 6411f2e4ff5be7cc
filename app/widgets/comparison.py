"""Runs side by side in words: what differs between them is what one wants to see."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QGridLayout, QWidget

from app.models.runs_model import goes_on_from, started
from app.run_words import duration, number, phase_words
from app.theme import GAP
from app.widgets.labels import ElidedLabel, Label
from core.speed.sentences import speed_up, steps_words, times
from core.vocabulary.answers import RunEntry


class Comparison(QWidget):
    """One column a run."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(GAP * 2)
        self._grid.setVerticalSpacing(GAP // 3)

    def show_runs(self, entries: Sequence[RunEntry]) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        columns = [lines_of(entry) for entry in entries]
        names = dict.fromkeys(name for column in columns for name in column)
        for line, name in enumerate(names):
            self._grid.addWidget(Label(name, "faint"), line, 0)
            values = [column.get(name, "") for column in columns]
            for place, value in enumerate(values, start=1):
                kind = "heading" if len(set(values)) > 1 else ""
                self._grid.addWidget(ElidedLabel(value, kind), line, place)
                self._grid.setColumnStretch(place, 1)


def lines_of(entry: RunEntry) -> dict[str, str]:
    """Name and value, in the order in which they are shown."""
    summary = entry.summary
    # Where it is known without the first seconds, that is what one means by speed.
    rate = summary.settled.samples_s if summary.settled is not None else None
    rate = summary.samples_s if rate is None else rate
    gain = speed_up(summary)
    lines = {
        "Started": started(entry),
        "Script": " ".join((entry.script, *entry.arguments)),
        "State": ", ".join(filter(None, (phase_words(entry.phase), goes_on_from(entry)))),
        "Laptops": ", ".join(entry.devices),
        "Duration": "" if entry.duration_s is None else duration(entry.duration_s),
        "Speed": "" if rate is None else f"{rate:,.0f} samples/s",
        "Speed-up": "" if gain is None else f"{times(gain)}×",
        "Steps": steps_words(summary),
        **{name: number(value) for name, value in list(summary.last_logs.items())[:12]},
    }
    return {name: value for name, value in lines.items() if value}
