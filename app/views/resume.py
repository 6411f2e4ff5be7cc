"""Resumes a stopped or failed run from its checkpoint, with the same laptops, roles and shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from app.bridge import Bridge
from app.charts.panel import ChartPanel
from app.models import run_again
from app.widgets.outcome_card import ALONE, OutcomeCard
from app.widgets.send_report import SendReportButton
from app.words.device_words import problem_of
from core.vocabulary.answers import Answer, Refused, RunDetails, RunEntry
from core.vocabulary.commands import ChangeSettings, FindCheckpoints, GetRun, SendReport, StartRun, StopRun
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import Event, LinkDown, LinkUp
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.settings import SettingsChange


def connect_result(bridge: Bridge, outcome: OutcomeCard, charts: ChartPanel) -> None:
    """Connects the actions on a run's result and plots, whether it just ended or is old."""
    outcome.stop_asked.connect(lambda: bridge.submit(StopRun()))
    outcome.accept_asked.connect(lambda code: bridge.submit(run_again.accepting(code, bridge.state)))
    outcome.send_asked.connect(lambda run, device: send_report(bridge, outcome.send, run, device))
    charts.bar.smoothing_kept.connect(
        lambda weight: bridge.submit(ChangeSettings(change=SettingsChange(smoothing=weight)))
    )


def send_report(bridge: Bridge, send: SendReportButton, run: RunId, device: DeviceId) -> None:
    """``send`` tells what comes of it."""
    command = SendReport(run=run, device=device)
    bridge.submit(command, lambda answer: send.tell(device, problem_of(answer)))


def ask_for_checkpoints(bridge: Bridge, entry: RunEntry) -> None:
    """Other laptops' newer checkpoints go into the state."""
    if run_again.may_go_on(entry):
        bridge.submit(FindCheckpoints(run=entry.run))


def link_changed(entry: RunEntry, events: Sequence[Event]) -> bool:
    """Whether the link of a laptop in this run changed: then ask again who has a checkpoint."""
    links = (event for event in events if isinstance(event, LinkUp | LinkDown))
    return any(event.device in entry.device_ids for event in links)


def resume_cut_off(bridge: Bridge, run: RunId, tell: Callable[[Problem], object]) -> None:
    """Does what ``tandem resume`` does, for a run that is not on screen. ``tell``: receives why it cannot
    continue."""

    def on_details(answer: Answer) -> None:
        if isinstance(answer, Refused):
            tell(answer.problem)
        if not isinstance(answer, RunDetails):
            return
        try:
            spec = replace(run_again.spec_of(answer.entry, bridge.state, resumes=True), resume=run)
        except TandemError as error:
            tell(error.problem)
            return

        def on_started(answer: Answer) -> None:
            if isinstance(answer, Refused):
                tell(run_again.with_other_ways(answer.problem, spec, bridge.state))

        bridge.submit(StartRun(spec=spec), on_started)

    bridge.submit(GetRun(run=run, points=False), on_details)


def resume_run(
    bridge: Bridge,
    outcome: OutcomeCard,
    entry: RunEntry,
    on_begun: Callable[[], object] = lambda: None,
    *,
    alone: bool = False,
) -> None:
    """Does what ``tandem resume`` does, with ``alone`` ``tandem resume --solo``; without a checkpoint it
    begins anew. ``outcome`` shows ``entry``'s run, and why it cannot continue."""
    me = bridge.state.me.device if bridge.state.me is not None else None
    try:
        spec = run_again.spec_of(entry, bridge.state, resumes=True, others_said=alone, button=ALONE)
    except TandemError as error:
        outcome.show_start(error.problem, starting=False)
        return

    def on_answer(answer: Answer) -> None:
        refused = answer.problem if isinstance(answer, Refused) else None
        if outcome.folder == entry.folder:  # otherwise another run is open meanwhile
            stopped = refused is not None and refused.code == "stopped"  # the user wanted that
            if refused is not None:
                refused = run_again.with_other_ways(refused, spec, bridge.state, ALONE)
            outcome.show_start(None if stopped else refused, starting=False)
        if refused is None:
            on_begun()

    if alone:
        spec = run_again.alone(spec, me)
    spec = replace(spec, resume=entry.run if outcome.may_resume else None)
    outcome.show_start(None, starting=True)
    bridge.submit(StartRun(spec=spec), on_answer)
