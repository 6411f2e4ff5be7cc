"""Before a run: script, arguments, roles, options, checks, and Train."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from msgspec import structs
from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QWidget

from app.bridge import Bridge
from app.models import preflight
from app.models.draft import RunDraft, candidates, spec_of, sweep_of, taking_part, train_words, why_not
from app.models.offers import Offer
from app.models.run_again import withdrawing
from app.theme import GAP
from app.views.roles import RolesBox
from app.widgets.argument_form import ArgumentForm
from app.widgets.buttons import button
from app.widgets.card import column, row
from app.widgets.labels import Label
from app.widgets.options_fold import OptionsFold
from app.widgets.page import Page
from app.widgets.problem_box import ProblemBox
from app.widgets.ready_card import ReadyCard
from app.widgets.run_progress import RunBanner
from app.widgets.script_drop import ScriptChoices, ScriptDrop
from app.widgets.script_watch import ScriptWatch
from app.widgets.several_values import SeveralValues
from app.words.device_words import problem_of
from core.vocabulary.answers import Answer, Finding, Findings, PlanMade, Refused, ScriptRead, ScriptsFound
from core.vocabulary.commands import (
    AnalyseScript,
    AskToInstall,
    Mend,
    PlanRun,
    RunDoctor,
    StartRun,
    StartSweep,
)
from core.vocabulary.errors import INSTALLED, Problem, TandemError
from core.vocabulary.state import State
from core.vocabulary.sweep import SweepSpec

SETTLE_MS = 250
"""Delay after a change: a user who types or scrolls rarely stops at the first one."""


class TrainSetup(QWidget):
    """``live_asked``: the user wants to see the run under way. ``refused``: Train was not accepted.
    ``devices_asked(device)``: the Devices screen; with a device: to have its versions here."""

    live_asked = Signal()
    refused = Signal()
    devices_asked = Signal(object)

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge
        self.draft = RunDraft()
        self.edited = False
        """A person has begun to compose a run here, and has not pressed Train yet."""
        self.read: ScriptRead | None = None
        self.made: PlanMade | None = None
        """The newest plan; it stays visible while the next one is made."""
        self.refusal: Problem | None = None
        self._state = State()
        self._asked = 0
        self._planning = False
        self._stale = False
        self._starting = False
        self._starts_itself = False
        self._alone_asked = False
        """The user was told that the run would be alone: pressing again confirms it."""
        self._findings: tuple[Finding, ...] = ()
        self._shown: list[Finding] = []
        self._signature: object = None
        self._told: object = None
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(self._plan)
        self.watch = ScriptWatch(self, self._read_again)
        self._build()
        self.setFocusProxy(self.drop.file)
        self._show()

    def _build(self) -> None:
        self.page = page = Page("Train")
        self.drop = ScriptDrop()
        self.drop.chosen.connect(self.choose)
        self.drop.refused.connect(self._refuse)
        self.problem = ProblemBox()
        self.choices = ScriptChoices()
        self.choices.chosen.connect(self.choose)
        self.reading = Label("", "faint")
        self.values = SeveralValues()
        self.values.changed.connect(self._change)
        self.argued = ArgumentForm(self.values)
        self.argued.changed.connect(lambda text: self._change(replace(self.draft, arguments=text)))
        self.arguments = self.argued.line
        self.roles = RolesBox()
        self.roles.changed.connect(self._change)
        self.options = OptionsFold()
        self.options.changed.connect(self._take_options)
        self.ready = ReadyCard(self.roles, self.options)
        self.ready.mend_asked.connect(self._mend)
        self.ready.taken.connect(self._take)
        self.train = button("Train", self.start, "primary", name="train")
        self.why = Label("", "faint", wraps=True)
        self.drop.take_line(self.argued)
        self.banner = RunBanner(self.live_asked.emit)
        page.add(self.drop, self.problem, self.choices)
        page.add(self.reading, self.ready, self.drop.examples, 1)
        # Below the scrolling part, so that the main action is always in reach.
        self.foot = QFrame()
        self.foot.setObjectName("foot")
        foot = row(self.train, self.why)
        foot.setStretchFactor(self.why, 1)
        foot.setContentsMargins(GAP * 2, GAP, GAP * 2, GAP)
        self.foot.setLayout(foot)
        layout = column(self.banner, page, self.foot, spacing=0)
        layout.setStretchFactor(page, 1)
        self.setLayout(layout)

    # --- what is to be run ---------------------------------------------------------------------------------

    def choose(self, path: str) -> None:
        """Reads the script at ``path``, or a folder with one. It has its own arguments; acceptances for
        another script do not apply to it."""
        draft = replace(self.draft, script=path, strategy=None, then={})
        if path != self.draft.script:
            options = structs.replace(draft.options, accept_differences=False)
            draft = replace(draft, arguments="", several=False, options=options)
        self.arguments.setText(draft.arguments)
        self._begin(draft)

    def prepare(self, draft: RunDraft) -> None:
        """Fills the form like an earlier run."""
        self.arguments.setText(draft.arguments)
        self._begin(draft)

    def _begin(self, draft: RunDraft) -> None:
        self._starts_itself = self._starts_itself and not self.draft.script
        self.draft = draft
        self.edited = True
        self.options.show_options(draft)
        self.ready.begin()
        if self.options.is_open or draft.roles or draft.shares or draft.left_out:
            self.ready.more.head.setChecked(True)  # unusual settings are visible
        self.read = self.made = self.refusal = None
        self._alone_asked = False
        self.problem.show_problem(None)
        self.choices.show_scripts(None)
        self._asked += 1
        self._bridge.submit(AnalyseScript(path=draft.script), partial(self._on_script, self._asked))
        self._bridge.submit(RunDoctor(), self._on_findings)
        self._show()

    def show_state(self, state: State) -> None:
        self._state = state
        self.banner.show_state(state)
        self.drop.home = state.me.home if state.me is not None else ""
        # Plan again only when the possible members or their abilities change, not with every reading.
        me = state.me
        signature = (
            (me.device, me.versions, me.settings.accepted) if me is not None else None,
            state.busy,
            [(d.device, d.shown_name, d.versions, why_not(d)) for d in candidates(state)],
            [notice for notice in state.notices if notice.code == INSTALLED],
        )
        shown = [preflight.disk_level(device) for device in candidates(state)], state.reading, state.joining
        if signature != self._signature:
            self._signature = signature
            self._take_question_back()
            if self.read is not None:
                self._stale = True
                self._settle.start()
            self._show()
        elif shown != self._told:
            self._show()
        self._told = shown

    # --- drawing -------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._settle.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._settle.stop()

    def _show(self) -> None:
        read = self.read
        self.drop.show_script(read.script if read else "", self.draft.script)
        waiting = read is None and bool(self.draft.script) and self.problem.problem is None
        self.reading.say_or_hide(
            preflight.being_read(self.draft, self._state) or "Reading the script…" if waiting else ""
        )
        self.argued.setVisible(read is not None)
        self.values.show_draft(self.draft)
        self.ready.setVisible(read is not None)
        self.foot.setVisible(read is not None)
        if read is None:
            return
        self.argued.show_options(read.options, several=self.draft.several)
        plan = self.refusal or (None if self._stale else self.made)
        own = (self.draft.strategy or read.kind) == "own"
        self.roles.show_roles(self.draft, self._state, self.made, own=own)
        self.options.show_sealed(preflight.is_sealed(self.draft, read, self.made))
        found = preflight.lines(self.draft, self._state, read, plan, self._findings)
        if found != self._shown:
            self._shown = found
            self.ready.show_findings(found)
        self.ready.show_headline(
            None if plan is None else preflight.headline(self.draft, self._state, read, plan, found)
        )
        self.train.setEnabled(preflight.ready(found, plan) and not self._starting)
        self.train.setText("Train alone" if self._alone_asked else train_words(self.draft, self._state))
        self.why.say(self._why(found, plan))
        everybody = len(taking_part(self.draft, self._state)) > len(candidates(self._state))
        if self._starts_itself and everybody and self.train.isEnabled():
            QTimer.singleShot(0, self, self._start_itself)

    def _why(self, found: list[Finding], plan: PlanMade | Problem | None) -> str:
        if self._starting:
            return preflight.being_read(self.draft, self._state) or "Starting…"
        if any(finding.level == "error" for finding in found):
            waits = preflight.waits_only(found)
            return "Wait until the run under way has ended." if waits else "Fix the problems above first."
        return preflight.being_read(self.draft, self._state) or "Making the plan…" if plan is None else ""

    # --- the user ------------------------------------------------------------------------------------------

    def _change(self, draft: RunDraft) -> None:
        self.draft = draft
        self._starts_itself = False  # the user has other plans
        self.edited = True
        self._stale = True
        self.refusal = None
        self._take_question_back()
        self._settle.start()
        self._show()

    def _take_options(self) -> None:
        self._change(self.options.chosen(self.draft))

    def _refuse(self, problem: Problem) -> None:
        self.problem.show_problem(problem)
        self._show()

    def _take_question_back(self) -> None:
        """The question was about another run, or other laptops."""
        if self._alone_asked:
            self._alone_asked = False
            self.problem.show_problem(None)

    def _ask_alone(self, question: Problem) -> None:
        self.problem.show_problem(question, "warning")
        self._show()
        self.refused.emit()

    def _mend(self, code: str) -> None:
        if code == preflight.ACCEPTED and self.read is not None:
            self._bridge.submit(withdrawing(self.read.code, self._state))
            options = structs.replace(self.draft.options, accept_differences=False)
            self._change(replace(self.draft, options=options))
        elif code == preflight.ONLY_HERE and self.read is not None:
            try:
                self.options.show_options(
                    replace(self.draft, data=preflight.with_data(self.draft, self.read))
                )
            except TandemError as error:
                self._refuse(error.problem)
            else:
                self._take_options()
        else:
            self._bridge.submit(Mend(code=code), self._on_mended)

    def _take(self, offer: Offer) -> None:
        if offer.installs and offer.device is not None:
            self._bridge.submit(AskToInstall(device=offer.device), self._on_mended)
        elif offer.draft is None:
            self.devices_asked.emit(offer.device)
        if offer.draft is None:
            return
        self.arguments.setText(offer.draft.arguments)
        self.options.show_options(offer.draft)
        if offer.draft.options != self.draft.options:
            self.ready.more.head.setChecked(True)  # the change is visible
        self.arguments.setFocus()  # the pressed button goes; Qt would focus the next one
        self._change(offer.draft)

    def start_when_ready(self) -> None:
        """Presses Train once that is possible with every paired laptop. If one is away it stays a
        question: the form says so, and a person presses Train."""
        # A form that already has a script never starts without a press.
        self._starts_itself = not self.draft.script
        self._show()

    def _start_itself(self) -> None:
        if self._starts_itself and self.train.isEnabled():
            self.start()

    def start(self) -> None:
        """Press Train."""
        self._starts_itself = False
        spec = (sweep_of if self.draft.several else spec_of)(self.draft, self._state)
        if isinstance(spec, Problem):
            self._refuse(spec)
            self.refused.emit()
            return
        alone = preflight.would_be_alone(self.draft, self._state)
        if alone is not None and not self._alone_asked:
            self._alone_asked = True
            self._ask_alone(alone)
            return
        self._starting, self.edited, self._alone_asked = True, False, False
        self.problem.show_problem(None)
        self._show()
        command = StartSweep(spec=spec) if isinstance(spec, SweepSpec) else StartRun(spec=spec)
        self._bridge.submit(command, self._on_started)

    # --- the node's answers --------------------------------------------------------------------------------

    def _on_script(self, asked: int, answer: Answer) -> None:
        if asked != self._asked:
            return  # something else was chosen meanwhile
        match answer:
            case ScriptRead():
                self._on_read(answer)
            case ScriptsFound(problem=problem):
                self.choices.show_scripts(answer)
                self.problem.show_problem(problem, "note")  # nothing is wrong: the user has to choose
                self._show()
                self.choices.buttons[0].setFocus()
            case Refused(problem=problem):
                self._refuse(problem)

    def _read_again(self) -> None:
        """The script was saved, or its user is back: what was found may be mended."""
        if self.read is not None and self.isVisible() and not self._state.busy:
            self._asked += 1
            self._bridge.submit(AnalyseScript(path=self.draft.script), partial(self._on_script, self._asked))

    def _on_read(self, read: ScriptRead) -> None:
        self.read = read
        self.watch.follow(f"{read.folder}/{read.script}")
        self.draft = replace(self.draft, script=f"{read.folder}/{read.script}")
        self._stale = True
        self._plan()
        self._show()

    def _plan(self) -> None:
        if self.read is None or self._planning or not self._stale:
            return
        self._stale = False
        spec = spec_of(self.draft, self._state)
        if isinstance(spec, Problem):
            self.refusal = spec
            self._show()
            return
        self._planning = True
        # Only the newest question counts, and only one is pending at a time.
        self._bridge.submit(PlanRun(spec=spec), self._on_planned)

    def _on_planned(self, answer: Answer) -> None:
        self._planning = False
        if isinstance(answer, PlanMade):
            self.made, self.refusal = answer, None
        elif isinstance(answer, Refused):
            self.refusal = answer.problem
        if self._stale:
            self._settle.start()
        self._show()

    def _on_findings(self, answer: Answer) -> None:
        if isinstance(answer, Findings):
            self._findings = answer.findings
            self._show()

    def _on_mended(self, answer: Answer) -> None:
        self.problem.show_problem(problem_of(answer))
        self._bridge.submit(RunDoctor(), self._on_findings)

    def _on_started(self, answer: Answer) -> None:
        self._starting = False
        if isinstance(answer, Refused):
            self.edited = True
            self.problem.show_problem(answer.problem)
            self.refused.emit()
        self._show()
