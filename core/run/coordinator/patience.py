"""Reports which members the run waits for, and lets it continue when a silent laptop is back. Pure.

Applies only where the trainers' connections outlast silence (``Plan.patient``): otherwise silence ends the
run. Sealed trainers report nothing about their meetings, and a cut between them ends the run (not
``Plan.redials``).
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from core.run import problems
from core.run.coordinator import state as co
from core.run.coordinator import verdicts
from core.run.coordinator.ending import abandon, check_for_end
from core.run.turn import CoordinatorTurn
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.phases import Starting
from core.vocabulary.plausible import sound_status
from core.vocabulary.waits import Cause, TrainerStatus, WaitsFor

_CUT_TOLD_S = 150.0
"""A connection that was cut while a laptop was away fails when the system next sends something over it, up to
120 s after the laptop's return (Linux's ``TCP_RTO_MAX``)."""
_STUCK: frozenset[Cause] = frozenset({"stopped", "silent", "connection"})
"""Members waited for on these grounds never reach a step boundary at which all could stop."""


_WATCHED = co.Assembling | co.Running | co.Halting | co.Releasing | co.Draining
"""Stages in which a run may wait for a member."""

# --- reports from members --------------------------------------------------------------------------------


def on_status(turn: CoordinatorTurn, device: DeviceId, task: str, status: TrainerStatus | None) -> None:
    state = turn.state
    own = {each.name for each in state.plan.tasks_of(device)}
    if (
        not state.plan.patient
        or isinstance(state.stage, co.Assembling)
        or task not in own
        or (status is not None and not sound_status(status, state.plan))
    ):
        return
    statuses = {name: heard for name, heard in state.statuses.items() if name != task}
    if status is not None:
        if task not in state.statuses and not (status.stopped or status.held):
            note_progress(turn, turn.now_s - status.lasted_s)  # the end of its last meeting, not reported
        statuses[task] = co.Heard(status, turn.now_s)
    elif task in state.statuses:
        note_progress(turn)
    turn.state = replace(turn.state, statuses=MappingProxyType(statuses))
    come = verdicts.bytes_come(turn.state)
    if come > turn.state.last_report.come_bytes:
        note_progress(turn)
    turn.state = replace(turn.state, last_report=replace(turn.state.last_report, come_bytes=come))
    update_verdicts(turn)


def note_progress(turn: CoordinatorTurn, at_s: float | None = None) -> None:
    """Record progress, now or at ``at_s``."""
    last_report = turn.state.last_report
    progressed_s = turn.now_s if at_s is None else max(last_report.progressed_s, at_s)
    turn.state = replace(turn.state, last_report=replace(last_report, progressed_s=progressed_s))


# --- reports to screens ----------------------------------------------------------------------------------


def update_verdicts(turn: CoordinatorTurn) -> None:
    """Compute the verdict again, report changes, and check again while there is one."""
    state = turn.state
    if not state.plan.patient:
        return
    waits = verdicts.verdicts(state, turn.now_s) if isinstance(state.stage, _WATCHED) else ()
    if waits and not state.last_report.waits and not state.plan.redials:
        note_progress(turn)  # nobody reports steps there: it went on until now
        state = turn.state
    last_report, after_s = state.last_report, state.plan.ask_after_s
    asks = bool(waits) and 0 < after_s <= turn.now_s - last_report.progressed_s
    is_news = _gist(waits) != _gist(last_report.waits) or asks != last_report.asks
    is_due = bool(waits) and turn.now_s - last_report.at_s >= limits.WAITS_EVERY_S
    if is_news or is_due:
        turn.state = replace(state, last_report=replace(last_report, waits=waits, at_s=turn.now_s, asks=asks))
        turn.share(ev.WaitingChanged(run=state.plan.run, waits=waits, asks=asks))
    if not waits and not state.is_any_away:
        turn.cancel("look")
    elif "look" not in turn.state.waits:
        turn.wait("look", limits.LOOK_S)


def go_on_waiting(turn: CoordinatorTurn) -> None:
    """The user lets the run go on waiting."""
    if turn.state.last_report.asks:
        note_progress(turn)
        update_verdicts(turn)


def _gist(waits: tuple[WaitsFor, ...]) -> list[tuple[object, ...]]:
    return [(wait.device, wait.cause, wait.activity, wait.where) for wait in waits]


# --- members that are away -------------------------------------------------------------------------------


def may_wait_for(turn: CoordinatorTurn, device: DeviceId) -> bool:
    """Whether the run goes on although nothing comes from the member."""
    state = turn.state
    if not state.plan.patient:
        return False
    match state.stage:
        case co.Assembling():
            return True
        case co.Running():
            return state.plan.redials or not isinstance(state.phase, Starting)
        case co.Halting() | co.Draining():
            return device == state.chief.device and state.lacks_outputs
    return False


def wait_for(turn: CoordinatorTurn, device: DeviceId, problem: Problem) -> None:
    """The member is silent, and the run waits for it. ``problem``: the reason, as far as known."""
    part = turn.state.parts[device]
    if part.away_s is None:
        turn.update_part(device, replace(part, away_s=turn.now_s, away_why=problem))
    if "away" not in turn.state.waits:
        turn.wait("away", verdicts.limit_s(turn.state, device))
    # The trainers' own limit for meeting each other is more precise than "start".
    turn.cancel("start", "outputs", "finish")
    update_preparing_waits(turn)
    update_verdicts(turn)


def update_preparing_waits(turn: CoordinatorTurn) -> None:
    """Suspend the limits on users' answers and file transfers while a member is away."""
    state, parts = turn.state, turn.state.parts.values()
    if not isinstance(state.stage, co.Assembling):
        return
    if state.is_any_away or all(part.joined for part in parts):
        turn.cancel("consent")
    elif "consent" not in state.waits:
        turn.wait("consent", limits.CONSENT_S)
    if state.is_any_away or all(part.prepared is not None for part in parts if part.joined):
        turn.cancel("receive")
    elif "receive" not in state.waits:
        turn.wait("receive", limits.RECEIVE_S)


