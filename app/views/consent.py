"""The consent sheet: another laptop wants to run a script here. It opens on the script."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from msgspec.structs import replace
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from app.bridge import Bridge
from app.theme import GAP
from app.widgets.buttons import button, escape_mnemonic
from app.widgets.card import column
from app.widgets.flow import Flow
from app.widgets.fold import Fold
from app.widgets.labels import Label, TextView, name_for_readers
from app.widgets.problem_box import ProblemBox
from app.widgets.request_look import RequestLook
from app.widgets.sheet import Sheet
from app.words.device_names import other_names
from app.words.device_words import (
    changed_words,
    data_words,
    deed_lines,
    opened_words,
    problem_of,
    reach_words,
    takes_words,
)
from core.vocabulary import units
from core.vocabulary.answers import Answer, RequestRead
from core.vocabulary.commands import AnswerConsent, Decision, LookAtRequest
from core.vocabulary.errors import Problem
from core.vocabulary.events import ConsentAsked
from core.vocabulary.ids import RunId
from core.vocabulary.lookalikes import caution
from core.vocabulary.state import State
from core.vocabulary.text import plain, spelled

FILES_SHOWN = 500
LONG_ARGUMENTS = 800
"""Characters; longer ones get their own scrolling box."""
WIDE = 150
"""Maximum width of the sheet in average characters."""
CHANGED = Problem(
    code="script-changed",
    what="This is not what you allowed before.",
    fix="See below what changed; ask its user if you did not expect it.",
)


class ConsentSheet(Sheet):
    """Shows the oldest open question of ``state.consents``. ``incoming`` comes once for each.

    ``withdrawn(problem)``: the question in front ended without an answer from here. ``allowed(run)``: the
    user said yes.
    """

    incoming = Signal(str)
    allowed = Signal(str)
    withdrawn = Signal(object)

    def __init__(self, bridge: Bridge, parent: QWidget) -> None:
        super().__init__(parent, "Consent", characters=WIDE, tall=True)
        self.setObjectName("consent")
        self._bridge = bridge
        self._shown: RunId | None = None
        self._asking: ConsentAsked | None = None
        self.heading = Label("", "title", wraps=True)
        self.words = Label("", wraps=True)
        self.changed = ProblemBox(CHANGED, "warning")
        self.caution = Label("", "warning", wraps=True)
        self.comes = Label("", wraps=True)
        self.asks_more = Label("", "warning", wraps=True)
        self.opened = TextView("Files it asks for", lines=4, wraps=True)
        self.script = Label("", "heading", wraps=True)
        self.arguments = Label("", "mono", wraps=True)
        self.long_arguments = TextView("Arguments", lines=8, wraps=True)
        self.deeds: list[Label] = []
        self.digest = TextView("Fingerprint of these files (SHA-256)", lines=1)
        self.total = Label("", "faint", wraps=True)
        self.files = _files()
        self.problem = ProblemBox()
        self.more = Label("", "faint")
        self.once = button("Allow once", lambda: self._answer("once"), "primary", name="allow-once")
        self.always = button("", lambda: self._answer("always"), name="allow-always")
        self.no = button("No", lambda: self._answer("no"), "danger", name="refuse")
        self.look = RequestLook()
        self.details = Fold("Details", name="consent-details")
        for detail in (self.total, self.digest, self.files):
            self.details.body.addWidget(detail)
        # There is room for one of the two.
        self.details.unfolded.connect(lambda unfolded: self.look.setVisible(not unfolded))
        for piece in (self.heading, self.caution, self.words, self.comes, self.asks_more, self.opened):
            self.body.addWidget(piece)
        self.body.addWidget(self.changed)
        self._deeds = column(self.script, self.arguments, self.long_arguments, spacing=GAP // 4)
        self.body.addLayout(self._deeds)
        self.body.addWidget(self.look, 1)
        for below in (self.details, self.problem, self.more):
            self.body.addWidget(below)
        self.answers = Flow(self.no, self.always, self.once, right=self.always)
        self.body.addWidget(self.answers)

    def show_state(self, state: State) -> None:
        open_ones = state.consents
        if self._asking is not None and all(consent.run != self._asking.run for consent in open_ones):
            gone, self._asking = self._asking, None
            self.withdrawn.emit(_gone(gone, state))
        if not open_ones:
            self._shown = None
            self.shut()
            return
        first = open_ones[0]
        is_new = first.run != self._shown
        if is_new:
            self._shown = first.run
            self._asking = first
            self._show(first, state)
            self.setFocus()
        waiting = len(open_ones) - 1
        self.more.say(f"{waiting} more {'asks' if waiting == 1 else 'ask'} after this" if waiting else "")
        self.more.setVisible(bool(waiting))
        self.open()
        if is_new:
            self.incoming.emit(first.name)

    def on_escape(self) -> None:
        self._answer("no")

    def _on_read(self, run: RunId, answer: Answer) -> None:
        if run != self._shown:
            return
        self.problem.show_problem(problem_of(answer))
        if isinstance(answer, RequestRead):
            self.look.show_files(answer.files)
            self._show_deeds(deed_lines(answer.files))
            self.look.setVisible(not self.details.is_open)

    def _show_deeds(self, lines: Sequence[tuple[str, bool]]) -> None:
        while len(self.deeds) < len(lines):
            self.deeds.append(Label(wraps=True))
            self._deeds.addWidget(self.deeds[-1])
        for number, label in enumerate(self.deeds):
            words, marked = lines[number] if number < len(lines) else ("", False)
            label.say(words)
            label.make("warning" if marked else "")
            label.setVisible(bool(words))

    def _show(self, consent: ConsentAsked, state: State) -> None:
        fix = f"{changed_words(consent.differs, consent.beyond)} {CHANGED.fix}"
        self.changed.show_problem(replace(CHANGED, fix=fix) if consent.changed else None, "warning")
        self.heading.say(f"{consent.name} wants to train with this laptop")
        careful = caution(consent.name, other_names(state, consent.device))
        self.caution.say(careful)
        self.caution.setVisible(bool(careful))
        sets = consent.argument_sets
        tries = f", with {len(sets)} sets of arguments one after another" if sets else ""
        self.script.say(f"{spelled(consent.script)}{tries}")
        arguments = "\n".join(map(_in_words, sets)) if sets else _in_words(consent.arguments)
        is_long = len(arguments) > LONG_ARGUMENTS or bool(sets)
        self.arguments.say("" if is_long else arguments)
        self.long_arguments.setPlainText(arguments if is_long else "")
        self.arguments.setVisible(bool(arguments) and not is_long)
        self.long_arguments.setVisible(is_long)
        size = units.size(sum(file.size for file in consent.files))
        count = len(consent.files)
        total = f"1 file, {size}" if count == 1 else f"{count:,} files, {size}"
        if consent.checkpoint_bytes:
            total += f", and a checkpoint of {units.size(consent.checkpoint_bytes)} to resume from"
        self.total.say(total)
        comes = filter(None, (*data_words(consent.data), takes_words(consent)))
        self.comes.say_or_hide(" ".join(comes))
        self.words.say(reach_words(consent.walls, consent.gaps, consent.network))
        asks, _, paths = opened_words(consent.opened).partition("\n")
        self.asks_more.say(asks)
        self.opened.setPlainText(paths)
        for asked in (self.asks_more, self.opened):
            asked.setVisible(bool(asks))
        self.digest.setPlainText(f"Fingerprint (SHA-256): {consent.project}")
        self.files.clear()
        for file in consent.files[:FILES_SHOWN]:
            self.files.addTopLevelItem(QTreeWidgetItem([_wrapped(spelled(file.path)), units.size(file.size)]))
        if count > FILES_SHOWN:
            self.files.addTopLevelItem(QTreeWidgetItem([f"and {count - FILES_SHOWN:,} more files", ""]))
        self.always.setText(escape_mnemonic(f"Always allow {plain(consent.name, 24)}"))
        name_for_readers(self.always, f"Always allow {consent.name} to run scripts here")
        self._show_deeds(())
        self.look.hide()
        self.problem.show_problem(None)
        self._bridge.submit(LookAtRequest(run=consent.run), lambda answer: self._on_read(consent.run, answer))
        self.enable_soon(self.once, self.always, self.no)
        name_for_readers(self, self.heading.text(), f"{consent.script}, {self.total.text()}")

    def _answer(self, decision: Decision) -> None:
        run = self._shown
        if run is None or not self.no.isEnabled():
            return
        self.disable(self.once, self.always, self.no)
        self._asking = None
        if decision != "no":
            self.allowed.emit(run)
        self._bridge.submit(
            AnswerConsent(run=run, decision=decision), lambda answer: self._on_answer(run, answer)
        )

    def _on_answer(self, run: RunId, answer: Answer) -> None:
        problem = problem_of(answer)
        if problem is not None and run == self._shown:
            self.problem.show_problem(problem)
            self.enable_soon(self.once, self.always, self.no)


def _gone(consent: ConsentAsked, state: State) -> Problem:
    name = plain(consent.name, 40)
    device = state.devices.get(consent.device)
    if device is None or not device.linked:
        fix = device.problem.fix if device is not None and device.problem is not None else ""
        return Problem(
            code="asking-lost",
            what=f"{name} was lost while it asked to train here. Nothing of it ran on this laptop.",
            fix=fix or f"Once {name} is back, its user can press Train again.",
        )
    return Problem(
        code="asking-over",
        what=f"{name} no longer asks to train here: its user took that back, or it was answered elsewhere.",
        fix="There is nothing to do.",
    )


def _files() -> QTreeWidget:
    files = QTreeWidget()
    files.setObjectName("files")
    files.setAccessibleName("Files that come with the script")
    files.setHeaderLabels(["File", "Size"])
    files.setRootIsDecorated(False)
    files.setTextElideMode(files.textElideMode().ElideMiddle)
    files.header().setStretchLastSection(False)
    files.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
    files.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
    files.setMinimumHeight(files.fontMetrics().height() * 4)
    return files


def _wrapped(path: str) -> str:
    return "\n".join(textwrap.wrap(path, WIDE - 40, replace_whitespace=False, drop_whitespace=False))


def _in_words(arguments: Sequence[str]) -> str:
    return " ".join(_quoted(spelled(argument)) for argument in arguments)


def _quoted(argument: str) -> str:
    """Shows where an argument begins and ends: that is part of the consent."""
    return argument if argument and not any(char.isspace() for char in argument) else f"“{argument}”"
