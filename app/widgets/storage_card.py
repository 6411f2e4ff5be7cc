"""What is stored here of other laptops and of own runs, and how long it stays; part of the settings."""

from __future__ import annotations

from app.bridge import Bridge
from app.widgets.buttons import button
from app.widgets.card import column, row
from app.widgets.labels import Label, faint, name_for_readers
from app.widgets.settings_card import SettingsCard
from app.words.device_words import problem_of
from core.vocabulary import units
from core.vocabulary.answers import Answer, Cleared, StorageMeasured
from core.vocabulary.commands import Clear, MeasureStorage


class StorageCard(SettingsCard):
    def __init__(self, bridge: Bridge) -> None:
        super().__init__("Stored files")
        self._bridge = bridge
        self.days = self.number("keep_days", "Days that they are kept", 3650, name="keep-days", unit=" days")
        self.gigabytes = self.number(
            "keep_gb", "Gigabytes that they may take", 100_000, name="keep-gb", unit=" GB"
        )
        self.save_limits = self.saver(
            "keep_days", "keep_gb", name="save-keep", words="Save how long and how much is kept"
        )
        self.clear = button("Clear…", self._ask, "danger", name="clear")
        self.keep = button("Keep", self._keep, name="keep-files")
        self.really = button("Really clear", self._clear, "danger", name="really-clear")
        name_for_readers(self.clear, "Clear the stored files")
        self.sizes = [Label("", wraps=True) for _ in range(5)]
        self.words = Label("", "faint", wraps=True)
        self._is_empty = self._is_clearing = False
        self.add(
            faint(
                "What other laptops sent and their runs left here, and outputs that your own runs could not "
                "bring back. Files are removed after this many days without use; beyond this size, the "
                "oldest are removed first, but nothing that was sent for the last run.",
                wraps=True,
            ),
            column(*self.sizes),
            row(self.days, self.gigabytes, self.save_limits, 1),
            self.words,
            row(1, self.clear, self.keep, self.really),
        )
        for label in (*self.sizes, self.words):
            label.hide()
        self._show_question(False)

    def measure(self) -> None:
        """Shows how much is stored now."""
        self._bridge.submit(MeasureStorage(), self._on_measured)

    def _on_measured(self, found: Answer) -> None:
        if not isinstance(found, StorageMeasured):
            return
        kinds = (
            ("Projects of other laptops, and files that came in part", found.projects_bytes),
            ("Data of other laptops", found.data_bytes),
            ("Files of other laptops' runs: outputs, checkpoints, logs", found.runs_bytes),
            ("Reports from other laptops", found.reports_bytes),
            ("Outputs of your own runs, in folders outputs-left", found.own_bytes),
        )
        self._is_empty = not any(size for _, size in kinds)
        self._allow_clear()
        lines = [f"{units.size(size)}: {words}" for words, size in kinds if size] or ["Nothing is stored."]
        for number, label in enumerate(self.sizes):
            label.say_or_hide(lines[number] if number < len(lines) else "")

    def _on_cleared(self, answer: Answer) -> None:
        self.measure()
        self._is_clearing = False
        self._allow_clear()
        problem = problem_of(answer)
        if isinstance(answer, Cleared):
            self.words.say_or_hide(f"Freed {units.size(answer.freed_bytes)}.")
        elif problem is not None:
            self.words.say_or_hide(str(problem))

    def _allow_clear(self) -> None:
        self.clear.setEnabled(not self._is_clearing and not self._is_empty)

    def _ask(self) -> None:
        self.measure()
        self.words.say_or_hide(
            "This removes everything listed above. The list of runs stays, and so do all other files of your "
            "own runs."
        )
        self._show_question(True)

    def _keep(self) -> None:
        self.words.say_or_hide("")
        self._show_question(False)

    def _clear(self) -> None:
        self._show_question(False)
        self._is_clearing = True
        self._allow_clear()
        self.words.say_or_hide("Clearing…")
        self._bridge.submit(Clear(), self._on_cleared)

    def _show_question(self, asked: bool) -> None:
        self.clear.setVisible(not asked)
        self.keep.setVisible(asked)
        self.really.setVisible(asked)
        if asked:
            self.keep.setFocus()