def on_file_work(turn: CoordinatorTurn, device: DeviceId) -> None:
    """Restart the wait for a member that reads or receives files: it is alive, however long that takes. One
    that has yet to say what it lacks has its user's answer already: only its files are waited for."""
    wait: Wait = "receive" if turn.state.parts[device].joined else "consent"
    if wait in turn.state.waits:
        turn.wait(wait, limits.RECEIVE_S if wait == "receive" else limits.CONSENT_S)


def on_back(turn: CoordinatorTurn, device: DeviceId) -> None:
    """The member is back, and everything that it said meanwhile arrives."""
    state = turn.state
    part = state.parts[device]
    if part.away_s is None:
        return
    turn.update_part(device, replace(part, away_s=None))
    if turn.now_s - part.away_s >= limits.MISSED_S:
        turn.update_part(device, replace(turn.state.parts[device], back_s=turn.now_s))
        turn.log(problems.back(state.name(device), turn.now_s - part.away_s))
    if not turn.state.is_any_away:
        turn.cancel("away")
    update_preparing_waits(turn)
    if isinstance(state.stage, co.Draining):
        turn.wait("outputs", limits.OUTPUTS_S)
    check_for_end(turn)
    update_verdicts(turn)


def cut_off(turn: CoordinatorTurn) -> Problem | None:
    """Why a trainer lost its connections: a member is away. None where connections are dialled anew."""
    state = turn.state
    if state.plan.redials:
        return None
    lost = ((device, part.away_why) for device, part in state.parts.items() if part.away_s is not None)
    return next((problems.lost_device(state.plan, device, why) for device, why in lost if why), None)


def cut_before(turn: CoordinatorTurn) -> Problem | None:
    """Why a trainer may have lost its connections: a laptop was away, and has just returned. None where
    connections are dialled anew."""
    state = turn.state
    back = [(part.back_s, device) for device, part in state.parts.items() if part.back_s is not None]
    if state.plan.redials or not back:
        return None
    back_s, device = max(back)
    why = state.parts[device].away_why
    if why is None or turn.now_s - back_s > _CUT_TOLD_S:
        return None
    return problems.lost_device(state.plan, device, why, back=True)


def stop_without(turn: CoordinatorTurn, by: str) -> bool:
    """While a member is away no step ends at which members could stop: end everything at once."""
    if not turn.state.is_any_away:
        return False
    abandon(turn, problems.stopped_by(by), by=by)
    return True


def least_force(turn: CoordinatorTurn) -> int:
    """Initial stop force: a stuck step never ends."""
    return 1 if any(wait.cause in _STUCK or wait.held for wait in turn.state.last_report.waits) else 0
