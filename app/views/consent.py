"""The consent sheet: another laptop wants to run a script here."""

from __future__ import annotations

from msgspec.structs import replace
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from app.bridge import Bridge
from app.device_words import NETWORKS, OPEN_PORT, changed_words, problem_of, size_words
from app.widgets.buttons import button
from app.widgets.flow import Flow
from app.widgets.labels import ElidedLabel, Label, name_for_readers
from app.widgets.problem_box import ProblemBox
from app.widgets.request_look import RequestLook
from app.widgets.sheet import Sheet
from core.vocabulary.answers import Answer, RequestRead
from core.vocabulary.commands import AnswerConsent, Decision, LookAtRequest
from core.vocabulary.errors import Problem
from core.vocabulary.ids import RunId
from core.vocabulary.state import Consent, State
from core.vocabulary.text import plain

FILES_SHOWN = 500
ASKING, LOOKING = 104, 150
"""Average characters that the sheet is wide at most."""
CHANGED = Problem(
    code="script-changed",
    what="This is not what you allowed before.",
    fix="Look at the files to see what changed; ask its user if you did not expect it.",
)


class ConsentSheet(Sheet):
    """Shows the oldest open question of ``state.consents``. ``incoming`` comes once for each.

    ``withdrawn(problem)``: the question in front went without an answer from here.
    """

    incoming = Signal(str)
    withdrawn = Signal(object)

    def __init__(self, bridge: Bridge, parent: QWidget) -> None:
        super().__init__(parent, "Consent", characters=ASKING)
        self.setObjectName("consent")
        self._bridge = bridge
        self._shown: RunId | None = None
        self._asking: Consent | None = None
        self._changed = self._open_port = False
        self._told: set[RunId] = set()
        self.heading = Label("", "title", wraps=True)
        self.words = Label(
            "A script can do on this laptop whatever you can: read your files, use the network. "
            "Allow it only if you trust who sends it.",
            wraps=True,
        )
        self.changed = ProblemBox(CHANGED, "warning")
        self.open_port = ProblemBox(OPEN_PORT)
        self.script = ElidedLabel("", "heading")
        self.arguments = Label("", "mono", wraps=True)
        self.digest = ElidedLabel("", "faint")
        self.total = Label("", "faint")
        self.files = _files()
        self.problem = ProblemBox()
        self.more = Label("", "faint")
        self.once = button("Allow once", lambda: self._answer("once"), "primary", name="allow-once")
        self.always = button("", lambda: self._answer("always"), name="allow-always")
        self.no = button("No", lambda: self._answer("no"), "danger", name="refuse")
        self.looks = button("Look at the files", self._turn_over, name="look-at-files")
        self.look = RequestLook()
        self.body.addWidget(self.heading)
        for piece in (
            self.words,
            self.open_port,
            self.changed,
            self.script,
            self.arguments,
            self.total,
            self.files,
        ):
            self.body.addWidget(piece)
        self.body.addWidget(self.look, 1)
        for piece in (self.digest, self.problem, self.more):
            self.body.addWidget(piece)
        self.answers = Flow(self.no, self.looks, self.always, self.once, right=self.always)
        self.body.addWidget(self.answers)

    def show_state(self, state: State) -> None:
        open_ones = state.consents
        self._told &= {consent.run for consent in open_ones}
        if self._asking is not None and all(consent.run != self._asking.run for consent in open_ones):
            gone, self._asking = self._asking, None
            self.withdrawn.emit(_gone(gone, state))
        if not open_ones:
            self._shown = None
            self.shut()
            return
        first = open_ones[0]
        if first.run != self._shown:
            self._shown = first.run
            self._asking = first
            self._show(first)
            self.setFocus()
        waiting = len(open_ones) - 1
        self.more.say(f"{waiting} more {'asks' if waiting == 1 else 'ask'} after this" if waiting else "")
        self.more.setVisible(bool(waiting))
        self.open()
        if first.run not in self._told:
            self._told.add(first.run)
            self.incoming.emit(first.name)

    def on_escape(self) -> None:
        if self.look.isHidden():
            self._answer("no")
        else:
            self._turn_over()

    # --- looking -------------------------------------------------------------------------------------------

    def _turn_over(self) -> None:
        """From the question to its files, or back."""
        run = self._shown
        if self.look.isHidden() and run is not None:
            self._bridge.submit(LookAtRequest(run=run), lambda answer: self._on_read(run, answer))
        else:
            self._show_side(looking=False)

    def _on_read(self, run: RunId, answer: Answer) -> None:
        if run != self._shown:
            return
        self.problem.show_problem(problem_of(answer))
        if isinstance(answer, RequestRead):
            self.look.show_files(answer.files)
            self._show_side(looking=True)
            self.look.list.setFocus()

    def _show_side(self, *, looking: bool) -> None:
        for piece in (self.words, self.script, self.total, self.files):
            piece.setVisible(not looking)
        self.changed.setVisible(not looking and self._changed)
        self.open_port.setVisible(not looking and self._open_port)
        self.arguments.setVisible(not looking and bool(self.arguments.text()))
        self.look.setVisible(looking)
        self.widen(LOOKING if looking else ASKING, tall=looking)
        words = "Back to the question" if looking else "Look at the files"
        self.looks.setText(words)
        name_for_readers(self.looks, words)

    def _show(self, consent: Consent) -> None:
        self._changed, self._open_port = consent.changed, consent.open_port
        fix = f"{changed_words(consent.differs)} {CHANGED.fix}"
        self.changed.show_problem(replace(CHANGED, fix=fix), "warning")
        self.heading.say(f"{consent.name} wants to train with this laptop")
        self.script.say(consent.script)
        self.arguments.say(" ".join(_quoted(argument) for argument in consent.arguments))
        size = size_words(sum(file.size for file in consent.files))
        count = len(consent.files)
        total = f"1 file, {size}" if count == 1 else f"{count:,} files, {size}"
        if consent.checkpoint_bytes:
            total += f", and a checkpoint of {size_words(consent.checkpoint_bytes)} to resume from"
        self.total.say(f"{total}. {words}" if (words := NETWORKS.get(consent.network)) else total)
        self.digest.say(f"Fingerprint of these files (SHA-256): {consent.project}")
        self.files.clear()
        for file in consent.files[:FILES_SHOWN]:
            self.files.addTopLevelItem(QTreeWidgetItem([plain(file.path), size_words(file.size)]))
        if count > FILES_SHOWN:
            self.files.addTopLevelItem(QTreeWidgetItem([f"and {count - FILES_SHOWN:,} more files", ""]))
        self.always.setText("Always allow this device")
        name_for_readers(self.always, f"Always allow {consent.name} to run scripts here")
        self._show_side(looking=False)
        self.enable_soon(self.once, self.always, self.no)
        self.problem.show_problem(None)
        name_for_readers(self, self.heading.text(), f"{consent.script}, {self.total.text()}")

    def _answer(self, decision: Decision) -> None:
        run = self._shown
        if run is None or not self.no.isEnabled():
            return
        self.disable(self.once, self.always, self.no)
        self._asking = None
        self._bridge.submit(
            AnswerConsent(run=run, decision=decision), lambda answer: self._on_answer(run, answer)
        )

    def _on_answer(self, run: RunId, answer: Answer) -> None:
        problem = problem_of(answer)
        if problem is not None and run == self._shown:
            self.problem.show_problem(problem)
            self.enable_soon(self.once, self.always, self.no)


def _gone(consent: Consent, state: State) -> Problem:
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
    files.setUniformRowHeights(True)
    files.setTextElideMode(files.textElideMode().ElideMiddle)
    files.header().setStretchLastSection(False)
    files.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
    files.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
    files.setMinimumHeight(files.fontMetrics().height() * 4)
    return files


def _quoted(argument: str) -> str:
    """Where an argument begins and ends is part of what is consented to."""
    return argument if argument and not any(char.isspace() for char in argument) else f"“{argument}”"
