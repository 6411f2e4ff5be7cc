"""A run on this laptop, during and after it: progress, plots, log, result."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QApplication, QSizePolicy

from app.bridge import Bridge
from app.charts import loader
from app.charts.panel import ChartPanel
from app.charts.sources import Source, UseMeter
from app.long_work import in_thread
from app.models import laptop_rows, run_again, stragglers
from app.models.shown_run import ShownRun
from app.theme import GAP
from app.views.run_page import RunPage
from app.widgets.buttons import button
from app.widgets.labels import ElidedLabel, Label, name_for_readers, set_kind, set_tooltip
from app.widgets.laptop_menu import AddLaptop
from app.widgets.leave_run import LeaveThisRun
from app.widgets.log_drawer import LogDrawer
from app.widgets.run_progress import RunProgress
from app.words.device_names import name_of, names_of
from core.report.points import RunPoints
from core.vocabulary.answers import Answer, Refused, RunDetails, RunEntry
from core.vocabulary.commands import GetRun, GoOnWaiting, StartRun, StopRun
from core.vocabulary.errors import TandemError
from core.vocabulary.events import Event, MemberLogged, RunEvent, RunPlanned, TelemetryReported
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Planning, Preparing, Stopped, Stopping, is_followed
from core.vocabulary.state import Run, State

STOP = "Stop"
END = "End now"
WATCH_NO_MORE = "Stop watching"
_STOP_HINT = "Ends at the end of a step; what the script saves by then is kept."
_END_HINT = "Does not wait for the script any longer."
_WATCH_HINT = "This laptop is free again; the others go on."


class TrainLive(RunPage):
    """Call ``show_run`` with every batch of events, visible or not: points are kept, nothing is drawn
    unseen."""

    new_asked = Signal()

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge, ChartPanel())
        self.run: RunId | None = None
        self.points = RunPoints()
        self._use = UseMeter(self.points)
        self._who_waits = stragglers.WaitingShown()
        self._late: list[Event] | None = None
        """Events that came while earlier points were being fetched."""
        self._over = False
        self._pressed = 0
        self._rare_next = False
        """Once it has stopped, it is to begin anew with rare meetings."""
        # The keyboard focus waits here, not at Stop: its keys scroll.
        self.page.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        name_for_readers(self.page, "Run")
        self.setFocusProxy(self.page)
        self.script = ElidedLabel("", "faint")
        self.stop = button(STOP, self._stop, "danger", name="stop")
        self.page.head.setStretchFactor(self.page.title, 0)
        self.page.head.addWidget(self.script, 1)
        self.page.head.addStretch()  # in place of a hidden label
        self.add_laptop = AddLaptop(self, bridge)
        self.leave = LeaveThisRun(self, bridge)
        self.leave.stop_asked.connect(self._stop)
        self.back = button("Back to the form", self.new_asked.emit, name="back-to-form")
        set_tooltip(self.back, "The run goes on. The form is as you left it.")
        self.back.hide()
        self.page.head.addWidget(self.back)
        self.page.head.addWidget(self.add_laptop.button)
        self.page.head.addWidget(self.leave.button)
        self.page.head.addWidget(self.stop)
        self.progress = RunProgress()
        self.progress.keep_waiting_asked.connect(self._keep_waiting)
        self.progress.rarely_asked.connect(self._stop_for_rare)
        self.outcome.new_asked.connect(self.new_asked)
        self.no_gpu = Label("", "faint", wraps=True)
        self.no_gpu.hide()
        self.plots.add(self.no_gpu)
        self.plots.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.log = LogDrawer()
        self.page.add(
            *(self.add_laptop.said, self.leave.question, self.progress, self.outcome, self.plots, self.log),
            1,  # for a run without plots
        )
        self.page.body.setStretchFactor(self.plots, 1000)
        self.page.body.setSpacing(GAP)

    def show_run(self, state: State, events: Sequence[Event]) -> None:
        run = state.run
        if run is None:
            return
        names = names_of(state, run.members)
        begins = run.plan.run != self.run
        if begins:
            self._begin(state, run, names, events)
        # For a run joined midway, this batch's lines are already in the state.
        lines = not begins or _seen_whole(run, events)
        # A run's first event may be in the middle of a batch.
        for event in events:
            if isinstance(event, RunEvent) and event.run == self.run:
                self._hear(event, lines)
            elif isinstance(event, TelemetryReported) and not _is_over(run) and event.device in run.members:
                if self._late is None:
                    self._use.on_event(event)
                else:
                    self._late.append(event)
        self.progress.hear(run)
        if self.isVisible():
            self._show(state, run, names)
        if _is_over(run) and not self._over:
            self._over = True
            self.charts.take_in(over=True)
            # Its points are here already; reading them again would block the window.
            self._bridge.submit(GetRun(run=run.plan.run, points=False), self._on_details)
        else:
            self.hear_links(events)

    def refresh(self, state: State) -> None:
        """Called when it comes to the front."""
        if state.run is not None:
            self._show(state, state.run, names_of(state, state.run.members))
            self.charts.take_in()

    # --- what comes ----------------------------------------------------------------------------------------

    def _begin(self, state: State, run: Run, names: dict[DeviceId, str], events: Sequence[Event]) -> None:
        self.run = run.plan.run
        self.points = RunPoints(run.plan)
        self._use = UseMeter(self.points)
        self._over, self._pressed, self._rare_next = False, 0, False
        self._late = None
        self.begin(None, state)
        if _seen_whole(run, events):
            # Its lines come as events of this batch.
            members = {device: type(member)() for device, member in run.members.items()}
            self.log.begin(Run(plan=run.plan, phase=run.phase, members=members), names)
        else:
            self.log.begin(run, names)
        if run.plan.resume is not None or not _seen_whole(run, events):
            self._late = []
            self._bridge.submit(GetRun(run=self.run), self._on_points)
        self.charts.show_sources([self._source(run, names)])

    def _source(self, run: Run, names: dict[DeviceId, str]) -> Source:
        return Source(run.plan.script, self.points, names)

    def _hear(self, event: Event, lines: bool) -> None:
        if isinstance(event, MemberLogged):
            if lines:
                self.log.hear(event)
        elif self._late is not None:
            self._late.append(event)
        else:
            brought = self.points.on_event(event)
            if self._use.on_event(event) or brought:
                self.charts.take_in()

    def _on_points(self, answer: Answer) -> None:
        """The window opened midway through the run, or the run resumes another: earlier points come from
        its record."""
        if isinstance(answer, RunDetails) and answer.entry.run == self.run:
            script, run = answer.entry.script, answer.entry.run
            in_thread(self, lambda: RunPoints.of(answer), lambda points: self._on_read(run, script, points))
        else:
            self._on_read(self.run, "", None)

    def _on_read(self, run: RunId | None, script: str, points: RunPoints | None) -> None:
        if run != self.run:
            return
        late, self._late = self._late or [], None
        if points is not None:
            self.points = points
            self._use = UseMeter(points)
            self.charts.show_sources([Source(script, points, self._names())])
        for event in late:
            self.points.on_event(event)
            self._use.on_event(event)
        self.charts.take_in(over=self._over)
        if self.isVisible():
            self.refresh(self._bridge.state)  # without points there was no place for plots

    def _on_details(self, answer: Answer) -> None:
        if isinstance(answer, RunDetails) and answer.entry.run == self.run:
            self.record = answer
            self.refresh(self._bridge.state)
            self.look_for_checkpoints()
            if self.outcome.again.hasFocus() and not self.outcome.go_on.isHidden():
                self.outcome.go_on.setFocus()  # Stop had the focus, and this is the main action now
            if self._rare_next and isinstance(answer.entry.phase, Stopped):
                self._train_rarely(answer.entry)

    def _names(self) -> dict[DeviceId, str]:
        state = self._bridge.state
        return names_of(state, state.run.members) if state.run is not None else {}

    # --- what is seen --------------------------------------------------------------------------------------

    def _show(self, state: State, run: Run, names: dict[DeviceId, str]) -> None:
        if not isinstance(run.phase, Planning | Preparing) and not _is_over(run):
            # Trainers take seconds to start: time to load the plots' modules.
            loader.load(self, lambda: None)
        self.page.title.say(run.plan.script)
        arguments = " ".join(run.plan.arguments)
        starter = run.plan.starter
        mine = state.me is not None and starter == state.me.device
        if run.plan.trial is not None:
            arguments = f"Trial {run.plan.trial.number} of {run.plan.trial.trials}. {arguments}"
        self.script.say(arguments if mine else f"Started on {name_of(state, starter)}. {arguments}")
        self.script.setVisible(bool(self.script.text()))
        over = _is_over(run)
        stopped = over and self.stop.hasFocus()
        self._show_stop(run, state)
        self.add_laptop.show_run(run, state)
        self.leave.show_run(run, state)
        self.plots.setVisible(bool(self.points.curves))
        if not over:
            self.no_gpu.say_or_hide(laptop_rows.why_no_gpu(run, state, names))
        # Fill each card before it is visible: a line added later lays out the whole page again.
        if over:
            self.progress.hide()
            self.outcome.show_outcome(ShownRun.live(run, state, self.record), state)
            self.outcome.show()
            if stopped:
                # The pressed button is gone; Qt would focus the next one.
                (self.outcome.again if mine else self.outcome.new).setFocus()
        else:
            focused = QApplication.focusWidget()
            if focused is not None and self.outcome.isAncestorOf(focused):
                self.page.setFocus()  # a hidden button's focus would go to the next one: Stop
            self.outcome.hide()
            self.progress.show_run(run, state, names, self._who_waits.words(run, names))
            self.progress.show()

    def _show_stop(self, run: Run, state: State) -> None:
        self.stop.setVisible(not _is_over(run))
        ending = isinstance(run.phase, Stopping) or self._pressed > 0
        words, hint = (END, _END_HINT) if ending else (STOP, _STOP_HINT)
        if state.me is not None and state.me.device not in (run.plan.starter, *run.staying):
            words, hint = WATCH_NO_MORE, _WATCH_HINT
        if self.stop.text() != words:
            self.stop.setText(words)
            self.stop.setAccessibleName(words)
            set_kind(self.stop, "danger")
        set_tooltip(self.stop, hint)

    def _keep_waiting(self) -> None:
        if self.run is not None:
            self._bridge.submit(GoOnWaiting(run=self.run))

    def _stop_for_rare(self) -> None:
        if not self._rare_next:
            self._rare_next = True
            self.page.setFocus()  # the pressed button goes, and Qt would focus the next one
            self._stop()

    def _train_rarely(self, entry: RunEntry) -> None:
        self._rare_next = False
        try:
            spec = replace(run_again.spec_of(entry, self._bridge.state), sync="rare", resume=None)
        except TandemError as error:
            self.outcome.show_start(error.problem, starting=False)
            return
        self._bridge.submit(StartRun(spec=spec), self._on_rare_begun)

    def _on_rare_begun(self, answer: Answer) -> None:
        if isinstance(answer, Refused):
            self.outcome.show_start(answer.problem, starting=False)

    def _stop(self) -> None:
        self._pressed += 1
        self._bridge.submit(StopRun())
        state = self._bridge.state
        if state.run is not None:
            self._show_stop(state.run, state)


def _is_over(run: Run) -> bool:
    """Over for its viewer: a run that continues immediately is the same training."""
    return run.over and not is_followed(run.phase)


def _seen_whole(run: Run, events: Sequence[Event]) -> bool:
    """Whether it begins among these events: nothing came before."""
    return any(isinstance(event, RunPlanned) and event.plan.run == run.plan.run for event in events)
